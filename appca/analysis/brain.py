"""Separate a recording into components, in space and time."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from appca.data.brain import Event, cleaned, drift

LENGTH = 32.0  # seconds after which blood has forgotten
_FINE = 0.1  # seconds, at most, of the grid that events are laid on
OVERLAP = "dice", "energy_inside", "on", "on_inside"
FAMILY_WISE = 0.05  # probability of any false voxel in the reference map


class Reference(NamedTuple):
    """The map of a linear model with the stimulus as its regressor."""

    t: np.ndarray  # (V,) t values
    threshold: float  # threshold of t, corrected for all voxels
    active: np.ndarray  # (V,) bool


def stimulus(
    events: Sequence[Event], n_volumes: int, repetition: float, shift: float = 0.0
) -> np.ndarray:
    """Convolve events, `shift` seconds later, with the response; return blood's course (T,).

    An event without duration counts as a moment. The response is the canonical one (Friston et al.
    1998; SPM), brought to sum 1: a gamma density of shape 6 less a sixth of one of shape 16.
    """
    fine = math.ceil(repetition / _FINE)
    step = repetition / fine
    shown = np.zeros(n_volumes * fine)
    for event in events:
        first = round((event.onset + shift) / step)
        last = max(round((event.onset + event.duration + shift) / step), first + 1)
        shown[max(first, 0) : max(last, 0)] = 1.0
    t = np.arange(0.0, LENGTH, step) + step / 2
    curve = t**5 * np.exp(-t) / math.factorial(5) - t**15 * np.exp(-t) / math.factorial(15) / 6
    return np.convolve(shown, curve / curve.sum())[: len(shown) : fine]


def unit(course: np.ndarray) -> np.ndarray:
    """Take the drift out of time courses (..., T) and bring each to length 1."""
    trend = drift(course.shape[-1])
    left = course - (course @ trend) @ trend.T
    length = np.linalg.norm(left, axis=-1, keepdims=True)
    # a pure drift leaves rounding errors, not a time course
    real = length > 1e-9 * np.linalg.norm(course, axis=-1, keepdims=True)
    return np.asarray(np.divide(left, length, out=np.zeros_like(left), where=real))


def circular_p(courses: np.ndarray, raw: np.ndarray) -> float:
    """Share of all T circular shifts of a stimulus `raw` (T,) that are met as well as itself.

    That is by the best of the courses (K, T) of length 1, in |r|. `raw` has its drift.
    """
    turned = unit(np.stack([np.roll(raw, shift) for shift in range(len(raw))]))
    best = np.abs(turned @ courses.T).max(axis=1)
    return float(np.mean(best >= best[0] * (1 - 1e-12)))


def reference(series: np.ndarray, raw: np.ndarray) -> Reference:
    """Fit drift and stimulus (T,) to every voxel of series (V, T), and test the stimulus.

    With rho, in steps of 1/100, the first-order autoregression of the residuals of least squares,
    rows t become x(t) - rho x(t - 1) and are fitted again, as by nilearn's `run_glm`. Voxels are
    active above the one-sided threshold of Bonferroni's rule at 5%.
    """
    from scipy.stats import t as student

    design = np.column_stack([raw / np.abs(raw).max(), drift(len(raw))])
    T, width = design.shape
    Y = series.T.astype(np.float64)
    left = Y - design @ (np.linalg.pinv(design) @ Y)
    lagged = (left[:-1] * left[1:]).sum(axis=0) / (T - 1)
    rho = np.trunc(100 * lagged / (np.square(left).sum(axis=0) / T)) / 100
    freedom, t = T - width, np.empty(len(series))
    for value in np.unique(rho):
        voxels = rho == value
        X, white = design.copy(), Y[:, voxels]
        X[1:] -= value * design[:-1]
        white[1:] -= value * Y[:-1, voxels]
        inverse = np.linalg.pinv(X)
        weights = inverse @ white
        noise = np.square(white - X @ weights).sum(axis=0) / freedom
        t[voxels] = weights[0] / np.sqrt(noise * (inverse[0] @ inverse[0]))
    threshold = float(student.isf(FAMILY_WISE / len(series), freedom))
    return Reference(t.astype(np.float32), threshold, t > threshold)


def place(values: np.ndarray, active: np.ndarray) -> dict[str, float]:
    """Compare a component's map (V,), positive with the stimulus, with the active voxels (V,).

    `dice` is of the strongest voxels, as many as are active, and the active ones; `energy_inside`
    the share of the map's squares at active voxels; `on` and `on_inside` the shares of all and of
    active voxels with a value other than zero. Shares of nothing are 0.
    """

    def share(flags: np.ndarray) -> float:
        return float(flags.mean()) if flags.size else 0.0

    on, squares = values != 0, np.square(values, dtype=np.float64)
    strongest = np.argsort(-values, kind="stable")[: np.count_nonzero(active)]
    inside = float(squares[active].sum() / squares.sum()) if on.any() else 0.0
    shares = share(active[strongest]), inside, share(on), share(on[active])
    return dict(zip(OVERLAP, shares, strict=True))


def phase_randomised(rng: np.random.Generator, series: np.ndarray) -> np.ndarray:
    """Give every frequency of every voxel in series (V, T) a random phase; return float32, cleaned.

    Each voxel keeps its spectrum; what voxels have in common is lost.
    """
    T = series.shape[1]
    spectrum = np.fft.rfft(series, axis=1)
    free = slice(1, (T + 1) // 2)  # the mean and, for even T, the last frequency are real
    turns = rng.random(spectrum[:, free].shape, dtype=np.float32)
    spectrum[:, free] = np.abs(spectrum[:, free]) * np.exp(2j * np.pi * turns)
    return cleaned(np.fft.irfft(spectrum, T, axis=1))
