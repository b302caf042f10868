import base64

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from appca.storage.schema import fitted
from appca.ui import canvas
from appca.ui.canvas import ActMessage, PointMessage, SelectionMessage


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
