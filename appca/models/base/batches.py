"""Fits to batches: stepwise EM (Cappe & Moulines 2009), a step each on running averages of sums.

    T <- (1 - g) T + g T_batch(theta),  g = (t + 2)^-0.7 at batch t;  theta <- M step on T

T holds the expected sufficient statistics a row, about the mean of the first batch. Rows need be
seen only once, and what early batches said under poor parameters is forgotten.
"""

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from appca.models.algebra.gaussian import Array
from appca.models.algebra.threads import single_threaded_blas
from appca.models.base.data_checks import counted_rows, refuse_not_finite
from appca.models.base.estimator import SampledModel
from appca.models.orthonormal.em import (
    EMSettings,
    SubspaceState,
    SubspaceStatistics,
    expect,
    maximise,
)
from appca.models.orthonormal.screening import EMControl
from appca.models.rows.observations import Observations, Rows, about

FORGETTING, DELAY = 0.7, 2


class Averages(NamedTuple):
    """Running averages a row; rows are about `Stepwise.origin`."""

    mean: Array  # (D,) of y
    power: Array  # () of |y|^2
    A: Array  # (D, K) of y s'
    s: Array  # (K,) of s
    second: Array  # (K,) of E[(x z)^2]
    used: Array  # (K,) of inclusion probabilities


class Whole(NamedTuple):
    """What the M step needs to know of rows that count as one."""

    total: float
    n_features: int
    mass: float = 1.0


class Stepwise(NamedTuple):
    """Where stepwise EM is."""

    origin: Array  # (D,)
    centred: bool  # whether the mean is other than zero
    state: SubspaceState  # its shift is about origin + mean
    averages: Averages
    steps: int

    def next(self, rows: Rows, settings: EMSettings) -> tuple[float, Self]:
        """Mean log-likelihood of rows about `origin` before, and where a step on them leads."""
        value, seen = look(rows, self.state, self.averages.mean * self.centred, settings)
        g = (self.steps + DELAY) ** -FORGETTING if self.steps else 1.0
        averages = Averages(
            *((1.0 - g) * a + g * b for a, b in zip(self.averages, seen, strict=True))
        )
        b = averages.mean * self.centred
        sums = SubspaceStatistics(
            0.0,
            averages.A - np.outer(b, averages.s),
            averages.s,
            averages.second,
            averages.used,
        )
        size = Whole(float(averages.power - b @ b), len(b))
        state = maximise(sums, self.state, size, settings)
        return value, self._replace(state=state, averages=averages, steps=self.steps + 1)


def look(
    rows: Rows, state: SubspaceState, mean: Array, settings: EMSettings
) -> tuple[float, Averages]:
    """Mean log-likelihood of rows, and their averages, where the shift is about origin + mean."""
    away = state.shift - mean @ state.W
    sums = expect(state._replace(shift=away), rows, settings)
    total = rows.summed(lambda block: block.weighted(block.centred()).sum(axis=0), np.zeros(rows.d))
    n, mu = rows.mass, mean - state.W @ state.shift
    # `expect` takes rows to sum to their origin, and the mean to lie in the span of W.
    excess = (mu @ mu - 2.0 * mu @ total / n) - away @ away
    value = sums.log_likelihood / n - 0.5 * excess / state.noise
    parts = (total, np.asarray(rows.total), *sums[1:])
    return float(value), Averages(*(part / n for part in parts))


def first(rows: Rows, state: SubspaceState, *, centred: bool) -> Stepwise:
    """Begin at a state whose shift is about the origin of `rows`; averages are those to come."""
    d, K = state.W.shape
    origin = np.zeros(d) if rows.origin is None else rows.origin
    none = Averages(
        np.zeros(d), np.zeros(()), np.zeros((d, K)), np.zeros(K), np.zeros(K), np.zeros(K)
    )
    return Stepwise(origin, centred, state, none, 0)


def _has_averages(model: Any) -> bool:
    """Whether an estimator is fitted by EM; AttributeError, as scikit-learn asks, where not."""
    if model.inference == "gibbs":
        msg = "inference must be 'em' or 'hard' for partial_fit; got 'gibbs': change it."
        raise AttributeError(msg)
    return True


class InBatches(SampledModel):
    """A model fitted by EM that can learn from one batch of rows after the other."""

    inference: str
    mean: str
    n_iter_: int
    stop_reason_: str
    log_likelihoods_: Array

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to all rows."""
        raise NotImplementedError

    def _control(self, rows: Observations) -> EMControl:
        """Return what an EM step needs to know."""
        raise NotImplementedError

    def _forget_fit(self) -> None:
        self._forget_draws()
        self.__dict__.pop("_stepwise", None)

    @available_if(_has_averages)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one batch of rows (N, D) more, by stepwise EM, and return the estimator.

        The first batch is fitted as `fit` would, unless `fit` came before; it decides about the
        start and should hold some hundred rows a component. No batch is kept. `log_likelihoods_`
        has the total of each batch before it was learned from, and `scale_` is that of the
        posterior means.
        """
        del y
        begun = hasattr(self, "components_")
        if not begun:
            self.fit(X, sample_weight=sample_weight)
        X, weights = counted_rows(self._validated(X, reset=False), sample_weight)
        refuse_not_finite(X)
        at: Stepwise | None = self.__dict__.get("_stepwise")
        if at is None:
            rows = about(X, None if self.mean == "zero" else self.mean_, weights)
            W = self.components_.T.astype(np.float64)
            state = SubspaceState(
                W, np.zeros(W.shape[1]), self.latent_variance_, self.noise_variance_
            )
            at = first(rows, state, centred=self.mean != "zero")
        rows = about(X, at.origin.astype(X.dtype) if at.centred else None, weights)
        with single_threaded_blas():
            value, at = at.next(rows, self._control(rows).settings)
        middle = at.origin + at.averages.mean if at.centred else None
        order = self._publish_state(rows._replace(origin=middle), at.state, at.averages.second)
        power = at.averages.second[order] / np.maximum(at.averages.used[order], 1e-12)
        self.scale_ = np.where(power > 0.0, np.sqrt(power), 1.0)
        self._stepwise = at
        if begun:
            self.log_likelihoods_ = np.append(self.log_likelihoods_, value * rows.mass)
            self.n_iter_ = len(self.log_likelihoods_)
            self.stop_reason_ = "a step for each batch"
        return self
