"""Thumbnails: a panel for each subspace, in the classes' colours, and the same in the dark."""

import numpy as np

from appca.plots.data import HEIGHT, WIDTH, in_the_dark, thumbnail
from appca.plots.style import CATEGORICAL
from tests.fitted_runs import fitted_run


def test_a_panel_for_each_subspace_fills_the_picture_in_the_colours_of_the_classes():
    active = np.zeros((60, 3), dtype=bool)
    active[:30, :2] = active[30:, 1:] = True
    codes = np.repeat([0, 1], 30)
    picture = thumbnail(fitted_run(active), codes)
    assert picture.shape == (HEIGHT, WIDTH, 3)
    for half, colour in ((picture[:, : WIDTH // 2], 0), (picture[:, WIDTH // 2 :], 1)):
        own = np.array(list(bytes.fromhex(CATEGORICAL[colour][1:])))
        assert (half == own).all(axis=2).any()


def test_in_the_dark_white_is_black_and_hues_stay():
    picture = np.array([[[255, 255, 255], [200, 40, 60], [0, 0, 0]]], np.uint8)
    dark = in_the_dark(picture)
    assert dark.tolist() == [[[0, 0, 0], [215, 55, 75], [255, 255, 255]]]
    assert np.array_equal(in_the_dark(dark), picture)
