"""The EM kernel, one step at a time, against enumeration over all subsets."""

import numpy as np
import pytest

from appca.models import stiefel
from appca.models.em import (
    EMMap,
    EMSettings,
    SubspaceState,
    expect,
    extend,
    floor_of,
    maximise,
    step,
)
from appca.models.loop import iterate
from appca.models.rows import about, centre_of
from appca.models.starts import annealed, ascent, first_state
from tests.models.synthetic import planted
from tests.references import em_orthonormal

LATENTS = ["shared", "component", 1.0]


def settings(rows, n_active, latent="shared", mean="learned", *, k=4, hard=False):
    return EMSettings(k, n_active, latent, mean == "learned", hard, stiefel.polar, floor_of(rows))


def random_problem(seed, n=40, d=6, k=4, mean="learned"):
    rng = np.random.default_rng(seed)
    X = planted(n, d, k, 2, seed=seed, noise=0.5, scales=np.linspace(1, 3, k), offset=2.0).X
    rows = about(X, None if mean == "zero" else centre_of(X))
    W = np.linalg.qr(rng.standard_normal((d, k)))[0]
    shift = rng.standard_normal(k) if mean == "learned" else np.zeros(k)
    return X, rows, SubspaceState(W, shift, rng.uniform(0.5, 4.0, k), 0.3)


def reference(X, rows, state, n_active):
    """E step of the reference at a state: log-likelihood, r, s, second; and the origin."""
    origin = np.zeros(X.shape[1]) if rows.origin is None else rows.origin
    mu = origin - state.W @ state.shift
    return em_orthonormal.e_step(X, state.W, mu, state.latent, state.noise, n_active), origin


@pytest.mark.parametrize("mean", ["learned", "sample", "zero"])
@pytest.mark.parametrize("latent", ["shared", "component"])
def test_the_m_step_maximises_the_expected_complete_likelihood(latent, mean, seed):
    X, rows, state = random_problem(seed, mean=mean)
    (_, r, s, second), origin = reference(X, rows, state, 2)
    chosen = settings(rows, 2, latent, mean)
    new = maximise(expect(state, rows, chosen), state, rows, chosen)

    def expected(W, mu, tau2, noise):
        residual = np.sum((X - mu - s @ W.T) ** 2) + np.sum(second) - np.sum(s**2)
        prior = np.sum(r * np.log(tau2) + second / tau2)
        return -0.5 * (X.size * np.log(noise) + residual / noise + prior)

    mu = origin - new.W @ new.shift
    best = expected(new.W, mu, new.latent, new.noise)
    rng = np.random.default_rng(seed)
    free_mean = mean == "learned"
    for scale in (1e-3, 1e-1, 1.0):
        step_W = stiefel.polar(new.W + scale * rng.standard_normal(new.W.shape))
        assert expected(step_W, mu, new.latent, new.noise) < best
        factor = np.exp(scale * (rng.standard_normal(4) if latent == "component" else 1.0))
        assert expected(new.W, mu, new.latent * factor, new.noise) < best
        assert expected(new.W, mu, new.latent, new.noise * np.exp(scale)) < best
        assert expected(new.W, mu, new.latent, new.noise * np.exp(-scale)) < best
        if free_mean:
            moved = mu + scale * rng.standard_normal(len(mu))
            assert expected(new.W, moved, new.latent, new.noise) < best
            # jointly: another W with its own best mean is no better either
            own = (X - s @ step_W.T).mean(axis=0)
            assert expected(step_W, own, new.latent, new.noise) < best


@pytest.mark.parametrize("hard", [False, True], ids=["em", "hard"])
@pytest.mark.parametrize("mean", ["learned", "sample", "zero"])
@pytest.mark.parametrize("latent", LATENTS)
def test_em_never_decreases_the_likelihood(latent, mean, hard):
    for seed in range(20):
        _, rows, state = random_problem(seed, mean=mean)
        chosen = settings(rows, 2, latent, mean, hard=hard)
        if latent == 1.0:
            state = state._replace(latent=np.ones(4))
        if latent == "shared":
            state = state._replace(latent=np.full(4, 2.0))
        before = -np.inf
        for _ in range(15):
            value, state = step(state, rows, chosen)
            assert value >= before - 1e-10 * abs(value), (seed, before, value)
            before = value


@pytest.mark.parametrize("latent", LATENTS)
def test_accelerated_em_never_decreases_the_likelihood(latent):
    for seed in range(20):
        _, rows, state = random_problem(seed)
        chosen = settings(rows, 2, latent)
        if latent != "component":
            state = state._replace(latent=np.ones(4))
        climb = iterate(ascent(state, EMMap(rows, chosen)), tol=1e-6, max_iter=200)
        values = np.array(climb.log_likelihoods)
        assert np.all(np.diff(values) >= -1e-10 * np.abs(values[1:])), seed


