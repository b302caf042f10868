"""The job that computes an experiment: stored when whole, gone without a trace when cancelled."""

from pathlib import Path

import pytest

from appca.jobs.folder import JobFolder
from appca.jobs.progress import Cancelled, Context, Paced
from appca.jobs.study import study
from appca.jobs.worker import KINDS, work
from appca.studies.catalogue import STUDIES
from appca.studies.experiments import table1
from appca.studies.store import StudyStore

TINY = {
    "designs": ["balanced"],
    "components": [4],
    "seeds": 2,
    "n_rows": 60,
    "n_features": 10,
    "burn_in": 2,
    "n_draws": 2,
}


@pytest.fixture
def folder(tmp_path) -> JobFolder:
    return JobFolder.create(tmp_path / "jobs", {"kind": "study", "spec": {}, "key": "x"})


def spec_of(name: str, **changes) -> dict:
    return {"study": name, "options": STUDIES[name].options("quick", **changes), "key": "x"}


@pytest.mark.thorough
def test_a_study_is_stored_under_the_name_of_its_options(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("appca.jobs.study.PROCESSES", 1)
    spec = spec_of("table1", **TINY)
    context = Context(folder, tmp_path)
    result = study(spec, context)
    assert result == {"study": STUDIES["table1"].id(spec["options"])}
    kept = StudyStore(tmp_path).get(result["study"])
    assert kept.options == spec["options"]
    assert {row["seed"] for row in kept.outcome.tables["cells"]} == {0, 1}
    assert context.state.stage == "storing"
    assert 0 < context.state.fraction <= 1


def test_cancel_ends_it_within_a_fit_and_keeps_nothing(folder, tmp_path, monkeypatch):
    stages = []

    def report(self, stage, fraction, **_more):
        stages.append(stage)
        if "aFA, Gibbs" in stage:
            folder.request("cancel")

    monkeypatch.setattr(Context, "report", report)
    monkeypatch.setattr("appca.jobs.study.PROCESSES", 1)
    with pytest.raises(Cancelled):
        study(
            spec_of("table1", **TINY),
            Context(folder, tmp_path),
        )
    assert not any("the paper's start" in stage for stage in stages)  # it comes after Gibbs
    assert StudyStore(tmp_path).list() == []


def test_the_worker_knows_the_kind_and_refuses_in_a_sentence(tmp_path):
    job = {"kind": "study", "spec": {"study": "table9", "options": {}}, "key": "x"}
    folder = JobFolder.create(tmp_path / "jobs", job)
    state = work(folder, tmp_path, KINDS)
    assert state.state == "failed"
    assert state.message.startswith("There is no experiment “table9”")


def test_the_time_left_is_guessed_from_the_pace(folder, tmp_path):
    now = iter([0.0, 30.0])
    context = Context(folder, Path(tmp_path))
    pace = Paced(context, clock=lambda: next(now))
    pace.at("first", 0.0)
    assert context.state.seconds_left is None
    pace.at("second", 0.25)
    assert context.state.seconds_left == 90.0


def test_the_names_of_the_methods_are_those_the_cancel_test_relies_on():
    assert list(table1.METHODS).index("afa_gibbs") < list(table1.METHODS).index("afa_paper")
