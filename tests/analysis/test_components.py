"""Tests of components and subspaces against counts and direct computations."""

from dataclasses import replace
from itertools import combinations, permutations, product

import numpy as np
import pytest

from appca import AdaptiveFactorAnalysis, AdaptivePPCA, variance_by
from appca.analysis import components
from appca.analysis.components import (
    explained_shares,
    extremes,
    fullest,
    name_of,
    opens_in_pair_view,
    own_name,
    pair_counts,
    principal_scores,
    ranked,
    sharing,
    steering,
    title,
)
from appca.data.dataset import Dataset
from appca.data.preprocessing import Preprocessing
from appca.studies import coil20, digits
from appca.studies.coil20 import rgb
from appca.words import InputError
from tests.fitted_runs import fitted_run

ACTIVE = np.array([[1, 1, 0], [1, 0, 1], [1, 1, 0], [0, 1, 1], [1, 0, 0]], dtype=bool)
SCORES = np.where(ACTIVE, [[3, 1, 9], [-2, 9, 1], [0.5, 2, 9], [9, 3, 2], [-7, 9, 9]], 0.0)
RUN = fitted_run(ACTIVE, scores=SCORES)


@pytest.mark.parametrize(
    ("rows", "k", "n", "low", "high"),
    [
        (slice(None), 0, 2, [4, 1], [0, 2]),
        (slice(None), 1, 12, [0], [3, 2]),
        (slice(1), 0, 5, [], [0]),
        (slice(4, None), 2, 5, [], []),
    ],
)
def test_the_ends_hold_users_only_the_most_extreme_first_and_nobody_twice(rows, k, n, low, high):
    found = extremes(fitted_run(ACTIVE[rows], scores=SCORES[rows]), k, n)
    assert [end.tolist() for end in found] == [low, high]


def test_rows_without_the_largest_feature_of_a_component_are_at_no_end():
    fitted = fitted_run(ACTIVE, scores=SCORES)
    gaps = np.zeros((len(ACTIVE), fitted.components.shape[1]), bool)
    gaps[4, np.abs(fitted.components[0]).argmax()] = True
    assert [4 in extremes(fitted, 0, 2, gone)[0] for gone in (None, gaps)] == [True, False]


@pytest.mark.parametrize("options", [{"divide": 4.0, "scale": "feature"}, {"pca": 3}])
def test_average_and_patterns_rebuild_what_the_fit_rebuilds(options, seed):
    rng = np.random.default_rng(seed)
    before = Preprocessing(**options).fit(rng.normal(size=(60, 6)) * np.arange(1, 7) + 5)
    W, mean = rng.normal(size=(3, before.n_features)), rng.normal(size=before.n_features)
    fitted = fitted_run(rng.random((60, 3)) < 0.6, components=W, mean=mean, preprocessing=before)
    z, found = rng.normal(size=3), steering(fitted)
    expected = before.inverse_transform((mean + z @ W)[None])[0]
    np.testing.assert_allclose(found.average + z @ found.patterns, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found.reach, np.abs(fitted.scores).max(axis=0))
    W = np.array([[0.1, 3.0, 0.0, 2.0, 0.0]])
    most = steering(fitted_run(np.ones((20, 1), bool), components=W), 2)
    assert (most.columns.tolist(), most.patterns.tolist()) == ([1, 3], [[3.0, 2.0]])
    named = replace(RUN, names=("", "slant", ""))
    assert [name_of(named, k) for k in range(2)] == ["component 1", "2 · slant"]
    assert (name_of(RUN, 2), own_name(named, 1), own_name(RUN, 1)) == ("component 3", "slant", "")


def line(degrees: float, size: int = 41) -> np.ndarray:
    image = np.zeros((size, size), np.uint8)
    for y in range(5, size - 5):
        x = size // 2 + np.tan(np.radians(degrees)) * (size // 2 - y)
        image[y, round(x)] = 255
    return image


def test_a_stroke_has_its_angle_its_lit_pixels_and_its_width():
    angles = [-30, -10, 0, 15, 35]
    strokes = np.stack([*map(line, angles), np.zeros((41, 41), np.uint8)])
    np.testing.assert_allclose(digits.slant(strokes), [*angles, 0], atol=0.7)
    images = np.zeros((3, 8, 10), np.uint8)
    images[0, 3, [2, 6]] = 200
    images[1] = 255
    images[1, 0, 0] = 0
    images[2, 4, 4] = coil20.LIT - 1
    np.testing.assert_allclose(coil20.width(images), [0.5, 1.0, 0.0])


