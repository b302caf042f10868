"""Trust of rows against scikit-learn and sorting every distance; its estimate against both."""

import numpy as np
import pytest
from sklearn.manifold import trustworthiness

from appca.analysis import map_quality
from appca.analysis import map_quality as module
from appca.analysis.map_quality import panel_trust, trust, with_trust
from appca.analysis.umap import Embedding, EmbeddingConfig, EmbeddingStore, nearest_rows
from appca.canvas.panels import TRUST_COLOURS, trust_colour
from appca.canvas.scene import _colouring
from appca.data.dataset import Dataset
from appca.data.preprocessing import Preprocessing
from appca.plots import style
from appca.words import InputError
from tests.analysis.check.test_quality import by_sorting, orders, two_spaces


@pytest.mark.parametrize("k", [1, 14, 60])
def test_the_means_are_those_of_scikit_learn(seed, k):
    X, E = two_spaces(seed)
    rows = trust(X, E, n_neighbors=k)
    assert rows.exact
    assert rows.trustworthiness == pytest.approx(trustworthiness(X, E, n_neighbors=k), abs=1e-9)
    assert rows.continuity == pytest.approx(trustworthiness(E, X, n_neighbors=k), abs=1e-9)


@pytest.mark.thorough
def test_thousands_of_rows_have_the_ranks_of_scikit_learn_too():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 20)).astype(np.float32)
    E = (X[:, :2] + 0.1 * rng.normal(size=(4000, 2))).astype(np.float64)
    assert len(X) ** 2 * X.shape[1] > map_quality.DIRECT, "products, not differences"
    rows = trust(X, E, n_neighbors=14)
    expected = trustworthiness(X.astype(np.float64), E, n_neighbors=14)
    assert rows.trustworthiness == pytest.approx(expected, abs=1e-10)


def test_every_row_agrees_with_sorting_its_distances(seed):
    X, E = two_spaces(seed)
    rows = trust(X, E, n_neighbors=9)
    trusted, kept = by_sorting(X, E, 9)
    np.testing.assert_allclose(rows.false, 1 - trusted, atol=1e-9)
    np.testing.assert_allclose(rows.missing, 1 - by_sorting(E, X, 9)[0], atol=1e-9)
    np.testing.assert_allclose(rows.kept, kept, atol=1e-12)


def test_a_row_put_among_others_has_false_neighbours_and_is_missed():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.standard_normal((100, 2)), rng.standard_normal((100, 2)) + 30])
    E = X.copy()
    E[0] = X[150] + 0.01
    rows = trust(X, E, n_neighbors=10)
    assert rows.false.argmax() == rows.missing.argmax() == 0
    assert rows.false[0] > 0.4
    assert rows.missing[0] > 0.4
    assert np.delete(rows.false, 0).max() < 0.1


def test_the_estimate_by_a_graph_is_near_all_ranks(seed, monkeypatch):
    X, E = two_spaces(seed, 3000, 10)
    whole = trust(X, E, n_neighbors=14)
    monkeypatch.setattr(module, "EXACT", 2999)
    with pytest.raises(InputError, match="needs the graph of a map"):
        trust(X, E)
    graph = nearest_rows(X, 15).indices
    rows = trust(X, E, graph)
    assert not rows.exact
    np.testing.assert_allclose(rows.kept, whole.kept, atol=1e-12)
    assert rows.trustworthiness == pytest.approx(whole.trustworthiness, abs=0.01)
    assert rows.continuity == pytest.approx(whole.continuity, abs=0.01)
    assert np.abs(rows.false - whole.false).max() < 0.05
    assert np.abs(rows.missing - whole.missing).max() < 0.05


def test_with_all_rows_as_references_the_estimate_is_exact(seed, monkeypatch):
    X, E = two_spaces(seed, 200)
    whole = trust(X, E, n_neighbors=7)
    monkeypatch.setattr(module, "EXACT", 0)
    rows = trust(X, E, np.column_stack([np.arange(200), orders(X)[:, :7]]))
    np.testing.assert_allclose(rows.false, whole.false, atol=1e-3)
    np.testing.assert_allclose(rows.missing, whole.missing, atol=1e-9)


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
    assert np.isfinite(rows.trustworthiness)


def test_other_rows_are_refused():
    with pytest.raises(ValueError, match="must have the same rows"):
        trust(np.zeros((50, 3)), np.zeros((49, 2)))


def test_a_map_is_given_the_trust_of_its_rows_by_its_own_neighbours(tmp_path):
    X, E = two_spaces(3, 60)
    dataset = Dataset("rows", X.astype(np.float32), np.arange(60))
    config = EmbeddingConfig(dataset.digest, {}, n_neighbors=9)
    fitted = Preprocessing.from_dict(config.preprocessing).fit(dataset.X)
    store, told = EmbeddingStore(tmp_path), []
    laid_out = Embedding(E.astype(np.float32), {"seconds": 1.0, "n_rows": 60})
    trusted = with_trust(dataset, config, store, laid_out, fitted, lambda *at: told.append(at))
    rows = trust(fitted.transform(dataset.X), laid_out.coordinates, n_neighbors=8)
    np.testing.assert_allclose(trusted.trust, np.column_stack(rows[:3]), atol=1e-6)
    assert told[-1] == ("comparing the neighbours of rows", 1.0), "the bar of the map stays full"
    store.save(config, trusted)
    stored = store.get(config.id)
    np.testing.assert_array_equal(stored.trust, trusted.trust)
    far = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    np.testing.assert_array_equal(stored.near, np.argsort(far, axis=1)[:, 1:7])
    store.save(config, trusted._replace(near=stored.near + 60))
    assert store.get(config.id) is None, "rows that are not there"
    store.save(config, laid_out)
    assert store.get(config.id).near is None
    few = dataset.take(np.arange(12))
    assert with_trust(few, config, store, laid_out, fitted, print) is laid_out


def test_false_and_missing_neighbours_are_two_ways_of_one_colouring():
    levels = np.array([[0.0, 0.0], [0.0, 0.3], [0.1, 0.0], [0.3, 0.1]])
    colour = trust_colour(levels)
    unknown = trust_colour(np.array([[np.nan, np.nan, 1.0]]), "Trust of the panels")
    assert (unknown.values.tolist(), unknown.name) == ([-1], "Trust of the panels")
    assert [colour.names[code] for code in colour.values] == [
        *("neighbours kept", "many missing", "some false", "many false, some missing")
    ]
    drawn = style.levels(colour)
    assert len(set(drawn.table)) == 10
    assert set(drawn.shapes) == {"circle"}
    assert drawn.table[drawn.codes[3]] == TRUST_COLOURS[7]
    assert _colouring(colour)[0]["steps"], "no place of the map is called by them"
    assert "steps" not in _colouring(colour._replace(colours=()))[0]
