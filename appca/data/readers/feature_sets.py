"""Sets of features from a file: GMT, CSV, or the numbered regions of a NIfTI atlas."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from appca.data.brain import regions_of
from appca.data.files import LIMITS, File, Files, ReadLimits, file_bytes
from appca.data.readers.process import work_apart
from appca.words import InputError, shortened

TASK = "appca.data.readers.feature_sets:answer"
Sets = dict[str, list[str]]  # names of features by the name of their set


def read_sets_apart(name: str, file: File, scratch: Path, space: Mapping[str, Any]) -> Sets:
    """Read sets as `read_sets`, in a process with bounded memory and time.

    `scratch` is a folder for a copy of the file; `space` has the grid and affine of a recording.
    """
    limits = ReadLimits(scratch=scratch)
    options = {key: space[key] for key in ("grid", "affine") if key in space}
    return work_apart(
        TASK, lambda _, facts: facts["sets"], [(name, file)], limits=limits, **options
    )


def answer(files: Files, place: Path, limits: ReadLimits, **space: Any) -> dict[str, Sets]:
    """Read the sets of a file; the task `TASK`."""
    del place
    return {"sets": read_sets(*files[0], limits, **space)}


def read_sets(
    name: str,
    file: File,
    limits: ReadLimits = LIMITS,
    *,
    grid: tuple[int, ...] = (),
    affine: Any = (),
) -> Sets:
    """Read sets of features from a GMT file, a CSV file, or a NIfTI atlas.

    The first line of a CSV file is its heading; each other line has a feature and its set. Features
    of an atlas are called "voxel-x-y-z". An atlas must have the `grid` and the `affine` (4, 4) of a
    recording, unless they are empty. Raises InputError for another grid, affine or form of file.
    """
    sets: Sets = {}
    kind = name.lower().removesuffix(".gz")
    if kind.endswith(".nii"):
        regions = regions_of(name, file, limits, grid=tuple(grid), affine=affine)
        for place in np.argwhere(regions > 0).tolist():
            region = f"region {regions[tuple(place)]}"
            sets.setdefault(region, []).append("voxel-{}-{}-{}".format(*place))
        return sets
    text = file_bytes(name, file, limits).decode("utf-8-sig", errors="replace")
    if kind.endswith(".gmt"):
        lines = [line.split("\t") for line in text.splitlines() if line.strip()]
        return {first: [feature for feature in rest[1:] if feature] for first, *rest in lines}
    try:
        table = [line for line in csv.reader(io.StringIO(text)) if line]
    except csv.Error:  # such as a field of more than 131,072 letters
        table = [[]]
    if not all(len(line) == 2 for line in table):
        msg = (
            f"“{shortened(name)}” must have a feature and its set in each line; give GMT or such a "
            "CSV."
        )
        raise InputError(msg)
    for feature, of in table[1:]:
        sets.setdefault(of, []).append(feature)
    return sets