def test_an_effect_is_the_difference_in_pooled_standard_deviations(seed):
    inside = np.arange(4000) < 1500
    values = np.random.default_rng(seed).normal(3.0, 2.0, 4000) + 1.0 * inside
    n, mean, _, size, error = components.effect(values, inside)
    assert size == pytest.approx(0.5, abs=5 * error)
    assert (n, mean) == (1500, pytest.approx(values[:1500].mean()))
    assert components.effect(0.01 * values, ~inside)[3] == pytest.approx(-size), "in any unit"
    assert np.isnan(components.effect(values, np.zeros(4000, bool))[3])


def some_rows(seed: int, n_rows: int = 90, n_components: int = 8, n_classes: int = 4):
    """Rows of unequal classes, some without one, that use any number of components."""
    rng = np.random.default_rng(seed)
    active = rng.random((n_rows, n_components)) < rng.random(n_components)
    codes = np.minimum(rng.geometric(0.4, n_rows) - 1, n_classes - 1)
    codes[:n_classes] = codes[n_classes : 2 * n_classes] = np.arange(n_classes)
    codes[-5:] = -1
    return active, codes


def of_all_pairs(active: np.ndarray, codes: np.ndarray, n_classes: int) -> np.ndarray:
    """The same means, from what every pair of distinct rows shares."""
    shared = active.astype(float) @ active.T
    np.fill_diagonal(shared, np.nan)
    classes = [codes == c for c in range(n_classes)]
    return np.array([[np.nanmean(shared[a][:, b]) for b in classes] for a in classes])


def test_sharing_is_the_mean_over_all_distinct_pairs_of_rows(seed):
    active, codes = some_rows(seed)
    found, expected = sharing(active, codes, 4), of_all_pairs(active, codes, 4)
    np.testing.assert_allclose(found.shared, expected, rtol=1e-12)
    assert found.counts.tolist() == [int((codes == c).sum()) for c in range(4)]
    together = of_all_pairs(active, np.where(codes < 0, -1, 0), 1)[0, 0]
    assert found.overall == pytest.approx(together, rel=1e-12)
    by_class = sharing(active, codes, 5).uses
    for k, c in product(range(active.shape[1]), range(4)):
        assert by_class[c, k] == pytest.approx(np.mean(active[codes == c, k]))
    assert np.isnan(by_class[4]).all()


def some_active(seed: int, n_rows: int = 400, n_components: int = 7, n_active: int = 3):
    """Rows that use unevenly popular sets of exactly n_active components."""
    rng = np.random.default_rng(seed)
    keys = rng.gumbel(size=(n_rows, n_components)) + np.linspace(2, 0, n_components)
    active = np.zeros((n_rows, n_components), dtype=bool)
    np.put_along_axis(active, np.argsort(-keys, axis=1)[:, :n_active], True, axis=1)
    return active


FAR = np.zeros((3, 20), dtype=int)
FAR[0, [0, 19]] = FAR[1, [8, 19]] = FAR[2, [0, 8]] = 1


@pytest.mark.parametrize(
    ("active", "expected"),
    [
        (
            [[0, 1, 1], [1, 0, 1], [1, 1, 0], [1, 1, 0], [1, 0, 1]],
            [("{1,2}", [2, 3]), ("{1,3}", [1, 4]), ("{2,3}", [0])],
        ),
        (FAR, [("{1,9}", [2]), ("{1,20}", [0]), ("{9,20}", [1])]),  # more than a byte holds
        ([[0, 0], [1, 0], [0, 0]], [("none", [0, 2]), ("{1}", [1])]),
    ],
)
def test_subspaces_come_by_occupancy_and_ties_by_component_numbers(active, expected):
    found = ranked(np.array(active, dtype=bool))
    assert [(title(s.components), s.rows.tolist()) for s in found] == expected
    active = some_active(len(active))
    for subspace in (found := ranked(active)):
        for row in subspace.rows:
            assert tuple(np.flatnonzero(active[row])) == subspace.components
    assert sorted(np.concatenate([s.rows for s in found])) == list(range(len(active)))


