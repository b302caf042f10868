import io
import os
import signal
import time

import numpy as np
import pytest

from appca.data.files import ReadLimits
from appca.data.readers import process, read
from appca.data.readers.process import read_apart, warm
from appca.words import InputError
from tests.memory import needs_proc
from tests.sentences import faults_of

TABLE = b"id,class,a,b\n" + b"".join(b"r%d,%s,%d,\n" % (i, b"xy"[i % 2 :][:1], i) for i in range(3))
TABLE += b"r3,x,4,5\nr4,y,7,8\n"


def apart(name, data, **options):
    return read_apart([(name, io.BytesIO(data))], **options)


@pytest.mark.parametrize("missing", ["model", "drop"])
def test_a_file_read_apart_is_the_same_data_set(missing, tmp_path):
    limits = ReadLimits(scratch=tmp_path / "new")
    here = read("t.csv", io.BytesIO(TABLE), missing=missing)
    there = apart("t.csv", TABLE, limits=limits, missing=missing)
    assert there.digest == here.digest
    assert there.provenance == here.provenance
    assert there.ids.tolist() == here.ids.tolist()
    assert list((tmp_path / "new").iterdir()) == []  # and yet the numbers can be read
    assert there.X.sum() == here.X.sum()


def test_a_refusal_comes_with_what_was_found():
    with pytest.raises(InputError, match="The data have 3 missing cells") as refused:
        apart("t.csv", TABLE)
    assert refused.value.report["missing"] == {"b": 3}
    with pytest.raises(InputError, match="Reading tables has the options"):
        apart("t.csv", TABLE, nothing=1)


def test_one_process_reads_one_file_after_the_other_and_is_replaced_when_it_ends():
    for _ in range(3):
        apart("t.csv", TABLE, missing="mean")
    (first,) = process._PROCESSES._idle
    apart("t.csv", TABLE, missing="mean")
    assert [one.pid for one in process._PROCESSES._idle] == [first.pid]
    os.kill(first.pid, signal.SIGKILL)
    first.process.wait()
    assert apart("t.csv", TABLE, missing="mean").n_rows == 5
    assert [one.pid for one in process._PROCESSES._idle] != [first.pid]


def killed_while_reading(monkeypatch, end):
    """Let the process stand still, and end it then."""
    asked = process.ReadingProcess.read

    def read(self, request):
        os.kill(self.pid, signal.SIGSTOP)
        end(self)
        return asked(self, request)

    warm()
    monkeypatch.setattr(process.ReadingProcess, "read", read)
    with pytest.raises(InputError) as refused:
        apart("t.csv", TABLE)
    monkeypatch.undo()
    assert apart("t.csv", TABLE, missing="mean").n_rows == 5  # the next file is read
    return str(refused.value)


def test_a_process_that_ends_is_told_in_one_sentence(monkeypatch):
    sentence = killed_while_reading(monkeypatch, lambda one: os.kill(one.pid, signal.SIGKILL))
    assert "“t.csv” took longer than" in sentence or "cannot be read in" in sentence
    assert faults_of(sentence, "t.csv") == ""


def test_a_file_that_takes_too_long_is_told_in_one_sentence(monkeypatch):
    monkeypatch.setattr(process, "SECONDS", 0.2)
    sentence = killed_while_reading(monkeypatch, lambda one: None)
    assert sentence.startswith("“t.csv” took longer than 0 s to read; give fewer rows")
    assert faults_of(sentence, "t.csv") == ""


@needs_proc
def test_a_file_that_takes_too_much_memory_is_told_in_one_sentence(monkeypatch):
    monkeypatch.setattr(process, "MEMORY", 20 << 20)
    stream = io.BytesIO()
    np.save(stream, np.random.default_rng(0).integers(9, size=(3000, 900)).astype(np.int16))
    with pytest.raises(InputError) as refused:
        apart("big.npy", stream.getvalue())
    assert str(refused.value).startswith(
        "“big.npy” cannot be read in 21 MB, the most that this machine"
    )
    assert faults_of(str(refused.value), "big.npy") == ""
    monkeypatch.undo()
    assert apart("big.npy", stream.getvalue()).n_rows == 3000


def test_what_a_killed_server_left_is_removed_by_the_next_reading(tmp_path):
    old, new = tmp_path / "reading-old", tmp_path / "reading-new"
    for folder in (old, new):
        folder.mkdir()
        (folder / "0").write_bytes(b"rows")
    day = time.time() - 2 * 86_400
    os.utime(old, (day, day))
    apart("t.csv", TABLE, limits=ReadLimits(scratch=tmp_path), missing="mean")
    assert [one.name for one in tmp_path.iterdir()] == ["reading-new"]
