"""Tests of scenes: decoded as in the browser, they equal the run; their transfer."""

import io
import itertools
import json
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from appca.canvas import blobs as module
from appca.canvas import layouts, panels, scene, sheets
from appca.canvas.blobs import Parcels, publish
from appca.canvas.image_placement import spread_order
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
    return [tuple(int(k) for k in row if k != np.iinfo(slots.dtype).max) for row in slots]


def panels_of_row(kind, support):
    """Panels that a row stands in; a map has one."""
    pairs = list(itertools.combinations(support, 2)) if kind == "triangle" else []
    return [(0, 1)] if kind == "map" else pairs or [support]


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
    rng, active = np.random.default_rng(seed), np.zeros((N, K), bool)
    for n in range(N):
        active[n, rng.permutation(K)[: sizes[n % len(sizes)]]] = True
    scores = np.where(active, rng.normal(0, 3, (N, K)), 0).astype(np.float32)
    n_active = sizes[0] if len(set(sizes)) == 1 else None
    return fitted_run(active, scores=scores, n_active=n_active, **given)


def table(image_shape=None):
    X = np.random.default_rng(1).normal(size=(N, 6)).astype(np.float32)
    return Dataset("table", X, np.arange(N).astype(str), image_shape=image_shape)


@pytest.mark.parametrize(
    ("sizes", "image_shape", "kinds"),
    [
        ([0, 1], None, {"subspaces": "strips"}),
        ([0, 1, 2], (2, 3), {"subspaces": "triangle"}),
        ([3], (2, 3), {"subspaces": "grid", "pairs": "triangle"}),
        ([0, 1, 2, 5], None, {"subspaces": "grid", "pairs": "triangle"}),
    ],
)
def test_every_row_stands_in_the_panels_of_its_components(sizes, kinds, image_shape, monkeypatch):
    monkeypatch.setattr(layouts, "LISTED", 100)  # so that pairs list some of the rows only
    fitted, xy = run_of(sizes), np.random.default_rng(4).normal(size=(N, 2)) * [10, 1]
    maps = {"pca": Map("PCA", xy), "two": Map("Two", xy, has_one_unit=False)}
    scene = scene_shown(table(image_shape), fitted, maps)
    drawn = {name: layout["kind"] for name, layout in scene.meta["layouts"].items()}
    assert drawn == kinds | dict.fromkeys(maps, "map")
    used = supports(scene)
    assert used == [tuple(np.flatnonzero(one)) for one in fitted.active]
    of_two = scene_shown(table(), fitted_run(np.ones((N, 2), bool)), {}).meta["layouts"]
    assert of_two["subspaces"]["kind"] == "grid", "one large panel"
    for name, layout in scene.meta["layouts"].items():
        expected = defaultdict(list)
        for row, support in enumerate(used):
            for key in panels_of_row(layout["kind"], support):
                expected[key].append(row)
        found = rows_by_panel(scene, name)
        assert {key: sorted(rows) for key, rows in found.items()} == expected
        assert [panel["count"] for panel in layout["panels"]] == [len(r) for r in found.values()]
        cells = {tuple(panel["cell"]) for panel in layout["panels"] if "cell" in panel}
        assert len(cells) == len(layout["panels"]) * (layout["kind"] == "triangle")
        assert all(panel["levels"] for panel in layout["panels"]) == (image_shape is not None)
    json.dumps(scene.meta, allow_nan=False)
    for name, units in {"pca": 1, "two": np.ptp(xy[:, 0]) / np.ptp(xy[:, 1])}.items():
        (x0, x1), (y0, y1) = scene.meta["layouts"][name]["limits"]
        assert x1 - x0 == pytest.approx((y1 - y0) * units, rel=1e-4)
        at = scene.buffers[f"map.{name}"] / 65535 * [x1 - x0, y1 - y0] + [x0, y0]
        assert np.abs(at - xy).max() < (x1 - x0) / 65535, "map positions come back"


def test_scores_and_numbers_come_back_and_an_outlier_does_not_coarsen_them():
    fitted = run_of([2]).arranged((1, 2, 0, 3, 4, 5), (1,) * 6, ("", "", "slant", "", "", ""))
    scores = fitted.scores.copy()
    scores[0, np.flatnonzero(fitted.active[0])[0]] = 1e6
    scene = scene_shown(table(), replace(fitted, scores=scores))
    named = [(one["number"], one["name"]) for one in scene.meta["components"][:3]]
    assert named == [(1, ""), (2, ""), (3, "slant")]
    assert supports(scene) == [tuple(np.flatnonzero(one)) for one in fitted.active]
    unit = scene.meta["score_unit"]
    assert unit < 0.01
    slots, values = scene.buffers["components"], scene.buffers["scores"] * unit
    own = np.take_along_axis(scores, slots.astype(int), axis=1)
    assert np.abs(values - own)[1:].max() <= unit / 2 * 1.001
    panels = scene.meta["layouts"]["subspaces"]["panels"]
    assert max(high - low for panel in panels for low, high in panel["range"]) < 100


