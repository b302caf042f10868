"""Probabilistic PCA in closed form (Tipping & Bishop 1999)."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from appca.models.blocks import dask_rows, is_dask, names_of
from appca.models.climb import EMControl
from appca.models.data_checks import counted_rows, refuse_constant, refuse_sizes, refuse_weights
from appca.models.em import EMSettings, floor_of
from appca.models.estimator import Criteria, Queries, generator
from appca.models.gaps import fit_incomplete, initial_imputation, publish_incomplete
from appca.models.loop import Callback, spoken
from appca.models.numerics import Array
from appca.models.posterior import posterior_of, publish_subspace
from appca.models.rows import Observations, about, centre_of, is_incomplete
from appca.models.settings import refuse_parameters
from appca.models.spectrum import principal
from appca.models.starts import closed_form
from appca.models.stiefel import polar
from appca.models.threads import single_threaded_blas

MAX_ITER, TOL = 500, 1e-4  # of EM with missing entries; TOL in nats per row over ten passes


@dataclass(eq=False, repr=False)
class PPCA(Criteria, Queries):
    """Probabilistic PCA: y = W x + mu + e, every component active in every row.

    The maximum of the likelihood in closed form; with missing entries (NaN) by exact EM. The noise
    variance is the mean of all D - q discarded eigenvalues, zeros included with fewer rows than
    features; scikit-learn's `PCA` averages only min(N, D) - q.

    Parameters
    ----------
    n_components : int
        Number q of components, at most min(N - 1, D).
    whiten : bool
        Divide scores by their root mean square over the training rows.
    random_state : int, Generator, RandomState or None
        For `sample`, and for the start of an iterative eigensolver beyond 3,000 rows and features.
    callback : callable or None
        Called with a `Progress` once an iteration, if entries are missing. StopIteration ends the
        fit and keeps its state; any other exception leaves the estimator as it was.
    verbose : bool or int
        Print a line for each iteration.

    Attributes
    ----------
    components_ : (K, D) orthonormal rows, by descending variance, largest entry positive.
    mean_ : (D,) sample mean; with missing entries learned.
    noise_variance_ : float, sigma2.
    latent_variance_ : (K,) eigenvalues less the noise variance.
    explained_variance_ : (K,) mean square of the latent coordinate.
    scale_ : (K,) root mean square of the training scores.
    log_likelihoods_ : (1,) total log-likelihood of the training rows, nats; with missing entries
        (n_iter_,) that of the observed ones, after each iteration.
    n_iter_, stop_reason_ : 1 and "closed form"; with missing entries as EM went.

    Examples
    --------
    >>> import numpy as np
    >>> from appca import PPCA
    >>> X = np.random.default_rng(0).standard_normal((100, 5)) * [3, 2, 1, 1, 1]
    >>> model = PPCA(n_components=2).fit(X)
    >>> model.components_.shape
    (2, 5)
    """

    _model: ClassVar[str] = "PPCA"
    _takes_gaps: ClassVar[bool] = True
    _posterior = posterior_of

    n_components: int = 2
    _: KW_ONLY
    whiten: bool = False
    random_state: Any = None
    callback: Callback | None = None
    verbose: bool | int = False

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to X (N, D), array-like or sparse matrix, and return the estimator.

        X is float32 or float64, NaN where missing; a sparse matrix has no missing entries.

        Of a Dask array, which must be whole, only sums of D x D numbers travel. `sample_weight`
        (N,) says how often each row counts; not with missing entries.
        """
        del y
        if is_dask(X):
            refuse_weights(sample_weight, "a Dask array")
            refuse_parameters(self._model, self.get_params(deep=False))
            chunks = dask_rows(X)
            refuse_sizes(self.n_components, chunks.n, chunks.d)
            self._named_features(chunks.d, names_of(X))
            return self._fit_rows(X, chunks)
        X = self._validated(X, reset=True)
        X, weights = counted_rows(X, sample_weight)
        refuse_sizes(self.n_components, *X.shape)
        if is_incomplete(X):
            refuse_weights(sample_weight, "missing entries")
            return self._fit_incomplete(X)
        return self._fit_rows(X, about(X, centre_of(X, weights), weights))

    def _fit_rows(self, X: Any, rows: Observations) -> Self:
        refuse_constant(rows)
        with single_threaded_blas():
            leading = principal(generator(self.random_state), rows, self.n_components)
        state = closed_form(rows, leading, floor_of(rows))
        second = np.maximum(leading.values - state.noise, 0.0) * rows.mass
        publish_subspace(self, rows, state, self.n_components, second)
        weights = getattr(rows, "weights", None)
        each = np.average(self._without("feature_names_in_").score_samples(X), weights=weights)
        return self._ended([each * rows.mass], "closed form")

    def _n_variances(self) -> int:
        return 1 + len(self.components_)

    def _fit_incomplete(self, X: Array) -> Self:
        rows, K = initial_imputation(X), self.n_components
        refuse_constant(rows)
        settings = EMSettings(K, K, "component", True, False, polar, floor_of(rows))
        callback = spoken(self.callback, len(X)) if self.verbose else self.callback
        control = EMControl(settings, callback, MAX_ITER, TOL, True, len(X))
        with single_threaded_blas():
            fitted = fit_incomplete(generator(self.random_state), X, rows, [], control)
            publish_incomplete(self, X, rows.origin, fitted, K)
        return self
