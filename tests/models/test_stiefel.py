"""The polar factor, Pymanopt, and draws of orthonormal matrices."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose as close

from appca.models import stiefel

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


# Polar factor and Pymanopt ----------------------------------------------------------------------


@pytest.mark.parametrize(("n_rows", "n_columns"), [(1, 1), (2, 1), (3, 3), (8, 3), (300, 5)])
def test_the_polar_factor_beats_every_other_matrix(seed, n_rows, n_columns):
    rng = np.random.default_rng(seed)
    A = normal(rng, n_rows, n_columns)
    W = stiefel.polar(A)
    assert_orthonormal(W)
    best = np.vdot(W, A)
    others = matrices(rng, 300, n_rows, n_columns)
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
    A = normal(rng, 9, rank) @ normal(rng, rank, 4)
    previous = stiefel.random(rng, 9, 4)
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


def test_pymanopt_cannot_leave_the_wrong_half_of_the_square_matrices(seed):
    rng = np.random.default_rng(seed)
    A = normal(rng, 3, 3)
    mirrored = stiefel.polar(A) @ np.diag([1.0, 1.0, -1.0])
    W = stiefel.maximise(A, mirrored)
    assert np.linalg.det(W) == pytest.approx(np.linalg.det(mirrored))
    assert np.vdot(W, A) < np.linalg.norm(A, "nuc") - 1e-6


@pytest.mark.parametrize("call", [stiefel.polar, lambda A: stiefel.maximise(A, A)])
def test_wrong_matrices_are_refused_in_words(call):
    for words, A in (
        (r"at least as many rows as columns; got shape \(2, 3\)\.$", np.ones((2, 3))),
        (r"at least one column .* got shape \(2, 0\)\.$", np.ones((2, 0))),
        (r"^A must be finite; got NaN or infinite entries", np.array([[1.0], [np.nan]])),
    ):
        with pytest.raises(ValueError, match=words):
            call(A)


# Conditionals against the joint density ---------------------------------------------------------


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
    branches = stiefel.pair_parameters(F, W, np.array([i]), np.array([j]))
    constants = []
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


# Draws ------------------------------------------------------------------------------------------


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
    rng = np.random.default_rng(seed)
    F = np.array([[1.2, -0.4], [0.3, -0.5]])
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
