"""Checks of data and settings: errors of one sentence, and warnings about doubtful fits."""

import warnings
from numbers import Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array, validate_data

from appca.frames import matrix_of
from appca.models.numerics import Array
from appca.models.rows import CACHE_BYTES, NEGLIGIBLE, Block, Observations, dense, tiles
from appca.words import InputError

ROUNDING = 1e-13  # variances below this share of the largest count as zero
MOST_WEIGHT = 1e100  # maximum weight, so that sums of weighted squares do not overflow
LARGE_MAP_BYTES = 2**26
RARELY = 1e-3  # share of rows below which a component in use is unreliable


def refuse_where(wrong: dict[str, bool]) -> None:
    """Raise ValueError with the first sentence whose condition is true."""
    for sentence, holds in wrong.items():
        if holds:
            raise ValueError(sentence)


def refuse_components(n: int, most: int, why: str, hint: str = "choose fewer components") -> None:
    """Raise ValueError if there are more than `most` components."""
    refuse_where({f"n_components must be at most {most}{why}; got {n}: {hint}.": n > most})


def given_directions(init: Any, n_components: int, n_features: int) -> Array:
    """Return the directions (D, K) of an array `init` (K, D); ValueError if its shape is wrong."""
    directions: Array = check_array(init, dtype=np.float64)
    wanted = (n_components, n_features)
    wrong = {
        f"init must have shape {wanted}, n_components by features; got {directions.shape}: "
        "pass one row per component.": directions.shape != wanted
    }
    refuse_where(wrong)
    return directions.T


def refuse_settings(model: Any, n_active: int) -> None:
    """Raise ValueError if L exceeds K, or if `init` is an array with n_init > 1."""
    wrong = {
        f"n_active must be at most n_components={model.n_components}; got {n_active}: "
        "lower n_active or raise n_components.": n_active > model.n_components,
        f"n_init must be 1 when init is an array; got {model.n_init}: "
        "name a start to add random ones.": not isinstance(model.init, str) and model.n_init > 1,
    }
    refuse_where(wrong)


def check_varying(n_components: int, scales: Array) -> None:
    """Refuse more components than varying features (scale > 0); warn about constant features."""
    n, remedy = int((scales > 0.0).sum()), "choose fewer components"
    vary = "varies" if n == 1 else "vary"
    why = f", because {n} of the {len(scales)} features of X {vary} in more than one row"
    refuse_components(n_components, n, why, remedy if n else "drop extreme rows")
    if n < len(scales):
        msg = f"{len(scales) - n} of the {len(scales)} features of X are constant, or hardly vary "
        msg += "in more than one row, so noise='feature' omits them from the likelihood: drop "
        msg += "these columns to avoid this warning."
        warnings.warn(msg, UserWarning, stacklevel=6)


