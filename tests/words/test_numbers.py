"""Numbers as people read them."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from appca.words import fixed, nats, number, percent, signed


@pytest.mark.parametrize(
    ("share", "digits", "text"),
    [
        (0.285, 1, "28.5%"),
        (0.2851, 0, "29%"),
        (0.0, 1, "0%"),
        (1.0, 1, "100%"),
        (0.0004, 1, "under 0.1%"),
        (0.0005001, 1, "0.1%"),
        (0.0012, 0, "under 1%"),
        (0.9996, 1, "over 99.9%"),
        (0.9996, 0, "over 99%"),
        (0.9949, 0, "99%"),
        (-0.0, 1, "0%"),
        (0.1234567, 3, "12.346%"),
        (0.0000001, 3, "under 0.001%"),
        (-0.0321, 1, "−3.2%"),
        (1.25, 0, "125%"),
        (12.5, 0, "1,250%"),
        (float("nan"), 1, "–"),
        (np.float32(0.5), 1, "50.0%"),
    ],
)
def test_a_share_is_written_as_per_cent(share, digits, text):
    assert percent(share, digits) == text


@given(st.floats(0, 1), st.integers(0, 3))
def test_a_share_is_near_what_is_written_and_only_none_and_all_look_so(share, digits):
    text = percent(share, digits)
    shown = float(re.search(r"[\d.]+", text)[0])
    assert abs(shown - 100 * share) <= 10.0**-digits * (1 + 1e-9)
    assert (text == "0%") == (share == 0)
    assert (text == "100%") == (share == 1)


@pytest.mark.parametrize(
    ("write", "value", "text"),
    [
        (fixed, -1234.567, "−1,234.57"),
        (fixed, -0.001, "0.00"),
        (fixed, np.nan, "–"),
        (nats, -1234.567, "−1,234.57 nats"),
        (nats, 2, "2.00 nats"),
        (number, 0.0123456, "0.0123"),
        (number, 12345.6, "12,346"),
        (number, -1.2345, "−1.23"),
        (number, 0, "0"),
        (number, -1.5, "−1.5"),
        (number, 1e-7, "1e−07"),
        (number, 3e9, "3e+09"),
        (signed, 0.12345, "+0.123"),
        (signed, -3.456, "−3.46"),
        (signed, 0.0, "+0"),
    ],
)
def test_a_number_has_its_digits_its_comma_and_a_true_minus(write, value, text):
    assert write(value) == text


def test_a_number_may_have_more_digits_after_the_point():
    assert fixed(-1.23456, 4) == "−1.2346"
