"""Separate a recording into components, in space and time."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from appca.data.brain import Event, cleaned, drift

LENGTH = 32.0  # seconds after which blood has forgotten
_FINE = 0.1  # seconds, at most, of the grid that events are laid on
FAMILY_WISE = 0.05  # probability of any false voxel in the reference map


class Reference(NamedTuple):
    """The map of a linear model with the stimulus as its regressor."""

    t: np.ndarray  # (V,) t values
    threshold: float  # of t, corrected for all voxels
    active: np.ndarray  # (V,) bool


class MapOverlap(NamedTuple):
    """Where a component's map is, against the voxels active in the reference."""

    dice: float  # of the strongest voxels, as many as are active, and the active ones
    energy_inside: float  # share of the map's squared values at active voxels
    on: float  # share of all voxels with a value other than zero
    on_inside: float  # the same of the active voxels


def stimulus(
    events: Sequence[Event], n_volumes: int, repetition: float, shift: float = 0.0
) -> np.ndarray:
    """Return `raw_stimulus` (T,) without its drift, of length 1; zero without an event inside."""
    return unit(raw_stimulus(events, n_volumes, repetition, shift))


def raw_stimulus(
    events: Sequence[Event], n_volumes: int, repetition: float, shift: float = 0.0
) -> np.ndarray:
    """Convolve events with the response; return the course (T,) that blood answers with.

    Events may come `shift` seconds later; one without duration counts as a moment. The response is
    the canonical one (Friston et al. 1998; SPM), brought to sum 1: a gamma density of shape 6 less
    a sixth of one of shape 16.
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
    # what rounding leaves of a pure drift is no time course
    real = length > 1e-9 * np.linalg.norm(course, axis=-1, keepdims=True)
    return np.asarray(np.divide(left, length, out=np.zeros_like(left), where=real))


def circular_p(courses: np.ndarray, raw: np.ndarray) -> float:
    """Probability that a shifted stimulus is met as well by any of the components.

    Every circular shift of `raw` (T,), a stimulus with its drift, is tried, and each may choose its
    best of the courses (K, T) of length 1, as the true one did. Returns the share of the T shifts,
    the true one included, that reach the true one's largest |r|.
    """
    T = len(raw)
    turned = unit(np.stack([np.roll(raw, shift) for shift in range(T)]))
    best = np.abs(turned @ courses.T).max(axis=1)
    return float(np.mean(best >= best[0] * (1 - 1e-12)))


def reference(series: np.ndarray, raw: np.ndarray) -> Reference:
    """Fit drift and stimulus (T,) to every voxel of series (V, T), and test the stimulus.

    Noise follows a first-order autoregression with the coefficient rho of the residuals of least
    squares, in steps of 1/100: rows t become x(t) - rho x(t - 1), and are fitted once more, as by
    nilearn's `run_glm`. Voxels are active above the one-sided threshold that Bonferroni's rule asks
    for at 5%.
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


def place(values: np.ndarray, active: np.ndarray) -> MapOverlap:
    """Compare a component's map (V,), positive with the stimulus, with the active voxels (V,).

    Shares of nothing are 0.
    """

    def share(flags: np.ndarray) -> float:
        return float(flags.mean()) if flags.size else 0.0

    on, squares = values != 0, np.square(values, dtype=np.float64)
    strongest = np.argsort(-values, kind="stable")[: np.count_nonzero(active)]
    inside = float(squares[active].sum() / squares.sum()) if on.any() else 0.0
    return MapOverlap(share(active[strongest]), inside, share(on), share(on[active]))


def phase_randomised(rng: np.random.Generator, series: np.ndarray) -> np.ndarray:
    """Give every frequency of every voxel in series (V, T) a random phase; return float32, cleaned.

    Each voxel keeps its spectrum; what voxels have in common is lost. (The same phases for all
    voxels would only turn the space of time courses, and leave a model's errors as they are.)
    """
    T = series.shape[1]
    spectrum = np.fft.rfft(series, axis=1)
    free = slice(1, (T + 1) // 2)  # the mean and, for even T, the last frequency are real
    turns = rng.random(spectrum[:, free].shape, dtype=np.float32)
    spectrum[:, free] = np.abs(spectrum[:, free]) * np.exp(2j * np.pi * turns)
    return cleaned(np.fft.irfft(spectrum, T, axis=1))


class ModelMap(NamedTuple):
    """The component of one model that follows the stimulus."""

    values: np.ndarray  # (V,) its scores
    course: np.ndarray  # (T,)
    errors: np.ndarray  # (bins,) voxels by their root mean square error


_OF_MODEL = ("map", "course", "errors")  # before the key, in the names of stored arrays


class StimulusMap(NamedTuple):
    """What events say without a model of components."""

    course: np.ndarray  # (T,) the stimulus, as blood answers it
    t: np.ndarray  # (V,) t values of a linear model with that regressor
    threshold: float  # of t, corrected for all voxels


class BrainMaps(NamedTuple):
    """Maps of one recording."""

    mask: np.ndarray  # (x, y, z) bool, V voxels inside
    affine: np.ndarray  # (4, 4) indices to millimetres
    signal: np.ndarray  # (V,) mean of each voxel; all alike where it does not ship with the maps
    times: np.ndarray  # (T,) seconds
    edges: np.ndarray  # (bins + 1,) of the errors
    models: dict[str, ModelMap]
    stimulus: StimulusMap | None  # None without events

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "BrainMaps":
        """Rebuild what `to_arrays` took apart."""
        keys = [name.removeprefix("course_") for name in arrays if name.startswith("course_")]
        models = {key: ModelMap(*(arrays[f"{part}_{key}"] for part in _OF_MODEL)) for key in keys}
        stimulus = None
        if "stimulus" in arrays:
            threshold = float(arrays["threshold"])
            stimulus = StimulusMap(arrays["stimulus"], arrays["map_t"], threshold)
        alike = {"signal": np.ones(int(arrays["mask"].sum()), np.float32)}
        plain: dict[str, Any] = {name: (alike | dict(arrays))[name] for name in cls._fields[:5]}
        return cls(**plain, models=models, stimulus=stimulus)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of the stored experiment."""
        arrays = dict(zip(self._fields[:5], self[:5], strict=True))
        if self.stimulus is not None:
            course, t, threshold = self.stimulus
            arrays |= {"stimulus": course, "threshold": np.array(threshold), "map_t": t}
        for key, model in self.models.items():
            arrays |= {f"{part}_{key}": x for part, x in zip(_OF_MODEL, model, strict=True)}
        return arrays

    def different(self, keys: Iterable[str]) -> list[str]:
        """Leave out models whose component is another one's: PPCA only adds them to fewer."""
        kept: dict[str, np.ndarray] = {}
        for key in keys:
            course = self.models[key].course
            if not any(np.allclose(course, other, atol=1e-3) for other in kept.values()):
                kept[key] = course
        return list(kept)