def row_weights(weights: Any, n_rows: int) -> Array:
    """Return weights (N,) of rows, by default 1; ValueError if any is negative or all are zero."""
    if weights is None:
        return np.ones(n_rows)
    w: Array = np.full(n_rows, float(weights)) if isinstance(weights, Real) else weights
    w = check_array(w, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    wrong = {
        f"sample_weight must be {n_rows} nonnegative numbers, one per row; got shape "
        f"{w.shape}: pass one weight for each row.": w.shape != (n_rows,) or bool((w < 0).any()),
        f"sample_weight must be at most {MOST_WEIGHT:g}; got {w.max():g}: divide all weights "
        "by the same number.": bool(w.max() > MOST_WEIGHT),
        "Sample weights must contain at least one non-zero number: all are 0.": not w.any(),
    }
    refuse_where(wrong)
    return w


def counted_rows(X: Array, sample_weight: Any) -> tuple[Array, Array | None]:
    """Return the rows with positive weight and their weights (N,), or None if all are 1."""
    if sample_weight is None:
        return X, None
    w = row_weights(sample_weight, len(X))
    if (w == 0.0).any():
        X, w = X[w > 0.0], w[w > 0.0]
    return X, None if (w == 1.0).all() else w


def refuse_weights(sample_weight: Any, what: str) -> None:
    """Raise ValueError for weights combined with a setting that does not support them."""
    refuse_where({f"sample_weight cannot be used with {what}: omit it.": sample_weight is not None})


def refuse_not_finite(X: Array, *, gaps: bool = False) -> None:
    """Raise ValueError for infinities, and for NaN unless `gaps` are allowed."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(X.sum()):  # else a float32 sum may have overflowed
            return
    bad = int((np.isinf(X) if gaps else ~np.isfinite(X)).any(axis=1).sum())
    if bad:
        finite, what, remedy = "finite", "NaN or inf", "fill or drop those cells or rows"
        if gaps:
            finite, what = "finite or NaN for a missing entry", "inf"
            remedy = "correct those cells or drop those rows"
        verb = "contains" if bad == 1 else "contain"
        msg = f"X must be {finite}, but {bad} of its {len(X)} rows {verb} {what}: {remedy}."
        raise ValueError(msg)


def is_dask(X: Any) -> bool:
    """Whether X belongs to Dask, without importing it."""
    return type(X).__module__.split(".")[0] == "dask"


def is_large_map(X: Any) -> bool:
    """Whether X is a memory-mapped matrix of more than 64 MB."""
    return isinstance(X, np.memmap) and X.ndim == 2 and X.nbytes > LARGE_MAP_BYTES


def numbers_of_rows(X: Any) -> Any:
    """Return rows of any library as an array or sparse matrix."""
    try:
        return matrix_of(X).values
    except InputError:
        if type(X) is np.ndarray:  # scikit-learn explains the error
            return X
        raise


def checked_rows(model: Any, X: Any, *, reset: bool, **how: Any) -> Any:
    """Check rows (N, D) by `check_array` with options `how`, and their names against the fit."""
    X = X.compute() if hasattr(X, "columns") and hasattr(X, "compute") else X  # with its names
    values = numbers_of_rows(X)
    usual = type(values) is np.ndarray and values.ndim == 2 and values.size > 0
    usual = usual and values.dtype in (np.float64, np.float32) and not how["ensure_all_finite"]
    if reset or not usual:  # otherwise `check_array` has no effect
        values = check_array(values, estimator=model, input_name="X", **how)
    named = hasattr(X, "columns") or hasattr(model, "feature_names_in_")
    if reset or named or values.shape[1] != getattr(model, "n_features_in_", None):
        rows = X if hasattr(X, "columns") else values
        validate_data(model, rows, reset=reset, skip_check_array=True)
    return values


def without_subnormal(X: Array) -> Array:
    """Return X (N, D) without subnormal entries, which slow down products."""
    tiny, step = np.finfo(X.dtype).tiny, max(1, CACHE_BYTES // max(1, X[:1].nbytes))
    parts = (X[start : start + step] for start in range(0, len(X), step))
    small = ((np.count_nonzero(np.abs(B) < tiny), B) for B in parts)
    if not any(count and count > np.count_nonzero(B == 0.0) for count, B in small):
        return X
    size = np.abs(X)
    if NEGLIGIBLE * np.nanmax(size) < tiny:
        return X
    return np.where(size < tiny, X.dtype.type(0.0), X)


def refuse_constant(rows: Observations) -> None:
    """Raise ValueError if all rows are equal, or their squares overflow or underflow."""
    total, n = rows.total, rows.n
    far = 0.0 if rows.origin is None else float(np.sum(np.square(rows.origin, dtype=np.float64)))
    rounding = n * (n * np.finfo(np.float64).eps) ** 2 * far  # error of a rounded mean

    def common_row(block: Block) -> Array | None:
        head: Array = dense(block.X[:1])[0].copy()
        return None if any((head != B).any() for _, B in tiles(block.X, None)) else head

    heads = list(rows.over(common_row)) if total <= rounding else [None]
    alike = all(head is not None and (head == heads[0]).all() for head in heads)
    size = "small" if total == 0.0 else "large"
    wrong = {
        f"X must vary, but all its {n} rows are equal: "
        "there is no direction of variation; check how the data were read.": alike,
        f"X must have squares in the range of {rows.dtype}, but its entries are too {size}: "
        "multiply it by a constant, or pass float64.": not 0.0 < total < np.inf,
    }
    refuse_where(wrong)


def warn_of_end(reason: str, max_iter: int) -> None:
    """Warn if EM ended before it converged, or at the floor of the noise variance."""
    if reason.startswith("reached max_iter"):
        msg = f"EM ended at max_iter={max_iter} before it converged: raise max_iter or tol."
        warnings.warn(msg, ConvergenceWarning, stacklevel=6)
    elif "reached its floor" in reason:
        msg = "The noise variance reached its floor, 1e-8 of the mean feature variance: the "
        msg += "components reproduce X almost exactly, so likelihoods mean little; lower "
        msg += "n_components or n_active, or look for repeated rows."
        warnings.warn(msg, ConvergenceWarning, stacklevel=6)


def warn_of_unused(share: Array) -> None:
    """Warn if fewer than `RARELY` of the rows use a component; share is (K,)."""
    rare = [str(k + 1) for k in np.flatnonzero(share < RARELY)]
    if rare:
        msg = f"Components used by less than 0.1% of rows: {', '.join(rare)} of {len(share)}. "
        msg += "Lower n_components, or try another random_state."
        warnings.warn(msg, UserWarning, stacklevel=6)


def warn_of_rank(total: Array, second: Array, mass: float, n_features: int, eps: float) -> None:
    """Warn if projections, with sums `total` (K,) and `second` (K, K), have a rank below K."""
    K = len(second)
    values = np.linalg.eigvalsh(second - np.outer(total, total) / mass)
    least = max(ROUNDING, n_features * (10.0 * eps) ** 2)  # rounding of sums and of projections
    rank = int((values > least * values[-1]).sum())
    if 0 < rank < K:
        msg = f"X varies in only {rank} of the n_components={K} directions, perhaps because rows "
        msg += f"repeat; the others are arbitrary: choose at most {rank} components."
        warnings.warn(msg, UserWarning, stacklevel=6)
