"""Brain recordings: voxels as rows, volumes as columns; mask and cleaning."""

import csv
import io
import logging
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from appca.data import files
from appca.data.dataset import Dataset
from appca.data.files import LIMITS, File, Files, Reader, ReadLimits
from appca.data.folders import folder_of_files, sample_file
from appca.words import InputError, refuse_if, shortened

if TYPE_CHECKING:
    from nibabel.nifti1 import Nifti1Pair

_MOST_EVENTS = 100_000
_LONGEST_TYPE = 40  # characters of a trial type


class Event(NamedTuple):
    """A stimulus or a response, in seconds from the first volume."""

    onset: float
    duration: float
    trial_type: str = ""

    @property
    def end(self) -> float:
        """When it is over."""
        return self.onset + self.duration


def read_events(name: str, file: File) -> tuple[Event, ...]:
    """Read a table of events: tab- or comma-separated, with columns onset and duration in seconds.

    A column trial_type is optional. Raises InputError when a column is missing or a time is none.
    """
    text = files.file_bytes(name, file, LIMITS).decode("utf-8-sig", errors="replace")
    lines = [line for line in text.splitlines() if line.strip()]
    table = csv.DictReader(lines, delimiter="\t" if "\t" in "".join(lines[:1]) else ",")
    missing = {"onset", "duration"} - set(table.fieldnames or ())
    refuse_if(
        missing,
        f"“{shortened(name)}” needs the columns onset and duration, in seconds; "
        f"{' and '.join(sorted(missing))} is missing.",
    )
    events = []
    for line, row in enumerate(table, start=2):
        onset = duration = math.nan
        with suppress(TypeError, ValueError):
            onset, duration = float(row["onset"]), float(row["duration"])
        refuse_if(
            not (math.isfinite(onset) and 0 <= duration < math.inf),
            f"Line {line} of “{shortened(name)}” has the onset “{shortened(row['onset'])}” and the "
            f"duration “{shortened(row['duration'])}”; both must be numbers of seconds, the "
            "duration not below 0.",
        )
        kind = (row.get("trial_type") or "").strip()
        events.append(Event(onset, duration, shortened(kind, _LONGEST_TYPE)))
    refuse_if(
        not 0 < len(events) <= _MOST_EVENTS,
        f"“{shortened(name)}” holds {len(events):,} events; give 1 to {_MOST_EVENTS:,}.",
    )
    return tuple(events)


def check_events(events: Sequence[Event], n_volumes: int, repetition: float) -> None:
    """Raise InputError for events that lie outside the recording."""
    length = n_volumes * repetition
    outside = [event for event in events if not 0 <= event.onset < length]
    first = f"{outside[0].onset:g} s" if outside else ""
    refuse_if(
        outside,
        f"{len(outside):,} of {len(events):,} events lie outside the recording, which lasts "
        f"{length:g} s (first: {first}); give onsets in seconds from its first volume.",
    )


def parsed(text: str) -> tuple[Event, ...]:
    """Read events from one text: "10+16 40+16"; raises InputError when it is anything else."""
    try:
        pairs = [piece.split("+") for piece in text.split()]
        return tuple(Event(float(onset), float(duration)) for onset, duration in pairs)
    except ValueError as error:
        msg = f"Events are written as onset+duration, such as “10+16 40+16”; got “{text[:40]}”."
        raise InputError(msg) from error


def events_of(dataset: Dataset) -> tuple[Event, ...]:
    """Return the events of a recording; often none."""
    listed = dataset.provenance.get("events", [])
    return tuple(Event(e["onset"], e["duration"], e.get("trial_type", "")) for e in listed)


def blocks(events: Sequence[Event], gap: float) -> list[Event]:
    """Return events of the same trial type that follow each other within `gap` seconds as one."""
    joined: list[Event] = []
    for event in sorted(events):
        last = joined[-1] if joined else None
        if last and last.trial_type == event.trial_type and event.onset - last.end <= gap:
            joined[-1] = last._replace(duration=max(last.end, event.end) - last.onset)
        else:
            joined.append(event)
    return joined


DRIFT = 3  # order of the polynomial in time that is taken out of every voxel
MEAN_SIGNAL = "mean signal"  # label of the rows: the gray values of slices


