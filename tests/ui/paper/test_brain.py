"""Brain: a recording that ships, is chosen or opened, and is separated in the background."""

import io

import nibabel
import numpy as np
import pytest

from appca.data.brain import recording as brain
from appca.data.readers import read
from appca.data.sources.samples import brain as made_up
from appca.runs.home import home
from appca.studies.experiments.brain import STUDY, titles_of
from appca.studies.store import StudyStore
from appca.ui.session import services
from tests.ui.conftest import healthy
from tests.ui.paper.test_paper import charts
from tests.ui.session.test_background import ScriptedJobs


@pytest.fixture(scope="module")
def outcome():
    return STUDY.run(STUDY.options("quick"), lambda _stage, _share: None, 1)


@pytest.fixture
def jobs(monkeypatch) -> ScriptedJobs:
    scripted = ScriptedJobs()
    monkeypatch.setattr(services, "jobs", lambda: scripted)
    return scripted


@pytest.fixture(autouse=True)
def _no_shared_recording(monkeypatch, tmp_path):
    monkeypatch.setenv("APPCA_DATA", str(tmp_path))


def own() -> str:
    rng = np.random.default_rng(0)
    values = rng.normal(20, 2, (12, 12, 10, 20)).astype(np.float32)
    values[2:10, 2:10, 2:8] += 900
    image = nibabel.Nifti1Image(values, np.eye(4))
    image.header.set_zooms((1.0, 1.0, 1.0, 2.0))
    return services.datasets().put(read("own.nii", io.BytesIO(image.to_bytes())))


@pytest.mark.thorough
def test_what_ships_is_there_and_a_recording_is_separated_in_the_background(start, jobs, outcome):
    app = healthy(start("paper/brain"))
    app.number_input(key="brain_k_made-up").set_value(5).run()
    app.number_input(key="brain_l_made-up").set_value(5).run()
    assert "L must be below K" in " ".join(box.value for box in app.warning)
    app.number_input(key="brain_k_made-up").set_value(8).run()
    app.number_input(key="brain_l_made-up").set_value(3).run()
    app.button(key="brain_run").click().run()
    (job,) = jobs.jobs
    options = STUDY.options("quick")
    assert jobs.keys[job] == STUDY.id(options)
    StudyStore(home()).save(STUDY, options, outcome, 5.0)
    jobs.end(job, "done", study=STUDY.id(options))
    assert charts(healthy(app.run())) == 2
    saves = [button.proto.label for button in app.get("download_button")]
    assert set(titles_of(outcome).values()) <= set(saves)


def test_the_bundled_brain_has_its_own_name_only_once(start):
    services.datasets().put(made_up())
    app = healthy(start("paper/brain"))
    assert app.selectbox(key="brain_recording").options == ["Small brain, made up"]
    assert not brain.has_shared()
