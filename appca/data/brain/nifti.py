"""NIfTI recordings of the brain: the voxels inside a mask as rows, the volumes as columns."""

import io
import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from appca.data.brain.cleaning import MEAN_SIGNAL, cleaned, mask_of
from appca.data.brain.events import check_events, read_events
from appca.data.dataset import Dataset
from appca.data.readers.reader import LONGEST_NAME, Reader
from appca.data.readers.source import LIMITS, File, Files, ReadLimits, check_matrix, file_bytes
from appca.words.errors import InputError
from appca.words.wording import counted, shortened

if TYPE_CHECKING:
    from nibabel.nifti1 import Nifti1Pair

_SECONDS = {"sec": 1.0, "msec": 1e-3, "usec": 1e-6, "unknown": 1.0}
_SLOWEST = 60.0  # seconds; more, in a file without a unit, are milliseconds
_SIDES = (1e-4, 1e4)  # of a voxel along its main axis, in millimetres
_FLAT = 1e6  # longest to shortest side of a voxel from which it has no volume
_AWAY = 1e-3  # by which affines may differ: writers round them
_NIFTI2 = 540  # length of its header, which its first number states


class NiftiOptions(NamedTuple):
    """What goes with a recording."""

    mask: File | None = None  # NIfTI; found in the recording if there is none
    mask_name: str = "the mask"


