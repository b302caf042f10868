"""How well a model predicts cells it has not seen, against PPCA and against plain methods.

A share of the observed cells is hidden on top of those that are missing, the models are fitted
around both, and their predictions of hidden cells are compared with the true values. Differences
are in the units after preprocessing, whose scales are learned without the hidden cells.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from appca.analysis.campaign import MOST_ROWS, Campaign, Measure, Step, sample_of
from appca.analysis.fitted import OfModel
from appca.data.dataset import Dataset
from appca.data.preprocessing import Preprocessing

SHARE, REPEATS = 0.05, 3  # of the observed cells that are hidden, others in each repeat
MEANS, FEW, EVERY, OWN = "means", "ppca_l", "ppca_k", "own"
RIDGE, NEAR = "ridge", "near"
PENALTIES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)  # of ridge, in units of the mean variance of a column
NEIGHBOURS = 15
FILLED_AGAIN = 3  # times that ridge starts from its own predictions


@dataclass(frozen=True, eq=False)
class MaskedConfig(Campaign, OfModel):
    """Settings of a test on hidden cells.

    `parameters` are keywords of `AdaptivePPCA`, n_components and n_active among them; with both
    equal it is PPCA.
    """

    folder: ClassVar[str] = "masked"
    around_gaps: ClassVar[bool] = True
    model: ClassVar[str] = "aPPCA"  # type: ignore[misc]  # not a setting here

    dataset: str
    preprocessing: dict[str, Any]
    parameters: dict[str, Any]

    @property
    def sizes(self) -> tuple[int, int]:
        """K and L."""
        K = int(self.parameters["n_components"])
        return K, int(self.parameters.get("n_active", K))

    @property
    def methods(self) -> tuple[str, ...]:
        """The model, PPCA with L and with K components, and plain methods."""
        K, L = self.sizes
        return (*((EVERY,) if K == L else (OWN, FEW, EVERY)), RIDGE, NEAR, MEANS)

    def steps(self) -> list[Step]:
        """Return every (repeat, method)."""
        return [(repeat, method) for repeat in range(REPEATS) for method in self.methods]

    def fits(self, n_rows: int) -> list[tuple[dict[str, Any], int, float]]:
        """Return settings and rows of the fit of every step; plain methods take no time."""
        rows, (K, L) = min(n_rows, MOST_ROWS), self.sizes
        of = {OWN: (K, L), FEW: (L, L), EVERY: (K, K)}
        cells = [(of.get(method, (K, L)), float(method in of)) for _, method in self.steps()]
        return [({"n_components": k, "n_active": q}, rows, n) for (k, q), n in cells]

    def measuring(self, dataset: Dataset) -> Measure:
        """Return what hides cells, predicts them by one method, and returns error and number.

        Raises InputError when the preprocessing needs whole rows.
        """
        rows = sample_of(dataset.n_rows, MOST_ROWS, 0)
        X = dataset.X[rows]
        missing = np.zeros(X.shape, bool) if dataset.missing is None else dataset.missing[rows]
        options = Preprocessing.from_dict(self.preprocessing)

        @lru_cache(maxsize=1)
        def prepared(repeat: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            hidden = hide(~missing, SHARE, np.random.default_rng([0, repeat]))
            Y = options.fit(X, missing=missing | hidden).transform(X)
            truth, Y[missing | hidden] = Y[hidden], np.nan
            return Y, hidden, truth

        def measure_step(step: Step, _report: object) -> list[Any]:
            Y, hidden, truth = prepared(step[0])
            residual = truth - filled_in(step[1], Y, self)[hidden]
            error = float(np.sqrt(np.square(residual, dtype=np.float64).mean()))
            return [error, int(hidden.sum())]

        return measure_step

    def errors(self, home: Path) -> dict[str, np.ndarray]:
        """Return the errors so far: method to (repeat,) root mean squares, where there are any."""
        records = sorted(self.records(home).items())
        errors: dict[str, list[float]] = {method: [] for method in self.methods}
        for (_, method), (error, _) in records:
            errors[method].append(error)
        return {method: np.array(values) for method, values in errors.items() if values}


def hide(observed: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Choose a share of the observed cells (N, D) at random to be hidden, (N, D) bool.

    Every column keeps at least two observed cells, so that none loses its scale.
    """
    cells = np.flatnonzero(observed)
    hidden = np.zeros(observed.shape, dtype=bool)
    hidden.flat[rng.permutation(cells)[: max(1, round(share * len(cells)))]] = True
    hidden[:, (observed & ~hidden).sum(axis=0) < 2] = False
    return hidden


def filled_in(method: str, Y: np.ndarray, config: MaskedConfig) -> np.ndarray:
    """Return Y (N, D) with what a method puts into its missing cells (NaN)."""
    from sklearn.impute import KNNImputer

    from appca.models.adaptive_ppca import AdaptivePPCA
    from appca.models.ppca import PPCA

    K, L = config.sizes
    if method == MEANS:
        return _means(Y)
    if method == RIDGE:
        return ridge(Y)
    if method == NEAR:
        return np.asarray(KNNImputer(n_neighbors=NEIGHBOURS).fit_transform(Y))
    model = (
        AdaptivePPCA(**config.parameters) if method == OWN else PPCA(K if method == EVERY else L)
    )
    return np.asarray(model.fit(Y).impute(Y))


def ridge(Y: np.ndarray) -> np.ndarray:
    """Predict each column from all others, with the penalty that predicts hidden cells best."""
    hidden = hide(~np.isnan(Y), SHARE, np.random.default_rng(0))
    seen = np.where(hidden, np.nan, Y)

    def error(penalty: float) -> float:
        return float(np.square((regressed(seen, penalty) - Y)[hidden]).sum())

    return regressed(Y, min(PENALTIES, key=error))


def regressed(Y: np.ndarray, penalty: float, times: int = FILLED_AGAIN) -> np.ndarray:
    """Predict the missing cells of each column from all others, so many `times`.

    All regressions come from one inverse: with P the inverse of the covariance plus the penalty,
    column j given the others has the coefficients -P[j] / P[j, j].
    """
    gaps, filled = np.isnan(Y), _means(Y)
    for _ in range(times):
        centre = filled.mean(axis=0)
        Z = filled - centre
        covariance = Z.T @ Z / len(Z)
        covariance[np.diag_indices_from(covariance)] += penalty * max(Z.var(), 1e-12)
        P = np.linalg.inv(covariance)
        filled = np.where(gaps, centre + Z - Z @ P / np.diag(P), Y)
    return filled


def _means(Y: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(Y), np.nanmean(Y, axis=0), Y)
