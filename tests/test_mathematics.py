"""docs/mathematics.md against the code: what it names exists, what the code cites is there."""

import ast
import importlib
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "mathematics.md"
CITING = ("appca", "pages", "benchmarks", "tests")

HEADING = re.compile(r"^#{2,3} (\d+(?:\.\d+)?) ", re.M)
TAG = re.compile(r"\\tag\{([^}]*)\}")
EQUATION = re.compile(r"(\d+(?:\.\d+)?)[a-z]")
REFERENCE = re.compile(r"\((\d+(?:\.\d+)?[a-z])\)")
ROW = re.compile(r"^\| (\d[\w.]*) \| (.*) \| (.*) \|$", re.M)
NAME = re.compile(r"`([^`]*)`")
TEST = re.compile(r"`(tests/[^`]*)`")
CITATION = re.compile(r"docs/mathematics\.md\s+(\d+(?:\.\d+)?[a-z]?)")


def parts_of(page: str) -> Iterator[tuple[str, str]]:
    """Give the number of every heading, and the text below it up to the next one."""
    found = list(HEADING.finditer(page))
    ends = [one.start() for one in found[1:]] + [len(page)]
    for one, end in zip(found, ends, strict=True):
        yield one[1], page[one.end() : end]


def targets(page: str) -> set[str]:
    """Numbers that can be cited: those of headings and of equations."""
    return set(HEADING.findall(page)) | set(TAG.findall(page))


def faults_of_the_page(page: str) -> list[str]:
    """Broken rules of the page, as sentences."""
    return [
        *_faults_of_headings(page),
        *_faults_of_equations(page),
        *_faults_of_rows(page),
        *(f"the page names {name}: {why}" for name in TEST.findall(page) if (why := missing(name))),
    ]


def _faults_of_headings(page: str) -> Iterator[str]:
    numbers = Counter(HEADING.findall(page))
    yield from (f"the heading {one} stands there twice" for one, n in numbers.items() if n > 1)


def _faults_of_equations(page: str) -> Iterator[str]:
    """Every equation belongs to its section, and is in the table; references lead to one."""
    tags, rows = Counter(TAG.findall(page)), Counter(row[0] for row in ROW.findall(page))
    for number, body in parts_of(page):
        for tag in TAG.findall(body):
            own = EQUATION.fullmatch(tag)
            if own is None or own[1] != number:
                yield f"equation {tag} stands in section {number}"
    yield from (f"equation {tag} stands there twice" for tag, n in tags.items() if n > 1)
    yield from (f"equation {tag} has no row in the table" for tag in tags if tag not in rows)
    yield from (f"the table has {n} rows for {tag}" for tag, n in rows.items() if n > 1)
    yield from (f"there is no equation {tag} for its row" for tag in rows if tag not in tags)
    for tag in dict.fromkeys(REFERENCE.findall(page)):
        if tag not in tags:
            yield f"there is no equation ({tag}) to refer to"


def _faults_of_rows(page: str) -> Iterator[str]:
    for equation, functions, tests in ROW.findall(page):
        for kind, names in (("function", functions), ("test", tests)):
            if not NAME.search(names):
                yield f"equation {equation} names no {kind}"
        for name in NAME.findall(functions):
            if why := unimportable(name):
                yield f"equation {equation} names {name}: {why}"
        for name in NAME.findall(tests):
            if not TEST.fullmatch(f"`{name}`"):
                yield f"equation {equation} names {name}, which is no test"


def unimportable(name: str) -> str:
    """Say why `module:function` cannot be had; empty when it can."""
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
    """Say why a test, `file` or `file::function`, cannot be run; empty when it can."""
    file, _, function = name.partition("::")
    path = ROOT / file
    if path.suffix != ".py" or not path.is_file():
        return "there is no such file"
    absent = bool(function) and function not in functions_of(path)
    return f"there is no {function} in it" if absent else ""


