"""The posterior of rows, which answers queries, and the fitted attributes of a state.

Loadings are (d, K) in kernels and (K, d) in `components_`; they are transposed here.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.random import Generator

from appca.models import em, polynomials, supports
from appca.models.conditionals import draw_categories
from appca.models.data_checks import refuse_where, warn_of_rank
from appca.models.em import PAPER, EMSettings, RowModel, SubspaceState, Variant
from appca.models.gibbs import draw_scores
from appca.models.numerics import Array, inverse_or_zero, share_of
from appca.models.products import mean_squares, projected
from appca.models.rows import Block, Observations, Rows, squared_lengths, tiles
from appca.models.set_tree import CollapsedModel
from appca.models.stiefel import polar, upright
from appca.models.supports import RowSummary, SupportsOfRows

MAP, ALL = "map", "all"
UNIT_SCALE = np.ones(1), np.ones(1)  # grid and probabilities of row scales if all are 1


class Description(NamedTuple):
    """All results for some rows.

    Attributes
    ----------
    scores, active, inclusion : ndarray, shape (N, K)
        Unwhitened `transform` and `allocate` with support="map", and `inclusion_probabilities`.
    membership : ndarray, shape (N,)
        Posterior probability of `active`; in a sampled fit, given the published draw.
    error : ndarray, shape (N,)
        Mean squared residual per feature, |y - mean - W scores|^2 / D, of the reconstruction.
    log_likelihood, standard_error : ndarray, shape (N,)
        In nats; the standard error is 0 unless sums over supports are estimated.
    method : str
        How the sums over supports were computed.
    row_scales : ndarray, shape (N,), or None
        Scale of each row given the published draw; None unless scales are learned.
    """

    scores: Array
    active: Array
    inclusion: Array
    membership: Array
    error: Array
    log_likelihood: Array
    standard_error: Array
    method: str
    row_scales: Array | None = None


class RowEstimate(NamedTuple):
    """Log-likelihoods (N,) of rows in nats, their standard errors (0 if exact) and the method."""

    log_likelihood: Array
    error: Array
    method: str


class Posterior:
    """Posterior of supports and scores of rows X (n, D); methods default to `description`."""

    description: Callable[[Array], Description]
    expected: Callable[[Array], Array]  # X -> E[x * z | y], (n, K), over all supports

    def scores(self, X: Array) -> Array:
        """Posterior means (n, K) of x * z, given `supports`."""
        return self.description(X).scores

    def supports(self, X: Array, support: str) -> Array:
        """Supports (n, K) bool, as in `allocate`."""
        del support
        return self.description(X).active

    def membership(self, X: Array) -> Array:
        """Probabilities (n,) of `supports`."""
        return self.description(X).membership

    def summary(self, X: Array) -> RowSummary:
        """Log-likelihood and inclusion."""
        rows = self.description(X)
        return RowSummary(rows.log_likelihood, rows.standard_error, rows.inclusion, rows.method)

    def inclusion(self, X: Array) -> Array:
        """Probabilities p(z_nk = 1 | y_n), (n, K)."""
        return self.summary(X).inclusion

    def log_likelihood(self, X: Array) -> Array:
        """Log p(y_n), (n,) in nats."""
        return self.summary(X).log_likelihood


@dataclass(eq=False)
class PosteriorOfDraw(Posterior):
    """Posterior given one draw of the parameters; results of several draws can be averaged."""

    components: Array  # (K, D)
    mean: Array  # (D,)
    noise: Any  # variance, or variances of the features (D,)
    latent: Array  # (K,)

    # number of supports in a sum, which determines the cost of a draw
    n_supports: ClassVar[Any] = 1.0
    at: ClassVar[Any]  # (a draw of `QueryDraws`, random stream) -> posterior given the draw
    log_joint: ClassVar[Any]  # (X, Z (n, K)) -> log p(y, z) (n,)
    drawn_scores: ClassVar[Any]  # (rng, X) -> a draw of x * z (n, K)
    most_included: ClassVar[Any]  # inclusion (n, K) -> components (n, K) bool
    sample: ClassVar[Any]  # (rng, n) -> rows (n, D) and the components (n, K) bool that they use

    def rows_with(self, rng: Generator, Z: Array, root: Any = 1.0) -> Array:
        """Draw rows (n, D) that use components Z (n, K), given the roots of their scales (n, 1)."""
        rows: Array = (rng.standard_normal(Z.shape) * np.sqrt(self.latent) * Z) @ self.components
        rows += rng.standard_normal(rows.shape) * np.sqrt(self.noise)
        rows *= root
        rows += self.mean
        return rows.astype(self.components.dtype, copy=False)


def refuse_support(support: str) -> None:
    """Raise ValueError for an unknown way to treat the supports of a row."""
    msg = f"support must be 'auto', 'all' or 'map'; got {support!r}."
    refuse_where({msg: support not in ("auto", ALL, MAP)})


@dataclass(eq=False)
class SubspacePosterior(PosteriorOfDraw):
    """Rows y = W (x * z) + mean + e with orthonormal components; sums are exact."""

    n_active: int
    row_scales: Array | None = None  # (J,), if learned
    row_scale_probabilities: Array | None = None  # (J,)
    sizes: Array | None = None  # (K + 1,) probabilities, if learned

    def at(self, draw: Any, stream: int) -> Self:
        del stream
        parameters: Any = (*draw[2:6], self.n_active, self.row_scales, *draw[-2:])
        return type(self)(*parameters)

    @property
    def variant(self) -> Variant:
        """Extensions of the paper's model in use."""
        return Variant(self.by_feature, self.row_scales is not None, self.sizes is not None)

    @property
    def by_feature(self) -> bool:
        """Whether each feature has its own noise."""
        return isinstance(self.noise, np.ndarray) and self.noise.ndim == 1

    @property
    def feature_scale(self) -> Array:
        """Factor (D,), or 1, that converts features to noise units; 0 for constant features."""
        if not self.by_feature:
            return np.ones(())
        return inverse_or_zero(np.sqrt(self.noise))

    @property
    def row_model(self) -> RowModel:
        """Model of rows in noise units."""
        n, noise, log_scale = self.components.shape[-1], self.noise, 0.0
        if self.by_feature:
            s = self.feature_scale[noise > 0.0]
            n, noise, log_scale = len(s), 1.0, float(np.log(s).sum())
        sizes = int(self.n_active) if self.sizes is None else self.sizes
        learned: Any = self.row_scales, self.row_scale_probabilities
        scales = UNIT_SCALE if self.row_scales is None else learned
        return RowModel(noise, self.latent, n, log_scale, sizes, *scales)

    @property
    def shrinkage(self) -> Array:
        """Ratio (K,) of the posterior mean of x to the projection."""
        return em.posterior(1.0 if self.by_feature else self.noise, self.latent)[0]

    def _columns(self, X: Array, answer: Callable[[Array, Array], Any]) -> list[Array]:
        rows = Rows(X, self.mean.astype(X.dtype), np.empty(0), X.shape[1], careful=True)
        W = self.components.T
        if self.by_feature:
            W = W * np.square(self.feature_scale)[:, None]
        parts = rows.over(lambda block: answer(block.X, block.times(W)))
        return [np.concatenate(column) for column in zip(*parts, strict=True)]

    def _by_blocks(self, X: Array, answer: Callable[[Array, Array], Array]) -> Array:
        return self._columns(X, lambda B, P: (answer(B, P),))[0]

    def _squares(self, B: Array) -> Array:
        if not self.by_feature:
            return squared_lengths(B)
        scale = self.feature_scale.astype(B.dtype)
        return np.concatenate([squared_lengths(T * scale) for _, T in tiles(B, None)])

    def _squares_needed(self, B: Array, P: Array) -> Array:
        """Squared lengths (n,), or zeros without row scales, as supports do not depend on them."""
        return np.zeros(len(P)) if self.row_scales is None else self._squares(B)

    def _posterior(self, B: Array, P: Array) -> em.RowPosterior:
        return em.weigh(P, self._squares(B), self.row_model)

    def chosen(self, B: Array, P: Array) -> Array:
        """Most probable supports (n, K) bool."""
        return em.likeliest(P, self._squares_needed(B, P), self.row_model)

    def scores(self, X: Array) -> Array:
        factor, nothing = self.shrinkage.astype(X.dtype), X.dtype.type(0.0)
        return self._by_blocks(X, lambda B, P: np.where(self.chosen(B, P), P * factor, nothing))

    def expected(self, X: Array) -> Array:
        model, shrinkage = self.row_model, self.shrinkage

        def answer(B: Array, P: Array) -> Array:
            scores = em.weigh(P, self._squares_needed(B, P), model).inclusion
            scores *= P * shrinkage
            return scores.astype(X.dtype, copy=False)

        return self._by_blocks(X, answer)

    def supports(self, X: Array, support: str) -> Array:
        del support  # the components with the largest inclusion are the MAP support
        return self._by_blocks(X, self.chosen)

    def summary(self, X: Array) -> RowSummary:
        value, _, inclusion = self._columns(X, lambda B, P: self._posterior(B, P)[:3])
        return RowSummary(value, np.zeros(len(value)), inclusion, "exact")

    def log_likelihood(self, X: Array) -> Array:
        return self._by_blocks(X, lambda B, P: em.log_density(P, self._squares(B), self.row_model))

    def size_probabilities(self, X: Array) -> Array:
        """Posterior probabilities (N, K + 1) of 0 to K components, if sizes are learned."""
        return self._by_blocks(X, lambda B, P: np.asarray(self._posterior(B, P).sizes))

    def mean_scales(self, X: Array) -> Array:
        """Posterior mean (N,) of the scale of each row; 1 if scales are not learned."""
        return self._by_blocks(X, lambda B, P: self._posterior(B, P).scales @ self.row_model.grid)

    def membership(self, X: Array) -> Array:
        model = self.row_model
        return self._by_blocks(X, lambda B, P: em.membership(P, self._squares_needed(B, P), model))

    def log_joint(self, X: Array, Z: Array) -> Array:
        P, squares = self._projected(X)
        return em.support_density(P, squares, np.resize(Z, P.shape), self.row_model)

    def drawn_scores(self, rng: Generator, X: Array) -> Array:
        P, squares = self._projected(X)
        model, root = self.row_model, np.ones(1)
        if self.variant != PAPER:
            scales = em.weigh(P, squares, model).scales
            root = np.sqrt(model.grid[draw_categories(rng, scales)])[:, None]
        P /= root
        Z = polynomials.draw(rng, em.logits(P, model.noise, model.latent), model.sizes)
        return root * draw_scores(rng, P, Z, model.noise, model.latent)

    def most_included(self, inclusion: Array) -> Array:
        if self.sizes is None:
            return polynomials.top(inclusion, int(self.n_active))
        return inclusion > 0.5

    def _projected(self, X: Array) -> list[Array]:
        return self._columns(X, lambda B, P: (P.astype(np.float64), self._squares(B)))

    def description(self, X: Array) -> Description:
        columns = self._columns(X, self._described)
        results: list[Any] = [*columns[:6], np.zeros(len(columns[0])), "exact", *columns[6:]]
        return Description(*results)

    def _described(self, B: Array, P: Array) -> tuple[Array, ...]:
        P, squares, model = P.astype(np.float64), self._squares(B), self.row_model
        row, active, share = em.describe_rows(P, squares, model)
        scores = np.where(active, P * self.shrinkage, 0.0)
        if self.by_feature:
            components, error = self.components.astype(B.dtype), np.empty(len(B))
            for part, T in tiles(B, None):
                error[part] = squared_lengths(T - scores[part].astype(B.dtype) @ components)
        else:  # |y - Ws|^2 = |y|^2 - 2 s'p + s's, because the columns of W are orthonormal
            error = np.maximum(squares + np.einsum("nk,nk->n", scores, scores - 2.0 * P), 0.0)
        error /= B.shape[1]
        scales = () if self.row_scales is None else (row.scales @ model.grid,)
        return scores.astype(B.dtype), active, row.inclusion, share, error, row.log_density, *scales

    def sample(self, rng: Generator, n: int) -> tuple[Array, Array]:
        K, root = len(self.components), 1.0
        if self.row_scales is not None:
            model = self.row_model
            root = np.sqrt(rng.choice(model.grid, n, p=model.weights))[:, None]
        if self.sizes is None:
            Z = polynomials.draw(rng, np.zeros((n, K)), int(self.n_active))
        else:
            size, order = rng.choice(K + 1, n, p=self.sizes), rng.random((n, K)).argsort(axis=1)
            Z = order.argsort(axis=1) < size[:, None]
        return self.rows_with(rng, Z, root), Z


