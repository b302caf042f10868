"""Brain recordings: voxels as rows, volumes as columns, with their places, times and events."""

from typing import NamedTuple

import numpy as np

from appca.data.brain import nifti
from appca.data.brain.cleaning import MEAN_SIGNAL, cleaned
from appca.data.brain.events import Event, check_events, events_of, read_events
from appca.data.brain.places import has_places, voxels_of
from appca.data.dataset import Dataset
from appca.data.sources.folder import data_folder, samples_folder
from appca.words.errors import InputError
from appca.words.wording import shortened

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
    events = events_of(dataset)
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


def nifti_bytes(mask: np.ndarray, affine: np.ndarray, values: np.ndarray) -> bytes:
    """Write values (V,) at the voxels of a mask, zero elsewhere, as a packed NIfTI file."""
    import gzip

    from nibabel import Nifti1Image

    volume = np.zeros(mask.shape, dtype=np.float32)
    volume[mask] = values
    image = Nifti1Image(volume, affine)
    image.header.set_xyzt_units("mm", "sec")
    return gzip.compress(image.to_bytes(), mtime=0)
