"""Posterior of rows under orthonormal components, and the fitted attributes made of a state.

Loadings are (d, K) in kernels and (K, d) in `components_`; they are transposed here.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.random import Generator

from appca.models import numerics, polynomials, row_model
from appca.models.conditionals import draw_categories
from appca.models.data_checks import warn_of_rank
from appca.models.em import PAPER, EMSettings, SubspaceState, Variant, probabilities
from appca.models.gibbs import draw_scores
from appca.models.numerics import Array
from appca.models.posterior import Description, ParameterDraw, PosteriorOfDraw, RowSummary, share_of
from appca.models.row_model import RowModel, Weighed
from appca.models.rows import Block, Observations, Rows, tiles
from appca.models.sparse_rows import squared_lengths
from appca.models.stiefel import polar, upright


def publish(
    model: Any, rows: Observations, state: Any, second: Array, *, same_order: bool = False
) -> Array:
    """Set the attributes that need no rows, given means (K,) of E[(x z)^2]; return the order."""
    power = second * np.square(state.W).sum(axis=0)
    order = np.arange(len(power)) if same_order else np.argsort(-power, kind="stable")
    W = state.W if same_order else upright(state.W[:, order])
    origin = 0.0 if rows.origin is None else rows.origin
    model.components_ = np.ascontiguousarray(W.T, dtype=rows.dtype)
    model.mean_ = (origin - state.W @ state.shift).astype(rows.dtype)
    model.noise_variance_ = float(state.noise)
    model.latent_variance_ = getattr(state, "latent", np.ones(len(order)))[order]
    model.explained_variance_ = power[order]
    return order


@dataclass(frozen=True, eq=False)
class SubspacePosterior(PosteriorOfDraw):
    """Rows y = W (x * z) + mean + e with orthonormal components, (D,) or one noise; exact sums."""

    components: Array  # (K, D)
    mean: Array  # (D,)
    noise: Any  # float or (D,)
    latent: Array  # (K,)
    n_active: int
    row_scales: Array | None = None  # (J,), where they are learned
    row_scale_probabilities: Array | None = None  # (J,)
    sizes: Array | None = None  # (K + 1,) probabilities, where they are learned

    def at(self, draw: ParameterDraw, stream: int) -> Self:
        del stream
        return replace(
            self,
            components=draw.components,
            mean=draw.mean,
            noise=draw.noise,
            latent=draw.latent,
            row_scale_probabilities=draw.row_scale_probabilities,
            sizes=draw.size_probabilities,
        )

    @property
    def variant(self) -> Variant:
        """Which assumptions of the paper's model it gives up."""
        by_row, learned = self.row_scales is not None, self.sizes is not None
        return Variant(np.ndim(self.noise) > 0, by_row, learned)

    @property
    def feature_scale(self) -> Array:
        """What features are multiplied by to be in noise units, (D,) or 1; 0 of constant ones."""
        psi = np.asarray(self.noise, dtype=np.float64)
        if psi.ndim == 0:
            return np.ones(())
        return np.divide(1.0, np.sqrt(psi), out=np.zeros_like(psi), where=psi > 0.0)

    @property
    def row_model(self) -> RowModel:
        """What decides about a row, in noise units."""
        noise, n_features, log_scale = self.noise, self.components.shape[1], 0.0
        if np.ndim(noise):
            counted = self.feature_scale[noise > 0.0]
            noise, n_features, log_scale = 1.0, len(counted), float(np.log(counted).sum())
        grid, weights = np.ones((2, 1))
        if self.row_scales is not None and self.row_scale_probabilities is not None:
            grid, weights = self.row_scales, self.row_scale_probabilities
        sizes = int(self.n_active) if self.sizes is None else self.sizes
        return RowModel(noise, self.latent, n_features, log_scale, sizes, grid, weights)

    @property
    def shrinkage(self) -> Array:
        """Posterior mean (K,) of x over the projection."""
        return numerics.posterior(1.0 if np.ndim(self.noise) else self.noise, self.latent)[0]

    def _each_block(self, X: Array, answer: Callable[[Array, Array], Any]) -> list[Any]:
        rows = Rows(X, self.mean.astype(X.dtype), np.empty(0), X.shape[1], careful=True)
        W = self.components.T
        if np.ndim(self.noise):
            W = W * np.square(self.feature_scale)[:, None]
        return list(rows.over(lambda block: answer(block.X, block.times(W))))

    def _by_blocks(self, X: Array, answer: Callable[[Array, Array], Array]) -> Array:
        return np.concatenate(self._each_block(X, answer))

    def _squares(self, B: Array) -> Array:
        if not np.ndim(self.noise):
            return squared_lengths(B)
        squares = np.empty(len(B))
        for part, T in tiles(B, None):
            squares[part] = squared_lengths(T * self.feature_scale.astype(B.dtype))
        return squares

    def _known(self, B: Array, P: Array) -> Array:
        """Squared lengths (n,) where they say anything of supports: where scales are learned."""
        return np.zeros(len(P)) if self.row_scales is None else self._squares(B)

    def _weighed(self, B: Array, P: Array) -> Weighed:
        return row_model.weigh(P, self._squares(B), self.row_model)

    def chosen(self, B: Array, P: Array) -> Array:
        """Supports (n, K) bool of largest probability."""
        return row_model.likeliest(P, self._known(B, P), self.row_model)

    def summed(self, B: Array, P: Array) -> tuple[Array, Array]:
        """Log-likelihoods (n,) and inclusion (n, K), over all supports."""
        row = self._weighed(B, P)
        return row.log_density, row.inclusion

    def scores(self, X: Array, scale: Array | None) -> Array:
        factor = self.shrinkage if scale is None else self.shrinkage / scale
        factor, nothing = factor.astype(X.dtype), X.dtype.type(0.0)
        return self._by_blocks(X, lambda B, P: np.where(self.chosen(B, P), P * factor, nothing))

    def expected(self, X: Array) -> Array:
        scores = self._by_blocks(X, lambda B, P: self.summed(B, P)[1] * (P * self.shrinkage))
        return scores.astype(X.dtype, copy=False)

    def supports(self, X: Array, support: str) -> Array:
        del support  # the components of largest posterior inclusion are the MAP support
        return self._by_blocks(X, self.chosen)

    def summary(self, X: Array) -> RowSummary:
        value, inclusion = map(np.concatenate, zip(*self._each_block(X, self.summed), strict=True))
        return RowSummary(value, np.zeros(len(value)), inclusion, "exact")

    def log_likelihood(self, X: Array) -> Array:
        model = self.row_model
        return self._by_blocks(X, lambda B, P: row_model.log_density(P, self._squares(B), model))

    def membership(self, X: Array) -> Array:
        model = self.row_model
        return self._by_blocks(X, lambda B, P: row_model.share(P, self._known(B, P), model))

    def size_probabilities(self, X: Array) -> Array:
        """Posterior probabilities (N, K + 1) of 0 to K components, where sizes are learned."""
        return self._by_blocks(X, lambda B, P: np.asarray(self._weighed(B, P).sizes))

    def mean_scales(self, X: Array) -> Array:
        """Posterior mean (N,) of the scale of each row; 1 where all rows are alike."""
        grid = self.row_model.grid
        return self._by_blocks(X, lambda B, P: self._weighed(B, P).scales @ grid)

    def probability_of(self, X: Array, Z: Array) -> Array:
        (P, squares), model = self._projected(X), self.row_model
        joint = row_model.support_density(P, squares, Z, model)
        return share_of(joint - row_model.log_density(P, squares, model))

    def drawn_scores(self, rng: Generator, X: Array) -> Array:
        P, squares = self._projected(X)
        model, root = self.row_model, np.ones(1)
        if self.variant != PAPER:
            scales = row_model.weigh(P, squares, model).scales
            root = np.sqrt(model.grid[draw_categories(rng, scales)])[:, None]
        P /= root
        Z = polynomials.draw(rng, numerics.logits(P, model.noise, model.latent), model.sizes)
        return root * draw_scores(rng, P, Z, model.noise, model.latent)

    def likely(self, inclusion: Array) -> Array:
        if self.sizes is None:
            return polynomials.top(inclusion, int(self.n_active))
        return inclusion > 0.5

    def _projected(self, X: Array) -> tuple[Array, Array]:
        parts = self._each_block(X, lambda B, P: (P.astype(np.float64), self._squares(B)))
        P, squares = (np.concatenate(column) for column in zip(*parts, strict=True))
        return P, squares

    def description(self, X: Array) -> Description:
        parts = self._each_block(X, self.described)
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        told: list[Any] = [*columns[:6], np.zeros(len(columns[0])), "exact", *columns[6:]]
        return Description(*told)

    def described(self, B: Array, P: Array) -> tuple[Array, ...]:
        """Say what `Description` has up to the log-likelihood, and scales where rows have them."""
        P, squares, model = P.astype(np.float64), self._squares(B), self.row_model
        row, active, share = row_model.judged(P, squares, model)
        scores = np.where(active, P * self.shrinkage, 0.0)
        if np.ndim(self.noise):
            components, error = self.components.astype(B.dtype), np.empty(len(B))
            for part, T in tiles(B, None):
                error[part] = squared_lengths(T - scores[part].astype(B.dtype) @ components)
        else:  # |y - Ws|^2 = |y|^2 - 2 s'p + s's, because the columns of W are orthonormal
            error = np.maximum(squares + np.einsum("nk,nk->n", scores, scores - 2.0 * P), 0.0)
        error /= B.shape[1]
        scales = () if self.row_scales is None else (row.scales @ model.grid,)
        scores = scores.astype(B.dtype)
        return scores, active, row.inclusion, share, error, row.log_density, *scales

    def sample(self, rng: Generator, n: int) -> tuple[Array, Array]:
        model, (K, D) = self.row_model, self.components.shape
        deviation = np.ones(1)
        if self.variant != PAPER:
            deviation = np.sqrt(rng.choice(model.grid, n, p=model.weights))[:, None]
        if isinstance(model.sizes, int):
            Z = polynomials.draw(rng, np.zeros((n, K)), model.sizes)
        else:
            size, order = rng.choice(K + 1, n, p=model.sizes), rng.random((n, K)).argsort(axis=1)
            Z = order.argsort(axis=1) < size[:, None]
        X = rng.standard_normal((n, K)) * np.sqrt(self.latent)
        noise = rng.standard_normal((n, D)) * np.sqrt(self.noise)
        rows = self.mean + deviation * ((X * Z) @ self.components + noise)
        return rows.astype(self.components.dtype), Z


