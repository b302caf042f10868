"""Brain recordings with voxels as rows and volumes as columns: reading, mask and detrending."""

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

MOST_EVENTS = 100_000


class Event(NamedTuple):
    """A stimulus or a response; times are in seconds from the first volume."""

    onset: float
    duration: float
    trial_type: str = ""

    @property
    def end(self) -> float:
        """Return its end in seconds."""
        return self.onset + self.duration


def with_events(dataset: Dataset, name: str, file: File) -> Dataset:
    """Return a recording with the events of a tab- or comma-separated table.

    Its columns are onset and duration in seconds, and optionally trial_type. Raises InputError
    if a column is missing, a time is not a number, or an event is outside the recording.
    """
    title = shortened(name)
    text = files.file_bytes(name, file, LIMITS).decode("utf-8-sig", errors="replace")
    lines = [line for line in text.splitlines() if line.strip()]
    table = csv.DictReader(lines, delimiter="\t" if "\t" in "".join(lines[:1]) else ",")
    missing = " and ".join(sorted({"onset", "duration"} - set(table.fieldnames or ())))
    needs = f"“{title}” needs the columns onset and duration, in seconds"
    refuse_if(missing, f"{needs}; {missing} is missing.")
    events = []
    for line, row in enumerate(table, start=2):
        onset = duration = math.nan
        with suppress(TypeError, ValueError):
            onset, duration = float(row["onset"]), float(row["duration"])
        refuse_if(
            not (math.isfinite(onset) and 0 <= duration < math.inf),
            f"Line {line} of “{title}” has the onset “{shortened(row['onset'])}” and the duration "
            f"“{shortened(row['duration'])}”; both must be numbers of seconds, the duration not "
            "below 0.",
        )
        events.append(Event(onset, duration, shortened(row.get("trial_type") or "")))
    msg = f"“{title}” contains {len(events):,} events; give 1 to {MOST_EVENTS:,}."
    refuse_if(not 0 < len(events) <= MOST_EVENTS, msg)
    check_events(events, dataset.n_features, dataset.provenance["repetition"])
    listed = [event._asdict() for event in events]
    return replace(dataset, provenance=dataset.provenance | {"events": listed})


def check_events(events: Sequence[Event], n_volumes: int, repetition: float) -> None:
    """Raise InputError for events outside the recording."""
    length = n_volumes * repetition
    outside = [f"{event.onset:g} s" for event in events if not 0 <= event.onset < length]
    refuse_if(
        outside,
        f"{len(outside):,} of {len(events):,} events are outside the recording, which lasts "
        f"{length:g} s (first: {''.join(outside[:1])}); give onsets in seconds from its first "
        "volume.",
    )


def parsed(text: str) -> tuple[Event, ...]:
    """Parse events from a text such as "10+16 40+16"; raises InputError if it is invalid."""
    msg = f"Events are written as onset+duration, such as “10+16 40+16”; got “{text[:40]}”."
    with files.explained(msg, ValueError):
        pairs = [piece.split("+") for piece in text.split()]
        return tuple(Event(float(onset), float(duration)) for onset, duration in pairs)


def events_of(dataset: Dataset) -> tuple[Event, ...]:
    """Return the events of a recording, if any."""
    listed = dataset.provenance.get("events", [])
    return tuple(Event(e["onset"], e["duration"], e.get("trial_type", "")) for e in listed)


def blocks(events: Sequence[Event], gap: float) -> list[Event]:
    """Merge events of the same trial type that follow each other within `gap` seconds."""
    joined: list[Event] = []
    for event in sorted(events):
        last = joined[-1] if joined else None
        if last and last.trial_type == event.trial_type and event.onset - last.end <= gap:
            joined[-1] = last._replace(duration=max(last.end, event.end) - last.onset)
        else:
            joined.append(event)
    return joined


DRIFT = 3  # order of the polynomial in time removed from every voxel
MEAN_SIGNAL = "mean signal"  # label with the rows' grey values in slices