def test_pairs_hold_the_rows_that_use_both_the_fullest_first(seed, monkeypatch):
    monkeypatch.setattr(components, "LEAST_ROWS", 1000)
    active = some_active(seed)
    pairs = fullest(active, 99)
    found = {s.components: s.rows for s in pairs}
    for pair in combinations(range(active.shape[1]), 2):
        expected = [n for n, row in enumerate(active) if row[pair[0]] and row[pair[1]]]
        assert found.get(pair, np.array([])).tolist() == expected
    assert [(s.components, len(s.rows)) for s in pairs] == pair_counts(active)
    assert [s.components for s in fullest(active, 11)] == [s.components for s in pairs[:11]]


@pytest.mark.parametrize(("least", "thin"), [(1, False), (2, False), (3, True)])
def test_pairs_open_where_under_half_of_the_rows_are_in_large_enough_subspaces(
    monkeypatch, least, thin
):
    sets = [[1, 1, 1, 0], [1, 1, 1, 0], [0, 1, 1, 1], [1, 0, 1, 1], [1, 0, 1, 1]]
    active = np.array(sets, dtype=bool)  # 4 of 5 rows in subspaces of two
    monkeypatch.setattr(components, "LEAST_ROWS", least)
    assert opens_in_pair_view(active) is thin
    assert [s.components for s in fullest(active, 2)] == (
        [(0, 2), (1, 2)] if thin else [(0, 1, 2), (0, 2, 3)]
    )
    assert not opens_in_pair_view(some_active(2, n_rows=40, n_components=12, n_active=2))


def test_each_channel_ranks_the_score_of_the_rows_own_component():
    scores = np.array([[3.0, 0, 10.0], [0, 1.0, 20.0], [2.0, 30.0, 0]])
    colours = rgb(scores, scores != 0)
    low, middle, high = (round(255 * share) for share in (0.01, 0.5, 0.99))
    assert colours[:, 0].tolist() == [high, low, middle]  # by 3, 1, 2, the first of each row
    assert colours[:, 1].tolist() == [low, middle, high]  # by 10, 20, 30, the second
    assert (colours[:, 2] == 128).all()  # no third
    red = rgb(np.array([[1.0], [1.0], [2.0], [2.0], [2.0]]), np.ones((5, 1), bool))[:, 0]
    assert red[0] == red[1] < red[2] == red[3] == red[4]


@pytest.mark.parametrize("shape", [(60, 8), (8, 60)])
def test_principal_scores_agree_with_a_singular_value_decomposition(shape, seed):
    X = np.random.default_rng(seed).normal(size=shape) * np.linspace(3, 0.1, shape[1])
    U, singular, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    scores, shares, directions = principal_scores(X, 3)
    np.testing.assert_allclose((X - X.mean(axis=0)) @ directions.T, scores, atol=1e-5 * singular[0])
    np.testing.assert_allclose(np.abs(scores), np.abs(U * singular)[:, :3], atol=1e-5 * singular[0])
    np.testing.assert_allclose(shares, (singular**2 / (singular**2).sum())[:3], atol=1e-10)
    in_blocks, of_blocks, _ = principal_scores(lambda: iter(np.array_split(X, 3)))
    np.testing.assert_allclose(in_blocks, scores, atol=1e-5 * singular[0])
    np.testing.assert_allclose(of_blocks, shares, atol=1e-8)
    for found in (scores, principal_scores(-X)[0]):
        assert (found[np.abs(found).argmax(axis=0), range(found.shape[1])] > 0).all()


