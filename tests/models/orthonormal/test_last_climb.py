"""Fits that end in coordinates that grow, against EM over all features."""

import numpy as np
import pytest

from appca import AdaptivePPCA
from appca.models import climb, stiefel
from appca.models.climb import EMControl
from appca.models.em import EMMap, EMSettings, expect, floor_of
from appca.models.loop import CONVERGED
from appca.models.rows import Rows, about, centre_of, project
from appca.models.spectrum import Coordinates, principal, sketched
from appca.models.starts import first_state
from tests.models.synthetic import planted, principal_cosines


@pytest.fixture
def problem(seed):
    """Rows with 4 directions, a start in 6 of 30 coordinates that miss a part of all."""
    rng = np.random.default_rng(seed)
    rows = about(X := planted(900, 30, 4, 2, seed=seed, offset=3.0, noise=0.5).X, centre_of(X))
    settings = EMSettings(4, 2, "shared", True, False, stiefel.polar, floor_of(rows))
    basis = principal(rng, rows, 6).V + 0.15 * rng.standard_normal((30, 6))
    basis = np.linalg.qr(basis)[0]
    held = Coordinates(Rows(project(rows, basis), None, rows.squares, 30), basis)
    state = first_state(held.rows, np.eye(6, 4), settings)
    return rows, settings, held, state._replace(W=basis @ state.W)


def climbed(problem, max_iter=500, tol=1e-6, seen=None):
    rows, settings, held, state = problem
    control = EMControl(settings, seen, max_iter, tol, True, rows.n)
    return climb.climb_all(state, held, rows, control, lambda _state: None)


def test_it_ends_where_no_step_over_all_features_gains(problem):
    rows, settings, held, _ = problem
    seen = []
    found = climbed(problem, seen=seen.append)
    state = found.run.state
    sums = expect(state, rows, settings)
    assert found.run.stop_reason.startswith(CONVERGED)
    assert found.run.log_likelihood == pytest.approx(sums.log_likelihood, rel=1e-9)
    np.testing.assert_allclose(found.sums.second, sums.second, rtol=1e-8)
    np.testing.assert_allclose(state.W.T @ state.W, np.eye(4), atol=1e-12)
    after = EMMap(rows, settings)(EMMap(rows, settings)(state)[1])[0]
    assert 0.0 <= after - sums.log_likelihood < 1e-5 * rows.n
    assert principal_cosines(state.W.T, held.basis).min() < 0.99  # it had to leave them
    assert [p.iteration for p in seen] == list(range(1, len(seen) + 1))
    assert np.all(np.diff(found.run.log_likelihoods) >= -1e-9 * rows.n)


def test_iterations_are_bounded_over_all_rounds(problem):
    found = climbed(problem, max_iter=3, tol=0.0)
    assert len(found.run.log_likelihoods) == 3
    assert found.run.stop_reason.startswith("reached max_iter")


def test_what_an_m_step_promises_is_what_it_keeps_at_least(problem):
    rows, settings, _, state = problem
    em_map = EMMap(rows, settings)
    before, after = em_map(state)
    promised = climb._promised(em_map.sums(state).A, state.W, state.noise)
    assert 0.0 < promised <= em_map(state._replace(W=after.W))[0] - before


def test_coordinates_of_all_features_are_all_there_is_to_climb(problem, monkeypatch):
    rows, settings, held, state = problem
    basis = np.linalg.qr(np.hstack([held.basis, np.eye(30)]))[0]
    whole = Coordinates(Rows(project(rows, basis), None, rows.squares, 30), basis)
    wanted = climbed(problem)
    monkeypatch.setattr(climb, "_products", None)  # hence no pass over the features
    found = climbed((rows, settings, whole, state))
    assert found.run.log_likelihood == pytest.approx(wanted.run.log_likelihood, abs=1e-4 * rows.n)


def test_scales_from_coordinates_are_those_from_all_features(monkeypatch, seed):
    X = planted(700, 40, 4, 2, seed=seed, offset=3.0).X
    for name in ("MIN_SAMPLE_ROWS", "MIN_COORDINATES"):
        monkeypatch.setattr(climb, name, 10)
    monkeypatch.setattr(climb, "SAMPLE_ROWS_PER_COMPONENT", 25)
    found = AdaptivePPCA(4, 2, random_state=0).fit(X)
    scores = np.where(found.allocate(X), found.transform(X), np.nan)
    np.testing.assert_allclose(found.scale_, np.sqrt(np.nanmean(scores**2, axis=0)), rtol=1e-6)


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
