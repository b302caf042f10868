"""The page Paper, its laboratory, the brain and whitening."""

import numpy as np
import pytest

from appca.data.dataset import Dataset
from appca.data.sources import load
from appca.jobs.tasks import Context
from appca.jobs.worker import KINDS
from appca.runs.home import home
from appca.studies.brain import STUDY, titles_of
from appca.studies.catalogue import STUDIES, shipped
from appca.studies.store import StudyStore
from tests.ui.conftest import address, charts, click, healthy, html, keys, sentences, told

PAGE = "paper"


def experiment(start, name: str, **address: object):
    """Open an experiment below the results."""
    app = healthy(start(PAGE, **address))
    return healthy(app.toggle(key=f"experiment_{name}").set_value(True).run())


def test_results_stand_there_at_once_and_are_computed_anew(start, jobs, monkeypatch):
    without = {name: one for name, one in shipped().items() if name != "umap"}
    monkeypatch.setattr("appca.ui.paper.shipped", lambda: without)
    app = healthy(start(PAGE))
    assert len(charts(app)) == len(without)
    text = html(app)
    places = [text.index(f'id="{study.name}"') for study in STUDIES.values()]
    assert places == sorted(places)
    assert "✓" in text
    assert "Not computed yet · about 30 s" in told(app)
    app.button(key="paper_run_umap").click().run()
    (job,) = jobs.jobs
    assert jobs.keys[job] == STUDIES["umap"].id(STUDIES["umap"].options())
    assert "paper_cancel_umap" in keys(healthy(app))
    jobs.cancel(job)
    app.run()
    study = STUDIES["popularity"]
    assert study.paper in told(click(app, "paper_why_popularity"))
    assert "python -m appca paper popularity" in app.code[0].value
    app.button(key="again_popularity").click().run()
    job = list(jobs.jobs)[-1]
    again = healthy(start(PAGE, **address(app)))
    assert "paper_cancel_popularity" in keys(again)
    options = without["popularity"].options
    assert jobs.keys[job] == study.id(options)
    outcome = without["popularity"].outcome
    claims = tuple(one._replace(value=f"{one.value} here") for one in outcome.claims)
    StudyStore(home()).save(study, options, outcome._replace(claims=claims), 9.0)
    jobs.end(job, "done", study=study.id(options))
    page = html(healthy(again.run()))
    assert all(claim.value in page for claim in claims)


def test_z_is_there_at_once_and_its_data_open(start):
    app = experiment(start, "lab")
    assert len(charts(app)) == len(shipped()) + 1
    assert "5.0 of 10" in html(app)
    app.number_input(key="lab_n_active").set_value(11).run()
    assert sentences(app) == ["n_active must be between 1 and n_components=10; got 11."]
    for name, value in (("n_rows", 90), ("n_components", 6), ("n_active", 3)):
        app.number_input(key=f"lab_{name}").set_value(value).run()
    assert len(charts(healthy(app))) == len(shipped()) + 1
    assert (address(click(app, "lab_open"))["k"], address(app)["l"]) == ("6", "3")
    assert app.button(key="lab_open").disabled


def test_what_ships_is_shown_until_the_recording_is_separated_here(start):
    ships = shipped()["fmri"].outcome
    made_up = STUDY.options("quick")
    StudyStore(home()).save(STUDY, made_up, ships._replace(text="Of another recording."), 5.0)
    app = experiment(start, "brain")
    assert len(charts(app)) == len(shipped()) + 2
    assert ships.text in html(app)
    assert "Of another recording." not in html(app), "it is not judged as the paper's"
    StudyStore(home()).save(STUDY, STUDY.options(), ships._replace(text="Own."), 5.0)
    assert "Own." in html(healthy(app.run()))
    saves = {button.proto.label for button in app.get("download_button")}
    assert saves >= set(titles_of(ships).values())


@pytest.mark.thorough
def test_the_open_data_are_classified_in_the_background_and_come_back(start, jobs, monkeypatch):
    monkeypatch.setattr("appca.jobs.tasks.PROCESSES", 1)  # two would import everything once more
    app, digest = experiment(start, "whitening", data=load("wine")), load("wine").digest
    before = len(charts(app))
    app.button_group(key=f"whitening_k_{digest[:8]}").set_value([2]).run()
    app.button(key="whitening_run").click().run()
    (job,) = jobs.jobs
    options = jobs.jobs[job].spec["options"]
    assert (options["data"], options["components"], options["folds"]) == (digest, [2], 5)
    assert jobs.jobs[job].kind == "study"
    again = experiment(start, "whitening", **address(app))
    assert "whitening_cancel" in keys(again)
    spec = {"study": "whitening", "options": options, "key": "x"}
    jobs.end(job, "done", study=KINDS["study"](spec, Context(home()))["study"])
    assert len(charts(healthy(again.run()))) == before + 1
    assert "Of 178 rows of" in html(again)
    assert html(again).count('class="ca-answer ca-') == 1, "a verdict over the paper's digits only"
    assert "sizes above PCA of K" in html(again)


def test_data_without_classes_are_told_so(start):
    plain = Dataset("plain", np.random.default_rng(0).standard_normal((40, 5)), np.arange(40))
    app = experiment(start, "whitening", data=plain)
    assert "names the class of each row" in app.info[0].value
    assert "whitening_run" not in keys(app)
