"""Brain recordings: voxels as rows, volumes as columns; mask and cleaning."""

import csv
import io
import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from appca.data.dataset import Dataset
from appca.data.files import (
    LIMITS,
    LONGEST_NAME,
    File,
    Files,
    Reader,
    ReadLimits,
    check_matrix,
    file_bytes,
)
from appca.data.folders import folder_of_files, sample_file
from appca.words import InputError, counted, shortened

if TYPE_CHECKING:
    from nibabel.nifti1 import Nifti1Pair

_MOST_EVENTS = 100_000
LONGEST_TYPE = 40  # characters of a trial type


class Event(NamedTuple):
    """Something shown or done, in seconds from the first volume."""

    onset: float
    duration: float
    trial_type: str = ""

    @property
    def end(self) -> float:
        """When it is over."""
        return self.onset + self.duration


def read_events(name: str, file: File) -> tuple[Event, ...]:
    """Read a table of events: tab- or comma-separated, with columns onset and duration in seconds.

    A column trial_type, if there is one, says what was shown or done.
    Raises InputError when a column is missing or a time is none.
    """
    text = file_bytes(name, file, LIMITS).decode("utf-8-sig", errors="replace")
    lines = [line for line in text.splitlines() if line.strip()]
    tab = "\t" if lines and "\t" in lines[0] else ","
    reader = csv.DictReader(io.StringIO("\n".join(lines)), delimiter=tab)
    missing = {"onset", "duration"} - set(reader.fieldnames or ())
    if missing:
        msg = (
            f"“{shortened(name)}” needs the columns onset and duration, in seconds; "
            f"{' and '.join(sorted(missing))} is missing."
        )
        raise InputError(msg)
    events = [_event(name, row, place) for place, row in enumerate(reader, start=2)]
    if not 0 < len(events) <= _MOST_EVENTS:
        msg = f"“{shortened(name)}” holds {len(events):,} events; give 1 to {_MOST_EVENTS:,}."
        raise InputError(msg)
    return tuple(events)


def _event(name: str, row: dict[str, str], line: int) -> Event:
    try:
        kind = shortened((row.get("trial_type") or "").strip(), LONGEST_TYPE)
        event = Event(float(row["onset"]), float(row["duration"]), kind)
    except (TypeError, ValueError):
        event = Event(math.nan, math.nan)
    if not (math.isfinite(event.onset) and 0 <= event.duration < math.inf):
        msg = (
            f"Line {line} of “{shortened(name)}” has the onset "
            f"“{shortened(row['onset'])}” and the duration “{shortened(row['duration'])}”; both "
            "must be numbers of seconds, the duration not below 0."
        )
        raise InputError(msg)
    return event


def check_events(events: Sequence[Event], n_volumes: int, repetition: float) -> None:
    """Raise InputError for events that lie outside the recording."""
    length = n_volumes * repetition
    outside = [event for event in events if not 0 <= event.onset < length]
    if outside:
        msg = (
            f"{len(outside):,} of {len(events):,} events lie outside the recording, which lasts "
            f"{length:g} s (first: {outside[0].onset:g} s); give onsets in seconds from its first "
            "volume."
        )
        raise InputError(msg)


def events_of(dataset: Dataset) -> tuple[Event, ...]:
    """Return the events that came with a recording, or were added to it; often none."""
    return tuple(
        Event(event["onset"], event["duration"], event.get("trial_type", ""))
        for event in dataset.provenance.get("events", [])
    )


def blocks(events: Sequence[Event], gap: float) -> list[Event]:
    """Return events of the same trial type that follow each other within `gap` seconds as one."""
    joined: list[Event] = []
    for event in sorted(events):
        last = joined[-1] if joined else None
        if last and last.trial_type == event.trial_type and event.onset - last.end <= gap:
            end = max(last.end, event.end)
            joined[-1] = last._replace(duration=end - last.onset)
        else:
            joined.append(event)
    return joined


DRIFT = 3  # order of the polynomial in time that is taken out of every voxel
MEAN_SIGNAL = "mean signal"  # label of the rows: what slices are drawn in grey from


