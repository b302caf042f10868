"""What can be done with the selection, under AppTest: undo, rules, names and combinations."""

import numpy as np
import pytest
import streamlit as st

from appca.analysis.selections import SelectionStore
from appca.data.sources import load
from appca.runs.home import home
from appca.ui import state
from tests.ui.conftest import address, go, healthy, sentences
from tests.ui.parts.test_pages import select

PAGE = "groups/differences"


def lasso(app, mask: np.ndarray):
    """Do what comes of a lasso that is closed."""
    return healthy(select(app, mask, len(mask)))


def selected(app) -> int:
    kept = app.session_state["selections"].get(load("digits").digest)
    return 0 if kept is None else int(kept.sum())


def press(app, key: str):
    return healthy(app.button(key=key).click().run())


def keep_as(app, name: str):
    app.text_input(key="named-new").input(name)
    return press(app, "named-keep")


@pytest.fixture
def zeros() -> np.ndarray:
    return load("digits").labels["digit"] == "0"


def test_a_rule_on_a_class_selects_and_others_add_narrow_and_remove(start):
    app = start(PAGE)
    digits = load("digits").labels["digit"]
    app.multiselect(key="rule-classes-label:digit").set_value(["0", "3"]).run()
    assert selected(press(app, "rule-replace")) == np.isin(digits, ["0", "3"]).sum()
    app.multiselect(key="rule-classes-label:digit").set_value(["3", "5"]).run()
    assert selected(press(app, "rule-intersect")) == (digits == "3").sum()
    assert selected(press(app, "rule-union")) == np.isin(digits, ["3", "5"]).sum()
    assert selected(press(app, "rule-minus")) == 0


def test_rules_on_the_fit_open_with_the_usual_limits(start):
    app = start(PAGE)
    column = next(box for box in app.selectbox if box.label == "Rows whose")
    column.select("residual").run()
    assert selected(press(app, "rule-replace")) == 90  # 5% of 1,797
    column = next(box for box in app.selectbox if box.label == "Rows whose")
    column.select("membership").run()
    app.number_input(key="rule-value-membership-below").set_value(0.9).run()
    doubtful = selected(press(app, "rule-replace"))
    assert 0 < doubtful < 1797
    app.number_input(key="rule-value-membership-below").set_value(0.5).run()
    assert selected(press(app, "rule-replace")) < doubtful


def test_a_named_selection_is_on_disk_and_comes_back_in_a_new_session(start, zeros):
    app = lasso(start(PAGE), zeros)
    keep_as(app, "the zeros")
    assert [saved.name for saved in SelectionStore(home()).list(load("digits").digest, 1797)] == [
        "the zeros"
    ]
    wanted = address(app)
    press(app, "tray_clear")
    assert "sel" not in address(app)
    st.cache_resource.clear()  # a restart of the server
    again = healthy(start(PAGE, **wanted))
    assert selected(again) == 178
    assert selected(press(again, "tray_clear")) == 0
    assert selected(press(again, "named-replace")) == 178
    store, digest = SelectionStore(home()), load("digits").digest
    keep_as(again, "again")
    press(again, "named-delete")
    assert [saved.name for saved in store.list(digest, 1797)] == ["the zeros"]
    press(go(again, "explore"), "bar_undo")
    assert [saved.name for saved in store.list(digest, 1797)] == ["again", "the zeros"]


def test_a_name_that_is_taken_is_said_to_be_replaced_and_a_refused_one_stays(
    start, zeros, monkeypatch
):
    app = lasso(start(PAGE), zeros)
    keep_as(app, "corner")
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


def test_named_selections_are_combined_with_the_present_one(start, zeros):
    app = lasso(start(PAGE), zeros)
    keep_as(app, "zeros")
    press(app, "tray_invert")
    assert selected(press(app, "named-union")) == 1797
    assert selected(press(app, "named-minus")) == 1797 - 178
    assert selected(press(app, "named-intersect")) == 0


def test_rows_are_selected_by_their_numbers_or_as_a_mask(monkeypatch):
    monkeypatch.setattr(state.st, "session_state", {})
    wine = load("wine")
    state.put(wine, np.array([3, 5]))
    assert np.flatnonzero(state.get(wine)).tolist() == [3, 5]
    state.put(wine, np.arange(178) > 175)
    assert np.flatnonzero(state.get(wine)).tolist() == [176, 177]
