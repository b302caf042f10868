"""Paper: every result at once from what ships, reasons behind "Why?", computed anew by a button."""

import pytest

from appca.runs.home import home
from appca.studies.catalogue import STUDIES, shipped
from appca.studies.store import StudyStore
from appca.ui import services
from tests.ui.conftest import address, healthy, html
from tests.ui.session.test_background import ScriptedJobs

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
