"""EM of the extended model, one step at a time, against the page `em_variants`."""

from itertools import product

import numpy as np
import pytest

from appca.models import em, stiefel
from appca.models.em import EMSettings, SubspaceState, Variant, settings_on
from appca.models.rows import about, centre_of
from tests.models.synthetic import planted
from tests.references import em_variants
from tests.references.em_variants import Parameters

N, D, K, L = 40, 6, 4, 2
VARIANTS = [Variant(*which) for which in product([False, True], repeat=3)]
GRID = np.array([0.4, 1.0, 2.5])


def problem(seed, variant, latent, monkeypatch):
    """Rows, settings, and the same parameters off the truth for both."""
    monkeypatch.setattr(em, "GRID", GRID)
    rng = np.random.default_rng(seed)
    Y = planted(N, D, K, L, seed=seed, noise=0.6, scales=np.linspace(1, 2, K), offset=2.0).X
    Y *= np.linspace(0.5, 2.0, D) * rng.choice([0.7, 1.5], (N, 1))
    rows = about(Y, centre_of(Y))
    paper = EMSettings(K, L, latent, True, False, stiefel.polar, 1e-12)
    settings = settings_on(rows, paper._replace(variant=variant))
    V = np.linalg.qr(rng.standard_normal((D, K)))[0]
    scale = rng.uniform(0.8, 2.0, D) if variant.by_feature else np.ones(())
    noise = 1.0 if variant.by_feature else 0.4
    latent = rng.uniform(0.5, 3.0, K) if latent == "component" else np.full(K, 1.5)
    offset = 0.1 * rng.standard_normal(D) if variant.row_scales else np.zeros(D)
    omega, rho = rng.dirichlet(np.ones(len(settings.grid))), rng.dirichlet(np.ones(K + 1))
    rho = rho if variant.learn_sizes else None
    shift = 0.3 * rng.standard_normal(K)
    state = SubspaceState(V, shift, latent, noise, offset, scale, omega, rho)
    return Y, rows, settings, state


def parameters(rows, settings, state):
    """The same state as the reference has it: in data units, tau2 relative to the noise."""
    psi = np.broadcast_to(state.noise / state.scale**2, D)
    fixed = np.eye(K + 1)[L]
    return Parameters(
        np.sqrt(psi)[:, None] * state.W,
        rows.origin + state.displacement,
        state.latent / state.noise,
        psi,
        settings.grid,
        state.weights,
        state.sizes if settings.variant.learn_sizes else fixed,
    )


@pytest.mark.parametrize("latent", ["shared", "component"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_step_is_that_of_the_reference(variant, latent, seed, monkeypatch):
    Y, rows, settings, state = problem(seed, variant, latent, monkeypatch)
    at = parameters(rows, settings, state)
    log_p, supports, p = em_variants.e_step(Y, at)
    sums = em.expect(state, rows, settings)
    assert sums.log_likelihood == pytest.approx(log_p.sum(), rel=1e-11)
    value, new = em.step(state, rows, settings)
    assert value == sums.log_likelihood
    wanted = em_variants.m_step(
        Y,
        at,
        supports,
        p,
        by_feature=variant.by_feature,
        latent=latent,
        rounds=em.W_STEPS if variant.by_feature else 1,
    )
    for name, a, b in zip(Parameters._fields, parameters(rows, settings, new), wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("variant", VARIANTS)
def test_steps_of_any_variant_never_lower_the_likelihood(variant, monkeypatch):
    for seed in range(10):
        _, rows, settings, state = problem(seed, variant, "component", monkeypatch)
        before = -np.inf
        for _ in range(25):
            value, state = em.step(state, rows, settings)
            assert value >= before - 1e-10 * abs(value), (seed, before, value)
            before = value


@pytest.mark.parametrize("variant", VARIANTS)
def test_weights_of_rows_are_repetitions(variant, seed, monkeypatch):
    Y, _, settings, state = problem(seed, variant, "shared", monkeypatch)
    counts = np.random.default_rng(seed).integers(1, 4, N)
    again, weights = np.repeat(Y, counts, axis=0), counts.astype(float)
    by_weight, by_row = about(Y, centre_of(Y, weights), weights), about(again, centre_of(again))
    for _ in range(2):
        found = [em.step(state, rows, settings_on(rows, settings)) for rows in (by_weight, by_row)]
        assert found[0][0] == pytest.approx(found[1][0], rel=1e-10)
        for a, b in zip(found[0][1], found[1][1], strict=True):
            if a is None:
                continue
            np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-8)
        state = found[0][1]


def test_momentum_stays_within_the_bounds(seed, monkeypatch):
    _, rows, settings, state = problem(seed, VARIANTS[-1], "shared", monkeypatch)
    now = state._replace(scale=0.999 * settings.most)
    ahead = em.extend(state._replace(scale=0.5 * settings.most), now, 0.9, settings)
    assert (ahead.scale <= settings.most).all()
    assert ahead.weights.sum() == pytest.approx(1.0)
    assert ahead.sizes.min() > 0.0
    np.testing.assert_allclose(ahead.W.T @ ahead.W, np.eye(K), atol=1e-12)
    assert np.isfinite(em.expect(ahead, rows, settings).log_likelihood)
