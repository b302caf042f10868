"""Rows as images or curves: which shape or order is seen, and how it is drawn."""

import io
from dataclasses import replace

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter, zoom
from sklearn.datasets import load_digits

from appca.canvas.sheets import sheets_of
from appca.data.dataset import Dataset, follow_each_other
from appca.data.pixels import PixelShape, likely_shapes, pixel_order
from appca.data.preprocessing import suggest
from appca.data.readers import read
from appca.ordered import lines_of_rows
from appca.plots.components import SPARK, picture_shape, row_lines


def digits() -> np.ndarray:
    images = [zoom(image, 2, order=1) for image in load_digits().images[:200]]
    return np.stack(images) / 16


def blobs(n: int, h: int, w: int) -> np.ndarray:
    return np.stack(
        [gaussian_filter(np.random.default_rng(i).normal(size=(h, w)), 1.5) for i in range(n)]
    )


@pytest.mark.parametrize("images", [digits(), blobs(60, 12, 20), blobs(60, 24, 10)])
def test_the_shape_of_pictures_is_the_first_that_is_proposed(images):
    n, h, w = images.shape
    best = likely_shapes(images.reshape(n, -1))[0]
    assert best.is_likely
    assert best.shape == PixelShape(h, w)
    turned = likely_shapes(images.transpose(0, 2, 1).reshape(n, -1), prefer_columns=True)[0]
    assert turned.shape == PixelShape(h, w, by_column=True)


def test_rows_that_are_no_pictures_are_not_taken_for_some():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(80, 256))
    series = np.cumsum(rng.normal(size=(80, 256)), axis=1)
    shuffled = digits().reshape(200, -1)[:, rng.permutation(256)]
    for X in (noise, series, shuffled, rng.normal(size=(80, 3)) @ rng.normal(size=(3, 240))):
        assert not any(each.is_likely for each in likely_shapes(X))
    assert likely_shapes(rng.normal(size=(9, 251))) == []  # a prime


def test_colours_and_columns_come_into_row_major_order():
    images = np.arange(2 * 3 * 3).reshape(2, 3, 3)
    down = images.transpose(2, 1, 0).ravel()
    order = pixel_order(PixelShape(2, 3, 3, by_column=True))
    np.testing.assert_array_equal(down[order].reshape(2, 3, 3), images)
    gaps = blobs(9, 4, 6)
    gaps[2, 1, 3] = np.nan
    np.savez(file := io.BytesIO(), X=gaps.transpose(0, 2, 1).reshape(9, -1))
    options = {"missing": "model", "image_shape": (4, 6), "by_column": True}
    data = read("x.npz", file, **options)
    np.testing.assert_allclose(data.with_gaps().reshape(9, 4, 6), gaps)
    assert data.provenance["options"]["by_column"] is True


def spectra(names=None, n: int = 60) -> Dataset:
    rng = np.random.default_rng(0)
    at = np.linspace(400, 700, 61)
    peaks = np.stack([np.exp(-(((at - middle) / 30) ** 2)) for middle in (450, 560, 640)])
    X = np.abs(rng.normal(size=(n, 3))) @ peaks + 0.01 * rng.normal(size=(n, 61))
    names = tuple(f"{x:g} nm" for x in at) if names is None else names
    return Dataset("spectra", X, np.arange(n).astype(str), feature_names=names)


@pytest.mark.parametrize(
    ("name", "is_ordered"),
    [
        (lambda j: f"t{j * j}", True),
        (lambda j: f"{9.5 - j / 2} s", True),
        (lambda j: f"{400 + 11.5 * j}".replace(".", ","), True),
        (lambda j: f"{'ab'[j % 2]}{j}", False),
        (lambda j: f"x{j ^ 1}", False),
        (lambda j: f"gene {chr(65 + j % 26)}{j // 26}", False),
        (lambda j: f"time {'x' * j}", False),
    ],
)
def test_numbers_in_names_tell_the_order_and_else_smoothness(name, is_ordered):
    assert spectra(tuple(map(name, range(61)))).is_ordered is is_ordered
    assert spectra().is_ordered
    assert picture_shape(spectra()) == (61,)
    rng = np.random.default_rng(0)
    assert not follow_each_other(rng.normal(size=(80, 64)), None)
    assert not follow_each_other(digits().reshape(200, -1), None)
    curves = np.cumsum(rng.normal(size=(80, 64)), axis=1)
    assert follow_each_other(curves, None)
    assert not follow_each_other(curves[:, :9], None), "too few"


def test_rows_become_sparklines_of_one_scale_where_an_order_is_found_or_stated():
    data, rows = spectra(), np.array([3, 5])
    sheets = sheets_of(data, np.arange(60))
    assert sheets.header["tile"] == [*SPARK, 1]
    np.testing.assert_array_equal(sheets.images(rows), row_lines(data, rows))
    for stated in (True, False):
        data = replace(spectra(), provenance={"ordered": stated})
        assert data.is_ordered is stated
        assert suggest(data).scale == ("global" if stated else "feature")
        assert (sheets_of(data, np.arange(60)) is not None) is stated
    rows = np.array([[0.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    drawn = lines_of_rows(rows, (0.0, 1.0), (21, 41))
    assert drawn[0, 0].argmax() in (19, 20, 21)  # the peak, at the top in the middle
    assert drawn[0, -1, [0, -1]].min() > 0.4
    assert drawn[1, :2].min(axis=1).max() == 1.0
    assert drawn[1, 4:].max() == 0.0
