"""Follow every link of the built site, and look for every public name, page and command in it.

`python docs/check_links.py docs/_build/html`
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import appca
from docs import reference
from docs.reference import CLASSES

ROOT = Path(__file__).resolve().parents[1]


class Page(HTMLParser):
    """Links and places of a page, and what it loads from elsewhere."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.outside: list[str] = []
        self.lost = 0  # links that Sphinx could not follow and wrote as words
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag leads to, and what leads to it."""
        given = {name: value or "" for name, value in attrs}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        self.lost += tag == "span" and given.get("class") == "xref myst"
        loaded = given.get("src") or (given.get("href", "") if tag == "link" else "")
        if loaded.startswith(("http:", "https:", "//")) and given.get("rel") != "canonical":
            self.outside.append(loaded)


def faults(folder: Path) -> list[str]:
    """Return dead links, pages that load from elsewhere, and public names without a page."""
    pages = {file.resolve(): Page(file) for file in sorted(folder.rglob("*.html"))}
    places = {file: page.places for file, page in pages.items()}
    found = []
    for file, page in pages.items():
        name = file.relative_to(folder.resolve())
        found += [f"{name} loads {one}" for one in page.outside]
        found += [f"{name} has a link to nowhere"] * page.lost
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if not target.exists():
                found.append(f"{name}: {link} leads nowhere")
            elif unquote(parts.fragment) not in {"", *places.get(target, {parts.fragment})}:
                found.append(f"{name}: {link} names no place")
    return found + _unexplained(folder, {place for page in pages.values() for place in page.places})


def _unexplained(folder: Path, places: set[str]) -> list[str]:
    """Name what people use and no page tells of: public names, pages of the app, commands."""
    from appca.cli import _parser

    titles = re.findall(
        r'^    "\w+": \("([^"]+)", "\w+"\),$', (ROOT / "app.py").read_text("utf-8"), re.M
    )
    commands = _parser()[1]
    said = {
        name: (folder / f"{name}.html").read_text("utf-8")
        for name in ("guides/index", "command_line")
    }
    return [
        *(f"{one} has no page" for one in appca.__all__ if f"appca.{one}" not in places),
        *(f"{one} has no entry" for one in _methods() if one not in places),
        *(
            f"the page {one} is not told of"
            for one in titles
            if f">{one}</strong>" not in said["guides/index"]
        ),
        *(
            f"the command {one} is not told of"
            for one in commands
            if f">{one}</span>" not in said["command_line"]
        ),
    ]


def _methods() -> list[str]:
    """Return the full names of all public methods and properties."""
    homes = {kind: "appca" if kind in reference.MODELS else kind.__module__ for kind in CLASSES}
    return [f"{homes[k]}.{k.__name__}.{name}" for k in CLASSES for name in reference.members(k)]


if __name__ == "__main__":
    wrong = faults(Path(sys.argv[1]))
    print("\n".join(wrong) or "every link leads somewhere")  # noqa: T201 - a command's answer
    sys.exit(bool(wrong))
