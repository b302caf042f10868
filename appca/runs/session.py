"""What a person works on, in one file that opens on another machine: data, runs, selections, names.

A session file (``NAME.appca``) is a zip of

    session.json              what is in it: the data set, the runs with their settings, names
    data/matrix.npy ids.npy label_<i>.npy missing.npy      the data set, unless it was left out
    runs/<i>/<array>.npy      the arrays of each run
    selections/<i>.npy        (N,) bool, the rows of each selection

There is no pickle in it, and no name in it becomes a path. It is read and checked as a whole before
anything is stored; what is stored is stored under the ids made of its contents, so a file that was
altered cannot take the place of something else.
"""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from appca.analysis.fitted import FittedRun
from appca.analysis.groups.selections import SavedSelection, SelectionStore
from appca.data.dataset import Dataset
from appca.data.sources.builtin import SOURCES, load
from appca.data.store import DatasetStore
from appca.runs.configuration import RunConfig
from appca.runs.fit import versions
from appca.runs.labels import FILE as LABELS_FILE
from appca.runs.labels import flip, labels, rename
from appca.runs.run import FitResult, RunInfo
from appca.runs.store import Run, RunStore
from appca.storage.errors import InputError
from appca.storage.formats import refuse_newer
from appca.storage.packed import Packed, write
from appca.storage.wording import shortened

SUFFIX = ".appca"
FORMAT, VERSION = "appca session", 1
CONTENTS, MISSING = "session.json", "data/missing.npy"
# Parts of a fitted run that every page reads, and their axes: rows, components, features after
# preprocessing.
_AXES = {
    "components": "KD",
    "mean": "D",
    "latent_variance": "K",
    "explained_variance": "K",
    "scale": "K",
    "noise_variance": "",
    "log_likelihoods": "I",
    "scores": "NK",
    "active": "NK",
    "inclusion": "NK",
    "membership": "N",
    "error": "N",
    "log_likelihood_rows": "N",
}
_INFO: dict[str, type | tuple[type, ...]] = {
    "n_iter": int,
    "stop_reason": str,
    "seconds": (int, float),
    "log_likelihood": (int, float),
    "n_rows": int,
    "n_features": int,
    "versions": dict,
}


class Session(NamedTuple):
    """What is to be packed."""

    dataset: Dataset
    runs: Sequence[Run]  # of this data set
    selections: Sequence[SavedSelection] = ()
    selected: np.ndarray | None = None  # (N,) bool, the rows selected now
    opened: str | None = None  # id of the run on screen


class Unpacked(NamedTuple):
    """What came out of a session file and is now in the stores."""

    dataset: str  # digest
    runs: tuple[str, ...]  # ids
    selections: tuple[str, ...]  # names
    selected: np.ndarray | None
    opened: str | None


def pack(session: Session, *, with_data: bool = True) -> bytes:
    """Return a session file.

    Parameters
    ----------
    session : Session
    with_data : bool
        False leaves the matrix, ids and labels out: who opens the file must have the data set, or
        be able to make it from where it came.

    Raises
    ------
    InputError
        When a run is of other data, or its arrays cannot be read.
    """
    dataset = session.dataset
    strange = [run.id for run in session.runs if run.config.dataset != dataset.digest]
    if strange:
        msg = f"Run {strange[0]} is not of “{dataset.name}”; pack runs with their own data."
        raise InputError(msg)
    members = _data_arrays(dataset) if with_data else {}
    for i, run in enumerate(session.runs):
        members |= {
            f"runs/{i}/{name}.npy": values for name, values in run.fitted.to_arrays().items()
        }
    members |= {f"selections/{i}.npy": kept.mask for i, kept in enumerate(session.selections)}
    if session.selected is not None and session.selected.any():
        members["selections/selected.npy"] = session.selected
    contents = {
        "format": FORMAT,
        "version": VERSION,
        "versions": versions(),
        "dataset": _about_data(dataset) | {"included": with_data},
        "runs": [_about_run(run) for run in session.runs],
        "selections": [kept.name for kept in session.selections],
        "opened": session.opened,
    }
    buffer = io.BytesIO()
    write(buffer, {CONTENTS: contents}, members)
    return buffer.getvalue()


