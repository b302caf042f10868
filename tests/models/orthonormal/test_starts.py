import numpy as np
import pytest

from appca.models import starts, stiefel
from appca.models.em import EMSettings, floor_of
from appca.models.rows import about, centre_of, project
from tests.models.synthetic import matched_cosines, planted


def settings(rows, n_active, latent="shared", k=4):
    return EMSettings(k, n_active, latent, True, False, stiefel.polar, floor_of(rows))


def rows_of(X):
    return about(X, centre_of(X))


def test_quartimax_turns_sparse_scores_back_to_their_axes(seed):
    data = planted(2000, 6, 6, 2, seed=seed, noise=0.01)
    R = starts.quartimax(np.random.default_rng(0), data.X)
    np.testing.assert_allclose(R.T @ R, np.eye(6), atol=1e-12)
    assert matched_cosines(R.T, data.W).min() > 0.99


def test_independent_components_turn_sparse_scores_back_to_their_axes(seed):
    data = planted(2000, 6, 6, 2, seed=seed, noise=0.01)
    R = starts.independent(np.random.default_rng(seed), data.X)
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
    def names(init, n_init, n_components=10):
        return [c.name for c in starts.candidates(init, n_init, n_components)]

    all_of_them = [
        "quartimax",
        "annealed PCA",
        "PCA",
        "annealed quartimax",
        *["random rotation"] * 30,
    ]
    assert names("auto", 1) == all_of_them
    assert names("auto", 3) == [*all_of_them, "random rotation", "random rotation"]
    assert names("pca", 2) == ["PCA", "random rotation"]
    assert names("random", 2) == ["random rotation", "random rotation"]
    assert names("auto", 1, 100) == all_of_them
    many = ["independent components", "annealed PCA", "PCA"]
    assert names("auto", 2, 101) == [*many, "random rotation"]
    assert names("quartimax", 1, 101) == ["quartimax"]


def test_random_rotations_are_rotations_and_differ(seed):
    rng = np.random.default_rng(seed)
    P = np.zeros((3, 4))
    one, two = (starts.random_rotation(rng, P) for _ in range(2))
    np.testing.assert_allclose(one @ one.T, np.eye(4), atol=1e-12)
    assert not np.allclose(one, two)


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
