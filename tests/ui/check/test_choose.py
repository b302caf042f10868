"""The page Choose K and L: offered, running, finished, adopted, and back after a reload."""

import json

import numpy as np
import pytest

from appca.analysis.choose import GridConfig, StabilityConfig
from appca.data.dataset import Dataset
from appca.data.preprocessing import suggest
from appca.data.store import DatasetStore
from appca.runs.fit import fit_run
from appca.runs.home import home
from appca.runs.run import RunConfig, defaults
from appca.runs.store import RunStore
from appca.ui import services
from tests.models.synthetic import planted
from tests.ui.conftest import address, healthy, html
from tests.ui.session.test_background import ScriptedJobs

PAGE, START = "check/choose", "grid_start"


@pytest.fixture(scope="module")
def table() -> Dataset:
    """Rows that use two of four components."""
    X = planted(150, 6, 4, 2, seed=0, noise=0.1).X
    return Dataset("four, <b>two</b>", X, np.arange(150).astype(str), {}, None, None, {})


@pytest.fixture
def stored(table) -> str:
    return DatasetStore(home()).put(table)


@pytest.fixture
def jobs(monkeypatch) -> ScriptedJobs:
    scripted = ScriptedJobs()
    monkeypatch.setattr(services, "jobs", lambda: scripted)
    return scripted


def grid_of(table: Dataset, **changes) -> GridConfig:
    """The grid the page makes of these numbers."""
    given = {"components": range(2, 6), "actives": (1, 2, 3), "parameters": defaults("aPPCA")}
    preprocessing = suggest(table).to_dict()
    return GridConfig(
        dataset=table.digest, preprocessing=preprocessing, model="aPPCA", **given | changes
    )


def measured(table: Dataset, upto: int | None = None, **changes) -> GridConfig:
    """Measure a grid in the test's home, whole or its first fits."""
    config, begun = grid_of(table, **changes), []

    def stop(place, _share):
        begun.append(place)
        if len(begun) == upto:
            raise KeyboardInterrupt

    try:
        config.complete(table, home(), stop)
    except KeyboardInterrupt:
        assert upto is not None
    return config


def heat_map(app) -> dict:
    specs = [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]
    return next(spec for spec in specs if spec["data"][0]["type"] == "heatmap")


def test_a_model_without_l_gets_a_button_that_switches(start, stored):
    run = RunConfig(stored, {}, "PPCA", {"n_components": 2})
    RunStore(home()).save(run, fit_run(DatasetStore(home()).get(stored), run))
    app = healthy(start(PAGE, run=run.id))
    assert "adaptive PPCA or adaptive factor" in html(app)
    app.button(key="choose_model_aPPCA").click().run()
    assert app.button(key=START)


def test_a_running_grid_fills_and_what_is_done_survives_cancel_and_reload(
    start, stored, table, jobs
):
    app = start(PAGE, data=stored)
    app.button(key=START).click().run()
    (status,) = jobs.jobs.values()
    assert status.kind == "grid"
    config = GridConfig.from_dict({k: v for k, v in status.spec.items() if k != "key"})
    assert address(app)["grid"] == config.id == status.spec["key"]
    again = healthy(start(PAGE, **address(app)))
    assert "choose_cancel" in [one.key for one in again.button]
    part = measured(table, upto=26, components=config.components, actives=config.actives)
    assert part.id == config.id
    app.run()
    assert [row for row in heat_map(healthy(app))["data"][0]["text"] if any(row)]
    app.button(key="choose_cancel").click().run()
    assert jobs.cancelled == [status.id]
    assert f"25 of {len(config.steps())} fits are done" in html(healthy(app))
    assert app.button(key=START).label.startswith("Go on")


def test_the_answer_is_adopted_for_all_pages(start, stored, table):
    config = measured(table)
    app = healthy(start(PAGE, data=stored, grid=config.id, k="3", l="1"))
    assert "Try K = 4 and L = 2" in html(app)
    assert heat_map(app)["data"][1]["hovertemplate"].count("nats per row") == 1
    app.button(key="choose_adopt").click().run()
    assert (address(healthy(app))["k"], address(app)["l"]) == ("4", "2")
    assert app.button(key="choose_adopt").disabled


@pytest.mark.thorough
def test_a_grid_comes_back_by_its_address_and_else_the_last_one_does(start, stored, table):
    first = measured(table, components=(2, 4), actives=(1,), n_folds=2, max_rows=140)
    measured(table, components=(3,), actives=(2,), n_folds=2)
    app = healthy(start(PAGE, data=stored, grid=first.id))
    assert next(box for box in app.number_input if "choose_k_to" in box.key).value == 4
    assert address(app)["grid"] == first.id
    app = healthy(start(PAGE, data=stored))
    assert next(box for box in app.number_input if "choose_k_from" in box.key).value in {2, 3}
    assert START not in [one.key for one in app.button]
    app = healthy(start(PAGE, data=stored, grid="../../etc"))
    assert address(app)["grid"] != "../../etc"


def test_three_rows_are_too_few_and_said_to_be(start):
    few = Dataset("few", np.eye(3), np.arange(3).astype(str), {}, None, None, {})
    app = healthy(start(PAGE, data=DatasetStore(home()).put(few)))
    assert "needs at least 4" in app.info[0].value


def test_whether_components_come_back_is_offered_and_told(start, stored, table, jobs):
    app = healthy(start("check/trust", data=stored, k="4", l="2"))
    app.button(key="stability_start").click().run()
    (status,) = jobs.jobs.values()
    config = StabilityConfig.from_dict({k: v for k, v in status.spec.items() if k != "key"})
    assert (status.kind, config.parameters["n_active"], config.repeats) == ("stability", 2, 8)
    store = config.journal(home())
    store.begin(config.id, config.to_dict())
    for fit in range(9):
        store.append(config.id, [fit, 1.0 + 0.5 * (fit == 3), 1.0, 0.99, 0.9, 0.2])
    jobs.end(status.id, "done", stability=config.id)
    app.run()
    assert "2 of 4 components come back with other random starts" in html(healthy(app))
    assert any("0.50 nats per row higher" in one.value for one in app.caption)


def test_the_grid_of_a_sampled_model_is_by_em(start, stored, jobs):
    run = RunConfig(stored, {}, "aFA", {"inference": "gibbs", "n_components": 3, "n_active": 1})
    small = run.to_be_fitted(
        parameters=run.parameters | {"n_chains": 1, "burn_in": 2, "n_draws": 2}
    )
    RunStore(home()).save(small, fit_run(DatasetStore(home()).get(stored), small))
    app = healthy(start(PAGE, run=small.id))
    app.button(key=START).click().run()
    (status,) = jobs.jobs.values()
    assert (status.spec["model"], status.spec["parameters"]["inference"]) == ("aFA", "em")
    assert "n_draws" not in status.spec["parameters"]
