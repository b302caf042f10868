"""API pages: every public method is described, and every example runs."""

import doctest
import inspect
import re
import warnings
from pathlib import Path

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
