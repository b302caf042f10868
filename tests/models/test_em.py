"""Tests of single EM steps of adaptive PPCA: reference pages, NumPy and compiled code agree."""

import itertools
from itertools import product
from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose as close
from numpy.testing import assert_array_equal as equal
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from appca import PPCA, AdaptivePPCA
from appca.models import climb, em, gaps, stiefel
from appca.models import rows as rows_module
from appca.models.climb import annealed, ascent, first_state
from appca.models.data_checks import without_subnormal
from appca.models.em import (
    EMMap,
    EMSettings,
    SubspaceState,
    Variant,
    evenly,
    expect,
    extend,
    floor_of,
    maximise,
    settings_on,
)
from appca.models.gaps import split_incomplete
from appca.models.loop import iterate
from appca.models.rows import about, centre_of
from appca.models.stiefel import polar
from tests.models.synthetic import planted
from tests.references import em_adaptive_ppca, em_incomplete
from tests.references.em_adaptive_ppca import Parameters

VARIANTS = [Variant(*which) for which in product([False, True], repeat=3)]
PAPER, ALL = VARIANTS[0], VARIANTS[-1]
GRID = np.array([0.4, 1.0, 2.5])


def settings_of(rows, k=4, n_active=2, latent="shared", mean="learned", **changes):
    learn, floor = mean == "learned", 1e-3 * floor_of(rows)
    usual = EMSettings(k, n_active, latent, learn, False, stiefel.polar, floor)
    return settings_on(rows, usual._replace(**changes))


def problem(seed, n=40, d=6, k=4, n_active=2, latent="shared", mean="learned", **changes):
    """Rows, settings, and a state off the truth."""
    rng, variant = np.random.default_rng(seed), changes.get("variant", PAPER)
    scales = np.linspace(1, 2, k)
    Y = planted(n, d, k, n_active, seed=seed, noise=0.6, scales=scales, offset=2.0).X
    if variant != PAPER:
        Y *= np.linspace(0.5, 2.0, d) * rng.choice([0.7, 1.5], (n, 1))
    rows = about(Y, None if mean == "zero" else centre_of(Y))
    settings = settings_of(rows, k, n_active, latent, mean, **changes)
    V = np.linalg.qr(rng.standard_normal((d, k)))[0]
    scale = rng.uniform(0.8, 2.0, d) if variant.by_feature else np.ones(())
    tau2 = rng.uniform(0.5, 3.0, k) if latent == "component" else np.full(k, 1.5)
    noise = 1.0 if variant.by_feature else 0.4
    offset = 0.1 * rng.standard_normal(d) if variant.row_scales else np.zeros(())
    omega, rho = rng.dirichlet(np.ones(len(settings.grid))), rng.dirichlet(np.ones(k + 1))
    shift = 0.3 * rng.standard_normal(k) if mean == "learned" else np.zeros(k)
    sizes = rho if variant.learn_sizes else None
    return rows, settings, SubspaceState(V, shift, tau2, noise, offset, scale, omega, sizes)


def parameters(rows, settings, state):
    """A state as the page has it: in data units, tau2 relative to the noise."""
    d, k = state.W.shape
    psi = np.broadcast_to(state.noise / state.scale**2, d)
    origin = np.zeros(d) if rows.origin is None else rows.origin
    W, mu, tau2 = np.sqrt(psi)[:, None] * state.W, origin + state.displacement, state.latent
    rho = np.eye(k + 1)[settings.n_active] if state.sizes is None else state.sizes
    return Parameters(W, mu, tau2 / state.noise, psi, settings.grid, state.weights, rho)


