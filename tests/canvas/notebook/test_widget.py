"""Tests of the widget in Python: arguments, errors and messages."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine

import appca
from appca.runs.numbering import directions, likeness

pytest.importorskip("anywidget", reason="the extra notebook brings it")
X, y = load_wine(return_X_y=True)
X = X / X.std(axis=0)


def fitted(k: int) -> appca.AdaptivePPCA:
    return appca.AdaptivePPCA(n_components=k, n_active=2, random_state=0).fit(X)


@pytest.fixture(scope="module")
def model() -> appca.AdaptivePPCA:
    return fitted(4)


def test_a_selection_is_rows_or_a_mask_and_is_told_once(model):
    widget, told = appca.explore(model, X, labels=y), []
    widget.observe(lambda change: told.append(change.new.tolist()), "selection")
    widget.selection = [7, 3, 3]
    widget.selection = np.arange(len(X)) < 2
    widget.set_state({"selection": bytes([0b100]) + bytes(-(-len(X) // 8) - 1)})  # the browser
    assert told == [[3, 7], [0, 1], [2]]
    assert widget.get_state("selection")["selection"][0] == 0b100
    with pytest.raises(ValueError, match="row numbers from 0 to 177"):
        widget.selection = [178]
    assert widget.selection.tolist() == [2]


def test_components_that_are_alike_keep_their_numbers(model):
    widget = appca.explore(model, X, labels=pd.Series(y, name="kind"))
    assert next(iter(widget._scene["meta"]["colourings"])) == "label:kind"
    before = widget.run
    widget.model = fitted(5)
    pairs = likeness(directions(before), directions(widget.run))
    assert pairs
    assert all(pair == (k, 1) for k, pair in pairs.items())
    widget.model = model
    assert len(widget._scene["buffers"]["components"]) == 2 * len(X)
    known = widget.run
    with pytest.raises(ValueError, match="fitted estimator of appca"):
        widget.model = "another"
    assert widget.run is known


def test_images_may_be_other_than_the_rows(model):
    pictures = np.random.default_rng(0).integers(0, 255, (len(X), 5, 4, 3), dtype=np.uint8)
    widget = appca.explore(model, X, images=pictures, maps={"Two": X[:, :2]})
    meta = widget._scene["meta"]
    assert meta["sheets"]["tile"] == [5, 4, 3]
    assert meta["component_pictures"] is None
    assert meta["layouts"]["Two"]["kind"] == "map"
    assert widget._sheets[0].startswith(b"\x89PNG")
    for wrong in ({"images": pictures[1:]}, {"maps": {"Two": X}}, {"labels": y[1:]}):
        with pytest.raises(ValueError, match="got"):
            appca.explore(model, X, **wrong)


def test_the_browser_gets_scores_on_all_components_for_ghosts(model):
    widget, sent = appca.explore(model, X), []
    widget.send = lambda content, buffers: sent.append((content, buffers))
    widget._answer(None, {"question": 5}, [np.array([4, 9], "<u4").tobytes()])
    ((content, (scores,)),) = sent
    assert content == {"answer": 5}
    direct = (X[[4, 9]] - model.mean_) @ model.components_[:4].T
    np.testing.assert_allclose(np.frombuffer(scores, "<f4").reshape(2, 4), direct, rtol=1e-4)
