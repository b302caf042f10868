from types import SimpleNamespace

import numpy as np
import pytest

from appca.canvas import sheets


def dataset(images: np.ndarray) -> SimpleNamespace:
    return SimpleNamespace(
        digest="d",
        n_rows=len(images),
        image_shape=images.shape[1:],
        images=lambda rows: images[rows],
    )


def numbered(n: int, shape: tuple[int, ...]) -> np.ndarray:
    """Images that carry their row number in their pixels."""
    images = np.zeros((n, *shape), np.uint8)
    flat = images.reshape(n, -1)
    flat[:, 0], flat[:, 1] = np.divmod(np.arange(n), 256)
    flat[:, 2:] = np.random.default_rng(0).integers(0, 256, flat[:, 2:].shape)
    return images


@pytest.mark.parametrize("shape", [(4, 6), (5, 3, 3)])
def test_every_row_has_its_own_image(shape):
    images = numbered(97, shape)
    rows = np.array([96, 0, 41])
    np.testing.assert_array_equal(sheets.tiles_of(dataset(images), rows), images[rows])


def test_handwriting_is_ink_and_shaded_objects_are_photographs():
    from sklearn.datasets import load_digits

    digits = np.rint(load_digits().images[:200] * (255 / 16)).astype(np.uint8)
    assert sheets.style_of(digits) == "ink"
    y, x = np.mgrid[-1:1:32j, -1:1:32j]
    ball = np.where(x**2 + y**2 < 0.8, 170 * np.sqrt(np.clip(1 - x**2 - y**2, 0, 1)), 0)
    assert sheets.style_of(np.repeat(np.uint8(ball)[None], 5, axis=0)) == "photo"
    assert sheets.style_of(255 - digits) == "photo"
    assert sheets.style_of(np.zeros((3, 4, 4, 3), np.uint8)) == "photo"
    assert sheets.style_of(np.zeros((3, 4, 4), np.uint8)) == "photo"
