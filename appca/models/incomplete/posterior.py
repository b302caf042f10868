"""What is said of rows of which some have missing entries (NaN), given their observed ones."""

from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np

from appca.models.algebra.gaussian import Array
from appca.models.base.answers import Description, Posterior
from appca.models.incomplete import missing_em, missing_supports
from appca.models.orthonormal import em
from appca.models.orthonormal.posterior import SubspacePosterior, posterior_of, publish_subspace
from appca.models.rows.incomplete_rows import IncompleteData, split_incomplete
from appca.models.rows.observations import Rows

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


@dataclass(frozen=True, eq=False)
class PosteriorWithGaps(Posterior):
    """Answers of a model with orthonormal components about rows with NaN.

    A row without any observed entry gets the prior, and so adds nothing to a likelihood. Rows
    without NaN are answered as if there were no others. Sums over supports are exact up to 5,000;
    beyond, those of incomplete rows are over the best support and its exchanges of one component:
    their log-likelihood is then a lower bound, which the method of `description` says.
    """

    whole: SubspacePosterior  # of rows without NaN

    def expected(self, X: Array) -> NoReturn:
        del X
        msg = (
            "support must be 'map' where X has missing entries (NaN); got 'all': leave it out, "
            "or fill in those cells."
        )
        raise ValueError(msg)

    @property
    def parameters(self) -> missing_em.EStepParameters:
        """What the E step needs to know, for rows about the mean."""
        W, latent = self.whole.components.T, np.asarray(self.whole.latent)
        state = missing_em.IncompleteState(W, np.zeros(len(W)), latent, self.whole.noise)
        return missing_em.e_step_parameters(state, self.whole.n_active)

    def _split(self, X: Array) -> IncompleteData:
        return split_incomplete(X, self.whole.mean.astype(X.dtype))

    def imputed(self, X: Array) -> Array:
        """Copy of X (N, D) with the posterior mean of each missing entry in its place."""
        return missing_em.impute(X, self._split(X), self.parameters)

    def description(self, X: Array) -> Description:
        data, at = self._split(X), self.parameters
        n, K = len(X), len(self.whole.latent)
        scores, inclusion = np.zeros((n, K), X.dtype), np.zeros((n, K))
        active, parts = np.zeros((n, K), bool), np.zeros((3, n))
        columns = scores, active, inclusion, *parts
        if len(data.complete_rows):
            B = data.complete
            P = B @ self.whole.components.T.astype(B.dtype, copy=False)
            for column, values in zip(columns, self.whole.described(B, P), strict=True):
                column[data.complete_rows] = values
        for block in data.blocks:
            projections, squares, n_observed = missing_em.project(block, at)
            rows = missing_supports.posterior(projections, at.n_active)
            H = missing_supports.scores(projections, rows.members) * np.sqrt(at.latent)
            is_active = np.zeros_like(H, dtype=bool)
            np.put_along_axis(is_active, rows.members, True, axis=1)
            fit = H @ at.W.T  # at.offset is zero: the origin is the mean
            residual = np.square(block.X - fit, dtype=np.float64).sum(axis=1)
            residual -= (block.missing * np.square(fit)).sum(axis=1)
            error = np.maximum(residual, 0.0) / np.maximum(n_observed, 1)
            value = missing_em.log_densities(rows, squares, n_observed, at)
            answers = H, is_active, rows.inclusion, rows.probability, error, value
            for column, values in zip(columns, answers, strict=True):
                column[block.rows] = values
        exact = missing_supports.is_exact(K, self.whole.n_active)
        method = "exact" if exact else NEAR_BEST
        return Description(*columns, np.zeros(n), method)  # type: ignore[call-arg]


def publish_incomplete(model: Any, X: Array, fit: IncompleteFit, n_active: int) -> None:
    """Set the fitted attributes of an estimator from a fit to X (N, D) with NaN."""
    origin, state = fit.data.origin, fit.state
    mean = (origin + state.offset).astype(X.dtype)
    plain = em.SubspaceState(state.W, np.zeros(len(state.latent)), state.latent, state.noise)
    full = np.where(np.isnan(X), mean, X)
    about = Rows(full, origin + state.offset, np.empty(0), X.shape[1], careful=True)
    publish_subspace(model, about, plain, n_active, fit.second, same_order=fit.same_order)
    rows = PosteriorWithGaps(posterior_of(model)).description(X)
    power = np.square(rows.scores, dtype=np.float64).sum(axis=0)
    scale: Array = np.sqrt(power / np.maximum(rows.active.sum(axis=0), 1))
    model.scale_ = np.where(scale > 0.0, scale, 1.0)
    model._ended(fit.log_likelihoods, fit.stop_reason)
