"""Neighbourhood measures against scikit-learn, against sorting everything, and against chance."""

import numpy as np
import pytest
from sklearn.manifold import trustworthiness
from sklearn.neighbors import KNeighborsClassifier

from appca.analysis import map_quality as module
from appca.analysis.map_quality import crowding, knn_accuracy, quality


def two_spaces(seed: int, n: int = 160, d: int = 7, q: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 5.0
    return X, X @ rng.standard_normal((d, q)) + 0.3 * rng.standard_normal((n, q))


def orders(X: np.ndarray) -> np.ndarray:
    """Other rows of every row by distance, equal ones by number; (N, N - 1)."""
    squares = ((X[:, None].astype(np.float64) - X[None]) ** 2).sum(axis=2)
    np.fill_diagonal(squares, np.inf)
    return np.argsort(squares, axis=1, kind="stable")[:, :-1]


def by_sorting(X: np.ndarray, E: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Trustworthiness and share of kept neighbours of every row, from the definition."""
    n = len(X)
    trust, kept = np.empty(n), np.empty(n)
    for i, (near, image) in enumerate(zip(orders(X), orders(E), strict=True)):
        ranks = {int(j): place for place, j in enumerate(near, start=1)}
        lost = sum(max(ranks[int(j)] - k, 0) for j in image[:k])
        trust[i] = 1 - 2 * lost / (k * (2 * n - 3 * k - 1))
        kept[i] = len(set(near[:k]) & set(image[:k])) / k
    return trust, kept


@pytest.mark.parametrize("k", [1, 5, 15, 60])
def test_trustworthiness_is_that_of_scikit_learn(seed, k):
    X, E = two_spaces(seed)
    found = quality(X, E, n_neighbors=k)
    assert found.trustworthiness.value == pytest.approx(
        trustworthiness(X, E, n_neighbors=k), abs=1e-9
    )
    assert found.continuity.value == pytest.approx(trustworthiness(E, X, n_neighbors=k), abs=1e-9)
    assert found.trustworthiness.error == found.kept.error == 0.0
    assert (found.n_rows, found.n_neighbors) == (160, k)


def test_all_measures_agree_with_sorting_every_distance_also_where_distances_are_equal(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (90, 4)).astype(np.float32)  # many equal distances, and equal rows
    E = np.round(X[:, :2] + rng.standard_normal((90, 2)))
    trust, kept = by_sorting(X, E, 7)
    found = quality(X, E, n_neighbors=7)
    assert found.trustworthiness.value == pytest.approx(trust.mean(), abs=1e-9)
    assert found.continuity.value == pytest.approx(by_sorting(E, X, 7)[0].mean(), abs=1e-9)
    assert found.kept.value == pytest.approx(kept.mean(), abs=1e-9)


def test_continuity_is_trustworthiness_with_the_spaces_exchanged(seed):
    X, E = two_spaces(seed)
    there, back = quality(X, E), quality(E, X)
    assert there.trustworthiness == back.continuity
    assert there.continuity == back.trustworthiness
    assert there.kept == back.kept


@pytest.mark.parametrize("direct", [module.DIRECT, 0])
def test_a_perfect_projection_gets_one_and_a_random_one_what_chance_gives(
    seed, direct, monkeypatch
):
    monkeypatch.setattr(module, "DIRECT", direct)
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 9, (400, 6)).astype(np.float32)
    perfect = quality(X, X, n_neighbors=10)
    assert perfect[:3] == ((1.0, 0.0),) * 3
    chance = quality(X, rng.standard_normal((400, 2)), n_neighbors=10)
    # A random neighbour is outside the k nearest with chance 1 - k/(n-1), and then in the middle.
    assert chance.trustworthiness.value == pytest.approx(0.5, abs=0.03)
    assert chance.continuity.value == pytest.approx(0.5, abs=0.03)
    assert chance.kept.value == pytest.approx(10 / 399, abs=0.01)
    nothing = quality(X, np.zeros((400, 1)), n_neighbors=10)  # the same ten rows for everybody
    assert nothing.trustworthiness.value == pytest.approx(0.5, abs=0.3)
    assert nothing.continuity.value == pytest.approx(0.5, abs=0.1)


def test_products_in_float32_give_what_differences_in_float64_give(seed, monkeypatch):
    X, E = two_spaces(seed, n=300)
    exact = quality(X, E)
    monkeypatch.setattr(module, "DIRECT", 0)
    for far in (0.0, 1e4):  # a common offset must not cost the digits
        rough = quality(1e-3 * X + far, (1e25 * E).astype(np.float64))
        for mine, other in zip(rough[:3], exact[:3], strict=True):
            assert mine.value == pytest.approx(other.value, abs=2e-4)


def test_a_sample_of_rows_is_near_all_rows_within_its_stated_error(seed):
    X, E = two_spaces(seed, n=700)
    trust, kept = by_sorting(X, E, 15)
    part = quality(X, E, n_anchors=150, random_state=seed)
    for mine, rows in ((part.trustworthiness, trust), (part.kept, kept)):
        error = rows.std() / np.sqrt(150) * np.sqrt(1 - 150 / 700)
        assert mine.error == pytest.approx(error, rel=0.4)
        assert abs(mine.value - rows.mean()) < 4.5 * error
    assert part == quality(X, E, n_anchors=150, random_state=seed)
    assert part != quality(X, E, n_anchors=150, random_state=seed + 1)


def test_class_accuracy_is_that_of_a_classifier_that_leaves_the_row_out(seed):
    rng = np.random.default_rng(seed)
    X, E = two_spaces(seed)
    classes = (E[:, 0] > E[:, 0].mean()).astype(int) + rng.integers(0, 2, 160)
    right = []
    for i in range(160):
        others = np.arange(160) != i
        model = KNeighborsClassifier(9).fit(E[others], classes[others])
        right.append(model.predict(E[[i]])[0] == classes[i])
    assert quality(X, E, n_neighbors=9, classes=classes).accuracy == (np.mean(right), 0.0)
    assert knn_accuracy(E, classes, np.arange(160), 9, 160) == (np.mean(right), 0.0)


def test_rows_without_a_class_are_neither_asked_nor_heard():
    E = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2], [0.15]])
    classes = np.array([0, 0, 0, 1, 1, 1, -1])
    found = quality(E, E, n_neighbors=2, classes=classes)
    assert found.accuracy == (1.0, 0.0)
    assert quality(E, E, n_neighbors=2, classes=np.full(7, -1)).accuracy is None
    assert quality(E, E, n_neighbors=2).accuracy is None
    alone = np.array([0, -1, -1, -1, -1, -1, -1])
    assert quality(E, E, n_neighbors=2, classes=alone).accuracy.value == 0.0


def test_crowding_takes_each_panel_its_own_components_and_rows(seed):
    rng = np.random.default_rng(seed)
    n = 120
    active = np.zeros((n, 3), dtype=bool)
    active[:70, :2] = active[70:, 1:] = True
    classes = rng.integers(0, 2, n)
    scores = np.where(active, rng.standard_normal((n, 3)), 0.0)
    scores[:70, 0] += 9 * classes[:70]  # the first panel shows the classes apart
    plane = rng.standard_normal((n, 2))
    first, second = crowding(scores, active, plane, classes, n_neighbors=5)
    assert (first.components, first.n_rows) == ((0, 1), 70)
    assert (second.components, second.n_rows) == ((1, 2), 50)
    assert first.panel.value == 1.0
    alone = orders(plane[:70])[:, :5]
    assert first.same_rows == (np.mean((classes[alone].sum(axis=1) > 2) == classes[:70]), 0.0)
    near = orders(plane)[:70, :5]
    expected = np.mean((classes[near].sum(axis=1) > 2) == classes[:70])
    assert first.all_rows == (expected, 0.0)
    assert crowding(scores, active, plane, np.full(n, -1)) == []
    assert len(crowding(scores, active, plane, classes, n_neighbors=5, most=1)) == 1
    assert crowding(scores, active, plane, classes, n_neighbors=40) == []


def test_progress_is_told_and_may_end_the_work(monkeypatch):
    X, E = two_spaces(0)
    monkeypatch.setattr(module, "_BLOCK", 160 * 40)
    told: list[float] = []
    quality(X, E, report=told.append)
    assert told == [0.0, 0.25, 0.5, 0.75]

    def stop(share: float) -> None:
        if share > 0.4:
            raise KeyError

    with pytest.raises(KeyError):
        quality(X, E, report=stop)


def test_what_cannot_be_compared_is_refused_in_one_sentence():
    X, E = two_spaces(0, n=20)
    with pytest.raises(ValueError, match="must have the same rows; got 20 and 19"):
        quality(X, E[1:], n_neighbors=3)
    with pytest.raises(ValueError, match="below half of the 20 rows; got 10"):
        quality(X, E, n_neighbors=10)