def cleaned(series: np.ndarray) -> np.ndarray:
    """Detrend voxels (V, T) and divide all values by their overall standard deviation.

    The result, float32, is orthogonal to all polynomials in time up to the third order.
    Raises InputError if nothing varies, or there are too few volumes.
    """
    T, least = series.shape[1], 4 * (DRIFT + 1)
    too_short = f"A recording needs at least {least} volumes to remove its drift; got {T}."
    refuse_if(least > T, too_short)
    left, trend = np.array(series, dtype=np.float32), drift(T).astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):  # overflow is refused below
        left -= left.mean(axis=1, keepdims=True)  # first, to keep float32 precision
        left -= (left @ trend) @ trend.T
        scale = math.sqrt(float(np.square(left).mean(dtype=np.float64)))
    too_large = "The recording has values beyond 1e19; give them in a larger unit."
    refuse_if(not math.isfinite(scale), too_large)
    refuse_if(not scale > 0, "No voxel of the recording varies over time; check mask and file.")
    left /= np.float32(scale)
    return left


def drift(n_volumes: int) -> np.ndarray:
    """Return an orthonormal basis (T, 4) of the polynomials up to the third order."""
    return np.linalg.qr(np.polynomial.legendre.legvander(np.linspace(-1, 1, n_volumes), DRIFT))[0]


def mask_of(mean: np.ndarray) -> np.ndarray:
    """Find the brain in a mean volume (x, y, z), as nilearn's `compute_epi_mask`.

    The threshold is the middle of the largest step between sorted values from the 20th to the 85th
    percentile. The largest connected part after an erosion is dilated again. If none is left, as in
    a cropped recording, the mask is the whole volume.
    """
    from scipy import ndimage

    smooth = ndimage.gaussian_filter(mean.astype(np.float32), 1 / math.sqrt(8 * math.log(2)))
    values = np.sort(smooth, axis=None)
    part = values[int(0.2 * len(values)) : int(0.85 * len(values)) + 1]
    with np.errstate(invalid="ignore"):  # infinite values have no largest step
        step = int(np.diff(part, append=part[-1]).argmax())
    bright = smooth >= part[step : step + 2].mean()
    places, n_parts = ndimage.label(ndimage.binary_erosion(bright, iterations=2))
    if not n_parts:
        return np.ones_like(bright)
    largest = places == np.bincount(places[places > 0]).argmax()
    mask = ndimage.binary_erosion(ndimage.binary_dilation(largest, iterations=4), None, 2)
    return np.asarray(mask if mask.any() else np.ones_like(bright))


class NiftiOptions(NamedTuple):
    """No options: mask and events come as files together with the recording."""


