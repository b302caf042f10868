"""Every query of a fitted model, once: who answers is decided here, and nowhere else.

A Dask array is asked chunk by chunk (`dask_queries`). Of rows in memory those with missing entries
are answered by `incomplete.posterior`, after sampling an average over draws answers
(`draw_averages`), else the posterior given the fitted parameters, which each model makes of them.
"""

import copy
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted

from appca.models.algebra.gaussian import Array
from appca.models.base.answers import ALL, MAP, Description, Posterior, RowEstimate, refuse_support
from appca.models.base.dask_queries import each_described, lazily
from appca.models.base.data_checks import refuse_weights, row_weights
from appca.models.base.draw_averages import MOST_DRAWS, AveragedPosterior
from appca.models.base.estimator import Estimator, generator
from appca.models.incomplete.posterior import PosteriorWithGaps
from appca.models.rows.dask_rows import is_dask
from appca.models.rows.incomplete_rows import is_incomplete
from appca.models.rows.shifted_sparse import is_sparse
from appca.models.rows.streams import NO_ROWS, Blocks, checked
from appca.models.sampling.chains import ChainLevels, Chains, levels, to_arviz
from appca.models.sampling.query_draws import choose, component_bands

if TYPE_CHECKING:
    from arviz import InferenceData

_takes_gaps = available_if(lambda model: model._takes_gaps)
_samples = available_if(lambda model: hasattr(model, "n_draws"))


