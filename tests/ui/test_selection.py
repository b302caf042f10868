"""What can be done with the selection, under AppTest: undo, rules, names and combinations."""

from pathlib import Path

import numpy as np
import pytest
import streamlit as st

from appca.analysis.selections import SelectionStore
from appca.data.sources import load
from appca.runs.home import home
from appca.ui import state
from tests.pages import select
from tests.ui.conftest import address, go, healthy, sentences

PAGE = "groups/differences"


def selected(app) -> int:
    kept = app.session_state["selections"].get(load("digits").digest)
    return 0 if kept is None else int(kept.sum())


def press(app, key: str):
    return healthy(app.button(key=key).click().run())


def keep_as(app, name: str):
    app.text_input(key="named-new").input(name)
    return press(app, "named-keep")


def names() -> list[str]:
    return [saved.name for saved in SelectionStore(home()).list(load("digits").digest, 1797)]


@pytest.fixture
def zeros(start):
    """Open Groups with the digits 0 selected."""
    mask = load("digits").labels["digit"] == "0"
    return healthy(select(start(PAGE), mask, len(mask)))


def test_rules_on_a_class_or_the_fit_select_add_narrow_and_remove(start):
    app = start(PAGE)
    digits = load("digits").labels["digit"]
    classes = "rule-classes-label:digit"
    app.multiselect(key=classes).set_value(["0", "3"]).run()
    assert selected(press(app, "rule-replace")) == np.isin(digits, ["0", "3"]).sum()
    app.multiselect(key=classes).set_value(["3", "5"]).run()
    assert selected(press(app, "rule-intersect")) == (digits == "3").sum()
    assert selected(press(app, "rule-union")) == np.isin(digits, ["3", "5"]).sum()
    assert selected(press(app, "rule-minus")) == 0
    next(box for box in app.selectbox if box.label == "Rows whose").select("residual").run()
    assert selected(press(app, "rule-replace")) == 90  # 5% of 1,797
    next(box for box in app.selectbox if box.label == "Rows whose").select("membership").run()
    app.number_input(key="rule-value-membership-below").set_value(0.9).run()
    doubtful = selected(press(app, "rule-replace"))
    assert 0 < doubtful < 1797
    app.number_input(key="rule-value-membership-below").set_value(0.5).run()
    assert selected(press(app, "rule-replace")) < doubtful


def test_a_named_selection_is_on_disk_comes_back_and_is_combined_with_the_present_one(start, zeros):
    keep_as(zeros, "the zeros")
    assert names() == ["the zeros"]
    wanted = address(zeros)
    press(zeros, "tray_clear")
    assert "sel" not in address(zeros)
    st.cache_resource.clear()  # a restart of the server
    again = healthy(start(PAGE, **wanted))
    assert selected(again) == 178
    assert selected(press(again, "tray_clear")) == 0
    assert selected(press(again, "named-replace")) == 178
    press(again, "tray_invert")
    assert selected(press(again, "named-union")) == 1797
    assert selected(press(again, "named-minus")) == 1797 - 178
    assert selected(press(again, "named-intersect")) == 0
    keep_as(press(again, "named-replace"), "again")
    press(again, "named-delete")
    assert names() == ["the zeros"]
    press(go(again, "explore"), "bar_undo")
    assert names() == ["again", "the zeros"]


def test_a_name_that_is_taken_is_said_to_be_replaced_and_a_refused_one_stays(zeros, monkeypatch):
    app = keep_as(zeros, "corner")
    assert app.text_input(key="named-new").value == ""
    assert list(app.info) == []
    press(app, "tray_invert")
    keep_as(app, " corner ")
    (said,) = [box.value.replace("\\", "") for box in app.info]
    assert "“corner” is kept with 1,619 rows" in said
    assert "178 rows" in said
    app.text_input(key="named-new").input("  ")
    app.button(key="named-keep").click().run()
    assert sentences(app) == ["A selection needs a name to be kept; type one."]

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("appca.analysis.selections.np.savez", full)
    app.text_input(key="named-new").input("another")
    app.button(key="named-keep").click().run()
    assert "No space left" in sentences(app)[0]
    assert app.text_input(key="named-new").value == "another"
    monkeypatch.setattr(Path, "unlink", full)
    app.button(key="named-delete").click().run()
    assert [problem.message for problem in app.exception] == []
    assert "No space left" in sentences(app)[0], "it is said not to be deleted"


def test_rows_are_selected_by_their_numbers_or_as_a_mask(monkeypatch):
    monkeypatch.setattr(state.st, "session_state", {})
    wine = load("wine")
    for given, rows in ((np.array([3, 5]), [3, 5]), (np.arange(178) > 175, [176, 177])):
        state.put(wine, given)
        assert np.flatnonzero(state.get(wine)).tolist() == rows
