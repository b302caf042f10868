"""Tests of the page Explore: controls, colours, models, removed rows, messages, selections."""

import base64
import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
import streamlit as st
from hypothesis import given, strategies

from appca.analysis.selections import SelectionStore, token_of
from appca.analysis.umap import Embedding, EmbeddingConfig, EmbeddingStore
from appca.canvas.scene import Map, axes_map
from appca.data.dataset import Dataset
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.runs.home import home
from appca.runs.numbering import ComponentNumbers, directions, numbered
from appca.runs.run import MODELS
from appca.runs.store import RunStore
from appca.storage.schema import fitted
from appca.ui import canvas, controls, explore, fits, rows, services, state
from appca.ui.canvas import ActMessage, PointMessage, SelectionMessage, SizeMessage, delivery
from appca.ui.rows import equation, table_of
from tests.fitted_runs import fitted_run
from tests.pages import give, select, table
from tests.ui.conftest import (
    Bar,
    address,
    click,
    find,
    fit_once,
    go,
    healthy,
    html,
    keys,
    press,
    run_of,
    sentences,
    slider,
    stored_run,
    told,
)

PAGE, DRAWER = "explore", "tab-components-selection-point"


def tab(app, name: str):
    return healthy(app.segmented_control(key=DRAWER).set_value(name).run())


def texts(app) -> list[str]:
    return [one.value.replace("\\", "") for one in (*app.markdown, *app.caption)]


def test_a_size_follows_the_hand_and_a_late_message_does_not_bring_it_back(start, monkeypatch):
    app = healthy(start(PAGE))
    before = address(app)
    healthy(slider(app, "k").set_value(6, moving=True).run())
    assert (address(app), slider(app, "k").value) == (before, 6), "the fit under a moving slider"
    assert "K = 6, L = 2" in html(app)
    monkeypatch.setattr(fits, "INSTANT_SECONDS", -1.0)
    healthy(slider(app, "k").set_value(9, moving=True).run())
    assert (slider(app, "k").value, "K = 6, L = 2" in html(app)) == (9, True), "the nearest at hand"
    drawn, put = [], fits._put_on_screen
    monkeypatch.setattr(fits, "_put_on_screen", lambda f: drawn.append(f.is_preview) or put(f))
    app.session_state[explore.MOVED] = run_of(app).config  # of a drag whose run was interrupted
    healthy(slider(app, "k").set_value(14).run())
    assert (True in drawn, drawn[-1]) == (True, False), "a coarse picture, then the fit"
    healthy(Bar(app).send("size", k=6, l=2, moving=True, mount="test", number=1))
    assert (address(app)["k"], slider(app, "k").value) == ("14", 14)


def test_the_drawer_renames_turns_and_tells_components_a_selection_and_a_row(start):
    app = healthy(start(PAGE))
    run = run_of(app)
    healthy(press(app, "drawer_components", "rename", 1, "slant"))
    healthy(press(app, "drawer_components", "flip", 0))
    known = ComponentNumbers(home()).of_run(run)
    assert (known.names[1], known.signs[0]) == ("slant", -1)
    press(app, "drawer_components", "users", 2)
    tab(app, "selection")
    assert f"### {int(run.fitted.active[:, 2].sum()):,}" in told(app)
    assert "ca-mix" in html(app)
    select(app, np.array([800]))
    tab(app, "point")
    assert address(app)["row"] == "digit-800"
    assert "× component" in told(app)


def test_the_selection_is_a_rule_that_is_kept_and_offered_with_other_data(start):
    app, zeros = start(PAGE), load("digits").labels["digit"].astype(str) == "0"
    select(app, np.flatnonzero(zeros))
    tab(app, "selection")
    rule = next(one for one in texts(app) if "score on" in one and "**" in one)
    assert "digit is" not in rule, "the class itself is no news"
    assert "score on 2 (if used) below" in rule
    said = next(one for one in texts(app) if "selected rows meet the rule" in one)
    assert f"of the {len(np.flatnonzero(zeros))} selected rows meet the rule" in said
    assert "Of 598 rows not used to find it" in said
    now = address(click(click(app, "rule_keep"), "rule_select"))["sel"]
    (saved,) = SelectionStore(home()).list(load("digits").digest, 1797)
    assert token_of(saved.mask) == now
    reloaded = healthy(start("groups/differences"))
    assert find(reloaded.selectbox, "Named selection").value == saved.name