def test_panels_of_a_column_share_x_and_those_of_a_row_y():
    scene = scene_shown(table(), run_of([3]))
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
    layout = scene_shown(table(), fitted).meta["layouts"]["subspaces"]
    assert len(layout["panels"]) == 5
    other = layout["other"]
    assert other["subspaces"] == len(np.unique(fitted.active, axis=0)) - 5
    assert other["count"] + sum(panel["count"] for panel in layout["panels"]) == N
    order = scene_shown(table(), fitted).buffers["order.subspaces"]
    assert sorted(order) == list(range(N))
    gathered = [tuple(np.flatnonzero(fitted.active[row])) for row in order[other["start"] :]]
    runs = [key for n, key in enumerate(gathered) if n == 0 or gathered[n - 1] != key]
    assert len(runs) == len(set(runs)) == other["subspaces"]


def test_more_points_than_can_be_drawn_are_a_sample_of_the_rows(monkeypatch):
    monkeypatch.setattr(panels, "MOST_POINTS", 400)
    scene = scene_shown(table(), run_of([3]))
    pairs = scene.meta["layouts"]["pairs"]
    assert pairs["drawn"] == {"rows": 133, "points": 399, "of": 3 * N}
    found = rows_by_panel(scene, "pairs")
    assert {len(rows) for rows in found.values()} == {p["count"] for p in pairs["panels"]}
    assert sum(panel["total"] for panel in pairs["panels"]) == 3 * N
    assert "drawn" not in scene.meta["layouts"]["subspaces"]


def test_colours_doubt_and_flags_are_one_byte_a_row():
    fitted = run_of([2], membership=np.linspace(0, 1, N, dtype=np.float32))
    colour = Colour("category", "digit", np.arange(N) % 3 - 1, ("a", "b"))
    outside = np.arange(N) == 5
    scene = scene_shown(table(), fitted, colourings={"label:digit": colour}, outside=outside)
    assert scene.buffers["codes.label:digit"][:4].tolist() == [2, 0, 1, 2]  # missing, a, b
    assert scene.meta["colourings"]["label:digit"]["names"] == ["a", "b"]
    assert scene.buffers["doubt"][[0, -1]].tolist() == [0, 255]
    assert np.flatnonzero(scene.buffers["outside"]).tolist() == [5]
    assert "outside" not in scene_shown(table(), fitted, outside=outside * 0).buffers
    for name, (kind, size) in scene.meta["buffers"].items():
        assert (scene.buffers[name].dtype.str[1:], scene.buffers[name].size) == (kind, size)


@pytest.mark.parametrize("shape", [(8, 8), (5, 7, 3), (128, 128)])
def test_a_tile_is_the_image_of_its_row(shape):
    X = np.random.default_rng(5).integers(0, 256, (N, int(np.prod(shape)))).astype(np.uint8)
    dataset = Dataset("images", X, np.arange(N).astype(str), image_shape=shape)
    rows = np.array([96, 0, 41])
    np.testing.assert_array_equal(sheets.tiles_of(dataset, rows), dataset.images(rows))
    found = sheets_of(dataset, spread_order(N))
    height, width, channels = found.tile
    assert (height, width) == shape[:2]
    assert found.cell & (found.cell - 1) == 0
    drawn = [np.asarray(Image.open(io.BytesIO(found.png(s)))) for s in range(found.n_sheets)]
    assert all(max(one.shape) <= 2048 for one in drawn)
    for tile in (0, 17, N - 1):
        sheet, place = divmod(tile, found.per_sheet)
        line, column = divmod(place, found.columns)
        top = line * found.cell + (found.cell - height) // 2
        left = column * found.cell + (found.cell - width) // 2
        at = drawn[sheet][top : top + height, left : left + width]
        assert np.array_equal(at, dataset.images([found.rows[tile]])[0])
        assert at.ndim == (3 if channels == 3 else 2)


