import base64

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from appca.ui.explorer import messages


def state(bits, mount="a1-b2", number=1) -> dict:
    return {"selection": {"mount": mount, "number": number, "bits": bits}}


def packed(flags: np.ndarray) -> str:
    return base64.b64encode(np.packbits(flags, bitorder="little").tobytes()).decode()


@given(st.lists(st.booleans(), min_size=1, max_size=70))
def test_the_rows_come_back_as_they_were_packed(flags):
    rows = np.array(flags)
    got = messages.read_selection(state(packed(rows)), len(rows))
    np.testing.assert_array_equal(got, rows)


def test_the_first_row_is_the_lowest_bit():
    got = messages.read_selection(state(base64.b64encode(bytes([1, 2])).decode()), 10)
    np.testing.assert_array_equal(np.flatnonzero(got), [0, 9])


def test_a_cleared_selection_is_none_with_its_stamp():
    assert messages.read_stamp(state(None, number=7)) == ("a1-b2", 7)
    assert messages.read_selection(state(None, number=7), 10) is None


@pytest.mark.parametrize("empty", [None, {}, {"selection": None}, {"need": [1]}])
def test_no_message_is_no_selection(empty):
    assert messages.read_selection(empty, 10) is None


@pytest.mark.parametrize("length", [0, 1, 3, 400])
def test_bits_of_another_data_set_are_refused(length):
    bits = base64.b64encode(bytes(length)).decode()
    with pytest.raises(ValueError, match=rf"selection of {length} bytes for 10 rows, which need 2"):
        messages.read_selection(state(bits), 10)


def test_rows_beyond_the_last_are_refused():
    with pytest.raises(ValueError, match="rows beyond the last of 10"):
        messages.read_selection(state(base64.b64encode(bytes([0, 4])).decode()), 10)


@pytest.mark.parametrize("bits", ["%%%", "abc", 17, ["AA=="], "AAA\x00"])
def test_what_is_not_base64_is_refused(bits):
    with pytest.raises(ValueError, match="that is not base64"):
        messages.read_selection(state(bits), 10)


@pytest.mark.parametrize(
    ("mount", "number"),
    [("", 1), ("<b>", 1), ("a" * 41, 1), (None, 1), ("a", 0), ("a", -1), ("a", 1.5), ("a", True)],
)
def test_a_stamp_that_is_no_name_and_count_is_refused(mount, number):
    with pytest.raises(ValueError, match="without a valid stamp"):
        messages.read_selection(state("AAA=", mount, number), 10)


@pytest.mark.parametrize("selection", ["text", 5, [1, 2]])
def test_a_selection_of_another_form_is_refused(selection):
    with pytest.raises(ValueError, match="without a valid stamp"):
        messages.read_selection({"selection": selection}, 10)


@pytest.mark.parametrize(
    ("need", "expected"),
    [
        ([3, 1, 3], {1, 3}),
        ([-1, 4, 5, 99], {4}),
        ([True, "2", 2.0, None, [1]], set()),
        ("12", set()),
        (None, set()),
        (7, set()),
    ],
)
def test_only_sheets_that_exist_can_be_asked_for(need, expected):
    assert messages.read_need({"need": need}, 5) == expected


def test_few_sheets_can_be_asked_for_at_a_time():
    assert len(messages.read_need({"need": list(range(1000))}, 1000)) == messages.MOST_SHEETS_ASKED


def test_no_state_asks_for_nothing():
    assert messages.read_need(None, 5) == set()
