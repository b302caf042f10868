"""The page Compare: another run beside this one, and other methods, before and after their job."""

import numpy as np
import pytest

from appca.analysis.check.compare import ComponentPair, Matching
from appca.data.dataset import Dataset
from appca.data.preprocessing import suggest
from appca.data.sources.builtin import load
from appca.data.store import DatasetStore
from appca.runs.configuration import RunConfig
from appca.runs.fit import fit_run
from appca.runs.home import home
from appca.runs.quality import MethodComparison, QualityConfig, QualityStore
from appca.runs.store import Run, RunStore
from appca.ui.check import compare, compare_quality, compare_tables
from appca.ui.session import selection, services
from tests.ui.conftest import address, healthy, html
from tests.ui.session.test_background import ScriptedJobs

PAGE = "check/compare"


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
    given = dict.fromkeys(names) | near | {"note": "", "seconds": 0.5}
    return given | {"key": key, "title": f"<{key}>", "size": size, "used": used} | values


def comparison(complete: bool = True) -> MethodComparison:
    lines = [
        line("own", 4, 2, log_likelihood=-14.0, log_likelihood_error=0.5, mse=0.3),
        line("ppca_l", 2, 2, log_likelihood=-16.0, log_likelihood_error=0.5, mse=0.4),
        line("pca", 4, 4, log_likelihood=-13.0, log_likelihood_error=0.5, mse=0.2),
        line("sparse", 4, 4, note="not finished within 120 s", seconds=None, kept=None),
        line("umap", 2, 2, trustworthiness=[0.97, 0.004]),
    ]
    panels = [
        {
            "components": [0, 2],
            "n_rows": 50,
            "panel": [0.9, 0.0],
            "same_rows": [0.8, 0.0],
            "all_rows": [0.7, 0.01],
        }
    ]
    facts = {"n_train": 142, "n_test": 36, "n_features": 13, "n_neighbors": 15, "n_anchors": 142}
    return MethodComparison(lines, panels, facts, complete)


def config_of(run: Run, **changes: object) -> QualityConfig:
    return QualityConfig(run.config.to_dict(), run.config.k, run.config.n_active, **changes)


def test_one_run_alone_gets_variations_at_one_press_and_the_rows_that_moved(start):
    app = healthy(start(PAGE))
    assert next(box.value for box in app.info).startswith("There is no other run")
    labels = [button.label for button in app.button]
    assert {"Fit again with seed 1", "PPCA with 2 components", "PPCA with 4 components"} <= {
        *labels
    }
    own = address(app)["run"]
    press = next(button for button in app.button if button.label == "Fit again with seed 1")
    healthy(press.click().run())
    other = next(run for run in RunStore(home()).list() if run.id != own)
    assert other.config.parameters["random_state"] == 1
    assert address(app)["with"] == other.id
    assert address(app)["run"] == own
    page = html(app)
    assert page.count('class="ca-pair"') == 4
    assert "|cos| 1.000" in page or "|cos| 0.9" in page
    assert len(app.get("plotly_chart")) == 1
    assert {"Same components", "Shared uses", "Adjusted Rand index"} <= {
        metric.label for metric in app.metric
    }


def test_matched_rows_are_selected_everywhere_and_come_back_by_the_address(start, wine):
    first = stored(wine, n_components=4, n_active=2)
    second = stored(wine, n_components=5, n_active=2)
    app = healthy(start(PAGE, run=first.id, **{"with": second.id}))
    assert "only in the other run" in html(app)
    assert any("′ is the other run's own component" in c.value for c in app.caption)
    assert html(app).count("<figure>") == 4 + 5
    share = next(metric for metric in app.metric if metric.label == "Same components").value
    same = float(share.removesuffix("%")) / 100
    assert 0 < same < 1
    app.button(key="moved_select").click().run()
    mask = selected(app, wine)
    assert mask.mean() == pytest.approx(1 - same, abs=0.0006)
    app.selectbox(key="moved").select("same").run()
    healthy(app.button(key="moved_select").click().run())
    assert (selected(app, wine) == ~mask).all()
    again = healthy(start(PAGE, **address(app)))
    assert address(again)["with"] == second.id


def test_sets_of_the_other_run_are_named_by_this_runs_components():
    found = Matching(
        (ComponentPair(0, 3, 1.0, 0.9), ComponentPair(2, 0, -1.0, 0.8)),
        (1,),
        (1, 2),
        np.zeros((3, 4)),
    )
    assert compare.in_own_numbers((0, 3), found) == "{1,3}"
    assert compare.in_own_numbers((0, 1, 2), found) == "{3,2′,3′}"


def selected(app, dataset: Dataset) -> np.ndarray:
    kept = app.session_state[selection.KEYS.selections]
    return kept[dataset.digest].mask


def test_runs_of_other_data_or_damaged_ones_are_not_offered(start, wine):
    first, _ = stored(wine, n_components=3), stored(load("breast_cancer"), n_components=3)
    app = healthy(start(PAGE, run=first.id))
    assert not [box for box in app.selectbox if box.label == "The other run"]
    other = stored(wine, "PPCA", n_components=3)
    again = healthy(start(PAGE, run=first.id, **{"with": "../nonsense"}))
    box = next(box for box in again.selectbox if box.label == "The other run")
    assert box.value == other.id


def test_a_long_variation_runs_as_a_job_and_is_compared_when_it_is_ready(
    start, wine, jobs, monkeypatch
):
    first = stored(wine, n_components=3, n_active=2)
    monkeypatch.setattr("appca.ui.session.fitting.LIVE_SECONDS", -1.0)
    app = healthy(start(PAGE, run=first.id))
    next(b for b in app.button if b.label == "Fit again with seed 1").click().run()
    (job,) = jobs.active()
    assert app.button(key="job_cancel")
    jobs.finish_fit(job.id)
    healthy(app.run())
    assert address(app)["run"] == first.id
    assert address(app)["with"] == jobs.status(job.id).result["run"]
    assert not app.info
    assert "ca-pair" in html(app)


