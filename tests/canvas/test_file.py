"""Tests of pictures of models and codes as figures, and as files that work offline."""

import base64
import json
import re
import warnings
import zlib
from collections import defaultdict
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from scipy.sparse import csr_matrix
from sklearn.datasets import load_digits, load_wine

import appca
from appca.canvas import figure as figures
from appca.canvas.codes import codes_of, rows_of_codes, scene_of_codes
from appca.canvas.from_model import rows_of, run_of, scene_of_rows
from appca.canvas.scene import Map, scene_shown
from appca.cli import main
from appca.data.sources import load
from appca.plots import still
from appca.plots.style import CATEGORICAL, Colour
from appca.runs.numbering import numbered_after
from appca.words import InputError
from tests.fitted_runs import fitted_run
from tests.sentences import faults_of


def content_of(page: str) -> dict:
    """Return what the page's script reads."""
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


def data_of(page: str) -> dict:
    """Return what the script reads of a page of one fit."""
    content = content_of(page)
    (stored,) = content["fits"]
    return content | fit_of(content, stored)


def fit_of(content: dict, stored: dict) -> dict:
    """Return header and buffers of a fit, which are places among the packed texts."""
    meta = json.loads(values_of(content["packed"][stored["meta"]], "u1").tobytes())
    buffers = {name: content["packed"][place] for name, place in stored["buffers"].items()}
    return {"meta": meta, "buffers": buffers, "size": stored["size"]}


def values_of(text: str, dtype: str | np.dtype) -> np.ndarray:
    """Undo how a buffer is packed: bytes of one rank together, deflated, after their number."""
    content = base64.b64decode(text)
    ranks = np.frombuffer(zlib.decompress(content[1:]), np.uint8).reshape(content[0], -1)
    return np.ascontiguousarray(ranks.T).view(dtype).ravel()


@pytest.fixture(scope="module")
def model():
    wine = load("wine")
    X = (wine.X - wine.X.mean(axis=0)) / wine.X.std(axis=0)
    return appca.AdaptivePPCA(3, 1, init="pca", random_state=0).fit(X), X, wine.labels["cultivar"]


def check(saved, scene):
    """Compare a stored fit with the scene that it was made of."""
    assert saved["meta"]["rows"] == scene.meta["rows"]
    assert set(saved["buffers"]) == set(scene.buffers)
    for name, buffer in scene.buffers.items():
        values = values_of(saved["buffers"][name], buffer.dtype.newbyteorder("<"))
        np.testing.assert_array_equal(values, buffer.ravel(), err_msg=name)


def test_a_page_holds_the_scene_and_asks_for_nothing(model, tmp_path):
    estimator, X, y = model
    appca.save_html(tmp_path / "wine.html", estimator, X, labels=y, title="Wine & <more>")
    page = (tmp_path / "wine.html").read_text("utf-8")
    assert "<h1>Wine &amp; &lt;more&gt;</h1>" in page
    assert not re.search(r'(src|href)="|url\(|\bfetch\(|import\(', page.split('id="data">')[0])
    rows = rows_of(X, y)
    scene = scene_of_rows(rows, numbered_after(run_of(estimator, rows.dataset), None), {})
    data = data_of(page)
    assert data["colouring"] == next(iter(scene.meta["colourings"]))
    check(data, scene)