LEARNED_ARRAYS = ("row_scale_values_", "row_scale_probabilities_", "size_probabilities_")


def posterior_of(model: Any) -> SubspacePosterior:
    """Return the posterior of rows under a fitted estimator."""
    at = model.components_, model.mean_, model.noise_variance_, model.latent_variance_
    learned = [getattr(model, name, None) for name in LEARNED_ARRAYS]
    return SubspacePosterior(*at, model.n_active_, *learned)


def publish_subspace(
    model: Any, rows: Any, state: Any, n_active: int, second: Any = None, same_order: bool = False
) -> Array:
    """Set the fitted attributes; return the order of components, by E[(x z)^2] or unchanged."""
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
    shrink, v = em.posterior(state.noise, state.latent)
    weights = np.broadcast_to(np.square(state.scale), m.shape).astype(rows.dtype)

    def sums_of(block: Block) -> tuple[Array, ...]:
        """Sum squared scores, uses, P, E[(x z)^2] if not in `second`, all (K,), and P'P."""
        P, squares, some = block.times(directions).astype(np.float64), np.zeros(len(block.X)), 0.0
        P -= m @ directions
        if by_row:
            about = m if block.origin is None else block.origin + m
            for part, B in tiles(block.X, about.astype(block.X.dtype)):
                squares[part] = np.square(B) @ weights
        power = np.square(P * shrink)
        if second is None:
            row = em.weigh(P, squares, at, moment=1.0)
            some = block.weighted(row.inclusion * power + row.by_scale * v).sum(axis=0)
        active, weighted = em.likeliest(P, squares, at), block.weighted(P)
        used = block.weighted(active)
        sums = (column.sum(axis=0) for column in (used * power, used, weighted))
        return *sums, np.asarray(some), weighted.T @ P

    nothing: tuple[Array, ...] = (*[np.zeros(K)] * 4, np.zeros((K, K)))
    power, used, total, seconds, products = rows.summed(sums_of, nothing)
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
    """Convert a fit of the same variant and K to a state of EM on these rows."""
    (K, D), model, s = fitted.components.shape, fitted.row_model, fitted.feature_scale
    offset = np.zeros(D)
    if settings.learn_mean and rows.origin is not None:
        offset = fitted.mean.astype(np.float64) - rows.origin
    sizes, grid = fitted.sizes, settings.grid
    W = polar(np.atleast_1d(s)[:, None] * fitted.components.T)
    nearest = np.abs(np.log(grid[:, None] / model.grid)).argmin(axis=0)  # the fit's grid may differ
    weights = em.probabilities(np.bincount(nearest, model.weights, len(grid)))
    return SubspaceState(W, np.zeros(K), model.latent, model.noise, offset, s, weights, sizes)


