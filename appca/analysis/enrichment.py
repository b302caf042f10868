"""Sets of features against the weights of components, by sign, with correlated features.

The statistic of a set is the sum of the component's weights in it, when the weights of all features
have mean 0 and standard deviation 1. Features that vary together have weights that do, so a set of
them has a large sum by chance. The null is a random direction with the correlation of what the
model leaves over: random combinations of the rows' residuals, a rotation test (Wu et al., 2010).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from appca.data.readers.feature_sets import read_sets
from appca.words import InputError, naming_extra

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 1_000  # whose residuals make the null
_LEAST_SPREAD = 1e-12


@naming_extra()
def enrichment(
    model: Any,
    X: Any,
    sets: Any,
    feature_names: Sequence[str],
    *,
    least: int = 5,
    n_rotations: int = 999,
    random_state: Any = 0,
) -> "pd.DataFrame":
    """Test which sets of features have large weights on the components of a fitted model.

    Parameters
    ----------
    model : fitted estimator
        With K components.
    X : array-like, shape (N, D)
        Rows; their residuals show how features vary together. At most 1,000 rows are used.
    sets : mapping of str to sequence of str, or path
        Features by the name of their set; or a GMT file; a CSV file whose lines have a feature and
        its set; or a NIfTI atlas of numbered regions, where features are called "voxel-x-y-z".
    feature_names : sequence of str, length D
    least : int
        Features of X that a set must have; smaller sets are left out.
    n_rotations : int
        The smallest p value is 1 / (n_rotations + 1).
    random_state : int, Generator or None

    Returns
    -------
    DataFrame
        One row for each set, component (counted from 1) and sign, the smallest `q` and then the
        largest effect first: `set`, `component`, `sign` ("+" or "-"), `n` features, `effect` (the
        statistic in standard deviations of the null), `p`, one-sided, and `q`, corrected for all
        tests (Benjamini and Hochberg, 1995).

    Raises
    ------
    InputError
        When there are not D names, no set has enough features, or a file has another form.
    """
    import pandas as pd
    from scipy.stats import false_discovery_control

    names, members = _members(sets, feature_names, X.shape[1], least)
    rng = np.random.default_rng(random_state)
    rows = np.sort(rng.permutation(X.shape[0])[:MOST_ROWS])
    part = X[rows]
    dense = np.asarray(part.toarray() if hasattr(part, "toarray") else part, dtype=float)
    W = np.asarray(model.components_, dtype=float)
    left = np.nan_to_num(dense - model.mean_ - model.describe(part).scores @ W)
    observed = _sums(W, members)
    null = _sums(rng.normal(size=(n_rotations, len(left))) @ left, members)
    effect = observed / np.maximum(null.std(axis=0), _LEAST_SPREAD)
    null.sort(axis=0)
    signs, beyond = ("+", "-"), []
    for values, ordered in ((observed, null), (-observed, -null[::-1])):
        each = map(np.searchsorted, ordered.T, values.T)
        beyond.append(n_rotations - np.stack(list(each)))  # (S, K)
    shape = (2, len(names), len(W))
    frame = pd.DataFrame(
        {
            "set": np.broadcast_to(np.array(names)[:, None], shape).ravel(),
            "component": np.broadcast_to(np.arange(1, len(W) + 1), shape).ravel(),
            "sign": np.repeat(signs, len(names) * len(W)),
            "n": np.broadcast_to(np.diff(members.indptr)[:, None], shape).ravel(),
            "effect": np.stack([effect.T, -effect.T]).ravel(),
            "p": (1 + np.stack(beyond).ravel()) / (1 + n_rotations),
        }
    )
    frame["q"] = false_discovery_control(frame["p"])
    order = np.lexsort((-frame["effect"], frame["q"]))
    return frame.iloc[order].reset_index(drop=True)


def _sums(weights: np.ndarray, members: Any) -> np.ndarray:
    """Return the sums (B, S) of standardized weights (B, D) over sets (D, S)."""
    centred = weights - weights.mean(axis=1, keepdims=True)
    spread = np.maximum(centred.std(axis=1, keepdims=True), _LEAST_SPREAD)
    return np.asarray((members.T @ (centred / spread).T).T)


def _members(sets: Any, features: Sequence[str], D: int, least: int) -> tuple[list[str], Any]:
    """Return the names of the sets that are large enough, and their features, sparse (D, S)."""
    from scipy.sparse import csc_array

    if len(features) != D:
        msg = f"X has {D:,} features; got {len(features):,} names, so give one for each."
        raise InputError(msg)
    place = {str(name): d for d, name in enumerate(features)}
    wanted = sets if isinstance(sets, Mapping) else read_sets(Path(sets).name, Path(sets))
    inside = {
        str(name): sorted({place[f] for f in map(str, listed) if f in place})
        for name, listed in wanted.items()
    }
    kept = {name: places for name, places in inside.items() if least <= len(places) < D}
    if not kept:
        msg = (
            f"No set has {least} or more of the {D:,} features; name features as in the sets, or "
            "lower `least`."
        )
        raise InputError(msg)
    ends = np.cumsum([0, *map(len, kept.values())])
    flat = np.concatenate([np.array(places) for places in kept.values()])
    return list(kept), csc_array((np.ones(len(flat)), flat, ends), shape=(D, len(kept)))
