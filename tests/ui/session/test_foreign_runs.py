"""Runs of the command line, which allows more than the pages do, are shown as they were fitted."""

from dataclasses import replace

import pytest

from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.runs.fit import fit_run
from appca.runs.home import home
from appca.runs.run import FitResult, RunConfig, defaults
from appca.runs.store import RunStore
from appca.ui import services
from tests.ui.conftest import address, healthy, number, slider
from tests.ui.session.test_background import ScriptedJobs


def stored_run(data: str, model: str, preprocessing: dict | None = None, **parameters) -> RunConfig:
    """Fit and keep a run as ``python -m appca fit --store`` does."""
    dataset = load(data)
    DatasetStore(home()).put(dataset)
    config = RunConfig(dataset.digest, preprocessing or {}, model, defaults(model) | parameters)
    RunStore(home()).save(config, fit_run(dataset, config))
    return config


def test_more_components_allowed_than_features_are_shown_and_can_be_lowered(start, monkeypatch):
    jobs = ScriptedJobs()
    monkeypatch.setattr(services, "jobs", lambda: jobs)
    quick = stored_run("planes", "aPPCA", n_components=2, n_active=1)
    config = replace(quick, model="NPPCA", parameters=defaults("NPPCA") | {"max_components": 10})
    # Its numbers stand for those of the chains, which take long to compile.
    fitted, info = RunStore(home()).get(quick.id).fitted, RunStore(home()).get(quick.id).info
    RunStore(home()).save(config, FitResult(fitted, info))
    app = healthy(start(run=config.id))
    assert (slider(app, "k").value, address(app)["run"]) == (10, config.id)
    assert number(app, "k").value == 10
    slider(app, "k").set_value(2).run()
    assert (slider(app, "k").value, address(app)["k"]) == (2, "2")


def test_values_beyond_the_widgets_ranges_are_shown_and_kept(start):
    before = {"pca": 0.99995, "divide": 1e-10}
    config = stored_run("wine", "PPCA", before, n_components=2)
    app = healthy(start("data/this", run=config.id))
    assert app.number_input(key="pre-share").value == pytest.approx(99.995, abs=1e-9)
    assert app.number_input(key="pre-divide").value == 1e-10
    app = healthy(app.toggle(key="pre-centre").set_value(True).run())
    changed = app.session_state["config"].preprocessing
    assert (changed["pca"], changed["divide"], changed["centre"]) == (0.99995, 1e-10, True)
    many = {"n_components": 2, "n_active": 1, "max_iter": 200_000, "latent_variance": 2e9}
    config = stored_run("wine", "aPPCA", {"scale": "feature"}, **many)
    app = healthy(start("explore", run=config.id))
    assert address(app)["run"] == config.id
    assert app.number_input(key="set-max_iter").value == 200_000
    assert app.number_input(key="set-latent_variance-value").value == 2e9
    app = healthy(app.number_input(key="set-max_iter").set_value(150_000).run())
    assert app.session_state["config"].parameters == config.parameters | {"max_iter": 150_000}


def test_a_number_that_no_browser_can_count_to_does_not_break_the_page(start):
    config = stored_run("wine", "aPPCA", n_components=2, n_active=1, max_iter=10**17)
    assert address(healthy(start("explore", run=config.id)))["run"] == config.id