def test_views_keep_their_places_and_a_second_one_is_a_press_away(start, monkeypatch):
    beside = []
    monkeypatch.setattr(canvas, "draw", lambda *_, **more: beside.append(more["options"]["beside"]))
    app = healthy(start(PAGE))
    healthy(slider(app, "l").set_value(3).run())
    assert list(Bar(app).views.values()) == ["Both", "Subspaces", "Pairs", "PCA", "Map"]
    assert (Bar(app).shown["view"], beside[-1]) == ("both", "pairs")
    healthy(Bar(app).send("view", "subspaces"))
    assert beside[-1] == ""
    healthy(Bar(app).send("beside"))
    assert beside[-1] == "pca"
    healthy(Bar(app).send("view", "pca"))
    assert beside[-1] == "subspaces"
    assert Bar(healthy(Bar(app).send("view", "none"))).shown["view"] == "both"
    healthy(slider(app, "l").set_value(2).run())
    assert Bar(app).shown["view"] == "subspaces"


def test_two_features_of_a_table_can_be_the_axes(start, monkeypatch):
    axes, wine = [], load("wine")
    monkeypatch.setattr(canvas, "on_axes", lambda *of: axes.append(of[3]) or Map("", wine.X))
    healthy(Bar(app := healthy(start(PAGE, data=wine))).send("view", "features"))
    healthy(app.selectbox(key="axis-menu-1").set_value(6).run())
    healthy(go(app, "export"))
    assert axes[-1] == [axes[0][0], 6]
    of = axes_map(wine, services.runs().list()[0].fitted, [6, 0])
    assert of.axes[0][:2] == ["flavanoids, 0.34 to 5.08", "flavanoids"]


def test_the_map_of_a_recording_is_its_slices_which_need_no_umap(start, monkeypatch):
    drawn = []
    monkeypatch.setattr(canvas, "draw", lambda _, *shown, **__: drawn.append(shown[:2]))
    app = healthy(start(PAGE, data=load("brain")))
    assert list(Bar(app).views.values()) == ["Subspaces", "PCA", "Map", "UMAP"]
    healthy(Bar(app).send("view", "slices"))
    shown, layout = drawn[-1]
    assert (layout, shown.scene.buffers["map.slices"].shape) == ("slices", (2720, 2))
    assert "umap_run" not in keys(app)
    healthy(Bar(app).send("view", "umap"))
    assert app.button(key="umap_run").label.startswith("Lay out the map")


def test_a_class_that_is_renamed_in_the_picture_keeps_its_name_with_the_data(start, monkeypatch):
    app = give(start("data/open"), file := ("t.csv", table()))
    run, digest = address(healthy(app))["run"], address(app)["data"]
    steps: list[tuple] = []
    monkeypatch.setattr(state, "note", lambda *both: steps.append(both))

    def names() -> list[str]:
        return services.dataset(address(app)["data"]).classes("class")[0]

    def rename(*said: object) -> list[str]:
        state.rename_class(digest, json.dumps(said))
        return names()

    assert rename("class", "a", " an  ant ") == ["an ant", "b"]
    assert rename("class", "b", "an ant") == ["an ant"]
    steps[-1][0]()
    assert names() == ["an ant", "b"]
    assert rename("class", "no class", "x") == rename("none", "b", "x") == ["an ant", "b"]
    assert rename("class", 3) == ["an ant", "b"]
    state.rename_class(digest, "no JSON")
    assert rename("class", "b", "null") == ["an ant", "null"]
    assert address(healthy(app.run()))["run"] == run, "the fit is kept"
    healthy(give(go(app, "data/open"), file))
    assert names() == ["an ant", "null"]
    assert rename("class", "an ant", "") == ["a", "null"]


@pytest.fixture
def drawn(monkeypatch) -> list[tuple]:
    """Return a list that grows by the title of a page's colouring and the codes of its rows."""
    seen: list[tuple] = []

    def draw(_dataset, shown, _layout, colouring, **_):
        made = shown.scene.meta["colourings"].get(colouring, {"title": colouring})
        seen.append((made["title"], shown.scene.buffers.get(f"codes.{colouring}")))

    monkeypatch.setattr(canvas, "draw", draw)
    return seen


def colour(app, key: str):
    return healthy(Bar(app).send("colour", key))


