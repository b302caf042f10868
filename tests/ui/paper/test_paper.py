"""The page Paper: every result with its button, in the background, back after a reload."""

import pytest

from appca.runs.home import home
from appca.studies import report
from appca.studies.catalogue import STUDIES
from appca.studies.store import StudyStore
from appca.ui.session import services
from tests.ui.conftest import address, healthy
from tests.ui.session.test_background import ScriptedJobs

PAGE = "paper/results"
TINY = {"n_rows": 100, "n_components": 4, "n_features": 10, "burn_in": 3, "n_draws": 3}


@pytest.fixture(scope="module")
def popularity():
    study = STUDIES["popularity"]
    return study.run(study.options("quick", **TINY), lambda _stage, _share: None, 1)


@pytest.fixture
def jobs(monkeypatch) -> ScriptedJobs:
    scripted = ScriptedJobs()
    monkeypatch.setattr(services, "jobs", lambda: scripted)
    return scripted


def texts(app) -> str:
    return " ".join(text.value for text in app.markdown).replace("\\", "")


def keys(app) -> set:
    return {item.key for item in app.button}


def test_every_result_of_the_paper_stands_there_in_order_with_a_button(start):
    app = healthy(start(PAGE))
    titles = [title.value for title in app.subheader]
    assert titles == [report.heading(study) for study in report.in_order(STUDIES.values())]
    slow = [name for name, study in STUDIES.items() if study.takes["default"] >= 1]
    assert {f"paper_run_{name}" for name in slow} <= keys(app)
    for study in STUDIES.values():
        assert study.paper in texts(app)


def test_results_are_computed_side_by_side_and_come_back_after_a_reload(start, jobs, popularity):
    app = start(PAGE)
    app.button(key="paper_run_popularity").click().run()
    app.button(key="paper_run_table1").click().run()
    first, second = jobs.jobs
    again = healthy(start(PAGE, **address(app)))
    assert {"paper_cancel_popularity", "paper_cancel_table1"} <= keys(again)
    again.button(key="paper_cancel_table1").click().run()
    assert jobs.cancelled == [second]
    study = STUDIES["popularity"]
    kept = StudyStore(home()).save(study, study.options(), popularity, 9.0)
    jobs.end(first, "done", study=kept)
    again.run()
    for claim in popularity.claims:
        assert f"| {claim.claim} | {claim.measured} |" in texts(healthy(again))
        assert f"**{claim.holds}** |" in texts(again)
    assert "paper_run_table1" in keys(again)
    again.toggle(key="paper_show_popularity").set_value(True).run()
    assert len(healthy(again).get("plotly_chart")) == 1
    assert len(again.dataframe) == 1


def test_all_others_are_computed_with_one_button(start, jobs):
    app = start(PAGE)
    app.segmented_control(key="paper_size").set_value("quick").run()
    app.button(key="paper_all").click().run()
    slow = [study for study in STUDIES.values() if study.takes["quick"] >= 1]
    assert set(jobs.keys.values()) == {study.id(study.options("quick")) for study in slow}
    assert "paper_all" not in keys(healthy(app))


def test_a_result_of_before_there_were_claims_shows_its_text(start, popularity):
    study = STUDIES["popularity"]
    old = popularity._replace(claims=[], text="Measured *here*: 0.5.\n\nIt does not agree.")
    StudyStore(home()).save(study, study.options(), old, 9.0)
    app = healthy(start(PAGE))
    assert "Measured *here*: 0.5.\n\nIt does not agree." in texts(app)
