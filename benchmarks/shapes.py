"""Rows that the benchmarks of fits share, float32."""

import numpy as np

from appca.data.preprocessing import Preprocessing
from appca.data.sources import load


def mnist(n: int) -> np.ndarray:
    """Return the first n digits, pixels from 0 to 1."""
    return load("mnist", n=n).X.astype(np.float32) / np.float32(255)


def odd_digits() -> np.ndarray:
    """Return 2,500 odd digits in 350 principal coordinates."""
    dataset = load("mnist", per_class=550, classes=("1", "3", "5", "7", "9"))
    X = Preprocessing(divide=255.0, centre=True, pca=350).fit(dataset.X).transform(dataset.X)
    return np.random.default_rng(0).permutation(np.asarray(X, np.float32))[:2500]
