"""The page Explore: bar, picture and drawer, colours, models, maps, gaps and rows left out."""

import io
import json

import numpy as np
import pandas as pd
import pytest

from appca.analysis.selections import SelectionStore, token_of
from appca.analysis.umap import Embedding, EmbeddingConfig, EmbeddingStore
from appca.canvas import scene
from appca.canvas.panels import trust_colour
from appca.data.dataset import Dataset, categories
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.plots.style import Colour
from appca.runs.fit import fit_run
from appca.runs.home import home
from appca.runs.numbering import ComponentNumbers
from appca.runs.run import MODELS
from appca.runs.store import RunStore
from appca.ui import canvas, controls, explore, services
from appca.ui.choose import filled_csv
from tests.models.synthetic import planted
from tests.ui.conftest import address, go, healthy, html, number, press, sentences, slider
from tests.ui.parts import test_pages
from tests.ui.parts.test_pages import PAGES, select, table_of, upload
from tests.ui.test_background import ScriptedJobs

PAGE, DRAWER = "explore", "tab-components-selection-point"


def tab(app, name: str):
    return healthy(app.segmented_control(key=DRAWER).set_value(name).run())


def test_what_a_widget_showed_before_the_size_was_set_elsewhere_does_not_bring_it_back(start):
    app = healthy(start(PAGE))
    before = slider(app, "k")._widget_state
    healthy(number(app, "k").set_value(14).run())
    told = app._tree.get_widget_states()
    told.widgets.append(before)  # by a browser that has not heard of 14
    app._run(told)
    assert address(healthy(app))["k"] == "14"
    assert (slider(app, "k").value, number(app, "k").value) == (14, 14)


def test_k_l_model_colour_and_the_drawer(start):
    app = healthy(start(PAGE))
    assert html(app).count('class="ca-piece"') == 4
    healthy(slider(app, "k").set_value(6).run())
    assert html(app).count('class="ca-piece"') == 6
    healthy(number(app, "k").set_value(14).run())
    assert (slider(app, "k").value, slider(app, "k").max) == (14, 14)
    healthy(number(app, "l").set_value(3).run())
    assert (address(app)["k"], address(app)["l"]) == ("14", "3")
    healthy(slider(app, "k").set_value(4).run())
    healthy(app.selectbox(key="set-model").set_value("PPCA").run())
    assert [one.label for one in app.slider] == ["K"]
    assert "l" not in address(app)
    healthy(app.selectbox(key="set-model").set_value("aPPCA").run())
    colour = next(box for box in app.radio if box.key.startswith("colour-"))
    healthy(colour.set_value("residual").run())


def test_names_and_signs_of_components_change_in_the_drawer(start):
    app = healthy(start(PAGE))
    run = RunStore(home()).get(address(app)["run"])
    healthy(press(app, "drawer_components", "rename", 1, "slant"))
    healthy(press(app, "drawer_components", "flip", 0))
    known = ComponentNumbers(home()).of_run(run)
    assert (known.names[1], known.signs[0]) == ("slant", -1)
    press(app, "drawer_components", "users", 2)
    tab(app, "selection")
    users = int(run.fitted.active[:, 2].sum())
    assert any(f"### {users:,}" in text.value for text in app.markdown)


def test_the_selection_and_a_row_are_told_in_the_drawer(start):
    app = start(PAGE)
    select(app, np.array([3, 5, 800]))
    tab(app, "selection")
    assert any("### 3" in text.value for text in app.markdown)
    assert "ca-mix" in html(app)
    select(app, np.array([800]))
    tab(app, "point")
    assert address(app)["row"] == "digit-800"
    assert any("× component" in text.value for text in app.markdown)
    app.button(key="select_neighbours").click().run()
    healthy(app.button(key="point_next").click().run())


def test_the_selection_is_a_rule_that_is_kept_and_offered_with_other_data(start):
    app = start(PAGE)
    zeros = load("digits").labels["digit"].astype(str) == "0"
    select(app, np.flatnonzero(zeros))
    tab(app, "selection")
    rule = next(
        text.value for text in app.markdown if "score on" in text.value and "**" in text.value
    )
    assert "digit is" not in rule, "the class itself is no news"
    assert "score on 4 below" in rule.replace("\\", "")
    said = next(text.value for text in app.caption if "selected rows meet the rule" in text.value)
    assert "on 598 rows that the search has not seen" in said
    app.button(key="rule_keep").click().run()
    app.button(key="rule_select").click().run()
    now = address(healthy(app))["sel"]
    (saved,) = SelectionStore(home()).list(load("digits").digest, 1797)
    assert token_of(saved.mask) == now
    reloaded = healthy(start("groups/differences"))
    named = next(box for box in reloaded.selectbox if box.label == "Named selection")
    assert named.value == saved.name