def unpack(name: str, stream: BinaryIO, home: Path) -> Unpacked:
    """Check a session file as a whole, then put what it holds into the stores below a home folder.

    What is there already stays: the same data set, the same run, and the names a person gave its
    components; a selection of the same name but other rows comes in beside it.

    Parameters
    ----------
    name : str
        Of the file, for messages.
    stream : binary file object
    home : Path

    Raises
    ------
    InputError
        When it is damaged or no session file, when its data are not those its digest names, when
        it has no data and they are not here, or when the disk refuses. Unless it is the disk,
        nothing has been stored then.
    """
    packed = Packed(name, stream)
    if CONTENTS not in packed:
        msg = f"“{shortened(name)}” is no session file; save one on the page Export."
        raise InputError(msg)
    contents = packed.json(CONTENTS)
    if contents.get("format") != FORMAT or not isinstance(contents.get("version"), int):
        msg = (
            f"“{shortened(name)}” is no session file that this version of appca reads; it says "
            f"“{shortened(contents.get('format'))}”, version {shortened(contents.get('version'))}."
        )
        raise InputError(msg)
    try:
        refuse_newer(f"“{shortened(name)}”", contents["version"], VERSION)
        dataset = _read_data(packed, contents["dataset"], home)
        runs = [_read_run(packed, i, one, dataset) for i, one in enumerate(contents["runs"])]
        masks = [
            _mask(packed, f"selections/{i}.npy", dataset)
            for i in range(len(contents["selections"]))
        ]
        names = [str(kept) for kept in contents["selections"]]
        now = "selections/selected.npy"
        selected = _mask(packed, now, dataset) if now in packed else None
        opened = contents.get("opened")
    except InputError:
        raise
    except Exception as error:  # what stands where another thing should fails in many ways
        msg = f"“{shortened(name)}” is damaged; save it again."
        raise InputError(msg) from error
    digest = DatasetStore(home).put(dataset)
    ids = [_keep(RunStore(home), one) for one in runs]
    kept = _keep_selections(SelectionStore(home), dataset, names, masks)
    return Unpacked(digest, tuple(ids), kept, selected, opened if opened in ids else None)


class _RunParts(NamedTuple):
    """A run as read from a file."""

    config: RunConfig
    result: FitResult
    name: str | None
    names: list[str]  # of components, empty where none was given
    signs: list[int]


def _data_arrays(dataset: Dataset) -> dict[str, np.ndarray]:
    columns = {f"data/label_{i}.npy": c for i, c in enumerate(dataset.labels.values())}
    gaps = {} if dataset.missing is None else {MISSING: dataset.missing}
    return {"data/matrix.npy": dataset.X, "data/ids.npy": dataset.ids, **columns, **gaps}


def _about_data(dataset: Dataset) -> dict[str, Any]:
    return {
        "digest": dataset.digest,
        "name": dataset.name,
        "labels": list(dataset.labels),
        "image_shape": dataset.image_shape,
        "feature_names": dataset.feature_names,
        "provenance": dataset.provenance,
    }


def _about_run(run: Run) -> dict[str, Any]:
    given = labels(run)
    return {
        "config": run.config.to_dict(),
        "info": run.info.to_dict(),
        "name": run.name if run.named else None,
        "components": {"names": given.names, "signs": given.signs},
    }


def _read_data(packed: Packed, about: dict[str, Any], home: Path) -> Dataset:
    """Return the data set: from the file, from the store, or made anew; with the right digest."""
    digest, name = str(about["digest"]), str(about["name"])
    if not about["included"]:
        return _data_at_hand(packed.name, about, digest, home)
    dataset = Dataset(
        name=name,
        X=packed.array("data/matrix.npy"),
        ids=packed.array("data/ids.npy"),
        labels={
            str(key): packed.array(f"data/label_{i}.npy") for i, key in enumerate(about["labels"])
        },
        image_shape=about["image_shape"] and tuple(about["image_shape"]),
        feature_names=about["feature_names"] and tuple(about["feature_names"]),
        provenance=_provenance(about["provenance"]),
        missing=packed.array(MISSING) if MISSING in packed else None,
    )
    if dataset.digest != digest:
        msg = (
            f"The data in “{shortened(packed.name)}” are not those its runs were fitted to: their "
            "digest is another; fetch or save the file again."
        )
        raise InputError(msg)
    return dataset


