"""Variance-reduced EM and the compiled E step against plain EM and the E step of NumPy."""

from itertools import islice

import numpy as np
import pytest

from appca import AdaptivePPCA
from appca.models.algebra import stiefel
from appca.models.algebra.loop import iterate
from appca.models.orthonormal import em, screening, variance_reduced_em
from appca.models.orthonormal.em import EMMap, EMSettings, SubspaceState, expect, floor_of
from appca.models.orthonormal.starts import ascent, first_state
from appca.models.orthonormal.variance_reduced_em import AnchoredSample
from appca.models.rows.observations import about, centre_of
from tests.models.synthetic import planted


def settings(rows, k, n_active, latent="shared", *, compiled=False):
    floor = floor_of(rows)
    return EMSettings(k, n_active, latent, True, False, stiefel.polar, floor, compiled)


def problem(seed, n=600, d=12, k=5, n_active=2, dtype=np.float64):
    rng = np.random.default_rng(seed)
    data = planted(n, d, k, n_active, seed=seed, noise=0.5, offset=2.0)
    X = data.X.astype(dtype)
    rows = about(X, centre_of(X))
    W = np.linalg.qr(rng.standard_normal((d, k)))[0]
    return data, rows, SubspaceState(W, rng.standard_normal(k), rng.uniform(0.5, 2.0, k), 0.2)


@pytest.mark.parametrize("beta", [1.0, 0.1])
@pytest.mark.parametrize(("k", "n_active"), [(2, 1), (5, 2), (5, 4), (8, 4), (9, 1)])
def test_the_compiled_e_step_equals_that_of_numpy(k, n_active, beta, seed):
    _, rows, state = problem(seed, n=333, k=k, n_active=n_active)
    sums = [
        expect(state, rows, settings(rows, k, n_active, compiled=compiled), beta)
        for compiled in (False, True)
    ]
    for a, b in zip(*sums, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-10, atol=1e-8)


def test_the_compiled_e_step_counts_the_first_of_equal_logits(seed):
    """Rows at the mean along several components: L of them are used, by symmetry L/K of each."""
    X = np.zeros((64, 6))
    X[:, 5] = np.random.default_rng(seed).standard_normal(64)
    rows = about(X, None)
    state = SubspaceState(np.eye(6, 4), np.zeros(4), np.ones(4), 0.5)
    sums = expect(state, rows, settings(rows, 4, 2, compiled=True))
    np.testing.assert_allclose(sums.used, 32.0, rtol=1e-12)


def test_logits_of_thousands_stay_exact_in_the_compiled_e_step(seed):
    _, rows, state = problem(seed, n=200)
    state = state._replace(noise=1e-5)
    plain = expect(state, rows, settings(rows, 5, 2))
    compiled = expect(state, rows, settings(rows, 5, 2, compiled=True))
    assert abs(plain.log_likelihood) > 1e6
    assert compiled.log_likelihood == pytest.approx(plain.log_likelihood, rel=1e-12)
    np.testing.assert_allclose(compiled.used, plain.used, atol=1e-8)


@pytest.mark.parametrize(
    ("size", "worth"),
    [
        ((60_000, 10, 3), True),
        ((5000, 12, 6), True),
        ((178, 5, 2), False),
        ((10**6, 4, 4), False),
        ((2500, 100, 50), True),
    ],
)
def test_the_compiler_is_called_by_size_alone(size, worth):
    assert em.worth_compiling(*size) == worth


@pytest.mark.parametrize("latent", ["shared", "component", 1.0])
def test_a_corrected_step_at_its_start_is_the_step_of_all_rows(latent, seed):
    _, rows, state = problem(seed)
    chosen = settings(rows, 5, 2, latent)
    part = about(rows.X[::3], rows.origin)
    size = variance_reduced_em.DataSize(rows.n, rows.total, rows.n_features)
    C = variance_reduced_em.correction(
        expect(state, rows, chosen), expect(state, part, chosen), 3.0
    )
    _, ours = variance_reduced_em.corrected_step(state, part, C, 3.0, size, chosen)
    _, theirs = EMMap(rows, chosen)(state)
    np.testing.assert_allclose(ours.W, theirs.W, atol=1e-10)
    np.testing.assert_allclose(ours.shift, theirs.shift, atol=1e-10)
    np.testing.assert_allclose(ours.latent, theirs.latent, rtol=1e-10)
    assert ours.noise == pytest.approx(theirs.noise, rel=1e-10)


def test_the_corrected_likelihood_has_the_gradient_of_all_rows_at_the_anchor(seed):
    """Directional derivatives of l~ and of the exact log-likelihood, by differences."""
    _, rows, state = problem(seed)
    chosen = settings(rows, 5, 2, "component")
    part = about(rows.X[::3], rows.origin)
    size = variance_reduced_em.DataSize(rows.n, rows.total, rows.n_features)
    C = variance_reduced_em.correction(
        expect(state, rows, chosen), expect(state, part, chosen), 3.0
    )
    rng, h = np.random.default_rng(seed), 1e-5
    for _ in range(4):
        dW = rng.standard_normal(state.W.shape)
        dshift, dlog = rng.standard_normal(5), rng.standard_normal(6)

        def moved(t, dW=dW, dshift=dshift, dlog=dlog):
            return SubspaceState(
                stiefel.polar(state.W + t * dW),
                state.shift + t * dshift,
                state.latent * np.exp(t * dlog[:5]),
                state.noise * np.exp(t * dlog[5]),
            )

        def slope(value, moved=moved):
            return (value(moved(h)) - value(moved(-h))) / (2 * h)

        exact = slope(lambda s: expect(s, rows, chosen).log_likelihood)
        ours = slope(lambda s: variance_reduced_em.corrected_step(s, part, C, 3.0, size, chosen)[0])
        own = slope(lambda s: 3.0 * expect(s, part, chosen).log_likelihood)
        assert ours == pytest.approx(exact, rel=1e-4, abs=1e-3 * abs(exact - own))
        assert abs(own - exact) > 10 * abs(ours - exact)