def test_views_keep_their_places_and_a_second_one_is_a_press_away(start, monkeypatch):
    told = []
    monkeypatch.setattr(canvas, "draw", lambda *_, **more: told.append(more["options"]["beside"]))
    app = healthy(start(PAGE))
    view = next(choice for choice in app.segmented_control if choice.label == "View")
    assert view.options == ["Subspaces", "PCA", "Map"]
    healthy(number(app, "l").set_value(3).run())
    view = next(choice for choice in app.segmented_control if choice.label == "View")
    assert view.options == ["Subspaces", "Pairs", "PCA", "Map"]
    assert told[-1] == ""
    healthy(app.segmented_control(key="split").set_value(["Split"]).run())
    assert told[-1] == "pca"
    healthy(view.set_value("pca").run())
    assert told[-1] == "subspaces"


def test_the_map_of_a_recording_is_its_slices_which_need_no_umap(start, monkeypatch):
    drawn = []
    monkeypatch.setattr(canvas, "draw", lambda _, *shown, **__: drawn.append(shown[:2]))
    app = healthy(start(PAGE, data=services.datasets().put(load("brain"))))
    view = next(choice for choice in app.segmented_control if choice.label == "View")
    assert view.options == ["Subspaces", "PCA", "Map", "UMAP"]
    healthy(view.set_value("slices").run())
    scene, layout = drawn[-1]
    assert layout == "slices"
    assert scene.scene.buffers["map.slices"].shape == (2720, 2)
    assert not [button for button in app.button if button.key == "umap_run"]
    healthy(app.segmented_control(key=view.key).set_value("umap").run())
    assert app.button(key="umap_run").label.startswith("Lay out the map")


def test_a_class_that_is_renamed_in_the_picture_keeps_its_name_with_the_data(start):
    app = healthy(start(PAGE))
    dataset = services.dataset(app.session_state["config"].dataset)

    def rename(*said: str) -> list[str]:
        explore._act(dataset, "class", json.dumps(said))
        names, codes = categories(services.dataset(dataset.digest).labels["digit"])
        return [names[code] for code in codes[[3, 8, 30]]]

    assert rename("digit", "3", " drei  eggs ") == ["drei eggs", "8", "0"]
    assert rename("digit", "8", "drei eggs") == ["drei eggs", "drei eggs", "0"]
    assert rename("digit", "drei eggs", "") == ["3", "8", "0"]
    assert rename("digit", "no class", "x") == rename("none", "3", "x") == ["3", "8", "0"]
    explore._act(dataset, "class", '["digit", 3]')
    explore._act(dataset, "class", "no JSON")
    assert rename("digit", "0", "null") == ["3", "8", "null"]


@pytest.fixture
def colours(monkeypatch) -> list[Colour]:
    """Return a list that grows by what points are coloured by, page after page."""
    seen, real = [], scene.colour_of

    def kept(dataset, fitted, choice):
        seen.append(real(dataset, fitted, choice))
        return seen[-1]

    monkeypatch.setattr(scene, "colour_of", kept)
    return seen


def choice(app, digest: str):
    return app.radio(key=f"colour-{digest[:8]}")


def test_a_pixel_colours_the_points_and_the_choice_is_kept(start, colours):
    digits = load("digits")
    app, key = healthy(start()), f"feature-{digits.digest[:8]}"
    assert choice(app, digits.digest).options == [
        *("Digit", "Residual", "Membership", "Likelihood", "Trust of the panels", "Pixel…")
    ]
    assert key not in [box.key for box in app.selectbox]
    choice(app, digits.digest).set_value(controls.FEATURE).run()
    assert len(healthy(app).selectbox(key=key).options) == 64
    assert colours[-1].name == "pixel row 5, column 5"
    app.selectbox(key=key).set_value(21).run()
    np.testing.assert_array_equal(colours[-1].values, digits.X[:, 21])
    healthy(go(app, "components/gallery"))
    healthy(go(app, "explore"))
    assert app.selectbox(key=key).value == 21


