"""What components of a recording are in the brain: the slice with most of each, as a picture."""

import numpy as np
from PIL import Image

from appca.data.brain.cleaning import MEAN_SIGNAL
from appca.data.brain.places import upright, voxels_of
from appca.data.dataset import Dataset
from appca.plots.components.components import DARK, LIGHT

_STRONG = 0.995  # quantile of the magnitudes that gets full colour
_WARM = np.array([[150, 20, 20], [235, 90, 20], [255, 225, 90]], dtype=float)
_COLD = np.array([[20, 50, 140], [40, 130, 220], [150, 225, 255]], dtype=float)


def painted(signal: np.ndarray, values: np.ndarray, inside: np.ndarray, limit: float) -> np.ndarray:
    """Lay values over a grey picture of one shape: warm above zero, cold below, clear at zero.

    What is not `inside` the mask is left clear; `limit` is the magnitude of full colour. Returns
    uint8 (..., 4): red, green, blue and cover.
    """
    top = float(np.quantile(signal[inside], 0.99)) if inside.any() else 1.0
    grey = np.clip(45 + 165 * signal / (top or 1.0), 0, 220)[..., None]
    strength = np.clip(np.abs(values) / (limit or 1.0), 0, 1)
    places = 2 * strength
    stops = np.where((values > 0)[..., None, None], _WARM, _COLD)
    low = np.minimum(places.astype(int), 1)[..., None, None]
    first = np.take_along_axis(stops, low, axis=-2)[..., 0, :]
    second = np.take_along_axis(stops, low + 1, axis=-2)[..., 0, :]
    colour = first + (second - first) * (places - low[..., 0, 0])[..., None]
    cover = np.sqrt(strength)[..., None]
    mixed = np.rint(grey + (colour - grey) * cover).astype(np.uint8)
    opaque = np.where(inside[..., None], 255, 0).astype(np.uint8)
    return np.concatenate([mixed, opaque], axis=-1)


def strong(values: np.ndarray) -> float:
    """Return the magnitude that gets full colour; the few largest do not bleach all others."""
    there = np.abs(values[values != 0])
    return float(np.quantile(there, _STRONG)) if there.size else 1.0


def slices_of(
    dataset: Dataset, scores: np.ndarray, shape: tuple[int, int], *, dark: bool
) -> list[np.ndarray]:
    """Return of the scores (V, K) of voxels the slices where they are largest, uint8 (h, w, 3)."""
    facts = dataset.provenance
    places = tuple(voxels_of(dataset).T)
    affine = np.array(facts["affine"], dtype=float).reshape(4, 4)

    def volume(values: np.ndarray) -> np.ndarray:
        filled = np.zeros(facts["grid"], dtype=np.float64)
        filled[places] = values
        return upright(filled, affine)

    signal = dataset.labels.get(MEAN_SIGNAL, np.ones(dataset.n_rows))
    inside, grey = volume(np.ones(dataset.n_rows)) > 0, volume(signal)
    box = tuple(slice(int(at.min()), int(at.max()) + 1) for at in np.nonzero(inside.any(axis=2)))
    ground = (DARK if dark else LIGHT)[1]
    pictures = []
    for column in scores.T:
        values = volume(column)
        height = int(np.square(values).sum(axis=(0, 1)).argmax())
        cut = painted(grey[..., height], values[..., height], inside[..., height], strong(column))
        pictures.append(_fitted(cut[box][:, ::-1].transpose(1, 0, 2), shape, ground))
    return pictures


def _fitted(cut: np.ndarray, shape: tuple[int, int], ground: tuple[int, int, int]) -> np.ndarray:
    """Bring a slice (h, w, 4), with its cover, into the middle of a picture."""
    scale = min(shape[0] / cut.shape[0], shape[1] / cut.shape[1])
    height, width = (max(1, round(side * scale)) for side in cut.shape[:2])
    drawn = np.asarray(Image.fromarray(cut).resize((width, height), Image.Resampling.NEAREST))
    picture = np.tile(np.array(ground, np.uint8), (*shape, 1))
    top, left = (shape[0] - height) // 2, (shape[1] - width) // 2
    part = picture[top : top + height, left : left + width]
    part[:] = np.where(drawn[..., 3:] > 0, drawn[..., :3], part)
    return picture
