"""Fits to batches: incremental EM (Neal & Hinton 1998) on the sums of all rows so far.

    T <- (1 - g) T + g T_batch(theta),  g = rows of the batch / rows so far;  theta <- M step on T

T contains the expected sufficient statistics per row, initially those of the fit. A uniform sample
of the rows is stored. Whenever the number of rows has grown by a tenth, EM runs on the sample, and
its sums replace T if they fit the sample better than by chance.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from types import MethodType, SimpleNamespace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from appca.models.data_checks import counted_rows, refuse_not_finite
from appca.models.em import SubspaceStatistics
from appca.models.estimator import Estimator, whole_or_not
from appca.models.loop import WINDOW, Callback
from appca.models.numerics import Array
from appca.models.posterior import publish
from appca.models.rows import Observations, Rows, about, dense, is_sparse, outer_sum
from appca.models.settings import OVERDISPERSED
from appca.models.threads import single_threaded_blas

KEPT_ROWS, KEPT_ROWS_PER_COMPONENT, MOST_KEPT_BYTES = 2500, 400, 2**26
GROWTH, MOST_ITERATIONS, LEAST_GAIN = 1.1, 50, 1e-3  # LEAST_GAIN is in nats per row


class Averages(NamedTuple):
    """Averages per row, for rows relative to `Stepwise.origin`."""

    mean: Array  # (D,) of y
    power: Any = 0.0  # average of |y|^2
    A: Any = 0.0  # (D, K) of y s'
    s: Any = 0.0  # (K,) of s
    second: Any = 0.0  # (K,) of E[(x z)^2], or (K, K) of all products
    used: Any = 0.0  # (K,) of inclusion probabilities

    def mixed(self, other: Self, share: float) -> "Averages":
        """Return the average of both, with weight `share` for `other`."""
        return Averages(*((1.0 - share) * a + share * b for a, b in zip(self, other, strict=True)))


class LastFit(NamedTuple):
    """The fit that batches continue from; only its mass if its sums are unknown."""

    mass: float
    total: float = 0.0  # sum of |y - origin|^2
    origin: Array | None = None
    W: Any = None  # (D, K) in the order before publication
    sums: Any = None  # expected statistics, with H (K, K), A = W H, in place of A
    order: Any = None


class EMSteps(NamedTuple):
    """The E and M step of a model."""

    expect: Callable[[Rows, Any, Array], Any]  # (rows, state, their `total_of`) -> sums
    maximise: Callable[..., Any]  # (sums, state, rows with total, mass, n_features) -> state


class KeptRows(NamedTuple):
    """A uniform sample of the rows of all batches: those with the smallest random keys."""

    X: Array  # (n, D)
    weights: Array
    keys: Array
    seen: int = 0

    def joined(self, rows: Rows, most: int) -> "KeptRows":
        """Add rows and keep at most `most`; the same stream gives the same sample."""
        keys = np.random.default_rng(self.seen).random(rows.n)
        new = np.sort(np.argsort(keys)[:most])  # limits the rows that become dense
        part = dense(rows.X[new]), rows.weighted(np.ones(rows.n))[new], keys[new]
        X, w, keys = (np.concatenate(pair) for pair in zip(self[:3], part, strict=True))
        least = np.sort(np.argsort(keys)[:most])
        return KeptRows(X[least], w[least], keys[least], self.seen + rows.n)


class Stepwise(NamedTuple):
    """The state of EM on batches."""

    origin: Array  # (D,)
    centred: bool  # whether the model has a mean
    state: Any  # its shift is about `middle`
    averages: Averages  # over all rows
    fitted: Averages  # over the rows of the previous fit, which are not stored
    kept: KeptRows
    mass: float  # mass of all rows
    fitted_mass: float
    revised: float = 0.0  # mass when EM last ran on the sample

    @property
    def middle(self) -> Array | None:
        """Mean of the rows so far, or None for zero."""
        if not self.centred:
            return None
        return (self.origin + self.averages.mean).astype(self.kept.X.dtype)

    def next(self, rows: Rows, em: EMSteps, most: int) -> tuple[float, "Stepwise"]:
        """Return a batch's total log-likelihood before the update, and the updated state."""
        value, averages = self._expected(rows, total_of(rows), em)
        at = self._replace(mass=self.mass + rows.mass, kept=self.kept.joined(rows, most))
        at = at._maximised(self.averages.mixed(averages, rows.mass / at.mass), em)
        if at.mass < GROWTH * at.revised:
            return value, at
        # EM runs on the sample; its result is used if it is better than by chance.
        kept, later, values, share = at.kept, at, list[float](), 1.0 - at.fitted_mass / at.mass
        sample = about(kept.X, at.middle, None if (kept.weights == 1.0).all() else kept.weights)
        total, by_chance = total_of(sample), 0.0 if kept.seen == sample.n else at.state.W.size
        by_chance *= sample.mass / sample.n
        for left in reversed(range(MOST_ITERATIONS)):
            of_sample, averages = later._expected(sample, total, em)
            values.append(of_sample)
            later = later._maximised(at.fitted.mixed(averages, share), em)
            last = values[-1] - values[-2] if len(values) > 1 else np.inf
            hopeless = values[-1] - values[0] + min(left, WINDOW) * last < by_chance
            if hopeless or last < LEAST_GAIN * sample.mass:
                break
        better = values[-1] - values[0] >= by_chance
        return value, (later if better else at)._replace(revised=at.mass)

    def _expected(self, rows: Rows, total: Array, em: EMSteps) -> tuple[float, Averages]:
        """Return the log-likelihood of rows, and their averages relative to `origin`."""
        sums, n, total = em.expect(rows, self.state, total), rows.mass, total / rows.mass
        away = np.zeros(rows.d) if rows.origin is None else rows.origin - self.origin
        power = rows.total / n + 2.0 * away @ total + away @ away
        A, s, second, used = (part / n for part in sums[1:5])
        averages = total + away, np.asarray(power), A + np.outer(away, s), s, second, used
        return sums.log_likelihood, Averages(*averages)

    def _maximised(self, averages: Averages, em: EMSteps) -> "Stepwise":
        b = averages.mean * self.centred
        A = averages.A - np.outer(b, averages.s)
        size = SimpleNamespace(total=float(averages.power - b @ b), n_features=len(b), mass=1.0)
        of_rows = A, averages.s, averages.second, averages.used
        sums = SubspaceStatistics(0.0, *of_rows, inverse=size.mass, power=size.total)
        return self._replace(state=em.maximise(sums, self.state, size), averages=averages)


