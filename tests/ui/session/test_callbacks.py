"""A callback comes to its end, and what it meets on the disk or in the data is a sentence."""

import ast
import shutil
import threading
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace

import pytest
import streamlit as st
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequests, ScriptRequestType
from streamlit.testing.v1 import AppTest

from appca.analysis.selections import SelectionStore
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.runs.home import home
from appca.ui import state, streamlit_internals
from appca.ui.state import guarded
from appca.words import InputError
from tests.ui.conftest import address, html, number, sentences, slider

FULL = OSError(28, "No space left on device", "x.npz")


def fails(error: Exception):
    """Return a function that cannot do what it is asked for."""

    def act(*_: object, **__: object) -> None:
        raise error

    return act


def test_a_refusal_becomes_a_notice_and_a_mistake_of_ours_stays_one(monkeypatch):
    told = []
    monkeypatch.setattr(state, "notify", lambda *said: told.append(said))
    guarded(lambda a, b: told.append(a + b))("1", b="2")
    guarded(fails(InputError("Give more rows.")))()
    guarded(fails(FULL))()
    assert told[:2] == ["12", ("error", "Give more rows.")]
    assert told[2][1].startswith("The disk refused (x.npz: No space left on device); ")
    with pytest.raises(KeyError):
        guarded(fails(KeyError("x")))()


@pytest.mark.parametrize(
    ("page", "change"),
    [
        ("data/this", lambda app: app.toggle(key="pre-centre").set_value(False)),
        ("explore", lambda app: number(app, "k").set_value(3)),
        ("explore", lambda app: slider(app, "k").set_value(3)),
    ],
)
def test_a_change_on_data_that_are_gone_is_refused_in_one_sentence(start, page, change):
    digest = DatasetStore(home()).put(load("wine"))
    app = start(page, data=digest)
    shutil.rmtree(DatasetStore(home()).folder / digest)
    st.cache_resource.clear()  # as when other data sets have taken its place in memory
    change(app).run()
    assert [problem.message for problem in app.exception] == []
    (told,) = sentences(app)
    assert digest[:12] in told
    assert address(app)["data"] == load("digits").digest
    assert "Handwritten digits" in html(app)


def test_a_named_selection_that_the_disk_keeps_is_said_not_to_be_deleted(start, monkeypatch):
    digits = load("digits")
    SelectionStore(home()).save(digits.digest, "zeros", digits.labels["digit"] == "0")
    app = start("groups/differences")
    monkeypatch.setattr(Path, "unlink", fails(FULL))
    app.button(key="named-delete").click().run()
    assert [problem.message for problem in app.exception] == []
    assert "No space left" in sentences(app)[0]


def test_what_is_said_twice_is_shown_once_and_nothing_is_lost(monkeypatch):
    monkeypatch.setattr(st, "session_state", {})
    said = [("error", "One."), ("info", "Two."), ("error", "One."), ("error", "Two.")]
    for kind, text in said:
        state.notify(kind, text)
    assert state.take_notices() == [("error", "One."), ("info", "Two."), ("error", "Two.")]
    assert state.take_notices() == []


def page_whose_callback_is_interrupted() -> None:
    import streamlit as st
    from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx

    from appca.ui.state import guarded

    def take() -> None:
        get_script_run_ctx().script_requests.request_rerun(RerunData())  # as a quick hand's next
        st.session_state["taken"] = st.session_state["size"]

    st.number_input("Size", key="size", on_change=guarded(take))
    st.write(st.session_state.get("taken", 0))


def test_what_is_typed_is_taken_over_though_the_page_is_asked_for_again_meanwhile():
    app = AppTest.from_function(page_whose_callback_is_interrupted).run()
    app.number_input(key="size").set_value(5.0).run()
    assert not app.exception
    assert app.session_state["taken"] == 5.0


def test_a_later_run_waits_for_the_callback_of_an_earlier_one(monkeypatch):
    requests, done = ScriptRequests(), []
    context = SimpleNamespace(script_requests=requests)
    monkeypatch.setattr(streamlit_internals, "get_script_run_ctx", lambda: context)
    monkeypatch.setattr(st, "session_state", {})
    begun, asked = threading.Event(), threading.Event()

    @guarded
    def inner() -> None:
        assert requests.on_scriptrunner_yield() is None

    @guarded
    def act() -> None:
        begun.set()
        assert asked.wait(10)
        inner()
        assert requests.on_scriptrunner_yield() is None
        done.append("callback")

    earlier = threading.Thread(target=act)
    earlier.start()
    assert begun.wait(10)
    requests.request_stop()
    later = threading.Thread(target=lambda: [state.wait(), done.append("page")])
    later.start()
    later.join(0.2)
    assert done == []
    asked.set()
    later.join(10)
    earlier.join(10)
    assert done == ["callback", "page"]
    assert requests.on_scriptrunner_yield().type is ScriptRequestType.STOP


ROOT = Path(state.__file__).parent
REACTIONS = ("on_click", "on_change", "on_select")
HARMLESS = {"'rerun'", "'ignore'", "lambda: None"}


def reactions(tree: ast.AST) -> list[ast.expr]:
    """Return what the calls in a module give as their callbacks."""
    return [
        word.value
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and not ast.unparse(call.func).startswith("canvas.")
        for word in call.keywords
        if word.arg in REACTIONS or (word.arg and word.arg.endswith("_change"))
    ]


def guarded_names(trees: Iterable[ast.AST]) -> set[str]:
    """Return the names of the functions with the decorator."""
    return {
        function.name
        for tree in trees
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        and "guarded" in map(ast.unparse, function.decorator_list)
    }


def is_guarded(given: ast.expr, known: set[str]) -> bool:
    """Whether a callback is a guarded function, or a name for what was guarded in the module."""
    inner = given.body if isinstance(given, ast.Lambda) else given
    name = ast.unparse(inner.func if isinstance(inner, ast.Call) else inner).split(".")[-1]
    return name in known | {"guarded", "act"}


def test_every_callback_is_guarded():
    trees = {file: ast.parse(file.read_text()) for file in ROOT.rglob("*.py")}
    known = guarded_names(trees.values())
    given = [(file.name, one) for file, tree in trees.items() for one in reactions(tree)]
    bare = [
        f"{name}: {text}"
        for name, one in given
        if (text := ast.unparse(one)) not in HARMLESS and not is_guarded(one, known)
    ]
    assert bare == []
    assert len(given) > 40
