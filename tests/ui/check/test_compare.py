"""Compare and Map quality: another fit beside this one; near rows kept, before and after."""

import numpy as np
import pytest

from appca.data.dataset import Dataset
from appca.data.preprocessing import suggest
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.jobs.tasks import QualityConfig
from appca.runs.fit import fit_run
from appca.runs.home import home
from appca.runs.run import RunConfig
from appca.runs.store import Run, RunStore
from appca.ui import compare, services, state
from tests.ui.conftest import address, healthy, html
from tests.ui.session.test_background import ScriptedJobs

PAGE = "check/trust"


@pytest.fixture(scope="module")
def wine() -> Dataset:
    return load("wine")


def stored(dataset: Dataset, model: str = "aPPCA", **parameters: object) -> Run:
    DatasetStore(home()).put(dataset)
    config = RunConfig(dataset.digest, suggest(dataset).to_dict(), model, parameters)
    return RunStore(home()).save(config, fit_run(dataset, config))


@pytest.fixture
def jobs(monkeypatch) -> ScriptedJobs:
    scripted = ScriptedJobs()
    monkeypatch.setattr(services, "jobs", lambda: scripted)
    return scripted


def line(key: str, size: int, used: int, **values: object) -> dict:
    names = ("log_likelihood", "log_likelihood_error", "mse", "mae", "accuracy")
    near = {name: [0.9, 0.0] for name in ("trustworthiness", "continuity", "kept")}
    given = dict.fromkeys(names) | near | {"note": "", "seconds": 0.5, "n_neighbors": 15}
    return given | {"key": key, "title": f"<{key}>", "size": size, "used": used} | values


def comparison() -> list[dict]:
    return [
        line("own", 4, 2, log_likelihood=-14.0, log_likelihood_error=0.5, mse=0.3),
        line("ppca_l", 2, 2, log_likelihood=-16.0, log_likelihood_error=0.5, mse=0.4),
        line("pca", 4, 4, log_likelihood=-13.0, log_likelihood_error=0.5, mse=0.2),
        line("mixture", 4, 4, note="not finished within 120 s", seconds=None, kept=None),
        line("umap", 2, 2, kept=[0.95, 0.004]),
    ]


def config_of(run: Run, **changes: object) -> QualityConfig:
    return QualityConfig(run.config.to_dict(), run.config.k, run.config.n_active, **changes)


def another_start(app):
    """Compare the fit on screen with the one from another start."""
    now = RunStore(home()).get(address(app)["run"]).config
    again = now.parameters | {"random_state": now.parameters["random_state"] + 1}
    box = next(box for box in app.selectbox if box.label == "Compare with")
    return healthy(box.select(now.to_be_fitted(parameters=again).id).run())


def test_a_first_visit_compares_with_pca_and_one_press_with_others(start, wine):
    DatasetStore(home()).put(wine)
    app = healthy(start(PAGE, data=wine.digest))
    own = address(app)["run"]
    (other,) = (run for run in RunStore(home()).list() if run.id != own)
    assert (other.config.model, address(app)["with"]) == ("PPCA", other.id)
    assert "components are the same" in html(app)
    assert "components shared" not in html(app), "PCA has no supports"
    assert not [button for button in app.button if button.key == "moved_select"]
    another_start(app)
    assert RunStore(home()).get(address(app)["with"]).config.parameters["random_state"] == 1
    assert address(app)["run"] == own
    assert "components shared" in html(app)


def test_rows_that_differ_are_selected_everywhere_and_the_pair_comes_back(start, wine):
    first = stored(wine, n_components=4, n_active=2)
    second = stored(wine, n_components=5, n_active=2)
    app = healthy(start(PAGE, run=first.id, **{"with": second.id}))
    app.button(key="moved_select").click().run()
    mask = app.session_state[state.KEYS.selections][wine.digest]
    assert 0 < mask.mean() < 1
    assert f"Select the {mask.sum()} rows that differ" in [one.label for one in app.button]
    again = healthy(start(PAGE, **address(app)))
    assert address(again)["with"] == second.id


