"""Sparse codes on the canvas: what is listed, drawn and refused."""

from collections import defaultdict
from itertools import combinations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from appca.canvas.codes import codes_of, rows_of_codes, scene_of_codes
from appca.words import InputError
from tests.sentences import faults_of


def planted(seed, n=400, K=300, L=3):
    """Codes in which components 7 and 8 go together, and an index that stands for none."""
    rng = np.random.default_rng(seed)
    indices = np.array([rng.choice(np.arange(9, K), L, replace=False) for _ in range(n)])
    indices[:, 2] = np.where(np.arange(n) % 2, 7, indices[:, 2])
    indices[:, 1] = np.where(np.arange(n) % 4 == 1, 8, indices[:, 1])
    indices[5, 0] = -1
    return indices, rng.normal(size=(n, L)).astype(np.float32)


def scene(codes, **parts):
    rows = rows_of_codes(codes, parts.get("X"), parts.get("labels"), parts.get("images"))
    return scene_of_codes(codes, rows, {}, parts.get("shape"))


def test_codes_come_back_dense_and_the_fullest_pairs_are_panels_with_all_their_rows(seed):
    indices, values = planted(seed)
    codes = codes_of((indices, values))
    K = codes.n_components
    dense = np.zeros((len(indices), K + 1), np.float32)  # the last for those that stand for none
    np.put_along_axis(dense, indices, values, axis=1)
    dense = dense[:, :K]
    np.testing.assert_array_equal(codes.dense(np.arange(len(dense))), dense)
    for matrix in (dense, csr_matrix(dense)):
        again = codes_of(matrix)
        np.testing.assert_array_equal(again.slots, codes.slots)
        np.testing.assert_array_equal(again.values, codes.values)
    made = scene(codes)
    pairs = made.meta["layouts"]["pairs"]
    assert (made.meta["first"], pairs["kind"]) == ("pairs", "grid")
    assert pairs["panels"][0]["components"] == [7, 8]
    assert made.meta["components"][7]["number"] == 7
    count = defaultdict(set)
    for row, one in enumerate(indices):
        for pair in combinations(sorted(one[one >= 0]), 2):
            count[pair].add(row)
    order = made.buffers["order.pairs"]
    for panel in pairs["panels"]:
        rows = order[panel["start"] : panel["start"] + panel["count"]]
        assert set(rows.tolist()) == count[tuple(panel["components"])]
    sizes = [panel["count"] for panel in pairs["panels"]]
    assert sizes == sorted((len(rows) for rows in count.values()), reverse=True)[: len(sizes)]


def test_a_component_is_shown_by_its_strongest_rows_features_or_images(seed):
    indices, values = planted(seed)
    codes = codes_of((indices, values))
    strongest = scene(codes).meta["components"][7]["columns"]
    rows = np.flatnonzero((indices == 7).any(axis=1))
    size = np.abs(np.where(indices == 7, values, 0).sum(axis=1)[rows])
    assert [name for name, _ in strongest] == [f"row {row}" for row in rows[np.argsort(-size)[:4]]]
    assert abs(strongest[0][1]) == 1
    rng = np.random.default_rng(seed)
    with_atoms = codes_of((indices, values), rng.normal(size=(300, 12)))
    made = scene(with_atoms, X=rng.normal(size=(400, 12)), images=(4, 3), shape=(4, 3))
    assert made.meta["component_pictures"]["tile"] == [4, 3, 3]
    images = rng.integers(255, size=(400, 4, 3)).astype(np.uint8)
    pictured = scene(codes, images=images, shape=(4, 3))
    assert pictured.component_sheet.startswith(b"\x89PNG")
    assert pictured.sheets is not None


def test_codes_that_do_not_fit_are_refused():
    pair, ones = np.array([[1, 2]]), np.ones((1, 2))
    for codes, components, words in (
        ((np.zeros((3, 2), int), np.zeros((3, 3))), None, "two arrays"),
        ((np.zeros((3, 2)), np.ones((3, 2))), None, "two arrays"),
        ((np.array([[1, 1]]), ones), None, "row 0 has one twice"),
        ((pair, np.array([[1, np.nan]])), None, "finite"),
        ((np.array([[1, 9]]), ones), np.ones((4, 2)), "counted from 0 to at most 3"),
        (np.ones((2, 200)), None, "up to 200 components"),
        ((np.zeros((0, 2), int), np.zeros((0, 2))), None, "0 rows"),
    ):
        with pytest.raises(InputError, match=words) as refused:
            codes_of(codes, components)
        assert not faults_of(str(refused.value))


def test_a_notebook_shows_codes_and_answers_about_all_components(seed):
    pytest.importorskip("anywidget", reason="the extra notebook brings it")
    import appca

    indices, values = planted(seed)
    widget = appca.explore(codes=(indices, values), labels=np.arange(400) % 3)
    assert len(widget._scene["meta"]["components"]) == 300
    sent = []
    widget.send = lambda content, buffers: sent.append(buffers[0])
    widget._answer(None, {"question": 1}, [np.array([5], "<u4").tobytes()])
    scores = np.frombuffer(sent[0], "<f4")
    assert set(np.flatnonzero(scores)) == set(indices[5][indices[5] >= 0])
    with pytest.raises(InputError, match="400 rows and 7 rows"):
        appca.explore(codes=(indices, values), X=np.ones((7, 2)))
    with pytest.raises(InputError, match="a fitted model or codes"):
        appca.explore()