def cleaned(series: np.ndarray) -> np.ndarray:
    """Take the drift out of voxels (V, T) and divide all by one number, their standard deviation.

    What is returned, float32, is orthogonal to all polynomials in time up to the third order.
    Raises InputError when nothing varies, or there are too few volumes.
    """
    T = series.shape[1]
    if T < 4 * (DRIFT + 1):
        msg = (
            f"A recording needs at least {4 * (DRIFT + 1)} volumes, as its slow drift is taken "
            f"out first; this one has {T}."
        )
        raise InputError(msg)
    trend = drift(T).astype(np.float32)
    left = np.array(series, dtype=np.float32)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused below
        left -= left.mean(axis=1, keepdims=True)  # first, so that float32 loses nothing below
        left -= (left @ trend) @ trend.T
        scale = math.sqrt(float(np.square(left, dtype=np.float32).mean(dtype=np.float64)))
    if not math.isfinite(scale):
        msg = "The recording holds numbers beyond 1e19; give its values in a smaller unit."
        raise InputError(msg)
    if not scale > 0:
        msg = "No voxel of the recording varies over time; check mask and file."
        raise InputError(msg)
    left /= np.float32(scale)
    return left


def drift(n_volumes: int) -> np.ndarray:
    """Return an orthonormal basis (T, 4) of the polynomials up to the third order."""
    powers = np.polynomial.legendre.legvander(np.linspace(-1, 1, n_volumes), DRIFT)
    return np.linalg.qr(powers)[0]


