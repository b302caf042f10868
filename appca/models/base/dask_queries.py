"""Queries of a fitted model about the rows of a Dask array, answered chunk by chunk."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from appca.models.algebra.gaussian import Array
from appca.models.algebra.threads import single_threaded_blas
from appca.models.base.data_checks import refuse_weights
from appca.models.base.estimator import Description, SubspaceModel
from appca.models.rows.dask_rows import by_chunks, computed, is_dask, matrix, plain, sent_once

DESCRIBED_AT_ONCE = 8  # chunks
ONE_A_ROW = ("score_samples", "allocation_probability", "row_scales")  # questions with one number


class OnDask(SubspaceModel):
    """A model that answers about the rows of a Dask array with a Dask array, chunk by chunk.

    Put it before the class whose methods answer about rows in memory; `score` is computed at once.
    """

    def transform(self, X: Any, support: str = "auto") -> Any:
        """Posterior mean scores (N, K) of each row's most probable L components, zero elsewhere.

        With support="all", and after sampling, E[x * z | y] over all supports and draws of the
        posterior. With `whiten` every score is divided by its root mean square over the training
        rows that use its component. Missing entries are NaN.
        """
        if is_dask(X):
            return self._by_chunks_of("transform", X, support=support)
        return super().transform(X, support)

    def allocate(self, X: Any, support: str = "auto") -> Any:
        """Each row's most probable L components, (N, K) bool; missing entries are NaN.

        After sampling the L of largest posterior inclusion, unless `support` is "map".
        """
        if is_dask(X):
            return self._by_chunks_of("allocate", X, support=support)
        return super().allocate(X, support)

    def inclusion_probabilities(self, X: Any) -> Any:
        """Probability p(z_nk = 1 | observed y_n) that a row uses a component, (N, K)."""
        if is_dask(X):
            return self._by_chunks_of("inclusion_probabilities", X)
        return super().inclusion_probabilities(X)

    def allocation_probability(self, X: Any) -> Any:
        """Posterior probability (N,) of the support that `allocate` chose; below 0.5: doubtful."""
        if is_dask(X):
            return self._by_chunks_of("allocation_probability", X)
        return super().allocation_probability(X)

    def score_samples(self, X: Any) -> Any:
        """Log-likelihood of each row's observed entries, (N,) in nats; exact up to 5,000 sets."""
        return self._by_chunks_of("score_samples", X) if is_dask(X) else super().score_samples(X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log-likelihood of the rows, in nats, each counted `sample_weight` (N,) times."""
        if is_dask(X):
            refuse_weights(sample_weight, "a Dask array")
            return float(self.score_samples(X).mean().compute())
        return super().score(X, y, sample_weight)

    def describe(self, X: Any) -> Description:
        """Say of each row of X (N, D) all that is asked after a fit; rows in memory only.

        Raises
        ------
        ValueError
            For a Dask array: `describe_chunks` describes one part by part.
        """
        if is_dask(X):
            msg = (
                "describe must have its rows in memory; got a Dask array: "
                "use describe_chunks, or compute it first."
            )
            raise ValueError(msg)
        return super().describe(X)

    def describe_chunks(self, X: Any) -> Iterator[Description]:
        """Say of each chunk of rows of a Dask array all that `describe` says, some at a time."""
        parts = by_chunks(_described, self._suited(X), self._shared())
        for start in range(0, len(parts), DESCRIBED_AT_ONCE):
            for found in computed(parts[start : start + DESCRIBED_AT_ONCE]):
                if found is not None:
                    yield found

    def _suited(self, X: Any) -> Any:
        """Return X in chunks of whole rows, if it has the features of the fit."""
        check_is_fitted(self)
        X = matrix(X)
        D = self.components_.shape[1]
        if X.shape[1] != D:
            msg = (
                f"X must have the {D} features {type(self).__name__} was fitted to; "
                f"got {X.shape[1]}: choose the same columns."
            )
            raise ValueError(msg)
        return X

    def _shared(self) -> Any:
        """One task that gives the workers the model."""
        # What was fitted, without a callback, which may be bound to this process.
        given = self.get_params(deep=False)
        kept = {name: given[name] for name in ("whiten", "inference") if name in given}
        return sent_once(type(self)(**kept).restore(self.fitted_arrays()))

    def _by_chunks_of(self, question: str, X: Any, **how: str) -> Any:
        """Ask about every chunk; nothing is computed yet."""
        X, shared, K = self._suited(X), self._shared(), len(self.components_)
        floating = X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)
        kinds = {"transform": floating, "allocate": np.dtype(bool)}
        dtype = kinds.get(question, np.dtype(np.float64))
        asked = partial(_answered, question=question, n_components=K, dtype=dtype, how=how)
        if question in ONE_A_ROW:
            meta = np.empty(0, dtype)
            return X.map_blocks(asked, model=shared, dtype=dtype, drop_axis=1, meta=meta)
        chunks, meta = (X.chunks[0], (K,)), np.empty((0, 0), dtype)
        return X.map_blocks(asked, model=shared, dtype=dtype, chunks=chunks, meta=meta)


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
    rows = np.asarray(chunk)
    if len(rows) == 0:
        single = question in ONE_A_ROW
        return np.empty(0 if single else (0, n_components), dtype)
    with single_threaded_blas():
        answer: Array = getattr(model, question)(rows, **how)
    return answer
