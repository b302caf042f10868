"""Every model on every page: chosen on the Fit page, fitted by a job, shown and exported."""

import numpy as np
import pytest

from appca.runs.fit import fit_run
from appca.runs.home import home
from appca.runs.run import MODELS
from appca.runs.store import RunStore
from appca.ui import services
from tests.ui.conftest import address, go, healthy, html, number
from tests.ui.parts.test_pages import PAGES, table_of, upload

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
