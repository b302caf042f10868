"""Print the size of the project and its bounds: ``python -m benchmarks.sizes``.

Lines are counted in formatted files that git tracks. A module with content has more than a
docstring. ``--strict`` exits with 1 if a bound is exceeded.
"""

import argparse
import ast
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
Counter = Callable[[list[str]], int]  # contents of files -> count


def lines(texts: list[str]) -> int:
    """Count lines."""
    return sum(text.count("\n") for text in texts)


def modules(texts: list[str]) -> int:
    """Count modules with content."""
    return sum(len(ast.parse(text).body) > 1 for text in texts)


def words(texts: list[str]) -> int:
    """Count words."""
    return sum(len(re.findall(r"\w\S*", text)) for text in texts)


CODE, SCRIPTS, TESTS = r"(app|(pages|appca)/.*)\.py", r"appca/.*\.[jt]s", r"tests/.*\.(py|js)"
COUNTS: list[tuple[str, str, Counter, int | None]] = [  # name, paths, counter, bound
    ("Python, lines", CODE, lines, 46_500),
    ("Python, modules with content", CODE, modules, 200),
    ("JavaScript, lines", SCRIPTS, lines, 9_000),
    ("JavaScript, files", SCRIPTS, len, 36),
    ("CSS, lines", r"appca/.*\.css", lines, 2_400),
    ("tests, lines", TESTS, lines, 33_000),
    ("tests, files", TESTS, len, 260),
    ("benchmarks, lines", r"benchmarks/.*\.(py|js)", lines, 2_500),
    ("documents, words", r".*\.md", words, 42_000),
    ("appca: analysis", r"appca/analysis/.*\.py", lines, 5_000),
    ("appca: runs", r"appca/runs/.*\.py", lines, 2_200),
    ("appca: studies", r"appca/studies/.*\.py", lines, 3_100),
    ("appca: plots", r"appca/plots/.*\.py", lines, 1_700),
    ("appca: rivals", r"appca/rivals(/.*)?\.py", lines, 350),
    ("appca: canvas", r"appca/canvas/.*\.py", lines, 2_500),
    ("appca: data without readers", r"appca/data/(?!readers/).*\.py", lines, 2_500),
    ("appca: readers", r"appca/data/readers/.*\.py", lines, 3_600),
    ("appca: commands with cli", r"appca/(commands/.*|cli|__main__)\.py", lines, 2_100),
    ("appca: models", r"appca/models/.*\.py", lines, None),
    ("appca: ui", r"appca/ui/.*\.py", lines, 8_500),
    ("appca: jobs, storage, words", r"appca/(jobs/|processes/|storage/|words).*\.py", lines, 2_300),
]


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strict", action="store_true", help="exit with 1 above a bound")
    strict, exceeded = parser.parse_args().strict, False
    listed = subprocess.check_output(["git", "-C", str(ROOT), "ls-files"], text=True).splitlines()
    for name, paths, counted, bound in COUNTS:
        files = [ROOT / file for file in listed if re.fullmatch(paths, file)]
        count = counted([file.read_text("utf-8") for file in files if file.is_file()])
        above = bound is not None and count > bound
        limit = "" if bound is None else f" of {bound:,}" + "  exceeded" * above
        print(f"{name:32} {count:8,}{limit}")
        exceeded |= above
    return int(strict and exceeded)


if __name__ == "__main__":
    sys.exit(main())