def _provenance(given: dict[str, Any]) -> dict[str, Any]:
    """Return where data came from, if pages can show it."""
    found = dict(given)
    low, high = map(float, found.get("image_range", (0.0, 1.0)))
    if not np.isfinite([low, high]).all() or not isinstance(found.get("report", {}), dict):
        msg = "image_range"
        raise ValueError(msg)
    return found


def _data_at_hand(file: str, about: dict[str, Any], digest: str, home: Path) -> Dataset:
    if (DatasetStore(home).folder / digest).is_dir():
        return DatasetStore(home).get(digest)
    source = str(about["provenance"].get("source", ""))
    options = about["provenance"].get("options", {})
    if source in SOURCES and SOURCES[source].offline:
        dataset = load(source, **options)
        if dataset.digest == digest:
            return dataset
    given = ", ".join(f"{key} = {value}" for key, value in options.items())
    title = SOURCES[source].title if source in SOURCES else "your own files"
    where = f"{title}{f' with {given}' if given else ''}"
    msg = (
        f"“{shortened(file)}” was saved without its data, and “{shortened(about['name'])}” is not "
        f"here; open it first from {shortened(where, 120)}, then this file again."
    )
    raise InputError(msg)


def _read_run(packed: Packed, number: int, about: dict[str, Any], dataset: Dataset) -> _RunParts:
    config = RunConfig.from_record(about["config"])
    fitted = FittedRun.from_arrays(packed.arrays(f"runs/{number}/"))
    info = dict(about["info"])
    _check(config, fitted, info, dataset)
    given = about["components"]
    return _RunParts(
        config,
        FitResult(fitted, RunInfo.from_dict(info)),
        about["name"] and str(about["name"]),
        [str(name) for name in given["names"]],
        [-1 if sign == -1 else 1 for sign in given["signs"]],
    )


def _check(config: RunConfig, fitted: FittedRun, info: dict[str, Any], dataset: Dataset) -> None:
    """Raise ValueError for arrays and facts that are not those of a run of this data set."""
    sizes = dict(zip("KD", fitted.components.shape, strict=True))
    sizes |= {"N": dataset.n_rows, "I": len(fitted.log_likelihoods)}
    given = {name: np.asarray(getattr(fitted, name)) for name in _AXES}
    wrong = [
        name for name, axes in _AXES.items() if given[name].shape != tuple(map(sizes.get, axes))
    ]
    wrong += [name for name, kind in _INFO.items() if not isinstance(info.get(name), kind)]
    wrong += [
        name for name in _AXES if name != "log_likelihoods" and not np.isfinite(given[name]).all()
    ]
    before = fitted.preprocessing
    fits = before.n_features == sizes["D"] and len(before.offset) == dataset.n_features
    if wrong or not fits or fitted.active.dtype != bool or config.dataset != dataset.digest:
        msg = f"{wrong[0] if wrong else 'a run'} does not fit the data"
        raise ValueError(msg)


def _mask(packed: Packed, member: str, dataset: Dataset) -> np.ndarray:
    mask = packed.array(member)
    if mask.shape != (dataset.n_rows,) or mask.dtype != bool:
        msg = "a selection of other rows"
        raise ValueError(msg)
    return mask


def _keep(store: RunStore, one: _RunParts) -> str:
    known = store.get(one.config.id)
    name = None if known is not None and known.named else one.name
    run = store.save(one.config, one.result, name)
    if not (run.path / LABELS_FILE).exists() and len(one.names) == len(one.signs):
        for k in range(min(len(one.names), len(run.fitted.components))):
            if one.names[k]:
                rename(run, k, one.names[k])
            if one.signs[k] == -1:
                flip(run, k)
    return run.id


def _keep_selections(
    store: SelectionStore, dataset: Dataset, names: list[str], masks: list[np.ndarray]
) -> tuple[str, ...]:
    here = {kept.name: kept.mask for kept in store.list(dataset.digest, dataset.n_rows)}
    found = []
    for name, mask in zip(names, masks, strict=True):
        same = name not in here or np.array_equal(here[name], mask)
        free = name if same else next(n for n in _others(name) if n not in here)
        if mask.any() and free.strip():
            found.append(store.save(dataset.digest, free, mask))
    return tuple(found)


def _others(name: str) -> "Sequence[str]":
    return [f"{name[:50]} ({i})" for i in range(2, 1000)]
