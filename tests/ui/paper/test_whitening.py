"""The page Whitening: any labelled data set, in the background, back after a reload."""

import numpy as np
import pytest

from appca.data.dataset import Dataset
from appca.data.sources.builtin import load
from appca.data.store import DatasetStore
from appca.jobs.folder import JobFolder
from appca.jobs.progress import Context
from appca.jobs.worker import KINDS
from appca.runs.home import home
from appca.studies.experiments.whitening import STUDY
from appca.studies.store import StudyStore
from appca.ui.session import services
from tests.ui.conftest import address, healthy
from tests.ui.paper.test_lab import button, charts, texts
from tests.ui.session.test_background import ScriptedJobs

PAGE = "paper/whitening"


@pytest.fixture
def jobs(monkeypatch) -> ScriptedJobs:
    scripted = ScriptedJobs()
    monkeypatch.setattr(services, "jobs", lambda: scripted)
    return scripted


def computed(options: dict, tmp_path) -> str:
    """Do what the worker would."""
    folder = JobFolder.create(tmp_path, {"kind": "whitening", "spec": {}, "key": "x"})
    return KINDS["whitening"]({"options": options, "key": "x"}, Context(folder, home()))["study"]


def test_the_open_data_are_classified_in_the_background_and_come_back(start, jobs, tmp_path):
    dataset = load("wine")
    digest = DatasetStore(home()).put(dataset)
    app = healthy(start(PAGE, data=digest))
    assert "178 rows, 5 folds" in texts(app)
    app.segmented_control(key=f"whitening_folds_{digest[:8]}").set_value(3).run()
    app.button_group(key=f"whitening_k_{digest[:8]}").set_value([2]).run()
    app.button(key="whitening_run").click().run()
    (job,) = jobs.jobs
    options = jobs.jobs[job].spec["options"]
    assert (options["data"], options["components"], options["folds"]) == (digest, [2], 3)
    again = healthy(start(PAGE, **address(app)))
    assert button(again, "whitening_cancel") is not None
    kept = computed(options, tmp_path)
    assert kept == STUDY.id(options)
    jobs.end(job, "done", study=kept)
    again.run()
    assert charts(healthy(again)) == 1
    assert "At equal K, aPPCA" in texts(again)
    assert "Of 178 rows of Wine" in texts(again)
    rows = StudyStore(home()).get(kept).outcome.tables["whitening"]
    shown = again.dataframe[0].value
    np.testing.assert_allclose(shown["accuracy"], [100 * row["accuracy"] for row in rows])
    assert max(row["accuracy"] for row in rows) > 0.9


def test_data_without_classes_are_told_so(start):
    rng = np.random.default_rng(0)
    plain = Dataset("plain", rng.standard_normal((40, 5)), np.arange(40).astype(str))
    app = healthy(start(PAGE, data=DatasetStore(home()).put(plain)))
    assert "has no labels" in app.info[0].value
    assert button(app, "whitening_run") is None
