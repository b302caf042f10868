"""Rows: one in the drawer of Explore, those that fit least, and what is done with the selection."""

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import streamlit as st

from appca.analysis.selections import SelectionStore
from appca.data.dataset import Dataset
from appca.data.sources import load
from appca.runs.home import home
from appca.ui import rows, state
from appca.ui.rows import equation, table_of
from tests.fitted_runs import fitted_run
from tests.pages import select
from tests.ui.conftest import (
    Bar,
    address,
    click,
    find,
    go,
    healthy,
    html,
    sentences,
    stored_run,
    told,
)

PLACE = "explore/point"


def near(app):
    return [button for button in app.button if str(button.key).startswith("look-")]


def test_a_row_is_linked_by_its_id_found_and_shown_as_a_sum_with_its_neighbours(start):
    app = healthy(start(PLACE, row="digit-10"))
    assert html(app).count("<figure>") == 4  # average, two components, what they add up to
    assert any(text.value.count("× component") == 2 for text in app.markdown)
    assert len(near(app)) == 12
    first = near(app)[0]
    first.click().run()
    assert first.help == f"Look at {address(healthy(app))['row']}".replace("-", "\\-")

    def typed(text: str) -> str:
        return address(healthy(app.text_input(key="point_wanted").set_value(text).run()))["row"]

    assert typed("3") == "digit-2"
    assert typed(" digit-1796 ") == "digit-1796"
    assert app.button(key="point_next").disabled
    assert address(click(app, "point_previous"))["row"] == "digit-1795"
    select(app, np.array([3, 1795]))
    assert address(click(app, "point_previous"))["row"] == "digit-3"
    assert typed("GIT-179") == "digit-179"


def test_a_row_that_is_not_there_is_said_in_a_sentence(start):
    for wrong in ("<script>", "9" * 5000):
        app = healthy(start(PLACE, row=wrong))
        (said,) = app.warning
        assert "no row" in said.value.lower()
        assert address(app)["row"] == "digit-0"


def test_a_row_says_how_many_components_it_uses_and_how_sure_that_is(start):
    rng = np.random.default_rng(0)
    signs, used = rng.choice([-1.0, 1.0], (90, 3)), np.arange(90)[:, None] % 3 > np.arange(3)
    X = 120.0 + (signs * used) @ np.eye(16)[:3] * 60.0 + rng.normal(size=(90, 16))
    ids = np.array([f"row-{n}" for n in range(90)])
    dataset = Dataset("sizes", X, ids, {}, (4, 4), None, {})
    run = stored_run(dataset, "aPPCA", {"centre": True}, n_components=3, n_active="learned")
    app = start(PLACE, run=run.id)
    for row, wanted in enumerate(["0 components", "1 component", "2 components"]):
        page = html(healthy(app.text_input(key="point_wanted").set_value(f"row-{row}").run()))
        assert re.search(rf"uses {wanted}, probability (over )?9\d%", page)
        assert ("in no panel" in page) == (row == 0)
        assert f'<div class="ca-name">row-{row}</div>' in page  # not “Row row-0”


def test_a_row_is_found_by_its_id_its_number_or_a_part_and_steps_go_through_the_selection():
    for ids, text, found in (
        ("{}", "1234", "1234"),
        ("1{}", "1234", "1234"),
        ("row {}", "row 7", "row 7"),
        ("row-{}", "W-123", "row-123"),
        ("row-{}", "1234", "row-1234"),
        ("row-{}", "1301", None),
        ("row-{}", "9" * 5000, None),
    ):
        names = np.array([ids.format(row + 1) for row in range(1300)])
        row = rows.find(Dataset("t", np.arange(2600.0).reshape(1300, 2), names), text)
        assert (None if row is None else names[row]) == found
    steps = [(4, [], 6, 3, 5), (5, [], 6, 4, None), (0, [], 6, None, 1), (4, [2, 9], 20, 2, 9)]
    for row, among, n, *beside in steps:
        assert [rows.neighbour(row, np.array(among, int), n, by) for by in (-1, 1)] == beside


def test_a_table_row_is_shown_feature_by_feature_and_a_sampled_run_says_how_probable(start):
    wine = load("wine")
    app = healthy(start(PLACE, data=wine))
    assert html(app).count('scope="row"') >= 8
    assert {button.label.replace("\\", "") for button in near(app)} <= set(wine.ids)
    assert len(near(app)) == 12
    short = {"max_components": 4, "burn_in": 5, "n_draws": 10, "n_chains": 1}
    run = stored_run(wine, "isFA", {"scale": "feature"}, **short)
    assert "How probable" in told(healthy(start(PLACE, run=run.id)))


