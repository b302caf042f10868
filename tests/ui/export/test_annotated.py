"""Annotated data on the page Export: the file that was opened with the fit, or a new file."""

import io

import h5py
import numpy as np
import pytest

from appca.cli import main
from appca.data.sources import load
from appca.runs.home import home
from appca.runs.store import RunStore
from tests.commands.test_annotated import ADDED, cells, tree  # noqa: F401 (a fixture)
from tests.commands.test_app import places  # noqa: F401 (a fixture)
from tests.data.file_makers import packed_store as packed
from tests.data.file_makers import store
from tests.ui.arrivals.test_uploads import give
from tests.ui.conftest import address, go, healthy
from tests.ui.export.test_export import file, made  # noqa: F401 (a fixture)


def captions(app):
    return "\n".join(one.value for one in app.caption).replace("\\", "")


def opened(start, path):
    """Open a file in the app, and then the page Export."""
    app = healthy(give(start("data/open"), (path.name, path.read_bytes())))
    return healthy(go(app, "export"))


def test_the_file_that_was_opened_gets_the_fit_and_keeps_everything_else(start, made, cells):  # noqa: F811
    app = opened(start, cells)
    assert "“cells.h5ad” with this fit. Nothing else in the file is changed." in captions(app)
    saved = io.BytesIO(file(made, "h5ad"))
    before, after = tree(cells), tree(saved)
    assert {name for name, digest in before.items() if after.get(name) != digest} == {"obs"}
    new = after.keys() - before.keys() - {"obsm", "varm", "uns"}
    assert all(name.startswith(ADDED) for name in new)
    run = RunStore(home()).get(address(app)["run"])
    with h5py.File(saved) as saved_file:
        scores = saved_file["obsm/X_appca"][()]
        assert saved_file["uns/appca/params/model"][()] == b"aPPCA"
        assert saved_file["uns/appca/variance_ratio"].shape == (scores.shape[1],)
    np.testing.assert_array_equal(scores != 0, run.fitted.scores != 0)
    app = healthy(start("export", data=address(app)["data"]))  # the file is not at hand any more
    assert "To add the fit to “cells.h5ad” instead, open that file again." in captions(app)
    app = healthy(go(give(go(app, "data/open"), (cells.name, cells.read_bytes())), "export"))
    assert "“cells.h5ad” with this fit." in captions(app)


def test_other_data_make_a_new_file(start, made):  # noqa: F811
    app = healthy(start("export"))
    assert "A new file: the rows as X, their labels as obs, and this fit." in captions(app)
    saved = io.BytesIO(file(made, "h5ad"))
    digits = load("digits")
    with h5py.File(saved) as saved_file:
        np.testing.assert_array_equal(saved_file["X"][()], digits.X)
        assert list(saved_file["obs/_index"].asstr()) == digits.ids.tolist()
        codes, names = (saved_file[f"obs/digit/{part}"] for part in ("codes", "categories"))
        digit = names.asstr()[()][codes[()]] if names.dtype.kind == "O" else names[()][codes[()]]
        assert digit.tolist() == digits.labels["digit"].tolist()
        assert saved_file["varm/appca"].shape[0] == 64


@pytest.mark.parametrize("kind", ["cells.h5ad", "cells.zarr", "cells.zarr.zip"])
def test_what_was_opened_by_its_path_gets_the_fit_until_it_changes(
    start,
    made,  # noqa: F811
    cells,  # noqa: F811
    places,  # noqa: F811
    tmp_path,
    kind,
):
    path = cells
    if kind != "cells.h5ad":
        zarr = pytest.importorskip("zarr", reason="the extra dask brings it")
        path = store(tmp_path / "cells.zarr", cells.read_bytes())
    if kind == "cells.zarr.zip":
        content = packed(path)
        (path := tmp_path / kind).write_bytes(content)
    assert main([str(path)]) == 0
    app = healthy(start("export", data=places[0]["data"]))
    assert f"“{kind}” with this fit. Nothing else in the file is changed." in captions(app)
    (saved := tmp_path / "saved.zip").write_bytes(file(made, "h5ad"))
    run = RunStore(home()).get(address(app)["run"])
    if path is cells:
        with h5py.File(saved) as there:
            scores = there["obsm/X_appca"][()]
    else:
        with zarr.storage.ZipStore(saved, mode="r") as there:
            scores = zarr.open_group(there, mode="r")["obsm/X_appca"][...]
    np.testing.assert_allclose(scores, run.fitted.scores)
    changed = path / "obs" / "zarr.json" if path.is_dir() else path
    changed.write_bytes(b"{}")
    assert "open that file again" in captions(healthy(go(app, "export")))


def test_anndata_takes_a_new_file(start, made, tmp_path):  # noqa: F811
    ad = pytest.importorskip("anndata", reason="the extra anndata brings it")
    healthy(start("export"))
    (tmp_path / "digits.h5ad").write_bytes(file(made, "h5ad"))
    adata = ad.read_h5ad(tmp_path / "digits.h5ad")
    assert adata.shape == load("digits").X.shape
    assert adata.obs["appca_support"].cat.categories[0].startswith("{")
    adata.write_h5ad(tmp_path / "again.h5ad")


@pytest.mark.filterwarnings("ignore")  # of scanpy about its own libraries
def test_small_data_of_scanpy_go_to_the_app_to_a_file_and_to_plots_of_scanpy(
    start,
    made,  # noqa: F811
    tmp_path,
):
    ad = pytest.importorskip("anndata", reason="the extra anndata brings it")
    sc = pytest.importorskip("scanpy", reason="CI installs it beside anndata")
    import matplotlib

    matplotlib.use("Agg")
    before = sc.datasets.pbmc68k_reduced()
    before.layers["squares"] = before.X**2
    before.write_h5ad(tmp_path / "pbmc.h5ad")
    opened(start, tmp_path / "pbmc.h5ad")
    (tmp_path / "fitted.h5ad").write_bytes(file(made, "h5ad"))
    kept, after = tree(tmp_path / "pbmc.h5ad"), tree(tmp_path / "fitted.h5ad")
    assert {name for name, digest in kept.items() if after.get(name) != digest} == {"obs"}
    adata = ad.read_h5ad(tmp_path / "fitted.h5ad")
    np.testing.assert_array_equal(adata.layers["squares"], before.layers["squares"])
    assert adata.obs[before.obs.columns].equals(before.obs)
    assert adata.var.equals(before.var)
    sc.pl.embedding(adata, "X_appca", color="bulk_labels", show=False)
    sc.pl.embedding(adata, "X_umap", color="appca_probability", show=False)
    sc.pp.neighbors(adata, use_rep="X_appca", key_added="appca_neighbors")
    assert adata.obsp["appca_neighbors_distances"].shape == (700, 700)
