"""The store of runs, the names of components, and the check of stored files."""

import errno
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from appca.analysis.fitted import FittedRun
from appca.runs.home import home
from appca.runs.run import FitResult, RunConfig, RunInfo
from appca.storage import files, lock
from appca.storage.files import FILES, OtherFormat, or_none, read_json, write_json
from appca.storage.identity import ID_DIGITS, is_id
from appca.words import InputError, reason, refuse_if, refusing, storing

LIVE_RUNS_KEPT = 50  # number of runs kept from slider moves; older runs are deleted
ARRAYS = "arrays.npz"
LABELS = "labels.json"  # names and signs of components
NAME_LENGTH, _TITLE_LENGTH = 40, 120
_UNREADABLE = (
    *(OSError, ValueError, LookupError, TypeError),
    *(AttributeError, ArithmeticError, RecursionError),
)


@dataclass(frozen=True, eq=False)
class Run:
    """A run in the store, whose arrays are read from disk at first use."""

    id: str
    config: RunConfig
    info: RunInfo
    name: str  # name to show, by default made from the settings
    custom_name: str | None  # name that a user gave
    created: float  # seconds since 1970
    origin: str  # "fit" or "live"
    path: Path

    @property
    def fitted(self) -> FittedRun:
        """The model and the description of the rows.

        Raises InputError if the file is damaged, deleted or temporarily unreadable; `is_passing`
        recognizes the last case by the error's cause.
        """
        try:
            return _load(self.path / ARRAYS, (self.path / ARRAYS).stat().st_mtime_ns)
        except Exception as error:  # zipfile and NumPy raise many kinds
            why = f" ({reason(error)})" if isinstance(error, OSError) else ""
            msg = f"The arrays of fit {self.id} cannot be read{why}; {remedy(self.config)}."
            if is_passing(error):
                msg = f"The arrays of fit {self.id} cannot be read now ({reason(error)}); the fit "
                msg += "is not deleted: remove the cause and try again."
            raise InputError(msg) from error

    @property
    def kept(self) -> bool:
        """Whether the run is kept until deleted: requested, named, or with edited components."""
        return self.origin == "fit" or bool(self.custom_name) or (self.path / LABELS).exists()

    @property
    def is_shared(self) -> bool:
        """Whether the run is in a shared home, which is read-only."""
        return self.path.parent.parent in files.homes()


