"""What a job will take, guessed before it begins."""

from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from appca.data.store import DatasetStore
from appca.runs.configuration import RunConfig
from appca.runs.fit import estimate_seconds

SHORT_SECONDS = 10.0
_PROCESS_BYTES = 300_000_000  # of a worker with its libraries
_COPIES = 3  # of the rows, preprocessed, that a fit holds at its peak
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError)  # the worker says why


class Needs(NamedTuple):
    """What a job will take."""

    seconds: float | None = None  # None: unknown, so perhaps long
    memory: int = 0  # bytes, as far as known

    @property
    def is_short(self) -> bool:
        """Whether it will be over soon."""
        return self.seconds is not None and self.seconds <= SHORT_SECONDS


class _Shape(NamedTuple):
    n_rows: int
    n_features: int
    itemsize: int
    incomplete: int


def needs_of(kind: str, spec: dict[str, Any], home: Path) -> Needs:
    """Guess what a job will take by its data set and, where it is one fit, by its settings."""
    try:
        config = RunConfig.from_dict(spec["config"]) if kind == "fit" else None
        shape = _shape(home, spec["dataset"] if config is None else config.dataset)
        seconds = None
        if config is not None:
            size = (shape.n_rows, shape.n_features)
            seconds = estimate_seconds(*size, config, incomplete=shape.incomplete)
    except _UNREADABLE:
        return Needs()
    matrix = shape.n_rows * shape.n_features * max(shape.itemsize, 4)  # float32 at least
    return Needs(seconds, _PROCESS_BYTES + _COPIES * matrix)


@lru_cache(maxsize=64)
def _shape(home: Path, digest: str) -> _Shape:
    X, missing = DatasetStore(home).numbers(digest)
    incomplete = 0 if missing is None else int(missing.any(axis=1).sum())
    return _Shape(len(X), X.shape[1], X.dtype.itemsize, incomplete)
