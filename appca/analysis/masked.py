"""How well a model predicts cells it has not seen, against PPCA and against the columns' means.

A share of the observed cells is hidden on top of those that are missing, the models are fitted
around both, and their predictions of hidden cells are compared with the true values. Differences
are in the units after preprocessing, whose scales are learned without the hidden cells.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from appca.analysis.choose import MOST_ROWS, sample_of
from appca.analysis.fitted import OfModel
from appca.analysis.journal import JournalStore
from appca.data.dataset import Dataset
from appca.data.preprocessing import Preprocessing
from appca.words import InputError

FOLDER = "masked"
MOST_REPEATS = 20
MEANS, FEW, EVERY, OWN = "means", "ppca_l", "ppca_k", "own"
RIDGE, NEAR = "ridge", "near"
PENALTIES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)  # of ridge, in units of the mean variance of a column
NEIGHBOURS = 15
FILLED_AGAIN = 3  # times that ridge starts from its own predictions


@dataclass(frozen=True, eq=False)
class MaskedConfig(OfModel):
    """Everything that decides the numbers; InputError for values without meaning.

    `parameters` are keywords of `AdaptivePPCA`, n_components and n_active among them; with both
    equal it is PPCA and stands for itself. `share` of the observed cells are hidden, up to half,
    other ones in each of the `repeats`. All else is as in a grid.
    """

    model: ClassVar[str] = "aPPCA"  # type: ignore[misc]  # not a setting here

    dataset: str
    preprocessing: dict[str, Any]
    parameters: dict[str, Any]
    share: float = 0.05
    repeats: int = 3
    max_rows: int = MOST_ROWS
    random_state: int = 0

    def __post_init__(self) -> None:
        """Refuse what has no meaning."""
        super().__post_init__()
        if not 0 < self.share <= 0.5:
            msg = f"share must lie above 0 and be at most 0.5; got {self.share}."
            raise InputError(msg)
        if not 1 <= self.repeats <= MOST_REPEATS:
            msg = f"repeats must lie between 1 and {MOST_REPEATS}; got {self.repeats}."
            raise InputError(msg)

    @property
    def sizes(self) -> tuple[int, int]:
        """K and L."""
        K = int(self.parameters["n_components"])
        return K, int(self.parameters.get("n_active", K))

    @property
    def methods(self) -> tuple[str, ...]:
        """What is compared: the model, PPCA with L and with K components, and plain methods."""
        K, L = self.sizes
        return (*((EVERY,) if K == L else (OWN, FEW, EVERY)), RIDGE, NEAR, MEANS)


def hide(observed: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Choose a share of the observed cells (N, D) at random to be hidden, (N, D) bool.

    Every column keeps at least two observed ones, so that none loses its scale.
    """
    cells = np.flatnonzero(observed)
    hidden = np.zeros(observed.shape, dtype=bool)
    chosen = rng.permutation(cells)[: max(1, round(share * len(cells)))]
    hidden.flat[chosen] = True
    bare = (observed & ~hidden).sum(axis=0) < 2
    hidden[:, bare] = False
    return hidden


def run(
    dataset: Dataset,
    config: MaskedConfig,
    store: JournalStore,
    report: Callable[[int], None] = lambda _done: None,
    callback: Callable[[Any], object] | None = None,
) -> None:
    """Fit what the store lacks, and note each error at once.

    `report` is told before each fit how many have been made, and `callback` each pass of EM; an
    exception from either ends the work. Raises InputError when the preprocessing needs whole rows.
    """
    rows = sample_of(dataset.n_rows, config.max_rows, config.random_state)
    X = dataset.X[rows]
    missing = np.zeros(X.shape, bool) if dataset.missing is None else dataset.missing[rows]
    options = Preprocessing.from_dict(config.preprocessing)
    store.begin(config.id, config.to_dict())
    done = {(int(record[0]), str(record[1])) for record in store.records(config.id)}
    for repeat in range(config.repeats):
        hidden = hide(~missing, config.share, np.random.default_rng([config.random_state, repeat]))
        fitted = options.fit(X, missing=missing | hidden)
        Y = fitted.transform(X)
        truth, Y[missing | hidden] = Y[hidden], np.nan
        for number, method in enumerate(config.methods):
            if (repeat, method) in done:
                continue
            report(repeat * len(config.methods) + number)
            left = truth - filled_in(method, Y, config, callback)[hidden]
            error = float(np.sqrt(np.square(left, dtype=np.float64).mean()))
            store.append(config.id, [repeat, method, error, int(hidden.sum())])


def filled_in(
    method: str, Y: np.ndarray, config: MaskedConfig, callback: Callable[..., Any] | None = None
) -> np.ndarray:
    """Return Y (N, D) with what a method puts into its missing cells (NaN)."""
    from appca.models.adaptive_ppca import AdaptivePPCA
    from appca.models.ppca import PPCA

    if method == MEANS:
        return _means(Y)
    if method == RIDGE:
        return ridge(Y, config.random_state)
    if method == NEAR:
        from sklearn.impute import KNNImputer

        return np.asarray(KNNImputer(n_neighbors=NEIGHBOURS).fit_transform(Y))
    K, L = config.sizes
    if method == OWN:
        estimator: Any = AdaptivePPCA(**config.parameters | {"callback": callback})
    else:
        estimator = PPCA(K if method == EVERY else L, callback=callback)
    return np.asarray(estimator.fit(Y).impute(Y))


def ridge(Y: np.ndarray, seed: int = 0) -> np.ndarray:
    """Predict each column from all others, with the penalty that predicts hidden cells best.

    All regressions come from one inverse: with P the inverse of the covariance plus the penalty,
    column j given the others has the coefficients -P[j] / P[j, j].
    """
    rng = np.random.default_rng(seed)
    hidden = hide(~np.isnan(Y), 0.05, rng)
    seen = np.where(hidden, np.nan, Y)

    def error(penalty: float) -> float:
        return float(np.square((_ridge(seen, penalty) - Y)[hidden]).sum())

    return _ridge(Y, min(PENALTIES, key=error))


def _ridge(Y: np.ndarray, penalty: float, times: int = FILLED_AGAIN) -> np.ndarray:
    gaps, filled = np.isnan(Y), _means(Y)
    for _ in range(times):
        centre = filled.mean(axis=0)
        Z = filled - centre
        covariance = Z.T @ Z / len(Z)
        covariance[np.diag_indices_from(covariance)] += penalty * max(Z.var(), 1e-12)
        P = np.linalg.inv(covariance)
        predicted = centre + Z - Z @ P / np.diag(P)
        filled = np.where(gaps, predicted, Y)
    return filled


def _means(Y: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(Y), np.nanmean(Y, axis=0), Y)


def stored(store: JournalStore, config: MaskedConfig) -> dict[str, np.ndarray]:
    """Return the errors so far: method to (repeat,) root mean squares; methods without one lack."""
    errors: dict[str, dict[int, float]] = {}
    for repeat, method, error, _ in store.records(config.id):
        errors.setdefault(str(method), {})[int(repeat)] = float(error)
    return {
        method: np.array([errors[method][r] for r in sorted(errors[method])])
        for method in config.methods
        if method in errors
    }


def is_whole(errors: dict[str, np.ndarray], config: MaskedConfig) -> bool:
    """Whether every fit has been made."""
    return all(len(errors.get(method, ())) == config.repeats for method in config.methods)
