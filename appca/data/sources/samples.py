"""The data sets this project made itself; ``sample_data`` has the script that makes them."""

from pathlib import Path

import numpy as np

from appca.data.brain.events import read_events
from appca.data.dataset import Dataset
from appca.data.sources.folder import samples_folder
from appca.words.errors import InputError


def planes() -> Dataset:
    """Return points near three planes in space, each spanned by two of three directions."""
    lines = _path("planes.csv").read_text(encoding="utf-8").splitlines()
    ids, x, y, z, plane = zip(*(line.split(",") for line in lines[1:]), strict=True)
    return Dataset(
        name="Three planes in space",
        X=np.array([x, y, z], dtype=np.float64).T,
        ids=np.array(ids),
        labels={"plane": np.array(plane)},
        feature_names=("x", "y", "z"),
        provenance={"source": "planes", "files": ["planes.csv"], "comparable": True},
    )


def turntable() -> Dataset:
    """Return shaded solids on a turntable, 72 views each, of 32 x 32 pixels."""
    with np.load(_path("turntable.npz"), allow_pickle=False) as file:
        images, solid, angle = file["images"], file["solid"], file["angle"]
    return Dataset(
        name=f"Turntable, {len(set(solid.tolist()))} solids",
        X=images.reshape(len(images), -1),
        ids=np.array([f"{name}__{degrees}" for name, degrees in zip(solid, angle, strict=True)]),
        labels={"solid": solid, "angle": angle},
        image_shape=images.shape[1:],
        provenance={"source": "turntable", "files": ["turntable.npz"], "image_range": [0, 255]},
    )


def brain() -> Dataset:
    """Return a made-up brain recording: rows are voxels, columns volumes, values in percent."""
    table = _path("brain_events.tsv")
    with np.load(_path("brain.npz"), allow_pickle=False) as file:
        mask, series, region = file["mask"], file["series"], file["region"]
        affine, seconds = file["affine"], float(file["repetition"])
    return Dataset(
        name="Small brain, made up",
        X=series.astype(np.float32) / np.float32(100),
        ids=np.array(["voxel-{}-{}-{}".format(*place) for place in np.argwhere(mask)]),
        labels={"region": region},
        feature_names=tuple(f"{seconds * volume:g} s" for volume in range(series.shape[1])),
        provenance={
            "source": "brain",
            "files": ["brain.npz", "brain_events.tsv"],
            "comparable": True,
            "grid": list(mask.shape),
            "affine": affine.tolist(),
            "repetition": seconds,
            "events": [event._asdict() for event in read_events(table.name, table)],
        },
    )


def _path(name: str) -> Path:
    path = samples_folder() / name
    if not path.is_file():
        msg = f"{name} is missing in {path.parent}; run python sample_data/make.py to recreate it."
        raise InputError(msg)
    return path
