"""What separating a recording leaves: where and when each model's component is, as types."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np


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