def total_of(rows: Rows) -> Array:
    """Weighted sum (D,) of rows about their origin."""
    return outer_sum(rows, rows.weighted(np.ones((rows.n, 1))))[:, 0]


class _WithBatches:
    """Descriptor of `partial_fit`; AttributeError for models that cannot learn in batches."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = whole_or_not(method)

    def __get__(self, model: Any, owner: type | None = None) -> Callable[..., Any]:
        if model is None:
            return self._method
        if model.inference == "gibbs":
            msg = "partial_fit uses EM, but inference is 'gibbs': change inference."
            raise AttributeError(msg)
        if any(getattr(model, "_variant", ())):
            msg = "partial_fit needs noise='shared', row_scale='none' and a number as n_active; "
            msg += f"got {model.noise!r}, {model.row_scale!r} and {model.n_active!r}: change them, "
            msg += "or pass all rows to fit or fit_blocks."
            raise AttributeError(msg)
        return MethodType(self._method, model)


@dataclass(eq=False, repr=False)
class InBatches(Estimator):
    """Base of models with warm starts and `partial_fit`."""

    _steps: ClassVar[Any]  # rows -> `EMSteps` for such rows
    _state: ClassVar[Any]  # () -> the fitted state about the mean, with shift zero
    _pairs: ClassVar[bool] = False  # sums contain E[(x z)(x z)'], not just its diagonal

    n_components: int = 4
    n_active: Any = 2
    _: KW_ONLY
    inference: str = "em"
    init: Any = "auto"
    n_init: int = 1
    mean: str = "learned"
    max_iter: int = 500
    tol: float = 1e-4
    n_chains: int = 2
    burn_in: int = 200
    n_draws: int = 500
    thin: int = 1
    chain_starts: str = OVERDISPERSED
    noise_shape: float = 1.0
    noise_scale: float = 0.01
    random_state: Any = None
    callback: Callback | None = None
    whiten: bool = False
    verbose: bool | int = False
    warm_start: bool = False

    def _first_step(self) -> Stepwise:
        """Return the state after the last fit, from its sums or else from moments of the model."""
        W, last = self.components_.astype(np.float64), self.__dict__.get("_last_fit")
        mass = last.mass if last else float(KEPT_ROWS_PER_COMPONENT * len(W))  # if restored
        if last is None or last.sums is None:
            origin = self.mean_.astype(np.float64)
            second = self.explained_variance_ / np.square(W).sum(axis=1)
            power = self.explained_variance_.sum() + W.shape[1] * self.noise_variance_
            s, used, H = np.zeros(len(W)), second / self.latent_variance_, np.diag(second)
            second = H if self._pairs else second
        else:
            origin = np.zeros(W.shape[1]) if last.origin is None else last.origin.astype(np.float64)
            signs = np.sign(np.einsum("dk,kd->k", last.W[:, last.order], W))
            turn = np.eye(len(W))[:, last.order] * signs
            _, H, s, second, used = last.sums[:5]
            second = np.abs(turn.T) @ second if second.ndim == 1 else turn.T @ second @ turn
            H, s, used = turn.T @ (H + H.T) @ turn / 2.0, turn.T @ s, used[last.order]
            power, H, s, second, used = (x / mass for x in (last.total, H, s, second, used))
        averages = Averages(np.zeros(W.shape[1]), power, W.T @ H, s, second, used)
        kept = KeptRows(np.empty((0, W.shape[1]), self.mean_.dtype), np.empty(0), np.empty(0))
        state, centred = self._state_about(origin), self.mean != "zero"
        return Stepwise(origin, centred, state, averages, averages, kept, mass, mass, mass)

    def _state_about(self, origin: Array | None) -> Any:
        """Return the fitted parameters as a state with mean = origin - W shift."""
        away = -self.mean_ if origin is None else origin - self.mean_
        return self._state()._replace(shift=np.linalg.lstsq(self.components_.T, away)[0])

    def _continued(self, rows: Observations) -> Array | None:
        """Return the loadings (D, K) of the previous fit for a warm start, if K and D agree."""
        before: Array | None = getattr(self, "components_", None)
        goes_on = before is not None and before.shape == (self.n_components, rows.d)
        return before.T if before is not None and goes_on else None

    @_WithBatches
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Update the fit with another batch of rows (N, D) by incremental EM.

        The first batch is fitted as by `fit`. An earlier fit counts as many rows as it had; a model
        from a file counts as 400 rows per component. Components keep their order and signs. The
        estimator stores a uniform sample of all rows (not in files) of 2,500 rows or 400 per
        component, whichever is more, but at most 64 MB. `log_likelihoods_` has the total of each
        batch before its update, `scale_` the root of E[(x z)^2] over a component's rows.
        """
        del y
        if not (begun := hasattr(self, "components_")):
            self.fit(X, sample_weight=sample_weight)
        X, weights = counted_rows(self._validated(X, reset=False), sample_weight)
        if not is_sparse(X):
            refuse_not_finite(X)
        at: Stepwise = self.__dict__.get("_stepwise") or self._first_step()
        K, D = self.components_.shape
        most = max(KEPT_ROWS, KEPT_ROWS_PER_COMPONENT * K)
        most, rows = min(most, MOST_KEPT_BYTES // (D * X.itemsize)), about(X, at.middle, weights)
        if not begun:
            self._stepwise = at._replace(fitted_mass=0.0, kept=at.kept.joined(rows, most))
            return self
        with single_threaded_blas():
            value, at = at.next(rows, self._steps(rows), most)
        second = at.averages.second
        squares = second if second.ndim == 1 else np.diagonal(second)
        publish(self, rows._replace(origin=at.middle), at.state, squares, same_order=True)
        power = squares / np.maximum(at.averages.used, 1e-12)
        self.scale_ = np.where(power > 0.0, np.sqrt(power), 1.0)
        self._stepwise = at
        self.log_likelihoods_ = np.append(self.log_likelihoods_, value)
        self.n_iter_ = len(self.log_likelihoods_)
        self.stop_reason_ = "one step per batch"
        return self
