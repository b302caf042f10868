"""A scene read as the browser reads it says what the run says; how it is sent."""

import io
import itertools
import json
from dataclasses import replace
from itertools import chain
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from appca.analysis.fitted import FittedRun
from appca.canvas import blobs as module
from appca.canvas import layouts, panels, scene, sheets
from appca.canvas.blobs import Parcels, publish
from appca.canvas.image_placement import spread_order
from appca.canvas.layouts import seriated_cells
from appca.canvas.panels import BEYOND, MARGIN, jitter, tails
from appca.canvas.scene import Map, RowText, hover_buffers, scene_shown, texts_of
from appca.canvas.sheets import sheets_of
from appca.data.dataset import Dataset
from appca.data.sources import load
from appca.plots.components import COURSE, course_image
from appca.plots.style import MISSING, Colour, levels
from tests.fitted_runs import fitted_run


def supports(scene):
    """Components of each row, read off the buffer."""
    slots = scene.buffers["components"]
    filler = {"u1": 255, "u2": 65535}[slots.dtype.str[1:]]
    return [tuple(int(k) for k in row if k != filler) for row in slots]


def panels_of_row(kind, support):
    """Panels that a row stands in."""
    if kind == "map":
        return [(0, 1)]  # the only panel
    if kind != "triangle" or len(support) < 2:
        return [support]
    return [(a, b) for b in support for a in support if a < b]


def rows_by_panel(scene, name):
    """All rows of each panel in the order in which they are drawn."""
    layout, order = scene.meta["layouts"][name], scene.buffers[f"order.{name}"]
    found = {}
    for panel in layout["panels"]:
        key = (0, 1) if layout["kind"] == "map" else tuple(panel["components"])
        found[key] = order[panel["start"] : panel["start"] + panel["listed"]].tolist()
    if layout["kind"] in ("triangle", "map"):
        priority = spread_order(scene.meta["rows"])
        used, listed = supports(scene), {key: set(rows) for key, rows in found.items()}
        for row in priority[: layout.get("drawn", {}).get("rows")].tolist():
            for key in panels_of_row(layout["kind"], used[row]):
                if key in found and row not in listed[key]:
                    found[key].append(row)
    return found


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