def compare(rows, settings, state):
    """Hold one step against the page."""
    at, variant = parameters(rows, settings, state), settings.variant
    log_p, supports, p = em_adaptive_ppca.e_step(rows.X, at, hard=settings.hard)
    value, new = EMMap(rows, settings)(state)
    assert value == expect(state, rows, settings).log_likelihood
    assert value == pytest.approx(log_p.sum(), rel=1e-11)
    how = {"by_feature": variant.by_feature, "latent": settings.latent}
    how |= {"learn_mean": settings.learn_mean, "rounds": em.W_STEPS if variant.by_feature else 1}
    wanted = em_adaptive_ppca.m_step(rows.X, at, supports, p, **how)
    for name, a, b in zip(Parameters._fields, parameters(rows, settings, new), wanted, strict=True):
        close(a, b, rtol=1e-8, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("hard", [False, True], ids=["soft", "hard"])
@pytest.mark.parametrize("mean", ["learned", "sample", "zero"])
@pytest.mark.parametrize("latent", ["shared", "component", 1.5])
def test_a_step_is_that_of_the_page(latent, mean, hard, seed):
    compare(*problem(seed, 60, 6, 5, 2, latent, mean, hard=hard))


@pytest.mark.parametrize("latent", ["shared", "component"])
@pytest.mark.parametrize("variant", VARIANTS[1:])
def test_a_step_of_a_variant_is_that_of_the_page(variant, latent, seed, monkeypatch):
    monkeypatch.setattr(em, "GRID", GRID)
    compare(*problem(seed, latent=latent, variant=variant))


# tables in NumPy up to K = 20, compiled rows beyond, by own products and by those of a BLAS
@pytest.mark.parametrize("hard", [False, True], ids=["soft", "hard"])
@pytest.mark.parametrize(
    ("shape", "compiled", "many"),
    [
        *[((*shape,), False, 15) for shape in [(4, 4, 1), (7, 4, 4), (12, 10, 8), (26, 22, 2)]],
        *[((*shape,), True, 15) for shape in [(260, 5, 2), (12, 8, 6), (26, 22, 20)]],
        *[((*shape,), True, 2) for shape in [(12, 7, 3), (26, 22, 2)]],
    ],
)
def test_a_step_is_that_of_the_page_by_every_way_to_sum(shape, compiled, many, hard, seed, patched):
    patched(MANY_SWAPS=many)
    latent = "shared" if hard else "component"  # hard, some components are not used at all
    compare(*problem(seed, 70, *shape, latent, compiled=compiled, hard=hard))


@pytest.fixture
def patched(monkeypatch):
    def patch(module=em, **values):
        for name, value in values.items():
            monkeypatch.setattr(module, name, value)

    return patch


@pytest.mark.parametrize("latent", ["shared", "component"])
def test_the_m_step_maximises_the_expected_complete_likelihood(latent, seed):
    rows, settings, state = problem(seed, latent=latent)
    Y, at = rows.X, parameters(rows, settings, state)
    _, supports, p = em_adaptive_ppca.e_step(Y, at)
    r, (m, v) = p[:, :, 0] @ supports, em_adaptive_ppca.scores(Y, at)
    s, second = np.sqrt(0.4) * r * m, 0.4 * r * (m**2 + v)
    new = maximise(expect(state, rows, settings), state, rows, settings)

    def expected(W, mu, tau2, noise):
        residual = np.sum((Y - mu - s @ W.T) ** 2) + np.sum(second) - np.sum(s**2)
        prior = np.sum(r * np.log(tau2) + second / tau2)
        return -0.5 * (Y.size * np.log(noise) + residual / noise + prior)

    mu = rows.origin + new.displacement
    best, rng = expected(new.W, mu, new.latent, new.noise), np.random.default_rng(seed)
    for size in (1e-3, 1e-1, 1.0):
        W = stiefel.polar(new.W + size * rng.standard_normal(new.W.shape))
        factor = np.exp(size * (rng.standard_normal(4) if latent == "component" else 1.0))
        moved = mu + size * rng.standard_normal(len(mu))
        own = (Y - s @ W.T).mean(axis=0)  # another W with its own best mean is no better either
        for other in (
            *[(W, mu, new.latent, new.noise), (new.W, mu, new.latent * factor, new.noise)],
            *[(new.W, mu, new.latent, new.noise * np.exp(sign * size)) for sign in (-1, 1)],
            *[(new.W, moved, new.latent, new.noise), (W, own, new.latent, new.noise)],
        ):
            assert expected(*other) < best


@pytest.mark.parametrize(("variant", "hard"), [*((v, False) for v in VARIANTS), (PAPER, True)])
@pytest.mark.parametrize("latent", ["shared", "component"])
def test_steps_never_lower_the_likelihood(variant, hard, latent, patched):
    patched(GRID=GRID)
    for seed in range(4):
        rows, settings, state = problem(seed, latent=latent, variant=variant, hard=hard)
        before = -np.inf
        for _ in range(15):
            value, state = EMMap(rows, settings)(state)
            assert value >= before - 1e-10 * abs(value), (seed, before, value)
            before = value


def test_momentum_never_lowers_it_saves_iterations_and_ends_as_high(seed):
    data = planted(400, 20, 6, 3, seed=seed, noise=1.0)
    rows = about(data.X, centre_of(data.X))
    settings = settings_of(rows, 6, 3)
    start = first_state(rows, data.W, settings)  # the truth, so that both climb the same hill
    plain, fast = (
        iterate(ascent(start, EMMap(rows, settings), accelerate=leaps), tol=4e-4, max_iter=5000)
        for leaps in (False, True)
    )
    assert len(fast.log_likelihoods) < 0.8 * len(plain.log_likelihoods)
    assert fast.log_likelihood == pytest.approx(plain.log_likelihood, abs=4.0)
    assert np.all(np.diff(fast.log_likelihoods) >= -1e-10 * abs(fast.log_likelihood))


def test_momentum_stays_on_the_manifold_above_the_floor_and_within_reach(seed):
    rows, settings, before = problem(seed, latent="component")
    now = before._replace(W=stiefel.polar(before.W + 0.05), shift=before.shift + 0.1)
    for noise in (1e-12, 1e3):
        ahead = extend(before, now._replace(noise=noise), 0.9, settings)
        close(ahead.W.T @ ahead.W, np.eye(4), atol=1e-12)
        assert ahead.noise >= settings.floor
        assert abs(np.log(ahead.noise / max(noise, settings.floor))) <= 1.0 + 1e-12
        close(ahead.shift, 1.9 * now.shift - 0.9 * before.shift)
    equal(extend(before, now, 0.9, settings._replace(latent=1.0)).latent, now.latent)
    rows, settings, state = problem(seed, variant=ALL)
    now = state._replace(scale=0.999 * settings.most)
    ahead = extend(state._replace(scale=0.5 * settings.most), now, 0.9, settings)
    assert (ahead.scale <= settings.most).all()
    assert ahead.weights.sum() == pytest.approx(1.0)
    assert ahead.sizes.min() > 0.0
    assert np.isfinite(expect(ahead, rows, settings).log_likelihood)


def test_passes_remember_their_last_sums(seed):
    rows, settings, state = problem(seed)
    passes = EMMap(rows, settings)
    value, following = passes(state)
    assert (value, following.noise) == (EMMap(rows, settings)(state)[0], passes(state)[1].noise)
    passes.e_step = None
    assert passes.sums(state).log_likelihood == value
    with pytest.raises(TypeError):
        passes.sums(following)


def test_hard_and_soft_steps_become_procrustes_on_the_top_components_as_noise_vanishes(seed):
    rows, settings, state = problem(seed, mean="sample")
    state, Y = state._replace(latent=np.ones(4), noise=1e-10), rows.X - rows.origin
    P = Y @ state.W
    kept = P * (np.argsort(np.argsort(-np.abs(P), axis=1), axis=1) < 2)
    U, _, Vt = np.linalg.svd(Y.T @ kept, full_matrices=False)
    for hard in (True, False):
        new = EMMap(rows, settings._replace(hard=hard))(state)[1]
        close(new.W, U @ Vt, atol=1e-6)
        assert new.noise == pytest.approx(np.mean((Y - kept @ new.W.T) ** 2), rel=1e-6)


def test_annealing_starts_indifferent_and_ends_in_plain_em(seed):
    rows, settings, state = problem(seed)
    for hard in (False, True):
        sums = expect(state, rows, settings._replace(hard=hard), beta=1e-12)
        close(sums.used, len(rows.X) * 2 / 4, rtol=1e-6)
    *_, (_, before_last), (value, _) = list(annealed(state, rows, settings))
    assert value == pytest.approx(EMMap(rows, settings)(before_last)[0], rel=1e-12)


def test_a_component_nobody_uses_keeps_its_variance():
    X = np.random.default_rng(0).standard_normal((50, 3)) * [5.0, 4.0, 1e-3]
    rows = about(X, centre_of(X))
    state = SubspaceState(np.eye(3), np.zeros(3), np.array([25.0, 16.0, 1e6]), 1e-4)
    settings = settings_of(rows, 3, 2, "component")
    assert expect(state, rows, settings).used[2] < 1e-3
    assert EMMap(rows, settings._replace(hard=True))(state)[1].latent[2] == 1e6


def test_the_noise_variance_stops_at_its_floor():
    X = planted(60, 5, 2, 1, seed=1, noise=0.0).X
    rows = about(X, centre_of(X))
    settings = settings_of(rows, 2, 1)._replace(floor=floor_of(rows))
    V = np.linalg.svd(X, full_matrices=False)[2][:2].T
    state = SubspaceState(V, np.zeros(2), np.ones(2), 1.0)
    for _ in range(100):
        state = EMMap(rows, settings)(state)[1]
    assert state.noise == settings.floor == pytest.approx(1e-8 * rows.squares.mean() / 5)


def scattered(seed, n, shape, dtype=np.float64, noise=0.7, weights=None, **changes):
    """Rows about a far origin, of all scales, and a state with a spread of variances."""
    d, k, n_active = shape
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * rng.uniform(0.5, 3.0, d) + 5.0
    variant = changes.get("variant", PAPER)
    X = (X * rng.choice(np.sqrt(em.GRID), (n, 1)) if variant.row_scales else X).astype(dtype)
    rows = about(X, centre_of(X, weights), weights)
    settings = settings_of(rows, k, n_active, compiled=True, **changes)
    W, shift = np.linalg.qr(rng.standard_normal((d, k)))[0], 0.3 * rng.standard_normal(k)
    state = SubspaceState(W, shift, rng.uniform(0.5, 2.0, k), noise)
    if variant.by_feature:
        state = state._replace(noise=1.0, scale=settings.most * rng.uniform(0.2, 1.0, d))
    if variant.row_scales:
        omega = rng.dirichlet(np.ones(len(settings.grid)))
        state = state._replace(offset=0.1 * rng.standard_normal(d), weights=omega)
    return state, rows, settings


def agree(state, rows, settings):
    wanted = expect(state, rows, settings._replace(compiled=False))
    for a, b in zip(expect(state, rows, settings), wanted, strict=True):
        close(a, b, rtol=1e-10, atol=1e-8)


PAPER_SIZES = [(30, 5, 2), (260, 10, 3), (300, 12, 11), (280, 4, 2), (300, 13, 6), (30, 20, 10)]
SIZES = [(12, 2, 1), (12, 5, 2), (12, 5, 4), (12, 8, 4), (12, 9, 1), (12, 9, 8)]
SCALED = Variant(by_feature=True, row_scales=True)


@pytest.mark.parametrize(
    ("shape", "changes"),
    [(shape, {"hard": hard}) for shape in PAPER_SIZES for hard in (False, True)]
    + [(shape, {"variant": v}) for shape in SIZES for v in (Variant(by_feature=True), SCALED)],
)
def test_the_compiled_e_step_equals_that_of_numpy(shape, changes, seed):
    """Rows of all lengths of the last lanes, by own products and by those of a BLAS."""
    agree(*scattered(seed, 130 + 7 * shape[1], shape, **changes))


def test_weights_large_logits_and_what_is_no_number_count_in_the_kernel_as_in_numpy(seed):
    weights = np.random.default_rng(seed).uniform(0.5, 3.0, 333)
    agree(*scattered(seed, 333, (12, 5, 2), weights=weights, variant=SCALED))
    state, rows, settings = scattered(seed, 333, (12, 5, 2), variant=SCALED)
    far = state._replace(scale=1e3 * state.scale, latent=1e6 * state.latent)
    found, wanted = (expect(far, rows, settings._replace(compiled=c)) for c in (True, False))
    assert abs(wanted.log_likelihood) > 1e7
    assert found.log_likelihood == pytest.approx(wanted.log_likelihood, rel=1e-12)
    close(found.used, wanted.used, atol=1e-8)
    sums = expect(state._replace(latent=state.latent * np.nan), rows, settings)
    assert np.isnan(sums.log_likelihood)


@pytest.mark.parametrize("noise", [3.0, 0.3, 1e-4])
@pytest.mark.parametrize(("d", "k", "n_active"), [(260, 10, 3), (40, 20, 10)])
def test_in_float32_it_keeps_four_digits_and_more(d, k, n_active, noise, seed):
    """From rows of which all subsets are alike to rows with one subset, logits of thousands."""
    state, rows, settings = scattered(seed, 500, (d, k, n_active), np.float32, noise)
    exact = about(rows.X.astype(np.float64), rows.origin.astype(np.float64))
    wanted = expect(state, exact, settings._replace(compiled=False))
    found = expect(state, rows, settings)
    assert found.log_likelihood == pytest.approx(wanted.log_likelihood, rel=1e-5)
    for a, b in zip(found[1:], wanted[1:], strict=True):
        close(a, b, rtol=1e-4, atol=1e-4 * np.abs(b).max())


@pytest.mark.parametrize("variant", [PAPER, SCALED])
def test_neither_tiles_nor_the_order_of_memory_matter_in_float32(variant, seed, patched):
    """By products made for few directions, against those of a BLAS in double precision."""
    weights = np.random.default_rng(seed).uniform(0.5, 3.0, 333) if variant == SCALED else None
    at = scattered(seed, 333, (300, 5, 2), np.float32, weights=weights, variant=variant)
    state, rows, settings = at
    exact = about(rows.X.astype(np.float64), rows.origin.astype(np.float64), weights)
    wanted = expect(state, exact, settings)
    for cache in (rows_module.CACHE_BYTES, 50 * 300 * 4):
        patched(rows_module, CACHE_BYTES=cache)
        for X in (rows.X, np.asfortranarray(rows.X), np.hstack([rows.X] * 2)[:, :300]):
            X.flags.writeable = False
            found = expect(state, rows._replace(X=X), settings)
            assert found.log_likelihood == pytest.approx(wanted.log_likelihood, rel=1e-6)
            close(found.A, wanted.A, atol=2e-5 * np.abs(wanted.A).max())
            close(found.power, wanted.power, rtol=1e-5)


def test_the_compiled_e_step_counts_the_first_of_equal_logits(seed):
    """Rows at the mean along several components: L of them are used, by symmetry L/K of each."""
    X = np.zeros((64, 6))
    X[:, 5] = np.random.default_rng(seed).standard_normal(64)
    rows, state = about(X, None), SubspaceState(np.eye(6, 4), np.zeros(4), np.ones(4), 0.5)
    close(expect(state, rows, settings_of(rows, compiled=True)).used, 32.0, rtol=1e-12)


@pytest.mark.parametrize(("n", "d", "k"), [(1, 3, 4), (7, 33, 8), (64, 256, 4), (129, 300, 12)])
def test_products_equal_those_of_numpy(n, d, k, seed):
    from appca.models.numeric_kernels import add_outer, project

    rng = np.random.default_rng(seed)
    X, W = rng.standard_normal((n, d)), rng.standard_normal((k, d))
    P, A = np.zeros((k, n + 8)), np.ones((k, d))
    project(X, W, P)
    close(P[:, :n], W @ X.T, atol=1e-12 * d)
    assert not P[:, n:].any()
    add_outer(X, P, A)
    close(A, 1.0 + P[:, :n] @ X, atol=1e-11 * n * d)


def test_what_is_compiled_ahead_is_what_fits_of_many_rows_call(patched):
    """After it no fit compiles: numba has a signature for each way already."""
    from appca.models import em_kernels, numeric_kernels, set_kernels

    em.compile_ahead()
    kernels = numeric_kernels.project, numeric_kernels.add_outer, em_kernels.weigh_components
    kernels += em_kernels.share, set_kernels.tilted, set_kernels.inclusion
    known = [len(kernel.signatures) for kernel in kernels]
    patched(LEAST_COMPILED=0)
    X = np.random.default_rng(0).standard_normal((90, 300))
    for dtype in (np.float32, np.float64):
        for k, n_active in [(5, 2), (32, 16)]:
            for columns in (40, 300):
                some = X[:, :columns].astype(dtype)
                AdaptivePPCA(k, n_active, init="pca", max_iter=2, random_state=0).fit(some)
    assert [len(kernel.signatures) for kernel in kernels] == known


def test_the_compiler_is_called_by_size_alone():
    for size in ((60_000, 10, 3), (5000, 12, 6), (2500, 100, 50)):
        assert em.worth_compiling(*size)
    for size in ((178, 5, 2), (10**6, 4, 4)):
        assert not em.worth_compiling(*size)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_long_fits_end_as_high_as_the_plain_path(dtype, seed, patched):
    """The plain path: no sample, no coordinates, no momentum, no compiler."""
    patched(climb, SAMPLE_ROWS_PER_COMPONENT=100, MIN_SAMPLE_ROWS=100)
    patched(LEAST_COMPILED=1)
    X = planted(2000, 30, 5, 2, seed=seed, noise=0.5, offset=1.0).X.astype(dtype)
    seen, usual = [], {"n_components": 5, "n_active": 2, "random_state": 0}
    fast = AdaptivePPCA(**usual, tol=1e-6, callback=seen.append).fit(X)
    assert any(p.stage == "refinement on 2,000 rows" for p in seen)
    patched(LEAST_COMPILED=10**12)
    how = {"accelerate": False, "max_iter": 2000, "tol": 1e-7}
    plain = AdaptivePPCA(**usual, init=fast.components_, **how).fit(X).score(X)
    assert fast.score(X) >= plain - (1e-6 if dtype == np.float64 else 1e-4) * abs(plain)
    curve = fast.log_likelihoods_
    assert np.all(np.diff(curve) >= -1e-6 * abs(curve[-1]))


class Watched(np.ndarray):
    """Rows that count the subnormal numbers they are multiplied with."""

    found: ClassVar[list[int]] = []

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **how):
        plain = [x.view(np.ndarray) if isinstance(x, Watched) else x for x in inputs]
        if ufunc is np.matmul:
            count_subnormal(*plain)
        if out is not None:
            how["out"] = tuple(x.view(np.ndarray) if isinstance(x, Watched) else x for x in out)
        result = getattr(ufunc, method)(*plain, **how)
        return result.view(Watched) if isinstance(result, np.ndarray) else result


