import json

import numpy as np
import pytest

from appca.canvas import scene
from appca.canvas.scene import RowText, hover_buffers, texts_of

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


def test_very_many_rows_are_not_sent(monkeypatch):
    monkeypatch.setattr(scene, "MOST_ROWS", 2)
    assert hover_buffers(np.array(["p", "q", "r"]), LINES) == (None, {})
