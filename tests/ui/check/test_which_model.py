"""The tab Which model?: a comparison is started, answered, and a model taken with one click."""

import numpy as np

from appca.analysis.compare import METHODS, ModelsConfig
from appca.ui.choose import config_of
from tests.ui.conftest import go, healthy, html

PLACE = "check/advanced"


def measured(app, home, at_floor: float = 0.0, **nats: float) -> ModelsConfig:
    """Store a comparison in which methods differ from the paper's model by so many nats a row."""
    config = config_of(app.session_state["config"])
    store = config.journal(home)
    store.begin(config.id, config.to_dict())
    spread = np.tile([-1.0, 1.0], 50)
    for number, key in enumerate(METHODS):
        mean = nats.get(key.replace("+", "_"), 0.0)
        values = -100.0 + mean + spread * (mean != 0)
        floor = at_floor if "mixture" in key else 0.0
        store.append(config.id, [key, values.tolist(), 200 + number, 0.5, "", floor])
    return config


def test_a_comparison_is_offered_on_its_tab(start, appca_home):
    app = healthy(start(PLACE))
    assert "Which model?" in html(app)
    button = app.button(key="models_start")
    assert button.label.startswith("Compare 16 models, about")
    wanted = config_of(app.session_state["config"]).id
    button.click().run()
    assert [watched.key for watched in app.session_state["watched"].values()] == [wanted]
    measured(other := start("explore", k="3"), appca_home, noise=2.0)
    assert "Use noise per feature" in html(healthy(go(other, PLACE)))
    assert not other.session_state["watched"]


def test_use_this_fits_the_model_that_the_answer_names_and_doubts_are_named(start, appca_home):
    app = start()
    measured(app, appca_home, 0.12, noise_scale=5.0, noise=2.0, mixture=3.0)
    app = healthy(go(app, PLACE))
    page = html(app)
    assert "Use noise per feature and a scale per row" in page
    assert "+5.0 nats a row over the paper&#x27;s model" in page
    assert "Above all rivals: 2.0 nats over Mixture of PPCA, 4 of 2." in page
    assert "Mixture of PPCA, 4 of 2 is doubtful: 12% of noise variances at their floor" in page
    (box,) = (one for one in app.selectbox if one.label == "Variant")
    assert len(box.options) == 8, "rivals cannot be used"
    app.button(key="models_use").click().run()
    chosen = healthy(app).session_state["config"].parameters
    assert (chosen["noise"], chosen["row_scale"], chosen["n_active"]) == ("feature", "learned", 2)
    assert app.button(key="models_use").disabled
    (box,) = (one for one in app.selectbox if one.label == "Variant")
    assert sum("in use" in name for name in box.options) == 1


def test_a_learned_number_is_said_and_taken_back_to_the_same_comparison(start, appca_home):
    app = start(l="1")
    config = measured(app, appca_home, noise_scale_number=9.0, mixture_diagonal=20.0)
    app = healthy(go(app, PLACE))
    assert "Rows then use 0 to 4 components, not 1." in html(app)
    assert "Mixture of factor analyzers, 4 of 1 is 11.0 nats above it" in html(app)
    app.button(key="models_use").click().run()
    assert app.session_state["config"].parameters["n_active"] == "learned"
    assert config_of(app.session_state["config"]).id == config.id
    app = start()
    measured(app, appca_home, noise=0.05)
    app = healthy(go(app, PLACE))
    assert "Keep the paper&#x27;s model" in html(app), "no clear lead"
    assert app.button(key="models_use").disabled