def test_a_pixel_components_or_the_trust_of_panels_colour_points_and_are_kept(start, drawn):
    app = healthy(start(PAGE))
    offered = Bar(app).colours
    known = "Residual, Membership, Likelihood, Row order, Automatic type, Trust of the panels"
    assert list(offered.values())[:7] == ["digit", *known.split(", ")]
    assert (len(offered), offered["feature:21"]) == (7 + 4 + 64, "pixel row 3, column 6")
    app = colour(app, "feature:21")
    assert drawn[-1][0] == "pixel row 3, column 6"
    healthy(go(app, "components/gallery"))
    app = healthy(go(app, "explore"))
    assert drawn[-1][0] == "pixel row 3, column 6"
    for key, shown in (("components:1,2", 1), ("component:4", 1), ("component:5", 0), ("none", 0)):
        app = colour(app, key)
        assert Bar(app).shown["colour"] == (key if shown else "label:digit")
    app = healthy(go(colour(app, "automatic type"), "groups/differences"))
    assert drawn[-1][0] == "Automatic type"
    app = healthy(go(app, "explore"))
    title, codes = colour(app, "trust of the panels") and drawn[-1]
    assert title == "Trust of the panels"
    assert len(np.unique(codes)) > 3
    assert "Pink: the neighbours of the point" in told(app)


def test_columns_of_a_table_are_offered_by_name_or_number_beside_all_labels(start, drawn):
    X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    missing = np.zeros(X.shape, dtype=bool)
    missing[5, 2] = True
    labels = {name: np.array(["a", "b"] * 20) for name in ("kind", "pH", "*p*")}
    names = ("*a*", "b", "<b>c</b>")
    table = Dataset("t", X, np.arange(40), labels, feature_names=names, missing=missing)
    app = healthy(start(data=table))
    assert list(Bar(app).colours.values())[:3] == ["kind", "pH", "*p*"]
    assert list(Bar(app).colours.values())[-3:] == list(names)
    colour(app, "feature:2")
    title, codes = drawn[-1]
    assert (title, np.flatnonzero(codes == codes.max()).tolist()) == ("<b>c</b>", [5])
    total = controls.MOST_LISTED + 1
    X = np.random.default_rng(0).normal(size=(30, total)).astype(np.float32)
    app = healthy(start(data=Dataset("wide", X, np.arange(30))))
    assert Bar(app).shown["columns"] == total
    assert [key for key in Bar(app).colours if key.startswith("feature:")] == ["feature:512"]
    app = colour(app, f"feature:{total - 1}")
    assert drawn[-1][0] == Bar(app).colours[f"feature:{total - 1}"] == f"feature {total}"
    assert Bar(colour(app, f"feature:{total}")).shown["colour"] == "residual"


def test_rows_are_coloured_by_the_trust_of_a_map_that_has_it_and_the_choice_ends_with_it(start):
    app = healthy(start(PAGE))
    run = run_of(app)
    assert "trust of the map" not in Bar(app).colours
    config = EmbeddingConfig(run.config.dataset, run.config.preprocessing)
    rows = np.random.default_rng(0).normal(size=(1797, 2)).astype(np.float32)
    trust = np.tile(np.float32([0.1, 0.02, 0.6]), (1797, 1))
    EmbeddingStore(home()).save(config, Embedding(rows, trust))
    first = healthy(start(PAGE))  # another window, before it has drawn any fit
    assert "trust of the map" in Bar(first).colours
    app = colour(healthy(app.run()), "trust of the map")
    text = "Trustworthiness 0.900, continuity 0.980, nearest rows kept 60%. 1,797 of 1,797 rows"
    assert text in told(app)
    healthy(go(app, "export"))
    assert text in told(healthy(go(app, "explore")))
    EmbeddingStore(home()).save(config, Embedding(rows, None))
    assert Bar(healthy(app.run())).shown["colour"] == "label:digit"


def test_fewer_rows_than_have_neighbours_are_said_to_be_too_few(start):
    for n in (2, 3):
        few = Dataset("few", np.random.default_rng(0).normal(size=(n, 4)), list("abc")[:n])
        app = healthy(start(PAGE, data=few))
        healthy(Bar(app).send("view", "umap"))
        assert ("A map needs" in told(app)) == (n == 2)


def opened(start, X: np.ndarray):
    ids = np.array([f"row {i}" for i in range(len(X))])
    return healthy(start("explore", data=Dataset("few", X, ids, {"kind": np.arange(len(X)) % 3})))


