"""Every store under a kill, a refusal or a full disk at every step of writing: old or new, whole.

A forked child does the writing; what goes wrong there is counted by the changes it is about to
make to the disk, so that no step is left out.
"""

import gzip
import io
import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from appca.data.files import ReadLimits
from appca.data.readers import read_many
from appca.storage.files import ASIDE
from tests.faults.child import at_step, die, fate_of, refuse, small_files
from tests.faults.writers import WRITERS, Writer, sources, tree

if os.name != "posix":
    pytest.skip("needs fork and limits of a POSIX system", allow_module_level=True)

MOST_STEPS = 60
SENTENCE = re.compile(r"[^\n]+ [^\n]+\.")
BEFORE = pytest.mark.parametrize(
    "before",
    [
        pytest.param(None, id="anew", marks=pytest.mark.thorough),
        pytest.param(1, id="in place of another"),
    ],
)


@pytest.fixture(params=WRITERS)
def writer(request: pytest.FixtureRequest, tmp_path: Path) -> Writer:
    sources(tmp_path)
    return WRITERS[request.param]


def drafts(home: Path) -> list[Path]:
    return [path for sign in (".*", f"*{ASIDE}") for path in home.rglob(sign) if path.exists()]


def age(home: Path) -> None:
    """Let a day and more pass over all that lies there."""
    long_ago = time.time() - 2 * 86_400
    for path in [*home.rglob("*")]:
        os.utime(path, (long_ago, long_ago))


@pytest.mark.default_cases(3)
@BEFORE
def test_killed_at_any_step_there_is_the_old_or_the_new_and_in_the_end_no_draft(
    writer, before, tmp_path
):
    outcomes = []
    for step in range(1, MOST_STEPS):
        home = tmp_path / f"home{step}"
        home.mkdir()
        if before:
            writer.write(home, before)
        fate = fate_of(lambda home=home: writer.write(home, 2), at_step(step, home, die))
        outcomes.append(writer.read(home))
        assert outcomes[-1] in {before, 2}
        age(home)
        writer.write(home, 2)
        assert writer.read(home) == 2
        assert drafts(home) == []
        if not fate.killed:
            break
    assert not fate.killed, "the writing was followed to its end"
    assert outcomes[-1] == 2
    assert step > 1, "there was a step at which it could be killed"


@pytest.mark.default_cases(3)
@BEFORE
def test_refused_at_any_step_it_says_so_and_what_was_there_is_as_it_was(writer, before, tmp_path):
    refusals = 0
    for step in range(1, MOST_STEPS):
        home = tmp_path / f"home{step}"
        home.mkdir()
        if before:
            writer.write(home, before)
        fate = fate_of(lambda home=home: writer.write(home, 2), at_step(step, home, refuse))
        assert not fate.killed
        assert drafts(home) == []
        if fate.sentence is not None:
            refusals += 1
            assert SENTENCE.fullmatch(fate.sentence), fate.sentence
            assert "No space left on device" in fate.sentence
            assert writer.read(home) == before
        else:
            assert writer.read(home) in {before, 2}
        writer.write(home, 2)
        assert writer.read(home) == 2
        if not fate.struck:
            break
    assert not fate.struck, "every step was refused once"
    assert refusals > 0 or writer.waits


@pytest.mark.default_cases(9)
@pytest.mark.parametrize("n_bytes", [0, 1, 100, 1000])
def test_a_file_that_cannot_grow_is_one_sentence_and_nothing_half(writer, n_bytes, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    writer.write(home, 1)
    before = tree(home)
    fate = fate_of(lambda: writer.write(home, 2), small_files(n_bytes))
    assert drafts(home) == []
    if fate.sentence is None:  # it was smaller than that, or a mere renewal that can wait
        assert writer.read(home) == 2 or writer.waits
    else:
        assert SENTENCE.fullmatch(fate.sentence), fate.sentence
        assert "File too large" in fate.sentence
        assert tree(home) == before
    writer.write(home, 2)
    assert writer.read(home) == 2


@contextmanager
def mounted(place: Path, n_bytes: int) -> Iterator[Path]:
    """Mount a small disk, or skip the test."""
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={n_bytes}", "appca-test", str(place)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("needs the command mount")
    if done.returncode:
        pytest.skip("needs the right to mount a small disk")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a disk of a megabyte."""
    with mounted(tmp_path / "disk", 1_000_000) as place:
        yield place


def fill(disk: Path) -> None:
    """Take all the space there is."""
    with (disk / "ballast").open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            return


def test_on_a_full_disk_nothing_is_lost_and_with_space_again_all_works(writer, small_disk):
    sources(small_disk)
    home = small_disk / "home"
    home.mkdir()
    writer.write(home, 1)
    before = tree(home)
    fill(small_disk)
    fate = fate_of(lambda: writer.write(home, 2), lambda: None)
    if fate.sentence is None:
        assert writer.read(home) == 2 or writer.waits
    else:
        assert SENTENCE.fullmatch(fate.sentence), fate.sentence
        assert "No space left on device" in fate.sentence
        assert tree(home) == before
        assert writer.read(home) == 1
    assert drafts(home) == []
    (small_disk / "ballast").unlink()
    writer.write(home, 2)
    assert writer.read(home) == 2


def packed_table() -> bytes:
    """Return a file that has to be unpacked onto the disk before it can be read."""
    buffer = io.BytesIO()
    np.save(buffer, np.arange(7000, dtype=np.float64).reshape(1000, 7))
    return gzip.compress(buffer.getvalue())


def look_at_an_upload(home: Path) -> None:
    read_many(
        [("own.npy", io.BytesIO(packed_table()))], limits=ReadLimits(scratch=home / "uploads")
    )


@pytest.mark.parametrize("n_bytes", [0, 100, 10_000])
def test_an_upload_onto_a_full_disk_is_one_sentence_and_leaves_nothing(n_bytes, tmp_path):
    fate = fate_of(lambda: look_at_an_upload(tmp_path), small_files(n_bytes))
    assert fate.sentence is not None
    assert SENTENCE.fullmatch(fate.sentence), fate.sentence
    assert "File too large" in fate.sentence
    assert tree(tmp_path) == {}


def test_an_upload_that_is_killed_leaves_no_file_that_stays(tmp_path):
    for step in range(1, MOST_STEPS):
        fate = fate_of(lambda: look_at_an_upload(tmp_path), at_step(step, tmp_path, die))
        if not fate.killed:
            break
    assert step > 1
    assert not fate.killed
    age(tmp_path)
    assert fate_of(lambda: look_at_an_upload(tmp_path), lambda: None).killed is False
    assert tree(tmp_path) == {}
