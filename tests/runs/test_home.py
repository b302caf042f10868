"""The home: its owner's alone, whatever the umask and what it was before, and its secret."""

import argparse
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from appca.commands import writing
from appca.runs import home as homes
from appca.runs.home import secret
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


def test_all_get_the_same_secret(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: secret(tmp_path / "home"), range(16)))
    assert len(found) == 1
    assert len(found.pop()) == 32


def test_a_damaged_secret_is_replaced_and_an_unwritable_home_is_an_os_error(tmp_path):
    first = secret(tmp_path)
    (tmp_path / "secret").write_bytes(b"")
    second = secret(tmp_path)
    assert second != first
    assert second == secret(tmp_path)
    (tmp_path / "home").write_text("a file")
    with pytest.raises(OSError, match="home"):
        secret(tmp_path / "home")
    assert (tmp_path / "home").read_text() == "a file"
