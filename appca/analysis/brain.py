"""Separate a recording into components, in space and time."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

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


def response(step: float) -> np.ndarray:
    """Return the canonical haemodynamic response on a grid of seconds, sum 1.

    A gamma density of shape 6 less a sixth of one of shape 16 (Friston et al. 1998; SPM).
    """
    t = np.arange(0.0, LENGTH, step) + step / 2
    curve = t**5 * np.exp(-t) / math.factorial(5) - t**15 * np.exp(-t) / math.factorial(15) / 6
    return np.asarray(curve / curve.sum())


def stimulus(
    events: Sequence[Event], n_volumes: int, repetition: float, shift: float = 0.0
) -> np.ndarray:
    """Convolve events with the response and take out the drift, as was done with the voxels.

    Events may come `shift` seconds later; one without duration counts as a moment. Returns (T,) of
    length 1, zero where no event is inside the recording.
    """
    return unit(raw_stimulus(events, n_volumes, repetition, shift))


def raw_stimulus(
    events: Sequence[Event], n_volumes: int, repetition: float, shift: float = 0.0
) -> np.ndarray:
    """Return `stimulus` (T,) before the drift is taken out."""
    fine = math.ceil(repetition / _FINE)
    step = repetition / fine
    shown = np.zeros(n_volumes * fine)
    for event in events:
        first = round((event.onset + shift) / step)
        last = max(round((event.onset + event.duration + shift) / step), first + 1)
        shown[max(first, 0) : max(last, 0)] = 1.0
    return np.convolve(shown, response(step))[: len(shown) : fine]


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
    n = int(np.count_nonzero(active))
    order = np.argsort(-values, kind="stable")
    strongest = active[order[:n]]
    squares = np.square(values, dtype=np.float64)
    on = values != 0
    return MapOverlap(
        dice=_share(strongest),  # both sets are of n voxels
        energy_inside=float(squares[active].sum() / squares.sum()) if on.any() else 0.0,
        on=_share(on),
        on_inside=_share(on[active]),
    )


def _share(flags: np.ndarray) -> float:
    return float(flags.mean()) if flags.size else 0.0


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
        models = {
            key: ModelMap(arrays[f"map_{key}"], arrays[f"course_{key}"], arrays[f"errors_{key}"])
            for key in keys
        }
        stimulus = None
        if "stimulus" in arrays:
            threshold = float(arrays["threshold"])
            stimulus = StimulusMap(arrays["stimulus"], arrays["map_t"], threshold)
        return cls(
            mask=arrays["mask"],
            affine=arrays["affine"],
            signal=arrays.get("signal", np.ones(int(arrays["mask"].sum()), np.float32)),
            times=arrays["times"],
            edges=arrays["edges"],
            models=models,
            stimulus=stimulus,
        )

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of the stored experiment."""
        arrays = {name: getattr(self, name) for name in self._fields[:5]}
        if self.stimulus is not None:
            arrays["stimulus"] = self.stimulus.course
            arrays["threshold"] = np.array(self.stimulus.threshold)
            arrays["map_t"] = self.stimulus.t
        for key, model in self.models.items():
            arrays[f"map_{key}"] = model.values
            arrays[f"course_{key}"] = model.course
            arrays[f"errors_{key}"] = model.errors
        return arrays

    def different(self, keys: Iterable[str]) -> list[str]:
        """Leave out models whose component is another one's: PPCA only adds them to fewer."""
        kept: list[str] = []
        for key in keys:
            course = self.models[key].course
            if not any(np.allclose(course, self.models[k].course, atol=1e-3) for k in kept):
                kept.append(key)
        return kept
