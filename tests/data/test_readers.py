"""Files beside each other, one row, gaps left to the model, and reading in another process."""

import hashlib
import io
import os
import signal
import time
from functools import partial

import numpy as np
import pandas as pd
import pytest

from appca.data.files import ONE_IS_ENOUGH, ReadLimits, checksum, plain_file
from appca.data.readers import process, read, read_many
from appca.data.readers.process import read_apart, warm
from appca.words import InputError
from tests.data.file_makers import encoded, idx, mat, npz, stored
from tests.memory import needs_proc
from tests.sentences import faults_of


def load(files, **options):
    return read_many([(name, io.BytesIO(data)) for name, data in files.items()], **options)


def test_files_that_do_not_belong_together_are_refused():
    table, text = b"1,2\n3,4", {"readme.txt": b"we did this", "t.csv": b"k,a,b\nu,1,2\nv,3,4.5"}
    for files in (
        {"a.csv": table, "b.csv": table},
        {"a.npy": b"x", "b.idx": b"x"},
        {"a.nii": b"x", "b.nii": b"x"},
        {"a.txt": b"x", "README": b"x", "c": b"x", "d": b"x"},
        text | {"readme.txt": b"1 2\n3 4"},
    ):
        with pytest.raises(InputError, match="do not make one data set together"):
            load(files)
    with pytest.raises(InputError, match="no file to read"):
        read_many([])
    dataset = load(text)
    assert dataset.feature_names == ("a", "b")
    assert dataset.provenance["report"]["skipped"] == ["readme.txt"]


def test_a_data_set_remembers_its_file_by_checksum_and_how_it_was_read():
    data = b"id;a;b\n1;2;x\n2;3;y\n3;5;z\n"
    dataset = read("t.csv", io.BytesIO(data), roles={"id": "feature"}, separator=";")
    assert dataset.provenance["sha256"] == hashlib.sha256(data).hexdigest()
    assert dataset.provenance["options"] == {"roles": {"id": "feature"}, "separator": ";"}
    both = [("a", io.BytesIO(b"1")), ("b", io.BytesIO(b"2"))]
    assert checksum(both) != checksum(both[::-1])


def test_a_file_on_the_disk_is_opened_where_it_is_and_others_are_copied(tmp_path):
    path = tmp_path / "plain"
    path.write_bytes(b"numbers")
    with plain_file("plain", path) as stream:
        assert stream.name == str(path)
    with plain_file(
        "plain", io.BytesIO(b"numbers"), ReadLimits(scratch=tmp_path / "new")
    ) as stream:
        assert stream.read() == b"numbers"
        assert stream.fileno() > 2
    assert list((tmp_path / "new").iterdir()) == []


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_table_beside_an_array_names_and_labels_its_rows(kind, seed):
    X = np.random.default_rng(seed).normal(size=(9, 16)).astype(np.float32)
    columns = {"id": [f"p{i}" for i in range(9)], "kind": list("abc") * 3}
    table = pd.DataFrame(columns | {"year": np.arange(9) % 4 + 2000})
    write = {"csv": partial(table.to_csv, index=False), "parquet": table.to_parquet}[kind]
    beside = {f"meta.{kind}": stored(write)}
    dataset = load(beside | {"X.npy": stored(np.save, X)})
    np.testing.assert_array_equal(dataset.X, X)
    assert dataset.ids.tolist() == table["id"].tolist()
    for name in ("kind", "year"):
        assert dataset.labels[name].tolist() == table[name].tolist()
    with pytest.raises(InputError, match="has 9 lines for the 8 rows of the array"):
        load(beside | {"X.npy": stored(np.save, X[1:])})