def count_subnormal(*operands):
    tiny = np.finfo(np.float32).tiny
    Watched.found.append(sum(int(((x != 0) & (np.abs(x) < tiny)).sum()) for x in operands))


@pytest.mark.parametrize("variant", [PAPER, Variant(row_scales=True)], ids=["", "row scales"])
@pytest.mark.parametrize("compiled", [False, True], ids=["NumPy", "compiled"])
@pytest.mark.parametrize("d", [40, 260], ids=["BLAS", "own products"])
def test_no_product_is_taken_with_subnormal_numbers(d, compiled, variant, seed, monkeypatch):
    """Of rows whose components are decided by some hundred nats: many means are about 1e-40."""
    from appca.models import numeric_kernels

    rng = np.random.default_rng(seed)
    X = 0.3 * rng.standard_normal((2000, d)).astype(np.float32)
    X[:, :6] += 4.0 * rng.standard_normal((2000, 6))
    W = np.eye(d, 6)
    W[7] = 1e-40  # as where a feature hardly varies
    state = SubspaceState(W, np.zeros(6), np.full(6, 16.0), 0.09)
    monkeypatch.setattr(Watched, "found", [])
    for name in ("project", "add_outer"):
        kernel = getattr(numeric_kernels, name)

        def watched(A, B, C, kernel=kernel):
            count_subnormal(A, B)
            kernel(A, B, C)

        monkeypatch.setattr(numeric_kernels, name, watched)
    rows = about(X, centre_of(X))
    settings = settings_of(rows, 6, 2, compiled=compiled)._replace(variant=variant)
    expect(evenly(state, settings), rows._replace(X=X.view(Watched)), settings)
    assert Watched.found
    assert not any(Watched.found)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_subnormal_entries_count_as_zero_beside_far_larger_ones(dtype, seed):
    X = np.random.default_rng(seed).standard_normal((50, 6)).astype(dtype)
    small = X.copy()
    small[::3, 2], X[::3, 2] = np.finfo(dtype).tiny / 8, 0.0
    given = small.copy()
    one, other = (AdaptivePPCA(3, 1, init="pca", random_state=0).fit(Y) for Y in (X, small))
    equal(one.components_, other.components_)
    equal(small, given)
    small[1, 1] = np.nan
    assert without_subnormal(small)[0, 2] == 0.0
    tiny_unit = X * dtype(1e-12 if dtype is np.float32 else 1e-290)
    assert without_subnormal(tiny_unit) is tiny_unit  # and is refused for its size, or fitted


