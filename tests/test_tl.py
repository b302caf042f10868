"""Tests of `appca.tl.appca` against the estimator, with AnnData that anndata has stored."""

import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csc_matrix, csr_matrix, issparse

import appca
from appca.words import InputError

ad = pytest.importorskip("anndata", reason="the extra anndata brings it")


def cells(seed, n=120, n_vars=14):
    """Return sparse counts of two kinds of cells; half of the genes are highly variable."""
    rng = np.random.default_rng(seed)
    rates = np.exp(rng.normal(size=(n, 3)) @ rng.normal(size=(3, n_vars)) / 2)
    adata = ad.AnnData(
        csr_matrix(np.log1p(rng.poisson(rates)).astype(np.float32)),
        obs=pd.DataFrame(
            {
                "kind": pd.Categorical(np.where(np.arange(n) % 2, "B", "T")),
                "depth": rng.normal(size=n),
                "fine": np.arange(n) % 3 == 0,
            },
            index=[f"cell{i}" for i in range(n)],
        ),
        var=pd.DataFrame(index=[f"gene{j}" for j in range(n_vars)]),
    )
    adata.var["highly_variable"] = np.arange(n_vars) % 2 == 0
    adata.layers["twice"] = csc_matrix(adata.X * 2)
    return adata


def test_the_parts_hold_what_the_estimator_says(seed):
    adata = cells(seed)
    assert appca.tl.appca(adata, 4, 2, random_state=3) is None
    X = adata.X[:, ::2]
    model = appca.AdaptivePPCA(4, 2, random_state=3).fit(X)
    np.testing.assert_allclose(adata.obsm["X_appca"], model.transform(X), rtol=1e-5, atol=1e-6)
    assert ((adata.obsm["X_appca"] != 0) <= model.allocate(X)).all()
    loadings = adata.varm["appca"]
    np.testing.assert_allclose(loadings[::2], model.components_.T, rtol=1e-6)
    assert not loadings[1::2].any()
    uns = adata.uns["appca"]
    np.testing.assert_allclose(uns["variance"], model.explained_variance_)
    np.testing.assert_allclose(uns["variance_ratio"], model.explained_variance_ratio_)
    assert uns["params"]["n_active"] == 2
    assert uns["params"]["mask_var"] == "highly_variable"
    support = adata.obs["appca_support"]
    assert support.dtype == "category"
    assert support.value_counts(sort=False).is_monotonic_decreasing
    for row, name in enumerate(support):
        assert name == "{" + ",".join(map(str, np.flatnonzero(model.allocate(X)[row]) + 1)) + "}"
    assert adata.obs["appca_probability"].dtype == np.float32
    assert adata.obs["appca_probability"].between(0, 1).all()


def test_layer_representation_mask_key_and_copy(seed):
    adata = cells(seed)
    adata.obsm["X_two"] = np.random.default_rng(seed).normal(size=(adata.n_obs, 5))
    copy = appca.tl.appca(adata, 3, 1, layer="twice", mask_var=None, key_added="a", copy=True)
    assert "a" not in adata.uns
    model = appca.AdaptivePPCA(3, 1, random_state=0).fit(2 * adata.X.toarray())
    np.testing.assert_allclose(copy.varm["a"], model.components_.T, atol=1e-3)
    assert copy.uns["a"]["params"]["layer"] == "twice"
    appca.tl.appca(copy, 3, 1, use_rep="X_two", key_added="a", sparse=True)
    assert "a" not in copy.varm
    assert issparse(copy.obsm["X_a"])
    assert copy.obsm["X_a"].nnz <= copy.n_obs
    appca.tl.appca(copy, 2, 1, mask_var=np.arange(14) < 6, key_added="b")
    assert (np.flatnonzero(copy.varm["b"].any(axis=1)) < 6).all()


