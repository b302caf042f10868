"""Analyze the components of a brain recording in space and time."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from appca.data.brain import Event, drift

LENGTH, _FINE = 32.0, 0.1  # seconds: of the blood response; maximum step of the grid for events
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
    """Return the expected course (T,) of events, `shift` seconds later, in the blood response.

    An event without duration is an impulse. The canonical response (Friston et al. 1998; SPM) is
    a gamma density of shape 6 minus a sixth of the one of shape 16, scaled to sum 1.
    """
    fine = math.ceil(repetition / _FINE)
    step, shown = repetition / fine, np.zeros(n_volumes * fine)
    for event in events:
        first = round((event.onset + shift) / step)
        last = max(round((event.onset + event.duration + shift) / step), first + 1)
        shown[max(first, 0) : max(last, 0)] = 1.0
    t = np.arange(0.0, LENGTH, step) + step / 2
    curve = t**5 * np.exp(-t) / math.factorial(5) - t**15 * np.exp(-t) / math.factorial(15) / 6
    return np.convolve(shown, curve / curve.sum())[: len(shown) : fine]


def unit(course: np.ndarray) -> np.ndarray:
    """Remove the drift from time courses (..., T) and scale each to length 1."""
    trend = drift(course.shape[-1])
    left = course - (course @ trend) @ trend.T
    length = np.linalg.norm(left, axis=-1, keepdims=True)
    # removing a pure drift leaves only rounding errors
    real = length > 1e-9 * np.linalg.norm(course, axis=-1, keepdims=True)
    return np.asarray(np.divide(left, length, out=np.zeros_like(left), where=real))


def reference(series: np.ndarray, raw: np.ndarray) -> Reference:
    """Fit drift and stimulus (T,) to every voxel of series (V, T), and test the stimulus effect.

    Rho is the first-order autocorrelation of the least-squares residuals, in steps of 1/100.
    Rows become x(t) - rho x(t - 1) and are fitted again, as in nilearn's `run_glm`. Voxels are
    active above the one-sided 5% threshold with Bonferroni's correction.
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
    """Compare a component's map (V,), signed to increase with the stimulus, with the active voxels.

    `dice` compares the active voxels with as many of the strongest. `energy_inside` is the share of
    the map's squares, `on` and `on_inside` the shares of all and of active voxels that are nonzero.
    """
    on, squares = values != 0, np.square(values, dtype=np.float64)
    strongest = np.argsort(-values, kind="stable")[: np.count_nonzero(active)]
    inside = float(squares[active].sum() / squares.sum()) if on.any() else 0.0
    at = (active[strongest], on[active]) if active.any() else (np.zeros(1), np.zeros(1))
    shares = at[0].mean(), inside, on.mean(), at[1].mean()
    return dict(zip(OVERLAP, map(float, shares), strict=True))
