import json
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from appca.plots import palette
from appca.plots.explore.panel import Cell, Panel
from appca.ui.explorer import payload

N = 30
VIEW = payload.ExplorerView("k", "r", 22, 3.0, 3, None)
NAMES = {"geometry": "g", "hover": None, "ids": None, "order": None}


def shuffled_panels(seed: int) -> list[Panel]:
    """Panels with rows in any order, shared between panels, with cells and symbols."""
    rng = np.random.default_rng(seed)
    panels = []
    for number in range(3):
        rows = rng.permutation(N)[: 10 + 5 * number].astype(np.int32)
        x, y = rng.standard_normal((2, len(rows))).astype(np.float32)
        right, left = rows[x > 0], rows[x <= 0]
        images = (np.arange(6, dtype=np.uint8).reshape(2, 3), None)
        cells = [
            Cell("+1", len(right), right, (1, 1), images[0]),
            Cell("−1", len(left), left, (-1, 1), images[1]),
        ]
        panels.append(Panel(f"panel {number}", "", rows, x, y, "first", "second", cells=cells))
    panels[1] = panels[1]._replace(
        rgb=rng.integers(0, 256, (15, 3)).astype(np.uint8),
        symbol=rng.integers(0, 10, 15).astype(np.uint8),
    )
    return panels


def as_the_browser_reads(tmp_path: Path, *frames: bytes) -> dict:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    files = [tmp_path / f"{number}.bin" for number in range(len(frames))]
    for file, data in zip(files, frames, strict=True):
        file.write_bytes(data)
    script = Path(__file__).with_name("unpack.mjs")
    done = subprocess.run([node, script, *files], capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def test_row_place_colour_cell_and_label_stay_together_from_python_to_the_browser(seed, tmp_path):
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 12, N)
    names = tuple(f"class {i}" for i in range(12))
    colour = palette.colour_by("Class", classes, names)
    selection = rng.random(N) < 0.4
    panels = shuffled_panels(seed)
    ids = np.array([f"id-{row}" for row in range(N)])
    hover = payload.HoverData(ids, [payload.HoverColumn("class", classes, names)])
    read = as_the_browser_reads(
        tmp_path,
        payload.geometry(panels).data,
        payload.message(NAMES, N, colour, VIEW, selection, ("mount", 4)),
        payload.hover_parcel(hover).data,
        payload.ids_parcel(hover.ids).data,
    )
    assert read["ids"] == hover.ids.tolist()
    assert read["seen"] == ["mount", 4]
    for sent, got in zip(panels, read["panels"], strict=True):
        assert got["rows"] == sent.rows.tolist()
        np.testing.assert_array_equal(np.float32(got["x"]), sent.x)
        assert got["selected"] == np.flatnonzero(selection[sent.rows]).tolist()
        assert [line[0] for line in got["lines"]] == [
            ["class", names[classes[row]]] for row in sent.rows
        ]
        for cell, got_cell in zip(sent.cells, got["cells"], strict=True):
            assert sorted(got_cell["rows"]) == sorted(cell.rows.tolist())
        assert got["cells"][0]["image"] == [0, 1, 2, 3, 4, 5]
        assert got["cells"][1]["image"] is None
    for sent, got in zip(panels[::2], read["panels"][::2], strict=True):
        assert got["colours"] == [
            palette.class_colour(classes[row], len(names)) for row in sent.rows
        ]
        shapes = [palette.class_shape(classes[row]) for row in sent.rows]
        numbers = dict(zip(palette.SHAPES, palette.SHAPE_NUMBERS, strict=True))
        assert got["symbols"] == [numbers[shape] for shape in shapes]
    own = [[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in read["panels"][1]["colours"]]
    assert np.abs(np.array(own) - panels[1].rgb).max() <= 19


def test_a_frame_is_the_header_and_the_arrays_at_multiples_of_eight():
    parts = [np.arange(3, dtype=np.float32), np.arange(5, dtype=np.uint8)]
    data = payload.frame({"name": "a"}, parts)
    length = struct.unpack("<I", data[:4])[0]
    header = json.loads(data[4 : 4 + length])
    assert header == {"name": "a", "parts": [["f4", 3], ["u1", 5]]}
    assert (4 + length) % 8 == 0
    np.testing.assert_array_equal(np.frombuffer(data, "<f4", 3, 4 + length), [0, 1, 2])
    np.testing.assert_array_equal(np.frombuffer(data, np.uint8, 5, 4 + length + 16), range(5))
    assert len(data) == 4 + length + 16 + 8


def test_panels_that_share_their_points_send_them_once():
    x, y = np.random.default_rng(0).random((2, 10_000))
    panel = Panel("a", "", np.arange(10_000, dtype=np.int32), x, y)
    one = len(payload.geometry([panel]).data)
    three = len(payload.geometry([panel, panel._replace(title="b"), panel]).data)
    assert three < 1.02 * one


def test_a_parcel_is_named_by_its_content():
    panels = shuffled_panels(0)
    same, again = payload.geometry(panels), payload.geometry(shuffled_panels(0))
    assert same == again
    moved = [panels[0]._replace(x=panels[0].x + 1), *panels[1:]]
    assert payload.geometry(moved).name != same.name
    renamed = [panels[0]._replace(title="other"), *panels[1:]]
    assert payload.geometry(renamed).name != same.name


def test_a_new_colouring_sends_about_a_byte_a_row_and_no_points():
    n = 70_000
    colour = palette.colour_by("error", np.random.default_rng(0).random(n))
    size = len(payload.message(NAMES, n, colour, VIEW, np.arange(n) % 3 == 0, None))
    assert size < 1.2 * n


def test_70000_rows_in_three_panels_send_about_three_megabytes():
    n = 70_000
    rng = np.random.default_rng(0)
    rows = np.arange(n, dtype=np.int32)
    panels = [Panel(str(k), "", rows, *rng.random((2, n), np.float32)) for k in range(3)]
    assert len(payload.geometry(panels).data) < 2.2e6


def test_ids_that_only_count_are_not_sent():
    assert payload.ids_parcel(np.arange(5000).astype(str)) is None
    swapped = np.arange(5000).astype(str)
    swapped[[1, 2]] = swapped[[2, 1]]
    for ids in (swapped, np.array([f"row {i}" for i in range(5000)])):
        assert len(payload.ids_parcel(ids).data) > 5000


def test_another_fit_sends_the_ids_under_the_same_name():
    ids = np.array(["a", "β", "c\nd"])
    first, second = (payload.HoverColumn("subspace", np.array(v)) for v in ([0, 1, 0], [1, 1, 0]))
    hovers = [payload.HoverData(ids, [column]) for column in (first, second)]
    assert len({payload.hover_parcel(hover).name for hover in hovers}) == 2
    assert len({payload.ids_parcel(hover.ids).name for hover in hovers}) == 1


def test_no_cells_overlap_in_the_numbering_and_points_outside_have_none():
    panel = shuffled_panels(1)[0]
    one = panel._replace(cells=panel.cells[:1])
    cell_of = payload._cell_of(one)
    np.testing.assert_array_equal(cell_of == 0, panel.x > 0)
    assert set(cell_of[panel.x <= 0]) == {payload.NO_CELL}