def test_maps_and_images_are_in_the_page_and_bad_ones_leave_no_file(tmp_path):
    digits = load("digits").take(np.arange(200))
    estimator, X = appca.PPCA(2).fit(digits.X.astype(float)), digits.X
    path, xy = tmp_path / "digits.html", np.random.default_rng(0).normal(size=(200, 2))
    for wrong, of, words in (
        ({"maps": {"Map": np.zeros((3, 2))}}, estimator, "needs two coordinates"),
        ({"n_active": [3]}, appca.AdaptivePPCA(2, 1), "with no L <= K"),
        ({"n_active": [1]}, appca.PPCA(2), "PPCA has no n_active"),
    ):
        with pytest.raises(InputError, match=words):
            appca.save_html(path, of, X, **wrong)
    assert not path.exists()
    appca.save_html(path, estimator, X, images=(8, 8), maps={"My map": xy})
    data = data_of(path.read_text("utf-8"))
    assert "My map" in data["meta"]["layouts"]
    shown = appca.explore(estimator, X, images=(8, 8), maps={"My map": xy})._scene
    assert data["meta"] == json.loads(json.dumps(shown["meta"])), "the widget shows the same"
    for name, buffer in shown["buffers"].items():
        assert values_of(data["buffers"][name], "u1").tobytes() == buffer
    assert len(data["sheets"]) == 1
    with pytest.raises(InputError, match="could not be stored"):
        appca.save_html(tmp_path / "none" / "x.html", estimator, X)


def test_a_fit_writes_the_page_of_its_rows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "wine", "-K", "3", "-L", "1", "--html", "a.html", "--out", "m.npz"]) == 0
    assert "wrote a.html" in capsys.readouterr().out
    wine = load("wine")
    table = pd.DataFrame(wine.X, columns=list(wine.feature_names))
    appca.save_html("b.html", appca.load_model("m.npz"), table, labels=wine.labels)
    first, second = (data_of((tmp_path / name).read_text()) for name in ("a.html", "b.html"))
    assert second["buffers"].items() <= first["buffers"].items()  # the first also names the rows
    assert len(second["buffers"]) > 5
    assert first["meta"]["layouts"].keys() == second["meta"]["layouts"].keys()


def test_a_page_of_several_fits_holds_each_k_and_l_and_shares_what_does_not_change(model, tmp_path):
    _, X, y = model
    path, estimator = tmp_path / "several.html", appca.AdaptivePPCA(init="pca", random_state=0)
    appca.save_html(path, estimator, X, y, n_components=(2, 3), n_active=(1, 3), note="a <b>")
    page = path.read_text("utf-8")
    assert "<footer>a &lt;b&gt;</footer>" in page
    content = content_of(page)
    assert [stored["size"] for stored in content["fits"]] == [[2, 1], [3, 1], [3, 3]]
    rows, before = rows_of(X, y), None
    for stored in content["fits"]:
        fitted = appca.AdaptivePPCA(*stored["size"], init="pca", random_state=0).fit(X)
        before = numbered_after(run_of(fitted, rows.dataset), before)
        scene, saved = scene_of_rows(rows, before, {}), fit_of(content, stored)
        assert saved["meta"] == json.loads(json.dumps(scene.meta))
        check(saved, scene)
    places = [stored["buffers"]["map.pca"] for stored in content["fits"]]
    assert len(set(places)) == 1, "the map is stored once"


ROWS = 400


def scene_of(n_active: int, seed: int = 0):
    rng, dataset = np.random.default_rng(seed), load("digits").take(np.arange(ROWS))
    keys, active = rng.gumbel(size=(ROWS, 5)) + np.linspace(1, 0, 5), np.zeros((ROWS, 5), bool)
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
    assert "{1,3}" in {axes.get_title(loc="left") for axes in figure.axes}
    assert all(re.fullmatch(r"\d a name.{1,31}", axes.get_xlabel()) for axes in figure.axes)


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
    assert np.abs(at[:, None] - points(axes)[None]).max(axis=2).min(axis=1).max() < 1e-3
    side = figures.TILE * 1.6 / figures.MAP_SIDE * np.ptp(axes.get_xlim())
    gaps = np.abs(at[:, None] - at[None]).max(axis=2) + 99 * np.eye(len(at))
    assert gaps.min() > side


def test_a_file_has_its_format_and_is_the_same_again():
    figure = figures.draw(scene_of(1)[2], "subspaces", "label:digit")
    for kind, start in (("png", b"\x89PNG"), ("svg", b"<?xml")):
        first, again = (still.file_of(figure, kind) for _ in range(2))
        assert first.startswith(start)
        assert first == again