def press_for(app, key: str, first: int, of: int):
    select(app, np.arange(first), of)
    app.query_params["tab"] = "selection"
    return healthy(app.run()).button(key=key).click().run()


def on_screen(app) -> Dataset:
    return DatasetStore(home()).get(address(app)["data"])


def test_a_row_that_holds_the_variance_is_named_left_out_and_put_back(start):
    X = np.random.default_rng(0).normal(size=(60, 6))
    X[17] = 500.0
    app = opened(start, X)
    first = address(app)
    assert any("row 17" in text.value and "over 99%" in text.value for text in app.markdown)
    click(app, "far_leave_out")
    left = on_screen(app)
    np.testing.assert_array_equal(left.X, np.delete(X, 17, axis=0))
    assert left.provenance["left_out"]["ids"] == ["row 17"]
    assert left.name == "few, 59 of 60 rows"
    assert (address(app)["k"], address(app)["l"]) == (first["k"], first["l"])
    assert "of the variance in the components" not in told(app)
    app = go(app, "data/add")
    app = healthy(find(app.toggle, "Use the 1 row left out of the fit").set_value(True).run())
    assert "1 of 1 new row does not fit" in told(app)
    click(go(app, "explore"), "put_back")
    assert address(app)["data"] == first["data"]
    assert "60 rows × 6" in html(app)


def test_matching_components_and_the_colouring_stay_when_rows_are_left_out(start):
    rng, axes = np.random.default_rng(0), np.array([3] * 5 + [0, 1, 2, 4] * 14)
    X = rng.normal(0, 0.1, (61, 6)) + np.eye(6)[axes] * rng.normal(0, 9, (61, 1))
    X *= np.where(axes == 3, 5, np.where(axes == 4, 0.3, 1))[:, None]  # component 4 follows 3
    app, numbers = opened(start, X), ComponentNumbers(home())
    for k in range(4):
        numbers.rename(run_of(app), k, f"name {k + 1}")
        before = numbered(run_of(app).fitted, numbers.flip(run_of(app), k))
    app = press_for(colour(app, "component:3"), "leave_out", 5, 61)
    after = numbered(run_of(app).fitted, now := numbers.of_run(run_of(app)))
    cosines = (directions(before) * directions(after)).sum(axis=1)
    assert (cosines > 0.8).tolist() == [False, True, True, True]
    assert now.names == ("", "name 2", "name 3", "name 4")
    assert Bar(app).shown["colour"] == "component:3"


def test_the_selection_is_left_out_or_kept_alone_until_too_few_are_left(start):
    app = opened(start, np.random.default_rng(1).normal(size=(60, 6)))
    every = on_screen(app)
    healthy(press_for(app, "fit_only_these", 20, 60))
    assert on_screen(app).ids.tolist() == every.ids[:20].tolist()
    healthy(press_for(app, "leave_out", 5, 20))
    assert on_screen(app).ids.tolist() == every.ids[5:20].tolist()
    noted = on_screen(app).provenance["left_out"]
    assert (noted["of"], noted["n"]) == (every.digest, 60)
    assert sorted(noted["ids"]) == sorted([*every.ids[:5], *every.ids[20:]])
    assert noted["why"] == "40 unselected rows, 5 selected rows"
    press_for(app, "leave_out", 14, 15)
    said = "A data set needs at least 2 rows; got 1, so add rows or choose more of them."
    assert sentences(app) == [said]
    assert on_screen(app).n_rows == 15


SHORT = {"n_chains": 2, "burn_in": 10, "n_draws": 20}


@pytest.fixture
def wine(start, jobs):
    return start("explore", data=load("wine"))


def choose(app, model: str):
    app.selectbox(key="set-model").select(model).run()
    for name in SHORT.keys() & app.session_state["config"].parameters:
        app.number_input(key=f"set-{name}").set_value(SHORT[name])
    if "max_components" in app.session_state["config"].parameters:
        slider(app, "k").set_value(6).run()
    return healthy(app.run())


def fit(app):
    config = app.session_state["config"]
    return RunStore(home()).save(config, fit_once(services.dataset(config.dataset), config))


def test_pca_of_many_rows_reads_blocks_and_places_rows_as_for_few(monkeypatch):
    data = load("wine")
    DatasetStore(home()).put(data)
    config, placed = state.first_config(data), []
    for most in (len(data.X), 0):
        monkeypatch.setattr(canvas, "MOST_COPIED", most)
        st.cache_resource.clear()
        placed.append(canvas.principal_of(data, config).coordinates)
    np.testing.assert_allclose(*placed, atol=1e-5)


