"""Posterior of rows under free W: sums over the supports of a row, or estimates of them."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator

from appca.models import numerics, polynomials, posterior
from appca.models.factor_em import PRIOR
from appca.models.numerics import Array
from appca.models.products import mean_squares, projected, times
from appca.models.rows import Rows
from appca.models.set_tree import CollapsedModel
from appca.models.subspace_posterior import publish
from appca.models.supports import (
    FixedSizeSupports,
    FreeSupports,
    indicators,
    root_mean_square,
    row_seeds,
)

DRAW_SEEDS = 2**32  # between the seeds of a row in two draws
CHEAPER = 8.0  # is a support in the walk through all of them than elsewhere
DRAWS_A_SHARE = 4  # by which a draw has fewer importance paths than the model


@dataclass(frozen=True, eq=False)
class SupportPosterior(posterior.PosteriorOfDraw):
    """Answers from `seen`, the supports of rows by their float64 projections."""

    components: Array  # (K, D)
    mean: Array  # (D,)
    noise: float
    latent: Array  # (K,)
    n_paths: int  # importance paths a row
    stream: int  # of random numbers for these: one a draw

    seen: ClassVar[Any]  # X -> `FixedSizeSupports` or `FreeSupports`
    _drawn_supports: ClassVar[Any]  # (rng, n) -> supports (n, K) from the prior

    def at(self, draw: posterior.ParameterDraw, stream: int) -> Self:
        return replace(
            self,
            components=draw.components,
            mean=draw.mean,
            noise=draw.noise,
            latent=draw.latent,
            n_paths=max(2, self.n_paths // DRAWS_A_SHARE),
            stream=stream,
        )

    def _projected(self, X: Array) -> tuple[Array, Array, Array]:
        """W'(y - mu) / sigma2 (n, K), W'W / sigma2 and log density (n,) without any factor."""
        C, noise = self.components.astype(np.float64), self.noise
        rows = projected(Rows(X, self.mean, np.empty(0), X.shape[1]), C.T)
        background = numerics.background(rows.squares, noise, X.shape[1])
        return rows.products / noise, times(C, C.T) / noise, background

    def scores(self, X: Array, scale: Array | None) -> Array:
        seen = self.seen(X)
        H = seen.means(seen.best()[0])
        return np.asarray((H if scale is None else H / scale).astype(X.dtype, copy=False))

    def expected(self, X: Array) -> Array:
        return np.asarray(self.seen(X).expected())

    def supports(self, X: Array, support: str) -> Array:
        if support == posterior.ALL:
            return self.likely(self.inclusion(X))
        return np.asarray(self.seen(X).best()[0])

    def inclusion(self, X: Array) -> Array:
        return np.asarray(self.seen(X).summed().inclusion)

    def drawn_scores(self, rng: Generator, X: Array) -> Array:
        return np.asarray(self.seen(X).drawn_scores(rng))

    def membership(self, X: Array) -> Array:
        seen = self.seen(X)
        return posterior.share_of(seen.best()[1] - seen.summed().log_sum)

    def summary(self, X: Array) -> posterior.RowSummary:
        seen = self.seen(X)
        sums = seen.summed()
        return posterior.RowSummary(seen.background + sums.log_sum, *sums[1:])

    def probability_of(self, X: Array, Z: Array) -> Array:
        seen = self.seen(X)
        return posterior.share_of(seen.log_support(Z) - seen.summed().log_sum)

    def description(self, X: Array) -> posterior.Description:
        seen = self.seen(X)
        (Z, value), sums = seen.best(), seen.summed()
        H = seen.means(Z)
        rows = Rows(X, self.mean, np.empty(0), X.shape[1])
        return posterior.Description(
            H.astype(X.dtype, copy=False),
            Z,
            sums.inclusion,
            posterior.share_of(value - sums.log_sum),
            mean_squares(rows, H, self.components),
            seen.background + sums.log_sum,
            sums.error,
            sums.method,
        )

    def sample(self, rng: Generator, n: int) -> tuple[Array, Array]:
        Z, C = self._drawn_supports(rng, n), self.components
        X = rng.standard_normal(Z.shape) * np.sqrt(self.latent)
        e = rng.standard_normal((n, C.shape[1])) * np.sqrt(self.noise)
        return ((X * Z) @ C + self.mean + e).astype(C.dtype), Z


@dataclass(frozen=True, eq=False)
class FactorPosterior(SupportPosterior):
    """Any W, and exactly L of K factors active."""

    n_active: int

    @property
    def n_supports(self) -> float:
        return float(math.comb(len(self.components), self.n_active))

    def seen(self, X: Array) -> FixedSizeSupports:
        c, A, background = self._projected(X)
        seeds = row_seeds(X) + np.uint64(self.stream * DRAW_SEEDS)
        background -= numerics.log_binomial(len(A), self.n_active)  # supports are equally probable
        at = c, CollapsedModel(A, PRIOR), self.n_active, seeds
        return FixedSizeSupports(*at, self.n_paths, background)

    def likely(self, inclusion: Array) -> Array:
        return polynomials.top(inclusion, self.n_active)

    def _drawn_supports(self, rng: Generator, n: int) -> Array:
        return polynomials.draw(rng, np.zeros((n, len(self.components))), self.n_active)


@dataclass(frozen=True, eq=False)
class FreePosterior(SupportPosterior):
    """Any W, and any number of components active."""

    weights: Array  # (K,) probability that a row uses a component
    orthonormal: bool  # W'W = I: each component decides for itself

    @property
    def n_supports(self) -> float:
        if self.orthonormal:
            return 1.0
        return float(2.0 ** len(self.components) / CHEAPER)

    def at(self, draw: posterior.ParameterDraw, stream: int) -> Self:
        return replace(super().at(draw, stream), weights=np.asarray(draw.weights))

    def seen(self, X: Array) -> FreeSupports:
        c, A, background = self._projected(X)
        model, how = CollapsedModel(A, 1.0 / float(self.latent[0])), (self.n_paths, self.stream)
        return FreeSupports(c, model, self.weights, self.orthonormal, *how, background)

    def likely(self, inclusion: Array) -> Array:
        return np.asarray(inclusion > 0.5)

    def _drawn_supports(self, rng: Generator, n: int) -> Array:
        return rng.random((n, len(self.components))) < self.weights


def publish_factors(
    model: Any, rows: Rows, state: Any, second: Array, members: Any = None, same_order: bool = False
) -> Array:
    """Set the fitted attributes, given sums (K,) of E[(x z)^2]; return the order of components."""
    model.n_active_ = model.n_active
    order = publish(model, rows, state, second / rows.mass, same_order=same_order)
    seen = model._posterior().seen(rows.X)
    Z = seen.best()[0] if members is None else indicators(members, len(order))[:, order]
    model.scale_ = root_mean_square(seen.means(Z), Z, rows.weights)
    return order
