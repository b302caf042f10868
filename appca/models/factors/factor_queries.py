"""What a fitted adaptive factor analysis can be asked, about training rows and new ones alike."""

from typing import Any, NamedTuple

import numpy as np

from appca.models.algebra import gaussian
from appca.models.algebra.gaussian import Array
from appca.models.algebra.stiefel import upright
from appca.models.base.posterior_queries import PosteriorQueries
from appca.models.base.support_model import SupportModel
from appca.models.factors import factor_gibbs
from appca.models.factors.factor_em import PRIOR, FactorState
from appca.models.polynomials import subsets
from appca.models.rows.observations import Observations, Rows
from appca.models.rows.steady_products import projected, times
from appca.models.supports import enumeration, fixed_size_supports, given_supports, row_blocks
from appca.models.supports.row_supports import CollapsedModel, Members, Seeds, SupportEstimate

DRAW_SEEDS = 2**32  # between the seeds of a row in two draws


class FactorQuery(NamedTuple):
    """Rows as the fitted W sees them."""

    c: Array  # (N, K) W'(y - mu) / sigma2
    background: Array  # (N,) log density of a row that no factor explains
    model: CollapsedModel
    seeds: Seeds  # (N,) each a function of its row


class FactorModel(PosteriorQueries, SupportModel):
    """Queries of a fitted y = W (x * z) + mu + e with any W and exactly L of K factors active.

    Subclasses fit and call `_publish_factors`; parameters they must have: `whiten`,
    `random_state`, `n_active`, `n_paths`.
    """

    n_paths: int

    def _publish_factors(
        self,
        rows: Rows,
        state: FactorState,
        second: Array,
        members: Members | None,
        *,
        same_order: bool = False,
    ) -> Array:
        """Set the fitted attributes, as `_publish_state`; return the order of components.

        Parameters
        ----------
        state : with W (D, K).
        second : (K,) sums over rows of E[(x z)^2].
        members : the training rows' sets, if they were given one.
        """
        self.n_active_ = self.n_active
        order = self._publish_state(rows, state, second / rows.mass, same_order=same_order)
        seen = self._seen(rows.X)
        sets = self._best(seen)[0] if members is None else np.argsort(order)[members]
        H = self._means(seen, sets)
        self.scale_ = fixed_size_supports.root_mean_square(H, sets, rows.weights)
        return order

    def _publish_state(
        self, rows: Observations, state: Any, second: Array, *, same_order: bool = False
    ) -> Array:
        """Set what needs no rows but their origin, as `SubspaceModel`."""
        power = second * np.square(state.W).sum(axis=0)
        order = np.arange(len(power)) if same_order else np.argsort(-power, kind="stable")
        W = state.W if same_order else upright(state.W[:, order])
        origin = 0.0 if rows.origin is None else rows.origin
        self.components_ = np.ascontiguousarray(W.T, dtype=rows.dtype)
        self.mean_ = (origin - state.W @ state.shift).astype(rows.dtype)
        self.noise_variance_ = float(state.noise)
        self.latent_variance_ = np.full(len(order), 1.0 / PRIOR)
        self.explained_variance_ = power[order]
        return order

    def _seen(self, X: Array) -> FactorQuery:
        """Project checked rows, in float64."""
        C, noise = self.components_.astype(np.float64), self.noise_variance_
        found = projected(Rows(X, self.mean_, np.empty(0), X.shape[1]), C.T)
        background = gaussian.background(found.squares, noise, X.shape[1])
        model = CollapsedModel(times(C, C.T) / noise, PRIOR)
        seeds = row_blocks.row_seeds(X) + np.uint64(self._stream * DRAW_SEEDS)
        return FactorQuery(found.products / noise, background, model, seeds)

    def _best(self, seen: FactorQuery) -> tuple[Members, Array]:
        return fixed_size_supports.best(seen.c, seen.model, self.n_active_, seen.seeds)

    def _summed(self, seen: FactorQuery) -> SupportEstimate:
        model, L = seen.model, self.n_active_
        return fixed_size_supports.summed(seen.c, model, L, seen.seeds, self.n_paths)

    def _means(self, seen: FactorQuery, supports: Members) -> Array:
        return fixed_size_supports.means(seen.c, supports, seen.model)

    def _expected(self, seen: FactorQuery) -> Array:
        return fixed_size_supports.expected(seen.c, seen.model, self.n_active_, seen.seeds)

    def _log_support(self, seen: FactorQuery, Z: Array) -> Array:
        return given_supports.log_densities(seen.c, Z, seen.model)

    def _drawn_scores(self, rng: np.random.Generator, X: Array) -> Array:
        seen = self._seen(X)
        Z = fixed_size_supports.draw(rng, seen.c, seen.model, self.n_active_, seen.seeds)
        return given_supports.draw_scores(rng, seen.c, Z, seen.model)

    def _likely(self, inclusion: Array) -> Array:
        return subsets.top(inclusion, self.n_active_)

    def _supports_of_a_row(self) -> float:
        return float(enumeration.n_sets(len(self.components_), self.n_active_))

    def _indicators(self, supports: Members) -> Array:
        return factor_gibbs.indicators(supports, len(self.components_))

    def _log_supports(self) -> float:
        return gaussian.log_binomial(len(self.components_), self.n_active_)