FEW = [
    pytest.param(one, marks=[pytest.mark.thorough] * (one not in ("aFA", "isFA"))) for one in MODELS
]


@pytest.mark.parametrize("model", FEW)
def test_a_model_is_chosen_fitted_and_shown_on_every_page(wine, start, model):
    app = choose(wine, model)
    assert MODELS[model].about in [text.value for text in app.caption]
    learns = "max_components" in app.session_state["config"].parameters
    if learns:
        assert "l" not in address(app)
        assert address(app)["k"] == "6"
        app.selectbox(key="set-alpha").select("fixed").run()
        app.number_input(key="set-alpha-value").set_value(2.5).run()
        assert app.session_state["config"].parameters["alpha"] == 2.5
    run, app = fit(healthy(app)), healthy(app.run())
    assert (run.config.model, address(app)["run"]) == (model, run.id)
    assert run.id in html(app)
    if learns:
        assert run.fitted.alpha == 2.5
        assert f"{len(run.fitted.components)} in the best draw" in html(app)
        assert slider(app, "l").value is None
        assert html(app).count('class="ca-piece"') == len(run.fitted.components)
    for page in ("components/gallery", "check/trust", "export"):
        app = healthy(go(app, page))
    assert MODELS[model].title in html(healthy(start(run=run.id)))


def test_the_way_from_one_model_to_another_keeps_what_both_understand(wine):
    app = slider(wine, "k").set_value(6).run()
    app.selectbox(key="set-init").select("quartimax").run()
    healthy(app.selectbox(key="set-model").set_value("PPCA").run())
    assert slider(app, "l").value is None
    assert "l" not in address(app)
    app = choose(app, "aFA")
    assert slider(app, "k").value == 6
    assert app.selectbox(key="set-init").value == "auto"
    app.selectbox(key="set-inference").select("gibbs").run()
    app.number_input(key="set-n_draws").set_value(77).run()
    app.selectbox(key="set-model").select("aPPCA").run()
    assert app.selectbox(key="set-inference").value == "gibbs"
    assert app.number_input(key="set-n_draws").value == 77
    app.selectbox(key="set-inference").select("em").run()
    assert "n_draws" not in healthy(app).session_state["config"].parameters


@pytest.mark.parametrize(
    ("key", "value"), [("inference", "hard"), ("model", "aFA"), ("model", "isFA")]
)
def test_models_that_need_complete_rows_offer_to_fill_them_and_no_fit(start, key, value):
    X = np.random.default_rng(0).normal(size=(60, 5))
    missing = np.random.default_rng(1).random(X.shape) < 0.1
    app = start("explore", data=Dataset("gappy", X, np.arange(60).astype(str), missing=missing))
    k = app.session_state["config"].k
    healthy(slider(app, "k").set_value(k - 1).run())
    app.selectbox(key=f"set-{key}").select(value).run()
    for place in ("explore", "components/gallery", "groups/differences"):
        assert "needs complete rows" in told(healthy(go(app, place)))
        assert "start_fit" not in keys(app)
    click(app, "fill_gaps")
    assert "fill_gaps" not in keys(app)
    assert DatasetStore(home()).get(app.session_state["config"].dataset).missing is None
    Bar(go(app, "explore")).send("undo")
    assert "fill_gaps" in keys(healthy(app))
    app.selectbox(key="set-model").select("aFA").run()
    assert app.session_state["config"].k == k - 1


def test_the_extensions_of_the_main_model_are_chosen_fitted_and_said(wine, start):
    for name, value in (("row_scale", "learned"), ("n_active", "learned"), ("noise", "feature")):
        app = wine.selectbox(key=f"set-{name}").select(value).run()
    assert slider(healthy(app), "l").value == "learned"
    run = fit(app)
    for place in ("components/gallery", "check/trust", "groups/differences"):
        app = healthy(go(app, place))
    again = html(healthy(start(run=run.id)))
    assert all(size in again for size in ("L learned", "row scales", "noise per feature"))


