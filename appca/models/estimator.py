"""Base of all estimators: checks of X, queries, criteria, order of components, files.

Queries use the posterior given the fitted parameters, or `blocks` for Dask arrays, `gaps` for
missing entries, and `draws` after sampling.
"""

import copy
import functools
import io
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted, check_random_state

from appca.models import data_checks
from appca.models.blocks import NO_ROWS, Blocks, NamedBlocks, lazily
from appca.models.chains import ChainLevels, Chains, Draws, levels, to_arviz
from appca.models.draws import MOST_DRAWS, AveragedPosterior, QueryDraws, choose, component_bands
from appca.models.gaps import PosteriorWithGaps
from appca.models.numerics import Array
from appca.models.posterior import ALL, MAP, Description, Posterior, RowEstimate, refuse_support
from appca.models.rows import ShiftedSparse, is_incomplete, is_sparse, sparse_rows
from appca.models.settings import refuse_parameters
from appca.storage import files, packed
from appca.storage.files import numbered
from appca.words import InputError

if TYPE_CHECKING:
    from arviz import InferenceData

LARGEST_NUMBER = 2**63 - 1
POSTERIOR, DRAWS = "posterior_", "draws_"  # prefixes of all draws, and of draws for queries
_OF_MODEL = ("components", "latent_variance", "explained_variance", "scale", "weights")
_DRAWN = (*_OF_MODEL, "Z_mean", "X_mean")
# axis of components in each array
_AXES = dict.fromkeys(_OF_MODEL, 0) | dict.fromkeys(("scores", "active", "inclusion"), 1)
_AXES |= {DRAWS + name: 1 for name in _DRAWN} | {POSTERIOR + name: 2 for name in _DRAWN}
_TURNED = {p + n for p in ("", DRAWS, POSTERIOR) for n in ("components", "X_mean")} | {"scores"}


def arranged(
    arrays: Mapping[str, NDArray[Any]], order: Sequence[int], signs: Sequence[int]
) -> dict[str, NDArray[Any]]:
    """Return the arrays with component ``order[j]`` at index j, flipped if ``signs[j]`` is -1."""
    K, turned = len(order), np.flatnonzero(np.asarray(signs) == -1)
    result = dict(arrays)
    for name, values in arrays.items():
        axis = _AXES.get(name, values.ndim)
        if values.ndim <= axis or values.shape[axis] < K:
            continue
        result[name] = moved = values.take([*order, *range(K, values.shape[axis])], axis)
        if name in _TURNED and len(turned):
            place = (slice(None),) * axis + (turned,)
            moved[place] = 0 - moved[place]  # avoids -0.0 for unused components
    return result


ESTIMATOR = "estimator.json"  # entry that identifies the NPZ file of a saved estimator
CURVE = "log_likelihoods"
_VARIANCES = ("latent_variance_", "explained_variance_", "scale_", "n_active_")
PREPROCESSING = "pre_"  # prefix of the preprocessing's array names


def write(path: Path | str, model: Any, behind: Any = None) -> None:
    """Write a fitted estimator to a file, with the preprocessing of a `Preprocessed`."""
    facts = {
        "estimator": type(model).__name__,
        "parameters": {k: _plain(v) for k, v in model.get_params(deep=False).items()},
        "n_iter": int(model.n_iter_),
        "stop_reason": model.stop_reason_,
        "features": [str(name) for name in getattr(behind or model, "feature_names_in_", ())],
    }
    arrays = model.fitted_arrays() | {CURVE: model.log_likelihoods_}
    if behind is not None:
        facts["preprocessing"] = behind.preprocessing.to_dict()
        learned = behind.preprocessing_.arrays()
        arrays |= {PREPROCESSING + name: value for name, value in learned.items()}
    buffer, members = io.BytesIO(), {f"{name}.npy": value for name, value in arrays.items()}
    packed.write(buffer, {ESTIMATOR: numbered(facts)}, members)
    files.write(Path(path), buffer.getvalue())


