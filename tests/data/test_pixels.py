"""Rows as images: which shape is proposed, and that pixels come into their places."""

import io

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter, zoom
from sklearn.datasets import load_digits

from appca.data.pixels import PixelShape, likely_shapes, pixel_order
from appca.data.readers import read
from tests.ui.arrivals.test_uploads import npz


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
    np.testing.assert_array_equal(pixel_order(PixelShape(2, 3)), np.arange(6))


def test_any_reader_puts_pixels_that_run_down_the_columns_in_their_places():
    images = blobs(9, 4, 6)
    gaps = images.copy()
    gaps[2, 1, 3] = np.nan
    flat = gaps.transpose(0, 2, 1).reshape(9, -1)
    file = npz(X=flat)
    options = {"missing": "model", "image_shape": (4, 6), "by_column": True}
    data = read("x.npz", io.BytesIO(file), **options)
    np.testing.assert_allclose(data.with_gaps().reshape(9, 4, 6), gaps)
    assert data.provenance["options"]["by_column"] is True
