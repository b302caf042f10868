"""What the models without a fixed number of active components share as estimators."""

import math
import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from appca.models.algebra.gaussian import Array
from appca.models.algebra.loop import Callback, spoken
from appca.models.algebra.stiefel import upright
from appca.models.algebra.threads import single_threaded_blas
from appca.models.base.data_checks import refuse_constant
from appca.models.base.estimator import generator
from appca.models.factors.posterior import FreePosterior
from appca.models.queries import Queries
from appca.models.rows.observations import Rows, about, centre_of
from appca.models.sampling.chains import Sampler, Schedule, generators, sample
from appca.models.sampling.conditionals import Gamma, InverseGamma
from appca.models.sampling.feature_priors import LEAST_WEIGHT
from appca.models.sampling.invariants import IN_USE, in_use
from appca.models.sampling.query_draws import number_band
from appca.models.supports import free_supports


class Draw(NamedTuple):
    """One draw of the parameters, as the estimator publishes it."""

    W: Array  # (D, K)
    mean: Array  # (D,) about the origin of the training rows
    noise: float
    latent: Array  # (K,)
    weights: Array  # (K,) probability that a new row uses a column
    power: Array  # (K,) sums over rows of the squares of x z w
    alpha: float


@dataclass(eq=False, repr=False)
class FreeModel(Queries):
    """Sampled models whose rows use any number of components.

    Subclasses say where chains start, how they move and what a draw is.
    """

    max_components: int
    _: KW_ONLY
    alpha: Any = "infer"
    mean: str = "learned"
    n_chains: int = 2
    burn_in: int = 200
    n_draws: int = 500
    thin: int = 1
    noise_shape: float = 1.0
    noise_scale: float = 0.01
    alpha_shape: float = 1.0
    alpha_rate: float = 1.0
    random_state: Any = None
    callback: Callback | None = None
    whiten: bool = False
    verbose: bool | int = False

    _estimates: ClassVar[bool] = True
    _fitted: ClassVar[tuple[str, ...]] = (
        *(name for name in Queries._fitted if name != "n_active_"),
        "n_components_",
        "weights_",
        "alpha_",
    )

    _sums_over_supports: ClassVar[Any] = free_supports

    def _problem(
        self, rngs: list[np.random.Generator], rows: Rows
    ) -> tuple[list[Any], Sampler[Any]]:
        """First states of the chains and the sampler, for rows about their origin."""
        raise NotImplementedError

    def _drawn(self, state: Any) -> Draw:
        """Say what a state means for new rows."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None) -> Self:
        """Sample the posterior given X (N, D); return the estimator at the published draw."""
        del y
        X = self._validated(X, reset=True)
        with single_threaded_blas():
            return self._fit(X)

    def _fit(self, X: Array) -> Self:
        rows = about(X, None if self.mean == "zero" else centre_of(X))
        refuse_constant(rows)
        origin = np.zeros(X.shape[1]) if rows.origin is None else rows.origin.astype(np.float64)
        rngs = generators(generator(self.random_state), self.n_chains)
        self._forget_fit()
        first, sampler = self._problem(rngs, rows)
        schedule = Schedule(self.n_chains, self.burn_in, self.n_draws, self.thin)
        callback = spoken(self.callback, rows.mass) if self.verbose else self.callback
        chains = sample(rngs, first, sampler, schedule, callback, origin=origin)
        self._publish_draw(X, self._drawn(chains.best), origin)
        most = self.max_components
        if (chains.posterior["n_components"] == most).all():
            msg = (
                f"max_components={most} is reached in every draw, so the number of components is "
                "what the bound makes it: raise max_components."
            )
            warnings.warn(msg, stacklevel=3)
        return self._keep_draws(chains)

    def _mean_variance(self) -> float:
        """Prior variance of the mean: flat when it is learned."""
        return math.inf if self.mean == "learned" else 0.0

    def _noise_prior(self, variance: float) -> InverseGamma:
        return InverseGamma(self.noise_shape, self.noise_scale).in_units_of(variance)

    def _alpha_prior(self) -> Gamma | None:
        """Prior of the mass parameter; None keeps it where it starts."""
        return Gamma(self.alpha_shape, self.alpha_rate) if self.alpha == "infer" else None

    def _first_alpha(self) -> float:
        return 1.0 if self.alpha == "infer" else float(self.alpha)

    def _publish_draw(self, X: Array, draw: Draw, origin: Array) -> None:
        """Set the fitted attributes: used columns by explained variance, largest entry positive."""
        used = np.flatnonzero(draw.power > 0.0) if draw.power.any() else np.array([0])
        order = used[np.argsort(-draw.power[used], kind="stable")]
        W = upright(draw.W[:, order])
        self.components_ = np.ascontiguousarray(W.T, dtype=X.dtype)
        self.n_components_ = len(order)
        self.mean_ = (origin + draw.mean).astype(X.dtype)
        self.noise_variance_ = draw.noise
        self.latent_variance_ = draw.latent[order]
        self.weights_ = np.maximum(draw.weights[order], LEAST_WEIGHT)
        self.explained_variance_ = draw.power[order] / len(X)
        self.alpha_ = draw.alpha
        posterior = self._posterior()
        seen = posterior.seen(X)
        Z = posterior.best(seen).Z
        power = np.square(posterior.means(seen, Z)).sum(axis=0) / np.maximum(Z.sum(axis=0), 1)
        self.scale_ = np.sqrt(np.where(power > 0.0, power, 1.0))

    def _posterior(self) -> FreePosterior:
        return FreePosterior(
            components=self.components_,
            mean=self.mean_,
            noise=self.noise_variance_,
            latent=self.latent_variance_,
            n_paths=getattr(self, "n_paths", 0),
            stream=0,
            weights=self.weights_,
            sums=self._sums_over_supports,
        )

    @property
    def n_components_in_use_(self) -> int:
        """Number of components that at least 5% of rows use, most frequent over draws.

        Draws also have components that a few rows use and that change between draws;
        `n_components_band` gives the posterior of both numbers.
        """
        return int(np.bincount(self._numbers(IN_USE).ravel()).argmax())

    def n_components_band(self, level: float = 0.9, share: float = 0.0) -> tuple[int, int]:
        """Return the credible band of the number of components, over all draws.

        It counts the components that at least a `share` of the rows use; by default any row.
        """
        return number_band(self._numbers(share), level)

    def _numbers(self, share: float) -> Array:
        """Numbers of components (chain, draw) of the chains that count."""
        counts, draws = self.chain_levels_.counts, self.posterior_
        return in_use(draws["occupancy"], draws["Z_mean"].shape[1], share)[counts]