@pytest.mark.parametrize(("n", "K"), [(2, 0), (1, 1), (2, 1), (5, 300)])
def test_very_few_rows_and_no_or_many_components_have_a_scene(n, K):
    active = np.zeros((n, K), bool)
    active[:, K // 2 : K // 2 + 2] = True
    dataset = Dataset("few", np.zeros((n, 3)), np.arange(n).astype(str), least_rows=1)
    fitted = fitted_run(active, components=np.zeros((K, 3)))
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


def test_a_range_is_robust_and_holds_zero_and_a_margin():
    bulk = np.linspace(1, 2, 1000)
    values = np.concatenate([bulk, [1e9], [-5.0, -4.0], [0.0, 0.0]]).astype(np.float32)
    found = tails(values, np.array([0, 1001, 1001, 1003, 1005]))
    high = BEYOND * np.sort(values[:1001])[995]
    assert np.allclose(found[0], [-MARGIN * high, high * (1 + MARGIN)])
    assert np.allclose(found[1], [-2 * MARGIN, 2 * MARGIN])  # no rows
    assert np.allclose(found[2], [-5 * (1 + MARGIN), 5 * MARGIN])
    assert np.allclose(found[3], [-2 * MARGIN, 2 * MARGIN])  # all at zero


def test_rows_are_spread_as_the_browser_does():
    rows = np.array([0, 1, 2, 1_000_000], np.uint32)
    y = [(row * 0x9E3779B1 % 2**32) / 2**32 * 1.6 - 0.8 for row in rows.tolist()]
    assert np.allclose(jitter(rows, 1), y)
    assert np.abs(jitter(np.arange(1000), 0)).max() <= 0.8
    assert np.std(jitter(np.arange(1000), 0)) > 0.4


def run_of_colours(n_rows: int, k: int, n_active: int, seed: int = 0) -> FittedRun:
    """Numbers as a run has them, with unevenly popular components."""
    rng = np.random.default_rng(seed)
    keys = rng.gumbel(size=(n_rows, k)) + np.linspace(1, 0, k)
    active = np.zeros((n_rows, k), dtype=bool)
    np.put_along_axis(active, np.argsort(-keys, axis=1)[:, :n_active], True, axis=1)
    return fitted_run(
        scores=(rng.normal(size=(n_rows, k)) * active).astype(np.float32),
        active=active,
        membership=rng.random(n_rows).astype(np.float32),
        error=rng.random(n_rows).astype(np.float32),
        log_likelihood_rows=rng.normal(size=n_rows),
    )


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return load("digits")


def test_a_feature_colours_each_row_by_its_own_number(digits, seed):
    fitted = run_of_colours(digits.n_rows, 4, 2)
    column = int(np.random.default_rng(seed).integers(64))
    colour = panels.colour_of(digits, fitted, f"feature:{column}")
    assert (colour.kind, colour.name) == (
        "number",
        f"pixel row {column // 8 + 1}, column {column % 8 + 1}",
    )
    images = digits.X.reshape(-1, 8, 8)
    np.testing.assert_array_equal(colour.values, images[:, column // 8, column % 8].astype(float))


def test_a_feature_of_few_whole_numbers_is_a_scale_and_its_missing_cells_are_unknown():
    X = np.array([[0, 9], [1, 8], [2, 7], [1, 6]], dtype=np.uint8)
    missing = np.zeros(X.shape, dtype=bool)
    missing[1, 0] = True
    dataset = Dataset("few", X, list("abcd"), feature_names=("<b>", "c"), missing=missing)
    colour = panels.colour_of(dataset, run_of_colours(4, 2, 1), "feature:0")
    assert (colour.kind, colour.name) == ("number", "<b>")
    np.testing.assert_array_equal(colour.values, [0, np.nan, 2, 1])
    drawn = levels(colour)
    assert [drawn.table[code] == MISSING for code in drawn.codes] == [False, True, False, False]


def shared_of_neighbours(components, places):
    at = dict(zip(places, components, strict=True))
    return np.mean(
        [
            len(set(one) & set(at[beside]))
            for (column, row), one in at.items()
            for beside in ((column + 1, row), (column, row + 1))
            if beside in at
        ]
    )


def test_neighbours_share_components_and_places_are_the_same_each_time():
    components = list(itertools.combinations(range(8), 3))
    counts = np.arange(len(components), 0, -1)
    places = seriated_cells(components, counts)
    assert len(set(places)) == len(components)
    assert places == seriated_cells(components, counts)
    n_columns = max(column for column, _ in places) + 1
    in_turn = [divmod(p, n_columns)[::-1] for p in range(len(components))]
    assert shared_of_neighbours(components, places) > 1.5
    assert shared_of_neighbours(components, places) > shared_of_neighbours(components, in_turn)


LINES = [
    RowText("digit", np.array([1, 0, -1]), ("a", "b")),
    RowText("residual", np.array([0.5, np.nan, 2.0])),
    RowText("note", np.array(["x", "y", "<b>"])),
]


def test_texts_that_are_sent_say_the_same_as_those_that_are_asked_for():
    header, buffers = hover_buffers(np.array(["p", "q", "r"]), LINES)
    assert json.loads(bytes(buffers[header["ids"]])) == ["p", "q", "r"]
    asked = texts_of(np.array(["p", "q", "r"]), LINES, np.array([2, 0, 1]))
    assert asked["ids"] == ["r", "p", "q"]
    assert [one["values"] for one in asked["lines"]] == [
        [None, "b", "a"],
        [2.0, 0.5, None],
        ["<b>", "x", "y"],
    ]
    digit, residual, note = header["lines"]
    codes = buffers[digit["buffer"]]
    assert [dict(enumerate(digit["names"])).get(int(code)) for code in codes] == ["b", "a", None]
    assert buffers[residual["buffer"]].tolist() == pytest.approx([0.5, np.nan, 2.0], nan_ok=True)
    assert json.loads(bytes(buffers[note["buffer"]])) == ["x", "y", "<b>"]


def test_very_many_classes_are_texts_and_ids_that_count_are_left_out(monkeypatch):
    monkeypatch.setattr(scene, "MOST_NAMES", 1)
    header, buffers = hover_buffers(np.array(["0", "1", "2"]), LINES)
    assert header["ids"] is None
    assert json.loads(bytes(buffers["hover.0"])) == ["b", "a", ""]


def test_a_name_is_one_of_content_and_of_this_home():
    here, there = Parcels(b"one"), Parcels(b"other")
    assert here.offer(b"a") == here.offer(bytearray(b"a")) == Parcels(b"one").offer(b"a")
    assert len({here.offer(b"a"), here.offer(b"b"), there.offer(b"a")}) == 3
    assert there.get(here.offer(b"b")) is None


def test_what_was_not_asked_for_the_longest_goes_first():
    parcels = Parcels(b"", most_bytes=10)
    a, b = parcels.offer(b"aaaa"), parcels.offer(b"bbbb")
    assert parcels.get(a).content == b"aaaa"
    c = parcels.offer(b"cccc")
    assert parcels.get(b) is None
    assert {parcels.get(one).content for one in (a, c)} == {b"aaaa", b"cccc"}
    assert parcels.offer(b"aaaa") == a  # counts once
    large = parcels.offer(b"l" * 11)
    assert parcels.get(large) is not None  # alone, though too large
    assert parcels.get(a) is None


def test_a_promise_is_kept_once_and_again_when_it_had_to_go():
    made = []

    def make():
        made.append(1)
        return b"sheet"

    parcels = Parcels(b"", most_bytes=6)
    name = parcels.promise("sheet 0", make, "image/png")
    assert made == []
    assert parcels.get(name) == (b"sheet", "image/png")
    assert parcels.get(name).content == b"sheet"
    assert len(made) == 1
    parcels.offer(b"others")
    assert parcels.get(name).content == b"sheet"
    assert len(made) == 2


def test_a_scene_comes_back_from_its_shards(monkeypatch):
    monkeypatch.setattr(module, "SHARD", 100)
    rng = np.random.default_rng(0)
    active = np.stack([rng.permutation([1, 1, 0, 0]) for _ in range(90)]).astype(bool)
    X = rng.integers(0, 255, (90, 64)).astype(np.uint8)
    dataset = Dataset("d", X, np.arange(90).astype(str), image_shape=(8, 8))
    fitted = fitted_run(active, components=np.eye(4, 64))
    scene = scene_shown(dataset, fitted)
    parcels = Parcels(b"")
    names = publish(scene, dataset.digest, parcels)
    meta = json.loads(parcels.get(names["meta"]).content)
    assert meta == json.loads(json.dumps(scene.meta))
    for name, (kind, size) in meta["buffers"].items():
        raw = b"".join(bytes(parcels.get(one).content) for one in names["buffers"][name])
        assert np.array_equal(np.frombuffer(raw, f"<{kind}"), scene.buffers[name].ravel())
        assert len(raw) == size * np.dtype(kind).itemsize
    assert parcels.get(names["sheets"][0]).content == scene.sheets.png(0)
    assert parcels.get(names["components"]).content == scene.component_sheet
    assert publish(scene, dataset.digest, parcels) == names
    again = scene_shown(dataset, fitted)
    assert publish(again, dataset.digest, Parcels(b"")) == names


def dataset(images: np.ndarray) -> SimpleNamespace:
    return SimpleNamespace(
        digest="d",
        n_rows=len(images),
        image_shape=images.shape[1:],
        images=lambda rows: images[rows],
    )


def numbered(n: int, shape: tuple[int, ...]) -> np.ndarray:
    """Images that carry their row number in their pixels."""
    images = np.zeros((n, *shape), np.uint8)
    flat = images.reshape(n, -1)
    flat[:, 0], flat[:, 1] = np.divmod(np.arange(n), 256)
    flat[:, 2:] = np.random.default_rng(0).integers(0, 256, flat[:, 2:].shape)
    return images


@pytest.mark.parametrize("shape", [(4, 6), (5, 3, 3)])
def test_every_row_has_its_own_image(shape):
    images = numbered(97, shape)
    rows = np.array([96, 0, 41])
    np.testing.assert_array_equal(sheets.tiles_of(dataset(images), rows), images[rows])


def test_handwriting_is_ink_and_shaded_objects_are_photographs():
    from sklearn.datasets import load_digits

    digits = np.rint(load_digits().images[:200] * (255 / 16)).astype(np.uint8)
    assert sheets.style_of(digits) == "ink"
    y, x = np.mgrid[-1:1:32j, -1:1:32j]
    ball = np.where(x**2 + y**2 < 0.8, 170 * np.sqrt(np.clip(1 - x**2 - y**2, 0, 1)), 0)
    assert sheets.style_of(np.repeat(np.uint8(ball)[None], 5, axis=0)) == "photo"
    assert sheets.style_of(255 - digits) == "photo"
    assert sheets.style_of(np.zeros((3, 4, 4, 3), np.uint8)) == "photo"
    assert sheets.style_of(np.zeros((3, 4, 4), np.uint8)) == "photo"


def test_components_of_a_recording_are_courses_over_time():
    times = np.linspace(0, 6, 48)
    names = tuple(f"{2.5 * i:g} s" for i in range(48))
    X = np.random.default_rng(6).random((N, 48))
    facts = {"repetition": 2.5}
    dataset = Dataset("t", X, np.arange(N).astype(str), {}, None, names, facts)
    W = np.linalg.qr(np.stack([np.sin(times + k) + k * times for k in range(6)]).T)[0].T
    scene = scene_of(run_of([2], components=W), dataset)
    header = scene.meta["component_pictures"]
    assert (header["tile"], header["per_sheet"]) == ([*COURSE, 3], 12)
    assert not any(one["columns"] for one in scene.meta["components"])
    drawn = course_image(W[0])
    darkest = drawn.sum(axis=2).argmin(axis=0)  # the line's height in each column of pixels
    course = np.interp(np.linspace(0, 47, COURSE[1]), range(48), W[0])
    assert np.corrcoef(darkest, course)[0, 1] < -0.99
