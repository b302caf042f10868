"""What a fit with a noise of each feature, a scale of each row, or learned sizes says of rows."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np

from appca.models.algebra import gaussian
from appca.models.algebra.gaussian import Array
from appca.models.algebra.stiefel import polar, upright
from appca.models.base.answers import share_of
from appca.models.base.data_checks import warn_of_rank
from appca.models.orthonormal.posterior import BlockwisePosterior
from appca.models.orthonormal.subspace_gibbs import draw_scores
from appca.models.polynomials import subsets
from appca.models.rows.observations import Block, Observations, tiles
from appca.models.rows.shifted_sparse import squared_lengths
from appca.models.sampling.conditionals import draw_categories
from appca.models.sampling.query_draws import ParameterDraw
from appca.models.variants.em import Variant, VariantSettings, VariantState, probabilities
from appca.models.variants.expectation import squared_distances
from appca.models.variants.fit import VariantFit
from appca.models.variants.gibbs import draw_supports
from appca.models.variants.row_mixture import RowModel, Weighed, likeliest, support_density, weigh

LEARNED_ARRAYS = ("row_scale_values_", "row_scale_probabilities_", "size_probabilities_")


@dataclass(frozen=True, eq=False)
class VariantPosterior(BlockwisePosterior):
    """aPPCA that gives up some of the paper's assumptions; sums are exact.

    With a noise of each feature `noise` is (D,) and components are in the unit of the data.
    """

    noise: Any  # float or (D,)
    latent: Array  # (K,)
    n_active: int
    row_scales: Array | None  # (J,), where they are learned
    row_scale_probabilities: Array | None  # (J,)
    sizes: Array | None  # (K + 1,) probabilities, where they are learned

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
        """Which assumptions it gives up."""
        by_row, learned = self.row_scales is not None, self.sizes is not None
        return Variant(np.ndim(self.noise) > 0, by_row, learned)

    @property
    def feature_scale(self) -> Array:
        """What features are multiplied by (D,) to be in noise units; 0 of constant ones."""
        psi = np.asarray(self.noise, dtype=np.float64)
        if psi.ndim == 0:
            return np.ones(self.components.shape[1])
        return np.divide(1.0, np.sqrt(psi), out=np.zeros_like(psi), where=psi > 0.0)

    @property
    def unit_noise(self) -> float:
        """Noise variance of rows in noise units."""
        return 1.0 if np.ndim(self.noise) else float(self.noise)

    @property
    def row_model(self) -> RowModel:
        """What decides about a row."""
        s, grid, weights = self.feature_scale, np.ones(1), np.ones(1)
        if self.row_scales is not None and self.row_scale_probabilities is not None:
            grid, weights = self.row_scales, self.row_scale_probabilities
        return RowModel(
            self.unit_noise,
            self.latent,
            int((s > 0.0).sum()),
            float(np.log(s[s > 0.0]).sum()),
            int(self.n_active) if self.sizes is None else self.sizes,
            grid,
            weights,
        )

    @property
    def directions(self) -> Array:
        return self.components.T * np.square(self.feature_scale)[:, None]

    def _squares(self, B: Array) -> Array:
        squares = np.empty(len(B))
        for part, T in tiles(B, None):
            squares[part] = squared_lengths(T * self.feature_scale.astype(B.dtype))
        return squares

    def _weighed(self, B: Array, P: Array) -> Weighed:
        return weigh(P, self._squares(B), self.row_model)

    def chosen(self, B: Array, P: Array) -> Array:
        return likeliest(P, self._squares(B), self.row_model)

    def summed(self, B: Array, P: Array) -> tuple[Array, Array]:
        row = self._weighed(B, P)
        return row.log_density, row.inclusion

    @property
    def shrinkage(self) -> Array:
        return gaussian.posterior(self.unit_noise, self.latent)[0]

    def size_probabilities(self, X: Array) -> Array:
        """Posterior probabilities (N, K + 1) of 0 to K components, where sizes are learned."""
        return self._by_blocks(X, lambda B, P: np.asarray(self._weighed(B, P).sizes))

    def mean_scales(self, X: Array) -> Array:
        """Posterior mean (N,) of the scale of each row; 1 where all rows are alike."""
        grid = self.row_model.grid
        return self._by_blocks(X, lambda B, P: self._weighed(B, P).scales @ grid)

    def probability_of(self, X: Array, Z: Array) -> Array:
        P, squares = self._projected(X)
        row = weigh(P, squares, self.row_model)
        return share_of(support_density(P, squares, Z, self.row_model) - row.log_density)

    def drawn_scores(self, rng: np.random.Generator, X: Array) -> Array:
        P, squares = self._projected(X)
        row, model = weigh(P, squares, self.row_model), self.row_model
        root = np.sqrt(model.grid[draw_categories(rng, row.scales)])[:, None]
        P /= root
        Z = draw_supports(rng, gaussian.logits(P, model.noise, model.latent), model.sizes)
        return root * draw_scores(rng, P, Z, model.noise, model.latent)

    def likely(self, inclusion: Array) -> Array:
        if self.sizes is None:
            return subsets.top(inclusion, int(self.n_active))
        return inclusion > 0.5

    def _projected(self, X: Array) -> tuple[Array, Array]:
        """Projections (N, K) and squared distances (N,) of rows, in noise units."""
        parts = self._each_block(X, lambda B, P: (P.astype(np.float64), self._squares(B)))
        P, squares = (np.concatenate(column) for column in zip(*parts, strict=True))
        return P, squares

    def described(self, B: Array, P: Array) -> tuple[Array, ...]:
        P, squares, model = P.astype(np.float64), self._squares(B), self.row_model
        row, active = weigh(P, squares, model), likeliest(P, squares, model)
        scores = np.where(active, P * self.shrinkage, 0.0).astype(B.dtype)
        components, error = self.components.astype(B.dtype), np.empty(len(B))
        for part, T in tiles(B, None):
            error[part] = squared_lengths(T - scores[part] @ components) / B.shape[1]
        membership = share_of(support_density(P, squares, active, model) - row.log_density)
        scales = () if self.row_scales is None else (row.scales @ model.grid,)
        return scores, active, row.inclusion, membership, error, row.log_density, *scales

    def sample(self, rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        model, (K, D) = self.row_model, self.components.shape
        deviation = np.sqrt(rng.choice(model.grid, n, p=model.weights))[:, None]
        Z = _drawn_supports(rng, n, K, model)
        X = rng.standard_normal((n, K)) * np.sqrt(self.latent)
        noise = rng.standard_normal((n, D)) * np.sqrt(self.noise)
        rows = self.mean + deviation * ((X * Z) @ self.components + noise)
        return rows.astype(self.components.dtype), Z


def extended_posterior_of(model: Any) -> VariantPosterior:
    """Return what a fitted estimator says of rows, whatever it was fitted by."""
    learned = [getattr(model, name, None) for name in LEARNED_ARRAYS]
    return VariantPosterior(
        model.components_,
        model.mean_,
        model.noise_variance_,
        model.latent_variance_,
        model.n_active_,
        *learned,
    )


def state_of(
    fitted: VariantPosterior, rows: Observations, settings: VariantSettings
) -> VariantState | None:
    """Return a fit as a state of EM on these rows, if it is one of the same variant and K."""
    K, D = fitted.components.shape
    has = fitted.variant
    if has != settings.variant or (settings.em.n_components, rows.d) != (K, D):
        return None
    model, s = fitted.row_model, fitted.feature_scale
    offset = np.zeros(D)
    if settings.em.learn_mean and rows.origin is not None:
        offset = fitted.mean.astype(np.float64) - rows.origin
    sizes = model.sizes if has.learn_sizes else np.full(K + 1, 1.0 / (K + 1))
    V = polar(s[:, None] * fitted.components.T)
    weights = onto_grid(model.grid, model.weights, settings.grid)
    return VariantState(
        V, np.zeros(K), offset, model.latent, model.noise, s, weights, np.asarray(sizes)
    )


def onto_grid(values: Array, weights: Array, grid: Array) -> Array:
    """Probabilities (J,) of the scales nearest to those of a fit, which may have had others."""
    nearest = np.abs(np.log(grid[:, None] / values)).argmin(axis=0)
    return probabilities(np.bincount(nearest, weights, len(grid)))


def publish_variant(model: Any, rows: Observations, fit: VariantFit, *, same_order: bool) -> None:
    """Set the fitted attributes; components by mean E[(x z)^2], in noise units.

    They keep order and signs where the state has those of a fit before.
    """
    state, settings = fit.state, fit.settings
    origin = 0.0 if rows.origin is None else rows.origin
    model.n_active_ = len(state.latent) if settings.variant.learn_sizes else settings.em.n_active
    model.mean_ = (origin + state.displacement).astype(rows.dtype)
    psi = np.square(state.inverse_scale)
    model.noise_variance_ = psi if settings.variant.by_feature else float(state.noise)
    if settings.variant.row_scales:
        model.row_scale_values_, model.row_scale_probabilities_ = settings.grid, state.weights
    if settings.variant.learn_sizes:
        model.size_probabilities_ = state.sizes
    K = len(state.latent)
    look = partial(_seen, state=state, model=state.row_model(settings))
    nothing: tuple[Array, ...] = (*[np.zeros(K)] * 4, np.zeros((K, K)))
    second, power, used, total, products = rows.summed(look, nothing)
    warn_of_rank(total, products, rows.mass, rows.d, float(np.finfo(rows.dtype).eps))
    order = np.arange(K) if same_order else np.argsort(-second, kind="stable")
    V = state.V if same_order else upright(state.V[:, order])
    W = state.inverse_scale[:, None] * V
    model.components_ = np.ascontiguousarray(W.T, dtype=rows.dtype)
    model.latent_variance_ = state.latent[order]
    model.explained_variance_ = second[order] / rows.mass * np.square(W).sum(axis=0)
    scale = np.sqrt(power / np.where(used > 0, used, 1.0))[order]
    model.scale_ = np.where(scale > 0.0, scale, 1.0)


def _drawn_supports(rng: np.random.Generator, n: int, K: int, model: RowModel) -> Array:
    """Draw supports (n, K) bool from the prior."""
    if isinstance(model.sizes, int):
        return subsets.draw(rng, np.zeros((n, K)), model.sizes)
    size = rng.choice(K + 1, n, p=model.sizes)
    order = np.argsort(rng.random((n, K)), axis=1)
    return np.asarray(np.argsort(order, axis=1) < size[:, None])


def _seen(block: Block, state: VariantState, model: RowModel) -> tuple[Array, ...]:
    """Sum E[(x z)^2], squared scores, uses, P, all (K,), and P'P over rows."""
    m, directions = state.displacement, state.scale[:, None] * state.V
    P = block.times(directions).astype(np.float64) - m @ directions
    squares = squared_distances(block, m, np.square(state.scale))
    row = weigh(P, squares, model, moment=1.0)
    active = block.weighted(likeliest(P, squares, model))
    shrink, v = gaussian.posterior(state.noise, state.latent)
    weighted, mean_squares = block.weighted(P), np.square(P * shrink)
    second = block.weighted(row.inclusion * mean_squares + row.by_scale * v)
    return (
        second.sum(axis=0),
        (active * mean_squares).sum(axis=0),
        active.sum(axis=0).astype(np.float64),
        weighted.sum(axis=0),
        weighted.T @ P,
    )
