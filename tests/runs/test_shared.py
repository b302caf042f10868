"""Homes of others that `APPCA_SHARED` names: read as if they were here, and never written."""

from pathlib import Path

import pytest

from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.runs.fit import fit_run
from appca.runs.home import home
from appca.runs.numbering import ComponentNumbers
from appca.runs.run import RunConfig, defaults
from appca.runs.store import RunStore
from appca.storage import files
from appca.ui.open import erase


def state(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """Return a home of somebody else, which this account could write, and its only fit."""
    folder, dataset = tmp_path / "lab", load("wine")
    digest = DatasetStore(folder).put(dataset)
    config = RunConfig(digest, {}, "aPPCA", defaults("aPPCA") | {"n_components": 3, "n_active": 1})
    RunStore(folder).save(config, fit_run(dataset, config), "of the lab")
    monkeypatch.setenv(files.SHARED, f"{tmp_path / 'absent'}:{folder}")
    before = state(folder)
    yield folder, config, dataset
    assert state(folder) == before


def test_data_and_fits_are_there_and_nothing_is_copied_for_that(lab):
    _, config, dataset = lab
    data, runs = DatasetStore(home()), RunStore(home())
    assert (data.get(config.dataset).X == dataset.X).all()
    assert data.put(dataset) == config.dataset
    run = runs.get(config.id)
    assert (run.name, run.is_shared) == ("of the lab", True)
    assert runs.renew(config.id, "another name").name == "of the lab"
    assert runs.save(config, fit_run(dataset, config)).is_shared
    ComponentNumbers(home()).of_run(run)
    data.note_origin(config.dataset, Path(__file__))
    assert runs.list() == []
    assert data.list() == []
    assert not (home() / "runs").exists() or not list((home() / "runs").iterdir())


def test_what_is_changed_is_copied_first(lab):
    _, config, _ = lab
    runs = RunStore(home())
    scores = runs.get(config.id).fitted.scores.copy()
    runs.rename(config.id, "mine")
    assert (runs.get(config.id).name, runs.get(config.id).is_shared) == ("mine", False)
    assert (runs.get(config.id).fitted.scores == scores).all()
    runs.delete(config.id)
    assert runs.get(config.id).name == "of the lab"
    numbering = ComponentNumbers(home()).rename(runs.get(config.id), 0, "acid")
    assert numbering.names[0] == "acid"
    assert not runs.get(config.id).is_shared
    erase(home())
    assert runs.get(config.id).is_shared


def test_a_shared_data_set_cannot_be_deleted(lab):
    _, config, _ = lab
    DatasetStore(home()).delete(config.dataset)
    assert DatasetStore(home()).get(config.dataset).n_rows == 178
