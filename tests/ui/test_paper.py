"""The page Paper, its laboratory, the brain and whitening."""

import numpy as np
import pytest

from appca.data.dataset import Dataset
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.jobs.tasks import Context
from appca.jobs.worker import KINDS
from appca.runs.home import home
from appca.studies.brain import STUDY, titles_of
from appca.studies.catalogue import STUDIES, shipped
from appca.studies.store import StudyStore
from appca.ui import services
from tests.ui.conftest import address, healthy, html, sentences
from tests.ui.test_background import ScriptedJobs

PAGE = "paper"
TINY = {"n_rows": 100, "n_components": 4, "n_features": 10, "burn_in": 3, "n_draws": 3}


@pytest.fixture
def jobs(monkeypatch) -> ScriptedJobs:
    scripted = ScriptedJobs()
    monkeypatch.setattr(services, "jobs", lambda: scripted)
    return scripted


def charts(app) -> int:
    return len(app.get("plotly_chart"))


def experiment(start, name: str, **address: str):
    """Open an experiment below the results."""
    app = healthy(start(PAGE, **address))
    return healthy(app.toggle(key=f"experiment_{name}").set_value(True).run())


def texts(app) -> str:
    return " ".join(text.value for text in app.markdown).replace("\\", "")


def button(app, key: str):
    return next((item for item in app.button if item.key == key), None)


@pytest.mark.thorough
def test_all_results_that_ship_stand_there_at_once_and_are_computed_anew(start, jobs):
    app = healthy(start(PAGE))
    assert charts(app) == len(shipped())
    text = html(app)
    places = [text.index(f'id="{study.name}"') for study in STUDIES.values()]
    assert places == sorted(places)
    assert "✓" in text
    app.button(key="paper_why_popularity").click().run()
    study = STUDIES["popularity"]
    assert study.paper in texts(healthy(app))
    assert "python -m appca paper popularity" in app.code[0].value
    app.button(key="again_popularity").click().run()
    (job,) = jobs.jobs
    again = healthy(start(PAGE, **address(app)))
    assert button(again, "paper_cancel_popularity") is not None
    options = shipped()["popularity"].options
    assert jobs.keys[job] == study.id(options)
    small = study.run(study.options("quick", **TINY), lambda _stage, _share: None, 1)
    StudyStore(home()).save(study, options, small, 9.0)
    jobs.end(job, "done", study=study.id(options))
    again.run()
    assert all(claim.value in html(healthy(again)) for claim in small.claims)


def test_a_result_that_does_not_ship_says_how_long_it_takes(start, jobs, monkeypatch):
    without = {name: one for name, one in shipped().items() if name != "umap"}
    monkeypatch.setattr("appca.ui.paper.shipped", lambda: without)
    app = healthy(start(PAGE))
    assert "Not computed yet · about 30 s" in [caption.value for caption in app.caption]
    app.button(key="paper_run_umap").click().run()
    (key,) = jobs.keys.values()
    assert key == STUDIES["umap"].id(STUDIES["umap"].options())
    assert button(healthy(app), "paper_cancel_umap") is not None


def test_z_is_there_at_once_and_its_data_open(start):
    app = experiment(start, "lab")
    assert charts(app) == len(shipped()) + 1
    assert "5.0 of 10" in html(app)
    app.number_input(key="lab_n_active").set_value(11).run()
    assert sentences(app) == ["n_active must be between 1 and n_components=10; got 11."]
    app.number_input(key="lab_n_rows").set_value(90).run()
    app.number_input(key="lab_n_components").set_value(6).run()
    app.number_input(key="lab_n_active").set_value(3).run()
    assert charts(healthy(app)) == len(shipped()) + 1
    app.button(key="lab_open").click().run()
    assert (address(healthy(app))["k"], address(app)["l"]) == ("6", "3")
    assert app.button(key="lab_open").disabled


@pytest.mark.thorough
def test_what_ships_is_shown_until_the_recording_is_separated_here(start):
    app = experiment(start, "brain")
    assert charts(app) == len(shipped()) + 2
    assert shipped()["fmri"].outcome.text in html(app)
    outcome = STUDY.run(STUDY.options("quick"), lambda _stage, _share: None, 1)
    StudyStore(home()).save(STUDY, STUDY.options(), outcome, 5.0)
    app.run()
    assert outcome.text in html(healthy(app))
    saves = {button.proto.label for button in app.get("download_button")}
    assert saves >= set(titles_of(outcome).values())


def test_results_on_another_recording_are_not_judged_as_the_papers(start):
    made_up = STUDY.options("quick")
    StudyStore(home()).save(STUDY, made_up, shipped()["fmri"].outcome._replace(text="Own."), 5.0)
    app = experiment(start, "brain")
    assert shipped()["fmri"].outcome.text in html(app)
    assert "Own." not in html(app)


def computed(options: dict, tmp_path) -> str:
    """Do what the worker would."""
    spec = {"study": "whitening", "options": options, "key": "x"}
    return KINDS["study"](spec, Context(home()))["study"]


@pytest.mark.thorough
def test_the_open_data_are_classified_in_the_background_and_come_back(
    start, jobs, tmp_path, monkeypatch
):
    monkeypatch.setattr("appca.jobs.tasks.PROCESSES", 1)  # two would import everything once more
    digest = DatasetStore(home()).put(load("wine"))
    app = experiment(start, "whitening", data=digest)
    before = charts(app)
    app.button_group(key=f"whitening_k_{digest[:8]}").set_value([2]).run()
    app.button(key="whitening_run").click().run()
    (job,) = jobs.jobs
    options = jobs.jobs[job].spec["options"]
    assert (options["data"], options["components"], options["folds"]) == (digest, [2], 5)
    assert jobs.jobs[job].kind == "study"
    again = experiment(start, "whitening", **address(app))
    assert button(again, "whitening_cancel") is not None
    jobs.end(job, "done", study=computed(options, tmp_path))
    again.run()
    assert charts(healthy(again)) == before + 1
    assert "Of 178 rows of" in html(again)
    assert html(again).count('class="ca-answer ca-') == 1, "a verdict over the paper's digits only"
    assert "sizes above PCA of K" in html(again)


def test_data_without_classes_are_told_so(start):
    rng = np.random.default_rng(0)
    plain = Dataset("plain", rng.standard_normal((40, 5)), np.arange(40).astype(str))
    app = experiment(start, "whitening", data=DatasetStore(home()).put(plain))
    assert "names the class of each row" in app.info[0].value
    assert button(app, "whitening_run") is None
