"""Parts of the site that its build makes: source pages, help of commands, dark pictures."""

import ast
import importlib.util
import re
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

MATHEMATICS = Path(__file__).with_name("mathematics.md")
FUNCTION = re.compile(r"`(appca[\w.]+):([\w.]+)`")
TAG = re.compile(r"\\tag\{([\w.]+)\}\$\$")
IMAGE = re.compile(r"^!\[([^\]]*)\]\(([^)]+)\.(png|webp)\)$", re.M)


def modules() -> list[str]:
    """Return the modules that hold the functions which the mathematics names."""
    names = FUNCTION.findall(MATHEMATICS.read_text("utf-8"))
    return sorted({place(module, name)[0] for module, name in names})


def place(module: str, name: str) -> tuple[str, int]:
    """Return the module that defines a function or method, and the line on which it begins."""
    body = ast.parse(_file(module).read_text("utf-8")).body
    for part in name.split("."):
        for node in body:
            if isinstance(node, ast.ImportFrom) and part in {one.name for one in node.names}:
                return place(str(node.module), name)
            if getattr(node, "name", None) == part:
                line, inner = node.lineno, getattr(node, "body", [])
                break
        else:
            msg = f"{module} has no {name}"
            raise LookupError(msg)
        body = inner
    return module, line


def address(module: str, name: str) -> str:
    """Return where the site shows a function's source."""
    home, line = place(module, name)
    return f"source/{home}.html#L-{line}"


def write_sources(folder: Path) -> None:
    """Write a page of source code for each module that the mathematics names."""
    folder.mkdir(parents=True, exist_ok=True)
    for module in modules():
        form = HtmlFormatter(
            full=True, title=module, linenos="inline", lineanchors="L", anchorlinenos=True
        )
        text = highlight(_file(module).read_text("utf-8"), PythonLexer(), form)
        (folder / f"{module}.html").write_text(text, encoding="utf-8")


def linked(text: str) -> str:
    """Link each equation of the mathematics, and each row of its table, to the source."""
    rows = re.findall(r"^\| ([\w.]+) \| (`appca.+?`) \|", text, re.M)
    first = {equation: FUNCTION.search(names) for equation, names in rows}

    def below(tag: re.Match[str]) -> str:
        code = first[tag[1]]
        return (
            f'{tag[0]}\n\n<p class="code"><a href="{address(code[1], code[2])}">{code[2]}</a></p>\n'
        )

    def link(name: re.Match[str]) -> str:
        title = f"{name[1].removeprefix('appca.models.')}:{name[2]}"
        return f'<a href="{address(name[1], name[2])}"><code>{title}</code></a>'

    return FUNCTION.sub(link, TAG.sub(below, text))


def commands() -> str:
    """Return the help of every command as Markdown."""
    from appca.cli import _parser

    parts = ["\n## Options of every command\n"]
    for name, parser in _parser()[1].items():
        parts.append(f"### {name}\n\n```text\n{parser.format_help().rstrip()}\n```\n")
    return "\n".join(parts)


def in_both_themes(text: str, page: Path) -> str:
    """Show a picture that has a dark twin, NAME-dark.png, in the theme of the reader."""

    def both(image: re.Match[str]) -> str:
        words, name, suffix = image.groups()
        if not (page.parent / f"{name}-dark.{suffix}").exists():
            return image[0]
        one = "```{{image}} {}.{}\n:alt: {}\n:class: screenshot only-{}\n```"
        themes = ((name, "light"), (f"{name}-dark", "dark"))
        return "\n\n".join(one.format(file, suffix, words, theme) for file, theme in themes)

    return IMAGE.sub(both, text)


def _file(module: str) -> Path:
    spec = importlib.util.find_spec(module)
    origin = spec.origin if spec else None
    if origin is None:
        msg = f"{module} is no module."
        raise LookupError(msg)
    return Path(origin)
