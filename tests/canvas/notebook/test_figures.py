"""Figures of a notebook: what they take and refuse."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine

import appca

X, y = (part[:300] for part in load_digits(return_X_y=True))


@pytest.fixture(scope="module")
def model() -> appca.AdaptivePPCA:
    return appca.AdaptivePPCA(n_components=4, n_active=2, random_state=0).fit(X)


def test_figures_hold_all_rows_and_show_in_a_notebook(model):
    subspaces = appca.plot_subspaces(model, X, y, (8, 8), dark=True)
    shown = sum(
        len(axes.collections[0].get_offsets()) for axes in subspaces.axes if axes.collections
    )
    assert shown == len(X)
    assert subspaces._repr_png_().startswith(b"\x89PNG")
    (axes, *_) = appca.plot_map(model, X, coordinates=X[:, 3:5]).axes
    np.testing.assert_allclose(axes.collections[0].get_offsets(), X[:, 3:5], atol=1e-3)
    assert len(appca.plot_components(model, (8, 8)).axes) == 4
    assert len(appca.plot_components(model).axes) == 6  # two of them are empty
    with pytest.raises(ValueError, match="by is one of 'subspaces'; got 'triples'"):
        appca.plot_subspaces(model, X, by="triples")
    with pytest.raises(ValueError, match="fitted estimator; got AdaptivePPCA"):
        appca.plot_components(appca.AdaptivePPCA(4))


def test_figures_take_missing_values_and_name_columns():
    frame = load_wine(as_frame=True).data
    frame = (frame - frame.mean()) / frame.std()
    seen = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.05)
    model = appca.AdaptivePPCA(n_components=3, n_active=2, random_state=0).fit(seen)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        appca.plot_subspaces(model, seen)
        figure = appca.plot_components(model, names=frame.columns)
        appca.plot_subspaces(appca.AdaptivePPCA(3, 2).fit(frame.to_numpy()), frame)
    written = {text.get_text() for axes in figure.axes for text in axes.get_yticklabels()}
    for weights in model.components_:
        assert {frame.columns[j] for j in np.argsort(-abs(weights))[:4]} <= written
