"""Fits to batches: stepwise EM (Cappe & Moulines 2009), a step each on running averages of sums.

    T <- (1 - g) T + g T_batch(theta),  g = (t + 2)^-0.7 at batch t;  theta <- M step on T

T holds the expected sufficient statistics a row, about the mean of the first batch. Rows need be
seen only once, and what early batches said under poor parameters is forgotten.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from appca.models.algebra.gaussian import Array
from appca.models.algebra.threads import single_threaded_blas
from appca.models.base.data_checks import counted_rows, refuse_not_finite
from appca.models.base.estimator import MAP, SampledModel
from appca.models.rows.observations import Observations, Rows, about, centre_of
from appca.models.rows.spectrum import Principal, principal

FORGETTING, DELAY = 0.7, 2
WARM_ROWS = 5000  # from which the first direction of a further component is taken


class Averages(NamedTuple):
    """Running averages a row; rows are about `Stepwise.origin`."""

    mean: Array  # (D,) of y
    power: Any = 0.0  # of |y|^2
    A: Any = 0.0  # (D, K) of y s'
    s: Any = 0.0  # (K,) of s
    second: Any = 0.0  # (K,) of E[(x z)^2], or (K, K) of all products
    used: Any = 0.0  # (K,) of inclusion probabilities

    @property
    def squares(self) -> Array:
        """Averages (K,) of E[(x z)^2]."""
        return np.asarray(self.second if self.second.ndim == 1 else np.diagonal(self.second))


class Whole(NamedTuple):
    """What the M step needs to know of rows that count as one."""

    total: float
    n_features: int
    mass: float = 1.0


class EMSteps(NamedTuple):
    """The E and M step of a model, on whatever rows.

    A state has its `shift`; the sums of `expect` are a tuple of the log-likelihood and what
    `Averages` has from A on, exact whether or not the rows sum to their origin.
    """

    expect: Callable[[Rows, Any], Any]  # (rows, state) -> sums
    maximise: Callable[[Any, Any, Whole], Any]  # (sums, state, rows) -> state


class Stepwise(NamedTuple):
    """Where stepwise EM is."""

    origin: Array  # (D,)
    centred: bool  # whether the mean is other than zero
    state: Any  # its shift is about `middle`
    averages: Averages
    steps: int = 0

    @property
    def middle(self) -> Array | None:
        """Mean of the rows so far, or None for zero."""
        return self.origin + self.averages.mean if self.centred else None

    def next(self, rows: Rows, em: EMSteps) -> tuple[float, Self]:
        """Mean log-likelihood of rows about `middle` before, and where a step on them leads."""
        sums = em.expect(rows, self.state)
        seen = averaged(rows, sums, self.origin)
        g = (self.steps + DELAY) ** -FORGETTING if self.steps else 1.0
        averages = Averages(
            *((1.0 - g) * a + g * b for a, b in zip(self.averages, seen, strict=True))
        )
        b = averages.mean * self.centred
        parts = averages.A - np.outer(b, averages.s), averages.s, averages.second, averages.used
        size = Whole(float(averages.power - b @ b), len(b))
        state = em.maximise(type(sums)(0.0, *parts), self.state, size)
        value = sums.log_likelihood / rows.mass
        return value, self._replace(state=state, averages=averages, steps=self.steps + 1)


def averaged(rows: Rows, sums: Any, origin: Array) -> Averages:
    """Averages about `origin` of rows about any other."""
    n, total = rows.mass, total_of(rows) / rows.mass
    away = np.zeros(rows.d) if rows.origin is None else rows.origin - origin
    power = rows.total / n + 2.0 * away @ total + away @ away
    A, s, second, used = (part / n for part in sums[1:])
    return Averages(total + away, np.asarray(power), A + np.outer(away, s), s, second, used)


def total_of(rows: Rows) -> Array:
    """Weighted sum (D,) of rows about their origin."""
    return rows.summed(lambda block: block.weighted(block.centred()).sum(axis=0), np.zeros(rows.d))


def _has_averages(model: Any) -> bool:
    """Whether an estimator is fitted by EM; AttributeError, as scikit-learn asks, where not."""
    if model.inference == "gibbs":
        msg = "partial_fit goes on with EM, but inference is 'gibbs': change inference."
        raise AttributeError(msg)
    return True


class InBatches(SampledModel):
    """A model fitted by EM that can go on from its last fit, and learn batch by batch."""

    inference: str
    mean: str
    n_components: int
    n_iter_: int
    stop_reason_: str
    log_likelihoods_: Array

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to all rows."""
        raise NotImplementedError

    def _steps(self, rows: Rows) -> EMSteps:
        """Return the EM steps on rows like these."""
        raise NotImplementedError

    def _state(self) -> Any:
        """Return what was fitted as a state of EM, its shift zero: about the mean."""
        raise NotImplementedError

    def _forget_fit(self) -> None:
        self._forget_draws()
        self.__dict__.pop("_stepwise", None)

    def _continued(
        self, rng: np.random.Generator, rows: Observations
    ) -> tuple[Array, Principal | None] | None:
        """Give loadings (D, k) of the fit before, k at most K, and directions for those missing.

        The directions are those it explains least. None where there is no fit of such rows.
        """
        before: Array | None = getattr(self, "components_", None)
        if before is None or before.shape[1] != rows.d:
            return None
        W, missing = before[: self.n_components].T, self.n_components - len(before)
        if missing <= 0:
            return W, None
        X, own = rows.take(np.sort(rng.permutation(rows.n)[:WARM_ROWS])), self._unnamed()
        left = X - own.inverse_transform(own.transform(X, MAP), MAP)
        return W, principal(rng, about(left, centre_of(left)), missing)

    @available_if(_has_averages)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one batch of rows (N, D) more, by stepwise EM, and return the estimator.

        The first batch is fitted as `fit` would, unless `fit` came before; it decides about the
        start and should hold some hundred rows a component. No batch is kept. `log_likelihoods_`
        has the total of each batch before it was learned from, and `scale_` is the root of
        E[(x z)^2] over the rows that use a component.
        """
        del y
        begun = hasattr(self, "components_")
        if not begun:
            self.fit(X, sample_weight=sample_weight)
        X, weights = counted_rows(self._validated(X, reset=False), sample_weight)
        refuse_not_finite(X)
        at: Stepwise | None = self.__dict__.get("_stepwise")
        if at is None:
            D = len(self.mean_)
            origin = self.mean_.astype(np.float64)
            at = Stepwise(origin, self.mean != "zero", self._state(), Averages(np.zeros(D)))
        rows = about(X, None if at.middle is None else at.middle.astype(X.dtype), weights)
        with single_threaded_blas():
            value, at = at.next(rows, self._steps(rows))
        squares = at.averages.squares
        order = self._publish_state(rows._replace(origin=at.middle), at.state, squares)
        power = squares[order] / np.maximum(at.averages.used[order], 1e-12)
        self.scale_ = np.where(power > 0.0, np.sqrt(power), 1.0)
        self._stepwise = at
        if begun:
            self.log_likelihoods_ = np.append(self.log_likelihoods_, value * rows.mass)
            self.n_iter_ = len(self.log_likelihoods_)
            self.stop_reason_ = "a step for each batch"
        return self