def test_runs_of_other_data_or_damaged_ones_are_not_offered(start, wine):
    first, _ = stored(wine, "PPCA", n_components=3), stored(load("breast_cancer"), n_components=3)
    app = healthy(start(PAGE, run=first.id))
    assert not [box for box in app.selectbox if box.label == "Compare with"]
    assert "What would you like to compare with?" in [one.value for one in app.caption]
    other = stored(wine, "PPCA", n_components=2)
    again = healthy(start(PAGE, run=first.id, **{"with": "../nonsense"}))
    box = next(box for box in again.selectbox if box.label == "Compare with")
    assert box.value == other.id


def test_a_long_variation_runs_as_a_job_and_is_compared_when_it_is_ready(
    start, wine, jobs, monkeypatch
):
    first = stored(wine, n_components=3, n_active=2)
    monkeypatch.setattr("appca.ui.fits.LIVE_SECONDS", -1.0)
    app = healthy(start(PAGE, run=first.id))
    another_start(app).button(key="compare_fit").click().run()
    (job,) = jobs.active()
    assert app.button(key="job_cancel")
    jobs.finish_fit(job.id)
    healthy(app.run())
    assert address(app)["run"] == first.id
    assert address(app)["with"] == jobs.status(job.id).result["run"]


def test_names_from_files_are_shown_and_not_run(start):
    rng = np.random.default_rng(0)
    ids, names = np.arange(60).astype(str), ("<b>a</b>", "b", "c", "d")
    labels = {"<i>kind</i>": np.where(np.arange(60) % 2, "<u>x</u>", "=1+1")}
    own = Dataset("<s>own</s>", rng.standard_normal((60, 4)), ids, labels, None, names, {})
    first, other = stored(own, n_components=3, n_active=2), stored(own, n_components=3, n_active=1)
    RunStore(home()).rename(other.id, "<em>mine</em>")
    app = healthy(start(PAGE, run=first.id, **{"with": other.id}))
    assert not any(mark in html(app) for mark in ("<em>", "<b>a", "<u>", "<i>kind"))


def test_map_quality_is_measured_on_demand_and_told(start, wine, jobs):
    run = stored(wine, n_components=4, n_active=2)
    app = healthy(start("check/trust", run=run.id))
    assert "How many near rows stay near?" in html(app)
    app.button(key="quality_start").click().run()
    (job,) = jobs.active()
    config = config_of(run)
    assert (job.kind, job.spec["key"]) == ("quality", config.id)
    journal = config.journal(home())
    journal.begin(config.id, config.to_dict())
    for made in comparison():
        journal.append(config.id, [made["key"], made])
    healthy(app.run()).button(key="quality_cancel").click().run()
    assert app.button(key="quality_start").label.startswith("Go on")
    page = html(healthy(app.run()))
    assert "UMAP keeps 95% of each row&#x27;s 15 nearest rows" in page
    assert "The panels 90%." in page
    assert any("33% more error" in one.value.replace("\\", "") for one in app.markdown)
    (table,) = app.dataframe
    assert len(table.value) == 5


def test_the_table_has_errors_beside_sampled_measures_and_no_empty_columns():
    table = compare.table_of(comparison()).set_index("Method")
    assert list(table["Numbers per row"]) == ["2 of 4", "2", "2", "4", "4"]
    assert table["Neighbours kept"]["<umap>"] == 0.95
    assert table["± neighbours kept"]["<umap>"] == 0.004
    assert (table["Log-likelihood"]["<own>"], table["± log-likelihood"]["<own>"]) == (-14.0, 0.5)
    assert "120 s" in table["Note"]["<mixture>"]
    assert np.isnan(table["Neighbours kept"]["<mixture>"])
    assert "Absolute error" not in table, "no method has it"
    assert set(compare.looks(15)) >= set(table) - {"Numbers per row", "Note"}


def test_each_rival_says_what_it_keeps_that_the_fit_loses():
    lines = comparison()
    assert compare.losses(lines) == [
        "<ppca_l> with 2 numbers per row: 33% more error than this fit, −16.0 nats a row held out, "
        "not −14.0."
    ]
    lines.append(line("ppca_k", 4, 4, mse=0.15))
    assert (
        compare.losses(lines)[0] == "<ppca_k> with 4 numbers per row: 50% less error than this fit."
    )
    assert compare.losses(lines[1:]) == []
