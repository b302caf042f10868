"""What the canvas and its page tell each other: messages, scenes and numbers of components."""

import base64
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from appca.canvas.scene import scene_shown
from appca.data.dataset import Dataset
from appca.data.preprocessing import Fitted
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


def encoded(*values: int) -> str:
    return base64.b64encode(bytes(values)).decode()


@given(st.lists(st.booleans(), min_size=1, max_size=70))
def test_the_rows_come_back_as_they_were_packed(flags):
    rows = np.array(flags)
    packed = encoded(*np.packbits(rows, bitorder="little"))
    np.testing.assert_array_equal(read(packed, len(rows)), rows)
    assert not read(None, 10).any(), "a selection that was cleared"
    assert np.flatnonzero(read(encoded(1, 2), 10)).tolist() == [0, 9], "the first is the lowest bit"


@pytest.mark.parametrize(
    ("bits", "said"),
    [
        *((encoded(*[0] * n), rf"{n} bytes for 10 rows") for n in (0, 1, 3, 400)),
        (encoded(0, 4), "rows beyond the last"),
        *((bits, "it has") for bits in ("%%%", "abc", 17, ["AA=="], "AAA\x00")),
    ],
)
def test_bits_of_other_data_and_what_is_no_base64_are_refused(bits, said):
    with pytest.raises(ValueError, match=said):
        read(bits, 10)


STAMP = {"mount": "a", "number": 1}
MESSAGES = [
    *((SelectionMessage, stamp) for stamp in ({}, {"mount": "a"}, {"mount": "a", "number": 0})),
    *((SelectionMessage, STAMP | {"mount": wrong}) for wrong in (1, "<b>", "a\n", "a" * 41)),
    *((PointMessage, STAMP | {"row": row}) for row in (-2, 1.5, "3", None, True)),
    (ActMessage, STAMP | {"kind": "delete", "name": "a"}),
    (ActMessage, STAMP | {"kind": "colour", "name": 3}),
    (ActMessage, STAMP | {"kind": "selection", "name": "a" * 1001}),
]


@pytest.mark.parametrize(("kind", "message"), MESSAGES)
def test_a_message_that_no_canvas_sends_is_refused(kind, message):
    with pytest.raises(ValueError, match="it "):
        fitted(kind, message)


def test_a_scene_has_the_numbers_names_colours_and_texts_of_the_page():
    active = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]], bool)
    labels = {"digit": np.array(["b", "a", "b", ""]), "width": np.array([0.5, 1.5, 2.5, 3.5])}
    dataset = Dataset("d", np.eye(4, 3), np.array(["p", "q", "r", "s"]), labels)
    numbering = Numbering((2, 0, 1), (1, 1, -1), ("", "slant", ""))
    run = fitted_run(active, preprocessing=Fitted(1.0, np.zeros(3), np.ones(3), None))
    scene = scene_shown(dataset, numbered(run, numbering))
    shown = [(one["number"], one["name"]) for one in scene.meta["components"]]
    assert shown == [(1, ""), (2, "slant"), (3, "")]
    assert scene.buffers["components"].tolist() == [[1, 2], [0, 2], [0, 1], [1, 2]]
    kinds = {name: one["kind"] for name, one in scene.meta["colourings"].items()}
    assert list(kinds) == ["label:digit", "label:width", "residual", "membership", "likelihood"]
    assert (kinds["label:digit"], kinds["label:width"]) == ("category", "quantity")
    titles = [line["title"] for line in scene.meta["hover"]["lines"]]
    assert titles == ["digit", "width", "Residual", "Membership", "Likelihood"]
    assert [line.title for line in scene.lines] == titles
    assert json.loads(bytes(scene.buffers["hover.ids"])) == ["p", "q", "r", "s"]


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
    app = start("explore", k="6")
    run = RunStore(home()).get(address(healthy(app))["run"])
    numbers = run.path / "numbers.json"
    assert numbers.exists()
    slider(app, "k").set_value(7).run()
    numbers.unlink()  # as of a fit of the command line, which nobody has seen
    for questions in list(delivery()._questions.values()):
        for what in questions.answers:  # all that an idle browser can ask
            questions.answer(what, np.zeros(1, int))
    assert not numbers.exists()
    slider(app, "k").set_value(6).run()
    assert numbers.exists()
