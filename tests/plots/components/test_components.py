"""Component pictures: colours mean signs, and nothing is out of its place."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from appca.plots.components import (
    NEGATIVE,
    POSITIVE,
    ZERO,
    component_image,
    data_uri,
    diverging,
    montage,
    ranked_loadings,
)


def test_zero_is_white_and_the_ends_are_blue_and_red():
    colours = diverging(np.array([-2.0, 0.0, 2.0, 1.0]))
    assert colours[:3].tolist() == [list(NEGATIVE), list(ZERO), list(POSITIVE)]
    assert colours[3, 0] > colours[3, 2]  # half way: reddish


def test_pixels_of_a_component_keep_their_place():
    component = np.zeros(12)
    component[5] = -1.0  # row 1, column 1 of 3 x 4
    image = component_image(component, (3, 4))
    assert image.shape == (3, 4, 3)
    assert image[1, 1].tolist() == list(NEGATIVE)
    assert (np.delete(image.reshape(-1, 3), 5, axis=0) == ZERO).all()


def test_colour_channels_are_averaged():
    component = np.zeros((2, 2, 3))
    component[0, 0] = [1, 1, 1]
    component[1, 1] = [1, 1, -2]
    image = component_image(component.ravel(), (2, 2, 3))
    assert image[0, 0].tolist() == list(POSITIVE)
    assert image[1, 1].tolist() == list(ZERO)


def test_loadings_come_by_magnitude_with_their_names():
    loadings = ranked_loadings(np.array([0.1, -0.8, 0.4]), ("a", "b", "c"), n=2)
    assert [(item.name, item.value) for item in loadings] == [("b", -0.8), ("c", 0.4)]
    assert [item.share for item in loadings] == [1.0, pytest.approx(0.5, abs=1e-12)]
    assert ranked_loadings(np.array([0.0, 1.0]), None)[0].name == "feature 2"


def test_a_montage_reads_like_a_page():
    images = np.arange(5, dtype=np.uint8)[:, None, None] * np.ones((1, 2, 3), np.uint8)
    sheet = montage(images, columns=3)
    assert sheet.shape == (5, 11)
    assert sheet[0, [0, 4, 8]].tolist() == [0, 1, 2]
    assert sheet[3, [0, 4]].tolist() == [3, 4]
    assert (sheet[2] == 255).all()
    assert (sheet[3:, 8:] == 255).all()


def test_a_data_uri_decodes_to_the_same_pixels():
    image = np.random.default_rng(0).integers(0, 255, (4, 5, 3)).astype(np.uint8)
    head, _, body = data_uri(image).partition(",")
    assert head == "data:image/png;base64"
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(base64.b64decode(body)))), image)