@cache
def functions_of(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text("utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def faults_of_citations(path: str, source: str, page: str) -> list[str]:
    """Name the citations of a file that lead nowhere."""
    known = targets(page)
    return [
        f"{path} cites docs/mathematics.md {number}, which is not there"
        for number in CITATION.findall(source)
        if number not in known
    ]


def python_files() -> list[Path]:
    files = [path for part in CITING for path in sorted((ROOT / part).rglob("*.py"))]
    return [ROOT / "app.py", *(path for path in files if path != Path(__file__).resolve())]


def test_everything_the_page_names_is_there():
    page = PAGE.read_text("utf-8")
    found = faults_of_the_page(page)
    assert not found, "\n".join(found)
    # the patterns above do find what they are for
    assert len(TAG.findall(page)) == page.count("\\tag{") >= 60
    assert len(HEADING.findall(page)) >= 30
    assert sum("::" in name for name in TEST.findall(page)) >= 15


def test_every_citation_in_the_code_leads_somewhere():
    page = PAGE.read_text("utf-8")
    sources = {path: path.read_text("utf-8") for path in python_files()}
    found = [
        sentence
        for path, source in sources.items()
        for sentence in faults_of_citations(path.relative_to(ROOT).as_posix(), source, page)
    ]
    assert not found, "\n".join(found)
    assert sum(len(CITATION.findall(source)) for source in sources.values()) >= 5


def small(
    *,
    text: str = "see (1.1a)",
    tag: str = "1.1a",
    equation: str = "1.1a",
    function: str = "`appca.models.numerics:logits`",
    test: str = "`tests/test_mathematics.py`",
) -> str:
    """Write a page with one equation and one row."""
    formula = f"$$a = b \\tag{{{tag}}}$$"
    row = f"| {equation} | {function} | {test} |"
    return f"## 1 One\n\n### 1.1 Sums\n\n{text}\n\n{formula}\n\n## 7 Table\n\n{row}\n"


@pytest.mark.parametrize(
    "page",
    [
        small(),
        small(function="`appca.models.numerics:logits`, `appca.models.numerics:posterior`"),
        small(function="`appca.models.estimator:Queries.sample`"),
        small(test="`tests/geweke.py::geweke_z`"),
        small(text="shown by `tests/oracles.py::inclusion`"),
    ],
)
def test_a_sound_page_has_no_faults(page):
    assert faults_of_the_page(page) == []


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (small(function="`appca.models.nowhere:logits`"), "no module appca.models.nowhere"),
        (small(function="`appca.models.numerics:nothing`"), "no nothing in it"),
        (small(function="`appca.models.estimator:Queries.nap`"), "no nap in it"),
        (small(function="`appca.models.numerics.logits`"), "write it as module:function"),
        (small(function="`appca.models.em:NOISE_FLOOR`"), "it is no function"),
        (small(function="a kernel"), "names no function"),
        (small(test="by eye"), "names no test"),
        (small(test="`tests/models/test_nowhere.py`"), "no such file"),
        (small(test="`tests/models`"), "no such file"),
        (small(test="`appca/models/em.py`"), "is no test"),
        (small(test="`tests/geweke.py::nothing`"), "no nothing in it"),
        (small(text="shown by `tests/geweke.py::nothing`"), "no nothing in it"),
        (small(text="see (1.1b)"), "no equation (1.1b)"),
        (small(text="$$c \\tag{1.1a}$$"), "1.1a stands there twice"),
        (small(text="### 1.1 Again"), "heading 1.1 stands there twice"),
        (
            small() + "| 1.1a | `appca.models.numerics:logits` | `tests/geweke.py` |\n",
            "2 rows",
        ),
    ],
)
def test_a_made_up_row_is_refused(page, words):
    found = faults_of_the_page(page)
    assert len(found) == 1, found
    assert words in found[0]


@pytest.mark.parametrize(
    ("source", "n_faults"),
    [
        ("as in docs/mathematics.md 1.1)", 0),
        ("see docs/mathematics.md 1.1a.", 0),
        ("see docs/mathematics.md 1.", 0),
        ("see docs/mathematics.md\n    1.1, at length", 0),
        ("see docs/mathematics.md", 0),
        ("see docs/mathematics.md 1.2", 1),
        ("see docs/mathematics.md 1.1b", 1),
        ("see docs/mathematics.md\n    3", 1),
        ("see docs/mathematics.md 1.1 and docs/mathematics.md 4 and docs/mathematics.md 5", 2),
    ],
)
def test_a_made_up_citation_is_refused(source, n_faults):
    found = faults_of_citations("appca/a.py", source, small())
    assert len(found) == n_faults, found
    assert all("is not there" in sentence for sentence in found)
