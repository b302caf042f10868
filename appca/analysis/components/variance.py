"""Variance by component, class and block of columns: parts that add up to all of it.

With y a row about the mean, y' what the components rebuild of it and r = y - y', the squared length
that is explained, |y|^2 - |r|^2 = y'(y + r), is a sum over components k and features d of
s_k w_kd (y_d + r_d): of each component the average of what it saves over all orders in which the
components can be added (its Shapley value). So components, classes and blocks may overlap as they
like: the parts and what is left are 100%.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from appca.words.errors import InputError, naming_extra
from appca.words.wording import shortened

if TYPE_CHECKING:
    import pandas as pd

ALL = "all"
_BLOCK_VALUES = 1 << 22


@naming_extra()
def variance_by(
    model: Any,
    X: Any,
    *,
    classes: Any = None,
    blocks: Mapping[str, Sequence[int]] | None = None,
    rows: Any = None,
) -> "pd.DataFrame":
    """Share of the variance that each component explains, by class and by block of columns.

    Parameters
    ----------
    model : fitted estimator
        With K components.
    X : array-like, shape (N, D)
        Missing entries (NaN) count for nothing.
    classes : array-like of shape (N,), optional
        A class a row; rows without one are left out.
    blocks : mapping of str to sequence of int, optional
        Columns of X by the name of their block, no column in two of them.
    rows : array-like, optional
        Rows to look at, as a mask (N,) or as numbers, such as a selection; all by default.

    Returns
    -------
    DataFrame
        One row for each class, block and component (counted from 1), with component 0 for what no
        component explains: `class`, `block`, `component`, and `share`, of the squared distance of
        the class's rows from the model's mean within the block. The shares of a class and block add
        up to 1. A share is negative if the component moves the rows away from the data.

    Raises
    ------
    InputError
        When classes have another length than X, or blocks overlap or name columns that are not
        there.
    """
    import pandas as pd

    described = model.describe(X)
    n, D = X.shape
    codes, names = pd.factorize(np.full(n, ALL) if classes is None else np.asarray(classes))
    if len(codes) != n:
        msg = f"classes must have one value a row, {n:,}; got {len(codes):,}."
        raise InputError(msg)
    chosen = np.zeros(n, dtype=bool)
    chosen[slice(None) if rows is None else np.asarray(rows)] = True
    codes = np.where(chosen, codes, -1)
    parts = _blocks(blocks, D)
    W, mean = np.asarray(model.components_, dtype=float), np.asarray(model.mean_, dtype=float)
    lines = []
    for c, name in enumerate(names):
        saved, left = _sums(X, described.scores, W, mean, np.flatnonzero(codes == c))
        for block, columns in parts.items():
            explained = saved[:, columns].sum(axis=1)
            every = np.r_[left[columns].sum(), explained]
            total = float(every.sum())
            shares = every / total if total > 0 else np.full(len(every), np.nan)
            lines += [(str(name), block, k, float(share)) for k, share in enumerate(shares)]
    return pd.DataFrame(lines, columns=["class", "block", "component", "share"])


def _sums(
    X: Any, scores: np.ndarray, W: np.ndarray, mean: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return what components save (K, D) and leave (D,) of the squares of some rows."""
    saved, left = np.zeros_like(W), np.zeros(W.shape[1])
    step = max(1, _BLOCK_VALUES // W.shape[1])
    for first in range(0, len(rows), step):
        part = rows[first : first + step]
        values = X[part]
        y = np.asarray(values.toarray() if hasattr(values, "toarray") else values, float) - mean
        s = np.asarray(scores[part], dtype=float)
        r = np.where(np.isnan(y), 0.0, y - s @ W)
        saved += s.T @ (np.nan_to_num(y) + r) * W
        left += (r**2).sum(axis=0)
    return saved, left


def _blocks(blocks: Mapping[str, Sequence[int]] | None, D: int) -> dict[str, np.ndarray]:
    if blocks is None:
        return {ALL: np.arange(D)}
    parts = {str(name): np.asarray(columns, dtype=np.int64) for name, columns in blocks.items()}
    taken = np.zeros(D, dtype=np.int64)
    for name, columns in parts.items():
        if len(columns) and not 0 <= columns.min() <= columns.max() < D:
            msg = f"Block “{shortened(name)}” names columns beyond 0 to {D - 1}; take those of X."
            raise InputError(msg)
        np.add.at(taken, columns, 1)
    if taken.max(initial=0) > 1:
        msg = f"Blocks must not overlap; column {int(taken.argmax())} is in {taken.max()} of them."
        raise InputError(msg)
    return parts