def cleaned(series: np.ndarray) -> np.ndarray:
    """Take the drift out of voxels (V, T) and divide all by one number, their standard deviation.

    The result, float32, is orthogonal to all polynomials in time up to the third order.
    Raises InputError when nothing varies, or there are too few volumes.
    """
    T, least = series.shape[1], 4 * (DRIFT + 1)
    left = np.array(series, dtype=np.float32)
    trend = drift(T).astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):  # overflow is refused below
        left -= left.mean(axis=1, keepdims=True)  # first, so that float32 loses nothing below
        left -= (left @ trend) @ trend.T
        scale = math.sqrt(float(np.square(left, dtype=np.float32).mean(dtype=np.float64)))
    too_short = f"A recording needs at least {least} volumes to take out its drift; got {T}."
    too_large = "The recording holds numbers beyond 1e19; give its values in a smaller unit."
    refuse_if(least > T, too_short)
    refuse_if(not math.isfinite(scale), too_large)
    refuse_if(not scale > 0, "No voxel of the recording varies over time; check mask and file.")
    left /= np.float32(scale)
    return left


def drift(n_volumes: int) -> np.ndarray:
    """Return an orthonormal basis (T, 4) of the polynomials up to the third order."""
    powers = np.polynomial.legendre.legvander(np.linspace(-1, 1, n_volumes), DRIFT)
    return np.linalg.qr(powers)[0]


def mask_of(mean: np.ndarray) -> np.ndarray:
    """Find the brain in a mean volume (x, y, z), as nilearn's `compute_epi_mask` does.

    The threshold is the middle of the largest step between sorted values from the 20th to the 85th
    percentile; the largest connected part after an erosion is dilated again. Raises InputError when
    there is none.
    """
    from scipy import ndimage

    smooth = ndimage.gaussian_filter(mean.astype(np.float32), 1 / math.sqrt(8 * math.log(2)))
    values = np.sort(smooth, axis=None)
    part = values[int(0.2 * len(values)) : int(0.85 * len(values)) + 1]
    mask = np.zeros(mean.shape, dtype=bool)
    if len(part) > 1:
        with np.errstate(invalid="ignore"):  # infinite values have no largest step
            step = int(np.diff(part).argmax())
        threshold = 0.5 * (part[step] + part[step + 1])
        places, n_parts = ndimage.label(ndimage.binary_erosion(smooth >= threshold, iterations=2))
        if n_parts:
            largest = places == np.bincount(places[places > 0]).argmax()
            mask = ndimage.binary_erosion(ndimage.binary_dilation(largest, iterations=4), None, 2)
    no_brain = (
        "No brain could be separated from the background of this recording; give a mask, too."
    )
    refuse_if(not mask.any(), no_brain)
    return mask


_SECONDS = {"msec": 1e-3, "usec": 1e-6}
_SLOWEST = 60.0  # seconds; more, in a file without a unit, are milliseconds
_SIDES = (1e-4, 1e4)  # of a voxel along its main axis, in millimeters
_FLAT = 1e6  # longest to shortest side of a voxel from which it has no volume
_AFFINE_TOLERANCE = 1e-3  # writers round affines
_NIFTI2 = 540  # length of its header, which its first number states


class NiftiOptions(NamedTuple):
    """Options for reading a recording."""

    mask: File | None = None  # NIfTI; found in the recording if there is none
    mask_name: str = "the mask"


