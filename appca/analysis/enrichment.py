"""Test feature sets for large weights of one sign, allowing for correlated features.

The statistic of a set is the sum of its weights, standardized and clipped at three deviations, so
that no feature determines it. A set of correlated features can have a large sum by chance: the null
is a random combination of the rows' residuals of unit variance, a rotation test (Wu et al., 2010).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from appca.analysis.permutation import corrected, permuted
from appca.data.readers.process import read_sets
from appca.frames import matrix_of
from appca.words import naming_extra, refuse_if, shortened

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS, MOST_DEVIATIONS = 1_000, 3.0  # rows sampled for the null; clip of each weight
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
    """Test which feature sets have large weights on the components of a fitted model.

    Parameters
    ----------
    model : fitted estimator
        With K components.
    X : array-like or data frame, shape (N, D)
        Rows; their residuals show how features correlate. At most 1,000 rows are used.
    sets : mapping of str to sequence of str, or path
        Set names mapped to features; or a GMT file; or a CSV file with a feature and its set on
        each line; or a NIfTI atlas of numbered regions, whose features are named "voxel-x-y-z".
    feature_names : sequence of str, length D
    least : int
        Minimum number of features of X in a set; smaller sets are ignored.
    n_rotations : int
        Random directions per test, extended as in `association` by a generalized Pareto tail.
    random_state : int, Generator or None

    Returns
    -------
    DataFrame
        One row for each `set`, `component` (counted from 1) and `sign` ("+" or "-"), sorted by
        `q`, then by decreasing effect: `n` features found, of `listed` in the set, `effect` (the
        statistic in standard deviations of the null), `p`, one-sided, and `q`, corrected for all
        tests (Benjamini and Hochberg, 1995). ``attrs["left_out"]`` lists ignored sets, such as
        "hypoxia, 0 of 40 features found".

    Raises
    ------
    InputError
        If the number of names is not D, no set has enough features, or a file is malformed.
    """
    import pandas as pd

    matrix = matrix_of(X)
    names, members, listed, left_out = _members(sets, feature_names, matrix.values.shape[1], least)
    rng = np.random.default_rng(random_state)
    rows = np.sort(rng.permutation(matrix.values.shape[0])[:MOST_ROWS])
    part = matrix._replace(values=matrix.values[rows])
    dense = part.values.toarray() if hasattr(part.values, "toarray") else part.values
    W = np.asarray(model.components_, dtype=float)
    scores = model.describe(part.for_model(model)).scores
    left = np.nan_to_num(np.asarray(dense, dtype=float) - model.mean_ - scores @ W)
    left /= np.maximum(left.std(axis=0), _LEAST_SPREAD)
    left -= left.mean(axis=1, keepdims=True)
    # random combinations of R's rows have the same distribution, with fewer coordinates
    left = np.asarray(np.linalg.qr(left, mode="r")) if len(left) > left.shape[1] else left
    in_sets = left @ members  # (n, S)
    root = np.asarray(np.linalg.qr(left.T, mode="r")).T if left.shape[1] > len(left) else left
    centred = W - W.mean(axis=1, keepdims=True)
    centred /= np.maximum(centred.std(axis=1, keepdims=True), _LEAST_SPREAD)
    observed = (np.clip(centred, -MOST_DEVIATIONS, MOST_DEVIATIONS) @ members).T  # (S, K)
    signed = np.stack([observed, -observed])
    null: list[np.ndarray] = []

    def draw(m: int, tests: np.ndarray) -> np.ndarray:
        z = rng.normal(size=(m, len(left)))
        spread = np.linalg.norm(z @ root, axis=1, keepdims=True) / np.sqrt(left.shape[1])
        sums = z @ in_sets / np.maximum(spread, _LEAST_SPREAD)
        null.append((sums**2).mean(axis=0))
        sign, s, _ = np.unravel_index(tests, signed.shape)
        return np.asarray(sums.T[s] * np.where(sign, -1.0, 1.0)[:, None])

    p, _ = permuted(signed.ravel(), draw, n_rotations)
    spread = np.maximum(np.sqrt(np.mean(null, axis=0)), _LEAST_SPREAD)
    sign, s, k = np.indices(signed.shape).reshape(3, -1)
    results = {
        "set": np.array(names, dtype=object)[s],
        "component": k + 1,
        "sign": np.where(sign, "-", "+"),
        "n": np.diff(members.indptr)[s],
        "listed": np.array(listed)[s],
        "effect": (signed / spread[:, None]).ravel(),
        "p": p,
        "q": corrected(p),
    }
    order = np.lexsort((-results["effect"], results["q"]))
    frame = pd.DataFrame(results).iloc[order].reset_index(drop=True)
    frame.attrs["left_out"] = left_out
    return frame


def _members(
    sets: Any, features: Sequence[str], D: int, least: int
) -> tuple[list[str], Any, list[int], list[str]]:
    """Return the S large sets, their features, sparse (D, S), listed sizes, and the small sets."""
    from scipy.sparse import csc_array

    msg = f"X has {D:,} features; got {len(features):,} names, so give one name per feature."
    refuse_if(len(features) != D, msg)
    place = {str(name): d for d, name in enumerate(features)}
    wanted = sets if isinstance(sets, Mapping) else read_sets(Path(sets).name, Path(sets))
    listed = {str(key): {*map(str, of)} for key, of in wanted.items()}
    inside = {name: sorted(place[f] for f in of if f in place) for name, of in listed.items()}
    kept = {name: places for name, places in inside.items() if least <= len(places) < D}
    counts = {name: f"{len(inside[name]):,} of {len(of):,}" for name, of in listed.items()}
    out = [f"{name}, {n} features found" for name, n in counts.items() if name not in kept]
    msg = f"No set has {least} or more of the {D:,} features ({shortened('; '.join(out), 80)}); "
    refuse_if(not kept, f"{msg}name them as in the sets.")
    ends, flat = np.cumsum([0, *map(len, kept.values())]), np.concatenate(list(kept.values()))
    members = csc_array((np.ones(len(flat)), flat, ends), shape=(D, len(kept)))
    return list(kept), members, [len(listed[name]) for name in kept], out
