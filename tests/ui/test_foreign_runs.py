"""Runs of the command line, which allows more than the pages do, are shown as they were fitted."""

from appca.data.builtin import load
from appca.data.store import DatasetStore
from appca.runs.config import RunConfig, defaults
from appca.runs.fit import fit_run
from appca.runs.home import home
from appca.runs.store import RunStore
from appca.ui import services
from tests.ui.conftest import address, healthy
from tests.ui.test_background import ScriptedJobs


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
    short = {"n_chains": 1, "burn_in": 2, "n_draws": 3, "max_components": 10}
    config = stored_run("planes", "NPPCA", **short)
    app = healthy(start(run=config.id))
    assert (app.slider(key="k").value, address(app)["run"]) == (10, config.id)
    app = healthy(app.switch_page("pages/data/fit.py").run())
    assert app.number_input(key="set-max_components").value == 10
    app = healthy(app.switch_page("pages/explore/subspaces.py").run())
    app.slider(key="k").set_value(2).run()
    assert (app.slider(key="k").value, address(app)["k"]) == (2, "2")
