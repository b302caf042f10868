"""What the canvas and its page tell each other: messages, scenes and numbers of components."""

import base64
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from appca.canvas.scene import scene_shown
from appca.data.dataset import Dataset
from appca.runs.home import home
from appca.runs.numbering import ComponentNumbers, Numbering, directions, numbered
from appca.runs.store import RunStore
from appca.storage.schema import fitted
from appca.ui import canvas
from appca.ui.canvas import ActMessage, PointMessage, SelectionMessage, delivery
from tests.fitted_runs import fitted_run
from tests.ui.conftest import address, go, healthy, slider


def read(bits, n_rows: int) -> np.ndarray:
    """Read what a browser sends."""
    told = fitted(SelectionMessage, {"mount": "a1-b2", "number": 1, "bits": bits})
    return canvas.read_selection(told.bits, n_rows)


def packed(flags: np.ndarray) -> str:
    return base64.b64encode(np.packbits(flags, bitorder="little").tobytes()).decode()


@given(st.lists(st.booleans(), min_size=1, max_size=70))
def test_the_rows_come_back_as_they_were_packed(flags):
    rows = np.array(flags)
    np.testing.assert_array_equal(read(packed(rows), len(rows)), rows)


def test_the_first_row_is_the_lowest_bit():
    got = read(base64.b64encode(bytes([1, 2])).decode(), 10)
    np.testing.assert_array_equal(np.flatnonzero(got), [0, 9])


def test_a_cleared_selection_has_no_rows():
    assert not read(None, 10).any()


@pytest.mark.parametrize(
    "stamp",
    [
        {},
        {"mount": "a"},
        {"mount": "a", "number": 0},
        {"mount": 1, "number": 1},
        {"mount": "<b>", "number": 1},
        {"mount": "a\n", "number": 1},
        {"mount": "a" * 41, "number": 1},
    ],
)
def test_a_selection_without_a_valid_stamp_is_refused(stamp):
    with pytest.raises(ValueError, match="it "):
        fitted(SelectionMessage, stamp)


@pytest.mark.parametrize("length", [0, 1, 3, 400])
def test_bits_of_another_data_set_are_refused(length):
    bits = base64.b64encode(bytes(length)).decode()
    with pytest.raises(ValueError, match=rf"{length} bytes for 10 rows"):
        read(bits, 10)


def test_rows_beyond_the_last_are_refused():
    with pytest.raises(ValueError, match="rows beyond the last"):
        read(base64.b64encode(bytes([0, 4])).decode(), 10)


@pytest.mark.parametrize("bits", ["%%%", "abc", 17, ["AA=="], "AAA\x00"])
def test_what_is_not_base64_is_refused(bits):
    with pytest.raises(ValueError, match="it has"):
        read(bits, 10)


@pytest.mark.parametrize("row", [-2, 1.5, "3", None, True])
def test_a_held_row_is_a_whole_number_or_none(row):
    with pytest.raises(ValueError, match="it "):
        fitted(PointMessage, {"mount": "a", "number": 1, "row": row})


@pytest.mark.parametrize(
    ("kind", "name"), [("delete", "a"), ("colour", 3), ("selection", "a" * 1001)]
)
def test_only_offers_are_chosen(kind, name):
    with pytest.raises(ValueError, match="it "):
        fitted(ActMessage, {"mount": "a", "number": 1, "kind": kind, "name": name})


def test_a_scene_has_the_numbers_names_colours_and_texts_of_the_page():
    active = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]], bool)
    labels = {"digit": np.array(["b", "a", "b", ""]), "width": np.array([0.5, 1.5, 2.5, 3.5])}
    dataset = Dataset("d", np.eye(4, 3), np.array(["p", "q", "r", "s"]), labels)
    numbering = Numbering((2, 0, 1), (1, 1, -1), ("", "slant", ""))
    scene = scene_shown(dataset, numbered(fitted_run(active, **_features()), numbering))
    shown = [(one["number"], one["name"]) for one in scene.meta["components"]]
    assert shown == [(1, ""), (2, "slant"), (3, "")]
    assert scene.buffers["components"].tolist() == [[1, 2], [0, 2], [0, 1], [1, 2]]
    kinds = {name: one["kind"] for name, one in scene.meta["colourings"].items()}
    assert list(kinds) == ["label:digit", "label:width", "residual", "membership", "likelihood"]
    assert kinds["label:digit"] == "category"
    assert kinds["label:width"] == "quantity"
    hover = scene.meta["hover"]
    titles = [line["title"] for line in hover["lines"]]
    assert titles == ["digit", "width", "Residual", "Membership", "Likelihood"]
    assert [line.title for line in scene.lines] == titles
    assert json.loads(bytes(scene.buffers["hover.ids"])) == ["p", "q", "r", "s"]


def _features():
    from appca.data.preprocessing import Fitted

    return {"preprocessing": Fitted(1.0, np.zeros(3), np.ones(3), None)}


def test_chips_say_what_a_component_was_and_two_windows_show_one_numbering(start, monkeypatch):
    told: dict = {}
    monkeypatch.setattr(canvas, "_canvas", lambda key, data, **_: told.update({key: data}))
    app = start("explore")
    assert "came" not in told["canvas"]["options"], "there was nothing before"
    slider(app, "k").set_value(7).run()
    run = RunStore(home()).get(address(healthy(app))["run"])
    numbering = ComponentNumbers(home()).of_run(run)
    came = told["canvas"]["options"]["came"]
    assert len(came) == 7
    assert came.count("new") >= 3
    assert all(text in ("", "new") for text in came[:4])
    assert sorted(numbering.order) == list(range(7))
    scene = told["canvas"]["scene"]["meta"]
    healthy(go(app, "explore"))
    assert told["canvas"]["options"]["came"] == came, "until the next fit"

    other = start("explore", k="6")  # another window, with another fit on its screen
    slider(other, "k").set_value(7).run()
    assert address(healthy(other))["run"] == run.id
    assert ComponentNumbers(home()).of_run(run, directions(run.fitted)[::-1]) == numbering
    assert told["canvas"]["scene"]["meta"] == scene


def test_numbers_are_decided_when_a_fit_is_shown_and_not_before(start):
    app = start("explore", k="5")
    slider(app, "k").set_value(6).run()
    run = RunStore(home()).get(address(healthy(app))["run"])
    numbers = run.path / "numbers.json"
    assert numbers.exists()
    slider(app, "k").set_value(8).run()
    numbers.unlink()  # as of a fit of the command line, which nobody has seen
    slider(app, "k").set_value(7).run()
    for questions in list(delivery()._questions.values()):
        for what in questions.answers:  # all that an idle browser can ask
            questions.answer(what, np.zeros(1, int))
    assert not numbers.exists()
    slider(app, "k").set_value(6).run()
    assert numbers.exists()