def test_momentum_saves_iterations_and_ends_as_high(seed):
    data = planted(400, 20, 6, 3, seed=seed, noise=1.0)
    rows = about(data.X, centre_of(data.X))
    chosen = settings(rows, 3, k=6)
    start = first_state(rows, data.W, chosen)  # the truth, so that both climb the same hill
    ends = [
        iterate(ascent(start, EMMap(rows, chosen), accelerate=leaps), tol=1e-6 * 400, max_iter=5000)
        for leaps in (False, True)
    ]
    assert len(ends[1].log_likelihoods) < 0.8 * len(ends[0].log_likelihoods)
    assert ends[1].log_likelihood == pytest.approx(ends[0].log_likelihood, abs=1e-2 * 400)


def geometric(x0, rate, seed):
    """Three states on a straight line of W, each step `rate` times the one before."""
    E = 0.05 * np.random.default_rng(seed).standard_normal(x0.W.shape)
    reach = [0.0, 1.0, 1.0 + rate]
    return [x0._replace(W=x0.W + r * E, noise=x0.noise * np.exp(0.1 * r)) for r in reach], E


def test_momentum_stays_on_the_manifold_above_the_floor_and_within_reach(seed):
    _, rows, x0 = random_problem(seed)
    states, _ = geometric(x0, 0.98, seed)
    for noise in (1e-12, 1e3):
        now = states[1]._replace(noise=noise)
        ahead = extend(states[0], now, 0.9, settings(rows, 2, "component"))
        np.testing.assert_allclose(ahead.W.T @ ahead.W, np.eye(4), atol=1e-12)
        assert ahead.noise >= floor_of(rows)
        assert abs(np.log(ahead.noise / max(noise, floor_of(rows)))) <= 1.0 + 1e-12
        np.testing.assert_allclose(ahead.shift, 1.9 * now.shift - 0.9 * states[0].shift)
        np.testing.assert_array_equal(
            extend(states[0], now, 0.9, settings(rows, 2, 1.0)).latent, now.latent
        )


def test_passes_remember_their_last_sums(seed, monkeypatch):
    _, rows, state = random_problem(seed)
    passes = EMMap(rows, settings(rows, 2))
    value, following = passes(state)
    assert (value, following.noise) == pytest.approx(
        (step(state, rows, passes.settings)[0], step(state, rows, passes.settings)[1].noise)
    )
    monkeypatch.setattr("appca.models.em.expect", None)
    assert passes.sums(state).log_likelihood == value
    with pytest.raises(TypeError):
        passes.sums(following)


def test_hard_steps_become_procrustes_on_the_top_components_as_noise_vanishes(seed):
    X, rows, state = random_problem(seed, mean="sample")
    state = state._replace(latent=np.ones(4), noise=1e-12)
    chosen = settings(rows, 2, "shared", "sample", hard=True)
    new = step(state, rows, chosen)[1]
    P = (X - X.mean(axis=0)) @ state.W
    keep = np.argsort(np.argsort(-np.abs(P), axis=1), axis=1) < 2
    U, _, Vt = np.linalg.svd((X - X.mean(axis=0)).T @ (P * keep), full_matrices=False)
    np.testing.assert_allclose(new.W, U @ Vt, atol=1e-8)
    residual = X - X.mean(axis=0) - (P * keep) @ new.W.T
    assert new.noise == pytest.approx(np.mean(residual**2), rel=1e-8)


def test_soft_and_hard_steps_agree_as_noise_vanishes(seed):
    _, rows, state = random_problem(seed)
    state = state._replace(latent=np.ones(4), noise=1e-9)
    soft = step(state, rows, settings(rows, 2))[1]
    hard = step(state, rows, settings(rows, 2, hard=True))[1]
    np.testing.assert_allclose(soft.W, hard.W, atol=1e-6)
    assert soft.noise == pytest.approx(hard.noise, rel=1e-5)


def test_annealing_starts_indifferent_and_ends_in_plain_em(seed):
    _, rows, state = random_problem(seed)
    chosen = settings(rows, 2)
    for hard in (False, True):
        sums = expect(state, rows, settings(rows, 2, hard=hard), beta=1e-12)
        np.testing.assert_allclose(sums.used, len(rows.X) * 2 / 4, rtol=1e-6)
    *_, (_, before_last), (value, _) = list(annealed(state, rows, chosen))
    assert value == pytest.approx(step(before_last, rows, chosen)[0], rel=1e-12)


def test_a_component_nobody_uses_keeps_its_variance():
    X = np.random.default_rng(0).standard_normal((50, 3)) * [5.0, 4.0, 1e-3]
    rows = about(X, centre_of(X))
    W = np.eye(3)
    state = SubspaceState(W, np.zeros(3), np.array([25.0, 16.0, 1e6]), 1e-4)
    chosen = settings(rows, 2, "component")
    assert expect(state, rows, chosen).used[2] < 1e-3
    new = step(state, rows, settings(rows, 2, "component", hard=True))[1]
    assert new.latent[2] == 1e6


def test_the_noise_variance_stops_at_its_floor():
    X = planted(60, 5, 2, 1, seed=1, noise=0.0).X
    rows = about(X, centre_of(X))
    chosen = settings(rows, 2)
    state = SubspaceState(
        np.linalg.svd(X, full_matrices=False)[2][:2].T, np.zeros(2), np.ones(2), 1.0
    )
    for _ in range(100):
        state = step(state, rows, chosen)[1]
    assert state.noise == chosen.floor == pytest.approx(1e-8 * rows.squares.mean() / 5)