class RunStore:
    """Runs below ``<home>/runs/<id>/``, each with ``config.json`` and ``arrays.npz``.

    A run is written as a draft and moved in one step, so a killed process leaves no partial run.
    Lists omit damaged runs; `damaged` explains them.
    """

    def __init__(self, home: Path) -> None:
        self.folder = Path(home) / "runs"

    def save(
        self, config: RunConfig, result: FitResult, name: str | None = None, origin: str = "fit"
    ) -> Run:
        """Store a result; an existing equal run is kept and becomes the newest.

        The origin is "fit" or "live"; except for runs with `Run.kept`, only the newest 50 of origin
        "live" stay. Raises InputError if writing fails.
        """
        target = self.folder / config.id
        with storing("The fit", self.folder):
            if (present := self.renew(config.id, name, origin)) is None:
                # a damaged run keeps its name
                name = name or (or_none(partial(_read_meta, target)) or {}).get("name")
                facts = {"config": config.to_dict(), "info": result.info.to_dict()}
                meta: dict[str, Any] = {"id": config.id, **facts}
                meta |= {"name": _tidy(name), "created": time.time(), "origin": origin}
                arrays = result.fitted.to_arrays()
                files.put_folder(target, partial(_write, meta, arrays), _is_sound)
        if origin == "live":
            for run in [run for run in self.list() if not run.kept][LIVE_RUNS_KEPT:]:
                if (now := self.get(run.id)) is not None and not now.kept:
                    files.discard(run.path)
        return present or _read(target)

    def renew(self, run_id: str, name: str | None = None, origin: str = "fit") -> Run | None:
        """Make an undamaged run the newest, with a name if given, if it can be written; or None."""
        run = self.get(run_id)
        if run is None or not _is_sound(run.path):
            return None
        if run.is_shared:
            return run
        with suppress(OSError), lock.held(run.path):
            meta = _read_meta(run.path)
            meta["created"] = time.time()
            meta["name"] = _tidy(name) or meta["name"]
            meta["origin"] = "fit" if "fit" in (origin, meta["origin"]) else "live"
            _write_meta(run.path, meta)
        return or_none(partial(_read, run.path))

    def get(self, run_id: str) -> Run | None:
        """Return a run from this or a shared home; None if it is missing or damaged.

        See `or_none`.
        """
        if not is_id(run_id):
            return None
        run, other = or_none(partial(_read, self.folder / run_id)), files.place("runs", run_id)
        return or_none(partial(_read, other)) if run is None and other else run

    def list(self) -> list[Run]:
        """Return all readable runs, newest first."""
        runs = []
        for folder in self._folders():
            with suppress(*_UNREADABLE):  # `damaged` explains these
                runs.append(_read(folder))
        return sorted(runs, key=lambda run: -run.created)

    def damaged(self) -> dict[str, str]:
        """Return a sentence for each unreadable run, by id."""
        sentences = {folder.name: self.damage(folder.name) for folder in self._folders()}
        return {run_id: sentence for run_id, sentence in sentences.items() if sentence}

    def damage(self, run_id: str) -> str | None:
        """Return the sentence about a run; None if it is undamaged or missing."""
        if not is_id(run_id) or not os.path.lexists(self.folder / run_id):
            return None
        try:
            _read(self.folder / run_id)
        except OtherFormat as error:
            return str(error)
        except _UNREADABLE as error:
            why = f"Fit {run_id} is damaged ({reason(error)}) and skipped; "
            return f"{why}delete it or fit it again."
        return None

    def rename(self, run_id: str, name: str) -> Run:
        """Name a run, or by its settings if empty; InputError if it is gone or writing fails."""
        if (run := self.get(run_id)) is None:
            msg = f"There is no fit “{str(run_id)[:ID_DIGITS]}” to rename; choose a listed one."
            raise InputError(msg)
        run = changeable(run, self.folder)
        with storing("The name of the fit", self.folder), lock.held(run.path):
            _write_meta(run.path, _read_meta(run.path) | {"name": _tidy(name)})
            return _read(run.path)

    def delete(self, run_id: str) -> None:
        """Delete a run, even if damaged or missing; InputError if it cannot be deleted."""
        if not is_id(run_id):
            return
        with refusing(f"Fit {run_id} could not be deleted", "check the permissions of its file"):
            files.discard(self.folder / run_id)

    def drop_arrays(self, run_id: str) -> None:
        """Delete damaged arrays, but not names, so that the run is fitted again.

        Raises InputError if they cannot be deleted.
        """
        if not is_id(run_id):
            return
        with refusing(f"Fit {run_id} could not be changed", "check the permissions of its file"):
            (self.folder / run_id / ARRAYS).unlink(missing_ok=True)

    def _folders(self) -> tuple[Path, ...]:
        return tuple(sorted(path for path in self.folder.glob("*") if is_id(path.name)))


def is_passing(error: BaseException | None) -> bool:
    """Whether reading failed for lack of memory, file handles or permission, not due to damage."""
    if isinstance(error, FileNotFoundError):
        return False
    if isinstance(error, OSError):
        # Parsers raise without errno; EINVAL is a seek before the start of a damaged file.
        return error.errno not in (None, errno.EINVAL)
    return isinstance(error, MemoryError)


