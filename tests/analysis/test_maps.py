"""Tests of preserved neighbours against scikit-learn and sorting, and of UMAP and its cache."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.manifold import trustworthiness
from sklearn.neighbors import KNeighborsClassifier

from appca.analysis import map_quality as module
from appca.analysis import umap
from appca.analysis.map_quality import (
    crowding,
    nearest_classes,
    panel_trust,
    quality,
    trust,
    with_trust,
)
from appca.analysis.umap import (
    Embedding,
    EmbeddingConfig,
    EmbeddingStore,
    embed,
    nearest_rows,
    start_from,
)
from appca.canvas.panels import TRUST_COLOURS, trust_colour
from appca.canvas.scene import _colouring
from appca.data.dataset import Dataset
from appca.data.preprocessing import Preprocessing
from appca.data.sources import load
from appca.plots import style
from appca.words import InputError


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


@pytest.mark.parametrize("k", [1, 60])
def test_means_are_those_of_scikit_learn_for_a_map_and_for_its_rows(seed, k):
    X, E = two_spaces(seed)
    expected = [trustworthiness(*spaces, n_neighbors=k) for spaces in ((X, E), (E, X))]
    whole, rows = quality(X, E, n_neighbors=k), trust(X, E, n_neighbors=k)
    np.testing.assert_allclose([mean.value for mean in whole[:2]], expected, atol=1e-9)
    np.testing.assert_allclose(1 - np.mean(rows[:2], axis=1), expected, atol=1e-9)
    assert whole.trustworthiness.error == whole.kept.error == 0.0
    with pytest.raises(ValueError, match="must have the same rows; got 160 and 159"):
        quality(X, E[1:], n_neighbors=3)
    with pytest.raises(ValueError, match="below half of the 160 rows; got 80"):
        trust(X, E, n_neighbors=80)


@pytest.mark.parametrize("ties", [False, True])
def test_every_row_agrees_with_sorting_its_distances_also_where_they_are_equal(seed, ties):
    rng = np.random.default_rng(seed)
    X, E = two_spaces(seed)
    if ties:  # many equal distances, and equal rows
        X = rng.integers(0, 3, (90, 4)).astype(np.float32)
        E = np.round(X[:, :2] + rng.standard_normal((90, 2)))
    rows = trust(X, E, n_neighbors=9)
    trusted, kept = by_sorting(X, E, 9)
    np.testing.assert_allclose(rows, [1 - trusted, 1 - by_sorting(E, X, 9)[0], kept], atol=1e-9)
    means = [value.value for value in quality(X, E, n_neighbors=9)[:3]]
    expected = [1 - rows.false.mean(), 1 - rows.missing.mean(), rows.kept.mean()]
    np.testing.assert_allclose(means, expected, atol=1e-12)


def test_products_give_what_differences_give(seed, monkeypatch):
    X, E = two_spaces(seed, n=300, q=4)
    exact = quality(X, E)
    monkeypatch.setattr(module, "DIRECT", 0)
    for far in (0.0, 1e4):  # a common offset must not cost the digits
        rough = quality(1e-3 * X + far, 1e25 * E)
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
    classes, right = (E[:, 0] > E[:, 0].mean()).astype(int) + rng.integers(0, 2, 160), []
    for i in range(160):
        others = np.arange(160) != i
        model = KNeighborsClassifier(9).fit(E[others], classes[others])
        right.append(model.predict(E[[i]])[0] == classes[i])
    assert quality(X, E, n_neighbors=9, classes=classes).accuracy == (np.mean(right), 0.0)
    E = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2], [0.15]])
    for some, accuracy in (
        (np.array([0, 0, 0, 1, 1, 1, -1]), (1.0, 0.0)),  # rows without a class are not asked
        (np.array([0, *[-1] * 6]), (0.0, 0.0)),
        (np.full(7, -1), None),
        (None, None),
    ):
        assert quality(E, E, n_neighbors=2, classes=some).accuracy == accuracy


def test_crowding_takes_each_panel_its_own_components_and_rows(seed):
    rng, n = np.random.default_rng(seed), 120
    active = np.zeros((n, 3), dtype=bool)
    active[:70, :2] = active[70:, 1:] = True
    classes, scores = rng.integers(0, 2, n), np.where(active, rng.standard_normal((n, 3)), 0.0)
    scores[:70, 0] += 9 * classes[:70]  # the first panel shows the classes apart
    plane = rng.standard_normal((n, 2))
    (first, own, same, every), (second, *_) = crowding(
        scores, active, plane, classes, n_neighbors=5
    )
    assert (first.components, len(first.rows)) == ((0, 1), 70)
    assert (second.components, len(second.rows)) == ((1, 2), 50)
    assert own.value == 1.0
    for found, near in ((same, orders(plane[:70])[:, :5]), (every, orders(plane)[:70, :5])):
        assert found == (np.mean((classes[near].sum(axis=1) > 2) == classes[:70]), 0.0)
    assert len(crowding(scores, active, plane, classes, n_neighbors=5, most=1)) == 1
    assert crowding(scores, active, plane, classes, n_neighbors=40) == []


def test_of_many_rows_a_sample_is_compared_with_all(seed, monkeypatch):
    X, E = two_spaces(seed, 400)
    whole = trust(X, E)
    monkeypatch.setattr(module, "EXACT", 300)
    rows = trust(X, E)
    compared = ~np.isnan(rows.false)
    assert compared.sum() == 225
    np.testing.assert_allclose(np.array(rows)[:, compared], np.array(whole)[:, compared])


def test_a_panel_compares_its_own_rows_in_its_own_components(seed):
    rng = np.random.default_rng(seed)
    X, scores = rng.standard_normal((130, 6)), rng.standard_normal((130, 4))
    active = np.zeros((130, 4), bool)
    active[:60, :2] = active[60:120, 1:3] = active[120:, 3] = True
    rows = panel_trust(X, scores, active, n_neighbors=6)
    np.testing.assert_allclose(rows.false[:60], 1 - by_sorting(X[:60], scores[:60, :2], 6)[0])
    image = scores[60:120, 1:3]
    np.testing.assert_allclose(rows.missing[60:120], 1 - by_sorting(image, X[60:120], 6)[0])
    assert np.isnan(rows.false[120:]).all()


def test_a_map_is_given_the_trust_of_its_rows_by_its_own_neighbours(tmp_path):
    X, E = two_spaces(3, 60)
    dataset = Dataset("rows", X.astype(np.float32), np.arange(60))
    config = EmbeddingConfig(dataset.digest, {}, n_neighbors=9)
    fitted = Preprocessing.from_dict(config.preprocessing).fit(dataset.X)
    store, told = EmbeddingStore(tmp_path), []
    laid_out = Embedding(E.astype(np.float32))
    trusted = with_trust(dataset, config, store, laid_out, fitted, lambda *at: told.append(at))
    rows = trust(fitted.transform(dataset.X), laid_out.coordinates, n_neighbors=8)
    np.testing.assert_allclose(trusted.trust, np.column_stack(rows), atol=1e-6)
    assert told[-1] == ("comparing the neighbours of rows", 0.0), "as the map's last stage begins"
    store.save(config, trusted)
    stored = store.get(config.id)
    np.testing.assert_array_equal(stored.trust, trusted.trust)
    np.testing.assert_array_equal(stored.near, orders(X)[:, :6])
    store.save(config, laid_out)
    assert store.get(config.id).near is None
    few = dataset.take(np.arange(12))
    assert with_trust(few, config, store, laid_out, fitted, print) is laid_out


def test_false_and_missing_neighbours_are_two_ways_of_one_colouring():
    colour = trust_colour(np.array([[0.0, 0.0], [0.0, 0.3], [0.1, 0.0], [0.3, 0.1]]))
    unknown = trust_colour(np.array([[np.nan, np.nan, 1.0]]), "Trust of the panels")
    assert (unknown.values.tolist(), unknown.name) == ([-1], "Trust of the panels")
    said = ["neighbours kept", "many missing", "some false", "many false, some missing"]
    assert [colour.names[code] for code in colour.values] == said
    drawn = style.levels(colour)
    assert (len(set(drawn.table)), set(drawn.shapes)) == (10, {"circle"})
    assert drawn.table[drawn.codes[3]] == TRUST_COLOURS[7]
    assert _colouring(colour)[0]["steps"], "no place of the map is called by them"
    assert "steps" not in _colouring(colour._replace(colours=()))[0]


def test_the_nearest_other_class_is_that_of_all_pairs_of_rows(seed):
    rng = np.random.default_rng(seed)
    active = rng.random((150, 4)).argsort(axis=1) < 2
    scores = np.where(active, rng.standard_normal((150, 4)), 0.0)
    components, codes = rng.standard_normal((4, 6)), rng.integers(0, 4, 150)
    votes, drawn = np.zeros((4, 4), int), scores @ components
    for n in range(150):
        alike = (active == active[n]).all(axis=1) & (codes != codes[n])
        away = np.where(alike, np.linalg.norm(drawn - drawn[n], axis=1), np.inf)
        if alike.any():
            votes[codes[n], codes[away.argmin()]] += 1
    found = nearest_classes(components, scores, active, codes, "abcd")
    assert found == [("abcd"[of.argmax()], pytest.approx(of.max() / of.sum())) for of in votes]
    alone = nearest_classes(components, scores, np.arange(4) == codes[:, None], codes, "abcd")
    assert alone == [(None, 0.0)] * 4, "classes that share no subspace have no neighbour"


def check(X: np.ndarray, k: int) -> None:
    found, n = nearest_rows(X, k), len(X)
    X = X.astype(np.float64)
    expected = np.sqrt(np.sort(((X[:, None] - X[None]) ** 2).sum(axis=2), axis=1)[:, :k])
    near = 1e-5 * (np.abs(X - X.mean(axis=0)).max() + 1e-12) * X.shape[1] ** 0.5
    np.testing.assert_allclose(found.distances, expected, atol=near)
    np.testing.assert_array_equal(found.indices[:, 0], np.arange(n))
    assert (found.distances[:, 0] == 0).all()
    assert (np.diff(found.distances, axis=1) >= 0).all()
    assert all(len(set(row)) == k for row in found.indices.tolist()), "no row twice"
    true = np.linalg.norm(X[:, None] - X[found.indices], axis=2)
    np.testing.assert_allclose(true, expected, atol=near)


@pytest.mark.parametrize(
    ("shape", "block"), [((2, 2), 512), ((300, 150), 7), ((120, 2000), 512)], ids=str
)
def test_neighbours_are_the_nearest_rows_of_all(seed, shape, block, monkeypatch):
    monkeypatch.setattr(umap, "_QUERIES", block)
    rng = np.random.default_rng(seed)
    check(rng.standard_normal(shape) * rng.uniform(0.1, 10, shape[1]) + 100, min(15, shape[0]))


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.integers(2, 60), st.integers(2, 5), st.integers(2, 10))
def test_equal_rows_keep_themselves_first(draw, n, d, k):
    check(np.random.default_rng(draw).integers(0, 2, (n, d)).astype(np.float32), min(k, n))
    check(np.full((30, d), 7.0), 5)


OF_RUN, CONFIG = {"start": "appca", "run": "0" * 12}, EmbeddingConfig("d" * 64, {"divide": 16.0})


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return load("digits").take(np.arange(400))


def config_of(dataset: Dataset, **changes: object) -> EmbeddingConfig:
    return EmbeddingConfig(dataset.digest, {"divide": 16.0}, **changes)


@pytest.mark.parametrize(
    ("changes", "n_scores", "words"),
    [
        ({"n_neighbors": 1}, 0, "n_neighbors must be at least 2 and n_components 2 or 3; got 1"),
        ({"n_components": 4}, 0, "got 15 and 4"),
        ({"min_dist": 1.5}, 0, "min_dist must be between 0 and spread=1.0; got 1.5"),
        ({"min_dist": float("nan")}, 0, "got nan"),
        ({"start": "spectral"}, 0, "start must be “pca”, or “appca” with the id of a fit"),
        ({"start": "appca"}, 0, "got “appca” with fit None"),
        ({"run": "0" * 12}, 0, "got “pca” with fit 000000000000"),
        ({"n_neighbors": 400}, 0, "smaller than the number of rows, 400; got 400"),
        (OF_RUN, 0, "needs the scores of fit 000000000000"),
        (OF_RUN, 399, "for the same rows"),
    ],
)
def test_what_cannot_be_laid_out_is_told_before_the_work(
    tmp_path, digits, changes, n_scores, words
):
    scores = np.zeros((n_scores, 4)) if n_scores else None
    with pytest.raises(InputError, match=words):
        embed(digits, config_of(digits, **changes), EmbeddingStore(tmp_path), scores)
    assert not EmbeddingStore(tmp_path).folder.exists()


def test_neighbours_are_sought_again_for_another_number_data_or_a_damaged_file(
    tmp_path, digits, monkeypatch
):
    sought, laid_out, told, real = [], [], [], umap.nearest_rows

    class Layout:
        """Stands for UMAP, whose progress bar is the only sign of life it gives."""

        def __init__(self, **options: object) -> None:
            laid_out.append(options)

        def fit_transform(self, X: np.ndarray) -> np.ndarray:
            for text in ("\r", "0/200 ", "\r100/200 ", "\n"):
                laid_out[-1]["tqdm_kwds"]["file"].write(text)
            return X[:, :2]

    def nearest(X: np.ndarray, k: int, report: object) -> object:
        return sought.append(k) or real(X, k, report)

    monkeypatch.setattr(umap, "nearest_rows", nearest)
    monkeypatch.setitem(sys.modules, "umap", SimpleNamespace(UMAP=Layout))
    store, scores = EmbeddingStore(tmp_path), np.eye(400, 4)
    changes = {"min_dist": 1.5, "spread": 2.0, "random_state": 4}
    embed(digits, config_of(digits), store, report=lambda *stage: told.append(stage))
    assert told[-2:] == [("laying out", 0.0), ("laying out", pytest.approx(0.5))]
    embed(digits, config_of(digits, **changes), store)
    embed(digits, config_of(digits, **OF_RUN), store, scores)
    assert sought == [15]
    neighbours = [made["precomputed_knn"][0] for made in laid_out]
    assert all((near == neighbours[0]).all() for near in neighbours)
    assert changes.items() <= laid_out[1].items()
    assert (laid_out[1]["init"], laid_out[2]["init"].shape) == ("pca", (400, 2))
    embed(digits, config_of(digits, n_neighbors=16), store)
    embed(digits, EmbeddingConfig(digits.digest, {"divide": 8}), store)
    for file in store.folder.iterdir():
        file.write_bytes(b"damaged")
    embed(digits, config_of(digits), store)
    assert sought == [15, 16, 15, 15]
    monkeypatch.setattr(umap, "MOST_BYTES", 50_000)  # one of 400 x 15 takes 48 kB
    store.save(CONFIG, Embedding(np.zeros((10, 2), np.float32)))
    for k in (13, 14):
        config = replace(CONFIG, n_neighbors=k)
        store.neighbours(config, digits.X / np.float32(16), lambda *_told: None)
        (left,) = store.folder.glob(umap.NEIGHBOUR_FILES)
        with np.load(left, allow_pickle=False) as archive:
            assert archive["indices"].shape == (400, k)
    assert store.get(CONFIG.id).coordinates.shape == (10, 2)
    for wrong in ("../x", "", None, "0" * 12, f"neighbours-{'0' * 12}"):
        assert store.get(wrong) is None


def test_the_start_from_scores_is_their_principal_plane_with_a_little_noise():
    rng = np.random.default_rng(3)
    scores = (rng.standard_normal((200, 5)) * [9, 1, 5, 1, 1]).astype(np.float32)
    scores[::2, :2] = 0
    start = start_from(scores, CONFIG)
    assert start.shape == (200, 2)
    assert start.tobytes() == start_from(scores, CONFIG).tobytes()
    u, s, _ = np.linalg.svd(scores - scores.mean(axis=0), full_matrices=False)
    for j in range(2):
        assert abs(np.corrcoef(start[:, j], u[:, j] * s[j])[0, 1]) > 0.9999
    same = start_from(np.zeros((50, 1), np.float32), replace(CONFIG, n_components=3))
    assert same.shape == (50, 3)
    assert len(np.unique(same, axis=0)) == 50, "equal rows must be able to part"
