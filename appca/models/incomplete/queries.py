"""Incomplete data as scikit-learn sees them: queries that take NaN, and `impute`."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from appca.models.algebra.gaussian import Array
from appca.models.base.estimator import ALL, Description, SubspaceModel, refuse_support
from appca.models.incomplete import missing_em, missing_supports
from appca.models.orthonormal import em
from appca.models.rows.incomplete_rows import IncompleteData, is_incomplete, split_incomplete
from appca.models.rows.observations import Rows
from appca.models.variants.em import PAPER

NEAR_BEST = (
    "best support and its exchanges of one component where entries are missing: a lower bound"
)


class IncompleteFit(NamedTuple):
    """A fit to incomplete data, and how it was reached."""

    data: IncompleteData
    state: missing_em.IncompleteState
    second: Array  # (K,) sums over rows of E[(x z)^2]
    log_likelihoods: list[float]
    stop_reason: str
    same_order: bool = False  # whether it went on from a fit, in its order and signs


class MissingValues(SubspaceModel):
    """A model with orthonormal components that is fitted to, and asked about, rows with NaN.

    Whatever is said of a row with missing entries is said given its observed ones; a row without
    any gets the prior, and so adds nothing to a likelihood. Rows without NaN are answered as if
    there were no others. Sums over supports are exact up to 5,000; beyond, the
    sums of incomplete rows are over the best support and its exchanges of one component: their
    log-likelihood is then a lower bound, which the method of `describe` and `stop_reason_` say.
    """

    @staticmethod
    def _refuse_cells(X: Array) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(X.sum()):  # in float32 it may overflow, and the rows decide
                return
        bad = int(np.isinf(X).any(axis=1).sum())
        if bad:
            msg = (
                f"X must be finite or NaN for a missing entry, but {bad} of its {len(X)} rows "
                "hold inf: correct those cells or leave out those rows."
            )
            raise ValueError(msg)

    def _publish_incomplete(self, X: Array, found: IncompleteFit, n_active: int) -> None:
        """Set the fitted attributes of a fit to X (N, D) with NaN."""
        origin, state = found.data.origin, found.state
        mean = (origin + state.offset).astype(X.dtype)
        plain = em.SubspaceState(state.W, np.zeros(len(state.latent)), state.latent, state.noise)
        full = np.where(np.isnan(X), mean, X)
        about = Rows(full, origin + state.offset, np.empty(0), X.shape[1], careful=True)
        self._publish(about, plain, n_active, found.second, same_order=found.same_order)
        self.scale_ = self._scale_incomplete(X)
        self.log_likelihoods_: Array = np.array(found.log_likelihoods)
        self.n_iter_ = len(found.log_likelihoods)
        self.stop_reason_ = found.stop_reason

    def _scale_incomplete(self, X: Array) -> Array:
        """Root mean square of every component's scores when active, as `transform` gives them."""
        found = self._described_incomplete(X)
        power = np.square(found.scores, dtype=np.float64).sum(axis=0)
        scale: Array = np.sqrt(power / np.maximum(found.active.sum(axis=0), 1))
        return np.where(scale > 0.0, scale, 1.0)

    def _whole(self, X: Any) -> Array:
        rows = super()._whole(X)
        if is_incomplete(rows):
            self._refuse_missing()
        return rows

    def _incomplete(self, X: Any) -> Array | None:
        """Return the checked rows if an entry of theirs is missing."""
        check_is_fitted(self)
        rows: Array = self._validated(X, reset=False)
        if not is_incomplete(rows):
            return None
        self._refuse_missing()
        return rows

    def _refuse_missing(self) -> None:
        inference = getattr(self, "inference", "em")
        if inference != "em":
            msg = (
                f"X has missing entries (NaN), which need inference='em'; got {inference!r}: "
                "change that, or fill in or leave out those cells."
            )
            raise ValueError(msg)
        if getattr(self, "_variant", PAPER) != PAPER:
            msg = (
                "X has missing entries (NaN), which need noise='shared', row_scale='none' and a "
                "number as n_active: set these, or fill in or leave out those cells."
            )
            raise ValueError(msg)

    def transform(self, X: Any, support: str = "auto") -> Array:
        """Posterior mean scores (N, K) of each row's most probable L components, zero elsewhere.

        With support="all" E[x * z | y] over all supports, of whole rows only. With `whiten` every
        score is divided by its root mean square over the training rows that use its component.
        Missing entries are NaN.
        """
        refuse_support(support)
        incomplete = self._incomplete(X)
        if incomplete is None:
            return super().transform(X, support)
        if support == ALL:
            msg = (
                "support must be 'map' where X has missing entries (NaN); got 'all': leave it out, "
                "or fill in those cells."
            )
            raise ValueError(msg)
        scores = self._described_incomplete(incomplete).scores
        scaled: Array = scores / self.scale_.astype(scores.dtype) if self.whiten else scores
        return scaled

    def allocate(self, X: Any, support: str = "auto") -> Array:
        """Each row's most probable L components, (N, K) bool; missing entries are NaN."""
        refuse_support(support)
        incomplete = self._incomplete(X)
        return (
            super().allocate(X, support)
            if incomplete is None
            else self._described_incomplete(incomplete).active
        )

    def inclusion_probabilities(self, X: Any) -> Array:
        """Probability p(z_nk = 1 | observed y_n) that a row uses a component, (N, K)."""
        incomplete = self._incomplete(X)
        if incomplete is None:
            return super().inclusion_probabilities(X)
        return self._described_incomplete(incomplete).inclusion

    def allocation_probability(self, X: Any) -> Array:
        """Posterior probability (N,) of the subset that `allocate` chose; below 0.5: doubtful."""
        incomplete = self._incomplete(X)
        if incomplete is None:
            return super().allocation_probability(X)
        return self._described_incomplete(incomplete).membership

    def score_samples(self, X: Any) -> Array:
        """Log-likelihood of each row's observed entries, (N,) in nats; exact up to 5,000 sets."""
        incomplete = self._incomplete(X)
        if incomplete is None:
            return super().score_samples(X)
        return self._described_incomplete(incomplete).log_likelihood

    def describe(self, X: Any) -> Description:
        """Say of every row what `transform`, `allocate` and the others say, in one go.

        The reconstruction error of a row is that of its observed entries.
        """
        incomplete = self._incomplete(X)
        return super().describe(X) if incomplete is None else self._described_incomplete(incomplete)

    def impute(self, X: Any) -> Array:
        """Copy of X (N, D) with the posterior mean of each missing entry (NaN) in its place.

        E[y_d | observed y_n] = mu_d + w_d' E[x_n * z_n | observed y_n], over all supports.
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        data = split_incomplete(X, self.mean_.astype(X.dtype))
        return missing_em.impute(X, data, self._e_step_parameters())

    def _e_step_parameters(self) -> missing_em.EStepParameters:
        W, latent = self.components_.T, np.asarray(self.latent_variance_)
        state = missing_em.IncompleteState(W, np.zeros(len(W)), latent, self.noise_variance_)
        return missing_em.e_step_parameters(state, self.n_active_)

    def _described_incomplete(self, X: Array) -> Description:
        """Describe checked rows of which some have NaN."""
        data = split_incomplete(X, self.mean_.astype(X.dtype))
        at = self._e_step_parameters()
        n, K = len(X), len(self.latent_variance_)
        scores, inclusion = np.zeros((n, K), X.dtype), np.zeros((n, K))
        active, parts = np.zeros((n, K), bool), np.zeros((3, n))
        columns = scores, active, inclusion, *parts
        if len(data.complete_rows):
            B = data.complete
            told = self._described(B, B @ self.components_.T.astype(B.dtype, copy=False))
            for column, values in zip(columns, told, strict=True):
                column[data.complete_rows] = values
        for block in data.blocks:
            projections, squares, n_observed = missing_em.project(block, at)
            found = missing_supports.posterior(projections, at.n_active)
            H = missing_supports.scores(projections, found.members) * np.sqrt(at.latent)
            is_active = np.zeros_like(H, dtype=bool)
            np.put_along_axis(is_active, found.members, True, axis=1)
            fit = H @ at.W.T  # at.offset is zero: the origin is the mean
            residual = np.square(block.X - fit, dtype=np.float64).sum(axis=1)
            residual -= (block.missing * np.square(fit)).sum(axis=1)
            error = np.maximum(residual, 0.0) / np.maximum(n_observed, 1)
            value = missing_em.log_densities(found, squares, n_observed, at)
            told = H, is_active, found.inclusion, found.probability, error, value
            for column, values in zip(columns, told, strict=True):
                column[block.rows] = values
        method = "exact" if missing_supports.is_exact(K, self.n_active_) else NEAR_BEST
        return Description(*columns, np.zeros(n), method)  # type: ignore[call-arg]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = getattr(self, "inference", "em") == "em"
        return tags
