"""The home: its owner's alone, its secret, and homes of others that `APPCA_SHARED` names."""

import argparse
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from appca.commands import writing
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.runs import home as homes
from appca.runs.fit import fit_run
from appca.runs.home import secret
from appca.runs.numbering import ComponentNumbers
from appca.runs.run import RunConfig, defaults
from appca.runs.store import RunStore
from appca.storage import files
from appca.ui.open import erase
from tests.faults.writers import WRITERS


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home that is not there yet, in a folder open to all."""
    if os.name != "posix":
        pytest.skip("needs rights of a POSIX system")
    tmp_path.chmod(0o755)
    monkeypatch.setenv("APPCA_HOME", str(tmp_path / "own" / "home"))
    homes.private.cache_clear()
    return tmp_path / "own" / "home"


def rights_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o027], ids=oct)
def test_nobody_else_enters_a_home(home, umask):
    before = os.umask(umask)
    try:
        assert homes.home() == home
        WRITERS["run"].write(home, 1)
        home.chmod(0o755)  # a home that was open is closed
        homes.private.cache_clear()
        homes.home()
    finally:
        os.umask(before)
    assert rights_of(home) == 0o700
    assert WRITERS["run"].read(home) == 1


def test_where_rights_cannot_be_set_the_home_is_used_all_the_same(home, monkeypatch):
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    home.mkdir(parents=True, mode=0o755)
    monkeypatch.setattr(Path, "chmod", refuse)
    assert homes.home() == home
    WRITERS["run"].write(home, 1)
    assert WRITERS["run"].read(home) == 1
    assert rights_of(home) == 0o755


def test_a_file_that_a_person_asked_for_has_the_usual_rights(tmp_path):
    before = os.umask(0o022)
    try:
        writing.write(argparse.Namespace(out=tmp_path / "out.npz"), lambda: None, dict)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out.npz").stat().st_mode) == 0o644


def test_a_damaged_secret_is_replaced_and_an_unwritable_home_is_an_os_error(tmp_path):
    with ThreadPoolExecutor(8) as pool:  # all get the same
        (first,) = set(pool.map(lambda _: secret(tmp_path), range(16)))
    assert len(first) == 32
    (tmp_path / "secret").write_bytes(b"")
    second = secret(tmp_path)
    assert second != first
    assert second == secret(tmp_path)
    (tmp_path / "home").write_text("a file")
    with pytest.raises(OSError, match="home"):
        secret(tmp_path / "home")
    assert (tmp_path / "home").read_text() == "a file"


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
    data, runs = DatasetStore(homes.home()), RunStore(homes.home())
    assert (data.get(config.dataset).X == dataset.X).all()
    assert data.put(dataset) == config.dataset
    run = runs.get(config.id)
    assert (run.name, run.is_shared) == ("of the lab", True)
    assert runs.renew(config.id, "another name").name == "of the lab"
    assert runs.save(config, fit_run(dataset, config)).is_shared
    ComponentNumbers(homes.home()).of_run(run)
    data.note_origin(config.dataset, Path(__file__))
    assert runs.list() == []
    assert data.list() == []
    assert not (homes.home() / "runs").exists() or not list((homes.home() / "runs").iterdir())


def test_what_is_changed_is_copied_first(lab):
    _, config, _ = lab
    runs, data = RunStore(homes.home()), DatasetStore(homes.home())
    data.delete(config.dataset)
    assert data.get(config.dataset).n_rows == 178, "a shared data set cannot be deleted"
    scores = runs.get(config.id).fitted.scores.copy()
    runs.rename(config.id, "mine")
    assert (runs.get(config.id).name, runs.get(config.id).is_shared) == ("mine", False)
    assert (runs.get(config.id).fitted.scores == scores).all()
    runs.delete(config.id)
    assert runs.get(config.id).name == "of the lab"
    numbering = ComponentNumbers(homes.home()).rename(runs.get(config.id), 0, "acid")
    assert numbering.names[0] == "acid"
    assert not runs.get(config.id).is_shared
    erase(homes.home())
    assert runs.get(config.id).is_shared