def mask_of(mean: np.ndarray) -> np.ndarray:
    """Find the brain in a mean volume (x, y, z), as nilearn's `compute_epi_mask` does.

    The threshold is the middle of the largest step between sorted values, from the 20th to the 85th
    percentile. What is left of the mask after erosion is its largest connected part, dilated
    again. Raises InputError when there is none.
    """
    from scipy import ndimage

    smooth = ndimage.gaussian_filter(mean.astype(np.float32), 1 / math.sqrt(8 * math.log(2)))
    values = np.sort(smooth, axis=None)
    part = values[int(0.2 * len(values)) : int(0.85 * len(values)) + 1]
    if len(part) > 1:
        with np.errstate(invalid="ignore"):  # of infinite values no step is largest
            step = int(np.diff(part).argmax())
        threshold = 0.5 * (part[step] + part[step + 1])
        places, n_parts = ndimage.label(ndimage.binary_erosion(smooth >= threshold, iterations=2))
        if n_parts:
            largest = places == np.bincount(places[places > 0]).argmax()
            wide = ndimage.binary_dilation(largest, iterations=4)
            mask: np.ndarray = ndimage.binary_erosion(wide, iterations=2)
            if mask.any():
                return mask
    msg = "No brain could be separated from the background of this recording; give a mask, too."
    raise InputError(msg)


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
    over_time = [axis for axis in range(3, len(image.shape)) if image.shape[axis] > 1]
    shape = (*image.shape[:3], *(image.shape[axis] for axis in over_time))
    _check_shape(name, shape if over_time else image.shape)
    seconds = _repetition(name, image, over_time[0])
    _check_affine(name, image.affine)
    check_matrix(name, math.prod(shape[:3]), shape[3], 4, limits)
    volumes = _numbers(name, image).reshape(shape)
    finite = np.isfinite(volumes).all(axis=3)
    with np.errstate(over="ignore", invalid="ignore"):  # such voxels are left out
        mean, spread = volumes.mean(axis=3), np.ptp(volumes, axis=3)
    finite &= np.isfinite(mean) & np.isfinite(spread)
    mean = np.where(finite, mean, 0.0)
    if options.mask is not None:
        mask = _mask(options.mask_name, options.mask, shape[:3], limits)
    else:
        mask = mask_of(mean)
    varies = finite & (spread > 0)
    kept = mask & varies
    if np.count_nonzero(kept) < 2:
        msg = f"Inside the mask of “{shortened(name)}” nothing varies over time; give another mask."
        raise InputError(msg)
    report = {"rows": int(kept.sum()), "columns": shape[3]}
    if (mask & ~varies).any():
        report["dropped"] = int((mask & ~varies).sum())
    return Dataset(
        name=Path(name).name.split(".")[0] or name,
        X=cleaned(volumes[kept]),
        ids=np.array(["voxel-{}-{}-{}".format(*place) for place in np.argwhere(kept)]),
        labels={MEAN_SIGNAL: mean[kept].astype(np.float32)},
        feature_names=tuple(f"{seconds * volume:.6g} s" for volume in range(shape[3])),
        provenance={
            "source": "file",
            "files": [name],
            "comparable": True,
            "grid": list(shape[:3]),
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


def _repetition(name: str, image: "Nifti1Pair", axis: int) -> float:
    try:
        unit = str(image.header.get_xyzt_units()[1])
    except KeyError:  # a code the format does not define
        unit = "unknown"
    step = float(image.header.get_zooms()[axis])
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


GAP = 2  # voxels between slices that are side by side


def has_places(dataset: Dataset) -> bool:
    """Whether the rows of a data set are voxels of a volume."""
    return {"grid", "affine"} <= set(dataset.provenance)


def voxels_of(dataset: Dataset) -> np.ndarray:
    """Return the indices (V, 3) of a recording's rows in its grid.

    Raises InputError when a row is not a voxel of the grid.
    """
    with suppress(ValueError):  # of names that are not those of voxels
        places = np.array([name.split("-")[1:] for name in dataset.ids.tolist()], dtype=int)
        if ((places >= 0) & (places < np.array(dataset.provenance["grid"]))).all():
            return places
    msg = f"The rows of “{dataset.name}” are not the voxels it says; open its file again."
    raise InputError(msg)


def orientation(affine: np.ndarray) -> tuple[list[int], list[int]]:
    """Return which index (axes) runs to the right, to the front and up, and which way (signs).

    ``axes[0]`` is the volume's axis nearest to left-right, ``signs[0]`` -1 if it runs left.
    """
    turn = np.array(affine, dtype=float)[:3, :3]
    turn = turn / np.maximum(np.linalg.norm(turn, axis=0), 1e-12)
    axes, signs, left = [0, 0, 0], [1, 1, 1], np.abs(turn)
    for _ in range(3):  # the clearest pair first, so that oblique axes are never taken twice
        to, of = np.unravel_index(np.argmax(left), left.shape)
        axes[to], signs[to] = int(of), -1 if turn[to, of] < 0 else 1
        left[to, :], left[:, of] = -1.0, -1.0
    return axes, signs


def upright(volume: np.ndarray, affine: np.ndarray) -> np.ndarray:
    """Turn a volume (x, y, z) so that its axes point right, front and up as nearly as they can."""
    axes, signs = orientation(affine)
    turned = np.transpose(volume, axes)
    return turned[tuple(slice(None, None, int(sign)) for sign in signs)]


def side_by_side(dataset: Dataset) -> np.ndarray:
    """Return the places (V, 2) of a recording's voxels in its horizontal slices, in millimetres.

    The lowest slice is at the top left, the next one to its right; each has the front of the head
    at the top and the right of the body on the right.

    Raises InputError when a row is not a voxel of the grid.
    """
    affine = np.array(dataset.provenance["affine"], dtype=float).reshape(4, 4)
    axes, signs = orientation(affine)
    sides = np.linalg.norm(affine[:3, axes[:2]], axis=0)
    right, front, up = (voxels_of(dataset)[:, axes] * signs).T
    heights, of_row = np.unique(up, return_inverse=True)
    width = (np.ptp(right) + 1 + GAP) * sides[0]
    height = (np.ptp(front) + 1 + GAP) * sides[1]
    columns = int(np.ceil(np.sqrt(len(heights) * height / width)))
    x = (of_row % columns) * width + (right - right.min()) * sides[0]
    y = (front - front.min()) * sides[1] - (of_row // columns) * height
    return np.column_stack([x, y])


SHARED, MADE_UP = "shared", "made-up"
SHARED_FILE = "sub-02_task-oneback_run-1_bold.nii.gz"
SHARED_EVENTS = "sub-02_task-oneback_run-1_events.tsv"


class Recording(NamedTuple):
    """V voxels inside a mask over T volumes."""

    name: str
    series: np.ndarray  # (V, T) float32, without drift, overall standard deviation 1
    mask: np.ndarray  # (x, y, z) bool; its voxels in C order are the rows
    affine: np.ndarray  # (4, 4), voxel indices to millimetres
    repetition: float  # seconds from one volume to the next
    signal: np.ndarray  # (V,) float32, the voxels' mean, to draw maps onto
    events: tuple[Event, ...]


def parsed(text: str) -> tuple[Event, ...]:
    """Read events from one text: "10+16 40+16"; raises InputError when it is anything else."""
    try:
        pairs = [piece.split("+") for piece in text.split()]
        return tuple(Event(float(onset), float(duration)) for onset, duration in pairs)
    except ValueError as error:
        msg = f"Events are written as onset+duration, such as “10+16 40+16”; got “{text[:40]}”."
        raise InputError(msg) from error


def of_dataset(dataset: Dataset) -> Recording:
    """Return the recording that a data set holds.

    Raises InputError when its rows are no voxels.
    """
    if not (has_places(dataset) and dataset.is_recording):
        msg = f"“{dataset.name}” holds no brain recording; open a 4-D NIfTI file."
        raise InputError(msg)
    facts = dataset.provenance
    mask = np.zeros(facts["grid"], dtype=bool)
    mask[tuple(voxels_of(dataset).T)] = True
    affine = np.array(facts["affine"], dtype=np.float64).reshape(4, 4)
    signal = dataset.labels.get(MEAN_SIGNAL, np.ones(dataset.n_rows))
    return Recording(
        name=dataset.name,
        series=cleaned(dataset.X),
        mask=mask,
        affine=affine,
        repetition=float(facts["repetition"]),
        signal=np.asarray(signal, dtype=np.float32),
        events=events_of(dataset),
    )


def brain() -> Dataset:
    """Return a made-up brain recording: rows are voxels, columns volumes, values in percent."""
    table = sample_file("brain_events.tsv")
    with np.load(sample_file("brain.npz"), allow_pickle=False) as file:
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


def load(key: str) -> Recording:
    """Open the recording in the data folder ("shared"), or the project's own ("made-up").

    Raises InputError when a file is missing; the sentence says which.
    """
    if key == MADE_UP:
        recording = of_dataset(brain())
        with np.load(sample_file("brain.npz"), allow_pickle=False) as file:
            return recording._replace(signal=file["mean"][file["mask"]].astype(np.float32))
    if key != SHARED:
        msg = f"There is no recording “{shortened(key)}”; choose {SHARED} or {MADE_UP}."
        raise InputError(msg)
    folder = folder_of_files() / "fmri"
    missing = [name for name in (SHARED_FILE, SHARED_EVENTS) if not (folder / name).is_file()]
    if missing:
        msg = f"The recording needs {' and '.join(missing)}; put it into {folder}."
        raise InputError(msg)
    recording = of_dataset(read(SHARED_FILE, folder / SHARED_FILE, NiftiOptions()))
    events = read_events(SHARED_EVENTS, folder / SHARED_EVENTS)
    check_events(events, recording.series.shape[1], recording.repetition)
    return recording._replace(name="Faces, houses and scenes", events=events)


def nifti_bytes(mask: np.ndarray, affine: np.ndarray, values: np.ndarray) -> bytes:
    """Write values (V,) at the voxels of a mask, zero elsewhere, as a packed NIfTI file."""
    import gzip

    from nibabel import Nifti1Image

    volume = np.zeros(mask.shape, dtype=np.float32)
    volume[mask] = values
    image = Nifti1Image(volume, affine)
    image.header.set_xyzt_units("mm", "sec")
    return gzip.compress(image.to_bytes(), mtime=0)
