"""The page Synthetic lab: data at once, experiments with progress, results from the store."""

import pytest

from appca.runs.home import home
from appca.studies.catalogue import STUDIES
from appca.studies.store import StudyStore
from appca.ui.paper import lab_results
from appca.ui.paper.lab_table import MEASURES, table_html
from appca.ui.session import services
from tests.ui.conftest import address, go, healthy, html, sentences
from tests.ui.session.test_background import ScriptedJobs

PAGE = "paper/lab"
TINY = {"n_rows": 60, "n_features": 10, "components": [4], "seeds": 2, "burn_in": 2, "n_draws": 2}


@pytest.fixture(scope="module")
def outcome():
    study = STUDIES["table1"]
    return study.run(study.options("quick", **TINY), lambda _stage, _share: None, 1)


@pytest.fixture
def jobs(monkeypatch) -> ScriptedJobs:
    scripted = ScriptedJobs()
    monkeypatch.setattr(services, "jobs", lambda: scripted)
    return scripted


def keep(outcome, size: str = "quick") -> str:
    study = STUDIES["table1"]
    return StudyStore(home()).save(study, study.options(size), outcome, 61.0)


def charts(app) -> int:
    return len(app.get("plotly_chart"))


def texts(app) -> str:
    return " ".join(text.value for text in app.markdown).replace("\\", "")


def button(app, key: str):
    return next((item for item in app.button if item.key == key), None)


def test_the_page_shows_z_at_once_and_says_what_would_be_computed(start):
    app = healthy(start(PAGE))
    assert [title.value for title in app.title] == ["Paper"]
    assert charts(app) == 1
    assert "5.0 of 10, sd 0.0" in html(app)
    assert "nine methods on 5 designs with K = 10 and 20, 5 data sets each" in texts(app)
    assert "about 12 min" in texts(app)
    assert button(app, "lab_run") is not None


def test_the_data_are_opened_with_the_true_number_of_factors(start):
    app = start(PAGE)
    app.number_input(key="lab_n_rows").set_value(90).run()
    app.number_input(key="lab_n_components").set_value(6).run()
    app.number_input(key="lab_n_active").set_value(3).run()
    app.button(key="lab_open").click().run()
    assert "Synthetic, balanced, K = 6, seed 0" in html(healthy(app))
    assert (address(app)["k"], address(app)["l"]) == ("6", "3")
    assert app.button(key="lab_open").disabled
    fit = healthy(go(app, "explore/fit"))
    assert "Adaptive factor analysis" in html(fit)


def test_choices_without_meaning_are_one_sentence_and_the_page_goes_on(start):
    app = start(PAGE)
    app.number_input(key="lab_n_active").set_value(11).run()
    assert sentences(app) == ["n_active must be at most n_components=10; got 11."]
    assert button(app, "lab_run") is not None
    app.number_input(key="lab_n_active").set_value(2).run()
    assert charts(healthy(app)) == 1


def test_an_experiment_runs_in_the_background_and_comes_back_after_a_reload(start, jobs, outcome):
    app = start(PAGE)
    app.button(key="lab_run").click().run()
    (job,) = jobs.jobs
    study = STUDIES["table1"]
    assert jobs.keys[job] == study.id(study.options())
    assert address(healthy(app))["job"] == job
    assert button(app, "job_cancel") is not None
    again = healthy(start(PAGE, **address(app)))
    assert button(again, "job_cancel") is not None
    assert button(again, "lab_run") is None
    keep(outcome, "default")
    jobs.end(job, "done", study=study.id(study.options()))
    again.run()
    assert "ca-table" in html(healthy(again))
    assert "job" not in address(again)


def test_cancel_leaves_the_page_ready_to_run_again(start, jobs):
    app = start(PAGE)
    app.button(key="lab_run").click().run()
    (job,) = jobs.jobs
    app.button(key="job_cancel").click().run()
    assert jobs.cancelled == [job]
    app.run()
    assert button(healthy(app), "lab_run") is not None
    app.button(key="lab_run").click().run()
    assert len(jobs.jobs) == 2


def test_a_stored_result_is_shown_with_table_figures_paragraph_and_files(start, outcome):
    keep(outcome)
    app = healthy(start(PAGE))
    assert charts(app) == 3  # Z, errors, columns
    assert "aFA, EM" in html(app)
    assert "EM converges to good local optima (balanced data)" in texts(app)
    assert [item.proto.label for item in app.get("download_button")] == [
        "Save table1.csv",
        "Save cells.csv",
    ]
    for name in ("heldout", "z_right", "seconds"):
        app.session_state["lab_measure"] = name
        app.run()
        assert MEASURES[name].meaning in " ".join(item.value for item in healthy(app).caption)


def test_the_designs_of_z_need_no_job_and_popularity_is_offered(start):
    app = start(PAGE)
    app.session_state["lab_study"] = "z-priors"
    app.run()
    assert charts(healthy(app)) == 2
    assert button(app, "lab_run") is None
    app.session_state["lab_study"] = "popularity"
    app.run()
    assert "a sparse and a dense data set of 1,000 rows" in texts(healthy(app))


def test_a_damaged_result_is_offered_again(start, outcome):
    name = keep(outcome, "default")
    (home() / "studies" / name / "table1.csv").write_text("gone")
    app = healthy(start(PAGE))
    assert button(app, "lab_run") is not None


def test_the_table_marks_the_best_method_and_shows_the_paper_in_small():
    def row(method, title, mae, paper=None):
        place = {"design": "balanced", "K": 10, "method": method, "title": title}
        return place | {"mae": mae, "mae_sd": 0.001, "paper_mae": paper}

    table = [row("fa_k", "FA", 0.07, 0.088), row("afa", "a<b>FA", 0.08, 0.034)]
    told = table_html([*table, row("noise", "Noise", 0.01)], "mae")
    assert "<b>0.0700</b>" in told
    assert told.count("<b>") == 1  # the noise is no method, and a title is only text
    assert "a&lt;b&gt;FA" in told
    assert "<small>paper .034</small>" in told
    assert "<small>± 0.0010</small>" in told
    assert 'class="ca-reference"' in told


def test_a_result_with_other_options_is_no_size():
    assert lab_results._size_of("table1", STUDIES["table1"].options("full")) == "full"
    assert lab_results._size_of("table1", STUDIES["table1"].options("full", seeds=3)) is None
    assert lab_results._size_of("gone", {}) is None
