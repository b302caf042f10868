"""Fitted estimators as files."""

import io
from pathlib import Path
from typing import Any

import numpy as np

from appca.storage import atomic, packed
from appca.storage.formats import numbered

ESTIMATOR = "estimator.json"  # the text that makes an NPZ file one of a saved estimator
CURVE = "log_likelihoods"
PREPROCESSING = "pre_"  # before the names of its arrays


def write(path: Path | str, model: Any, behind: Any = None) -> None:
    """Write a fitted estimator into a file, and the preprocessing of a `Preprocessed` it has."""
    facts = {
        "estimator": type(model).__name__,
        "parameters": {k: _plain(v) for k, v in model.get_params(deep=False).items()},
        "n_iter": int(model.n_iter_),
        "stop_reason": model.stop_reason_,
        "features": [str(name) for name in getattr(behind or model, "feature_names_in_", ())],
    }
    arrays = model.fitted_arrays() | {CURVE: model.log_likelihoods_}
    if behind is not None:
        facts["preprocessing"] = behind.preprocessing.to_dict()
        learned = behind.preprocessing_.arrays()
        arrays |= {PREPROCESSING + name: value for name, value in learned.items()}
    buffer = io.BytesIO()
    members = {f"{name}.npy": value for name, value in arrays.items()}
    packed.write(buffer, {ESTIMATOR: numbered(facts)}, members)
    atomic.write(Path(path), buffer.getvalue())


def _plain(value: Any) -> Any:
    """Turn a parameter into one of JSON, or None where it is a function or a generator."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool) else None
