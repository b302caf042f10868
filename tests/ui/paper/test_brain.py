"""Brain: the result that ships, and a newer one of this home, with maps to save."""

import pytest

from appca.runs.home import home
from appca.studies.brain import STUDY, titles_of
from appca.studies.catalogue import shipped
from appca.studies.store import StudyStore
from tests.ui.conftest import healthy, html
from tests.ui.paper.test_paper import charts, experiment


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
