"""Tests of docs/mathematics.md: cited functions and tests exist; references import no appca."""

import ast
import importlib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests import references

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "mathematics.md"
CITING = ("appca", "pages", "benchmarks", "tests")
HEADING = re.compile(r"^#{2,3} (\d+(?:\.\d+)?) ", re.M)
TAG, EQUATION = re.compile(r"\\tag\{([^}]*)\}"), re.compile(r"(\d+(?:\.\d+)?)[a-z]")
REFERENCE = re.compile(r"\((\d+(?:\.\d+)?[a-z])\)")
ROW, NAME = re.compile(r"^\| (\d[\w.]*) \| (.*) \| (.*) \|$", re.M), re.compile(r"`([^`]*)`")
TEST = re.compile(r"`(tests/[^`]*)`")
CITATION = re.compile(r"docs/mathematics\.md\s+(\d+(?:\.\d+)?[a-z]?)")


def parts_of(page: str) -> Iterator[tuple[str, str]]:
    """Yield the number of every heading, with the text up to the next heading."""
    found = list(HEADING.finditer(page))
    ends = [one.start() for one in found[1:]] + [len(page)]
    for one, end in zip(found, ends, strict=True):
        yield one[1], page[one.end() : end]


def unimportable(name: str) -> str:
    """Return why `module:function` cannot be imported, or an empty text."""
    module, colon, attributes = name.partition(":")
    if not colon or not attributes:
        return "write it as module:function"
    try:
        found: object = importlib.import_module(module)
    except ImportError:
        return f"there is no module {module}"
    for attribute in attributes.split("."):
        if not hasattr(found, attribute):
            return f"there is no {attribute} in it"
        found = getattr(found, attribute)
    return "" if callable(found) else "it is no function"


def missing(name: str) -> str:
    """Return why a test, `file` or `file::function`, does not exist, or an empty text."""
    file, _, function = name.partition("::")
    path = ROOT / file
    if path.suffix != ".py" or not path.is_file():
        return "there is no such file"
    absent = function and f"\ndef {function}(" not in path.read_text("utf-8")
    return f"there is no {function} in it" if absent else ""


def faults_of_the_page(page: str) -> list[str]:
    """Return a sentence for each broken rule: every equation needs a section, a row and a test."""
    tags, rows = Counter(TAG.findall(page)), ROW.findall(page)
    numbers = Counter([*HEADING.findall(page), *tags.elements()])
    listed = Counter(row[0] for row in rows)
    found = [f"{one} stands there twice" for one, n in (numbers + listed - listed).items() if n > 1]
    for number, body in parts_of(page):
        for tag in TAG.findall(body):
            own = EQUATION.fullmatch(tag)
            if own is None or own[1] != number:
                found.append(f"equation {tag} stands in section {number}")
    found += [f"equation {tag} has {listed[tag]} rows" for tag in tags if listed[tag] != 1]
    referred = {*REFERENCE.findall(page), *listed}
    found += [f"there is no equation ({tag})" for tag in sorted(referred - set(tags))]
    for equation, functions, tests in rows:
        if not (NAME.search(functions) and NAME.search(tests)):
            found.append(f"equation {equation} names no function or no test")
        told = [(name, unimportable(name)) for name in NAME.findall(functions)]
        told += [(name, "it is no test") for name in NAME.findall(tests) if name[:6] != "tests/"]
        found += [f"equation {equation} names {name}: {why}" for name, why in told if why]
    named = [(name, missing(name)) for name in TEST.findall(page)]
    return found + [f"the page names {name}: {why}" for name, why in named if why]


def test_everything_the_page_names_is_there():
    page = PAGE.read_text("utf-8")
    found = faults_of_the_page(page)
    assert not found, "\n".join(found)
    wrong = page.replace("em:logits", "nowhere:logits").replace("(1.1a)", "(1.1z)")
    assert len(faults_of_the_page(wrong)) > 1
    assert len(TAG.findall(page)) == page.count("\\tag{") >= 60
    assert len(HEADING.findall(page)) >= 30
    assert sum("::" in name for name in TEST.findall(page)) >= 15


def test_every_citation_in_the_code_leads_somewhere():
    page = PAGE.read_text("utf-8")
    known = set(HEADING.findall(page)) | set(TAG.findall(page))
    files = [path for part in CITING for path in sorted((ROOT / part).rglob("*.py"))]
    cited = [
        (path.relative_to(ROOT).as_posix(), number)
        for path in [ROOT / "app.py", *files]
        for number in CITATION.findall(path.read_text("utf-8"))
    ]
    assert [pair for pair in cited if pair[1] not in known] == []
    assert len(cited) >= 5


HERE = Path(references.__file__).parent
PAGES = sorted({*HERE.glob("*.py")} - {*HERE.glob("test_*.py"), HERE / "__init__.py"})
ALLOWED = {"itertools", "math", "numpy", "scipy", "tests", "typing"}


def test_pages_import_nothing_of_the_package_and_are_all_in_the_table():
    for page in PAGES:
        tree, found = ast.parse(page.read_text("utf-8")), set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [node.module] if isinstance(node, ast.ImportFrom) else node.names
                found |= {getattr(name, "name", name) for name in names}
        assert {name.split(".")[0] for name in found} <= ALLOWED, page
        within = [name for name in found if name.startswith("tests")]
        assert all(name.startswith("tests.references") for name in within), page
        assert "docs/mathematics.md" in ast.get_docstring(tree), page
        assert f"`{page.stem}`" in references.__doc__