def read(name: str, file: File, options: NiftiOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read a 4-D recording, find or take the mask, and take out the slow drift.

    Rows are voxels that vary, columns volumes, their overall standard deviation is 1; the label
    "mean signal" is in the file's unit. ``provenance`` has grid, affine and repetition. Raises
    InputError when the file is no recording over time, or the mask does not fit.
    """
    image = _image(name, file, limits)
    _check_shape(name, image.shape)
    seconds = _repetition(name, image)
    _check_affine(name, image.affine)
    check_matrix(name, math.prod(image.shape[:3]), image.shape[3], 4, limits)
    volumes = _numbers(name, image)
    finite = np.isfinite(volumes).all(axis=3)
    with np.errstate(over="ignore", invalid="ignore"):  # such voxels are left out
        mean, spread = volumes.mean(axis=3), np.ptp(volumes, axis=3)
    finite &= np.isfinite(mean) & np.isfinite(spread)
    mean = np.where(finite, mean, 0.0)
    if options.mask is not None:
        mask = _mask(options.mask_name, options.mask, image.shape[:3], limits)
    else:
        mask = mask_of(mean)
    varies = finite & (spread > 0)
    kept = mask & varies
    if np.count_nonzero(kept) < 2:
        msg = f"Inside the mask of “{shortened(name)}” nothing varies over time; give another mask."
        raise InputError(msg)
    report = {"rows": int(kept.sum()), "columns": image.shape[3]}
    if (mask & ~varies).any():
        report["dropped"] = int((mask & ~varies).sum())
    return Dataset(
        name=Path(name).name.split(".")[0] or name,
        X=cleaned(volumes[kept]),
        ids=np.array(["voxel-{}-{}-{}".format(*place) for place in np.argwhere(kept)]),
        labels={MEAN_SIGNAL: mean[kept].astype(np.float32)},
        feature_names=tuple(f"{seconds * volume:.6g} s" for volume in range(image.shape[3])),
        provenance={
            "source": "file",
            "files": [name],
            "comparable": True,
            "grid": list(image.shape[:3]),
            "affine": np.asarray(image.affine, dtype=float).tolist(),
            "repetition": seconds,
            "report": report,
        },
    )


def read_many(files: Files, options: NiftiOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read a recording with its mask, which has “mask” in its name, and a table of its events."""
    scans = [named for named in files if is_scan(named[0])]
    tables = [named for named in files if not is_scan(named[0])]
    (name, file), *masks = sorted(scans, key=lambda named: "mask" in named[0].lower())
    if masks:
        options = options._replace(mask=masks[0][1], mask_name=masks[0][0])
    dataset = read(shortened(name, LONGEST_NAME), file, options, limits)
    return with_events(dataset, *tables[0]) if tables else dataset


def is_scan(name: str) -> bool:
    """Whether a file is a recording or a mask, by its name."""
    return name.lower().endswith((".nii", ".nii.gz"))


def with_events(dataset: Dataset, name: str, file: File) -> Dataset:
    """Return a recording with the events of a table. Raises InputError where they do not fit."""
    events = read_events(shortened(name, LONGEST_NAME), file)
    check_events(events, dataset.n_features, dataset.provenance["repetition"])
    listed = [event._asdict() for event in events]
    return replace(dataset, provenance=dataset.provenance | {"events": listed})


def regions_of(
    name: str,
    file: File,
    limits: ReadLimits = LIMITS,
    *,
    grid: tuple[int, ...] = (),
    affine: Any = (),
) -> np.ndarray:
    """Return the numbers of the regions of an atlas, (x, y, z) int, 0 outside.

    Raises InputError when the file is no 3-D image, or differs from a grid and affine (4, 4).
    """
    image = _image(name, file, limits)
    if len(image.shape) != 3:
        msg = (
            f"“{shortened(name)}” is {len(image.shape)}-dimensional; an atlas has three dimensions "
            "and the number of a region in each voxel."
        )
        raise InputError(msg)
    _check_grid(f"atlas “{shortened(name)}”", image.shape, grid or image.shape)
    away = np.abs(image.affine - affine).max() if len(affine) else 0.0
    if not away <= _AWAY:
        msg = (
            f"The affine of the atlas “{shortened(name)}” differs from the recording's by up to "
            f"{away:.3g}; both must agree, so resample the atlas to the recording."
        )
        raise InputError(msg)
    values = np.nan_to_num(_numbers(name, image), posinf=0.0, neginf=0.0)
    numbers: np.ndarray = np.clip(np.rint(values), 0, 1 << 20).astype(np.int64)
    return numbers


def _check_grid(title: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    if shape != wanted:
        sides, of = (" x ".join(map(str, each)) for each in (shape, wanted))
        msg = (
            f"The {title} is {sides}, the recording {of}; both must agree, so resample it to the "
            "recording."
        )
        raise InputError(msg)


def _image(name: str, file: File, limits: ReadLimits) -> "Nifti1Pair":
    """Parse header and place of the numbers; nothing of their size is made yet."""
    from nibabel import Nifti1Image, Nifti2Image

    data = file_bytes(name, file, limits)
    first = {int.from_bytes(data[:4], order) for order in ("little", "big")}
    kind = Nifti2Image if _NIFTI2 in first else Nifti1Image
    try:
        with _silence():
            image = kind.from_stream(io.BytesIO(data))
    except Exception as error:  # nibabel and NumPy fail in many ways on what is no NIfTI file
        msg = f"“{shortened(name)}” cannot be read as a NIfTI file; give a .nii or .nii.gz file."
        raise InputError(msg) from error
    if image.get_data_dtype().kind not in "iuf" or min(image.shape, default=0) < 1:
        msg = (
            f"“{shortened(name)}” holds {image.get_data_dtype()} in the shape {image.shape}; "
            "give an image of plain numbers."
        )
        raise InputError(msg)
    return image


@contextmanager
def _silence() -> Iterator[None]:
    """Keep nibabel from printing what it puts right in a header; what it cannot, it raises."""
    logger = logging.getLogger("nibabel.global")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)


def _check_shape(name: str, shape: tuple[int, ...]) -> None:
    sides = " x ".join(map(str, shape))
    if len(shape) != 4:
        msg = (
            f"“{shortened(name)}” is {len(shape)}-dimensional ({sides}); a recording over time "
            "has four dimensions, the fourth being time."
        )
        raise InputError(msg)
    if shape[3] < 2:
        msg = (
            f"“{shortened(name)}” holds {counted(shape[3], 'volume')}; a recording over time "
            "needs many."
        )
        raise InputError(msg)


def _check_affine(name: str, affine: np.ndarray) -> None:
    """Refuse a header that gives voxels no place or no extent."""
    sides = np.abs(affine[:3, :3]).max(axis=0)
    sound = np.isfinite(affine).all() and _SIDES[0] < sides.min() and sides.max() < _SIDES[1]
    if not sound or not np.linalg.cond(affine[:3, :3]) < _FLAT:
        msg = (
            f"The header of “{shortened(name)}” does not place its voxels in space; write "
            "millimetres into its affine (srow_x, srow_y, srow_z)."
        )
        raise InputError(msg)


def _repetition(name: str, image: "Nifti1Pair") -> float:
    unit = _unit(image)
    step = float(image.header.get_zooms()[3])
    seconds = step * _SECONDS.get(unit, 1.0)
    if unit == "unknown" and seconds > _SLOWEST:
        seconds /= 1000
    if not 0 < seconds <= _SLOWEST:
        msg = (
            f"The header of “{shortened(name)}” gives {seconds:g} s from volume to volume; write "
            "the true time into its field pixdim[4]."
        )
        raise InputError(msg)
    return round(seconds, 6)


def _unit(image: "Nifti1Pair") -> str:
    try:
        return str(image.header.get_xyzt_units()[1])
    except KeyError:  # a code the format does not define
        return "unknown"


def _numbers(name: str, image: "Nifti1Pair") -> np.ndarray:
    try:
        return image.get_fdata(dtype=np.float32, caching="unchanged")
    except Exception as error:  # as above; a file that breaks off is one of the ways
        msg = f"“{shortened(name)}” is truncated; copy or write it again."
        raise InputError(msg) from error


def _mask(name: str, file: File, shape: tuple[int, ...], limits: ReadLimits) -> np.ndarray:
    image = _image(name, file, limits)
    _check_grid(f"mask “{shortened(name)}”", image.shape, shape)
    values = _numbers(name, image)
    mask: np.ndarray = np.isfinite(values) & (values > 0)
    if not mask.any():
        msg = f"The mask “{shortened(name)}” is zero everywhere; give one that is 1 in the brain."
        raise InputError(msg)
    return mask


READER = Reader(NiftiOptions, read, read_many)