STEPS = [  # what is chosen, one after another, and what is then in force
    ("latent_variance", "fixed", {}),
    ("noise", "feature", {"noise": "feature", "latent_variance": "shared"}),
    ("n_active", "learned", {"n_active": "learned"}),
    ("inference", "gibbs", {"inference": "gibbs", "noise": "shared", "n_active": "learned"}),
    ("row_scale", "learned", {"inference": "gibbs", "row_scale": "learned"}),
    ("z_update", "swap", {"z_update": "swap", "row_scale": "none", "n_active": 2}),
    ("n_active", "learned", {"z_update": "block", "inference": "gibbs"}),
    ("inference", "hard", {"inference": "hard", "n_active": 2}),
    ("row_scale", "learned", {"inference": "em", "row_scale": "learned"}),
    ("inference", "gibbs", {}),
    ("noise", "feature", {"inference": "em", "row_scale": "learned"}),
    ("n_active", "learned", {}),
    ("n_active", "fixed", {"n_active": 2}),
]


@pytest.mark.thorough
def test_settings_that_exclude_one_another_give_way_to_the_one_chosen_last(wine):
    for name, value, in_force in STEPS:
        wine.selectbox(key=f"set-{name}").select(value).run()
        assert in_force.items() <= healthy(wine).session_state["config"].parameters.items(), name


def read(bits, n_rows: int) -> np.ndarray:
    told = fitted(SelectionMessage, {"mount": "a1-b2", "number": 1, "bits": bits})
    return canvas.read_selection(told.bits, n_rows)


def encoded(*values: int) -> str:
    return base64.b64encode(bytes(values)).decode()


@given(strategies.lists(strategies.booleans(), min_size=1, max_size=70))
def test_the_rows_come_back_as_they_were_packed(flags):
    rows = np.array(flags)
    packed = encoded(*np.packbits(rows, bitorder="little"))
    np.testing.assert_array_equal(read(packed, len(rows)), rows)
    assert not read(None, 10).any(), "a selection that was cleared"
    assert np.flatnonzero(read(encoded(1, 2), 10)).tolist() == [0, 9], "the first is the lowest bit"


def test_bits_of_other_data_and_what_is_no_base64_are_refused():
    for bits, said in (
        *((encoded(*[0] * n), rf"{n} bytes for 10 rows") for n in (0, 1, 3, 400)),
        (encoded(0, 4), "rows beyond the last"),
        *((bits, "it has") for bits in ("%%%", "abc", 17, ["AA=="], "AAA\x00")),
    ):
        with pytest.raises(ValueError, match=said):
            read(bits, 10)


STAMP = {"mount": "a", "number": 1}
MESSAGES = [
    *((SelectionMessage, stamp) for stamp in ({}, {"mount": "a"}, {"mount": "a", "number": 0})),
    *((SelectionMessage, STAMP | {"mount": wrong}) for wrong in (1, "<b>", "a\n", "a" * 41)),
    *((PointMessage, STAMP | {"row": row}) for row in (-2, 1.5, "3", None, True)),
    *((SizeMessage, STAMP | {"k": k, "l": 1, "moving": False}) for k in (0, 1.5, "3", None)),
    (ActMessage, STAMP | {"name": 3}),
    (ActMessage, STAMP | {"name": "a" * 1001}),
]


@pytest.mark.parametrize(("kind", "message"), MESSAGES)
def test_a_message_that_no_canvas_sends_is_refused(kind, message):
    with pytest.raises(ValueError, match="it "):
        fitted(kind, message)


def test_chips_say_what_a_component_was_and_two_windows_show_one_numbering(start, monkeypatch):
    told: dict = {}
    monkeypatch.setattr(canvas, "_canvas", lambda key, data, **_: told.update({key: data}))
    app = start("explore")
    assert "came" not in told["canvas"]["options"], "there was nothing before"
    run = run_of(healthy(slider(app, "k").set_value(7).run()))
    numbering, came = ComponentNumbers(home()).of_run(run), told["canvas"]["options"]["came"]
    assert len(came) == 7
    assert came.count("new") >= 3
    assert all(text in ("", "new") for text in came[:4])
    assert sorted(numbering.order) == list(range(7))
    scene = told["canvas"]["scene"]["meta"]
    healthy(go(app, "explore"))
    assert told["canvas"]["options"]["came"] == came, "until the next fit"

    other = start("explore", k="6")  # another window, with another fit on its screen
    slider(other, "k").set_value(7).run()
    assert address(healthy(other))["run"] == run.id
    assert ComponentNumbers(home()).of_run(run, directions(run.fitted)[::-1]) == numbering
    assert told["canvas"]["scene"]["meta"] == scene