DRAW_SEEDS = 2**32  # offset between the seeds of successive draws
CHEAPER = 8.0  # relative speed per support when all are enumerated
FEWER_PATHS = 4  # reduction of importance paths per draw


@dataclass(eq=False)
class SupportPosterior(PosteriorOfDraw):
    """Posterior for any W; `supports_of` computes supports from float64 projections."""

    n_paths: int  # importance paths per row
    stream: int  # stream of random numbers for the paths, one per draw
    prior: Any  # L, or probabilities (K,) that a row uses a component
    orthonormal: bool = False  # W'W = I: components are independent

    @property
    def n_supports(self) -> float:
        K = len(self.components)
        if np.ndim(self.prior) == 0:
            return float(math.comb(K, self.prior))
        return 1.0 if self.orthonormal else float(2.0**K / CHEAPER)

    def at(self, draw: Any, stream: int) -> Self:
        prior = self.prior if draw.weights is None else draw.weights
        n_paths = max(2, self.n_paths // FEWER_PATHS)
        parameters: Any = (*draw[2:6], n_paths, stream, prior, self.orthonormal)
        return type(self)(*parameters)

    def supports_of(self, X: Array) -> SupportsOfRows:
        from appca.models.numeric_kernels import multiply

        C, noise = self.components.astype(np.float64, order="C", copy=False), self.noise
        W, G = np.ascontiguousarray(C.T), np.empty((len(C),) * 2)
        multiply(C, W, G)
        rows = projected(Rows(X, self.mean, np.empty(0), X.shape[1]), W)
        model = CollapsedModel(G / noise, 1.0 / float(self.latent[0]))
        background = em.background(rows.squares, noise, X.shape[1])
        how: Any = {"orthonormal": self.orthonormal, "stream": self.stream}
        at = rows.products / noise, model, self.prior
        seen = SupportsOfRows(*at, n_paths=self.n_paths, background=background, **how)
        if not seen.fixed:
            return seen
        background -= polynomials.log_binomial(len(C), self.prior)  # supports are equally probable
        if seen.exact:
            return seen
        return seen._replace(seeds=supports.row_seeds(X) + np.uint64(self.stream * DRAW_SEEDS))

    def most_included(self, inclusion: Array) -> Array:
        if np.ndim(self.prior) == 0:
            return polynomials.top(inclusion, self.prior)
        return np.asarray(inclusion > 0.5)

    def scores(self, X: Array) -> Array:
        seen = self.supports_of(X)
        return np.asarray(seen.means(seen.best()[0]))

    def expected(self, X: Array) -> Array:
        return np.asarray(self.supports_of(X).expected())

    def supports(self, X: Array, support: str) -> Array:
        if support == ALL:
            return self.most_included(self.inclusion(X))
        return np.asarray(self.supports_of(X).best()[0])

    def drawn_scores(self, rng: Generator, X: Array) -> Array:
        return np.asarray(self.supports_of(X).drawn_scores(rng))

    def membership(self, X: Array) -> Array:
        seen = self.supports_of(X)
        return share_of(seen.background + seen.best()[1] - seen.summed().log_likelihood)

    def summary(self, X: Array) -> RowSummary:
        return self.supports_of(X).summed()

    def log_joint(self, X: Array, Z: Array) -> Array:
        seen = self.supports_of(X)
        return np.asarray(seen.background + seen.log_support(Z))

    def description(self, X: Array) -> Description:
        seen = self.supports_of(X)
        (Z, value), sums = seen.best(), seen.summed()
        H, rows = seen.means(Z), Rows(X, self.mean, np.empty(0), X.shape[1])
        share = share_of(seen.background + value - sums.log_likelihood)
        error = mean_squares(rows, H, self.components)
        results = H.astype(X.dtype, copy=False), Z, sums.inclusion, share, error
        return Description(*results, sums.log_likelihood, sums.error, sums.method)

    def sample(self, rng: Generator, n: int) -> tuple[Array, Array]:
        size = n, len(self.components)
        if np.ndim(self.prior) == 0:
            Z = polynomials.draw(rng, np.zeros(size), self.prior)
        else:
            Z = rng.random(size) < self.prior
        return self.rows_with(rng, Z), Z


def publish(
    model: Any, rows: Any, state: Any, second: Array, weights: Any = None, same_order: bool = False
) -> Array:
    """Set the attributes that need no rows, and return the order by means (K,) of E[(x z)^2]."""
    power = second * np.square(state.W).sum(axis=0)
    order = np.arange(len(power)) if same_order else np.argsort(-power, kind="stable")
    W = state.W if same_order else upright(state.W[:, order])
    origin = 0.0 if rows.origin is None else rows.origin
    model.components_ = np.ascontiguousarray(W.T, dtype=rows.dtype)
    model.mean_ = (origin - state.W @ state.shift).astype(rows.dtype)
    model.noise_variance_, model.explained_variance_ = float(state.noise), power[order]
    model.latent_variance_ = getattr(state, "latent", np.ones(len(order)))[order]
    if weights is not None:
        model.weights_ = weights[order]
    return order


def publish_factors(
    model: Any, rows: Rows, state: Any, second: Array, members: Any = None, **how: Any
) -> Array:
    """Publish, with scales of scores given supports `members` (N, L) or the best supports."""
    order = publish(model, rows, state, second, **how)
    seen = model._posterior().supports_of(rows.X)
    Z = seen.best()[0] if members is None else supports.indicators(members, len(order))[:, order]
    model.scale_ = supports.root_mean_square(seen.means(Z), Z, rows.weights)
    return order
