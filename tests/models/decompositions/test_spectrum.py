import numpy as np
import pytest
from scipy.sparse import csr_array

from appca.models import spectrum
from appca.models.rows import Rows, about, centre_of, project
from appca.models.sparse_rows import sparse_rows
from appca.models.spectrum import lift, lower, principal, sketched, thin

SHAPES = {"long": (200, 12), "square": (30, 30), "wide": (25, 80)}


def decaying(shape, seed):
    rng = np.random.default_rng(seed)
    n, d = shape
    return rng.standard_normal((n, d)) * 0.8 ** np.arange(d) + 5.0


@pytest.mark.parametrize("dense", [True, False], ids=["dense", "subspace iteration"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_principal_directions_equal_those_of_a_singular_value_decomposition(
    shape, dense, seed, monkeypatch
):
    if not dense:
        monkeypatch.setattr(spectrum, "DENSE_LIMIT", 1)
    X = decaying(shape, seed)
    found = principal(np.random.default_rng(seed), about(X, centre_of(X)), 5)
    _, s, Vt = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    np.testing.assert_allclose(found.values, s[:5] ** 2 / len(X), rtol=1e-8)
    np.testing.assert_allclose(np.abs(np.sum(found.V * Vt[:5].T, axis=0)), 1.0, atol=1e-8)
    np.testing.assert_allclose(found.V.T @ found.V, np.eye(5), atol=1e-10)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_a_sketch_of_wide_rows_holds_nearly_what_the_leading_directions_do(
    seed, sparse, monkeypatch
):
    monkeypatch.setattr(spectrum, "DENSE_LIMIT", 20)
    X = decaying((60, 80), seed)
    Y = sparse_rows(csr_array(X)) if sparse else X
    V = sketched(np.random.default_rng(seed), about(Y, centre_of(Y)), 5)
    s = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
    held = np.square((X - X.mean(axis=0)) @ V).sum()
    assert 1.0 >= held / np.square(s[:5]).sum() > 0.999
    np.testing.assert_allclose(V.T @ V, np.eye(5), atol=1e-10)


def test_directions_are_orthonormal_also_where_variance_vanishes():
    X = np.outer(np.arange(10.0), np.ones(40))  # one direction only
    found = principal(np.random.default_rng(0), about(X, centre_of(X)), 4)
    np.testing.assert_allclose(found.V.T @ found.V, np.eye(4), atol=1e-10)
    np.testing.assert_allclose(found.values[1:], 0.0, atol=1e-10)


@pytest.mark.parametrize("centred", [True, False])
def test_thin_coordinates_keep_all_inner_products_and_lead_back(centred, seed):
    X = decaying((25, 80), seed)
    rows = about(X, centre_of(X) if centred else None)
    space = thin(rows)
    B = X - X.mean(axis=0) if centred else X
    assert space.rows.X.shape[1] == 25 - centred
    assert space.rows.n_features == 80
    np.testing.assert_allclose(space.rows.X @ space.rows.X.T, B @ B.T, atol=1e-9)
    W_thin = np.linalg.qr(np.random.default_rng(seed).standard_normal((25 - centred, 3)))[0]
    W = lift(W_thin, space, rows)
    np.testing.assert_allclose(W.T @ W, np.eye(3), atol=1e-10)
    np.testing.assert_allclose(project(rows, W), project(space.rows, W_thin), atol=1e-6)
    np.testing.assert_allclose(lower(W, space, rows), W_thin, atol=1e-6)


def test_repeated_rows_cost_dimensions_not_accuracy():
    X = np.repeat(decaying((10, 80), 0), 3, axis=0)
    space = thin(about(X, centre_of(X)))
    assert space.rows.X.shape == (30, 9)
    assert isinstance(space.rows, Rows)


def test_sketched_directions_hold_what_principal_ones_hold(seed):
    rng = np.random.default_rng(seed)
    spread = 1.0 / np.arange(1, 201)
    X = rng.standard_normal((500, 200)) * spread @ np.linalg.qr(rng.standard_normal((200, 200)))[0]
    rows = about(X, centre_of(X))
    V, best = sketched(rng, rows, 10), principal(rng, rows, 10).V
    np.testing.assert_allclose(V.T @ V, np.eye(10), atol=1e-12)
    held = [np.square(project(rows, U)).sum() for U in (V, best)]
    assert 0.999 * held[1] < held[0] < held[1]
    np.testing.assert_allclose(np.abs(np.sum(V[:, :3] * best[:, :3], axis=0)), 1.0, atol=1e-3)
