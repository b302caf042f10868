"""Tests that `appca fit CELLS.h5ad --out FITTED.h5ad` only adds to the file."""

import io

import h5py
import numpy as np
import pytest
from scipy.sparse import csr_matrix

from appca.cli import main
from tests.data.file_makers import counts, h5ad, store

ADDED = ("obsm/X_appca", "varm/appca", "uns/appca", "obs/appca_")
SMALL = ("-K", "3", "-L", "1", "-q", "--out")


def tree(path):
    """Every array and everything that is said of it, by its path."""
    found = {}

    def visit(name, item):
        said = sorted((key, np.asarray(value).tolist()) for key, value in item.attrs.items())
        values = item[()] if isinstance(item, h5py.Dataset) else ""
        found[name] = f"{said} {getattr(values, 'dtype', '')} {np.asarray(values).tolist()}"

    with h5py.File(path) as file:
        file.visititems(visit)
    return found


@pytest.fixture
def cells(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, marks = np.log1p(counts(0, 60, 8) * 1.0), np.arange(8) % 4 > 0
    labels = {"kind": list("ab") * 30, "highly_variable": marks}
    stream = io.BytesIO(h5ad(csr_matrix(X), {"raw": X}, {"X_two": X[:, :4]}, **labels))
    with h5py.File(stream, "r+") as file:
        file["obs"].attrs["column-order"] = np.array(["kind"], h5py.string_dtype())
    path = tmp_path / "cells.h5ad"
    path.write_bytes(stream.getvalue())
    return path


def test_everything_else_in_the_file_is_as_it_was(cells, capsys):
    before = tree(cells)
    assert main(["fit", "cells.h5ad", *SMALL, "fitted.h5ad"]) == 0
    after = tree("fitted.h5ad")
    assert tree(cells) == before
    changed = {name for name, content in before.items() if after.get(name) != content}
    assert changed == {"obs"}  # the order of its columns
    new = after.keys() - before.keys()
    assert all(name.startswith(ADDED) for name in new - {"obsm", "varm", "uns"})
    with h5py.File("fitted.h5ad") as file:
        columns = list(file["obs"].attrs["column-order"])
        assert columns == ["kind", "appca_support", "appca_probability"]
        scores = file["obsm/X_appca"][()]
        assert scores.shape == (60, 3)
        assert ((scores != 0).sum(axis=1) <= 1).all()
        assert not file["varm/appca"][::4].any()
        assert file["varm/appca"][1::4].any()
        assert file["uns/appca/params/n_active"][()] == 1
    assert main(["fit", "fitted.h5ad", *SMALL, "fitted.h5ad"]) == 0
    assert after.keys() <= tree("fitted.h5ad").keys()
    assert main(["fit", "cells.h5ad", *SMALL, "two.h5ad", "--option", "array=obsm/X_two"]) == 0
    with h5py.File("two.h5ad") as file:  # a representation has no loadings of variables
        assert "appca" not in file["varm"]
        assert file["uns/appca/params/use_rep"][()] == b"X_two"


def contents(folder):
    """Every file of a store, and the attributes of each group and array, by its path."""
    import zarr

    root = zarr.open_group(folder, mode="r", use_consolidated=False)
    said = {path: dict(item.attrs) for path, item in root.members(max_depth=None)}
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}, said


# `listed`: whether the root lists what is in the store
@pytest.mark.default_cases(1)
@pytest.mark.parametrize(("zarr_format", "listed"), [(2, True), (3, False)])
@pytest.mark.filterwarnings("ignore:Consolidated metadata")  # no part of the format, says zarr
def test_everything_else_in_a_store_is_as_it_was(cells, zarr_format, listed, capsys):
    zarr = pytest.importorskip("zarr", reason="the extra dask brings it")
    path = store(cells.with_name("cells.zarr"), cells.read_bytes(), zarr_format)
    if listed:
        zarr.consolidate_metadata(path, zarr_format=zarr_format)
    before, said = contents(path)
    assert main(["fit", "cells.zarr", *SMALL, "fitted.zarr"]) == 0
    assert contents(path)[0] == before
    after, now = contents(cells.with_name("fitted.zarr"))
    changed = {name for name, digest in before.items() if after.get(name) != digest}
    of_obs = "obs/.zattrs" if zarr_format == 2 else "obs/zarr.json"
    assert changed == {of_obs} | ({".zmetadata"} if listed else set())
    assert {key for key, value in said.items() if now[key] != value} == {"obs"}
    new = now.keys() - said.keys() - {"obsm", "varm", "uns"}
    assert all(name.startswith(ADDED) for name in new)
    root = zarr.open_group("fitted.zarr", mode="r")
    assert root["obs"].attrs["column-order"][-2:] == ["appca_support", "appca_probability"]
    assert str(root["obs/appca_support/categories"][0]).startswith("{")
    assert main(["fit", "cells.h5ad", *SMALL, "fitted.h5ad"]) == 0
    with h5py.File("fitted.h5ad") as file:
        for part in ("obsm/X_appca", "varm/appca", "obs/appca_support/codes"):
            np.testing.assert_array_equal(root[part][...], file[part][()])
    assert main(["fit", "fitted.zarr", *SMALL, "fitted.zarr.zip"]) == 0
    assert main(["data", "fitted.zarr.zip", "-q"]) == 0


def test_anndata_reads_the_file_and_the_canvas_restores_the_fit(cells):
    ad = pytest.importorskip("anndata", reason="the extra anndata brings it")
    pytest.importorskip("anywidget", reason="the extra notebook brings it")
    import appca

    adata = ad.AnnData(csr_matrix(counts(0, 60, 8) * 1.0))
    adata.obs["kind"] = list("ab") * 30
    adata.write_h5ad(cells)
    assert main(["fit", "cells.h5ad", *SMALL, "fitted.h5ad"]) == 0
    before, adata = ad.read_h5ad(cells), ad.read_h5ad("fitted.h5ad")
    np.testing.assert_array_equal(adata.X.toarray(), before.X.toarray())
    assert set(adata.obs["appca_support"]) <= {"{1}", "{2}", "{3}"}
    widget = appca.explore(adata)
    np.testing.assert_allclose(widget.run.scores, adata.obsm["X_appca"], rtol=1e-4, atol=1e-5)
    adata.write_h5ad("again.h5ad")
