"""Features in order: seen from names and values, stated, and drawn as lines."""

from dataclasses import replace

import numpy as np
import pytest

from appca.canvas.sheets import sheets_of
from appca.data.dataset import Dataset, follow_each_other
from appca.plots.components import SPARK, lines_of_rows, picture_shape, row_lines
from tests.data.test_pixels import digits


def spectra(names=None, n: int = 60) -> Dataset:
    rng = np.random.default_rng(0)
    at = np.linspace(400, 700, 61)
    peaks = np.stack([np.exp(-(((at - middle) / 30) ** 2)) for middle in (450, 560, 640)])
    X = np.abs(rng.normal(size=(n, 3))) @ peaks + 0.01 * rng.normal(size=(n, 61))
    names = tuple(f"{x:g} nm" for x in at) if names is None else names
    return Dataset("spectra", X, np.arange(n).astype(str), feature_names=names)


def test_wavelengths_in_names_and_smooth_rows_make_an_order():
    assert spectra().is_ordered
    assert picture_shape(spectra()) == (61,)
    shuffled = tuple(f"{x} nm" for x in np.random.default_rng(1).permutation(61))
    assert not spectra(shuffled).is_ordered
    assert not spectra(tuple(f"gene {chr(65 + j % 26)}{j // 26}" for j in range(61))).is_ordered


def test_rows_without_smoothness_and_rows_like_images_have_no_order():
    rng = np.random.default_rng(0)
    assert not follow_each_other(rng.normal(size=(80, 64)), None)
    assert not follow_each_other(digits().reshape(200, -1), None)
    curves = np.cumsum(rng.normal(size=(80, 64)), axis=1)
    assert follow_each_other(curves, None)
    assert not follow_each_other(curves[:, :9], None), "too few"


@pytest.mark.parametrize(
    ("name", "is_ordered"),
    [
        (lambda j: f"t{j * j}", True),
        (lambda j: f"{9.5 - j / 2} s", True),
        (lambda j: f"{400 + 11.5 * j}".replace(".", ","), True),
        (lambda j: f"{'ab'[j % 2]}{j}", False),
        (lambda j: f"x{j ^ 1}", False),
        (lambda j: f"time {'x' * j}", False),
    ],
)
def test_numbers_in_names_tell_the_order(name, is_ordered):
    assert spectra(tuple(map(name, range(61)))).is_ordered is is_ordered


def test_a_line_goes_through_its_values():
    rows = np.array([[0.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    drawn = lines_of_rows(rows, (0.0, 1.0), (21, 41))
    assert drawn.shape == (2, 21, 41)
    assert drawn[0, 0].argmax() in (19, 20, 21)  # the peak, at the top in the middle
    assert drawn[0, -1, [0, -1]].min() > 0.4
    assert drawn[1, :2].min(axis=1).max() == 1.0
    assert drawn[1, 4:].max() == 0.0


def test_rows_become_sparklines_of_one_scale_where_an_order_is_found_or_stated():
    data, rows = spectra(), np.array([3, 5])
    sheets = sheets_of(data, np.arange(60))
    assert sheets.header["tile"] == [*SPARK, 1]
    np.testing.assert_array_equal(sheets.images(rows), row_lines(data, rows))
    for stated in (True, False):
        data = replace(spectra(), provenance={"ordered": stated})
        assert data.is_ordered is stated
        assert (sheets_of(data, np.arange(60)) is not None) is stated