def test_a_lasso_is_a_column_and_columns_are_colors(tmp_path, seed):
    pytest.importorskip("anywidget", reason="the extra notebook brings it")
    adata = cells(seed)
    adata.obs["barcode"] = [f"{i}" * 3 for i in range(adata.n_obs)]
    adata.obsm["X_umap"] = np.random.default_rng(seed).normal(size=(adata.n_obs, 2))
    with pytest.raises(InputError, match="There is no fit in uns"):
        appca.explore(adata)
    appca.tl.appca(adata, 4, 2)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    adata = ad.read_h5ad(tmp_path / "cells.h5ad")
    widget = appca.explore(adata)
    meta = widget._scene["meta"]
    assert {"label:kind", "label:depth", "label:fine", "label:appca_support"} <= set(
        meta["colourings"]
    )
    assert meta["layouts"]["UMAP"]["kind"] == "map"
    assert {name for name, _ in meta["components"][0]["columns"]} <= set(adata.var_names)
    np.testing.assert_allclose(widget.run.scores, adata.obsm["X_appca"], rtol=1e-4, atol=1e-5)
    assert widget.rows.dataset.ids[5] == "cell5"
    widget.selection = [3, 7]
    assert np.flatnonzero(adata.obs["appca_selected"]).tolist() == [3, 7]
    with pytest.raises(InputError, match="4 variables of the fit"):
        appca.explore(adata[:, 3:10])
    adata.X = adata.X * 2
    with pytest.raises(InputError, match=r"its scores in obsm differ\. Restore"):
        appca.explore(adata)


def test_the_guide_runs_on_the_data_that_scanpy_brings():
    pytest.importorskip("scanpy")
    pytest.importorskip("anywidget", reason="the extra notebook brings it")
    import matplotlib

    matplotlib.use("Agg")
    guide = (Path(__file__).parents[1] / "docs" / "guides" / "anndata.md").read_text("utf-8")
    code = re.findall(r"^```python\n(.*?)^```", guide, re.M | re.S)
    assert len(code) == 4
    names: dict = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from scanpy and its dependencies
        for part in code:
            exec(part, names)
    adata = names["adata"]
    assert adata.obs["appca_selected"].sum() == 3
    assert adata.obsm["X_appca"].shape == (700, 12)
    assert (adata.obsm["X_appca"] != 0).sum(axis=1).max() == 3


def test_values_sparse_dense_and_on_disk_give_the_same_and_come_back(seed, tmp_path, monkeypatch):
    full, adata = cells(seed), cells(seed)
    full.X = full.X.toarray()
    appca.tl.appca(full, 4, 2)
    with monkeypatch.context() as patch:
        patch.setattr("appca.frames.dense", None)  # sparse values must not become dense
        appca.tl.appca(adata, 4, 2)
    assert adata.obs["appca_support"].tolist() == full.obs["appca_support"].tolist()
    np.testing.assert_allclose(adata.obsm["X_appca"], full.obsm["X_appca"], atol=0.02)
    before = cells(seed)
    before.write_h5ad(tmp_path / "before.h5ad")
    backed = ad.read_h5ad(tmp_path / "before.h5ad", backed="r")
    appca.tl.appca(backed, 4, 2)
    np.testing.assert_array_equal(backed.obsm["X_appca"], adata.obsm["X_appca"])
    adata.write_h5ad(tmp_path / "cells.h5ad")
    again = ad.read_h5ad(tmp_path / "cells.h5ad")
    np.testing.assert_array_equal(again.obsm["X_appca"], adata.obsm["X_appca"])
    assert again.obs["appca_support"].tolist() == adata.obs["appca_support"].tolist()
    np.testing.assert_array_equal(again.X.toarray(), before.X.toarray())
    pd.testing.assert_frame_equal(again.obs[before.obs.columns], before.obs)
    pd.testing.assert_frame_equal(again.var, before.var)
    assert set(again.obsm) | set(again.varm) | set(again.uns) == {"X_appca", "appca"}


def test_what_is_not_there_is_refused(seed):
    for wrong, words in (
        ({"layer": "counts"}, "There is no layer “counts” in layers; there are “twice”"),
        ({"use_rep": "X_pca"}, "There is no key “X_pca” in obsm"),
        ({"mask_var": "variable"}, "There is no column “variable” in var"),
        ({"mask_var": np.ones(3, bool)}, "each of the 14 variables; got bool of shape"),
        ({"layer": "twice", "use_rep": "X"}, "Give layer or use_rep, not both"),
    ):
        with pytest.raises(InputError, match=words):
            appca.tl.appca(cells(seed), 3, 1, **wrong)
    script = "import appca, sys; appca.tl.appca; sys.exit('anndata' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_genes_of_the_same_name_stay_apart(seed):
    pytest.importorskip("anywidget", reason="the extra notebook brings it")
    adata = cells(seed)
    adata.var_names = ["MATR3", "a", "MATR3", *(f"g{j}" for j in range(11))]
    appca.tl.appca(adata, 4, 2)
    assert adata.uns["appca"]["features"][:2].tolist() == ["MATR3", "MATR3-1"]
    found = appca.explore(adata).run.scores
    np.testing.assert_allclose(found, adata.obsm["X_appca"], rtol=1e-4, atol=1e-5)
