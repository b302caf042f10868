"""A home is its owner's alone, whatever the umask, and what it was before."""

import argparse
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from appca.analysis.check.journal import JournalStore
from appca.commands import writing
from appca.jobs.folder import JobFolder, JobState
from appca.jobs.progress import Context
from appca.jobs.queue import Jobs
from appca.runs import home as homes
from appca.storage import cache, rights
from tests.faults.writers import WRITERS

if os.name != "posix":
    pytest.skip("needs rights of a POSIX system", allow_module_level=True)


@pytest.fixture(params=[0o000, 0o027], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home that is not there yet, in a folder open to all."""
    tmp_path.chmod(0o755)
    monkeypatch.setenv("APPCA_HOME", str(tmp_path / "own" / "home"))
    homes._private.cache_clear()
    return tmp_path / "own" / "home"


def too_open(home: Path) -> list[str]:
    """Return what others than its owner have rights to."""
    found = [home, *home.rglob("*")]
    return [str(path) for path in found if stat.S_IMODE(path.lstat().st_mode) & 0o077]


@pytest.mark.usefixtures("umask")
def test_all_that_is_stored_is_its_owners_alone(home):
    assert homes.home() == home
    for kind, writer in WRITERS.items():
        if kind != "file of the command line":
            writer.write(home, 1)
            writer.write(home, 2)
    JournalStore(home, "grids").begin("a" * 12, {"x": 2})
    JournalStore(home, "grids").append("a" * 12, [1])
    cache.write(home / "autoencoders" / "a.npz")
    jobs = Jobs(home, workers=0)
    folder = JobFolder.create(home / "jobs", {"kind": "fit", "spec": {}})
    Context(folder, home).report("fitting", 0.1, iteration=1, log_likelihood=1.0)
    folder.request("cancel")
    folder.write(JobState("running"))
    folder.end("failed", "It was.")
    assert len([*home.rglob("*")]) > 30
    assert too_open(home) == []
    jobs.close()


def test_a_home_that_was_open_is_closed_and_what_is_not_appcas_stays(home):
    WRITERS["run"].write(home, 1)
    (home / "data" / "mnist").mkdir(parents=True)
    (home / "data" / "mnist" / "images.gz").write_bytes(b"x")
    (home / "script.sh").write_text("echo")
    (home / "runs" / "link").symlink_to(home / "script.sh")
    for path in (home, *home.rglob("*")):
        path.chmod(0o755)
    homes._private.cache_clear()
    homes.home()
    left = {Path(path).relative_to(home).as_posix() for path in too_open(home)}
    assert left == {"data", "data/mnist", "data/mnist/images.gz", "script.sh", "runs/link"}
    assert WRITERS["run"].read(home) == 1


def test_where_rights_cannot_be_set_the_home_is_used_all_the_same(home, monkeypatch):
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    home.mkdir(parents=True, mode=0o755)
    monkeypatch.setattr(Path, "chmod", refuse)
    homes._private.cache_clear()
    assert homes.home() == home
    WRITERS["run"].write(home, 1)
    assert WRITERS["run"].read(home) == 1
    monkeypatch.undo()
    monkeypatch.setattr(rights, "_me", lambda: 12_345)
    rights.tighten(home)
    assert stat.S_IMODE(home.stat().st_mode) == 0o755, "it is somebody else's"


def test_a_file_that_a_person_asked_for_has_the_usual_rights(tmp_path):
    before = os.umask(0o022)
    try:
        writing.write(argparse.Namespace(out=tmp_path / "out.npz"), lambda: None, dict)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out.npz").stat().st_mode) == 0o644
