"""The page UMAP: names of classes on the map, the nearest other classes, what is laid out anew."""

from unittest.mock import Mock

import numpy as np
import pytest

from appca.analysis.explore.class_neighbours import ClassNeighbour
from appca.analysis.explore.umap import Embedding, EmbeddingConfig, EmbeddingStore
from appca.data.dataset import Dataset
from appca.data.sources.builtin import load
from appca.data.store import DatasetStore
from appca.runs.home import home
from appca.ui.explore import umap_classes
from appca.ui.session.state import KEYS
from tests.ui.conftest import healthy


def stored_map(app) -> np.ndarray:
    """Store a map for the settings on screen, as a job would."""
    config = EmbeddingConfig.from_dict(app.session_state[KEYS.umap])
    rows = np.random.default_rng(0).normal(size=(1797, 2)).astype(np.float32)
    EmbeddingStore(home()).save(config, Embedding(rows, {"seconds": 1.0, "n_rows": 1797}))
    return rows


def test_the_page_names_classes_on_demand_and_says_which_lie_nearest(start):
    app = start("explore/umap")
    stored_map(app)
    healthy(app.run())
    assert not app.toggle(key="umap_names").value
    app.toggle(key="umap_names").set_value(True).run()
    table = healthy(app).dataframe[-1].value
    assert list(table.columns[:2]) == ["Class", "Nearest other class"]
    assert sorted(table["Class"]) == [str(digit) for digit in range(10)]
    assert (table["Class"] != table["Nearest other class"]).all()
    assert any("not by the map" in text.value.replace("\\", "") for text in app.caption)
    app.number_input(key="umap_spread").set_value(2.0).run()
    assert app.button(key="umap_run")  # another map, not laid out yet
    assert healthy(app).session_state[KEYS.umap]["spread"] == 2.0


def test_a_finished_map_is_a_view_of_the_page_explore(start):
    app = start("explore/canvas")
    assert healthy(app).segmented_control(key="view-2").options == ["Subspaces", "PCA"]
    app = start("explore/umap")
    stored_map(app)
    app = start("explore/canvas")
    assert healthy(app).segmented_control(key="view-2").options == ["Subspaces", "PCA", "UMAP"]


@pytest.mark.parametrize("n_rows", [2, 3])
def test_fewer_rows_than_have_neighbours_are_said_to_be_too_few(start, n_rows):
    few = Dataset("few", np.random.default_rng(0).normal(size=(n_rows, 4)), list("abc")[:n_rows])
    app = start("explore/umap", data=DatasetStore(home()).put(few))
    offered = [box.key for box in healthy(app).number_input if box.key == "umap_n_neighbors"]
    told = [box.value for box in app.info if "UMAP" in box.value]
    assert (len(told), len(offered)) == ((1, 0) if n_rows == 2 else (0, 1))


def test_names_stand_at_rows_of_their_class_the_largest_first():
    digits = load("digits")
    names, codes = digits.class_column
    places = np.random.default_rng(1).normal(size=(1797, 2)).astype(np.float32)
    found = umap_classes.names_on_map(digits, places)
    counts = [int((codes == names.index(name.text)).sum()) for name in found]
    assert counts == sorted(counts, reverse=True)
    assert {name.text for name in found} == set(names)
    for name in found:
        own = places[codes == names.index(name.text)]
        away = np.hypot(*(own - np.median(own, axis=0)).T)
        np.testing.assert_array_equal([name.x, name.y], own[away.argmin()])


@pytest.mark.parametrize(("n_classes", "tables"), [(1, 0), (2, 1), (60, 1), (61, 0)])
def test_nearest_classes_are_sought_only_where_a_label_tells_classes(
    monkeypatch, n_classes, tables
):
    label = np.arange(300) % n_classes + 0.5
    data = Dataset("d", np.eye(300), list(map(str, range(300))), labels={"length": label})
    sought = []
    monkeypatch.setattr(umap_classes, "nearest_classes", lambda *given: sought.append(given) or [])
    monkeypatch.setattr(umap_classes, "st", Mock())
    umap_classes.nearest_table(data, Mock())
    assert len(sought) == tables


def test_long_names_are_cut_and_empty_classes_left_out():
    column = np.array(["x" * 99, "x" * 99, "b"])
    data = Dataset("d", np.eye(3), list("abc"), labels={"class": column})
    found = umap_classes.names_on_map(data, np.zeros((3, 2)))
    assert [len(name.text) for name in found] == [umap_classes.LONGEST, 1]


def test_the_sentence_names_pairs_and_a_sample():
    def one(name: str, other: str | None) -> ClassNeighbour:
        return ClassNeighbour(name, other, 0.5, 1.0, 10, 0.0)

    found = [one("a", "b"), one("b", "a"), one("c", "a")]
    text = umap_classes.sentence(found, 100)
    assert text.endswith("Each other’s nearest: a and b.")
    assert "drawn at random" not in text
    assert "100,000 of the 200,000 rows" in umap_classes.sentence(found, 200_000)
    assert "No subspace holds rows of two classes" in umap_classes.sentence([one("a", None)], 9)