def planted_gaps(seed, n_rows=300, n_features=8, n_components=5, n_active=2, share=0.2):
    """Rows of the model, the same with missing entries, and their components."""
    shape, how = (n_rows, n_features, n_components, n_active), {"noise": 0.3, "scales": 2.0}
    data = planted(*shape, seed=seed, offset=3.0, **how)
    hidden = np.random.default_rng([seed, 1]).random(data.X.shape) < share
    return data.X, np.where(hidden, np.nan, data.X), data.W


def test_the_fit_ends_where_the_observed_likelihood_is_stationary(seed):
    _, X, _ = planted_gaps(seed, n_rows=80, n_features=5, n_components=3, n_active=1)
    X = X[~np.isnan(X).all(axis=1)]
    model = AdaptivePPCA(3, 1, latent_variance="component", tol=0.0, max_iter=1500)
    model.set_params(random_state=0).fit(X)
    rng = np.random.default_rng(seed)
    W, mean = model.components_.T, model.mean_
    logs = np.log(np.append(model.latent_variance_, model.noise_variance_))
    G = rng.normal(size=W.shape)
    along = G - W @ (W.T @ G + G.T @ W) / 2.0  # tangent to the orthonormal matrices

    def value(t, dW=0.0, d_mean=0.0, d_logs=0.0):
        variances, moved = np.exp(logs + t * d_logs), polar(W + t * dW)
        at = moved, mean + t * d_mean, variances[:-1], variances[-1]
        return sum(em_incomplete.row_posterior(row, *at, 1)[0] for row in X)

    h = 1e-4
    for change in (
        {"dW": along},
        {"d_mean": rng.normal(size=5)},
        {"d_logs": np.array([0.0, 0.0, 0.0, 1.0])},
        {"d_logs": np.array([1.0, -1.0, 0.5, 0.0])},
    ):
        slope = (value(h, **change) - value(-h, **change)) / (2 * h)
        bend = (value(h, **change) - 2 * value(0.0) + value(-h, **change)) / h**2
        assert bend < -1.0, change  # the slope would be seen
        assert abs(slope / bend) < 2e-3, change


