"""Queries of a fitted model about the rows of a Dask array, answered chunk by chunk."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from appca.models.algebra.gaussian import Array
from appca.models.algebra.threads import single_threaded_blas
from appca.models.base.answers import Description
from appca.models.rows.dask_rows import by_chunks, computed, matrix, plain, sent_once

DESCRIBED_AT_ONCE = 8  # chunks
ONE_A_ROW = ("score_samples", "allocation_probability", "row_scales")  # questions with one number


def lazily(model: Any, question: str, X: Any, **how: str) -> Any:
    """Ask about every chunk of a Dask array; nothing is computed yet."""
    X, shared, K = _suited(model, X), _shared(model), len(model.components_)
    floating = X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    kinds = {"transform": floating, "allocate": np.dtype(bool)}
    dtype = kinds.get(question, np.dtype(np.float64))
    asked = partial(_answered, question=question, n_components=K, dtype=dtype, how=how)
    if question in ONE_A_ROW:
        meta = np.empty(0, dtype)
        return X.map_blocks(asked, model=shared, dtype=dtype, drop_axis=1, meta=meta)
    chunks, meta = (X.chunks[0], (K,)), np.empty((0, 0), dtype)
    return X.map_blocks(asked, model=shared, dtype=dtype, chunks=chunks, meta=meta)


def each_described(model: Any, X: Any) -> Iterator[Description]:
    """Describe the chunks of a Dask array that have rows, some at a time."""
    parts = by_chunks(_described, _suited(model, X), _shared(model))
    for start in range(0, len(parts), DESCRIBED_AT_ONCE):
        for description in computed(parts[start : start + DESCRIBED_AT_ONCE]):
            if description is not None:
                yield description


def _suited(model: Any, X: Any) -> Any:
    """Return X in chunks of whole rows, if it has the features of the fit."""
    check_is_fitted(model)
    X = matrix(X)
    D = model.components_.shape[1]
    if X.shape[1] != D:
        msg = (
            f"X must have the {D} features {type(model).__name__} was fitted to; "
            f"got {X.shape[1]}: choose the same columns."
        )
        raise ValueError(msg)
    return X


def _shared(model: Any) -> Any:
    """One task that gives the workers the model."""
    # What was fitted, without a callback, which may be bound to this process.
    parameters = model.get_params(deep=False)
    kept = {name: parameters[name] for name in ("whiten", "inference") if name in parameters}
    return sent_once(type(model)(**kept).restore(model.fitted_arrays()))


def _described(chunk: Any, *, shared: Any) -> Description | None:
    rows = plain(chunk)
    with single_threaded_blas():
        return shared.describe(rows) if len(rows) else None


def _answered(
    chunk: Any,
    *,
    model: Any,
    question: str,
    n_components: int,
    dtype: np.dtype[Any],
    how: dict[str, str],
) -> Array:
    """Ask a model about the rows of a chunk, of which there may be none."""
    rows = plain(chunk)
    if len(rows) == 0:
        return np.empty(0 if question in ONE_A_ROW else (0, n_components), dtype)
    with single_threaded_blas():
        answer: Array = getattr(model, question)(rows, **how)
    return answer