def _plain(value: Any) -> Any:
    """Convert a parameter to JSON; functions and generators become None."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool) else None


def generator(random_state: Any) -> Generator:
    """Return a Generator for any `random_state` of scikit-learn; None uses NumPy's global state."""
    return np.random.default_rng(check_random_state(None) if random_state is None else random_state)


def whole_or_not(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Restore the estimator if its fit fails or is interrupted."""

    @functools.wraps(fit)
    def fit_or_put_back(self: Any, *args: Any, **settings: Any) -> Any:
        before = self.__dict__.copy()
        try:
            return fit(self, *args, **settings)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    return fit_or_put_back


class Estimator(BaseEstimator):  # type: ignore[misc]
    """Base of estimators whose fitted attributes can be saved and restored."""

    _model: ClassVar[str]  # its name in `settings.MODELS`
    # names of the attributes that queries need, and of attributes that only some fits have
    _fitted: ClassVar[tuple[str, ...]] = ("components_", "mean_", "noise_variance_", *_VARIANCES)
    _extensions: ClassVar[tuple[str, ...]] = ()
    _takes_gaps: ClassVar[bool] = False  # whether rows may have gaps, be a Dask array, or sparse
    _estimates: ClassVar[bool] = False  # whether log-likelihoods may be estimates

    components_: Array
    mean_: Array
    noise_variance_: Any
    latent_variance_: Array
    explained_variance_: Array
    scale_: Array
    n_active_: int
    log_likelihoods_: Array
    n_iter_: int
    stop_reason_: str
    posterior_: Draws
    query_draws_: QueryDraws

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        for name in {"fit", "fit_blocks"} & cls.__dict__.keys():
            setattr(cls, name, whole_or_not(cls.__dict__[name]))

    def _validated(self, X: Any, *, reset: bool) -> Any:
        sparse = "csr" if get_tags(self).input_tags.sparse else False
        if reset:
            refuse_parameters(self._model, self.get_params(deep=False))
        shifted = X if isinstance(X, ShiftedSparse) else None
        how: dict[str, Any] = {"dtype": [np.float64, np.float32], "ensure_all_finite": False}
        how |= {"accept_sparse": sparse, "ensure_min_samples": 2 if reset else 1}
        values = X if shifted is None else shifted.values
        checked = data_checks.checked_rows(self, values, reset=reset, **how)
        if not isinstance(checked, np.ndarray):
            return shifted or sparse_rows(checked)
        data_checks.refuse_not_finite(checked, gaps=self._takes_gaps)
        return data_checks.without_subnormal(checked) if reset else checked

    def _without(self, *names: str) -> Self:
        alone = copy.copy(self)
        for name in names:
            alone.__dict__.pop(name, None)
        return alone

    def _forget_fit(self) -> None:
        for name in ("posterior_", "query_draws_", "_stepwise", "_last_fit", *self._extensions):
            self.__dict__.pop(name, None)

    def _ended(self, log_likelihoods: Any, stop_reason: str) -> Self:
        """Record the likelihoods of a fit; return the estimator."""
        self.log_likelihoods_ = np.array(log_likelihoods)
        self.n_iter_ = len(self.log_likelihoods_)
        self.stop_reason_ = stop_reason
        return self

    def fitted_arrays(self) -> dict[str, Array]:
        """Return all arrays needed for queries about new rows, by name without the underscore."""
        check_is_fitted(self)
        names = *self._fitted, *(name for name in self._extensions if hasattr(self, name))
        arrays = {name[:-1]: np.asarray(getattr(self, name)) for name in names}
        if hasattr(self, "query_draws_"):
            draws = self.query_draws_._asdict().items()
            arrays |= {DRAWS + name: values for name, values in draws if values is not None}
        return arrays

    def restore(self, arrays: dict[str, Array]) -> Self:
        """Restore a fitted estimator from its `fitted_arrays`; ValueError if one is missing.

        Queries return the same results as before. `posterior_`, all draws, is not restored.
        """
        missing = [name[:-1] for name in self._fitted if name[:-1] not in arrays]
        msg = f"arrays must contain the fit of {type(self).__name__}, but "
        msg += f"{', '.join(missing)} is missing: fit the model again."
        data_checks.refuse_where({msg: bool(missing)})
        self._forget_fit()
        for name in (*self._fitted, *self._extensions):
            if name[:-1] in arrays:
                value = arrays[name[:-1]]
                setattr(self, name, value.item() if value.ndim == 0 else value)
        draws = {name: arrays.get(DRAWS + name) for name in QueryDraws._fields}
        if draws["chain"] is not None:
            self.query_draws_ = QueryDraws(**draws)  # type: ignore[arg-type]
        self.n_features_in_ = self.components_.shape[1]
        return self

    def reorder(self, order: Sequence[int], signs: Sequence[int] | None = None) -> Self:
        """Reorder the components, flip the signs of some, and return the estimator.

        Parameters
        ----------
        order : sequence of int, length K
            Component ``order[j]``, counted from 0, becomes row j of `components_`. InputError
            unless every component occurs once.
        signs : sequence of int, length K, optional
            1, or -1 to flip the sign of the component that becomes row j, and of its scores.
        """
        K, places = len(self.fitted_arrays()["components"]), [int(row) for row in order]
        turned = [1] * K if signs is None else [int(sign) for sign in signs]
        if sorted(places) != list(range(K)) or len(turned) != K or not set(turned) <= {1, -1}:
            msg = f"order must contain each of 0 to {K - 1} once, and signs {K} numbers 1 or -1; "
            msg += f"got {places!r:.60} and {turned!r:.60}."
            raise InputError(msg)
        draws = getattr(self, "posterior_", None)
        self.restore(arranged(self.fitted_arrays(), places, turned))
        if draws is not None:
            every = {POSTERIOR + name: values for name, values in draws.items()}
            moved = arranged(every, places, turned)
            self.posterior_ = {name.removeprefix(POSTERIOR): a for name, a in moved.items()}
        return self

    def save(self, path: Path | str) -> None:
        """Save the fitted estimator; `appca.load_model` restores it bit for bit.

        The NPZ file, without pickle, omits callbacks, generators as `random_state`, `posterior_`.
        """
        write(path, self)


_takes_gaps = available_if(lambda model: model._takes_gaps)
_samples = available_if(lambda model: hasattr(model, "n_draws"))


class Queries(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):  # type: ignore[misc]
    """Queries of a fitted model y = W (x * z) + mu + e, where z marks the components of a row.

    After sampling, `query_draws_` contains the draws over which queries average, in the order and
    signs of the published components: at most 100 draws of the chains in use (`chain_levels_`), and
    at most 32 MB of components. Rows with more than 256 supports use some of the draws, at least 8.
    """

    whiten: bool
    random_state: Any
    _posterior: ClassVar[Any]  # () -> the `PosteriorOfDraw` given the fitted parameters

    def _refuse_gaps(self) -> None:
        """Raise ValueError if this model does not support missing entries."""

    def _asked(self, X: Any, support: str = "auto") -> tuple[Array, Posterior]:
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        posterior: Any = self._posterior()
        if self._takes_gaps and is_incomplete(X):
            self._refuse_gaps()
            return X, PosteriorWithGaps(posterior)
        if support != MAP and hasattr(self, "query_draws_"):
            return X, AveragedPosterior(posterior, self.query_draws_)
        return X, posterior

    def transform(self, X: Any, support: str = "auto") -> Any:
        """Return posterior mean scores (N, K), divided by their `scale_` with `whiten`.

        Parameters
        ----------
        X : (N, D) rows. aPPCA and PPCA also accept NaN, sparse matrices and Dask arrays.
        support : {"auto", "all", "map"}
            "all": E[x * z | y], averaged over all supports (if there are too many, given the MAP
            support) and, after sampling, over draws. "map": given each row's most probable
            support; after sampling, at the published draw. "auto": "all" after sampling, else
            "map".
        """
        refuse_support(support)
        scale = self.scale_ if self.whiten and hasattr(self, "scale_") else None

        def answer(rows: Any, X: Array) -> Array:
            H: Array = rows.expected(X) if support == ALL else rows.scores(X)
            return (H if scale is None else H / scale.astype(H.dtype)).astype(X.dtype, copy=False)

        return self._ask("transform", X, answer, support=support)

    def inverse_transform(self, X: Any, support: str = "auto") -> Array:
        """Return the data (N, D) for scores (N, K), dense or sparse: W scores + mean.

        After sampling, W and the mean are averages over draws, unless support="map".
        """
        refuse_support(support)
        check_is_fitted(self)
        scores = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
        K = len(self.components_)
        msg = f"X must have {K} columns, one per component; got {scores.shape[1]} columns."
        data_checks.refuse_where({msg: scores.shape[1] != K})
        components, mean = self.components_, self.mean_
        if support != MAP and hasattr(self, "query_draws_"):
            components, mean = AveragedPosterior(self._posterior(), self.query_draws_).means()
        if self.whiten:
            times = self.scale_.astype(scores.dtype)
            scores = scores.multiply(times).tocsr() if is_sparse(scores) else scores * times
        return np.asarray(scores @ components.astype(scores.dtype) + mean.astype(scores.dtype))

    def allocate(self, X: Any, support: str = "auto") -> Any:
        """Return the components that each row uses, (N, K) bool.

        "map": each row's most probable support. "all", and "auto" after sampling: the L components
        with the largest inclusion probabilities; if L is not fixed, all above one half.
        """
        refuse_support(support)
        return self._ask("allocate", X, lambda rows, X: rows.supports(X, support), support=support)

    def _ask(self, question: str, X: Any, answer: Callable[[Any, Array], Array], **how: str) -> Any:
        """Answer a query about rows, lazily for a Dask array."""
        if self._takes_gaps and data_checks.is_dask(X):
            return lazily(self, question, X, **how)
        X, posterior = self._asked(X, **how)
        return answer(posterior, X)

    def inclusion_probabilities(self, X: Any) -> Any:
        """Return the probability p(z_nk = 1 | observed y_n) that a row uses a component, (N, K).

        A row sums to L if L is fixed. In draws that lack a component, no row uses it.
        """
        return self._ask("inclusion_probabilities", X, lambda rows, X: rows.inclusion(X))

    def allocation_probability(self, X: Any) -> Any:
        """Return the posterior probability (N,) of each row's support; below 0.5 it is doubtful."""
        return self._ask("allocation_probability", X, lambda rows, X: rows.membership(X))

    def score_samples(self, X: Any) -> Any:
        """Return the log-likelihood log p(y_n) of each row's observed entries, (N,) in nats.

        The result is exact unless supports are too many (see `describe`). After sampling, it is
        the log of the average of p(y_n) over draws, the posterior predictive density.
        """
        return self._ask("score_samples", X, lambda rows, X: rows.log_likelihood(X))

    @available_if(lambda model: model._estimates)  # type: ignore[untyped-decorator]
    def estimate_score_samples(self, X: Any) -> RowEstimate:
        """Return the log-likelihood log p(y_n) of every row with its standard error and method.

        A new row uses existing components only, each with its prior probability.
        """
        X, posterior = self._asked(X)
        rows = posterior.summary(X)
        return RowEstimate(rows.log_likelihood, rows.error, rows.method)

    def describe(self, X: Any) -> Description:
        """Return the results of all queries about rows in memory at once.

        After sampling, log-likelihood and inclusion are averages over draws; all other results are
        for the published draw. Raises ValueError for a Dask array.
        """
        msg = "describe must have its rows in memory; got a Dask array: "
        msg += "compute it first, in parts if it is large."
        data_checks.refuse_where({msg: self._takes_gaps and data_checks.is_dask(X)})
        X, posterior = self._asked(X)
        return posterior.description(X)

    @_takes_gaps  # type: ignore[untyped-decorator]
    def impute(self, X: Any) -> Array:
        """Return a copy of X (N, D) with each missing entry (NaN) replaced by its posterior mean.

        E[y_d | observed y_n] = mu_d + w_d' E[x_n * z_n | observed y_n], over all supports.
        """
        X, posterior = self._asked(X)
        msg = "impute fills missing entries, but a sparse X has none: pass an array."
        data_checks.refuse_where({msg: is_sparse(X)})
        return posterior.imputed(X) if isinstance(posterior, PosteriorWithGaps) else X.copy()

    def _of_blocks(self, question: str, blocks: Blocks) -> Iterator[Array]:
        check_is_fitted(self)
        ask = getattr(self._without("feature_names_in_"), question)
        names = getattr(self, "feature_names_in_", None)
        yield from map(ask, NamedBlocks(blocks, names, once=True)())

    def transform_blocks(self, blocks: Blocks) -> Iterator[Array]:
        """Yield the scores (n_i, K) of each block of rows (n_i, D), as `transform` does."""
        return self._of_blocks("transform", blocks)

    def score_blocks(self, blocks: Blocks) -> float:
        """Return the mean log-likelihood, in nats, of all rows in the blocks."""
        sums = [(each.sum(), len(each)) for each in self._of_blocks("score_samples", blocks)]
        data_checks.refuse_where({NO_ROWS: not sums})
        total, n = np.sum(sums, axis=0)
        return float(total / n)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean log-likelihood of the rows in nats, weighted by `sample_weight` (N,)."""
        del y
        each = self.score_samples(X)
        if self._takes_gaps and data_checks.is_dask(X):
            data_checks.refuse_weights(sample_weight, "a Dask array")
            return float(each.mean().compute())
        return float(np.average(each, weights=data_checks.row_weights(sample_weight, len(each))))

    def sample(
        self, n_samples: int = 1, random_state: Any = None, *, return_supports: bool = False
    ) -> Any:
        """Draw rows (n_samples, D) from the model, in the dtype of the fit.

        Equal seeds (by default, the estimator's) give equal rows. With `return_supports`, it also
        returns the components (n_samples, K) bool that each row uses.
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

    def _keep_draws(self, chains: Chains) -> Self:
        self.posterior_ = chains.posterior
        if not self.chain_levels_.counts.all():
            warnings.warn(self.chain_levels_.why, stacklevel=5)
        self.query_draws_ = choose(self.posterior_, self.components_, MOST_DRAWS)
        return self._ended(chains.log_likelihoods.mean(axis=0), chains.stop_reason)

    @_samples  # type: ignore[untyped-decorator]
    def published(self) -> Self:
        """Return a fitted copy that uses only the published draw, as after EM."""
        check_is_fitted(self)
        return self._without("posterior_", "query_draws_")

    @_samples  # type: ignore[untyped-decorator]
    def to_arviz(self) -> "InferenceData":
        """Return the draws as InferenceData of ArviZ; only after sampling."""
        check_is_fitted(self, "posterior_")
        data: InferenceData = to_arviz(self.posterior_)
        return data

    @_samples  # type: ignore[untyped-decorator]
    def component_bands(self, level: float = 0.9) -> Array:
        """Return credible bands (2, K, D) of the entries of components: lower and upper ends.

        Each entry is inside with probability `level`, over the draws that contain its component.
        """
        check_is_fitted(self, "query_draws_")
        return component_bands(self.query_draws_, self.components_, level)

    @_samples  # type: ignore[untyped-decorator]
    def score_bands(self, X: Any, level: float = 0.9) -> Array:
        """Return credible bands (2, N, K) of the scores x * z of rows: lower and upper ends.

        Quantiles over at least 40 supports and scores drawn at `query_draws_`, or some of them.
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
        inference = getattr(self, "inference", "em")
        tags.input_tags.allow_nan = self._takes_gaps and inference == "em"
        tags.input_tags.sparse = self._takes_gaps and inference != "gibbs"
        return tags


class Criteria(Queries):
    """Queries, panel numbers and information criteria of models with L of K active."""

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the panel number (N,) of each row: the rank of its support.

        Panels are numbered in the order of `itertools.combinations(range(K), L)`, for any data.
        """
        check_is_fitted(self)
        K, L = len(self.components_), self.n_active_
        msg = "predict numbers the panels of exactly L components, but n_active is 'learned': "
        msg += "use allocate, which returns the components themselves."
        data_checks.refuse_where({msg: hasattr(self, "size_probabilities_")})
        active = np.asarray(self.allocate(X))
        msg = f"predict numbers at most 2^63 panels, but {L} of {K} components give more: "
        msg += "use allocate, which returns the components themselves."
        data_checks.refuse_where({msg: math.comb(K, L) > LARGEST_NUMBER})
        counts = np.array([[math.comb(n, k) for k in range(L + 1)] for n in range(K)], np.int64)
        left = L - np.cumsum(active, axis=1) + active  # number of members from k on
        # If a row lacks component k, all panels that contain k and its earlier members come first.
        skipped = np.where(left > 0, counts[np.arange(K - 1, -1, -1), np.maximum(left - 1, 0)], 0)
        return np.asarray(np.where(active, 0, skipped).sum(axis=1), np.int64)

    def get_covariance(self) -> Array:
        """Return the covariance (D, D) of rows under the model, E[u] (E|z|/K W T W' + Psi).

        |z| is L unless sizes are learned; u is 1 unless row scales are learned; Psi is sigma2 I
        unless noise="feature".
        """
        W, share, scale = self._averages()
        C: Array = share * (W.T * self.latent_variance_) @ W
        C.flat[:: len(C) + 1] += self.noise_variance_
        return C * scale

    def _averages(self) -> tuple[Array, float, float]:
        """Components (K, D) in float64, E|z| / K and E[u]."""
        check_is_fitted(self)
        K, sizes = len(self.components_), getattr(self, "size_probabilities_", None)
        share = (self.n_active_ if sizes is None else np.arange(K + 1) @ sizes) / K
        p = getattr(self, "row_scale_probabilities_", np.ones(1))
        scale = p @ getattr(self, "row_scale_values_", np.ones(1))
        return self.components_.astype(np.float64), float(share), float(scale)

    @property
    def explained_variance_ratio_(self) -> Array:
        """Explained variance (K,) over a row's total variance under the model, about `mean_`."""
        W, share, scale = self._averages()
        total = share * np.sum(self.latent_variance_ * np.square(W).sum(axis=1))
        noise = W.shape[1] * float(np.mean(self.noise_variance_))
        return np.asarray(self.explained_variance_ / (scale * (total + noise)))

    def _n_loadings(self) -> int:
        """Count the free parameters of K orthonormal columns."""
        K, psi = len(self.components_), self.noise_variance_
        D = int((psi > 0.0).sum() if np.ndim(psi) else self.components_.shape[1])  # that vary
        all_of_them = self.n_active_ == K and not hasattr(self, "size_probabilities_")
        if all_of_them and getattr(self, "latent_variance", "") == "shared":
            return K * (D - K)  # only the span is identified
        return D * K - K * (K + 1) // 2

    def _n_variances(self) -> int:
        """Count the variances and the probabilities of scales and sizes that are estimated."""
        learned = {"shared": 1, "component": len(self.components_)}
        latent = learned.get(str(getattr(self, "latent_variance", "shared")), 0)
        noise = int((np.atleast_1d(self.noise_variance_) > 0.0).sum())
        scales = len(getattr(self, "row_scale_probabilities_", [1])) - 1
        return latent + noise + scales + len(getattr(self, "size_probabilities_", [1])) - 1

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters, for `bic` and `aic`."""
        check_is_fitted(self)
        mean = 0 if getattr(self, "mean", "learned") == "zero" else self.components_.shape[1]
        return self._n_loadings() + mean + self._n_variances()

    def bic(self, X: Any) -> float:
        """Return the Bayesian information criterion on X; lower is better."""
        total = np.asarray(self.score_samples(X))
        return float(self.n_parameters_ * math.log(len(total)) - 2.0 * total.sum())

    def aic(self, X: Any) -> float:
        """Return the Akaike information criterion on X; lower is better."""
        return float(2 * self.n_parameters_ - 2.0 * self.score_samples(X).sum())