ROW = np.array([[1, 7, 0, 255, 3, 2]], dtype=np.uint8)
FRAME = pd.DataFrame(ROW.astype(np.float64), columns=list("abcdef"))
FILES = {
    "a.csv": lambda rows: FRAME.iloc[[0] * len(rows)].to_csv(index=False).encode(),
    "plain.csv": lambda rows: ("1.0,7,0,255,3,2\n" * len(rows)).encode(),
    "a.parquet": lambda rows: pd.concat([FRAME] * len(rows), ignore_index=True).to_parquet(),
    "a.npy": lambda rows: stored(np.save, rows),
    "a.npz": lambda rows: npz(X=rows, offset=np.ones(6)),
    "a.mat": lambda rows: mat(X=rows),
    "a.idx": idx,
    "a.png": lambda rows: encoded(rows[:1].reshape(2, 3)),
}


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("name", FILES)
def test_a_single_row_and_rows_all_the_same_are_read_where_that_is_enough(name, n):
    content = FILES[name](np.repeat(ROW, n, 0))
    found = read(name, io.BytesIO(content), limits=ONE_IS_ENOUGH)
    np.testing.assert_array_equal(found.X, np.repeat(ROW, 1 if name == "a.png" else n, 0))
    with pytest.raises(InputError, match=r"at least 2|are the same; choose data that vary"):
        read(name, io.BytesIO(content))


def test_a_gap_in_a_single_row_can_only_be_left_to_the_model_and_no_row_is_never_enough():
    def one(name, content, **how):
        return read(name, io.BytesIO(content), limits=ONE_IS_ENOUGH, **how)

    for how in ("refuse", "mean", "drop"):
        with pytest.raises(InputError, match=r"missing cell|No cell of column “b” holds a number"):
            one("one.csv", b"a,b,c\n1.5,,2.5\n", missing=how)
    found = one("one.csv", b"a,b,c\n1.5,,2.5\n", missing="model")
    np.testing.assert_array_equal(found.with_gaps(), [[1.5, np.nan, 2.5]])
    for name, content in (("a.csv", b"a,b\n"), ("a.npy", stored(np.save, np.zeros((0, 5))))):
        with pytest.raises(InputError, match=r"holds a header line and no rows|at least 1 row"):
            one(name, content)
    b = np.arange(10.0).reshape(2, 5)  # an array with more rows goes first
    np.testing.assert_array_equal(one("two.npz", npz(a=np.ones((1, 5)), b=b)).X, b)


def test_a_file_read_apart_is_the_same_data_set_and_a_refusal_has_what_was_found(tmp_path):
    limits = ReadLimits(scratch=tmp_path / "new")
    here = read("t.csv", io.BytesIO(TABLE), missing="model")
    there = apart("t.csv", TABLE, limits=limits, missing="model")
    assert (there.digest, there.provenance) == (here.digest, here.provenance)
    assert there.ids.tolist() == here.ids.tolist()
    assert list((tmp_path / "new").iterdir()) == []  # and yet the numbers can be read
    assert there.X.sum() == here.X.sum()
    with pytest.raises(InputError, match="The data have 3 missing cells") as refused:
        apart("t.csv", TABLE)
    assert refused.value.report["missing"] == {"b": 3}
    with pytest.raises(InputError, match="Reading tables has the options"):
        apart("t.csv", TABLE, nothing=1)


# in another process


TABLE = b"id,class,a,b\n" + b"".join(b"r%d,%s,%d,\n" % (i, b"xy"[i % 2 :][:1], i) for i in range(3))
TABLE += b"r3,x,4,5\nr4,y,7,8\n"


def apart(name, data, **options):
    return read_apart([(name, io.BytesIO(data))], **options)


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


@pytest.mark.parametrize("end", [signal.SIGKILL, None])
def test_a_process_that_ends_or_takes_too_long_is_told_in_one_sentence(end, monkeypatch):
    asked = process.ReadingProcess.read

    def read(self, request):
        """Let the process stand still, and end it then."""
        os.kill(self.pid, signal.SIGSTOP)
        if end:
            os.kill(self.pid, end)
        return asked(self, request)

    warm()
    monkeypatch.setattr(process.ReadingProcess, "read", read)
    if not end:
        monkeypatch.setattr(process, "SECONDS", 0.2)
    with pytest.raises(InputError, match=r"“t\.csv” took longer than|cannot be read in") as refused:
        apart("t.csv", TABLE)
    assert end or str(refused.value).startswith("“t.csv” took longer than 0 s to read; give fewer")
    assert faults_of(str(refused.value), "t.csv") == ""
    monkeypatch.undo()
    assert apart("t.csv", TABLE, missing="mean").n_rows == 5, "the next file is read"
