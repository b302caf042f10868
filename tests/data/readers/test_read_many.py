import hashlib
import io
from functools import partial

import numpy as np
import pandas as pd
import pytest

from appca.data.files import ReadLimits, checksum, plain_file
from appca.data.readers import read, read_many
from appca.words import InputError


def load(files, **options):
    return read_many([(name, io.BytesIO(data)) for name, data in files.items()], **options)


@pytest.mark.parametrize(
    "files",
    [
        {"a.csv": b"1,2\n3,4", "b.csv": b"1,2\n3,4"},
        {"a.npy": b"x", "b.idx": b"x"},
        {"a.nii": b"x", "b.nii": b"x"},
        {"a.txt": b"x", "README": b"x", "c": b"x", "d": b"x"},
    ],
)
def test_files_that_do_not_belong_together_are_refused(files):
    with pytest.raises(InputError, match="do not make one data set together"):
        load(files)
    with pytest.raises(InputError, match="no file to read"):
        read_many([])


def test_a_text_without_a_table_is_left_out_and_named():
    files = {"readme.txt": b"we did this", "t.csv": b"k,a,b\nu,1,2\nv,3,4.5"}
    dataset = load(files)
    assert dataset.feature_names == ("a", "b")
    assert dataset.provenance["report"]["skipped"] == ["readme.txt"]
    with pytest.raises(InputError, match="do not make one data set together"):
        load(files | {"readme.txt": b"1 2\n3 4"})


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


def test_a_disk_without_room_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="could not be copied for reading"):
        plain_file("x", io.BytesIO(b"1"), ReadLimits(scratch=tmp_path / "file"))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_table_beside_an_array_names_and_labels_its_rows(kind, seed):
    X = np.random.default_rng(seed).normal(size=(9, 16)).astype(np.float32)
    table = pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(9)],
            "kind": list("abc") * 3,
            "year": np.arange(9) % 4 + 2000,
        }
    )
    np.save(array := io.BytesIO(), X)
    write = {"csv": partial(table.to_csv, index=False), "parquet": table.to_parquet}[kind]
    write(beside := io.BytesIO())
    dataset = load({f"meta.{kind}": beside.getvalue(), "X.npy": array.getvalue()})
    np.testing.assert_array_equal(dataset.X, X)
    assert dataset.ids.tolist() == table["id"].tolist()
    assert dataset.labels["kind"].tolist() == table["kind"].tolist()
    assert dataset.labels["year"].tolist() == table["year"].tolist()
    np.save(array := io.BytesIO(), X[1:])
    with pytest.raises(InputError, match="has 9 lines for the 8 rows of the array"):
        load({f"meta.{kind}": beside.getvalue(), "X.npy": array.getvalue()})