def textbook_ppca(X, q, passes):
    """EM of PPCA with missing data, a row at a time: W free, x ~ N(0, I)."""
    rng, D = np.random.default_rng(0), X.shape[1]
    W, mean, noise = rng.normal(size=(D, q)), np.nanmean(X, axis=0), 1.0
    for _ in range(passes):
        first, second, rows = [], [], []
        for row in X:
            o = ~np.isnan(row)
            inverse = np.linalg.inv(W[o].T @ W[o] / noise + np.eye(q))
            x = inverse @ W[o].T @ (row - mean)[o] / noise
            first.append(np.append(x, 1.0))
            full = np.zeros((q + 1, q + 1))
            full[:q, :q] = inverse
            second.append(full + np.outer(first[-1], first[-1]))
            rows.append(o)
        seen = np.array(rows)
        both, squares = np.empty((D, q + 1)), 0.0
        for d in range(D):
            n = np.flatnonzero(seen[:, d])
            M, b = sum(second[i] for i in n), sum(X[i, d] * first[i] for i in n)
            both[d] = np.linalg.solve(M, b)
            squares += sum(X[i, d] ** 2 for i in n) - 2 * both[d] @ b + both[d] @ M @ both[d]
        W, mean, noise = both[:, :q], both[:, q], squares / seen.sum()
    return W @ W.T + noise * np.eye(D), mean, noise