def test_other_methods_are_measured_on_demand_and_shown_as_they_come(start, wine, jobs):
    run = stored(wine, n_components=4, n_active=2)
    app = healthy(start(PAGE, run=run.id, view="methods"))
    app.button(key="quality_start").click().run()
    (job,) = jobs.active()
    config = config_of(run)
    assert (job.kind, job.spec["key"]) == ("quality", config.id)
    assert QualityConfig.from_dict(job.spec["config"]).id == config.id
    store = QualityStore(home())
    store.save(config, comparison(complete=False))
    healthy(app.run())
    assert "&lt;pca&gt;" in html(app)
    reloaded = healthy(start(PAGE, **address(app)))
    assert reloaded.button(key="quality_cancel")
    app.button(key="quality_cancel").click().run()
    assert jobs.cancelled == [job.id]
    assert app.button(key="quality_start").label == "Go on"
    store.save(config, comparison())
    healthy(app.run())
    assert "Crowding" in next(item.value for item in app.subheader)
    assert not [button for button in app.button if button.key == "quality_start"]


def test_the_table_groups_by_numbers_a_row_and_marks_the_best_of_each_group(start, wine):
    run = stored(wine, n_components=4, n_active=2)
    QualityStore(home()).save(config_of(run), comparison())
    app = healthy(start(PAGE, run=run.id, view="methods"))
    page = html(app)
    places = [
        page.index(text) for text in ("2 numbers a row: which of 4", "All 4 numbers", "Pictures")
    ]
    assert places == sorted(places)
    assert '<td class="ca-best">−14.00<small>± 0.50</small></td>' in page
    assert "not finished within 120 s" in page
    assert "0.970<small>± 0.004</small>" in page
    assert "Absolute error" not in page, "a measure that no method has is no column"
    assert "{1,3}" in page
    assert "<pca>" not in page
    assert any("142 rows of 13 features" in c.value.replace("\\", "") for c in app.caption)


def test_the_gain_of_choosing_is_said_in_words(wine):
    run = stored(wine, n_components=4, n_active=2)
    found, config = comparison(), config_of(run)
    assert compare_tables.in_words(config, found) == "", "PPCA with K has not been measured"
    every = line("ppca_k", 4, 4, log_likelihood=-12.0)
    said = compare_tables.in_words(config, found._replace(lines=[*found.lines, every]))
    assert "gains 2.00 nats per row held out over PCA with 2 fixed ones: 50% of what" in said
    surely = found._replace(lines=[*found.lines, every], facts=found.facts | {"gain_error": 0.1})
    assert "gains 2.00 ± 0.10 nats" in compare_tables.in_words(config, surely)
    worse = line("own", 4, 2, log_likelihood=-17.0)
    said = compare_tables.in_words(config, found._replace(lines=[worse, *found.lines[1:], every]))
    assert "loses 1.00 nats per row held out over PCA with 2 fixed ones." in said


def test_the_table_as_csv_has_errors_beside_sampled_measures():
    text = compare_tables.csv_text(comparison()).splitlines()
    head, umap = text[0].split(","), text[-1].split(",")
    row = dict(zip(head, umap, strict=True))
    assert (row["key"], row["trustworthiness"], row["trustworthiness_error"]) == (
        "umap",
        "0.97",
        "0.004",
    )
    assert len(text) == 6


def test_of_many_rows_a_sample_is_offered_and_all_on_request(start, wine, monkeypatch):
    monkeypatch.setattr(compare_quality, "MANY", 100)
    run = stored(wine, n_components=4, n_active=2)
    app = healthy(start(PAGE, run=run.id, view="methods"))
    assert any("four fifths of 100 rows" in item.value for item in app.markdown)
    QualityStore(home()).save(config_of(run), comparison())
    again = healthy(start(PAGE, run=run.id, view="methods"))
    assert "&lt;umap&gt;" in html(again), "what has been measured is shown first"


def test_names_from_files_are_shown_and_not_run_and_unequal_numbers_of_components_said(start):
    rng = np.random.default_rng(0)
    ids, names = np.arange(60).astype(str), ("<b>a</b>", "b", "c", "d")
    labels = {"<i>kind</i>": np.where(np.arange(60) % 2, "<u>x</u>", "=1+1")}
    own = Dataset("<s>own</s>", rng.standard_normal((60, 4)), ids, labels, None, names, {})
    first, other = stored(own, n_components=3, n_active=2), stored(own, n_components=3, n_active=1)
    RunStore(home()).rename(other.id, "<em>mine</em>")
    app = healthy(start(PAGE, run=first.id, **{"with": other.id}))
    assert "&lt;em&gt;mine&lt;/em&gt;" in html(app)
    assert "&lt;b&gt;a&lt;/b&gt;" in html(app)
    assert not any(mark in html(app) for mark in ("<em>", "<b>a", "<u>", "<i>kind"))
    assert any("uses 2 components in this run and 1 in the other" in m.value for m in app.markdown)


def test_a_model_without_fixed_l_and_plain_pca_are_compared_too(start, wine):
    run = stored(wine, "PPCA", n_components=3)
    other = stored(wine, "PPCA", n_components=2)
    app = healthy(start(PAGE, run=run.id, **{"with": other.id}))
    assert "only in this run" in html(app)
    assert not [b for b in app.button if "seed" in b.label]
    healthy(start(PAGE, run=run.id, view="methods"))