def test_classes_that_share_a_colour_have_different_shapes_and_the_legend_fits():
    dataset, fitted, _ = scene_of(1)
    names = tuple(f"{c} japanese_flowering_cherry of the north" for c in range(32))
    many = {"many": Colour("category", "", np.arange(ROWS) % 32, names)}
    figure = figures.draw(scene_shown(dataset, fitted, colourings=many), "subspaces", "many")
    every = [axes.collections[0] for axes in figure.axes]
    looks = [zip(part.get_paths(), part.get_edgecolor(), strict=True) for part in every]
    assert len({(p.vertices.tobytes(), *hue) for part in looks for p, hue in part}) == 32
    (legend,) = figure.legends
    assert legend.get_window_extent().x1 < figure.bbox.width
    assert ["…" in text.get_text() for text in legend.get_texts()] == [True] * 32


def test_figures_hold_all_rows_and_show_in_a_notebook():
    X, y = (part[:300] for part in load_digits(return_X_y=True))
    model = appca.AdaptivePPCA(n_components=4, n_active=2, init="pca", random_state=0).fit(X)
    subspaces = appca.plot_subspaces(model, X, y, (8, 8), dark=True)
    assert sum(len(points(axes)) for axes in subspaces.axes if axes.collections) == len(X)
    assert subspaces._repr_png_().startswith(b"\x89PNG")
    (axes, *_) = appca.plot_map(model, X, coordinates=X[:, 3:5]).axes
    np.testing.assert_allclose(points(axes), X[:, 3:5], atol=1e-3)
    assert len(appca.plot_components(model, (8, 8)).axes) == 4
    assert len(appca.plot_components(model).axes) == 6  # two of them are empty
    with pytest.raises(ValueError, match="by is one of 'subspaces'; got 'triples'"):
        appca.plot_subspaces(model, X, by="triples")
    with pytest.raises(ValueError, match="has components to plot; got AdaptivePPCA"):
        appca.plot_components(appca.AdaptivePPCA(4))


def test_figures_take_missing_values_and_name_columns():
    frame = load_wine(as_frame=True).data
    frame = (frame - frame.mean()) / frame.std()
    seen = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.05)
    model = appca.AdaptivePPCA(n_components=3, n_active=2, init="pca", random_state=0).fit(seen)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        panels = appca.plot_subspaces(model, seen).axes
        figure = appca.plot_components(model, names=frame.columns)
        whole = appca.AdaptivePPCA(3, 2, init="pca").fit(frame.to_numpy())
        label = appca.plot_map(whole, frame).axes[0].get_ylabel().replace("−", "")
    values, vectors = np.linalg.eigh(np.corrcoef(frame.T))
    heaviest = frame.columns[abs(vectors[:, -2]).argmax()]
    assert label.startswith(f"PC 2 ({values[-2] / len(values):.1%}): {heaviest}")
    written = {text.get_text() for axes in figure.axes for text in axes.get_yticklabels()}
    for weights in model.components_:
        assert {frame.columns[j] for j in np.argsort(-abs(weights))[:4]} <= written
    names = {re.match("[123]: −?([^ ,]+)", of.get_xlabel())[1] for of in panels}
    assert names <= set(frame.columns[abs(model.components_).argmax(axis=1)])


def planted(seed, n=400, K=300, L=3):
    """Codes in which 7 and 8 go together, 0 is there, and an index stands for none."""
    rng = np.random.default_rng(seed)
    indices = np.array([rng.choice(np.arange(9, K), L, replace=False) for _ in range(n)])
    indices[:, 2] = np.where(np.arange(n) % 2, 7, indices[:, 2])
    indices[:, 1] = np.where(np.arange(n) % 4 == 1, 8, indices[:, 1])
    indices[5:7, 0] = -1, 0
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
    assert set(np.flatnonzero(np.frombuffer(sent[0], "<f4"))) == set(indices[5][indices[5] >= 0])
    with pytest.raises(InputError, match="400 rows and 7 rows"):
        appca.explore(codes=(indices, values), X=np.ones((7, 2)))
    with pytest.raises(InputError, match="a fitted model or codes"):
        appca.explore()
