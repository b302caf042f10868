"""A scene read as the browser reads it says what the run says."""

import io
import json
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
from PIL import Image

from appca.canvas import layouts, panels
from appca.canvas.image_placement import spread_order
from appca.canvas.scene import Map, scene_shown
from appca.canvas.sheets import sheets_of
from appca.data.dataset import Dataset
from appca.plots.components import COURSE, course_image
from appca.plots.style import Colour
from tests.canvas.scene.reading import panels_of_row, rows_by_panel, supports
from tests.fitted_runs import fitted_run

N = 300


def run_of(sizes, K=6, seed=0, **given):
    """Rows that use as many components as `sizes` says, in turn."""
    rng = np.random.default_rng(seed)
    active = np.zeros((N, K), bool)
    for n in range(N):
        active[n, rng.permutation(K)[: sizes[n % len(sizes)]]] = True
    scores = np.where(active, rng.normal(0, 3, (N, K)), 0).astype(np.float32)
    n_active = sizes[0] if len(set(sizes)) == 1 else None
    return fitted_run(active, scores=scores, n_active=n_active, **given)


def scene_of(fitted, dataset, maps=None, **more):
    return scene_shown(dataset, fitted, maps, **more)


def table(n=N, d=6, image_shape=None):
    X = np.random.default_rng(1).normal(size=(n, d)).astype(np.float32)
    return Dataset("table", X, np.arange(n).astype(str), image_shape=image_shape)


@pytest.mark.parametrize(
    ("sizes", "kinds"),
    [
        ([1], {"subspaces": "strips"}),
        ([0, 1], {"subspaces": "strips"}),
        ([2], {"subspaces": "triangle"}),
        ([0, 1, 2], {"subspaces": "triangle"}),
        ([3], {"subspaces": "grid", "pairs": "triangle"}),
        ([0, 1, 2, 5], {"subspaces": "grid", "pairs": "triangle"}),
    ],
)
@pytest.mark.parametrize("image_shape", [(2, 3), None], ids=["images", "numbers"])
def test_every_row_stands_in_the_panels_of_its_components(sizes, kinds, image_shape, monkeypatch):
    monkeypatch.setattr(layouts, "LISTED", 100)  # so that pairs list some of the rows only
    fitted = run_of(sizes)
    scene = scene_of(
        fitted, table(image_shape=image_shape), maps={"pca": Map("PCA", fitted.scores[:, :2])}
    )
    assert {n: one["kind"] for n, one in scene.meta["layouts"].items()} == kinds | {"pca": "map"}
    used = supports(scene)
    assert used == [tuple(np.flatnonzero(one)) for one in fitted.active]
    for name, layout in scene.meta["layouts"].items():
        expected = {}
        for row, support in enumerate(used):
            for key in panels_of_row(layout["kind"], support):
                expected.setdefault(key, []).append(row)
        found = rows_by_panel(scene, name)
        assert {key: sorted(rows) for key, rows in found.items()} == expected
        assert [panel["count"] for panel in layout["panels"]] == [len(r) for r in found.values()]
        assert len({tuple(panel["cell"]) for panel in layout["panels"]}) == len(layout["panels"])
        assert all(panel["levels"] for panel in layout["panels"]) == (image_shape is not None)
    json.dumps(scene.meta, allow_nan=False)


def test_scores_come_back_and_an_outlier_does_not_coarsen_them():
    fitted = run_of([2])
    scores = fitted.scores.copy()
    scores[0, np.flatnonzero(fitted.active[0])[0]] = 1e6
    scene = scene_of(_with(fitted, scores), table())
    unit = scene.meta["score_unit"]
    assert unit < 0.01
    slots, values = scene.buffers["components"], scene.buffers["scores"] * unit
    own = np.take_along_axis(scores, slots.astype(int), axis=1)
    assert np.abs(values - own)[1:].max() <= unit / 2 * 1.001
    panels = scene.meta["layouts"]["subspaces"]["panels"]
    widest = max(high - low for panel in panels for low, high in panel["range"])
    assert widest < 100


def _with(fitted, scores):
    return fitted_run(fitted.active, scores=scores, n_active=fitted.n_active)


def test_components_are_numbered_as_they_come():
    fitted = run_of([2], K=3).arranged((1, 2, 0), (1, 1, 1), ("", "", "slant"))
    scene = scene_of(fitted, table())
    shown = scene.meta["components"]
    assert [(one["number"], one["name"]) for one in shown] == [(1, ""), (2, ""), (3, "slant")]
    in_order = run_of([2], K=3).active[:, [1, 2, 0]]
    assert supports(scene) == [tuple(np.flatnonzero(one)) for one in in_order]


