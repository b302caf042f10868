"""Tests of polar factors, Pymanopt, draws of W, principal and independent components."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose as close
from scipy.linalg import sqrtm

from appca.models import independent_components, stiefel
from appca.models.rows import about, centre_of, project
from appca.models.stiefel import lift, lower, principal, sketched, thin
from tests.models.synthetic import drawn, matched_cosines

# With errors from 100 batches a correct kernel exceeds this once in five million statistics.
LARGEST_Z = 6.0


def normal(rng, *shape):
    return rng.standard_normal(shape)


def matrices(rng, number, n_rows, n_columns):
    """Haar draws by the definition: the polar factor of a normal matrix, (number, D, K)."""
    U, _, Vt = np.linalg.svd(normal(rng, number, n_rows, n_columns), full_matrices=False)
    return U @ Vt


def assert_orthonormal(W, atol=1e-13):
    close(W.T @ W, np.eye(W.shape[1]), rtol=0, atol=atol)


@pytest.mark.parametrize(("n_rows", "n_columns"), [(1, 1), (2, 1), (3, 3), (8, 3), (300, 5)])
def test_the_polar_factor_beats_every_other_matrix(seed, n_rows, n_columns):
    rng = np.random.default_rng(seed)
    A = normal(rng, n_rows, n_columns)
    W = stiefel.polar(A)
    assert_orthonormal(W)
    best, others = np.vdot(W, A), matrices(rng, 300, n_rows, n_columns)
    assert (np.einsum("ndk,dk->n", others, A) <= best + 1e-12).all()
    assert best == pytest.approx(np.linalg.norm(A, "nuc"), rel=1e-13)


@pytest.mark.parametrize("size", [1e-200, 1e-8, 1.0, 1e200])
def test_at_the_polar_factor_the_multiplier_is_symmetric_and_positive(seed, size):
    rng = np.random.default_rng(seed)
    A = size * normal(rng, 40, 6) * np.geomspace(1, 1e-9, 6)
    multiplier = stiefel.polar(A).T @ (A / size)
    close(multiplier, multiplier.T, rtol=0, atol=1e-13)
    assert np.linalg.eigvalsh(multiplier)[0] > 0


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_what_a_deficient_matrix_leaves_open_comes_from_the_previous_one(seed, rank):
    rng = np.random.default_rng(seed)
    A, previous = normal(rng, 9, rank) @ normal(rng, rank, 4), stiefel.random(rng, 9, 4)
    W = stiefel.polar(A, previous)
    assert_orthonormal(W)
    assert np.vdot(W, A) == pytest.approx(np.linalg.norm(A, "nuc"), rel=1e-12)
    if rank == 0:
        close(W, previous, rtol=0, atol=1e-13)
    # Other maximisers differ by turning the open directions; none is nearer to the previous matrix.
    U, _, Vt = np.linalg.svd(A)
    for turn in matrices(rng, 100, 9 - rank, 4 - rank):
        other = U[:, :rank] @ Vt[:rank] + U[:, rank:] @ turn @ Vt[rank:]
        assert np.vdot(other, A) == pytest.approx(np.vdot(W, A), rel=1e-12)
        assert np.vdot(other, previous) <= np.vdot(W, previous) + 1e-12


@pytest.mark.parametrize(("n_rows", "n_columns"), [(2, 1), (4, 4), (20, 3), (100, 12)])
def test_pymanopt_agrees_with_the_polar_factor_from_the_same_basin(seed, n_rows, n_columns):
    rng = np.random.default_rng(seed)
    A = 1e4 * normal(rng, n_rows, n_columns)
    best = stiefel.polar(A)
    start = stiefel.polar(best + 0.1 / math.sqrt(n_rows) * normal(rng, n_rows, n_columns))
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - the global generator is the point
    W = stiefel.maximise(A, start)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002
    assert_orthonormal(W)
    close(W, best, rtol=0, atol=1e-6)


@pytest.mark.parametrize("call", [stiefel.polar, lambda A: stiefel.maximise(A, A)])
def test_wrong_matrices_are_refused_in_words(call):
    for words, A in (
        (r"at least as many rows as columns; got shape \(2, 3\)\.$", np.ones((2, 3))),
        (r"at least one column .* got shape \(2, 0\)\.$", np.ones((2, 0))),
        (r"^A must be finite; got NaN or infinite entries", np.array([[1.0], [np.nan]])),
    ):
        with pytest.raises(ValueError, match=words):
            call(A)


@pytest.mark.parametrize(("n_rows", "n_columns"), [(2, 1), (3, 3), (8, 3), (50, 10)])
def test_the_conditional_of_a_column_has_the_ratios_of_the_joint(seed, n_rows, n_columns):
    rng = np.random.default_rng(seed)
    F, W = 100 * normal(rng, n_rows, n_columns), stiefel.random(rng, n_rows, n_columns)
    for k in range(n_columns):
        others = np.delete(W, k, axis=1)
        f = stiefel._without(others, F[:, k])
        close(others.T @ f, 0, atol=1e-11)
        w = normal(rng, n_rows)
        w -= others @ (others.T @ w)
        moved = W.copy()
        moved[:, k] = w / np.linalg.norm(w)
        ratio = np.vdot(F, moved) - np.vdot(F, W)
        assert f @ (moved[:, k] - W[:, k]) == pytest.approx(ratio, abs=1e-9)


@pytest.mark.parametrize(("n_rows", "n_columns"), [(2, 2), (3, 3), (8, 5)])
def test_the_conditional_of_a_pair_has_the_ratios_of_the_joint_on_both_branches(
    seed, n_rows, n_columns
):
    rng = np.random.default_rng(seed)
    F, W = 100 * normal(rng, n_rows, n_columns), stiefel.random(rng, n_rows, n_columns)
    i, j = n_columns - 1, 0
    a, b = W[:, i], W[:, j]
    branches, constants = stiefel.pair_parameters(F, W, np.array([i]), np.array([j])), []
    for (p, q), sign in zip(branches, (1, -1), strict=True):
        for t in rng.uniform(-np.pi, np.pi, 5):
            moved = W.copy()
            moved[:, i] = a * np.cos(t) + b * np.sin(t)
            moved[:, j] = sign * (b * np.cos(t) - a * np.sin(t))
            assert_orthonormal(moved)
            constants.append(np.vdot(F, moved) - (p[0] * np.cos(t) + q[0] * np.sin(t)))
    close(constants, constants[0], rtol=0, atol=1e-10)


@pytest.mark.parametrize("n_columns", range(1, 10))
def test_every_pair_meets_once_and_nobody_plays_twice_in_a_round(n_columns):
    met = []
    for i, j in stiefel._rounds(n_columns):
        players = [*i, *j]
        assert len(set(players)) == len(players)
        met += [tuple(sorted(pair)) for pair in zip(i, j, strict=True)]
    assert sorted(met) == [(i, j) for i in range(n_columns) for j in range(i + 1, n_columns)]


def chain(rng, sweep, F, W, n_draws):
    """The matrices (n_draws, D, K) after each sweep."""
    out = np.empty((n_draws, *W.shape))
    for n in range(n_draws):
        out[n] = W = sweep(rng, F, W)
    return out


def z_scores(draws, expected, error=0.0, n_batches=100):
    """Distance of the mean of correlated draws from its expectation, in errors by batch means."""
    batches = draws.reshape(n_batches, -1, draws.shape[1]).mean(axis=1)
    spread = np.hypot(batches.std(axis=0, ddof=1) / math.sqrt(n_batches), error)
    return np.abs(draws.mean(axis=0) - expected) / np.maximum(spread, 1e-12)


def moments(W):
    """Entries, products and, when square, the determinant of matrices (..., D, K), as (..., m)."""
    first, last, across = W[..., 0, 0], W[..., -1, -1], W[..., 0, -1] * W[..., -1, 0]
    entries = np.moveaxis(W, (-2, -1), (0, 1)).reshape(-1, *W.shape[:-2])
    sign = [np.linalg.det(W)] if W.shape[-2] == W.shape[-1] else []
    return np.stack([*entries, first**2, first * last, across, *sign], axis=-1)


def weighted_moments(rng, F, number=50_000):
    """Expected moments under exp(tr F'W), from weighted Haar draws, and their errors."""
    W = matrices(rng, number, *F.shape)
    weight = np.exp(np.einsum("ndk,dk->n", W, F))
    weight /= weight.mean()
    values = moments(W)
    expected = (weight[:, None] * values).mean(axis=0)
    error = (weight[:, None] * (values - expected)).std(axis=0) / math.sqrt(number)
    return expected, error


def uniform_moments(W):
    """Statistics (n, m) of matrices (n, D, K) and their expectations under the Haar measure."""
    n, D, K = W.shape
    first, last = W[:, 0, 0], W[:, -1, -1]
    draws = [*W.reshape(n, -1).T, first**2, first**4, last**2, last**4]
    return np.stack(draws, axis=-1), [0.0] * (D * K) + [1 / D, 3 / (D * (D + 2))] * 2


@pytest.mark.parametrize(
    ("kappa", "dimension"),
    [(0.0, 2), (3.0, 2), (0.5, 5), (50.0, 30), (1e5, 3), (1e5, 780), (1e9, 4)],
)
def test_the_cosine_has_the_moments_of_its_density(seed, kappa, dimension):
    rng = np.random.default_rng(seed)
    gaps = np.array([stiefel.draw_cosine_gap(rng, kappa, dimension) for _ in range(3000)])
    widest = min(np.pi, 30 / math.sqrt(kappa) * math.sqrt(dimension)) if kappa else np.pi
    angle = (np.arange(200_000) + 0.5) / 200_000 * widest
    gap = 2 * np.sin(angle / 2) ** 2
    log_density = -kappa * gap + (dimension - 2) * np.log(np.sin(angle))
    p = np.exp(log_density - log_density.max())
    p /= p.sum()
    mean = p @ gap
    for power in (1, 2):
        expected = p @ gap**power
        error = math.sqrt((p @ gap ** (2 * power) - expected**2) / len(gaps))
        assert abs((gaps**power).mean() - expected) < 5.5 * error
    assert abs((gaps > mean).mean() - p[gap > mean].sum()) < 5.5 * 0.5 / math.sqrt(len(gaps))


def test_two_by_two_draws_have_the_moments_of_both_halves_by_quadrature(seed):
    rng, F = np.random.default_rng(seed), np.array([[1.2, -0.4], [0.3, -0.5]])
    angle = np.arange(4000) * 2 * np.pi / 4000
    c, s = np.cos(angle), np.sin(angle)
    W = np.concatenate([np.array([[c, -s], [s, c]]), np.array([[c, s], [s, -c]])], axis=2)
    weight = np.exp(np.einsum("dkn,dk->n", W, F))
    expected = weight @ moments(np.moveaxis(W, 2, 0)) / weight.sum()
    draws = moments(chain(rng, stiefel.draw, F, np.eye(2), 4000))
    assert z_scores(draws, expected).max() < LARGEST_Z
    alone = moments(chain(rng, stiefel.draw_columns, F, np.eye(2), 1000))
    assert z_scores(alone, expected).max() > 20


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(("n_rows", "n_columns"), [(3, 3), (4, 2), (5, 3)])
def test_draws_have_the_moments_of_importance_sampling(seed, n_rows, n_columns):
    rng = np.random.default_rng(seed)
    F = 1.5 * np.random.default_rng(1).standard_normal((n_rows, n_columns))
    expected, error = weighted_moments(rng, F)
    start = stiefel.random(rng, n_rows, n_columns)
    draws = moments(chain(rng, stiefel.draw, F, start, 3000))
    assert z_scores(draws, expected, error).max() < LARGEST_Z
    # The erratum: A / (2 sigma2) has the same maximiser but is another distribution.
    halved = moments(chain(rng, stiefel.draw, F / 2, start, 1500))
    assert z_scores(halved, expected, error).max() > 8
    if n_rows == n_columns:
        alone = moments(chain(rng, stiefel.draw_columns, F, start, 1000))
        assert z_scores(alone, expected, error).max() > 20


@pytest.mark.parametrize(
    ("n_rows", "n_columns", "size"), [(6, 3, 1e5), (6, 3, 1e8), (3, 3, 1e5), (50, 1, 1e8)]
)
def test_huge_parameters_leave_half_a_nat_a_dimension(seed, n_rows, n_columns, size):
    # Near the maximum the density is normal, so tr F'W lies Gamma(dimension / 2, 1) below it.
    rng = np.random.default_rng(seed)
    best = stiefel.random(np.random.default_rng(2), n_rows, n_columns)
    F = size * best * np.linspace(1, 2, n_columns)
    W = chain(rng, stiefel.draw, F, best, 1500)
    below = np.einsum("dk,ndk->n", F, best - W)
    half = (n_rows * n_columns - n_columns * (n_columns + 1) / 2) / 2
    draws = np.stack([below, (below - half) ** 2], axis=-1)
    assert z_scores(draws, half).max() < LARGEST_Z


@pytest.mark.parametrize(("n_rows", "n_columns"), [(1, 1), (3, 3), (5, 2)])
def test_random_matrices_and_draws_without_a_parameter_are_uniform(seed, n_rows, n_columns):
    rng, F = np.random.default_rng(seed), np.zeros((n_rows, n_columns))
    W = np.array([stiefel.random(rng, n_rows, n_columns) for _ in range(4000)])
    for draws in (W, chain(rng, stiefel.draw, F, W[0], 2000)):
        assert z_scores(*uniform_moments(draws)).max() < LARGEST_Z


def rows_of(Y):
    return about(Y, centre_of(Y))


def decaying(shape, seed):
    rng = np.random.default_rng(seed)
    n, d = shape
    return rng.standard_normal((n, d)) * 0.8 ** np.arange(d) + 5.0


@pytest.mark.parametrize("dense", [True, False], ids=["dense", "subspace iteration"])
@pytest.mark.parametrize("shape", [(200, 12), (30, 30), (25, 80)], ids=["long", "square", "wide"])
def test_principal_directions_equal_those_of_a_singular_value_decomposition(
    shape, dense, seed, monkeypatch
):
    if not dense:
        monkeypatch.setattr(stiefel, "DENSE_LIMIT", 1)
    X = decaying(shape, seed)
    found = principal(np.random.default_rng(seed), about(X, centre_of(X)), 5)
    _, s, Vt = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    close(found.values, s[:5] ** 2 / len(X), rtol=1e-8)
    close(np.abs(np.sum(found.V * Vt[:5].T, axis=0)), 1.0, atol=1e-8)
    close(found.V.T @ found.V, np.eye(5), atol=1e-10)


@pytest.mark.parametrize("centred", [True, False])
def test_thin_coordinates_keep_all_inner_products_and_lead_back(centred, seed):
    X = decaying((25, 80), seed)
    rows = about(X, centre_of(X) if centred else None)
    space, B = thin(rows), X - X.mean(axis=0) if centred else X
    assert space.rows.X.shape[1] == 25 - centred
    assert space.rows.n_features == 80
    close(space.rows.X @ space.rows.X.T, B @ B.T, atol=1e-9)
    W_thin = np.linalg.qr(np.random.default_rng(seed).standard_normal((25 - centred, 3)))[0]
    W = lift(W_thin, space, rows)
    close(W.T @ W, np.eye(3), atol=1e-10)
    close(project(rows, W), project(space.rows, W_thin), atol=1e-6)
    close(lower(W, space, rows), W_thin, atol=1e-6)


def test_sketched_directions_hold_what_principal_ones_hold(seed):
    rng, spread = np.random.default_rng(seed), 1.0 / np.arange(1, 201)
    X = rng.standard_normal((500, 200)) * spread @ np.linalg.qr(rng.standard_normal((200, 200)))[0]
    rows = about(X, centre_of(X))
    V, best = sketched(rng, rows, 10), principal(rng, rows, 10).V
    close(V.T @ V, np.eye(10), atol=1e-12)
    held = [np.square(project(rows, U)).sum() for U in (V, best)]
    assert 0.999 * held[1] < held[0] < held[1]
    close(np.abs(np.sum(V[:, :3] * best[:, :3], axis=0)), 1.0, atol=1e-3)


def unit(W):
    return W / np.linalg.norm(W, axis=0)


def least_cosine(W, truth):
    return matched_cosines(unit(W).T, unit(truth)).min()


@pytest.mark.parametrize("name", ["ica", "pca", "random"])
def test_a_start_from_weighted_rows_is_that_from_repeated_ones(name, seed):
    Y, *_ = drawn(seed, 200, 8, 4, 2)
    rng = np.random.default_rng(seed)
    w = rng.integers(1, 4, 200)
    again = rng.permutation(np.repeat(np.arange(200), w))
    weighted, begin = about(Y, centre_of(Y, w), w.astype(float)), independent_components.NAMED[name]
    one = begin(np.random.default_rng(0), weighted, 4, 2)
    other = begin(np.random.default_rng(0), rows_of(Y[again]), 4, 2)
    close(one.W, other.W, atol=1e-6)
    assert one.noise == pytest.approx(other.noise, rel=1e-9)
    repeated = rows_of(Y[again])
    taken = [independent_components.from_loadings(X, one.W).noise for X in (weighted, repeated)]
    assert taken[0] == pytest.approx(taken[1])


def test_rows_of_the_data_are_drawn_as_loadings_by_their_weight(seed):
    Y, w = np.eye(6) - np.eye(6).mean(axis=0), np.array([1e6, 1e6, 1e-6, 1e-6, 1e-6, 1e-6])
    rows = about(Y, None, w)
    W = independent_components.dictionary(np.random.default_rng(seed), rows, 2, 1).W
    close(np.sort(np.abs(unit(W).T).argmax(axis=1)), [0, 1])


def test_fast_ica_undoes_a_rotation_of_sparse_scores_and_finds_nothing_in_gaussian_ones(seed):
    rng = np.random.default_rng(seed)
    S = rng.standard_normal((5000, 6)) * (rng.random((5000, 6)) < 0.4)
    rotation = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    R = independent_components.fast_ica(rng, S / S.std(axis=0) @ rotation.T)
    close(R.T @ R, np.eye(6), atol=1e-10)
    assert least_cosine(R, rotation) > 0.99
    R = independent_components.fast_ica(rng, rng.standard_normal((5000, 6)) @ rotation.T)
    assert least_cosine(R, rotation) < 0.95


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fast_ica_takes_the_steps_of_its_equation_on_scores_made_white(dtype, seed):
    rng = np.random.default_rng(seed)
    S = rng.standard_normal((20_000, 5)) * (rng.random((20_000, 5)) < 0.3)
    P = (S @ rng.standard_normal((5, 5)) * [1, 2, 3, 4, 50]).astype(dtype)
    white = P @ np.linalg.inv(sqrtm(P.T.astype(np.float64) @ P / len(P)))
    R = independent_components.fast_ica(np.random.default_rng(1), P, 0)
    for _ in range(3):
        U = white @ R
        U, _, Vt = np.linalg.svd(
            white.T @ np.tanh(U) / len(P) - R * np.mean(1 / np.cosh(U) ** 2, 0)
        )
        R = U @ Vt
    tol = 1e-9 if dtype is np.float64 else 1e-4
    close(independent_components.fast_ica(np.random.default_rng(1), P, 3), R, atol=tol)


def test_independent_components_start_at_the_true_loadings_and_principal_ones_do_not(seed):
    Y, W, *_ = drawn(seed, 1000, 50, 10, 5, noise=0.1)
    rng = np.random.default_rng(seed)
    found = independent_components.ica(rng, rows_of(Y), 10, 5)
    assert least_cosine(found.W, W) > 0.97
    assert least_cosine(independent_components.pca(rng, rows_of(Y), 10, 5).W, W) < 0.9
    assert found.noise == pytest.approx(0.01, rel=0.05)
    lengths = np.sort(np.linalg.norm(found.W, axis=0)), np.sort(np.linalg.norm(W, axis=0))
    close(*lengths, rtol=0.12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_starts_explain_the_variance_there_is(dtype, seed):
    Y = drawn(seed, 300, 8, 6, 2, noise=0.5)[0].astype(dtype)
    rows, rng = rows_of(Y), np.random.default_rng(seed)
    total = rows.squares.sum() / 300
    for name, start in independent_components.NAMED.items():
        for K in (3, 6, 8, 11):
            found = start(rng, rows, K, 2)
            assert found.W.shape == (8, K), name
            assert np.all(np.isfinite(found.W))
            assert found.noise > 0
            if name != "pca" or K <= 8:
                explained = np.square(found.W).sum() * 2 / K + 8 * found.noise
                assert 0.5 * total < explained < 2.0 * total, (name, K)


def test_more_factors_than_dimensions_start_from_rows_and_want_annealing(seed):
    Y = drawn(seed, 100, 4, 6, 1)[0]
    rows = rows_of(Y)
    found = independent_components.ica(np.random.default_rng(seed), rows, 6, 1)
    assert found.annealing == 30
    directions = unit((Y - rows.origin).T)
    assert np.abs(unit(found.W).T @ directions).max(axis=1) == pytest.approx(np.ones(6))
    assert len(np.unique(np.abs(unit(found.W).T @ directions).argmax(axis=1))) == 6
