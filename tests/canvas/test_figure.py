"""Figures that stand alone: every row where its scores say, in its own colour, images apart."""

import warnings

import numpy as np
import pytest
from matplotlib.colors import to_hex
from sklearn.datasets import load_digits, load_wine

import appca
from appca.canvas import figure as figures
from appca.canvas.scene import Map, scene_shown
from appca.data.sources import load
from appca.plots import still
from appca.plots.style import CATEGORICAL
from tests.fitted_runs import fitted_run

ROWS = 400


def scene_of(n_active: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    dataset = load("digits").take(np.arange(ROWS))
    keys = rng.gumbel(size=(ROWS, 5)) + np.linspace(1, 0, 5)
    active = np.zeros((ROWS, 5), bool)
    np.put_along_axis(active, np.argsort(-keys, axis=1)[:, :n_active], True, axis=1)
    fitted = fitted_run(
        active,
        scores=rng.normal(size=(ROWS, 5)).astype(np.float32) * active,
        components=np.eye(5, 64),
        n_active=n_active,
    )
    maps = {"umap": Map("UMAP", rng.normal(size=(ROWS, 2)))}
    return dataset, fitted, scene_shown(dataset, fitted, maps)


def points(axes) -> np.ndarray:
    return np.asarray(axes.collections[0].get_offsets())


@pytest.mark.parametrize(("n_active", "layout"), [(2, "subspaces"), (3, "pairs")])
def test_every_row_stands_where_its_scores_say_in_its_own_colour(n_active, layout):
    dataset, fitted, scene = scene_of(n_active)
    figure = figures.draw(scene, layout, "label:digit")
    panels = scene.meta["layouts"][layout]["panels"]
    for axes, panel in zip(figure.axes, panels, strict=False):
        rows = np.flatnonzero(fitted.active[:, panel["components"]].all(axis=1))
        assert len(points(axes)) == len(rows) == panel["count"]
        expected = fitted.scores[np.ix_(rows, panel["axes"])]
        apart = np.abs(points(axes)[None] - expected[:, None]).max(axis=2)
        order = apart.argmin(axis=1)
        assert sorted(order) == list(range(len(rows)))
        assert apart.min(axis=1).max() < 1e-3
        colours = axes.collections[0].get_edgecolor()[order]
        digits = dataset.labels["digit"].astype(int)[rows]
        assert [to_hex(one) for one in colours] == [CATEGORICAL[digit] for digit in digits]


def test_named_components_name_their_panels_beside_the_numbers():
    dataset, fitted, _ = scene_of(2)
    named = fitted.arranged(range(5), [1] * 5, ("Fullness", "", "Shoe", "", ""))
    figure = figures.draw(scene_shown(dataset, named), "subspaces", "label:digit")
    titles = {axes.get_title(loc="left") for axes in figure.axes}
    assert {"Fullness × Shoe {1,3}", "Fullness × 2 {1,2}", "{2,4}"} <= titles
    long = fitted.arranged(range(5), [1] * 5, ("a name of forty letters, which is too long",) * 5)
    figure = figures.draw(scene_shown(dataset, long), "subspaces", "label:digit")
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert any(title.startswith("a name") and title.endswith("… {1,3}") for title in titles)
    assert max(map(len, titles)) < 40


def test_panels_are_apart_and_the_fullest_where_there_are_many_and_so_are_images(monkeypatch):
    _, _, scene = scene_of(2)
    monkeypatch.setattr(figures, "MOST_PANELS", 7)
    drawn = figures.draw(scene, "subspaces", "residual", dark=True).axes[:-1]
    counts = sorted(panel["count"] for panel in scene.meta["layouts"]["subspaces"]["panels"])
    assert sorted(len(points(axes)) for axes in drawn) == counts[-7:]
    places = [axes.get_position().bounds for axes in drawn]
    for i, (x, y, w, h) in enumerate(places):
        assert all(abs(u - x) >= w or abs(v - y) >= h for u, v, *_ in places[:i])
    (axes, *_) = figures.draw(scene, "umap", "label:digit").axes
    at = np.array([box.xy for box in axes.artists])
    assert len(at) > 10
    near = np.abs(at[:, None] - points(axes)[None]).max(axis=2).min(axis=1)
    assert near.max() < 1e-3
    side = figures.TILE * 1.6 / figures.MAP_SIDE * np.ptp(axes.get_xlim())
    gaps = np.abs(at[:, None] - at[None]).max(axis=2) + 99 * np.eye(len(at))
    assert gaps.min() > side


def test_a_file_has_its_format_and_is_the_same_again():
    figure = figures.draw(scene_of(1)[2], "subspaces", "label:digit")
    for kind, start in (("png", b"\x89PNG"), ("svg", b"<?xml")):
        first, again = (still.file_of(figure, kind) for _ in range(2))
        assert first.startswith(start)
        assert first == again


def test_figures_hold_all_rows_and_show_in_a_notebook():
    X, y = (part[:300] for part in load_digits(return_X_y=True))
    model = appca.AdaptivePPCA(n_components=4, n_active=2, random_state=0).fit(X)
    subspaces = appca.plot_subspaces(model, X, y, (8, 8), dark=True)
    assert sum(len(points(axes)) for axes in subspaces.axes if axes.collections) == len(X)
    assert subspaces._repr_png_().startswith(b"\x89PNG")
    (axes, *_) = appca.plot_map(model, X, coordinates=X[:, 3:5]).axes
    np.testing.assert_allclose(points(axes), X[:, 3:5], atol=1e-3)
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