class Queries(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):  # type: ignore[misc]
    """Queries of a fitted model y = W (x * z) + mu + e, in which z says what a row uses.

    Subclasses fit, and give the posterior of rows given what they were fitted to (`_posterior`).
    Those to be used are dataclasses, whose fields are their parameters and must include `whiten`
    and `random_state`; equality and `repr` are scikit-learn's.

    After sampling `query_draws_` holds the draws that queries average over: at most 100, evenly
    chosen from the chains that count (`chain_levels_`), fewer where their components would take
    more than 32 MB. Queries about rows with more than 256 supports take some of them, 8 from 3,200
    supports on. They were brought into the order and signs of the published components.
    """

    whiten: bool
    random_state: Any

    def _posterior(self) -> Any:
        """Return the posterior of rows given the fitted parameters: a `PosteriorOfDraw`."""
        raise NotImplementedError

    def _refuse_gaps(self) -> None:
        """Raise ValueError where this model cannot answer about missing entries."""

    def _asked(self, X: Any, support: str = "auto") -> tuple[Array, Posterior]:
        """Check rows, and choose who answers about them."""
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        posterior: Any = self._posterior()
        if self._takes_gaps and is_incomplete(X):
            self._refuse_gaps()
            return X, PosteriorWithGaps(posterior)
        if support != MAP and hasattr(self, "query_draws_"):
            return X, AveragedPosterior(posterior, self.query_draws_)
        return X, posterior

    def _is_lazy(self, X: Any) -> bool:
        return self._takes_gaps and is_dask(X)

    @property
    def _scale(self) -> Array | None:
        return self.scale_ if self.whiten else None

    def transform(self, X: Any, support: str = "auto") -> Any:
        """Posterior mean scores (N, K).

        Parameters
        ----------
        X : (N, D) rows; NaN where missing, a sparse matrix, or a Dask array, for aPPCA and PPCA.
        support : {"auto", "all", "map"}
            "all": E[x * z | y], over all supports of a row and, after sampling, over draws
            (`query_draws_`). "map": given each row's most probable support, zero elsewhere; after
            sampling at the published draw. "auto" is "all" after sampling, else "map".

        Notes
        -----
        With `whiten` every score is divided by its root mean square over the training rows that
        use its component. Where supports are too many to sum over, "all" takes the MAP support of
        each draw. "all" takes no missing entries.
        """
        refuse_support(support)
        if self._is_lazy(X):
            return lazily(self, "transform", X, support=support)
        X, posterior = self._asked(X, support)
        if support != ALL:
            return posterior.scores(X, self._scale)
        H = posterior.expected(X)
        scores = H if self._scale is None else H / self._scale.astype(H.dtype)
        return scores.astype(X.dtype, copy=False)

    def inverse_transform(self, X: Any, support: str = "auto") -> Array:
        """Return the data (N, D) for scores (N, K), dense or sparse: W scores + mean.

        After sampling W and the mean are averages over draws, the counterpart of
        `transform(X)`; with support="map" those of the published draw.
        """
        refuse_support(support)
        check_is_fitted(self)
        scores = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
        K = len(self.components_)
        if scores.shape[1] != K:
            msg = f"X must have {K} columns, one per component; got {scores.shape[1]} columns."
            raise ValueError(msg)
        components, mean = self.components_, self.mean_
        if support != MAP and hasattr(self, "query_draws_"):
            components, mean = AveragedPosterior(self._posterior(), self.query_draws_).means()
        if self.whiten:
            times = self.scale_.astype(scores.dtype)
            scores = scores.multiply(times).tocsr() if is_sparse(scores) else scores * times
        data: Array = scores @ components.astype(scores.dtype) + mean.astype(scores.dtype)
        return data

    def allocate(self, X: Any, support: str = "auto") -> Any:
        """Return the components that each row uses, (N, K) bool.

        With support="map" that is each row's most probable support. With "all", and with "auto"
        after sampling, it is the L components of largest inclusion probability, or, if rows may
        use any number, those whose inclusion probability exceeds one half.
        """
        refuse_support(support)
        if self._is_lazy(X):
            return lazily(self, "allocate", X, support=support)
        X, posterior = self._asked(X, support)
        return posterior.supports(X, support)

    def inclusion_probabilities(self, X: Any) -> Any:
        """Return the probability p(z_nk = 1 | y_n) that a row uses a component, (N, K).

        It is conditional on the observed entries. A row sums to L if L is fixed. After sampling, a
        draw that lacks a component counts as a draw in which no row uses it.
        """
        if self._is_lazy(X):
            return lazily(self, "inclusion_probabilities", X)
        X, posterior = self._asked(X)
        return posterior.inclusion(X)

    def allocation_probability(self, X: Any) -> Any:
        """Return the posterior probability (N,) of each row's support; below 0.5 it is doubtful."""
        if self._is_lazy(X):
            return lazily(self, "allocation_probability", X)
        X, posterior = self._asked(X)
        return posterior.membership(X)

    def score_samples(self, X: Any) -> Any:
        """Return the log-likelihood log p(y_n) of each row's observed entries, (N,) in nats.

        It is exact unless there are too many supports to sum over; `describe` says so. After
        sampling it is the log of the average of p(y_n) over draws, the posterior predictive.
        """
        if self._is_lazy(X):
            return lazily(self, "score_samples", X)
        X, posterior = self._asked(X)
        return posterior.log_likelihood(X)

    @available_if(lambda model: model._estimates)  # type: ignore[untyped-decorator]
    def estimate_score_samples(self, X: Any) -> RowEstimate:
        """Return the log-likelihood log p(y_n) of every row with its standard error and method.

        If the number of components is learned, a new row can use the existing components, each
        with its prior probability, and no new ones.
        """
        X, posterior = self._asked(X)
        rows = posterior.summary(X)
        return RowEstimate(rows.log_likelihood, rows.error, rows.method)

    def describe(self, X: Any) -> Description:
        """Return the results of all queries about rows in memory at once.

        After sampling, log-likelihood and inclusion are averages over draws. Scores, support,
        membership and error are those of the published draw, as in `transform(X, "map")`.

        Raises
        ------
        ValueError
            For a Dask array: `describe_chunks` describes one part by part.
        """
        if self._is_lazy(X):
            msg = (
                "describe must have its rows in memory; got a Dask array: "
                "use describe_chunks, or compute it first."
            )
            raise ValueError(msg)
        X, posterior = self._asked(X)
        return posterior.description(X)

    @_takes_gaps  # type: ignore[untyped-decorator]
    def describe_chunks(self, X: Any) -> Iterator[Description]:
        """Yield the results of `describe` for each chunk of rows of a Dask array."""
        return each_described(self, X)

    @_takes_gaps  # type: ignore[untyped-decorator]
    def impute(self, X: Any) -> Array:
        """Return a copy of X (N, D) with each missing entry (NaN) replaced by its posterior mean.

        E[y_d | observed y_n] = mu_d + w_d' E[x_n * z_n | observed y_n], over all supports.
        """
        check_is_fitted(self)
        return PosteriorWithGaps(self._posterior()).imputed(self._validated(X, reset=False))

    def transform_blocks(self, blocks: Blocks) -> Iterator[Array]:
        """Yield the scores (n_i, K) of each block of rows (n_i, D), as `transform`."""
        yield from (self.transform(block) for block in checked(blocks, once=True)())

    def score_blocks(self, blocks: Blocks) -> float:
        """Return the mean log-likelihood in nats of all rows, which come in blocks."""
        total, n = 0.0, 0
        for block in checked(blocks, once=True)():
            total += float(self.score_samples(block).sum())
            n += len(block)
        if n == 0:
            raise ValueError(NO_ROWS)
        return total / n

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean log-likelihood of the rows in nats, weighted by `sample_weight` (N,)."""
        del y
        each = self.score_samples(X)
        if self._is_lazy(X):
            refuse_weights(sample_weight, "a Dask array")
            return float(each.mean().compute())
        return float(np.average(each, weights=row_weights(sample_weight, len(each))))

    def sample(
        self, n_samples: int = 1, random_state: Any = None, *, return_supports: bool = False
    ) -> Any:
        """Draw rows (n_samples, D) from the model, in the dtype it was fitted in.

        The same seed gives the same rows. `random_state` defaults to that of the estimator. With
        `return_supports` it also returns the components (n_samples, K) bool that each row uses.
        """
        check_is_fitted(self)
        rng = generator(self.random_state if random_state is None else random_state)
        rows, Z = self._posterior().sample(rng, n_samples)
        return (rows, Z.astype(bool)) if return_supports else rows

    @property
    def chain_levels_(self) -> ChainLevels:
        """Mean log-posterior of each chain, and whether averages use the chain; after sampling."""
        check_is_fitted(self, "posterior_")
        return levels(self.posterior_["log_posterior"])

    def _keep_draws(self, chains: Chains[Any]) -> Self:
        """Keep what was drawn, and the draws that queries average over; return the estimator.

        Components were published before. Warns where chains stay on lower peaks.
        """
        self.posterior_ = chains.posterior
        if not self.chain_levels_.counts.all():
            warnings.warn(self.chain_levels_.why, stacklevel=4)
        self.query_draws_ = choose(self.posterior_, self.components_, MOST_DRAWS)
        return self._ended(chains.log_likelihoods.mean(axis=0), chains.stop_reason)

    @_samples  # type: ignore[untyped-decorator]
    def published(self) -> Self:
        """Return a fitted copy that answers from the published draw alone, as after EM."""
        check_is_fitted(self)
        alone = copy.copy(self)
        for name in ("posterior_", "query_draws_"):
            alone.__dict__.pop(name, None)
        return alone

    @_samples  # type: ignore[untyped-decorator]
    def to_arviz(self) -> "InferenceData":
        """Return the draws as InferenceData of ArviZ; only after sampling."""
        check_is_fitted(self, "posterior_")
        return to_arviz(self.posterior_)

    @_samples  # type: ignore[untyped-decorator]
    def component_bands(self, level: float = 0.9) -> Array:
        """Credible bands (2, K, D) of the entries of components: lower and upper ends.

        The ends are quantiles over `query_draws_` after alignment, so each entry is between them
        with posterior probability `level`. A draw that lacks a component is left out for it.
        """
        check_is_fitted(self, "query_draws_")
        return component_bands(self.query_draws_, self.components_, level)

    @_samples  # type: ignore[untyped-decorator]
    def score_bands(self, X: Any, level: float = 0.9) -> Array:
        """Credible bands (2, N, K) of the scores x * z of rows: lower and upper ends.

        The ends are quantiles over supports and scores that are drawn for every row at each of
        `query_draws_`; rows with many supports use some of them, at least 40. The band is zero
        for a component that a row certainly does not use.
        """
        check_is_fitted(self, "query_draws_")
        X, _ = self._asked(X)
        posterior = AveragedPosterior(self._posterior(), self.query_draws_)
        bands = posterior.bands_of(generator(0), X, level)  # the same rows have the same bands
        return bands / self.scale_ if self.whiten else bands

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        em = getattr(self, "inference", "em") == "em"
        tags.input_tags.allow_nan = self._takes_gaps and em
        tags.input_tags.sparse = self._takes_sparse
        return tags