def test_ppca_reaches_what_textbook_em_reaches():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(70, 2)) @ (rng.normal(size=(2, 6)) * [[4.0], [2.0]])
    X += rng.normal(size=X.shape) + 2.0
    X[rng.random(X.shape) < 0.25] = np.nan
    C, mean, noise = textbook_ppca(X, 2, 250)
    again = AdaptivePPCA(2, 2, latent_variance="component", tol=1e-9, max_iter=2000)
    for model in (PPCA(2).fit(X), again.fit(X)):
        W = model.components_.T
        close(W.T @ W, np.eye(2), atol=1e-10)
        covariance = (W * model.latent_variance_) @ W.T + model.noise_variance_ * np.eye(6)
        close(covariance, C, atol=0.05)
        close(model.mean_, mean, atol=0.05)
        assert model.noise_variance_ == pytest.approx(noise, rel=5e-3)
        seen = [~np.isnan(row) for row in X]
        wanted = sum(
            multivariate_normal(mean[o], C[np.ix_(o, o)]).logpdf(row[o])
            for row, o in zip(X, seen, strict=True)
            if o.any()
        )
        assert model.score_samples(X).sum() == pytest.approx(wanted, abs=2e-2)
        assert model.log_likelihoods_[-1] == pytest.approx(wanted, abs=2e-2)


