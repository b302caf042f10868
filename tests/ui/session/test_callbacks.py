"""What a press or a change meets on the disk or in the data is a sentence, never a trace."""

import shutil

import pytest
import streamlit as st

from appca.analysis.groups.selections import SelectionStore
from appca.data.sources.builtin import load
from appca.data.store import DatasetStore
from appca.runs.configuration import RunConfig, defaults
from appca.runs.home import home
from appca.storage.errors import InputError
from appca.ui.check import compare_choice
from appca.ui.session import state
from appca.ui.session.callbacks import guarded
from tests.ui.conftest import address, html, sentences

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
        ("explore", lambda app: app.number_input(key="k_typed").set_value(3)),
        ("explore", lambda app: app.slider(key="k").set_value(3)),
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
    app = start("groups/named")
    monkeypatch.setattr(SelectionStore, "delete", fails(FULL))
    app.button(key="named_really-zeros").click().run()
    assert [problem.message for problem in app.exception] == []
    assert "No space left" in sentences(app)[0]


def test_a_variation_of_a_run_whose_data_are_gone_is_refused(monkeypatch):
    told = []
    monkeypatch.setattr(state, "notify", lambda *said: told.append(said))
    monkeypatch.setattr(st, "session_state", {})
    config = RunConfig(load("wine").digest, {}, "PPCA", defaults("PPCA"))
    compare_choice._vary(config)
    assert [kind for kind, _ in told] == ["error"]


def test_what_is_said_twice_is_shown_once_and_nothing_is_lost(monkeypatch):
    monkeypatch.setattr(st, "session_state", {})
    said = [("error", "One."), ("info", "Two."), ("error", "One."), ("error", "Two.")]
    for kind, text in said:
        state.notify(kind, text)
    assert state.take_notices() == [("error", "One."), ("info", "Two."), ("error", "Two.")]
    assert state.take_notices() == []
