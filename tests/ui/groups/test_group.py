"""The selection and its tools under AppTest: combining, naming, rules, undo, and the comparison."""

import numpy as np
import pytest
import streamlit as st

from appca.analysis.groups.selections import SelectionStore
from appca.data.sources.builtin import load
from appca.data.store import DatasetStore
from appca.runs.home import home
from tests.ui.conftest import address, go, healthy, html, sentences
from tests.ui.parts.test_pages import select

SELECTED = "**Selection** · "


def lasso(app, mask: np.ndarray):
    """Do what comes of a lasso that is closed."""
    return healthy(select(app, mask, len(mask)))


def selected(app) -> int:
    text = next(one.value for one in app.markdown if one.value.startswith(SELECTED))
    return int(text.removeprefix(SELECTED).split(" of ")[0].replace(",", ""))


def press(app, key: str):
    return healthy(app.button(key=key).click().run())


def keep_as(app, name: str):
    app.text_input(key="named-new").input(name)
    return press(app, "named-keep")


@pytest.fixture
def zeros() -> np.ndarray:
    return load("digits").labels["digit"] == "0"


def test_undo_goes_back_step_by_step_and_stops_at_the_start(start, zeros):
    app = start("groups/selection")
    assert app.button(key="tray_undo").disabled
    lasso(app, zeros)
    counts = [selected(app)]
    go(app, "groups/selection")
    for _ in range(11):
        counts += [selected(press(app, "tray_invert")), selected(press(app, "tray_clear"))]
    assert counts[:3] == [178, 1797 - 178, 0]
    back = [selected(press(app, "tray_undo")) for _ in range(22)]
    assert back == counts[:-1][::-1]
    assert selected(press(app, "tray_undo")) == 0
    assert app.button(key="tray_undo").disabled


def test_a_rule_on_a_class_selects_and_others_add_narrow_and_remove(start):
    app = start("groups/selection")
    digits = load("digits").labels["digit"]
    app.multiselect(key="rule-classes-label:digit").set_value(["0", "3"]).run()
    assert selected(press(app, "rule-replace")) == np.isin(digits, ["0", "3"]).sum()
    app.multiselect(key="rule-classes-label:digit").set_value(["3", "5"]).run()
    assert selected(press(app, "rule-intersect")) == (digits == "3").sum()
    assert selected(press(app, "rule-union")) == np.isin(digits, ["3", "5"]).sum()
    assert selected(press(app, "rule-minus")) == 0


def test_rules_on_the_fit_open_with_the_usual_limits(start):
    app = start("groups/selection")
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
    app = lasso(start("groups/selection"), zeros)
    keep_as(app, "the zeros")
    assert [saved.name for saved in SelectionStore(home()).list(load("digits").digest, 1797)] == [
        "the zeros"
    ]
    wanted = address(app)
    press(app, "tray_clear")
    assert "sel" not in address(app)
    st.cache_resource.clear()  # a restart of the server
    again = healthy(start(**wanted))
    assert selected(again) == 178
    assert selected(press(again, "tray_clear")) == 0
    assert selected(press(again, "named-replace")) == 178
    press(again, "named-delete")
    press(again, "named-leave")
    press(again, "named-delete")
    assert len(SelectionStore(home()).list(load("digits").digest, 1797)) == 1, "it was only asked"
    press(again, "named-really")
    assert SelectionStore(home()).list(load("digits").digest, 1797) == []
    assert selected(again) == 178


def test_a_name_that_is_taken_is_said_to_be_replaced_and_a_refused_one_stays(
    start, zeros, monkeypatch
):
    app = lasso(start("groups/selection"), zeros)
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

    monkeypatch.setattr("appca.analysis.groups.selections.np.savez", full)
    app.text_input(key="named-new").input("another")
    app.button(key="named-keep").click().run()
    assert "No space left" in sentences(app)[0]
    assert app.text_input(key="named-new").value == "another"


def test_named_selections_are_combined_with_the_present_one(start, zeros):
    app = lasso(start("groups/selection"), zeros)
    keep_as(app, "zeros")
    press(app, "tray_invert")
    assert selected(press(app, "named-union")) == 1797
    assert selected(press(app, "named-minus")) == 1797 - 178
    assert selected(press(app, "named-intersect")) == 0


def test_the_page_says_what_sets_the_zeros_apart(start, zeros):
    app = lasso(start("groups/selection"), zeros)
    go(app, "groups/selection")
    assert selected(healthy(app)) == 178
    sentence = app.markdown[1].value.replace("\\", "")
    assert "178 selected rows" in sentence
    assert "digit = 0 (100% of them, 0% of the rest)" in sentence
    table = app.dataframe[0].value
    assert table["what"][0] == "digit = 0"
    assert table["effect"][0] == 1.0
    assert "feature" not in set(table["kind"])
    assert html(app).count("mean image: ") == 3
    reloaded = healthy(start("groups/selection", **address(app)))
    assert selected(reloaded) == 178


def test_the_page_without_a_selection_says_how_to_select(start):
    app = healthy(start("groups/selection"))
    assert any("Nothing is selected yet" in text.value for text in app.markdown)
    app.multiselect(key="rule-classes-label:digit").set_value(["7"]).run()
    assert selected(press(app, "rule-replace")) == 179
    assert len(app.dataframe) == 1


def test_a_group_without_a_rest_is_told_so_in_a_sentence(start):
    app = healthy(start("groups/selection"))
    press(app, "tray_invert")
    assert not app.dataframe
    assert "1,797 selected and 0 other rows" in app.info[0].value.replace("\\", "")


def test_a_component_with_a_name_has_it_in_rules_and_comparisons(start, zeros):
    app = start("components/gallery")
    run = address(app)["run"]
    app.text_input(key=f"label-{run}-1").set_value("slant").run()
    lasso(go(app, "explore"), zeros)
    go(app, "groups/selection")
    told = list(healthy(app).dataframe[0].value["what"])
    assert {"score on 2 · slant", "use of 2 · slant", "score on component 1"} <= set(told)
    column = next(box for box in app.selectbox if box.label == "Rows whose")
    assert "score on 2 · slant" in column.options
    number = next(box for box in app.selectbox if box.label == "Number")
    healthy(number.select_index(number.options.index("score on 2 · slant")).run())
    go(app, "export")
    place = healthy(app).selectbox(key=f"export_place-{run}")
    assert "Component 1 and 2 · slant" in place.options
    assert "Components 1 and 3" in place.options


def test_a_table_is_compared_by_its_features(start):
    digest = DatasetStore(home()).put(load("wine"))
    app = healthy(start("groups/selection", data=digest))
    app.multiselect(key="rule-classes-label:cultivar").set_value(["class_0"]).run()
    press(app, "rule-replace")
    table = app.dataframe[0].value
    features = set(table["what"][table["kind"] == "feature"])
    assert features == set(load("wine").feature_names)
    strongest = table[table["kind"] == "feature"].iloc[0]
    assert strongest["what"] in ("proline", "alcohol", "flavanoids")
    assert "mean image" not in html(app)
    number = app.selectbox(key=f"group_number-{digest[:8]}")
    for key in ("Proline", "residual", "score on component 1"):
        option = next(one for one in number.options if one.casefold() == key.casefold())
        healthy(number.select_index(number.options.index(option)).run())


def test_the_export_page_shows_the_run_as_python(start):
    app = healthy(start("export"))
    text = app.code[-1].value
    assert "dataset = load('digits')" in text
    assert f"# Run {address(app)['run']}" in text
    compile(text, "copied", "exec")
    assert "Copy as Python" in [one.value for one in app.subheader]
