import base64

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from appca.ui.explorer import canvas


def state(bits, mount="a1-b2", number=1) -> dict:
    return {"selection": {"mount": mount, "number": number, "bits": bits}}


def packed(flags: np.ndarray) -> str:
    return base64.b64encode(np.packbits(flags, bitorder="little").tobytes()).decode()


@given(st.lists(st.booleans(), min_size=1, max_size=70))
def test_the_rows_come_back_as_they_were_packed(flags):
    rows = np.array(flags)
    got = canvas.read_selection(state(packed(rows)), len(rows))
    np.testing.assert_array_equal(got, rows)


def test_the_first_row_is_the_lowest_bit():
    got = canvas.read_selection(state(base64.b64encode(bytes([1, 2])).decode()), 10)
    np.testing.assert_array_equal(np.flatnonzero(got), [0, 9])


def test_a_cleared_selection_is_none_with_its_stamp():
    assert canvas.read_stamp(state(None, number=7)) == ("a1-b2", 7)
    assert canvas.read_selection(state(None, number=7), 10) is None


@pytest.mark.parametrize("empty", [None, {}, {"selection": None}, {"need": [1]}])
def test_no_message_is_no_selection(empty):
    assert canvas.read_selection(empty, 10) is None


@pytest.mark.parametrize("length", [0, 1, 3, 400])
def test_bits_of_another_data_set_are_refused(length):
    bits = base64.b64encode(bytes(length)).decode()
    with pytest.raises(ValueError, match=rf"selection of {length} bytes for 10 rows, which need 2"):
        canvas.read_selection(state(bits), 10)


def test_rows_beyond_the_last_are_refused():
    with pytest.raises(ValueError, match="rows beyond the last of 10"):
        canvas.read_selection(state(base64.b64encode(bytes([0, 4])).decode()), 10)


@pytest.mark.parametrize("bits", ["%%%", "abc", 17, ["AA=="], "AAA\x00"])
def test_what_is_not_base64_is_refused(bits):
    with pytest.raises(ValueError, match="that is not base64"):
        canvas.read_selection(state(bits), 10)