def test_em_on_corrected_sums_never_lowers_the_corrected_likelihood(seed):
    _, rows, state = problem(seed)
    chosen = settings(rows, 5, 2, "component")
    part = about(rows.X[::3], rows.origin)
    size = variance_reduced_em.DataSize(rows.n, rows.total, rows.n_features)
    C = variance_reduced_em.correction(
        expect(state, rows, chosen), expect(state, part, chosen), 3.0
    )
    before = -np.inf
    for _ in range(25):
        value, state = variance_reduced_em.corrected_step(state, part, C, 3.0, size, chosen)
        assert value >= before - 1e-9 * abs(value)
        before = value


def test_variance_reduced_em_rises_and_ends_where_em_on_all_rows_ends(seed):
    data, rows, _ = problem(seed, n=4000)
    passes = EMMap(rows, settings(rows, 5, 2))
    start = first_state(rows, stiefel.polar(data.W + 0.1), passes.settings)
    basis = np.linalg.qr(np.random.default_rng(seed).standard_normal((12, 7)))[0]
    basis = variance_reduced_em.augmented_basis(basis[:, :4], start.W)
    sample = AnchoredSample(rows.X[::2], rows.origin, basis)
    climb = variance_reduced_em.variance_reduced_em(start, passes, sample)
    # At the top, rounding decides how many more steps are taken before one falls.
    values = [value for value, _ in islice(climb, 14)]
    assert np.all(np.diff(values) >= 0.0)
    plain = iterate(ascent(start, passes), tol=1e-7 * 4000, max_iter=2000).log_likelihood
    assert values[-1] == pytest.approx(plain, abs=1e-3 * 4000)


def test_outer_iterations_that_fall_are_shortened_and_then_end(seed, monkeypatch):
    _, rows, state = problem(seed, n=900)
    passes = EMMap(rows, settings(rows, 5, 2))
    top = iterate(ascent(state, passes), tol=1e-9 * 900, max_iter=3000).state
    lengths, inner_em = [], variance_reduced_em._inner_em

    def counted(*given):
        lengths.append(given[-2])
        return inner_em(*given)

    monkeypatch.setattr(variance_reduced_em, "_inner_em", counted)
    # a sample of ten rows knows nothing of the top of all
    seen = list(
        variance_reduced_em.variance_reduced_em(
            top, passes, AnchoredSample(rows.X[:10], rows.origin, np.eye(12))
        )
    )
    assert np.all(np.diff([value for value, _ in seen]) >= 0.0)
    assert sorted(set(lengths), reverse=True) == [20, 10, 5]


def test_augmented_bases_are_orthonormal_and_hold_both(seed):
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((20, 6)))[0]
    W = np.hstack(
        [basis[:, :2], rng.standard_normal((20, 3)), 1e-12 * rng.standard_normal((20, 1))]
    )
    wide = variance_reduced_em.augmented_basis(basis, W)
    assert wide.shape == (20, 9)
    np.testing.assert_array_equal(wide[:, :6], basis)
    np.testing.assert_allclose(wide.T @ wide, np.eye(9), atol=1e-10)
    np.testing.assert_allclose(wide @ (wide.T @ W), W, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_long_fits_end_as_high_as_the_plain_path(dtype, seed, monkeypatch):
    """The plain path: no sample, no coordinates, no momentum, no compiler."""
    monkeypatch.setattr(screening, "SAMPLE_ROWS_PER_COMPONENT", 100)
    monkeypatch.setattr(screening, "MIN_SAMPLE_ROWS", 100)
    monkeypatch.setattr(em, "LEAST_COMPILED", 1)
    data = planted(4000, 30, 5, 2, seed=seed, noise=0.5, offset=1.0)
    X = data.X.astype(dtype)
    seen = []
    fast = AdaptivePPCA(5, 2, random_state=0, tol=1e-6, callback=seen.append).fit(X)
    assert any(p.stage == "variance-reduced EM on 4,000 rows" for p in seen)
    monkeypatch.setattr(em, "LEAST_COMPILED", 10**12)
    plain = AdaptivePPCA(
        5, 2, init=fast.components_, accelerate=False, max_iter=2000, tol=1e-7
    ).fit(X)
    assert fast.score(X) >= plain.score(X) - (1e-6 if dtype == np.float64 else 1e-4) * abs(
        plain.score(X)
    )
    assert np.all(np.diff(fast.log_likelihoods_) >= -1e-6 * abs(fast.log_likelihoods_[-1]))
