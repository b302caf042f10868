"""The data of `benchmarks.measure`: rows to fit, rows held back, and how many components."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from appca.data.preprocessing import Preprocessing
from appca.data.sources import load

HELD_BACK = 2000  # rows of MNIST; of the smaller sets every tenth row


class Shape(NamedTuple):
    """A data set with the size of the models fitted to it."""

    name: str
    draw: Callable[[], tuple[np.ndarray, np.ndarray]]  # rows to fit, rows held back; float32
    n_components: int
    n_active: int


def mnist(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first n digits, pixels from 0 to 1, and 2,000 others."""
    X = load("mnist", n=n + HELD_BACK).X.astype(np.float32) / np.float32(255)
    return X[:n], X[n:]


def coil20() -> tuple[np.ndarray, np.ndarray]:
    """Return COIL-20 at 128 x 128, every tenth picture held back."""
    return tenth(load("coil20", size=128).X.astype(np.float32) / np.float32(255))


def odd_digits() -> tuple[np.ndarray, np.ndarray]:
    """Return 2,500 odd digits in 350 principal coordinates, and 250 more."""
    dataset = load("mnist", per_class=550, classes=("1", "3", "5", "7", "9"))
    X = Preprocessing(divide=255.0, centre=True, pca=350).fit(dataset.X).transform(dataset.X)
    X = np.random.default_rng(0).permutation(np.asarray(X, np.float32))
    return X[:2500], X[2500:]


def synthetic(n: int, d: int, k: int, n_active: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows of the model, scores of variance 4 and noise of 0.25, and a tenth more held back.

    Block by block, so that no more than the float32 result is ever held.
    """
    rng = np.random.default_rng(0)
    W = np.linalg.qr(rng.standard_normal((d, k)))[0].astype(np.float32)
    X = np.empty((n + max(n // 10, 10), d), np.float32)
    for start in range(0, len(X), 10_000):
        part = X[start : start + 10_000]
        active = rng.random((len(part), k)).argsort(axis=1) < n_active
        scores = 2.0 * rng.standard_normal((len(part), k), dtype=np.float32) * active
        part[:] = scores @ W.T + 0.5 * rng.standard_normal(part.shape, dtype=np.float32)
    return X[:n], X[n:]


def tenth(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Hold back every tenth row."""
    back = np.arange(len(X)) % 10 == 9
    return X[~back], X[back]


STANDARD = [  # in the order of their size N D
    Shape("odd digits 2,500 x 350", odd_digits, 100, 50),
    Shape("MNIST 10,000 x 784", lambda: mnist(10_000), 10, 3),
    Shape("COIL-20 1,296 x 16,384", coil20, 12, 6),
    Shape("MNIST 60,000 x 784", lambda: mnist(60_000), 10, 3),
]
LARGE = [Shape("voxels 215,302 x 989", lambda: synthetic(215_302, 989, 500, 200), 500, 200)]
QUICK = [
    Shape("synthetic 2,000 x 40", lambda: synthetic(2000, 40, 6, 2), 6, 2),
    Shape("synthetic 300 x 500", lambda: synthetic(300, 500, 6, 3), 6, 3),
]