def test_columns_of_a_table_are_offered_by_name_beside_all_labels(start, colours):
    X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    missing = np.zeros(X.shape, dtype=bool)
    missing[5, 2] = True
    labels = {name: np.array(["a", "b"] * 20) for name in ("kind", "column", "third")}
    names = ("*a*", "b", "<b>c</b>")
    table = Dataset("t", X, np.arange(40), labels, feature_names=names, missing=missing)
    app = healthy(start(data=DatasetStore(home()).put(table)))
    box = choice(app, table.digest)
    assert box.options[:3] == ["Kind", "Column", "Third"]
    assert box.options[-1] == "Column…"
    box.set_value(controls.FEATURE).run()
    feature = healthy(app).selectbox(key=f"feature-{table.digest[:8]}")
    assert feature.options == list(names)
    feature.set_value(2).run()
    assert (healthy(app) and colours[-1].name) == "<b>c</b>"
    assert np.flatnonzero(np.isnan(colours[-1].values)).tolist() == [5]


def test_very_many_columns_are_chosen_by_number_and_none_is_left_out(start, colours):
    total = controls.MOST_LISTED + 1
    X = np.random.default_rng(0).normal(size=(30, total)).astype(np.float32)
    wide = Dataset("wide", X, np.arange(30))
    app = healthy(start(data=DatasetStore(home()).put(wide)))
    choice(app, wide.digest).set_value(controls.FEATURE).run()
    box = healthy(app).number_input(key=f"feature-{wide.digest[:8]}")
    assert (box.min, box.max, box.value) == (1, total, 1)
    box.set_value(total).run()
    assert (healthy(app) and colours[-1].name) == f"feature {total}"
    np.testing.assert_array_equal(colours[-1].values, X[:, -1].astype(float))


def opened(start, X: np.ndarray):
    ids = np.array([f"row {i}" for i in range(len(X))])
    labels = {"kind": np.arange(len(X)) % 3}
    return healthy(start("explore", data=DatasetStore(home()).put(Dataset("few", X, ids, labels))))


def select_left_out(app, mask: np.ndarray):
    test_pages.select(app, np.flatnonzero(mask), len(mask))
    app.query_params["tab"] = "selection"
    return healthy(app.run())


def on_screen(app) -> Dataset:
    return DatasetStore(home()).get(address(app)["data"])


def test_a_row_that_holds_the_variance_is_named_left_out_and_put_back(start):
    X = np.random.default_rng(0).normal(size=(60, 6))
    X[17] = 500.0
    app = opened(start, X)
    first = address(app)
    assert any("row 17" in text.value and "over 99%" in text.value for text in app.markdown)
    healthy(app.button(key="far_leave_out").click().run())
    left = on_screen(app)
    np.testing.assert_array_equal(left.X, np.delete(X, 17, axis=0))
    assert left.provenance["left_out"]["ids"] == ["row 17"]
    assert left.name == "few, 59 of 60 rows"
    assert (address(app)["k"], address(app)["l"]) == (first["k"], first["l"])
    assert not any("of the variance in the components" in text.value for text in app.markdown)
    healthy(app.button(key="put_back").click().run())
    assert address(app)["data"] == first["data"]
    assert "60 rows × 6" in html(app)


def test_the_selection_is_left_out_or_kept_alone_step_by_step(start):
    X = np.random.default_rng(1).normal(size=(60, 6))
    app = opened(start, X)
    every = on_screen(app)
    select_left_out(app, np.arange(60) < 20)
    healthy(app.button(key="fit_only_these").click().run())
    assert on_screen(app).ids.tolist() == every.ids[:20].tolist()
    select_left_out(app, np.arange(20) < 5)
    healthy(app.button(key="leave_out").click().run())
    assert on_screen(app).ids.tolist() == every.ids[5:20].tolist()
    noted = on_screen(app).provenance["left_out"]
    assert (noted["of"], noted["n"]) == (every.digest, 60)
    assert sorted(noted["ids"]) == sorted([*every.ids[:5], *every.ids[20:]])
    assert noted["why"] == "40 rows that were not selected, 5 selected rows"


def test_fewer_than_two_rows_are_not_left(start):
    app = opened(start, np.random.default_rng(2).normal(size=(60, 6)))
    digest = address(app)["data"]
    select_left_out(app, np.arange(60) < 59)
    app.button(key="leave_out").click().run()
    assert sentences(app) == [
        "A data set needs at least 2 rows; got 1, so add rows or choose more of them."
    ]
    assert address(app)["data"] == digest