def test_a_sum_has_no_sign_of_zero_and_names_without_their_numbers():
    fitted = replace(fitted_run(np.ones((1, 2), dtype=bool)), names=("", "Shoe"))
    text = equation(fitted, SimpleNamespace(components=(0, 1), scores=(-0.04, -0.06)))
    assert text == "average + **0.0** × component 1 − **0.1** × Shoe"


def test_the_ring_is_around_the_row_of_the_details_until_it_is_let_go(monkeypatch):
    page = SimpleNamespace(session_state={}, query_params={})
    monkeypatch.setattr(rows, "st", page)
    selected = np.zeros(40, bool)
    monkeypatch.setattr(rows.state, "get", lambda _: selected)
    table = Dataset("t", np.eye(40, 5, dtype=np.float32), np.array([f"r{i}" for i in range(40)]))
    assert rows.held(table) is None
    rows.hold(table, 7)
    assert rows.held(table) == rows.chosen(table) == 7
    assert page.query_params == {"tab": "point", "row": "r7"}
    selected[3] = True  # alone, so the details show it
    assert rows.held(table) == rows.chosen(table) == 3
    rows.hold(table, None)
    assert rows.held(table) is None
    assert rows.chosen(table) == 3


def test_each_number_stands_under_its_own_heading():
    wine = load("wine")
    fitted = fitted_run(np.random.default_rng(0).random((178, 3)) < 0.5)
    ratios = np.stack([np.arange(178) + 0.25, 1000.0 - np.arange(178)], axis=1)
    said = SimpleNamespace(fits=np.arange(178) != 7, ratios=ratios)
    rows = np.array([7, 3])
    table = table_of(wine, fitted, said, rows, {})
    assert table["id"].tolist() == wine.ids[rows].tolist()
    assert table["fits"].tolist() == ["no", "yes"]
    assert table["T² / limit"].tolist() == [7.25, 3.25]
    assert table["Q / limit"].tolist() == [993.0, 997.0]
    assert np.allclose(table["log-likelihood"], fitted.log_likelihood_rows[rows], atol=0.005)
    assert np.allclose(table["membership"], fitted.membership[rows], atol=0.0005)


PAGE = "groups/differences"


def selected(app) -> int:
    kept = app.session_state["selections"].get(load("digits").digest)
    return 0 if kept is None else int(kept.sum())


def keep_as(app, name: str):
    app.text_input(key="named-new").input(name)
    return click(app, "named-keep")


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
    assert selected(click(app, "rule-replace")) == np.isin(digits, ["0", "3"]).sum()
    app.multiselect(key=classes).set_value(["3", "5"]).run()
    assert selected(click(app, "rule-intersect")) == (digits == "3").sum()
    assert selected(click(app, "rule-union")) == np.isin(digits, ["3", "5"]).sum()
    assert selected(click(app, "rule-minus")) == 0
    find(app.selectbox, "Rows whose").select("residual").run()
    assert selected(click(app, "rule-replace")) == 90  # 5% of 1,797
    find(app.selectbox, "Rows whose").select("membership").run()
    app.number_input(key="rule-value-membership-below").set_value(0.9).run()
    doubtful = selected(click(app, "rule-replace"))
    assert 0 < doubtful < 1797
    app.number_input(key="rule-value-membership-below").set_value(0.5).run()
    assert selected(click(app, "rule-replace")) < doubtful


def test_a_named_selection_is_on_disk_comes_back_and_is_combined_with_the_present_one(start, zeros):
    keep_as(zeros, "the zeros")
    assert names() == ["the zeros"]
    wanted = address(zeros)
    click(zeros, "tray_clear")
    assert "sel" not in address(zeros)
    st.cache_resource.clear()  # a restart of the server
    again = healthy(start(PAGE, **wanted))
    assert selected(again) == 178
    assert selected(click(again, "tray_clear")) == 0
    assert selected(click(again, "named-replace")) == 178
    click(again, "tray_invert")
    assert selected(click(again, "named-union")) == 1797
    assert selected(click(again, "named-minus")) == 1797 - 178
    assert selected(click(again, "named-intersect")) == 0
    keep_as(click(again, "named-replace"), "again")
    click(again, "named-delete")
    assert names() == ["the zeros"]
    healthy(Bar(go(again, "explore")).send("undo"))
    assert names() == ["again", "the zeros"]


def test_a_name_that_is_taken_is_said_to_be_replaced_and_a_refused_one_stays(zeros, monkeypatch):
    app = keep_as(zeros, "corner")
    assert app.text_input(key="named-new").value == ""
    assert list(app.info) == []
    click(app, "tray_invert")
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
    for given, chosen in ((np.array([3, 5]), [3, 5]), (np.arange(178) > 175, [176, 177])):
        state.put(wine, given)
        assert np.flatnonzero(state.get(wine)).tolist() == chosen
