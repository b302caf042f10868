"""Types of rows: a few Gaussian groups, named by the columns that distinguish them."""

import warnings
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from appca.words import shortened

MOST, MOST_ROWS = 8, 5_000  # maximum number of types, and of rows from which they are learned
FEWEST, LEAST_SHARE = 10, 0.01  # minimum number and share of rows of a type
ALIKE, MOST_READ = 0.8, 12  # correlation above which one of two columns is named; columns read
MOST_STARTED = 100_000  # maximum number of values over all starts of a mixture, if over two
NONE = "no clear types"
ABOUT = "A few groups of rows, if they are clear; names say what is higher or lower than elsewhere."


class RowTypes(NamedTuple):
    """The type of each row; a single type means that none are clear."""

    codes: np.ndarray  # (N,) indices into `names`
    names: tuple[str, ...]  # of larger types first


_TYPES: WeakKeyDictionary[Any, RowTypes] = WeakKeyDictionary()


def types_of(dataset: Any, fitted: Any, compare: Callable[..., Any]) -> RowTypes:
    """Return the types of a run's rows by their projections on all components.

    `compare` compares some rows, (N,) bool, with the others; see `analysis.groups`.
    """
    if fitted not in _TYPES:
        X, W = fitted.completed(dataset.X, dataset.missing), fitted.components.T
        blocks = fitted.preprocessing.blocks(X, np.float64)
        codes = grouped(np.concatenate([(block - fitted.mean) @ W for block in blocks]))
        of = "feature" if dataset.image_shape is None else "score"
        sides = [codes == code for code in range(codes.max() + 1)]
        every = [compare(dataset, fitted, side).differences for side in sides if not side.all()]
        told = [[d for d in of_type if d.kind == of and d.matters] for of_type in every]
        clear = any(told)  # otherwise, one type is only wider than another
        _TYPES[fitted] = RowTypes(codes * clear, named(told, dataset) if clear else (NONE,))
    return _TYPES[fitted]


def grouped(P: np.ndarray, most: int = MOST, fewest: int = FEWEST) -> np.ndarray:
    """Return the types (N,) of points P (N, K) by the best mixture of up to `most` Gaussians.

    Best is the integrated completed likelihood (Biernacki, Celeux and Govaert, 2000): BIC with the
    entropy of the types, so that parts of one skewed cloud are seldom types.
    """
    from scipy.special import entr
    from sklearn.mixture import GaussianMixture
    from threadpoolctl import threadpool_limits

    P = (P - P.mean(axis=0)) / np.maximum(P.std(axis=0), 1e-12)
    some = P[np.random.default_rng(0).permutation(len(P))[:MOST_ROWS]]
    n_init = int(np.clip(MOST_STARTED // some.size, 2, 10))
    mixtures = list[tuple[float, int, Any]]()
    look: dict[str, Any] = {"n_init": n_init, "reg_covar": 1e-3, "random_state": 0}
    # With several threads, the order of sums and so the last bits would vary.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of repeated points, or of 100 iterations
        for k, kind in product(range(1, min(most, len(P) // fewest) + 1), ("full", "diag")):
            mixture = GaussianMixture(k, covariance_type=kind, **look).fit(some)
            unsure = entr(mixture.predict_proba(some)).sum()
            mixtures.append((mixture.bic(some) + 2 * unsure, len(mixtures), mixture))
        shares = min(mixtures)[2].predict_proba(P) if mixtures else np.ones((len(P), 1))
    sizes = np.bincount(shares.argmax(axis=1), minlength=shares.shape[1])
    n_types = max(1, (sizes >= max(fewest, LEAST_SHARE * len(P))).sum())
    return np.asarray(shares[:, np.argsort(-sizes, kind="stable")[:n_types]].argmax(axis=1))


def named(told: list[list[Any]], dataset: Any) -> tuple[str, ...]:
    """Name types by the two columns that differ most, of `told`, strongest first.

    Types with equal names get a third column, or else a number.
    """
    place, names = {name: j for j, name in enumerate(dataset.column_names)}, list[str]()
    for differences in told:
        texts, seen = list[str](), list[np.ndarray]()
        for d in differences[:MOST_READ]:
            x = [] if d.kind == "score" else [dataset.X[:, place[d.name]]]
            if all(abs(np.corrcoef(x[0], y)[0, 1]) < ALIKE for y in seen):
                name = shortened(d.name.removeprefix("score on "), 24)
                texts.append(f"{'high' if d.effect > 0 else 'low'} {name}")
                seen += x
        every = [", ".join(texts[:n]) or "average" for n in (2, 3)]
        every.append(f"{every[0]} ({len(names) + 1})")
        names.append(next(name for name in every if name not in names))
    return tuple(names)