def test_a_fifth_missing_the_planted_components_are_found(seed):
    X, incomplete, W = planted_gaps(seed, n_rows=1000, n_features=20)
    model = AdaptivePPCA(5, 2, random_state=seed).fit(incomplete)
    assert np.abs(model.components_ @ W).max(axis=0).min() > 0.99
    assert model.noise_variance_ == pytest.approx(0.09, rel=0.05)
    hidden = np.isnan(incomplete)
    rivals = {
        "mean": np.where(hidden, np.nanmean(incomplete, axis=0), X),
        "PPCA with L": PPCA(2).fit(incomplete).impute(incomplete),
        "PPCA with K": PPCA(5).fit(incomplete).impute(incomplete),
    }
    mine = np.square(model.impute(incomplete) - X)[hidden].mean()
    for name, other in rivals.items():
        assert mine < np.square(other - X)[hidden].mean(), name


def test_at_l_equal_k_one_variance_is_shared():
    _, X, _ = planted_gaps(6, n_rows=100)
    model = AdaptivePPCA(3, 3).fit(X)
    assert np.ptp(model.latent_variance_) == 0.0
    fixed = AdaptivePPCA(3, 3, latent_variance=2.0).fit(X)
    equal(fixed.latent_variance_, 2.0)
    assert fixed.score(X) <= model.score(X) <= PPCA(3).fit(X).score(X) + 1e-6


def log_weight(Lam, c, S):
    Lam, c = Lam[np.ix_(S, S)], c[list(S)]
    return -0.5 * np.linalg.slogdet(Lam)[1] + 0.5 * c @ np.linalg.solve(Lam, c)


def by_hand(Lam, c, supports):
    """Log sum, inclusion, E[s], E[s s'], best support and its f, by dense solves of each."""
    K, weights = len(c), np.array([log_weight(Lam, c, S) for S in supports])
    total = logsumexp(weights)
    inclusion, H, second = np.zeros(K), np.zeros(K), np.zeros((K, K))
    for S, q in zip(supports, np.exp(weights - total), strict=True):
        on = list(S)
        C = np.linalg.inv(Lam[np.ix_(on, on)])
        v = C @ c[on]
        inclusion[on] += q
        H[on] += q * v
        second[np.ix_(on, on)] += q * (C + np.outer(v, v))
    best = supports[weights.argmax()], weights.max()
    return total, inclusion, H, second[np.triu_indices(K)], best