@pytest.fixture(scope="module")
def gappy() -> Dataset:
    X = planted(120, 6, 4, 2, seed=0, noise=0.1).X
    missing = np.random.default_rng(1).random(X.shape) < 0.1
    missing[0] = False
    full = np.where(missing, np.nanmean(np.where(missing, np.nan, X), axis=0), X)
    kinds = {"kind": np.array(["=a", "b"] * 60)}
    return Dataset("gappy <b>", full, np.arange(120).astype(str), kinds, missing=missing)


@pytest.fixture
def stored(gappy) -> str:
    return DatasetStore(home()).put(gappy)


@pytest.fixture
def jobs(monkeypatch) -> ScriptedJobs:
    scripted = ScriptedJobs()
    monkeypatch.setattr(services, "jobs", lambda: scripted)
    return scripted


def text_of(app) -> str:
    return "\n".join(item.value for item in [*app.markdown, *app.caption])


def button(app, label):
    return next(one for one in app.button if one.label == label)


def test_every_page_draws_data_with_missing_cells(start, stored, gappy, jobs):
    app = start(data=stored)
    for page, title in PAGES.items():
        healthy(go(app, page))
        assert [one.value for one in app.title] == [title]
        assert f"{gappy.n_missing} missing cells" in html(app)


@pytest.mark.parametrize(
    ("page", "address", "times"),
    [("check/choose", {}, 1), ("check/trust", {}, 2)],
)
def test_pages_that_read_placeholders_say_so_of_data_with_gaps_alone(
    start, stored, gappy, jobs, page, address, times
):
    said = f"{gappy.n_missing} cells of these data are missing."
    assert text_of(healthy(start(page, data=stored, **address))).count(said) == times
    assert "of these data are missing" not in text_of(healthy(start(page, **address)))


def test_other_models_refuse_in_a_box(start, stored):
    app = start("explore", data=stored)
    app.selectbox(key="set-inference").select("hard").run()
    assert not app.exception
    (said,) = sentences(app)
    assert "choose Adaptive PPCA by exact EM or Probabilistic PCA" in said


def test_the_filled_table_holds_what_was_observed_and_what_the_model_says(gappy):
    values = np.arange(gappy.n_missing) + 100.0
    back = pd.read_csv(io.BytesIO(filled_csv(gappy, values)))
    assert list(back.columns) == ["id", "kind", *(f"feature_{j + 1}" for j in range(6))]
    X = back.iloc[:, 2:].to_numpy()
    np.testing.assert_array_equal(X[gappy.missing], values)
    np.testing.assert_allclose(X[~gappy.missing], gappy.X[~gappy.missing])
    assert back["kind"][0] == "'=a"  # a spreadsheet must not run it


SHORT = {"n_chains": 2, "burn_in": 10, "n_draws": 20}
SAMPLED = ["NPPCA", *(pytest.param(one, marks=pytest.mark.thorough) for one in ("isFA", "fsFA"))]


@pytest.fixture
def wine(start):
    """Return the Fit page with the wine table open."""
    app = start("data/open")
    app.button(key="source-wine-open").click().run()
    return go(app, "explore")


def fit(app):
    """Fit what the page has on screen, as its worker would, and keep the run."""
    config = app.session_state["config"]
    result = fit_run(services.dataset(config.dataset), config)
    return RunStore(home()).save(config, result)


def choose(app, model: str):
    app.selectbox(key="set-model").select(model).run()
    for name, value in SHORT.items():
        keys = [widget.key for widget in app.number_input]
        if f"set-{name}" in keys:
            app.number_input(key=f"set-{name}").set_value(value).run()
    if "max_components" in app.session_state["config"].parameters:
        number(app, "k").set_value(6).run()
    return healthy(app)


@pytest.mark.parametrize(
    "model",
    ["aPPCA", *(pytest.param(one, marks=pytest.mark.thorough) for one in MODELS if one != "aPPCA")],
)
def test_a_model_is_chosen_fitted_and_shown_on_every_page(wine, start, model):
    app = choose(wine, model)
    assert MODELS[model].about in [text.value for text in app.caption]
    run = fit(app)
    app = healthy(app.run())
    assert run.config.model == model
    assert address(app)["run"] == run.id
    assert run.id in html(app)
    for page in ("explore", "check/trust", "explore", "export"):
        app = healthy(go(app, page))
    again = healthy(start(run=run.id))
    assert MODELS[model].title in html(again)


