"""Shape of what an image shows, as one number an image: ink, slant and width; and effect sizes."""

from typing import NamedTuple

import numpy as np

LIT = 32  # grey levels; darker pixels are ground
_LEAST = 1e-12


class Effect(NamedTuple):
    """A measure in a group of rows against all other rows."""

    rows: int
    mean: float
    sd: float
    size: float  # Cohen's d: difference of the means in pooled standard deviations
    error: float  # standard error of d


def ink(images: np.ndarray) -> np.ndarray:
    """Ink mass (N,): how many fully lit pixels the light of uint8 images (N, h, w) would fill."""
    return np.asarray(images.sum(axis=(1, 2), dtype=np.float64) / 255.0)


def slant(images: np.ndarray) -> np.ndarray:
    """Slant (N,) of uint8 images (N, h, w) in degrees, positive to the right.

    The arctan of the regression of x on height: with second moments of the light, tan(slant) =
    cov(x, -y) / var(y), the shear that would make the light upright.
    """
    n, h, w = images.shape
    light = images.reshape(n, -1).astype(np.float64)
    total = np.maximum(light.sum(axis=1), _LEAST)
    up, right = -np.repeat(np.arange(h, dtype=float), w), np.tile(np.arange(w, dtype=float), h)
    mean_up, mean_right = light @ up / total, light @ right / total
    across = light @ (up * right) / total - mean_up * mean_right
    tall = light @ (up * up) / total - mean_up**2
    return np.asarray(np.degrees(np.arctan2(across, np.maximum(tall, _LEAST))))


def width(images: np.ndarray) -> np.ndarray:
    """Width (N,) of what is lit in uint8 images (N, h, w), as a share of the image's.

    From the first lit column to the last.
    """
    lit: np.ndarray = np.any(images >= LIT, axis=1)
    first, last = lit.argmax(axis=1), lit.shape[1] - lit[:, ::-1].argmax(axis=1)
    return np.asarray(np.where(lit.any(axis=1), last - first, 0) / lit.shape[1])


def effect(values: np.ndarray, inside: np.ndarray) -> Effect:
    """Compare values (N,) of the rows `inside`, (N,) bool, with those of all others.

    At least two rows must be inside and two outside; else size and error are NaN.
    """
    members, rest = values[inside], values[~inside]
    n, m = len(members), len(rest)
    mean, sd = (float(members.mean()), float(members.std(ddof=1))) if n > 1 else (np.nan, np.nan)
    if n < 2 or m < 2:
        return Effect(n, mean, sd, np.nan, np.nan)
    pooled = np.sqrt(((n - 1) * members.var(ddof=1) + (m - 1) * rest.var(ddof=1)) / (n + m - 2))
    size = float((members.mean() - rest.mean()) / max(pooled, _LEAST))
    return Effect(n, mean, sd, size, float(np.sqrt((n + m) / (n * m) + size**2 / (2 * (n + m)))))


def within_classes(values: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Values (N,) less the mean of their class: what a difference in classes cannot explain."""
    counts = np.maximum(np.bincount(codes), 1)
    means = np.bincount(codes, weights=values) / counts
    return np.asarray(values - means[codes])