@pytest.mark.parametrize(("n", "K"), [(2, 0), (1, 1), (5, 300)])
def test_very_few_rows_and_no_or_many_components_have_a_scene(n, K):
    active = np.zeros((n, K), bool)
    active[:, K // 2 : K // 2 + 2] = True
    dataset = Dataset("few", np.zeros((n, 3)), np.arange(n).astype(str), least_rows=1)
    fitted = fitted_run(active, components=np.zeros((K, 3)))
    scene = scene_shown(dataset, fitted, {"pca": Map("PCA", np.ones((n, 2)))})
    json.dumps(scene.meta, allow_nan=False)
    assert supports(scene) == [tuple(np.flatnonzero(one)) for one in active]
    assert sorted(itertools.chain(*rows_by_panel(scene, "subspaces").values())) == list(range(n))
    assert scene.buffers["components"].dtype == (np.uint16 if K > 255 else np.uint8)


def test_a_range_is_robust_and_rows_are_spread_as_the_browser_does():
    bulk = np.linspace(1, 2, 1000)
    values = np.concatenate([bulk, [1e9], [-5.0, -4.0], [0.0, 0.0]]).astype(np.float32)
    found = tails(values, np.array([0, 1001, 1001, 1003, 1005]))
    high, none = BEYOND * np.sort(values[:1001])[995], [-2 * MARGIN, 2 * MARGIN]
    ends = [[-MARGIN * high, high * (1 + MARGIN)], none, [-5 * (1 + MARGIN), 5 * MARGIN], none]
    assert np.allclose(found, ends)  # the second has no rows, the last all at zero
    rows = np.array([0, 1, 2, 1_000_000], np.uint32)
    y = [(row * 0x9E3779B1 % 2**32) / 2**32 * 1.6 - 0.8 for row in rows.tolist()]
    assert np.allclose(jitter(rows, 1), y)
    assert np.abs(jitter(np.arange(1000), 0)).max() <= 0.8
    assert np.std(jitter(np.arange(1000), 0)) > 0.4


def test_a_feature_colours_each_row_by_its_own_number_and_missing_cells_are_unknown():
    X = np.array([[0, 9], [1, 8], [2, 7], [1, 6]], dtype=np.uint8)
    missing = X == [[1, 0]]
    missing[3] = False
    dataset = Dataset("few", X, list("abcd"), feature_names=("<b>", "c"), missing=missing)
    colour = panels.colour_of(dataset, fitted_run(np.ones((4, 1), bool)), "feature:0")
    assert (colour.kind, colour.name) == ("number", "<b>")
    np.testing.assert_array_equal(colour.values, [0, np.nan, 2, 1])
    drawn = levels(colour)
    assert [drawn.table[code] == MISSING for code in drawn.codes] == [False, True, False, False]


def test_nearest_rows_and_the_spread_of_scores_go_to_the_browser():
    near = np.arange(2 * N).reshape(N, 2)[::-1] % N
    more = {"components": np.eye(6), "noise_variance": 4.0, "latent_variance": np.full(6, 12.0)}
    fitted = replace(run_of([2]), **more)
    scene = scene_shown(table(), fitted, maps={"umap": Map("UMAP", np.zeros((N, 2)), near)})
    assert scene.buffers["near"].dtype == np.uint32
    np.testing.assert_array_equal(scene.buffers["near"].reshape(N, 2), near)
    sums = np.linalg.inv(np.eye(6) / 12 + np.eye(6) / 4)  # of a Gaussian with prior and noise
    spreads = [entry["spread"] for entry in scene.meta["components"]]
    np.testing.assert_allclose(spreads, np.sqrt(np.diag(sums)))
    free = replace(fitted, components=np.ones((6, 6)))
    assert "spread" not in scene_shown(table(), free).meta["components"][0]


def test_subspaces_are_in_the_order_of_their_numbers_whatever_they_hold():
    header = scene_shown(table(), run_of([3])).meta["layouts"]["subspaces"]
    listed = [tuple(panel["components"]) for panel in header["panels"]]
    assert listed == list(itertools.combinations(range(6), 3))


def test_texts_that_are_sent_say_the_same_as_those_that_are_asked_for(monkeypatch):
    lines = [
        RowText("digit", np.array([1, 0, -1]), ("a", "b")),
        RowText("residual", np.array([0.5, np.nan, 2.0])),
        RowText("note", np.array(["x", "y", "<b>"])),
    ]
    header, buffers = hover_buffers(np.array(["p", "q", "r"]), lines)
    assert json.loads(bytes(buffers[header["ids"]])) == ["p", "q", "r"]
    asked = texts_of(np.array(["p", "q", "r"]), lines, np.array([2, 0, 1]))
    assert asked["ids"] == ["r", "p", "q"]
    values = [one["values"] for one in asked["lines"]]
    assert values == [[None, "b", "a"], [2.0, 0.5, None], ["<b>", "x", "y"]]
    digit, residual, note = header["lines"]
    names = dict(enumerate(digit["names"]))
    assert [names.get(int(code)) for code in buffers[digit["buffer"]]] == ["b", "a", None]
    assert buffers[residual["buffer"]].tolist() == pytest.approx([0.5, np.nan, 2.0], nan_ok=True)
    assert json.loads(bytes(buffers[note["buffer"]])) == ["x", "y", "<b>"]
    monkeypatch.setattr(scene, "MOST_NAMES", 1)  # very many classes are texts
    header, buffers = hover_buffers(np.array(["0", "1", "2"]), lines)
    assert header["ids"] is None, "they count"
    assert json.loads(bytes(buffers["hover.0"])) == ["b", "a", ""]


def test_what_was_not_asked_for_the_longest_goes_first_and_a_promise_is_kept_again():
    here, there, made = Parcels(b"one", most_bytes=10), Parcels(b"other"), []
    assert here.offer(b"a") == here.offer(bytearray(b"a")) == Parcels(b"one").offer(b"a")
    assert len({here.offer(b"a"), here.offer(b"b"), there.offer(b"a")}) == 3
    assert there.get(here.offer(b"b")) is None
    parcels = Parcels(b"", most_bytes=10)
    a, b = parcels.offer(b"aaaa"), parcels.offer(b"bbbb")
    assert parcels.get(a).content == b"aaaa"
    c = parcels.offer(b"cccc")
    assert [parcels.get(one) is None for one in (a, b, c)] == [False, True, False]
    assert parcels.offer(b"aaaa") == a  # counts once
    assert parcels.get(parcels.offer(b"l" * 11)) is not None  # alone, though too large
    assert parcels.get(a) is None
    name = parcels.promise("sheet 0", lambda: made.append(1) or b"sheet", "image/png")
    assert made == []
    assert [parcels.get(name) for _ in range(2)] == [(b"sheet", "image/png")] * 2
    parcels.offer(b"others")
    assert parcels.get(name).content == b"sheet"
    assert len(made) == 2, "once, and again when it had to go"


def test_a_scene_comes_back_from_its_shards(monkeypatch):
    monkeypatch.setattr(module, "SHARD", 100)
    rng = np.random.default_rng(0)
    active = np.stack([rng.permutation([1, 1, 0, 0]) for _ in range(90)]).astype(bool)
    X = rng.integers(0, 255, (90, 64)).astype(np.uint8)
    dataset = Dataset("d", X, np.arange(90).astype(str), image_shape=(8, 8))
    fitted = fitted_run(active, components=np.eye(4, 64))
    scene, parcels = scene_shown(dataset, fitted), Parcels(b"")
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
    assert publish(scene_shown(dataset, fitted), dataset.digest, Parcels(b"")) == names


def test_built_in_handwriting_is_ink_and_other_images_look_as_in_their_file():
    digits = load("digits")
    plain = replace(digits, provenance={"image_range": [0, 16]})
    for dataset, style in ((digits, "ink"), (plain, "photo")):
        assert sheets.is_ink(dataset) == (style == "ink")
        drawn = sheets.sheets_of(dataset, np.arange(9))
        assert drawn.style == style
        np.testing.assert_array_equal(drawn.images(np.arange(3)), digits.images([0, 1, 2]))


def test_rows_of_a_table_are_drawn_by_their_names_but_not_by_numbers():
    X = np.random.default_rng(0).normal(size=(40, 5))
    words = [f"Ort {chr(65 + i % 26)}{'ü' * (i // 26)}" for i in range(40)]
    drawn = sheets_of(Dataset("t", X, np.array(words)), np.arange(40))
    tiles = drawn.images(np.arange(40))
    assert (drawn.style, drawn.tile, tiles.shape) == ("name", (22, 128, 1), (40, 22, 128))
    assert len({tile.tobytes() for tile in tiles}) == 40
    for prefix in ("", "row-", "AT-"):
        counted = np.array([f"{prefix}{i}" for i in range(40)])
        assert sheets_of(Dataset("t", X, counted), np.arange(40)) is None


def test_components_of_a_recording_are_courses_over_time():
    times, X = np.linspace(0, 6, 48), np.random.default_rng(6).random((N, 48))
    names = tuple(f"{2.5 * i:g} s" for i in range(48))
    dataset = Dataset("t", X, np.arange(N).astype(str), {}, None, names, {"repetition": 2.5})
    W = np.linalg.qr(np.stack([np.sin(times + k) + k * times for k in range(6)]).T)[0].T
    scene = scene_shown(dataset, run_of([2], components=W))
    header = scene.meta["component_pictures"]
    assert (header["tile"], header["per_sheet"]) == ([*COURSE, 3], 12)
    assert not any(one["columns"] for one in scene.meta["components"])
    drawn = course_image(W[0])
    darkest = drawn.sum(axis=2).argmin(axis=0)  # the line's height in each column of pixels
    course = np.interp(np.linspace(0, 47, COURSE[1]), range(48), W[0])
    assert np.corrcoef(darkest, course)[0, 1] < -0.99