def read(named_files: Files, options: NiftiOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read a 4-D recording with its mask and its events, and take out the slow drift.

    The mask, a file with “mask” in its name, is otherwise found in the recording. Rows are voxels
    that vary, columns volumes, their overall standard deviation is 1; the label "mean signal" is in
    the file's unit. ``provenance`` has grid, affine, repetition and events. Raises InputError when
    the file is no recording over time, or mask or events do not fit.
    """
    scans = [named for named in named_files if named[0].lower().endswith((".nii", ".nii.gz"))]
    scans = sorted(scans or named_files, key=lambda named: "mask" in named[0].lower())
    name, file = shortened(scans[0][0], files.LONGEST_NAME), scans[0][1]
    mask_name, mask_file = scans[1] if len(scans) > 1 else (options.mask_name, options.mask)
    image, volumes = _image(name, file, limits)
    shape = (*image.shape[:3], *(side for side in image.shape[3:] if side > 1))
    seconds, volumes = _seconds(name, image, shape), volumes.reshape(shape)
    finite = np.isfinite(volumes).all(axis=3)
    with np.errstate(over="ignore", invalid="ignore"):  # such voxels are left out
        mean, spread = volumes.mean(axis=3), np.ptp(volumes, axis=3)
    finite &= np.isfinite(mean) & np.isfinite(spread)
    if mask_file is None:
        mask = mask_of(np.where(finite, mean, 0.0))
    else:
        mask = _on_grid("mask", mask_name, mask_file, limits, shape[:3])[0] > 0
    kept = mask & finite & (spread > 0)
    refuse_if(
        np.count_nonzero(kept) < 2,
        f"Inside the mask of “{shortened(name)}” nothing varies over time; give another mask.",
    )
    report = {"rows": int(kept.sum()), "columns": shape[3]}
    if (mask & ~kept).any():
        report["dropped"] = int((mask & ~kept).sum())
    title, signal = Path(name).name.split(".")[0] or name, mean[kept].astype(np.float32)
    facts = {"source": "file", "files": [name], "report": report}
    labels = {MEAN_SIGNAL: signal}
    dataset = _recording(title, cleaned(volumes[kept]), labels, kept, image.affine, seconds, facts)
    tables = [named for named in named_files if named not in scans]
    return with_events(dataset, *tables[0]) if tables else dataset


def _recording(
    name: str,
    X: np.ndarray,
    labels: dict[str, np.ndarray],
    mask: np.ndarray,
    affine: np.ndarray,
    seconds: float,
    facts: dict[str, Any],
) -> Dataset:
    """Return the voxels (V, T) of a mask (x, y, z) with their places and times."""
    places = {"grid": list(mask.shape), "affine": np.asarray(affine, dtype=float).tolist()}
    return Dataset(
        name,
        X,
        np.array(["voxel-{}-{}-{}".format(*place) for place in np.argwhere(mask)]),
        labels,
        feature_names=tuple(f"{seconds * volume:g} s" for volume in range(X.shape[1])),
        provenance={"comparable": True, **places, "repetition": seconds, **facts},
    )


READER = Reader(NiftiOptions, None, read)


def with_events(dataset: Dataset, name: str, file: File) -> Dataset:
    """Return a recording with the events of a table. Raises InputError where they do not fit."""
    events = read_events(shortened(name, files.LONGEST_NAME), file)
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
    values, placed = _on_grid("atlas", name, file, limits, grid)
    away = np.abs(placed - affine).max() if len(affine) else 0.0
    refuse_if(
        not away <= _AFFINE_TOLERANCE,
        f"The affine of the atlas “{shortened(name)}” differs from the recording's by up to "
        f"{away:.3g}; both must agree, so resample the atlas to the recording.",
    )
    numbers: np.ndarray = np.clip(np.rint(values), 0, 1 << 20).astype(np.int64)
    return numbers


def _on_grid(
    title: str, name: str, file: File, limits: ReadLimits, grid: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Return finite values (x, y, z) and the affine (4, 4) of an image with a recording's grid."""
    image, values = _image(name, file, limits)
    grid = grid or (*image.shape, 1, 1, 1)[:3]
    sides, wanted = (" x ".join(map(str, each)) for each in (image.shape, grid))
    title = f"The {title} “{shortened(name)}” is"
    refuse_if(
        image.shape != grid,
        f"{title} {sides}, the recording {wanted}; both must agree, so resample it to the "
        "recording.",
    )
    values = np.nan_to_num(values, posinf=0.0, neginf=0.0)
    refuse_if(not (values > 0).any(), f"{title} zero everywhere; give one that marks voxels.")
    return values, image.affine


def _image(name: str, file: File, limits: ReadLimits) -> "tuple[Nifti1Pair, np.ndarray]":
    """Return a NIfTI file and its values, float32, after checking what its header states."""
    from nibabel import Nifti1Image, Nifti2Image

    # nibabel would print each repair of a header; it raises what it cannot repair
    logging.getLogger("nibabel.global").setLevel(logging.CRITICAL + 1)
    data, title = files.file_bytes(name, file, limits), shortened(name)
    first = {int.from_bytes(data[:4], order) for order in ("little", "big")}
    try:
        image = (Nifti2Image if _NIFTI2 in first else Nifti1Image).from_stream(io.BytesIO(data))
    except Exception as error:  # nibabel and NumPy fail in many ways on other files
        msg = f"“{title}” cannot be read as a NIfTI file; give a .nii or .nii.gz file."
        raise InputError(msg) from error
    refuse_if(
        image.get_data_dtype().kind not in "iuf" or min(image.shape, default=0) < 1,
        f"“{title}” holds {image.get_data_dtype()} in the shape {image.shape}; give an image of "
        "plain numbers.",
    )
    files.check_matrix(name, math.prod(image.shape[:3]), math.prod(image.shape[3:]), 4, limits)
    try:
        return image, image.get_fdata(dtype=np.float32, caching="unchanged")
    except Exception as error:  # as above; a truncated file is one of the ways
        msg = f"“{title}” is truncated; copy or write it again."
        raise InputError(msg) from error


def _seconds(name: str, image: "Nifti1Pair", shape: tuple[int, ...]) -> float:
    """Return the time between volumes after checking what the header says of time and space."""
    title, sides = shortened(name), np.abs(image.affine[:3, :3]).max(axis=0)
    refuse_if(
        len(shape) != 4,
        f"“{title}” is {len(image.shape)}-dimensional ({' x '.join(map(str, image.shape))}); a "
        "recording over time has four dimensions, the fourth being time with many volumes.",
    )
    has_extent = _SIDES[0] < sides.min() <= sides.max() < _SIDES[1]
    refuse_if(
        not has_extent
        or not np.isfinite(image.affine).all()
        or not np.linalg.cond(image.affine[:3, :3]) < _FLAT,
        f"The header of “{title}” does not place its voxels in space; write millimeters into its "
        "affine (srow_x, srow_y, srow_z).",
    )
    unit = "unknown"
    with suppress(KeyError):  # a code that the format does not define
        unit = str(image.header.get_xyzt_units()[1])
    axis = next(axis for axis in range(3, len(image.shape)) if image.shape[axis] > 1)
    seconds = float(image.header.get_zooms()[axis]) * _SECONDS.get(unit, 1.0)
    seconds /= 1000 if unit == "unknown" and seconds > _SLOWEST else 1
    refuse_if(
        not 0 < seconds <= _SLOWEST,
        f"The header of “{title}” gives {seconds:g} s from volume to volume; write the true time "
        "into its field pixdim[4].",
    )
    return round(seconds, 6)


GAP = 2  # voxels between slices that are side by side


def has_places(dataset: Dataset) -> bool:
    """Whether the rows of a data set are voxels of a volume."""
    return {"grid", "affine"} <= set(dataset.provenance)


def voxels_of(dataset: Dataset) -> np.ndarray:
    """Return the indices (V, 3) of a recording's rows in its grid.

    Raises InputError when a row is not a voxel of the grid.
    """
    with suppress(ValueError):  # names that are not those of voxels
        places = np.array([name.split("-")[1:] for name in dataset.ids.tolist()], dtype=int)
        if ((places >= 0) & (places < np.array(dataset.provenance["grid"]))).all():
            return places
    msg = f"The rows of “{dataset.name}” are not the voxels it says; open its file again."
    raise InputError(msg)


def upright(volume: np.ndarray, affine: np.ndarray) -> np.ndarray:
    """Turn a volume (x, y, z) so that its axes point right, front and up as nearly as they can."""
    from nibabel.orientations import apply_orientation, io_orientation

    return np.asarray(apply_orientation(volume, io_orientation(np.asarray(affine))))


def side_by_side(dataset: Dataset) -> np.ndarray:
    """Return the places (V, 2) of a recording's voxels in its horizontal slices, in millimeters.

    The lowest slice is at the top left, the next one to its right; each has the front of the head
    at the top and the right of the body on the right.

    Raises InputError when a row is not a voxel of the grid.
    """
    from nibabel.orientations import io_orientation

    affine = np.array(dataset.provenance["affine"], dtype=float).reshape(4, 4)
    to, sign = io_orientation(affine).T
    axes = np.argsort(to)  # the volume's axes nearest to right, front and up
    sides = np.linalg.norm(affine[:3, axes[:2]], axis=0)
    right, front, up = (voxels_of(dataset) * sign)[:, axes].T
    heights, of_row = np.unique(up, return_inverse=True)
    width = (np.ptp(right) + 1 + GAP) * sides[0]
    height = (np.ptp(front) + 1 + GAP) * sides[1]
    columns = int(np.ceil(np.sqrt(len(heights) * height / width)))
    x = (of_row % columns) * width + (right - right.min()) * sides[0]
    y = (front - front.min()) * sides[1] - (of_row // columns) * height
    return np.column_stack([x, y])


SHARED, MADE_UP = "shared", "made-up"
_FILES = ("sub-02_task-oneback_run-1_bold.nii.gz", "sub-02_task-oneback_run-1_events.tsv")


class Recording(NamedTuple):
    """V voxels inside a mask over T volumes."""

    name: str
    series: np.ndarray  # (V, T) float32, without drift, overall standard deviation 1
    mask: np.ndarray  # (x, y, z) bool; its voxels in C order are the rows
    affine: np.ndarray  # (4, 4), voxel indices to millimeters
    repetition: float  # seconds from one volume to the next
    signal: np.ndarray  # (V,) float32, the voxels' mean, to draw maps onto
    events: tuple[Event, ...]


def brain() -> Dataset:
    """Return a made-up brain recording: rows are voxels, columns volumes, values in percent."""
    table = sample_file("brain_events.tsv")
    with np.load(sample_file("brain.npz"), allow_pickle=False) as file:
        X, labels = file["series"].astype(np.float32) / np.float32(100), {"region": file["region"]}
        mask, affine, seconds = file["mask"], file["affine"], float(file["repetition"])
    facts = {"source": "brain", "files": ["brain.npz", "brain_events.tsv"]}
    dataset = _recording("Small brain, made up", X, labels, mask, affine, seconds, facts)
    return with_events(dataset, table.name, table)


def load(key: str) -> Recording:
    """Open the recording in the data folder ("shared"), or the project's own ("made-up").

    Raises InputError when a file is missing; the sentence says which.
    """
    if key == MADE_UP:
        dataset = brain()
        with np.load(sample_file("brain.npz"), allow_pickle=False) as file:
            signal = file["mean"][file["mask"]]
    elif key == SHARED:
        folder = folder_of_files() / "fmri"
        missing = [name for name in _FILES if not (folder / name).is_file()]
        refuse_if(missing, f"The recording needs {' and '.join(missing)}; put it into {folder}.")
        dataset = read([(name, folder / name) for name in _FILES], NiftiOptions())
        dataset = replace(dataset, name="Faces, houses and scenes")
        signal = dataset.labels[MEAN_SIGNAL]
    else:
        msg = f"There is no recording “{shortened(key)}”; choose {SHARED} or {MADE_UP}."
        raise InputError(msg)
    facts = dataset.provenance
    mask = np.zeros(facts["grid"], dtype=bool)
    mask[tuple(voxels_of(dataset).T)] = True
    return Recording(
        dataset.name,
        cleaned(dataset.X),
        mask,
        np.array(facts["affine"], dtype=np.float64),
        float(facts["repetition"]),
        np.asarray(signal, dtype=np.float32),
        events_of(dataset),
    )


def nifti_bytes(mask: np.ndarray, affine: np.ndarray, values: np.ndarray) -> bytes:
    """Write values (V,) at the voxels of a mask, zero elsewhere, as a packed NIfTI file."""
    import gzip

    from nibabel import Nifti1Image

    volume = np.zeros(mask.shape, dtype=np.float32)
    volume[mask] = values
    image = Nifti1Image(volume, affine)
    image.header.set_xyzt_units("mm", "sec")
    return gzip.compress(image.to_bytes(), mtime=0)