@files.unless_changed("config.json", ARRAYS)
def _read(folder: Path) -> Run:
    meta = _read_meta(folder)
    config, size = RunConfig.from_record(meta["config"]), (folder / ARRAYS).stat().st_size
    msg = ""
    if meta["id"] != folder.name:
        msg = f"it is named {folder.name} but contains {meta['id']}"
    elif config.id != folder.name:
        msg = "its settings have changed since the fit"
    elif size != meta["bytes"]:
        msg = f"{ARRAYS} has {size} bytes instead of {meta['bytes']}"
    elif not isinstance(meta["name"], str | None):
        msg = "config.json does not describe a run"
    refuse_if(msg, msg)
    names = {"name": _marked(meta["name"], config) or title(config), "custom_name": meta["name"]}
    made: Any = {"created": float(meta["created"]), "origin": meta["origin"], "path": folder}
    return Run(folder.name, config, RunInfo.from_dict(meta["info"]), **names, **made)


def changeable(run: Run, folder: Path) -> Run:
    """Return a writable run, copied first if in a shared home; InputError if writing fails."""
    if not run.is_shared:
        return run
    fill = partial(shutil.copytree, run.path, dirs_exist_ok=True)
    with storing("The fit", folder):
        files.put_folder(folder / run.id, fill, _is_sound)
    return _read(folder / run.id)


def _is_sound(folder: Path) -> bool:
    run, check = or_none(partial(_read, folder)), partial(files.check_file, folder / ARRAYS)
    return bool(run) and or_none(lambda: check(_read_meta(folder)[FILES][ARRAYS]) is None) is True


def remedy(config: RunConfig) -> str:
    """Return a phrase with the remedy for damaged arrays."""
    return "fit it again" if config.imported is None else "open the file that it came in again"


def title(config: RunConfig) -> str:
    """Name a run by its settings: “aPPCA, K = 4, L = 2”, with the seed if it is not 0."""
    parts = [config.model, *config.sizes]
    if config.parameters.get("inference") == "gibbs":
        parts.append("Gibbs")
    if config.parameters.get("random_state"):
        parts.append(f"seed {config.parameters['random_state']}")
    if config.stopped_at is not None:
        # summed over all stages
        parts.append(f"stopped at step {config.stopped_at}")
    return _marked(", ".join(parts), config) or config.model


def _marked(name: str | None, config: RunConfig) -> str | None:
    return f"{name} (imported)" if name and config.imported is not None else name


def _read_meta(folder: Path) -> dict[str, Any]:
    return read_json(folder / "config.json", f"Fit {folder.name}")


def _write_meta(folder: Path, meta: dict[str, Any]) -> None:
    write_json(folder / "config.json", meta, f"Fit {folder.name}")


def _write(meta: dict[str, Any], arrays: dict[str, np.ndarray], folder: Path) -> None:
    with files.solid(folder / ARRAYS) as file:
        files.write_arrays(file, arrays)
        n_bytes = file.tell()
    labels = folder.parent / meta["id"] / LABELS  # keeps the labels of a damaged run
    if labels.is_file():
        with files.solid(folder / LABELS) as file:
            file.write(labels.read_bytes())
    _write_meta(folder, meta | {"bytes": n_bytes, FILES: files.digests_of(folder, [ARRAYS])})


def _tidy(name: object, most: int = _TITLE_LENGTH) -> str | None:
    return " ".join(str(name or "").split())[:most] or None


@lru_cache(maxsize=4)
def _load(file: Path, _changed: int) -> FittedRun:
    return FittedRun.from_arrays(files.read_arrays(file))


JOURNAL = "records.txt"
JOURNALS = ("choices", "stability", "masked", "models", "quality")
# folder of a home -> required files of each subfolder
_NEEDED: dict[str, tuple[str, ...]] = {
    "datasets": ("meta.json",),
    "runs": ("config.json",),
    "studies": ("config.json",),
    **dict.fromkeys(JOURNALS, ("config.json", JOURNAL)),
    **dict.fromkeys(("selections", "embeddings", "projections", "numbers"), ()),
}
FOLDERS = (*_NEEDED, "jobs", "uploads")