LEARNED_ARRAYS = ("row_scale_values_", "row_scale_probabilities_", "size_probabilities_")


def posterior_of(model: Any) -> SubspacePosterior:
    """Return the posterior of rows under a fitted estimator."""
    names = "components_", "mean_", "noise_variance_", "latent_variance_", "n_active_"
    fitted = [getattr(model, name) for name in names]
    return SubspacePosterior(*fitted, *(getattr(model, name, None) for name in LEARNED_ARRAYS))


def publish_subspace(
    model: Any, rows: Any, state: Any, n_active: int, second: Any = None, same_order: bool = False
) -> Array:
    """Set the fitted attributes; return the order of components by E[(x z)^2], or as before."""
    K, m, by_row = len(state.latent), state.displacement, len(state.weights) > 1
    model.n_active_ = n_active if state.sizes is None else K
    model.mean_ = (m + (0.0 if rows.origin is None else rows.origin)).astype(rows.dtype)
    psi = np.square(state.inverse_scale)
    model.noise_variance_ = psi if psi.ndim else float(state.noise)
    at, directions = state.row_model(n_active, rows.n_features), state.directions
    if by_row:
        model.row_scale_values_, model.row_scale_probabilities_ = at.grid, state.weights
    if state.sizes is not None:
        model.size_probabilities_ = state.sizes
    shrink, v = numerics.posterior(state.noise, state.latent)
    weights = np.broadcast_to(np.square(state.scale), m.shape).astype(rows.dtype)

    def seen(block: Block) -> tuple[Array, ...]:
        """Sum squared scores, uses, P, E[(x z)^2] unless known, all (K,), and P'P over rows."""
        P, squares, some = block.times(directions).astype(np.float64), np.zeros(len(block.X)), 0.0
        P -= m @ directions
        if by_row:
            about = m if block.origin is None else block.origin + m
            for part, B in tiles(block.X, about.astype(block.X.dtype)):
                squares[part] = np.square(B) @ weights
        power = np.square(P * shrink)
        if second is None:
            row = row_model.weigh(P, squares, at, moment=1.0)
            some = block.weighted(row.inclusion * power + row.by_scale * v).sum(axis=0)
        active, weighted = row_model.likeliest(P, squares, at), block.weighted(P)
        used = block.weighted(active)
        sums = (column.sum(axis=0) for column in (used * power, used, weighted))
        return *sums, np.asarray(some), weighted.T @ P

    nothing: tuple[Array, ...] = (*[np.zeros(K)] * 4, np.zeros((K, K)))
    power, used, total, seconds, products = rows.summed(seen, nothing)
    warn_of_rank(total, products, rows.mass, rows.n_features, float(np.finfo(rows.dtype).eps))
    seconds = seconds if second is None else second
    order = np.arange(K) if same_order else np.argsort(-seconds, kind="stable")
    V = state.W if same_order else upright(state.W[:, order])
    W = np.atleast_1d(state.inverse_scale)[:, None] * V
    model.components_ = np.ascontiguousarray(W.T, dtype=rows.dtype)
    model.latent_variance_ = state.latent[order]
    model.explained_variance_ = seconds[order] / rows.mass * np.square(W).sum(axis=0)
    scale = np.sqrt(power / np.where(used > 0, used, 1.0))[order]
    model.scale_ = np.where(scale > 0.0, scale, 1.0)
    return order


def state_of(fitted: SubspacePosterior, rows: Observations, settings: EMSettings) -> SubspaceState:
    """Return a fit of the same variant and K as a state of EM on these rows."""
    (K, D), model, s = fitted.components.shape, fitted.row_model, fitted.feature_scale
    offset = np.zeros(D)
    if settings.learn_mean and rows.origin is not None:
        offset = fitted.mean.astype(np.float64) - rows.origin
    sizes, grid = fitted.sizes, settings.grid
    W = polar(np.atleast_1d(s)[:, None] * fitted.components.T)
    nearest = np.abs(np.log(grid[:, None] / model.grid)).argmin(axis=0)  # a fit may have others
    weights = probabilities(np.bincount(nearest, model.weights, len(grid)))
    return SubspaceState(W, np.zeros(K), model.latent, model.noise, offset, s, weights, sizes)
