"""Tests of the API pages: complete descriptions, running examples, and the extension guide."""

import doctest
import inspect
import os
import re
import shlex
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import pytest

import appca
from appca import cli
from docs import pages_made, reference

ROOT = Path(__file__).resolve().parents[2]
QUICK = {"KSubspaces", "PearsonResiduals"}  # in the default run
CLASSES = [
    pytest.param(kind, marks=() if kind.__name__ in QUICK else pytest.mark.thorough)
    for kind in reference.CLASSES
]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_method_says_what_it_takes_returns_and_raises_and_its_example_runs(kind):
    pytest.importorskip("arviz")
    for name in reference.members(kind):
        text = inspect.getdoc(inspect.getattr_static(kind, name)) or ""
        assert text[:1].isupper(), f"{name} has no first line"
        if not reference.is_property(kind, name):
            text = "\n".join([text, *reference.sections(kind, name)])
            takes = {*inspect.signature(getattr(kind, name)).parameters} - {"self"}
            assert [one for one in takes if f"\n{one} : " not in text] == [], name
            assert "\nReturns\n" in text, name
            assert "\n>>> " in text, name


@pytest.mark.thorough
@pytest.mark.parametrize("name", reference.FUNCTIONS)
def test_every_function_says_what_it_takes_returns_and_raises_and_its_example_runs(name):
    function = getattr(appca, name)
    text = "\n".join([inspect.getdoc(function) or "", *reference.sections_of_function(name)])
    lines = re.findall(r"^([\w, *]+)(?: :|$)", text, re.M)
    listed = {one.strip(" *") for line in lines for one in line.split(",")}
    assert set(inspect.signature(function).parameters) <= listed
    assert "Returns" in text or "-> None" in inspect.getsource(function)
    assert "\nRaises\n" in text
    assert "\n>>> " in text


@pytest.mark.thorough
def test_examples_of_classes_and_functions_print_what_they_show():
    shown = [getattr(appca, name) for name in appca.__all__]
    for one in {*shown, *reference.CLASSES}:
        found = doctest.DocTestFinder(recurse=False).find(one, one.__name__, globs={"appca": appca})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert [doctest.DocTestRunner().run(test).failed for test in found] == [0] * len(found)


def test_public_names_commands_and_equations_are_on_their_pages():
    page = (ROOT / "docs/api.md").read_text("utf-8")
    names = [*appca.__all__, "tl.appca", *(kind.__name__ for kind in reference.CLASSES)]
    assert [one for one in names if not re.search(rf"^   .*\b{re.escape(one)}$", page, re.M)] == []
    text = pages_made.commands()
    assert re.findall(r"^### (\w+)$", text, re.M) == list(cli._parser()[1])
    assert "--missing" in text
    text = pages_made.MATHEMATICS.read_text("utf-8")
    linked = pages_made.linked(text)
    assert len(re.findall(r"\\tag\{", text)) == linked.count('<p class="code">') > 50
    home, line = pages_made.place("appca.models.em", "expect")
    assert home == "appca.models.em"
    source = (ROOT / "appca/models/em.py").read_text("utf-8").splitlines()
    assert source[line - 1].startswith("def expect")
    assert f"source/appca.models.em.html#L-{line}" in linked


BLOCK = re.compile(
    r"^```\{code-block\} \w+\n:caption: (?P<caption>[^\n]+)\n\n(?P<code>.*?)^```$", re.M | re.S
)
KEPT = ROOT / ".pytest_cache" / "mypy_extend"  # what mypy has learned of NumPy and all others
COPIED = ("appca", "pages", "tests", "sample_data", "app.py", "pyproject.toml", ".streamlit")


class Written(NamedTuple):
    """A block of a page: a new file, or lines for an existing one; or commands."""

    path: str
    after: str | None  # a line of the file; "" for its end
    code: str


def blocks(section: str) -> list[Written]:
    found = []
    text = (ROOT / "docs/extend.md").read_text("utf-8").partition(f"\n## {section}\n")[2]
    for block in BLOCK.finditer(text.partition("\n## ")[0]):
        path, _, place = block["caption"].partition(", ")
        after = "" if place == "at its end" else place.removeprefix("after ").strip("`") or None
        found.append(Written(path, after, block["code"]))
    return found


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree, with its compiled kernels, to which each page adds its own."""
    folder = tmp_path_factory.mktemp("tree")
    for name in COPIED:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("*.pyc", "node_modules")
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        else:
            shutil.copy2(ROOT / name, folder / name)
    return folder


def write(folder: Path, block: Written) -> None:
    file = folder / block.path
    if block.after is None:
        assert not file.exists(), f"{block.path} is there already"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.code, encoding="utf-8")
        return
    text = file.read_text("utf-8")
    if not block.after:
        file.write_text(f"{text}\n\n{block.code}", encoding="utf-8")
        return
    assert text.count(block.after) == 1, f"{block.after!r} must stand once in {block.path}"
    more = block.code.rstrip("\n") if block.code.startswith(",") else "\n" + block.code.rstrip("\n")
    file.write_text(text.replace(block.after, block.after + more), encoding="utf-8")


@pytest.mark.thorough
@pytest.mark.parametrize("what", ["model", "page", "colour", "reader", "rival"])
def test_a_section_that_says_how_to_add_something_adds_it(what, tree):
    commands = []
    for block in blocks(f"Add a {what}"):
        if block.path == "in the folder of the project":
            commands += [line.removeprefix("$ ") for line in block.code.splitlines()]
        else:
            write(tree, block)
    assert commands
    ours = ("PYTEST_", "PYTHONPATH")
    usual = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    for command in commands:
        program, *words = shlex.split(command)
        assert program == "python"
        done = subprocess.run(
            [sys.executable, *words],
            cwd=tree,
            env=usual | {"PYTHONPATH": str(tree), "MYPY_CACHE_DIR": str(KEPT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
