"""Brain recordings: voxels as rows, volumes as columns, with their places, times and events."""

import csv
import io
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from appca.data.brain import nifti
from appca.data.brain.cleaning import MEAN_SIGNAL, cleaned
from appca.data.dataset import Dataset
from appca.data.readers.source import LIMITS, File, file_bytes
from appca.data.sources.folder import data_folder, samples_folder
from appca.words.errors import InputError
from appca.words.wording import shortened

SHARED, MADE_UP = "shared", "made-up"
SHARED_FILE = "sub-02_task-oneback_run-1_bold.nii.gz"
SHARED_EVENTS = "sub-02_task-oneback_run-1_events.tsv"
_MOST_EVENTS = 100_000


class Event(NamedTuple):
    """Something shown or done, in seconds from the first volume."""

    onset: float
    duration: float


class Recording(NamedTuple):
    """V voxels inside a mask over T volumes."""

    name: str
    series: np.ndarray  # (V, T) float32, without drift, overall standard deviation 1
    mask: np.ndarray  # (x, y, z) bool; its voxels in C order are the rows
    affine: np.ndarray  # (4, 4), voxel indices to millimetres
    repetition: float  # seconds from one volume to the next
    signal: np.ndarray  # (V,) float32, the voxels' mean, to draw maps onto
    events: tuple[Event, ...]


def read_events(name: str, file: File) -> tuple[Event, ...]:
    """Read a table of events: tab- or comma-separated, with columns onset and duration in seconds.

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
        event = Event(float(row["onset"]), float(row["duration"]))
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


def written(events: Sequence[Event]) -> str:
    """Write events as one text, for settings: "10+16 40+16"."""
    return " ".join(f"{onset:g}+{duration:g}" for onset, duration in events)


def parsed(text: str) -> tuple[Event, ...]:
    """Read what `written` wrote.

    Raises InputError when it is anything else.
    """
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
    if not {"grid", "affine", "repetition"} <= set(dataset.provenance):
        msg = f"“{dataset.name}” holds no brain recording; open a 4-D NIfTI file."
        raise InputError(msg)
    facts = dataset.provenance
    mask = np.zeros(facts["grid"], dtype=bool)
    try:
        places = np.array([name.split("-")[1:] for name in dataset.ids.tolist()], dtype=int)
        mask[tuple(places.T)] = True
        affine = np.array(facts["affine"], dtype=np.float64).reshape(4, 4)
    except (ValueError, IndexError) as error:
        msg = f"The rows of “{dataset.name}” are not the voxels it says; open its file again."
        raise InputError(msg) from error
    signal = dataset.labels.get(MEAN_SIGNAL, np.ones(dataset.n_rows))
    events = tuple(Event(event["onset"], event["duration"]) for event in facts.get("events", []))
    return Recording(
        name=dataset.name,
        series=cleaned(dataset.X),
        mask=mask,
        affine=affine,
        repetition=float(facts["repetition"]),
        signal=np.asarray(signal, dtype=np.float32),
        events=events,
    )


def load(key: str) -> Recording:
    """Open the recording in the data folder ("shared"), or the project's own ("made-up").

    Raises InputError when a file is missing; the sentence says which.
    """
    if key == MADE_UP:
        from appca.data.sources.samples import brain

        recording = of_dataset(brain())
        with np.load(samples_folder() / "brain.npz", allow_pickle=False) as file:
            return recording._replace(signal=file["mean"][file["mask"]].astype(np.float32))
    if key != SHARED:
        msg = f"There is no recording “{shortened(key)}”; choose {SHARED} or {MADE_UP}."
        raise InputError(msg)
    folder = data_folder() / "fmri"
    missing = [name for name in (SHARED_FILE, SHARED_EVENTS) if not (folder / name).is_file()]
    if missing:
        msg = f"The recording needs {' and '.join(missing)}; put it into {folder}."
        raise InputError(msg)
    recording = of_dataset(nifti.read(SHARED_FILE, folder / SHARED_FILE, nifti.NiftiOptions()))
    events = read_events(SHARED_EVENTS, folder / SHARED_EVENTS)
    check_events(events, recording.series.shape[1], recording.repetition)
    return recording._replace(name="Faces, houses and scenes", events=events)


def has_shared() -> bool:
    """Whether the recording of the data folder is there."""
    return all((data_folder() / "fmri" / name).is_file() for name in (SHARED_FILE, SHARED_EVENTS))


def nifti_bytes(mask: np.ndarray, affine: np.ndarray, values: np.ndarray) -> bytes:
    """Write values (V,) at the voxels of a mask, zero elsewhere, as a packed NIfTI file."""
    import gzip

    from nibabel import Nifti1Image

    volume = np.zeros(mask.shape, dtype=np.float32)
    volume[mask] = values
    image = Nifti1Image(volume, affine)
    image.header.set_xyzt_units("mm", "sec")
    return gzip.compress(image.to_bytes(), mtime=0)
