"""Queries of a fit with a noise of each feature, a scale of each row, or learned sizes."""

from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from appca.models.algebra import gaussian
from appca.models.algebra.gaussian import Array
from appca.models.algebra.stiefel import polar, upright
from appca.models.base.data_checks import warn_of_rank
from appca.models.base.estimator import SampledModel, generator
from appca.models.polynomials import subsets
from appca.models.rows.observations import Block, Observations
from appca.models.variants.em import Variant, VariantSettings, VariantState
from appca.models.variants.expectation import squared_distances
from appca.models.variants.fit import VariantFit
from appca.models.variants.row_mixture import (
    RowModel,
    Weighed,
    likeliest,
    support_density,
    weigh,
)

EXTRA = ("row_scale_values_", "row_scale_probabilities_", "size_probabilities_")


class VariantQueries(SampledModel):
    """A model whose fit may be of a variant, which is read from the fitted attributes.

    With noise="feature" `noise_variance_` is (D,), with row_scale="learned" there is
    `row_scale_probabilities_`, and with n_active="learned" `size_probabilities_`.
    """

    row_scale_values_: Array
    row_scale_probabilities_: Array
    size_probabilities_: Array

    def _is_variant(self) -> bool:
        return np.ndim(getattr(self, "noise_variance_", 0.0)) > 0 or bool(self._extra())

    def _extra(self) -> list[str]:
        return [name for name in EXTRA if hasattr(self, name)]

    def _forget_variant(self) -> None:
        for name in self._extra():
            delattr(self, name)

    def fitted_arrays(self) -> dict[str, Array]:
        """Everything that answers about new rows depend on, by name without the underscore."""
        extra = {name[:-1]: np.asarray(getattr(self, name)) for name in self._extra()}
        return super().fitted_arrays() | extra

    def restore(self, arrays: dict[str, Array]) -> Self:
        """Become the fitted estimator whose `fitted_arrays` these are; draws do not come back."""
        super().restore(arrays)
        self._forget_variant()
        for name in EXTRA:
            if name[:-1] in arrays:
                setattr(self, name, arrays[name[:-1]])
        return self

    def _publish_variant(self, rows: Observations, fit: VariantFit, *, same_order: bool) -> None:
        """Set the fitted attributes; components by mean E[(x z)^2], in noise units.

        They keep order and signs where the state has those of a fit before.
        """
        state, settings = fit.state, fit.settings
        origin = 0.0 if rows.origin is None else rows.origin
        self.n_active_ = len(state.latent) if settings.variant.learn_sizes else settings.em.n_active
        self.mean_ = (origin + state.displacement).astype(rows.dtype)
        psi = np.square(state.inverse_scale)
        self.noise_variance_ = psi if settings.variant.by_feature else float(state.noise)  # type: ignore[assignment]
        if settings.variant.row_scales:
            self.row_scale_values_, self.row_scale_probabilities_ = settings.grid, state.weights
        if settings.variant.learn_sizes:
            self.size_probabilities_ = state.sizes
        K = len(state.latent)
        look = partial(_seen, state=state, model=state.row_model(settings))
        nothing: tuple[Array, ...] = (*[np.zeros(K)] * 4, np.zeros((K, K)))
        second, power, used, total, products = rows.summed(look, nothing)
        warn_of_rank(total, products, rows.mass, rows.d, float(np.finfo(rows.dtype).eps))
        order = np.arange(K) if same_order else np.argsort(-second, kind="stable")
        V = state.V if same_order else upright(state.V[:, order])
        W = state.inverse_scale[:, None] * V
        self.components_ = np.ascontiguousarray(W.T, dtype=rows.dtype)
        self.latent_variance_ = state.latent[order]
        self.explained_variance_ = second[order] / rows.mass * np.square(W).sum(axis=0)
        scale = np.sqrt(power / np.where(used > 0, used, 1.0))[order]
        self.scale_ = np.where(scale > 0.0, scale, 1.0)

    def _variant_state(self, rows: Observations, settings: VariantSettings) -> VariantState | None:
        """Return the fit as a state of EM on these rows, if it is one of the same variant and K."""
        K, D = self.components_.shape
        has = Variant(
            np.ndim(self.noise_variance_) > 0,
            hasattr(self, "row_scale_probabilities_"),
            hasattr(self, "size_probabilities_"),
        )
        if has != settings.variant or (settings.em.n_components, rows.d) != (K, D):
            return None
        model, s = self._row_model(), self._feature_scale()
        offset = np.zeros(D)
        if settings.em.learn_mean and rows.origin is not None:
            offset = self.mean_.astype(np.float64) - rows.origin
        sizes = model.sizes if has.learn_sizes else np.full(K + 1, 1.0 / (K + 1))
        V = polar(s[:, None] * self.components_.T)
        at = model.latent, model.noise, s, model.weights, np.asarray(sizes)
        return VariantState(V, np.zeros(K), offset, *at)

    def _feature_scale(self) -> Array:
        """Return what features are multiplied by (D,) to be in noise units; 0 of constant ones."""
        psi = np.asarray(self.noise_variance_, dtype=np.float64)
        if psi.ndim == 0:
            return np.ones(self.components_.shape[1])
        return np.divide(1.0, np.sqrt(psi), out=np.zeros_like(psi), where=psi > 0.0)

    def _row_model(self) -> RowModel:
        s, sizes = self._feature_scale(), getattr(self, "size_probabilities_", None)
        grid, weights = np.ones(1), np.ones(1)
        if hasattr(self, "row_scale_probabilities_"):
            grid, weights = self.row_scale_values_, self.row_scale_probabilities_
        return RowModel(
            self._unit_noise(),
            self.latent_variance_,
            int((s > 0.0).sum()),
            float(np.log(s[s > 0.0]).sum()),
            int(self.n_active_) if sizes is None else sizes,
            grid,
            weights,
        )

    def _unit_noise(self) -> float:
        """Noise variance of rows in noise units."""
        return 1.0 if np.ndim(self.noise_variance_) else float(self.noise_variance_)

    def _directions(self) -> Array:
        W = super()._directions()
        return W * np.square(self._feature_scale())[:, None] if self._is_variant() else W

    def _shrinkage(self) -> Array:
        return gaussian.posterior(self._unit_noise(), self.latent_variance_)[0]

    def _squares(self, B: Array) -> Array:
        scaled = B * self._feature_scale().astype(B.dtype)
        return np.asarray(np.einsum("nd,nd->n", scaled, scaled, dtype=np.float64))

    def _weighed(self, B: Array, P: Array) -> Weighed:
        return weigh(P, self._squares(B), self._row_model())

    def _support(self, B: Array, P: Array) -> Array:
        if not self._is_variant():
            return super()._support(B, P)
        return likeliest(P, self._squares(B), self._row_model())

    def _inclusion(self, B: Array, P: Array) -> Array:
        return self._weighed(B, P).inclusion if self._is_variant() else super()._inclusion(B, P)

    def score_samples(self, X: Any) -> Array:
        """Exact log-likelihood log p(y_n) of every row, (N,) in nats."""
        if not self._is_variant():
            return super().score_samples(X)
        return self._by_blocks(X, lambda B, P: self._weighed(B, P).log_density)

    def allocation_probability(self, X: Any) -> Array:
        """Posterior probability (N,) of the support that `allocate` chose; below 0.5: doubtful."""
        if not self._is_variant():
            return super().allocation_probability(X)
        return self._by_blocks(X, lambda B, P: self._described(B, P)[3])

    def size_probabilities(self, X: Any) -> Array:
        """Posterior probabilities (N, K + 1) that a row uses 0 to K components, if learned."""
        check_is_fitted(self, "size_probabilities_")

        def sizes(B: Array, P: Array) -> Array:
            return np.asarray(self._weighed(B, P).sizes)

        return self._by_blocks(X, sizes)

    def _scales_of_rows(self, X: Any) -> Array:
        """Posterior mean (N,) of the scale of each row; 1 where all rows are alike."""
        grid = self._row_model().grid
        return self._by_blocks(X, lambda B, P: self._weighed(B, P).scales @ grid)

    def _described(self, B: Array, P: Array) -> tuple[Array, ...]:
        if not self._is_variant():
            return super()._described(B, P)
        P, squares, model = P.astype(np.float64), self._squares(B), self._row_model()
        row, active = weigh(P, squares, model), likeliest(P, squares, model)
        scores = np.where(active, P * self._shrinkage(), 0.0).astype(B.dtype)
        left = B - scores @ self.components_.astype(B.dtype)
        error = np.einsum("nd,nd->n", left, left, dtype=np.float64) / B.shape[1]
        share = support_density(P, squares, active, model) - row.log_density
        membership = np.exp(np.minimum(share, 0.0))
        return scores, active, row.inclusion, membership, error, row.log_density

    def sample(
        self, n_samples: int = 1, random_state: Any = None, *, return_supports: bool = False
    ) -> Any:
        """Draw rows (n_samples, D) from the model, in the dtype it was fitted in.

        The same seed gives the same rows; `random_state` defaults to the estimator's own. With
        `return_supports` also the components (n_samples, K) bool that each row uses.
        """
        if not self._is_variant():
            return super().sample(n_samples, random_state, return_supports=return_supports)
        rng = generator(self.random_state if random_state is None else random_state)
        model, (K, D) = self._row_model(), self.components_.shape
        deviation = np.sqrt(rng.choice(model.grid, n_samples, p=model.weights))[:, None]
        Z = _drawn_supports(rng, n_samples, K, model)
        X = rng.standard_normal((n_samples, K)) * np.sqrt(self.latent_variance_)
        noise = rng.standard_normal((n_samples, D)) * np.sqrt(self.noise_variance_)
        rows = self.mean_ + deviation * ((X * Z) @ self.components_ + noise)
        rows = rows.astype(self.components_.dtype)
        return (rows, Z) if return_supports else rows


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