class StoredFinding(NamedTuple):
    """A file that was damaged after it was stored."""

    file: Path
    why: str


def findings(home: Path) -> Iterator[StoredFinding]:
    """Yield the damaged and missing files of a home, except hidden files."""
    for name, needed in _NEEDED.items():
        for place, inside, _ in os.walk(home / name):
            inside[:] = sorted(folder for folder in inside if not folder.startswith("."))
            folder, must = Path(place), needed if Path(place).parent == home / name else ()
            if any(_in_folder(folder, must)) and folder.is_dir():
                yield from _in_folder(folder, must)


def _in_folder(folder: Path, needed: tuple[str, ...]) -> Iterator[StoredFinding]:
    entries = (path for path in folder.iterdir() if not path.name.startswith("."))
    present = {path.name: path for path in sorted(entries) if path.is_file()}
    for name in needed:
        if name not in present:
            yield StoredFinding(folder / name, f"{name} is missing")
    digests: dict[str, str] = {}
    is_described = set(needed[:1]) <= set(present)
    for name, file in present.items():
        try:
            listed = read_json(file, name).get(FILES, {}) if file.suffix == ".json" else {}
            is_wrong = not isinstance(listed, dict) or any(Path(x).name != x for x in listed)
            refuse_if(is_wrong, "its list of files is wrong")
            digests |= listed
        except Exception as error:  # parsers raise any exception
            yield StoredFinding(file, reason(error))
            is_described &= name not in needed
    for name in {**digests, **(present if is_described else {})}:
        file = folder / name
        try:
            if name in digests:
                files.check_file(file, digests[name])
            elif file.suffix == ".npz":
                files.check_sealed(file)
            elif name == JOURNAL:
                lines, n_damaged = files.lines_in(file.read_bytes())
                why = f"has damaged lines ({n_damaged})" if n_damaged else "is empty"
                refuse_if(n_damaged or not lines, f"{name} {why}")
        except Exception as error:  # parsers raise any exception
            yield StoredFinding(file, reason(error))


class Labels(NamedTuple):
    """Names and signs that a user gave to components."""

    names: tuple[str, ...]  # (K,) empty if unnamed
    signs: tuple[int, ...]  # (K,) 1 if as fitted, -1 if flipped


def labels(run: Run) -> Labels:
    """Return the names and signs of a run's components; a damaged file is ignored."""
    k = len(run.fitted.components)
    try:
        return _read_labels(run, k)
    except Exception:  # parsers raise any exception
        return Labels(("",) * k, (1,) * k)


def damage(run: Run) -> str | None:
    """Return an error sentence if names cannot be read, else None."""
    try:
        _read_labels(run, len(run.fitted.components))
    except FileNotFoundError:
        return None
    except Exception as error:  # parsers raise any exception
        return (
            f"{_words(run)} are damaged ({reason(error)}) and skipped; name a component again, "
            "which replaces the file."
        )
    return None


def put(run: Run, labels: Labels) -> Labels:
    """Store names and signs with a `changeable` run. Raises InputError if writing fails."""
    run = changeable(run, home() / "runs")
    with storing(_words(run), run.path.parent, "free some space, or fit again if it was deleted"):
        write_json(run.path / LABELS, labels._asdict(), _words(run))  # see `Run.kept`
    return labels


def _read_labels(run: Run, k: int) -> Labels:
    kept = read_json(run.path / LABELS, _words(run))
    names = tuple(_tidy(name, NAME_LENGTH) or "" for name in kept["names"])
    signs = tuple(-1 if sign == -1 else 1 for sign in kept["signs"])
    refuse_if(not len(names) == len(signs) == k, f"they are not of {k} components")
    return Labels(names, signs)


def _words(run: Run) -> str:
    return f"The names of fit {run.id}"
