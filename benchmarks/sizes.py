"""Print the size of the project beside its bounds: ``python -m benchmarks.sizes``.

Lines are counted in formatted files that git tracks. A module with content has more than a
docstring.
``--strict`` exits with 1 if a bound is exceeded.
"""

import argparse
import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PARTS = {  # name -> (paths below appca, bound in lines)
    "analysis": (("analysis/",), 5_000),
    "runs": (("runs/",), 2_200),
    "studies": (("studies/",), 3_100),
    "plots": (("plots/",), 1_700),
    "rivals": (("rivals/", "rivals.py"), 350),
    "canvas": (("canvas/",), 2_500),
    "data without readers": (("data/",), 2_500),
    "readers": (("data/readers/",), 3_600),
    "commands with cli": (("commands/", "cli.py", "__main__.py"), 2_100),
    "models": (("models/",), None),
    "ui": (("ui/",), None),
    "jobs, storage, words": (("jobs/", "processes/", "storage/", "words"), None),
}


def tracked() -> list[Path]:
    """Paths of all files that git tracks, below the root."""
    names = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return [Path(name) for name in names if (ROOT / name).is_file()]


def lines(paths: Iterable[Path]) -> int:
    """Count the lines of text files."""
    return sum((ROOT / path).read_text("utf-8").count("\n") for path in paths)


def has_content(path: Path) -> bool:
    """Whether a module holds more than a docstring."""
    return len(ast.parse((ROOT / path).read_text("utf-8")).body) > 1


def words(paths: Iterable[Path]) -> int:
    """Count the words of documents."""
    return sum(len(re.findall(r"\w\S*", (ROOT / path).read_text("utf-8"))) for path in paths)


def rows(paths: list[Path]) -> list[tuple[str, int, int | None]]:
    """Return (what, count, bound or None) in the order in which they are printed."""
    code = [p for p in paths if p.suffix == ".py" and p.parts[0] in ("app.py", "pages", "appca")]
    scripts = [p for p in paths if p.suffix in (".js", ".ts") and p.parts[0] == "appca"]
    tests = [p for p in paths if p.parts[0] == "tests" and p.suffix in (".py", ".js")]
    benchmarks = [p for p in paths if p.parts[0] == "benchmarks" and p.suffix in (".py", ".js")]
    styles = [p for p in paths if p.parts[0] == "appca" and p.suffix == ".css"]
    documents = [p for p in paths if p.suffix == ".md"]
    table: list[tuple[str, int, int | None]] = [
        ("Python, lines", lines(code), 54_000),
        ("Python, modules with content", sum(map(has_content, code)), 260),
        ("JavaScript, lines", lines(scripts), 8_700),
        ("JavaScript, files", len(scripts), 45),
        ("CSS, lines", lines(styles), 2_400),
        ("tests, lines", lines(tests), 48_000),
        ("tests, files", len(tests), None),
        ("benchmarks, lines", lines(benchmarks), None),
        ("documents, words", words(documents), None),
    ]
    readers = PARTS["readers"][0]
    for name, (places, bound) in PARTS.items():
        inside: Callable[[Path], bool] = _below(places)
        within = [p for p in code if inside(p)]
        if name.startswith("data"):
            within = [p for p in within if not _below(readers)(p)]
        table.append((f"appca: {name}", lines(within), bound))
    return table


def _below(places: tuple[str, ...]) -> Callable[[Path], bool]:
    starts = tuple(f"appca/{place}" for place in places)
    return lambda path: path.as_posix().startswith(starts)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strict", action="store_true", help="exit with 1 above a bound")
    strict = parser.parse_args().strict
    table = rows(tracked())
    for name, count, bound in table:
        limit = "" if bound is None else f" of {bound:,}" + ("  exceeded" if count > bound else "")
        print(f"{name:32} {count:8,}{limit}")
    return int(strict and any(bound is not None and count > bound for _, count, bound in table))


if __name__ == "__main__":
    sys.exit(main())
