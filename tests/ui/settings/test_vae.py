"""The autoencoder on the pages: offered, waited for, shown, and shared by all fits behind it."""

import numpy as np
import pytest

from appca.data.prepared import prepared
from appca.data.preprocessing import Fitted, Preprocessing
from appca.data.sources.builtin import load
from appca.data.store import DatasetStore
from appca.data.vae.autoencoder import VAE
from appca.data.vae.autoencoder import suggest as suggest_vae
from appca.runs.home import home
from appca.ui.session import services, state
from appca.ui.settings import vae
from tests.ui.conftest import go, healthy
from tests.ui.session.test_background import ScriptedJobs

TINY = Preprocessing(divide=16.0, vae=VAE(dimensions=3, hidden=16, epochs=2))


@pytest.fixture
def jobs(monkeypatch) -> ScriptedJobs:
    scripted = ScriptedJobs()
    monkeypatch.setattr(services, "jobs", lambda: scripted)
    return scripted


def learned() -> Fitted:
    """Train the tiny autoencoder on the digits, as a worker would."""
    digits = load("digits")
    DatasetStore(home()).put(digits)
    return prepared(digits, TINY, home())


def choose_vae(app, **options):
    app.selectbox(key="pre-reduce").select("vae").run()
    for name, value in options.items():
        app.number_input(key=f"pre-vae-{name}").set_value(value).run()
    return healthy(app)


def texts(app) -> str:
    return "\n".join(item.value for item in [*app.markdown, *app.caption])


def preprocessing_of(app) -> dict:
    return app.session_state[state.KEYS.config].preprocessing


def test_choosing_it_suggests_options_and_a_fit_goes_to_the_worker(start, jobs):
    app = choose_vae(start("data/this"))
    assert preprocessing_of(app)["vae"] == suggest_vae(1797, 64).to_dict()
    assert "learns from all 1,797 rows, about" in texts(app)
    app = choose_vae(app, dimensions=3, epochs=7)
    assert preprocessing_of(app)["vae"]["epochs"] == 7
    assert app.session_state[state.KEYS.config].k == 3, "no more components than features are left"
    assert jobs.jobs == {}
    app.button(key="pre-vae-start").click().run()
    (job,) = jobs.jobs.values()
    assert job.kind == "fit"
    assert job.spec["config"]["preprocessing"] == preprocessing_of(app)
    app.selectbox(key="pre-reduce").select("none").run()
    assert "vae" not in preprocessing_of(healthy(app))


@pytest.mark.thorough  # tests/jobs/test_vae_job trains one in every run
def test_a_trained_one_is_shown_and_fits_behind_it_need_no_worker(start, jobs, monkeypatch):
    learned()
    app = choose_vae(start("data/this"), dimensions=3, hidden=16, epochs=2)

    def train(*_given: object) -> None:
        raise AssertionError("the page must not train")

    monkeypatch.setattr("appca.data.vae.training.train", train)
    healthy(app.run())
    assert "64 features became 3, which keep" in texts(app)
    assert "decoded from codes drawn at random" in texts(app)
    assert len(app.get("plotly_chart")) == 1
    go(app, "explore")
    assert "64 features became 3" in texts(healthy(app))
    run = services.runs().get(app.session_state[state.KEYS.config].id)
    assert run.fitted.components.shape == (3, 3)
    assert run.fitted.preprocessing.vae.losses.shape == (2,)
    assert jobs.jobs == {}


@pytest.mark.thorough
def test_the_share_kept_is_one_minus_the_squared_error_in_units_of_the_fit():
    digits, fitted = load("digits"), learned()
    share, rows = vae.kept_share(digits, fitted, fitted.vae)
    X = digits.X / 16
    again = fitted.inverse_transform(fitted.transform(digits.X)) / 16
    assert rows == 1797
    assert share == pytest.approx(1 - np.square(X - again).mean() / X.var(axis=0).mean(), abs=1e-5)