@pytest.mark.parametrize("model", SAMPLED)
def test_a_model_that_learns_the_number_says_what_it_found(wine, model):
    app = choose(wine, model)
    assert "l" not in address(app)
    assert address(app)["k"] == "6"
    run = fit(app)
    assert f"{len(run.fitted.components)} in the best draw" in html(app.run())
    app = healthy(go(app, "explore"))
    assert [one.label for one in app.slider][:1] == ["K"]
    assert html(app).count('class="ca-piece"') == len(run.fitted.components)


def test_the_way_from_one_model_to_another_keeps_what_both_understand(wine):
    app = wine
    number(app, "k").set_value(6).run()
    app.selectbox(key="set-init").select("quartimax").run()
    app = choose(app, "aFA")
    assert number(app, "k").value == 6
    assert app.selectbox(key="set-init").value == "auto"
    app.selectbox(key="set-inference").select("gibbs").run()
    app.number_input(key="set-n_draws").set_value(77).run()
    app.selectbox(key="set-model").select("aPPCA").run()
    assert app.selectbox(key="set-inference").value == "gibbs"
    assert app.number_input(key="set-n_draws").value == 77
    app.selectbox(key="set-inference").select("em").run()
    assert "n_draws" not in app.session_state["config"].parameters
    healthy(app)


def test_a_number_may_be_fixed_that_is_learned_else(wine):
    app = choose(wine, "isFA")
    app.selectbox(key="set-alpha").select("fixed").run()
    app.number_input(key="set-alpha-value").set_value(2.5).run()
    assert app.session_state["config"].parameters["alpha"] == 2.5
    assert fit(healthy(app)).fitted.alpha == 2.5


@pytest.mark.thorough
def test_data_in_which_nothing_is_found_are_shown_as_such_on_every_page(start):
    values = np.random.default_rng(0).normal(size=(200, 4))
    table = "\n".join(["a,b,c,d", *(",".join(f"{x:.4f}" for x in row) for row in values)])
    app = upload(start("data/open"), table_of(table))
    run = fit(number(choose(go(app, "explore"), "NPPCA"), "k").set_value(1).run())
    assert not run.fitted.active.any()
    for page, title in PAGES.items():
        app = healthy(go(start(run=run.id), page))
        assert app.title[0].value == title
    app = healthy(start(run=run.id))
    assert any("No row uses any component" in caption.value for caption in app.caption)


@pytest.mark.thorough
@pytest.mark.parametrize("inference", ["em", "gibbs"])
def test_the_extensions_of_the_main_model_are_chosen_fitted_and_shown_on_every_page(
    wine, start, inference
):
    """Noise per feature, which is not sampled, is chosen with EM alone."""
    app, sizes = wine, ["L learned", "row scales"]
    app.selectbox(key="set-inference").select(inference).run()
    for name, value in SHORT.items() if inference == "gibbs" else ():
        app.number_input(key=f"set-{name}").set_value(value).run()
    for name in ("row_scale", "n_active"):
        app.selectbox(key=f"set-{name}").select("learned").run()
    if inference == "em":
        app.selectbox(key="set-noise").select("feature").run()
        sizes.append("noise per feature")
    assert "L learned" in [text.value for text in healthy(app).markdown]
    assert "l-0" not in [slider.key for slider in app.slider]
    run = fit(app)
    assert run.config.is_sampled == (inference == "gibbs")
    for place in PAGES:
        app = healthy(go(app, place))
    again = healthy(start(run=run.id))
    for size in sizes:
        assert size in html(again)


@pytest.mark.thorough
def test_settings_that_exclude_one_another_give_way_to_the_one_chosen_last(wine):
    app = wine

    def chosen() -> dict:
        return healthy(app).session_state["config"].parameters

    app.selectbox(key="set-latent_variance").select("fixed").run()
    app.selectbox(key="set-noise").select("feature").run()
    assert (chosen()["noise"], chosen()["latent_variance"]) == ("feature", "shared")
    app.selectbox(key="set-n_active").select("learned").run()
    app.selectbox(key="set-inference").select("gibbs").run()
    now = chosen()
    assert (now["inference"], now["noise"], now["n_active"]) == ("gibbs", "shared", "learned")
    app.selectbox(key="set-row_scale").select("learned").run()
    assert (chosen()["inference"], chosen()["row_scale"]) == ("gibbs", "learned")
    app.selectbox(key="set-z_update").select("swap").run()
    now = chosen()
    assert (now["z_update"], now["row_scale"], now["n_active"]) == ("swap", "none", 2)
    app.selectbox(key="set-n_active").select("learned").run()
    assert (chosen()["z_update"], chosen()["inference"]) == ("block", "gibbs")
    app.selectbox(key="set-inference").select("hard").run()
    assert (chosen()["inference"], chosen()["n_active"]) == ("hard", 2)
    app.selectbox(key="set-row_scale").select("learned").run()
    assert (chosen()["inference"], chosen()["row_scale"]) == ("em", "learned")
    app.selectbox(key="set-inference").select("gibbs").run()
    app.selectbox(key="set-noise").select("feature").run()
    assert (chosen()["inference"], chosen()["row_scale"]) == ("em", "learned")
    app.selectbox(key="set-n_active").select("learned").run()
    app.selectbox(key="set-n_active").select("fixed").run()
    assert chosen()["n_active"] == 2