@pytest.mark.parametrize(("orthonormal", "scaled"), [(True, False), (False, False), (True, True)])
def test_shares_are_what_components_take_off_the_variance_of_rows(seed, orthonormal, scaled):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(6, 3))
    W = np.linalg.qr(W)[0] if orthonormal else W
    Y = rng.normal(size=(40, 6)) * np.linspace(3, 1, 6) + 2
    active, noise, latent = rng.random((40, 3)) < 0.6, 0.5, np.full(3, 2.0)
    mean, scores = Y.mean(axis=0) + scaled, np.zeros((40, 3))
    for _ in range(1 if scaled else 300):  # posterior means given the row's set
        for row, used in enumerate(active):
            precision = W[:, used].T @ W[:, used] / noise + np.diag(1 / latent[used])
            right = W[:, used].T @ (Y - mean)[row] / noise
            scores[row, used] = np.linalg.solve(precision, right)
        mean = mean if scaled else (Y - scores @ W.T).mean(axis=0)

    def squared_error(kept, gaps=0.0):
        about_mean = np.where(kept, scores, scores.mean(axis=0))
        return np.nansum(np.square(Y + gaps - mean - about_mean @ W.T))

    given = {"scores": scores, "error": np.square(Y - mean - scores @ W.T).mean(axis=1)}
    given |= {"mean": mean, "noise_variance": noise, "latent_variance": latent}
    given |= {"row_scale_values": np.ones(1)} if scaled else {}
    fitted = fitted_run(active, components=W.T, **given)
    shares, whole = explained_shares(fitted, Dataset("rows", Y, np.arange(40).astype(str)))
    total, left = np.square(Y - Y.mean(axis=0)).sum(), squared_error([1, 1, 1])
    expected = [(squared_error(k != np.arange(3)) - left) / total for k in range(3)]
    np.testing.assert_allclose(shares, expected, atol=1e-6)
    assert whole == pytest.approx(1 - left / total, abs=1e-6)
    assert scaled or (abs(whole - shares.sum()) < 1e-9) == orthonormal
    gaps = np.where(rng.random(Y.shape) < 0.2, np.nan, 0.0)
    total = np.nansum(np.square(Y + gaps - np.nanmean(Y + gaps, axis=0)))
    left = squared_error([1, 1, 1], gaps)
    expected = [(squared_error(k != np.arange(3), gaps) - left) / total for k in range(3)]
    found = explained_shares(fitted, Dataset("", Y, np.arange(40), missing=np.isnan(gaps)))[0]
    np.testing.assert_allclose(found, expected, atol=1e-6)


RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 7)) @ RNG.normal(size=(7, 7)) + 3
CLASSES = np.array(["a", "b", "c"])[np.arange(60) % 3]
BLOCKS = {"left": [0, 1, 2], "right": [3, 4, 5, 6]}


@pytest.fixture(scope="module", params=[AdaptivePPCA, AdaptiveFactorAnalysis])
def model(request):
    return request.param(3, 2, random_state=0).fit(X)


def test_shares_are_means_over_all_orders_and_add_up_to_all_of_the_variance(model):
    shares = variance_by(model, X, classes=CLASSES, blocks=BLOCKS)
    sums = shares.groupby(["class", "block"])["share"].sum()
    np.testing.assert_allclose(sums, 1.0, atol=1e-12)
    assert len(sums) == 6
    scores, W = model.describe(X).scores, model.components_
    mean, scores = model.mean_ + scores.mean(axis=0) @ W, scores - scores.mean(axis=0)
    orders = list(permutations(range(3)))
    for (name, block), group in shares.groupby(["class", "block"]):
        rows, columns = name == CLASSES, BLOCKS[block]
        y, saved = (X - mean)[rows][:, columns], np.zeros(3)
        for order in orders:
            rest = y.copy()
            for k in order:
                after = rest - np.outer(scores[rows, k], W[k, columns])
                saved[k] += ((rest**2).sum() - (after**2).sum()) / len(orders)
                rest = after
        expected = np.r_[(rest**2).sum(), saved] / (y**2).sum()
        np.testing.assert_allclose(group.sort_values("component")["share"], expected, atol=1e-10)
    for given, words in (
        ({"blocks": {"a": [1, 2], "b": [2]}}, "must not overlap; name column 2 only once"),
        ({"blocks": {"a": [7]}}, "columns beyond 0 to 6"),
        ({"classes": ["a", "b", "c"]}, "one value per row, 60; got 3"),
    ):
        with pytest.raises(InputError, match=words):
            variance_by(model, X, **given)
    holed = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
    shares = variance_by(AdaptivePPCA(3, 1, random_state=0).fit(holed), holed, blocks=BLOCKS)
    np.testing.assert_allclose(shares.groupby("block")["share"].sum(), 1.0)