def test_panels_of_a_column_share_x_and_those_of_a_row_y():
    scene = scene_of(run_of([3]), table())
    ranges = {}  # of each component
    for panel in scene.meta["layouts"]["pairs"]["panels"]:
        a, b = panel["components"]
        assert panel["cell"] == [b, a]
        assert panel["axes"] == [b, a]
        for component, own in zip((b, a), panel["range"], strict=True):
            assert ranges.setdefault(component, own) == own
    assert len(ranges) == 6


def test_many_small_subspaces_are_gathered(monkeypatch):
    monkeypatch.setattr(panels, "MOST_PANELS", 5)
    fitted = run_of([3])
    layout = scene_of(fitted, table()).meta["layouts"]["subspaces"]
    assert len(layout["panels"]) == 5
    other = layout["other"]
    assert other["subspaces"] == len(np.unique(fitted.active, axis=0)) - 5
    assert other["count"] + sum(panel["count"] for panel in layout["panels"]) == N
    order = scene_of(fitted, table()).buffers["order.subspaces"]
    assert sorted(order) == list(range(N))
    gathered = [tuple(np.flatnonzero(fitted.active[row])) for row in order[other["start"] :]]
    runs = [key for n, key in enumerate(gathered) if n == 0 or gathered[n - 1] != key]
    assert len(runs) == len(set(runs)) == other["subspaces"]


def test_more_points_than_can_be_drawn_are_a_sample_of_the_rows(monkeypatch):
    monkeypatch.setattr(panels, "MOST_POINTS", 400)
    fitted = run_of([3])
    scene = scene_of(fitted, table())
    pairs = scene.meta["layouts"]["pairs"]
    drawn = pairs["drawn"]
    assert drawn == {"rows": 133, "points": 399, "of": 3 * N}
    found = rows_by_panel(scene, "pairs")
    assert {len(rows) for rows in found.values()} == {p["count"] for p in pairs["panels"]}
    assert sum(panel["total"] for panel in pairs["panels"]) == 3 * N
    assert "drawn" not in scene.meta["layouts"]["subspaces"]


def test_pairs_open_first_only_where_subspaces_are_many(monkeypatch):
    assert scene_of(run_of([3]), table()).meta["first"] == "subspaces"
    monkeypatch.setattr(layouts, "PANELS_AT_FIRST", 10)
    assert scene_of(run_of([3]), table()).meta["first"] == "pairs"
    assert scene_of(run_of([2]), table()).meta["first"] == "subspaces"


def test_map_positions_come_back():
    fitted = run_of([2])
    xy = np.random.default_rng(4).normal(size=(N, 2)) * [10, 1]
    scene = scene_of(fitted, table(), maps={"umap": Map("UMAP", xy)})
    layout = scene.meta["layouts"]["umap"]
    (x0, x1), (y0, y1) = layout["limits"]
    assert x1 - x0 == pytest.approx(y1 - y0)
    found = scene.buffers["map.umap"] / 65535 * [x1 - x0, y1 - y0] + [x0, y0]
    assert np.abs(found - xy).max() < (x1 - x0) / 65535


def test_colours_doubt_and_flags_are_one_byte_a_row():
    fitted = run_of([2], membership=np.linspace(0, 1, N, dtype=np.float32))
    colour = Colour("category", "digit", np.arange(N) % 3 - 1, ("a", "b"))
    outside = np.arange(N) == 5
    scene = scene_of(fitted, table(), colourings={"label:digit": colour}, outside=outside)
    assert scene.buffers["codes.label:digit"][:4].tolist() == [2, 0, 1, 2]  # missing, a, b
    assert scene.meta["colourings"]["label:digit"]["names"] == ["a", "b"]
    assert scene.buffers["doubt"][[0, -1]].tolist() == [0, 255]
    assert np.flatnonzero(scene.buffers["outside"]).tolist() == [5]
    assert "outside" not in scene_of(fitted, table(), outside=outside * 0).buffers
    for name, (kind, size) in scene.meta["buffers"].items():
        assert scene.buffers[name].dtype.str[1:] == kind
        assert scene.buffers[name].size == size