PAGE_UMAP = "explore"


def stored_map(app, trust: np.ndarray | None = None, **options: object) -> np.ndarray:
    """Store a map for what is on screen, as a job would."""
    run = RunStore(home()).get(address(app)["run"])
    config = EmbeddingConfig(run.config.dataset, run.config.preprocessing, **options)
    rows = np.random.default_rng(0).normal(size=(1797, 2)).astype(np.float32)
    EmbeddingStore(home()).save(config, Embedding(rows, trust))
    return rows


def test_the_map_is_offered_until_it_is_there_and_offered_anew_for_other_settings(start):
    app = healthy(start(PAGE_UMAP))
    view = app.segmented_control(key="view-2")
    assert view.options == ["Subspaces", "PCA", "Map"]
    healthy(view.set_value("umap").run())
    assert app.button(key="umap_run").label == "Lay out the map, about 17 s"
    stored_map(app)
    assert "umap_run" not in [button.key for button in healthy(app.run()).button]
    healthy(app.number_input(key="umap_min_dist").set_value(0.5).run())
    healthy(app.run())
    assert app.button(key="umap_run")
    stored_map(app, min_dist=0.5)
    assert "umap_run" not in [button.key for button in healthy(app.run()).button]


@pytest.mark.parametrize("n_rows", [2, 3])
def test_fewer_rows_than_have_neighbours_are_said_to_be_too_few(start, n_rows):
    few = Dataset("few", np.random.default_rng(0).normal(size=(n_rows, 4)), list("abc")[:n_rows])
    app = healthy(start(PAGE_UMAP, data=DatasetStore(home()).put(few)))
    view = next(one for one in app.segmented_control if one.key.startswith("view-"))
    healthy(view.set_value("umap").run())
    told = [text.value for text in app.caption if "A map needs" in text.value]
    assert bool(told) == (n_rows == 2)


def test_rows_are_coloured_by_the_trust_of_their_panels(start, monkeypatch):
    app = healthy(start(PAGE_UMAP))
    colour = next(box for box in app.radio if box.key.startswith("colour-")).key
    drawn = []
    monkeypatch.setattr(canvas, "trust_colour", lambda *of: drawn.append(of) or trust_colour(*of))
    healthy(app.radio(key=colour).set_value("panels").run())
    [(levels, title)] = drawn
    assert (title, levels.shape) == ("Trust of the panels", (1797, 3))
    assert 0 < np.nanmean(levels[:, 0]) < 0.5


def test_rows_are_coloured_by_the_trust_of_a_map_that_has_it_and_the_choice_ends_with_it(start):
    app = healthy(start(PAGE_UMAP))
    colour = next(box for box in app.radio if box.key.startswith("colour-")).key
    assert "Trust of the map" not in app.radio(key=colour).options
    trust = np.tile(np.float32([0.1, 0.02, 0.6]), (1797, 1))
    stored_map(app, trust)
    first = healthy(start(PAGE_UMAP))  # another window, before it has drawn any fit
    assert "Trust of the map" in first.radio(key=colour).options
    healthy(app.run())
    healthy(app.radio(key=colour).set_value("trust").run())
    text = "Trustworthiness 0.900, continuity 0.980, nearest rows kept 60%. 1,797 of 1,797 rows"
    assert any(caption.value.startswith(text) for caption in app.caption)
    healthy(go(app, "export"))
    healthy(go(app, "explore"))
    healthy(app.radio(key=colour).set_value("trust").run())
    stored_map(app, None)
    assert healthy(app.run()).radio(key=colour).value != "trust"
