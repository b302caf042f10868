"""A made-up brain recording: signals in known regions, so that what a model finds can be judged."""

from typing import NamedTuple

import numpy as np

SHAPE, SPACING = (20, 24, 16), 8.0  # voxels; millimetres between them
REPETITION, VOLUMES = 2.0, 120  # seconds a volume takes; number of volumes
BLOCK, REST = 16.0, 14.0  # seconds of pictures, seconds of a blank screen
CONDITIONS = ("faces", "places")
NOISE = 0.55  # standard deviation of a voxel's own noise, in per cent of its mean signal
BACKGROUND = "background"
# Region: centre and radius in units of the half axes of the brain, and its share of each source.
REGIONS = {
    "visual cortex": ((0.0, -0.72, 0.0), 0.3, {"faces": 1.6, "places": 1.6}),
    "face area": ((0.48, -0.35, -0.4), 0.24, {"faces": 1.8, "network": 0.3}),
    "place area": ((-0.48, -0.35, -0.4), 0.24, {"places": 1.8, "network": 0.3}),
    "default network": ((0.0, 0.55, 0.35), 0.3, {"faces": -0.8, "places": -0.8, "network": 1.0}),
    "vessel": ((0.0, 0.0, -0.75), 0.18, {"pulse": 2.2}),
}


class Recording(NamedTuple):
    """Everything the file holds; V voxels lie in the mask, in C order."""

    mask: np.ndarray  # SHAPE, bool
    mean: np.ndarray  # SHAPE, uint8: the signal's mean, as a picture to draw maps onto
    series: np.ndarray  # (V, VOLUMES), int16: signal change in hundredths of a per cent
    region: np.ndarray  # (V,), text
    affine: np.ndarray  # (4, 4), voxel indices to millimetres
    repetition: np.ndarray  # seconds


def events() -> list[tuple[float, float, str]]:
    """Onset and duration in seconds, and condition, of every block."""
    onsets = np.arange(10, VOLUMES * REPETITION - BLOCK, BLOCK + REST)
    return [(float(onset), BLOCK, CONDITIONS[i % 2]) for i, onset in enumerate(onsets)]


def recording(rng: np.random.Generator) -> Recording:
    """Draw the recording."""
    grid = np.stack(np.meshgrid(*(np.linspace(-1.08, 1.08, side) for side in SHAPE), indexing="ij"))
    radius = np.linalg.norm(grid, axis=0)
    mask = radius < 1
    places = grid[:, mask].T
    region, sources = np.full(len(places), BACKGROUND, dtype="<U16"), _sources(rng)
    series = NOISE * rng.standard_normal((len(places), VOLUMES))
    series += 0.25 * rng.standard_normal((len(places), 1)) * sources["drift"]
    for name, (centre, size, shares) in REGIONS.items():
        distance = np.linalg.norm(places - np.array(centre), axis=1)
        region[distance < size] = name
        strength = np.clip(1.25 - distance / size, 0, 1)[:, None]  # full inside, fading at the rim
        for source, share in shares.items():
            series += share * strength * sources[source]
    folds = 1 + 0.12 * np.sin(9 * grid[0]) * np.sin(8 * grid[1]) * np.sin(7 * grid[2])
    mean = np.where(mask, 190 * folds * (1 - 0.35 * (radius > 0.86)), 0)
    affine = np.diag([SPACING, SPACING, SPACING, 1.0])
    affine[:3, 3] = -SPACING * (np.array(SHAPE) - 1) / 2
    return Recording(
        mask=mask,
        mean=np.rint(mean).astype(np.uint8),
        series=np.rint(100 * series).astype(np.int16),
        region=region,
        affine=affine,
        repetition=np.array(REPETITION),
    )


def _sources(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Time courses (VOLUMES,) of the sources, each about one per cent high."""
    times = np.arange(VOLUMES) * REPETITION
    fine = np.arange(0, VOLUMES * REPETITION, 0.1)
    clean = {}
    for condition in CONDITIONS:
        shown = np.zeros(len(fine))
        for onset, duration, name in events():
            shown[(fine >= onset) & (fine < onset + duration)] = name == condition
        clean[condition] = np.convolve(shown, _response())[: len(fine)][:: int(REPETITION / 0.1)]
    clean["network"] = np.sin(2 * np.pi * times / 47 + 0.6) + 0.4 * np.sin(2 * np.pi * times / 31)
    clean["pulse"] = np.sin(2 * np.pi * times / 7.3) * (1 + 0.3 * rng.standard_normal(VOLUMES))
    clean["drift"] = np.linspace(-1, 1, VOLUMES)
    return clean


def _response() -> np.ndarray:
    """Return blood's answer to 0.1 s of activity: a late rise, a shallow undershoot; sum 1."""
    t = np.arange(0.05, 30, 0.1)
    curve = (
        t**5 * np.exp(-t) / 120 - t**15 * np.exp(-t) / 1.307674368e12 / 6
    )  # gammas of shape 6, 16
    return curve / curve.sum()