@pytest.mark.parametrize("shape", [(8, 8), (28, 28), (5, 7, 3), (128, 128)])
def test_a_tile_is_the_image_of_its_row(shape):
    rng = np.random.default_rng(5)
    X = rng.integers(0, 256, (N, int(np.prod(shape)))).astype(np.uint8)
    dataset = Dataset("images", X, np.arange(N).astype(str), image_shape=shape)
    sheets = sheets_of(dataset, spread_order(N))
    height, width, channels = sheets.tile
    assert (height, width) == shape[:2]
    assert sheets.cell & (sheets.cell - 1) == 0
    drawn = [np.asarray(Image.open(io.BytesIO(sheets.png(s)))) for s in range(sheets.n_sheets)]
    assert all(max(one.shape) <= 2048 for one in drawn)
    for tile in (0, 17, N - 1):
        sheet, place = divmod(tile, sheets.per_sheet)
        line, column = divmod(place, sheets.columns)
        top = line * sheets.cell + (sheets.cell - height) // 2
        left = column * sheets.cell + (sheets.cell - width) // 2
        found = drawn[sheet][top : top + height, left : left + width]
        assert np.array_equal(found, dataset.images([sheets.rows[tile]])[0])
        assert found.ndim == (3 if channels == 3 else 2)


def test_component_pictures_are_drawn_light_and_dark():
    X = np.random.default_rng(6).random((N, 64)).astype(np.float32)
    dataset = Dataset("images", X, np.arange(N).astype(str), image_shape=(8, 8))
    W = np.linalg.qr(np.random.default_rng(7).normal(size=(64, 6)))[0].T
    scene = scene_of(run_of([2], components=W, **_features(64)), dataset)
    header = scene.meta["component_pictures"]
    assert header["per_sheet"] == 12
    sheet = Image.open(io.BytesIO(scene.component_sheet))
    assert sheet.mode == "RGB"
    assert sheet.width == header["columns"] * header["cell"]
    assert scene_of(run_of([2]), table()).component_sheet is None


def test_components_of_a_recording_are_courses_over_time():
    times = np.linspace(0, 6, 48)
    names = tuple(f"{2.5 * i:g} s" for i in range(48))
    X = np.random.default_rng(6).random((N, 48))
    facts = {"repetition": 2.5}
    dataset = Dataset("t", X, np.arange(N).astype(str), {}, None, names, facts)
    W = np.linalg.qr(np.stack([np.sin(times + k) + k * times for k in range(6)]).T)[0].T
    scene = scene_of(run_of([2], components=W, **_features(48)), dataset)
    header = scene.meta["component_pictures"]
    assert (header["tile"], header["per_sheet"]) == ([*COURSE, 3], 12)
    assert not any(one["columns"] for one in scene.meta["components"])
    drawn = course_image(W[0])
    darkest = drawn.sum(axis=2).argmin(axis=0)  # the line's height in each column of pixels
    course = np.interp(np.linspace(0, 47, COURSE[1]), range(48), W[0])
    assert np.corrcoef(darkest, course)[0, 1] < -0.99


def _features(d):
    from appca.data.preprocessing import Fitted

    return {"mean": np.zeros(d), "preprocessing": Fitted(1.0, np.zeros(d), np.ones(d), None)}


@pytest.mark.parametrize(("n", "K"), [(2, 0), (1, 1), (2, 1), (5, 300)])
def test_very_few_rows_and_no_or_many_components_have_a_scene(n, K):
    active = np.zeros((n, K), bool)
    active[:, K // 2 : K // 2 + 2] = True
    dataset = Dataset("few", np.zeros((n, 3)), np.arange(n).astype(str), least_rows=1)
    fitted = fitted_run(active, components=np.zeros((K, 3)), **_features(3))
    same = Map("PCA", np.ones((n, 2)))
    scene = scene_of(fitted, dataset, maps={"pca": same})
    json.dumps(scene.meta, allow_nan=False)
    assert supports(scene) == [tuple(np.flatnonzero(one)) for one in active]
    assert sorted(chain(*rows_by_panel(scene, "subspaces").values())) == list(range(n))
    assert scene.buffers["components"].dtype == (np.uint16 if K > 255 else np.uint8)


def test_nearest_rows_and_the_spread_of_scores_go_to_the_browser():
    near = np.arange(2 * N).reshape(N, 2)[::-1] % N
    fitted = replace(run_of([2]), components=np.eye(6), noise_variance=4.0)
    fitted = replace(fitted, latent_variance=np.full(6, 12.0))
    scene = scene_of(fitted, table(), maps={"umap": Map("UMAP", np.zeros((N, 2)), near)})
    assert scene.buffers["near"].dtype == np.uint32
    np.testing.assert_array_equal(scene.buffers["near"].reshape(N, 2), near)
    sums = np.linalg.inv(np.eye(6) / 12 + np.eye(6) / 4)  # of a Gaussian with prior and noise
    spreads = [entry["spread"] for entry in scene.meta["components"]]
    np.testing.assert_allclose(spreads, np.sqrt(np.diag(sums)))
    free = replace(fitted, components=np.ones((6, 6)))
    assert "spread" not in scene_of(free, table()).meta["components"][0]
