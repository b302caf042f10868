"""New rows described by a stored run: what was computed is kept, so that it is computed once."""

from pathlib import Path

import numpy as np

from appca.analysis.fitted import DescribedRows
from appca.runs.configuration import MODELS, RunConfig
from appca.storage import cache
from appca.storage.identity import digest_of
from appca.words.refusal import storing

FOLDER = "projections"
MOST_BYTES = 500_000_000  # of all that is kept
# Measured with one thread on 10,000 rows of 784 features: what describing a row costs.
_A_VALUE, _A_PRODUCT, _A_SET = 2.0e-9, 2.0e-10, 1.0e-6  # seconds; the last a row and a component


def key_of(run_id: str, digest: str) -> str:
    """Name what a run says of the rows of a data set."""
    return digest_of([run_id, digest])


def stored(home: Path, key: str) -> DescribedRows | None:
    """Return what `appca.runs.fit.project` said of the rows, if it is kept."""
    try:
        return DescribedRows.from_arrays(cache.read(file_of(home, key)) or {})
    except KeyError:
        return None


def keep_rows(home: Path, key: str, X: np.ndarray, run_id: str = "") -> None:
    """Put new rows where the job that lets a run describe them will find them.

    Raises InputError when the disk refuses.
    """
    file = rows_file(home, key)
    with storing("The new rows", file.parent):
        cache.write(file, run_id, X=X)


def estimate_seconds(n_rows: int, n_features: int, config: RunConfig) -> float:
    """Guess how long describing takes, of a model that needs no compiler."""
    values = n_rows * n_features
    return values * _A_VALUE + n_rows * config.k * (_A_SET + _A_PRODUCT * n_features)


def is_quick(n_rows: int, n_features: int, config: RunConfig, most_seconds: float) -> bool:
    """Whether the page may describe the rows itself: no compiler to wait for, and soon done."""
    compiled = MODELS[config.model].can.compiled
    return not compiled and estimate_seconds(n_rows, n_features, config) <= most_seconds


def file_of(home: Path, key: str) -> Path:
    """Return where the description of new rows is kept."""
    return Path(home) / FOLDER / f"{key}.npz"


def rows_file(home: Path, key: str) -> Path:
    """Return where the new rows wait for the job that describes them."""
    return Path(home) / FOLDER / f"{key}-rows.npz"
