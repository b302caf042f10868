"""Data sets on disk: one folder each, written atomically, read without pickle."""

import json
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from appca.data.dataset import Dataset
from appca.storage import files
from appca.storage.identity import is_digest
from appca.words import InputError, reason, refuse_if, shortened, storing

_ORIGIN = ".origin"  # hidden, so that `check` ignores it


class DatasetSummary(NamedTuple):
    """A data set in a list."""

    digest: str
    name: str
    n_rows: int
    source: str
    created: float  # seconds since 1970
    whole: str  # its digest, or that of the data set its rows were taken from


class DatasetStore:
    """Data sets below ``<home>/datasets/<digest>/``.

    A folder has an NPY file for each of `Dataset.arrays` and ``meta.json`` with the digests of all
    files, which `appca check` verifies. It is written as a draft and moved in one step, so a killed
    process leaves no partial data set.
    """

    def __init__(self, home: Path) -> None:
        self.folder = Path(home) / "datasets"

    def put(self, dataset: Dataset) -> str:
        """Store a data set and return its digest; if present, update its name.

        An existing copy is read completely, and replaced if it is damaged. Raises InputError for a
        data set of one row, or if writing fails.
        """
        title, target = f"“{shortened(dataset.name)}”", self.folder / dataset.digest
        single = f"{title} has a single row; a stored data set needs at least 2, so add rows."
        refuse_if(dataset.n_rows < 2, single)
        with storing(title, self.folder):
            if not self._is_sound(target):
                files.put_folder(target, partial(_write, dataset), self._is_sound)
            elif target.is_dir():  # otherwise it is in a shared home
                old = _read_meta(target)
                new = _meta(dataset, old["created"], old[files.FILES])
                if json.loads(json.dumps(new)) != old:  # also works on a full disk
                    files.write_json(target / "meta.json", new, _title(target))
        return dataset.digest

    def get(self, digest: str) -> Dataset:
        """Open a data set, with its matrix on disk until used; InputError if it cannot be read."""
        folder = self.path(digest)
        try:
            meta = _read_meta(folder)
            is_other = meta["digest"] != digest or not isinstance(meta["name"], str)
            refuse_if(is_other, "meta.json describes other data")
            float(meta["created"])
            # the number of missing cells shows whether a file is lost
            gaps = bool(meta.get("n_missing"))
            dataset = Dataset.rebuilt(meta, partial(_array, folder, meta), gaps=gaps)
        except files.OtherFormat:
            raise
        except Exception as error:  # JSON and NumPy raise many kinds of exceptions
            msg = f"The stored data set {digest[:12]} is damaged ({reason(error)}); delete it, or "
            msg += "load the data again in its place."
            raise InputError(msg) from error
        dataset.__dict__["digest"] = digest  # avoids reading the whole matrix to compute it
        return dataset

    def note_origin(self, digest: str, path: Path) -> None:
        """Record the local file that a data set came from, outside of session files."""
        with suppress(OSError):  # the origin is optional
            facts = {"path": str(path.absolute()), "state": _state(path)}
            files.write(self.folder / digest / _ORIGIN, json.dumps(facts))

    def origin(self, digest: str) -> Path | None:
        """Return the file that a data set was read from, unless it is deleted or changed."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            facts = json.loads((self.path(digest) / _ORIGIN).read_bytes())
            path = Path(facts["path"])
            return path if facts["state"] == _state(path) else None
        return None

    def list(self) -> list[DatasetSummary]:
        """Summaries of all readable data sets, newest first; damaged ones are skipped."""
        summaries = []
        for folder in sorted(self.folder.glob("[0-9a-f]*")):
            with suppress(Exception):  # as above
                summaries.append(_summary(folder))
        return sorted(summaries, key=lambda summary: -summary.created)

    def summary(self, digest: str) -> DatasetSummary:
        """Describe a data set without opening its arrays; InputError if it cannot be read."""
        folder = self.path(digest)
        try:
            return _summary(folder)
        except Exception as error:  # as above
            msg = f"The description of data set {digest[:12]} is damaged; load the data again."
            raise InputError(msg) from error

    def delete(self, digest: str) -> None:
        """Delete a data set; readers that have it open can continue."""
        files.discard(self.folder / self.path(digest).name)

    def path(self, digest: str) -> Path:
        """Return the folder of a data set, here or in a shared home; InputError if it has none."""
        folder = self.folder / digest if is_digest(digest) else None
        if folder is not None and not folder.is_dir():
            folder = files.place("datasets", digest)
        if folder is not None:
            return folder
        short = shortened(digest, 13)
        msg = f"There is no stored data set “{short}”; choose one from the list or load it again."
        raise InputError(msg)

    def _is_sound(self, folder: Path) -> bool:
        def read() -> Dataset:
            dataset, where = self.get(folder.name), self.path(folder.name)
            for name, digest in _read_meta(where)[files.FILES].items():
                files.check_file(where / name, digest)
            return dataset

        return files.or_none(read) is not None


def _state(path: Path) -> list[int]:
    """Return size and modification time of a file, or of all files in a folder."""
    stats = [each.stat() for each in (path, *filter(Path.is_file, path.rglob("*")))]
    return [sum(stat.st_size for stat in stats), max(stat.st_mtime_ns for stat in stats)]


def _meta(dataset: Dataset, created: float, digests: dict[str, str]) -> dict[str, Any]:
    facts = {key: getattr(dataset, key) for key in ("digest", "n_rows", "n_features")}
    facts |= {"dtype": str(dataset.X.dtype), "created": created, files.FILES: digests}
    gaps = {} if dataset.missing is None else {"n_missing": dataset.n_missing}
    return dataset.about() | facts | gaps


def _write(dataset: Dataset, folder: Path) -> None:
    arrays = dataset.arrays()
    for name, values in arrays.items():
        with files.solid(folder / f"{name}.npy") as file:
            np.save(file, values, allow_pickle=False)
    meta = _meta(dataset, time.time(), files.digests_of(folder, (f"{name}.npy" for name in arrays)))
    files.write_json(folder / "meta.json", meta, _title(folder))


def _array(folder: Path, meta: dict[str, Any], name: str) -> np.ndarray:
    """Map a matrix; read ids or labels via a map, which fails for a truncated file."""
    try:
        values: np.ndarray = np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
    except OSError:
        raise
    except Exception as error:  # the parser's message is for programmers
        msg = f"{name}.npy cannot be read"
        raise ValueError(msg) from error
    described = (meta["n_rows"], meta["n_features"]), meta["dtype"]
    is_other = name == "matrix" and (values.shape, str(values.dtype)) != described
    refuse_if(is_other, "matrix.npy is not the matrix that meta.json describes")
    return values if name in ("matrix", "missing") else np.array(values)


def _read_meta(folder: Path) -> dict[str, Any]:
    return files.read_json(folder / "meta.json", _title(folder))


def _title(folder: Path) -> str:
    return f"The stored data set {folder.name[:12]}"


@files.unless_changed("meta.json")
def _summary(folder: Path) -> DatasetSummary:
    meta = _read_meta(folder)
    facts, made = (meta["name"], meta["n_rows"]), meta["provenance"]
    source, whole = str(made.get("source", "")), (made.get("left_out") or {}).get("of", folder.name)
    return DatasetSummary(folder.name, *facts, source, meta["created"], whole)
