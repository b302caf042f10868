"""Codes of the strongest components of each row: HDF5 or NPZ, as sparse autoencoders store them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from appca.data.readers import kind_of
from appca.data.readers.archive import members
from appca.data.readers.arrays import hdf5_contents, npz
from appca.data.readers.arrays.choice import ArrayInfo
from appca.data.readers.process import work_apart
from appca.data.readers.source import File, Files, ReadLimits, file_stream, plain_file, total_bytes
from appca.words.errors import InputError
from appca.words.wording import shortened

NAMES = (("top_indices", "top_acts"), ("indices", "values"))
TASK = "appca.data.readers.sparse.codes:lay_down"
Codes = tuple[np.ndarray, np.ndarray]


def open_codes(path: Path) -> Codes:
    """Read indices and values (N, L) of a file, in a process with bounded memory.

    Raises InputError when it is of another kind, damaged, too large, or has no such arrays.
    """
    return work_apart(TASK, _received, [(path.name, path)])


def lay_down(files: Files, place: Path, limits: ReadLimits) -> dict[str, Any]:
    """Read codes and write them where the caller maps them from; the task `TASK`."""
    name, file = files[0]
    limits = limits.within(total_bytes(files))
    for part, values in zip(("indices", "values"), read(name, file, limits), strict=True):
        np.save(place / f"{part}.npy", values, allow_pickle=False)
    return {}


def read(name: str, file: File, limits: ReadLimits) -> Codes:
    """Read indices and values (N, L)."""
    kind = kind_of(name, file)
    if kind == "hdf5":
        with plain_file(name, file, limits) as stream, hdf5_contents.opened(name, stream) as opened:
            inside = hdf5_contents.arrays(name, opened, {})
            infos = {path: item.info for path, item in inside.items()}
            return _codes(
                name, infos, limits, lambda key: hdf5_contents.load(name, key, inside[key], limits)
            )
    if kind == "npz":
        with file_stream(name, file, limits) as stream:
            archive, items = members(name, stream, limits)
            parts = {item.filename.removesuffix(".npy"): item for item in items}
            infos = {key: npz.info_of(name, archive, item) for key, item in parts.items()}
            return _codes(name, infos, limits, lambda key: npz.small(name, archive, parts[key]))
    msg = f"“{shortened(name)}” holds no codes; give HDF5 or NPZ with top_indices and top_acts."
    raise InputError(msg)


def _codes(
    name: str, infos: Mapping[str, ArrayInfo], limits: ReadLimits, load: Callable[[str], np.ndarray]
) -> Codes:
    pair = next((pair for pair in NAMES if set(pair) <= infos.keys()), None)
    if pair is None:
        there = ", ".join(f"“{shortened(key)}”" for key in list(infos)[:6]) or "no arrays"
        msg = f"“{name}” must hold top_indices and top_acts, or indices and values; it has {there}."
        raise InputError(msg)
    indices, values = (infos[key] for key in pair)
    fits = len(indices.shape) == 2 and indices.shape == values.shape
    if not fits or indices.dtype.kind not in "ui" or values.dtype.kind not in "uif":
        msg = (
            f"“{pair[0]}” and “{pair[1]}” in “{name}” must be whole numbers and their values, both "
            f"(N, L); they have shapes {indices.shape} and {values.shape}: save them again."
        )
        raise InputError(msg)
    if int(np.prod(indices.shape)) * 12 > limits.n_bytes:
        msg = f"The codes in “{name}” need more than {limits.most}; keep fewer of each row."
        raise InputError(msg)
    loaded_indices, loaded_values = (load(key) for key in pair)
    return loaded_indices, loaded_values.astype(np.float32)


def _received(place: Path, _: dict[str, Any]) -> Codes:
    indices, values = (
        np.load(place / f"{part}.npy", allow_pickle=False) for part in ("indices", "values")
    )
    return indices, values
