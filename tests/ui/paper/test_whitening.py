"""Whitening: the paper's result at once; any labelled data, in the background."""

import numpy as np
import pytest

from appca.data.dataset import Dataset
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.jobs.tasks import Context
from appca.jobs.worker import KINDS
from appca.runs.home import home
from appca.ui import services
from tests.ui.conftest import address, healthy, html
from tests.ui.paper.test_paper import button, charts, experiment
from tests.ui.session.test_background import ScriptedJobs


@pytest.fixture
def jobs(monkeypatch) -> ScriptedJobs:
    scripted = ScriptedJobs()
    monkeypatch.setattr(services, "jobs", lambda: scripted)
    return scripted


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
