"""Zarr stores: annotated data as from .h5ad, a plain array, and stores that must not be opened."""

import importlib.util
import io
import json
import zipfile

import h5py
import numpy as np
import pytest
from scipy.sparse import csr_matrix

from appca.cli import main
from appca.data.readers import read, read_many
from appca.data.readers.process import read_apart
from appca.words import InputError, MissingExtraError
from tests.data.readers.sparse.test_sparse import counts, h5ad

REASON = "the extra dask brings it"
zarr = importlib.import_module("zarr") if importlib.util.find_spec("zarr") else None
pytestmark = pytest.mark.skipif(zarr is None, reason=REASON)


def store(folder, file: bytes, zarr_format: int = 3, chunk: int = 2):
    """Write what an .h5ad file holds as a Zarr store."""
    pytest.importorskip("zarr", reason=REASON)  # for tests of other modules
    root = zarr.open_group(folder, mode="w", zarr_format=zarr_format)

    def copy(name, item):
        if isinstance(item, h5py.Group):
            made = root.create_group(name)
        else:
            values = item[()]
            if values.dtype.kind in "OS":
                values = np.array([one.decode() for one in values], np.dtypes.StringDType())
            made = root.create_array(
                name, shape=values.shape, dtype=values.dtype, chunks=(chunk,) * values.ndim
            )
            made[...] = values
        said = {key: np.asarray(value).tolist() for key, value in item.attrs.items()}
        made.attrs.update(said)

    with h5py.File(io.BytesIO(file)) as source:
        source.visititems(copy)
    return folder


def packed(folder, inside: str = "") -> bytes:
    """Zip a store, in a folder or not."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, f"{inside}{path.relative_to(folder).as_posix()}")
    return stream.getvalue()


@pytest.fixture
def cells(seed):
    X = counts(seed).astype(np.float32)
    marks = np.arange(7) % 3 > 0
    return h5ad(
        csr_matrix(X),
        {"twice": 2 * X},
        {"X_two": X[:, :2]},
        kind=["B", "T", None] * 3,
        depth=np.arange(9) / 3,
        highly_variable=marks,
    )


def same(first, second):
    np.testing.assert_array_equal(first.X, second.X)
    assert first.ids.tolist() == second.ids.tolist()
    assert first.feature_names == second.feature_names
    assert {k: v.tolist() for k, v in first.labels.items()} == {
        k: v.tolist() for k, v in second.labels.items()
    }


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("inside", ["", "cells.zarr/"])
def test_a_zipped_store_is_read_as_the_same_h5ad_file(cells, tmp_path, zarr_format, inside):
    data = packed(store(tmp_path / "cells.zarr", cells, zarr_format), inside)
    for options in ({}, {"array": "layers/twice"}, {"array": "obsm/X_two", "labels": ("depth",)}):
        by_zarr = read("cells.zarr.zip", io.BytesIO(data), **options)
        same(by_zarr, read("cells.h5ad", io.BytesIO(cells), **options))
    same(read_apart([("cells.zarr.zip", io.BytesIO(data))]), read("a.h5ad", io.BytesIO(cells)))


def test_a_folder_is_opened_by_its_path(cells, tmp_path, capsys):
    (tmp_path / "cells.h5ad").write_bytes(cells)
    store(tmp_path / "cells.zarr", cells)
    for name in ("cells.h5ad", "cells.zarr"):
        command = ["data", str(tmp_path / name), "--out", str(tmp_path / f"{name}.csv"), "-q"]
        assert main(command) == 0
    tables = [(tmp_path / f"cells.{end}.csv").read_bytes() for end in ("h5ad", "zarr")]
    assert tables[0] == tables[1]
    fit = ["fit", str(tmp_path / "cells.zarr"), "-K", "2", "-L", "1", "--pca", "3", "-q"]
    assert main(fit) == 0


def test_an_array_has_the_rows(tmp_path, seed):
    X = np.random.default_rng(seed).normal(size=(11, 3)).astype(np.float32)
    zarr.create_array(tmp_path / "rows.zarr", data=X, chunks=(4, 2))
    dataset = read("rows.zarr.zip", io.BytesIO(packed(tmp_path / "rows.zarr")))
    np.testing.assert_array_equal(dataset.X, X)


@pytest.mark.parametrize(("described", "key"), [("codecs", "name"), ("filters", "id")])
def test_a_codec_that_runs_code_is_refused_before_anything_is_opened(
    tmp_path, seed, described, key, monkeypatch
):
    zarr_format = 3 if described == "codecs" else 2
    X = np.random.default_rng(seed).normal(size=(4, 3))
    array = zarr.create_array(
        tmp_path / "rows.zarr", shape=X.shape, dtype=X.dtype, zarr_format=zarr_format
    )
    array[...] = X
    (text,) = (tmp_path / "rows.zarr").glob("zarr.json" if zarr_format == 3 else ".zarray")
    said = json.loads(text.read_bytes())
    said[described] = [{key: "pickle"}, *(said[described] or [])]
    text.write_text(json.dumps(said))
    monkeypatch.setattr(zarr, "open", None)
    with pytest.raises(InputError, match="packed by the codec “pickle”; use Blosc"):
        read("rows.zarr.zip", io.BytesIO(packed(tmp_path / "rows.zarr")))


def test_a_store_of_another_kind_or_a_damaged_one_is_refused(tmp_path, cells):
    zarr.open_group(tmp_path / "a.zarr", mode="w").create_array("x", data=np.eye(4))
    with pytest.raises(InputError, match="neither AnnData nor a single array"):
        read("a.zarr.zip", io.BytesIO(packed(tmp_path / "a.zarr")))
    folder = store(tmp_path / "cells.zarr", cells)
    (folder / "X" / "data" / "zarr.json").write_text("{")
    with pytest.raises(InputError, match="is not a Zarr store in a zip, or is damaged"):
        read("cells.zarr.zip", io.BytesIO(packed(folder)))


def test_a_folder_that_was_dropped_says_how_it_is_opened(tmp_path, cells):
    folder = store(tmp_path / "cells.zarr", cells)
    files = [path for path in folder.rglob("*") if path.is_file()]
    with pytest.raises(InputError, match=r"zip it as NAME\.zarr\.zip, or name its path"):
        read_many([(path.relative_to(tmp_path).as_posix(), path) for path in files])


def test_without_the_package_a_sentence_says_what_brings_it(cells, tmp_path, monkeypatch):
    data = packed(store(tmp_path / "cells.zarr", cells))
    monkeypatch.setitem(__import__("sys").modules, "zarr", None)
    with pytest.raises(MissingExtraError, match=r"package zarr.*appca\[dask\]"):
        read("cells.zarr.zip", io.BytesIO(data))