def compare_sums(found, Lam, c, supports_of):
    """Hold sums against loops over the supports that `supports_of` gives for each row."""
    for n in range(len(c)):
        own = Lam[0 if len(Lam) == 1 else n]
        total, *sums, (best, value) = by_hand(own, c[n], supports_of(found.best[n]))
        assert sorted(found.best[n]) == list(best)
        assert found.log_sum[n] == pytest.approx(total, rel=1e-10)
        assert found.value[n] == pytest.approx(value)
        for name, wanted in zip(("inclusion", "H", "second"), sums, strict=True):
            close(getattr(found, name)[n], wanted, rtol=1e-8, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("L", [1, 2, 3, 4, 5, 6])
def test_sums_over_supports_are_those_of_a_loop_over_them(L, same):
    n, K = 67, 6  # more rows than go through together
    rng = np.random.default_rng(14)
    B = rng.normal(size=(n, K, 6)) * 10.0 ** rng.uniform(-1, 2, size=(n, 1, 1))
    Lam, c = np.eye(K) + B @ np.swapaxes(B, 1, 2), 4.0 * rng.normal(size=(n, K))
    Lam = Lam[:1] if same else Lam
    pairs = Lam[:, *np.triu_indices(K)]
    found, sets = gaps.sum_supports(pairs, c, L), list(itertools.combinations(range(K), L))
    compare_sums(found, Lam, c, lambda _members: sets)
    scores = gaps.support_scores(pairs, c, found.best)
    for row, members in enumerate(found.best):
        wanted = by_hand(Lam[0 if same else row], c[row], [tuple(members)])[2]
        close(scores[row], wanted, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("mean", ["learned", "sample", "zero"])
@pytest.mark.parametrize("latent", ["shared", "component", 1.5])
def test_a_step_around_missing_entries_is_that_of_the_reference(latent, mean, seed):
    rng, scales, sigma2 = np.random.default_rng(seed), np.linspace(1, 2, 4), 0.4
    Y = planted(150, 6, 4, 2, seed=seed, noise=0.6, scales=scales, offset=2.0).X
    W, mu = np.linalg.qr(rng.standard_normal((6, 4)))[0], 2.0 + 0.1 * rng.standard_normal(6)
    tau2 = rng.uniform(0.5, 3.0, 4) if latent == "component" else np.full(4, 1.5)
    missing = rng.random(Y.shape) < 0.25
    missing[:70] = [False, True, True, False, False, False]  # these are looked at together
    missing[75] = True  # nothing of this one was observed
    Y[missing] = np.nan
    rows = split_incomplete(Y, np.full(6, 1.9))
    assert {block.same_pattern for block in rows.blocks} == {True, False}
    assert len(rows.complete)
    settings = em.EMSettings(4, 2, latent, mean == "learned", False, stiefel.polar, 1e-12)
    begun = em.SubspaceState(W, np.zeros(4), tau2, sigma2, mu - 1.9)
    value, new = gaps.IncompleteMap(rows, settings)(begun)
    wanted, at = em_incomplete.step(
        Y, W, mu, tau2, sigma2, 2, learn_mean=mean == "learned", latent=latent
    )
    assert value == pytest.approx(wanted, rel=1e-10)
    close(new.W, at[0], atol=1e-10)
    close(1.9 + new.offset, at[1], atol=1e-10)
    close(new.latent, at[2], rtol=1e-10)
    assert new.noise == pytest.approx(at[3], rel=1e-10)


def sums_problem(seed, n, K, shared=False):
    rng = np.random.default_rng(seed)
    Y = rng.standard_normal((1 if shared else n, K, 2 * K))
    Lam = np.eye(K) + 0.5 * Y @ np.swapaxes(Y, 1, 2) / K
    return Lam, Lam[:, *np.triu_indices(K)], 3.0 * rng.standard_normal((n, K))


def neighbours(S, K):
    yield tuple(sorted(S))
    for k, j in itertools.product(S, set(range(K)).difference(S)):
        yield tuple(sorted({*S, j} - {k}))


@pytest.mark.parametrize(("K", "L"), [(7, 3), (6, 1), (6, 5), (9, 4)])
@pytest.mark.parametrize("shared", [False, True])
def test_sums_over_exchanges_equal_dense_solves_of_each(K, L, shared, seed):
    """Of which none is better than the support itself."""
    Lam, pairs, c = sums_problem(seed, 12, K, shared)
    found = gaps.summed(pairs, c, L, None)
    compare_sums(found, Lam, c, lambda members: list(neighbours(members, K)))
    assert len(set(neighbours(found.best[0], K))) == L * (K - L) + 1


def test_from_given_supports_the_sum_never_falls(seed):
    _, pairs, c = sums_problem(seed, 200, 10)
    rng = np.random.default_rng(seed)
    start, Lam = np.argsort(rng.random((200, 10)), axis=1)[:, :4], gaps.unfolded(pairs, 10)
    before, after = gaps.exchanges(Lam, c, start).log_sum, gaps.summed(pairs, c, 4, start)
    assert (after.log_sum >= before - 1e-12).all()
    assert (after.log_sum > before + 1e-3).any()


def test_the_likelihood_of_few_summed_supports_is_near_the_exact_one_and_below(seed, monkeypatch):
    _, X, _ = planted_gaps(seed, n_features=24, n_components=8, n_active=3, share=0.1)
    model = AdaptivePPCA(8, 3, init="pca", random_state=0).fit(X)
    exact = model.describe(X)
    monkeypatch.setattr(gaps, "MOST_SETS", 1)
    told = model.describe(X)
    assert "exchanges" in told.method
    assert "lower bound" in told.method
    error, sure = exact.log_likelihood - told.log_likelihood, exact.membership > 0.9
    assert (error >= -1e-9).all()
    assert error.mean() < 0.3
    assert error.max() > 0.1
    equal(told.active[sure], exact.active[sure])
    close(told.scores[sure], exact.scores[sure], atol=1e-6)
    again = AdaptivePPCA(8, 3, init="pca", random_state=0).fit(X)
    assert "exchanges of one component" in again.stop_reason_
    assert again.noise_variance_ == pytest.approx(model.noise_variance_, rel=0.05)
    curve = again.log_likelihoods_
    assert (np.diff(curve) > -1e-8 * abs(curve[-1])).all()
    assert curve[-1] <= model.log_likelihoods_[-1]
