"""`appca fit CELLS.h5ad --out FITTED.h5ad` adds to the file, and changes nothing else in it."""

import hashlib
import io

import h5py
import numpy as np
import pytest
from scipy.sparse import csr_matrix

from appca.cli import main
from tests.data.readers.sparse.test_sparse import counts, h5ad

ADDED = ("obsm/X_appca", "varm/appca", "uns/appca", "obs/appca_")


def tree(path):
    """Digest of every array and of everything that is said of it, by its path."""
    digests = {}

    def visit(name, item):
        said = sorted((key, np.asarray(value).tolist()) for key, value in item.attrs.items())
        values = item[()] if isinstance(item, h5py.Dataset) else ""
        content = f"{said} {getattr(values, 'dtype', '')} {np.asarray(values).tolist()}"
        digests[name] = hashlib.sha256(content.encode()).hexdigest()

    with h5py.File(path) as file:
        file.visititems(visit)
    return digests


@pytest.fixture
def cells(tmp_path, seed, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = np.log1p(counts(seed, 60, 8) * 1.0)
    marks = np.arange(8) % 4 > 0
    data = h5ad(
        csr_matrix(X), {"raw": X}, {"X_two": X[:, :4]}, kind=list("ab") * 30, highly_variable=marks
    )
    stream = io.BytesIO(data)
    with h5py.File(stream, "r+") as file:
        file["obs"].attrs["column-order"] = np.array(["kind"], h5py.string_dtype())
    path = tmp_path / "cells.h5ad"
    path.write_bytes(stream.getvalue())
    return path


def test_everything_else_in_the_file_is_as_it_was(cells, capsys):
    before = tree(cells)
    assert main(["fit", "cells.h5ad", "-K", "3", "-L", "1", "-q", "--out", "fitted.h5ad"]) == 0
    after = tree("fitted.h5ad")
    assert tree(cells) == before
    changed = {name for name, digest in before.items() if after.get(name) != digest}
    assert changed == {"obs"}  # the order of its columns
    new = after.keys() - before.keys()
    assert all(name.startswith(ADDED) for name in new - {"obsm", "varm", "uns"})
    with h5py.File("fitted.h5ad") as file:
        assert list(file["obs"].attrs["column-order"]) == [
            "kind",
            "appca_support",
            "appca_probability",
        ]
        scores = file["obsm/X_appca"][()]
        assert scores.shape == (60, 3)
        assert ((scores != 0).sum(axis=1) <= 1).all()
        assert not file["varm/appca"][::4].any()
        assert file["varm/appca"][1::4].any()
        assert file["uns/appca/params/n_active"][()] == 1
    again = tree("fitted.h5ad")
    assert main(["fit", "fitted.h5ad", "-K", "3", "-L", "1", "-q", "--out", "fitted.h5ad"]) == 0
    assert again.keys() <= tree("fitted.h5ad").keys()


def test_a_representation_has_no_loadings_of_variables(cells):
    command = ["fit", "cells.h5ad", "-K", "2", "-L", "1", "-q", "--out", "fitted.h5ad"]
    assert main([*command, "--option", "array=obsm/X_two"]) == 0
    with h5py.File("fitted.h5ad") as file:
        assert "appca" not in file["varm"]
        assert file["uns/appca/params/use_rep"][()] == b"X_two"


def test_annotated_data_alone_can_be_added_to(cells, capsys):
    assert main(["fit", "wine", "-K", "2", "-L", "1", "--out", "fitted.h5ad"]) == 2
    assert "DATA must be one .h5ad file" in capsys.readouterr().err


def test_anndata_reads_the_file_and_the_canvas_restores_the_fit(cells):
    ad = pytest.importorskip("anndata", reason="the extra anndata brings it")
    pytest.importorskip("anywidget", reason="the extra notebook brings it")
    import appca

    adata = ad.AnnData(csr_matrix(counts(0, 60, 8) * 1.0))
    adata.obs["kind"] = list("ab") * 30
    adata.write_h5ad(cells)
    assert main(["fit", "cells.h5ad", "-K", "3", "-L", "1", "-q", "--out", "fitted.h5ad"]) == 0
    before, adata = ad.read_h5ad(cells), ad.read_h5ad("fitted.h5ad")
    np.testing.assert_array_equal(adata.X.toarray(), before.X.toarray())
    assert adata.obs["appca_support"].cat.categories[0].startswith("{")
    assert set(adata.obs["appca_support"]) <= {"{1}", "{2}", "{3}"}
    widget = appca.explore(adata)
    np.testing.assert_allclose(widget.run.scores, adata.obsm["X_appca"], rtol=1e-4, atol=1e-5)
    adata.write_h5ad("again.h5ad")