def test_numbers_are_decided_when_a_fit_is_shown_and_not_before(start):
    app = start("explore", k="6")
    numbers = run_of(healthy(app)).path / "numbers.json"
    assert numbers.exists()
    slider(app, "k").set_value(7).run()
    numbers.unlink()  # as of a fit of the command line, which nobody has seen
    for questions in list(delivery()._questions.values()):
        for what in questions.answers:  # all that an idle browser can ask
            questions.answer(what, np.zeros(1, int))
    assert not numbers.exists()
    slider(app, "k").set_value(6).run()
    assert numbers.exists()


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
    for wrong in ("<script>", "9" * 5000):
        app = healthy(start(PLACE, row=wrong))
        (said,) = app.warning
        assert "no row" in said.value.lower()
        assert address(app)["row"] == "digit-0"


def test_a_row_says_how_many_components_it_uses_and_how_sure_that_is(start):
    rng = np.random.default_rng(0)
    signs, used = rng.choice([-1.0, 1.0], (90, 3)), np.arange(90)[:, None] % 3 > np.arange(3)
    X = 120.0 + (signs * used) @ np.eye(16)[:3] * 60.0 + rng.normal(size=(90, 16))
    dataset = Dataset("sizes", X, np.array([f"row-{n}" for n in range(90)]), {}, (4, 4), None, {})
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
    assert {button.help[8:].replace("\\", "") for button in near(app)} <= set(wine.ids)
    assert "class" in near(app)[0].label
    assert len(near(app)) == 12
    short = {"max_components": 4, "burn_in": 5, "n_draws": 10, "n_chains": 1}
    run = stored_run(wine, "isFA", {"scale": "feature"}, **short)
    assert "Probability of each panel" in told(healthy(start(PLACE, run=run.id)))


def test_a_sum_has_no_sign_of_zero_and_names_without_their_numbers():
    fitted = replace(fitted_run(np.ones((1, 2), dtype=bool)), names=("", "Shoe"))
    text = equation(fitted, SimpleNamespace(components=(0, 1), scores=(-0.04, -0.06)))
    assert text == "centre + **0.0** × component 1 − **0.1** × Shoe"


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
    wine, fitted = load("wine"), fitted_run(np.random.default_rng(0).random((178, 3)) < 0.5)
    wine = replace(wine, X=wine.X[:, [0, 12, 5]], feature_names=("alcohol", "proline", "phenols"))
    ratios = np.stack([np.arange(178) + 0.25, 1000.0 - np.arange(178)], axis=1)
    said, rows = SimpleNamespace(fits=np.arange(178) != 7, ratios=ratios), np.array([7, 3])
    table = table_of(wine, fitted, said, rows, {})  # in these units, proline is far
    assert table["id"].tolist() == wine.ids[rows].tolist()
    assert table["stands out"].tolist() == ["yes", "no"]
    assert set(table["farthest in"]) == {"proline"}
    assert table[["T² / limit", "Q / limit"]].to_numpy().tolist() == [[7.25, 993.0], [3.25, 997.0]]
    assert np.allclose(table["log-likelihood"], fitted.log_likelihood_rows[rows], atol=0.005)
    assert np.allclose(table["membership"], fitted.membership[rows], atol=0.0005)


GROUPS = "groups/differences"


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
    mask = load("digits").labels["digit"] == "0"
    return healthy(select(start(GROUPS), mask, len(mask)))


def test_rules_on_a_class_or_the_fit_select_add_narrow_and_remove(start):
    app, digits = start(GROUPS), load("digits").labels["digit"]
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
    again = healthy(start(GROUPS, **wanted))
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
    assert "“corner” is saved with 1,619 rows" in said
    assert "178 rows" in said
    app.text_input(key="named-new").input("  ")
    app.button(key="named-keep").click().run()
    assert sentences(app) == ["A saved selection needs a name; type one."]

    full = Mock(side_effect=OSError(28, "No space left on device"))
    monkeypatch.setattr("appca.analysis.selections.np.savez", full)
    app.text_input(key="named-new").input("another")
    app.button(key="named-keep").click().run()
    assert "No space left" in sentences(app)[0]
    assert app.text_input(key="named-new").value == "another"
    monkeypatch.setattr(Path, "unlink", full)
    app.button(key="named-delete").click().run()
    assert [problem.message for problem in app.exception] == []
    assert "No space left" in sentences(app)[0], "it is said not to be deleted"