def read(named_files: Files, options: NiftiOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read a 4-D recording with its mask and its events, and remove the slow drift.

    The mask is a file with “mask” in its name; without one, it is computed. Rows are the voxels
    that vary, columns are volumes, scaled to overall standard deviation 1; the label "mean signal"
    is in the file's unit. ``provenance`` has grid, affine, repetition and events. Raises InputError
    if the file has no time axis, or mask or events do not match the recording.
    """
    scans = [named for named in named_files if named[0].lower().endswith((".nii", ".nii.gz"))]
    scans = sorted(scans or named_files, key=lambda named: "mask" in named[0].lower())
    name = shortened(scans[0][0], files.LONGEST_NAME)
    image, volumes = _image(name, scans[0][1], limits)
    shape = (*image.shape[:3], *(side for side in image.shape[3:] if side > 1))
    seconds, volumes = _seconds(name, image, shape), volumes.reshape(shape)
    with np.errstate(over="ignore", invalid="ignore"):  # overflowing voxels are dropped
        mean, spread = volumes.mean(axis=3), np.ptp(volumes, axis=3)
    finite = np.isfinite(volumes).all(axis=3) & np.isfinite(mean) & np.isfinite(spread)
    if len(scans) > 1:
        mask, taken = on_grid("mask", *scans[1], limits, grid=shape[:3]) > 0, "inside the mask"
    else:
        mask = mask_of(np.where(finite, mean, 0.0))
        taken = "all: no background is distinct" if mask.all() else "brighter than the background"
        mask |= ~finite
    kept = mask & finite & (spread > 0)
    msg = f"No voxel in the mask of “{shortened(name)}” varies over time; give another mask."
    refuse_if(np.count_nonzero(kept) < 2, msg)
    report: dict[str, Any] = {"rows": int(kept.sum()), "columns": shape[3]}
    if dropped := int((mask & ~kept).sum()):
        report["dropped"] = dropped
        taken += f"; left out: {dropped:,} that are constant or not finite"
    files.note(report, "Voxels", taken)
    files.note(report, "Time series", "detrended, divided by the overall standard deviation")
    facts = {"source": "file", "files": [name], "report": report}
    labels = {MEAN_SIGNAL: mean[kept].astype(np.float32)}
    title = Path(name).name.split(".")[0] or name
    dataset = _recording(title, cleaned(volumes[kept]), labels, kept, image.affine, seconds, facts)
    tables = [named for named in named_files if named not in scans]
    return with_events(dataset, *tables[0]) if tables else dataset


READER = Reader(NiftiOptions, None, read)


def _recording(
    name: str,
    X: np.ndarray,
    labels: dict[str, np.ndarray],
    mask: np.ndarray,
    affine: np.ndarray,
    seconds: float,
    facts: dict[str, Any],
) -> Dataset:
    places = {"grid": list(mask.shape), "affine": np.asarray(affine, dtype=float).tolist()}
    ids = np.array(["voxel-{}-{}-{}".format(*place) for place in np.argwhere(mask)])
    times = tuple(f"{seconds * volume:g} s" for volume in range(X.shape[1]))
    facts = {"comparable": True, **places, "repetition": seconds, **facts}
    return Dataset(name, X, ids, labels, feature_names=times, provenance=facts)


def on_grid(
    title: str,
    name: str,
    file: File,
    limits: ReadLimits,
    *,
    grid: tuple[int, ...] = (),
    affine: Any = (),
) -> np.ndarray:
    """Return the values (x, y, z), 0 to 2^20, of an atlas or a mask; missing values become 0.

    Raises InputError if the file is not a 3-D image, or its grid or affine (4, 4) differs.
    """
    image, values = _image(name, file, limits)
    grid, title = tuple(grid) or (*image.shape, 1, 1, 1)[:3], f"The {title} “{shortened(name)}”"
    sides, wanted = (" x ".join(map(str, each)) for each in (image.shape, grid))
    msg = f"{title} has the grid {sides}, but the recording has {wanted}; resample it to the "
    msg += "recording."
    refuse_if(image.shape != grid, msg)
    away = np.abs(image.affine - affine).max() if len(affine) else 0.0
    refuse_if(
        not away <= 1e-3,  # tolerance for rounded affines
        f"{title} has an affine that differs from the recording's by up to {away:.3g}; "
        "resample it to the recording.",
    )
    values = np.asarray(np.clip(np.nan_to_num(values, posinf=0.0), 0, 1 << 20))
    refuse_if(not values.any(), f"{title} is zero everywhere; give one that marks voxels.")
    return values


def _image(name: str, file: File, limits: ReadLimits) -> "tuple[Nifti1Pair, np.ndarray]":
    """Return a NIfTI file and its float32 values, after checking the header."""
    from nibabel import Nifti1Image, Nifti2Image

    # nibabel logs each header repair, and raises if it cannot repair
    logging.getLogger("nibabel.global").setLevel(logging.CRITICAL + 1)
    data, title = files.file_bytes(name, file, limits), shortened(name)
    is_second = data[:4] in (b"\x1c\2\0\0", b"\0\0\2\x1c")  # 540: NIfTI-2
    with files.explained(f"“{title}” is not a readable NIfTI file; give a .nii or .nii.gz file."):
        image = (Nifti2Image if is_second else Nifti1Image).from_stream(io.BytesIO(data))
    dtype, shape = image.get_data_dtype(), image.shape
    msg = f"“{title}” contains {dtype} of shape {shape}; give an image of plain numbers."
    refuse_if(dtype.kind not in "iuf" or min(shape, default=0) < 1, msg)
    files.check_matrix(name, math.prod(shape[:3]), math.prod(shape[3:]), 4, limits)
    with files.explained(f"“{title}” is truncated; copy or write it again."):
        return image, image.get_fdata(dtype=np.float32, caching="unchanged")


def _seconds(name: str, image: "Nifti1Pair", shape: tuple[int, ...]) -> float:
    """Check the header's units of space and time; return the time between volumes."""
    title, turn = f"“{shortened(name)}”", image.affine[:3, :3]
    msg = f"{title} is {len(image.shape)}-dimensional ({' x '.join(map(str, image.shape))}); a "
    msg += "recording over time has four dimensions, the fourth being time with many volumes."
    refuse_if(len(shape) != 4, msg)
    sides = np.abs(turn).max(axis=0)  # voxel size in millimeters
    refuse_if(
        not np.isfinite(image.affine).all()
        or not 1e-4 < sides.min() <= sides.max() < 1e4
        or not np.linalg.cond(turn) < 1e6,  # else a voxel is flat
        f"The header of {title} does not place its voxels in space; write millimeters into its "
        "affine (srow_x, srow_y, srow_z).",
    )
    unit, most = "unknown", 60.0  # larger values without a unit are milliseconds, not seconds
    with suppress(KeyError):  # unknown unit code
        unit = str(image.header.get_xyzt_units()[1])
    axis = next(axis for axis in range(3, len(image.shape)) if image.shape[axis] > 1)
    seconds = float(image.header.get_zooms()[axis]) * {"msec": 1e-3, "usec": 1e-6}.get(unit, 1.0)
    seconds /= 1000 if unit == "unknown" and seconds > most else 1
    msg = f"The header of {title} gives {seconds:g} s from volume to volume; write the true time "
    msg += "into its field pixdim[4]."
    refuse_if(not 0 < seconds <= most, msg)
    return round(seconds, 6)


def has_places(dataset: Dataset) -> bool:
    """Whether rows are voxels of a volume."""
    return {"grid", "affine"} <= set(dataset.provenance)


def voxels_of(dataset: Dataset) -> np.ndarray:
    """Return the places (V, 3) of a recording's rows in its grid; InputError if one is outside."""
    with suppress(ValueError):  # ids without voxel indices
        places = np.array([name.split("-")[1:] for name in dataset.ids.tolist()], dtype=int)
        if ((places >= 0) & (places < np.array(dataset.provenance["grid"]))).all():
            return places
    msg = f"The row ids of “{dataset.name}” are not voxels of its grid; open its file again."
    raise InputError(msg)


def upright(volume: np.ndarray, affine: np.ndarray) -> np.ndarray:
    """Reorder a volume's axes (x, y, z) to point right, front and up as nearly as possible."""
    from nibabel.orientations import apply_orientation, io_orientation

    return np.asarray(apply_orientation(volume, io_orientation(np.asarray(affine))))


def side_by_side(dataset: Dataset) -> np.ndarray:
    """Return the positions (V, 2) of a recording's voxels in horizontal slices, in millimeters.

    The lowest slice is at the top left, the next one to its right, each with the front of the head
    at the top, the right of the body on the right. InputError if a row is no voxel of the grid.
    """
    from nibabel.orientations import io_orientation

    affine = np.array(dataset.provenance["affine"], dtype=float)
    to, sign = io_orientation(affine).T
    axes = np.argsort(to)  # the volume's axes nearest to right, front and up
    wide, deep = np.linalg.norm(affine[:3, axes[:2]], axis=0)  # voxel size in millimeters
    right, front, up = (voxels_of(dataset) * sign)[:, axes].T
    heights, of_row = np.unique(up, return_inverse=True)
    width, height = (np.ptp(right) + 3) * wide, (np.ptp(front) + 3) * deep  # plus 2 voxels of space
    columns = int(np.ceil(np.sqrt(len(heights) * height / width)))
    x = (of_row % columns) * width + (right - right.min()) * wide
    return np.column_stack([x, (front - front.min()) * deep - (of_row // columns) * height])


SHARED, MADE_UP = "shared", "made-up"
_FILES = ("sub-02_task-oneback_run-1_bold.nii.gz", "sub-02_task-oneback_run-1_events.tsv")


class Recording(NamedTuple):
    """V voxels inside a mask over T volumes."""

    name: str
    series: np.ndarray  # (V, T) float32, without drift, overall standard deviation 1
    mask: np.ndarray  # (x, y, z) bool; its voxels in C order are the rows
    affine: np.ndarray  # (4, 4), voxel indices to millimeters
    repetition: float  # seconds from one volume to the next
    signal: np.ndarray  # (V,) float32, mean of each voxel, drawn behind maps
    events: tuple[Event, ...]


def brain() -> Dataset:
    """Return a simulated brain recording: rows are voxels, columns volumes, values in percent."""
    table = sample_file("brain_events.tsv")
    with np.load(sample_file("brain.npz"), allow_pickle=False) as npz:
        X, labels = npz["series"].astype(np.float32) / np.float32(100), {"region": npz["region"]}
        mask, affine, seconds = npz["mask"], npz["affine"], float(npz["repetition"])
    facts = {"source": "brain", "files": ["brain.npz", table.name]}
    dataset = _recording("Small brain, made up", X, labels, mask, affine, seconds, facts)
    return with_events(dataset, table.name, table)


def load(key: str) -> Recording:
    """Open the recording in the data folder ("shared"), or the simulated one ("made-up").

    Raises InputError with the name of a missing file.
    """
    choice = f"choose {SHARED} or {MADE_UP}"
    refuse_if(key not in (SHARED, MADE_UP), f"There is no recording “{shortened(key)}”; {choice}.")
    if key == MADE_UP:
        name, dataset = "", brain()
        with np.load(sample_file("brain.npz"), allow_pickle=False) as npz:
            signal = npz["mean"][npz["mask"]].astype(np.float32)
    else:
        folder, name = folder_of_files() / "fmri", "Faces, houses and scenes"
        missing = [name for name in _FILES if not (folder / name).is_file()]
        refuse_if(missing, f"The recording needs {' and '.join(missing)}; put it into {folder}.")
        dataset = read([(name, folder / name) for name in _FILES], NiftiOptions())
        signal = dataset.labels[MEAN_SIGNAL]
    facts = dataset.provenance
    mask, affine = np.zeros(facts["grid"], dtype=bool), np.array(facts["affine"], dtype=np.float64)
    mask[tuple(voxels_of(dataset).T)] = True
    series, seconds = cleaned(dataset.X), float(facts["repetition"])
    name = name or dataset.name
    return Recording(name, series, mask, affine, seconds, signal, events_of(dataset))


def nifti_bytes(mask: np.ndarray, affine: np.ndarray, values: np.ndarray) -> bytes:
    """Write values (V,) at the voxels of a mask, zero elsewhere, as a compressed NIfTI file."""
    import gzip

    from nibabel import Nifti1Image

    volume = np.zeros(mask.shape, dtype=np.float32)
    volume[mask] = values
    image = Nifti1Image(volume, affine)
    image.header.set_xyzt_units("mm", "sec")
    return gzip.compress(image.to_bytes(), mtime=0)
