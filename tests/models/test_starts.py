import numpy as np
import pytest

from appca.models import starts, stiefel
from appca.models.em import Settings, floor_of
from appca.models.loop import STOPPED
from appca.models.rows import about, centre_of, project
from tests.models.synthetic import matched_cosines, planted, principal_cosines


def settings(rows, n_active, latent="shared"):
    return Settings(n_active, latent, True, False, stiefel.polar, floor_of(rows))


def rows_of(X):
    return about(X, centre_of(X))


def test_quartimax_turns_sparse_scores_back_to_their_axes(seed):
    data = planted(2000, 6, 6, 2, seed=seed, noise=0.01)
    R = starts.quartimax(np.random.default_rng(0), data.X)
    np.testing.assert_allclose(R.T @ R, np.eye(6), atol=1e-12)
    assert matched_cosines(R.T, data.W).min() > 0.99


def test_quartimax_does_not_lower_the_sum_of_fourth_powers(seed):
    P = (
        np.random.default_rng(seed).laplace(size=(300, 5))
        @ np.linalg.qr(np.random.default_rng(seed + 1).standard_normal((5, 5)))[0]
    )
    R = starts.quartimax(np.random.default_rng(0), P)
    assert np.sum((P @ R) ** 4) > np.sum(P**4)


def test_candidates_are_the_named_starts_and_then_random_rotations():
    def names(init, n_init):
        return [c.name for c in starts.candidates(init, n_init)]

    assert names("auto", 1) == ["quartimax", "annealed PCA"]
    assert names("auto", 3) == ["quartimax", "annealed PCA", "random rotation", "random rotation"]
    assert names("pca", 2) == ["PCA", "random rotation"]
    assert names("random", 2) == ["random rotation", "random rotation"]


def test_random_rotations_are_rotations_and_differ(seed):
    rng = np.random.default_rng(seed)
    P = np.zeros((3, 4))
    one, two = (starts.random_rotation(rng, P) for _ in range(2))
    np.testing.assert_allclose(one @ one.T, np.eye(4), atol=1e-12)
    assert not np.allclose(one, two)


def test_the_arena_is_all_rows_in_all_coordinates_when_the_data_are_small(seed):
    rows = rows_of(planted(200, 10, 4, 2, seed=seed, offset=3.0).X)
    ring = starts.arena(np.random.default_rng(seed), rows, 4, learn_mean=True)
    assert ring.rows.X.shape == (200, 10)
    assert ring.scale == 1.0
    back = ring.rows.X @ ring.basis.T
    np.testing.assert_allclose(back, rows.X - rows.origin, atol=1e-10)


@pytest.mark.parametrize("learn_mean", [True, False])
def test_the_arena_samples_rows_of_long_data_about_the_right_origin(learn_mean, seed, monkeypatch):
    monkeypatch.setattr(starts, "MIN_SAMPLE_ROWS", 50)
    monkeypatch.setattr(starts, "SAMPLE_ROWS_PER_COMPONENT", 1)
    X = planted(400, 10, 4, 2, seed=seed, offset=3.0).X
    ring = starts.arena(np.random.default_rng(seed), rows_of(X), 4, learn_mean)
    assert ring.rows.X.shape == (50, 10)
    assert ring.scale == 8.0
    mean = ring.rows.X.mean(axis=0)
    assert np.allclose(mean, 0.0, atol=1e-12) == learn_mean
    np.testing.assert_allclose(ring.rows.squares, np.sum(ring.rows.X**2, axis=1), rtol=1e-10)


def test_the_arena_keeps_squared_norms_over_all_features(seed, monkeypatch):
    monkeypatch.setattr(starts, "MIN_COORDINATES", 1)
    rows = rows_of(planted(200, 30, 4, 2, seed=seed, noise=1.0).X)
    ring = starts.arena(np.random.default_rng(seed), rows, 4, learn_mean=True)
    assert ring.rows.X.shape == (200, 8)
    np.testing.assert_array_equal(ring.rows.squares, rows.squares)
    leading = np.linalg.svd(rows.X - rows.origin, full_matrices=False)[2][:8]
    np.testing.assert_allclose(principal_cosines(leading, ring.basis), 1.0, atol=1e-8)


@pytest.mark.parametrize("latent", ["shared", "component", 1.0])
def test_first_variances_split_the_mean_square_into_captured_and_left(latent, seed):
    data = planted(500, 12, 4, 2, seed=seed)
    rows = rows_of(data.X)
    chosen = settings(rows, 2, latent)
    state = starts.first_state(rows, data.W, chosen)
    P = project(rows, data.W)
    kept = np.sort(P**2, axis=1)[:, 2:].sum()
    assert state.noise == pytest.approx((rows.squares.sum() - kept) / (500 * 10))
    if latent == "shared":
        assert np.all(state.latent == pytest.approx(kept / 1000 - state.noise))
    elif latent == 1.0:
        assert np.all(state.latent == 1.0)
    else:
        assert state.latent == pytest.approx(np.ones(4), rel=0.3)


def test_the_race_is_won_by_the_higher_likelihood_and_settles(seed):
    rows = rows_of(planted(600, 15, 6, 3, seed=seed).X)
    ring = starts.arena(np.random.default_rng(seed), rows, 6, learn_mean=True)
    seen = []
    run = starts.race(
        np.random.default_rng(seed),
        ring,
        starts.candidates("auto", 2),
        settings(rows, 3),
        seen.append,
    )
    stages = [p.stage for p in seen]
    expected = [
        "race 1 of 3: quartimax",
        "race 2 of 3: annealed PCA",
        "race 3 of 3: random rotation",
    ]
    assert list(dict.fromkeys(stages)) == [*expected, "settle"]
    last = {p.stage: p.log_likelihood for p in seen}
    assert run.log_likelihood >= max(last[stage] for stage in expected)


@pytest.mark.parametrize("where", ["quartimax", "annealed PCA", "settle"])
def test_a_callback_may_stop_the_race_anywhere(where, seed):
    rows = rows_of(planted(300, 10, 4, 2, seed=seed).X)
    ring = starts.arena(np.random.default_rng(seed), rows, 4, learn_mean=True)

    def callback(progress):
        if where in progress.stage:
            raise StopIteration

    field = starts.candidates("auto", 1)
    run = starts.race(np.random.default_rng(seed), ring, field, settings(rows, 2), callback)
    assert run.stop_reason == STOPPED
    np.testing.assert_allclose(run.state.W.T @ run.state.W, np.eye(4), atol=1e-10)
