"""A model and the preprocessing of its rows, as one scikit-learn estimator."""

from functools import wraps
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from appca.models.data_checks import checked_rows
from appca.models.estimator import Criteria, Queries, whole_or_not, write
from appca.models.numerics import Array
from appca.models.products import times
from appca.models.rows import is_sparse, refuse_stored, sparse_rows


def _asked(inner: Any) -> Any:
    """Convert a model's query to one of rows in units of the data."""
    name = inner.__name__

    def query(self: "Preprocessed", X: Any, *more: Any, **how: Any) -> Any:
        rows = self.prepared(X)
        return getattr(self.estimator_, name)(rows, *more, **how)

    return available_if(lambda self: hasattr(self.estimator, name))(wraps(inner)(query))


class Preprocessed(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A model of `appca` with preprocessing of its rows.

    `appca.load_model` returns it for files of the command line and the app. Input and output rows
    are in units of the data. Log-likelihoods and errors are those of the preprocessed rows, as in
    the command line and the app.

    Parameters
    ----------
    estimator : one of the classes of `appca`
        `fit` fits a clone.
    preprocessing : appca.data.preprocessing.Preprocessing
        Steps applied to the rows before the fit.

    Attributes
    ----------
    estimator_ : the model, fitted to preprocessed rows (N, D').
    preprocessing_ : appca.data.preprocessing.Fitted
    components_ : (K, D) change of a row by a score of 1 on each component, in units of the data,
        or of the prepared data if a ``prepare`` is set.
    mean_ : (D,) the row whose scores are zero, in units of the data.
    n_features_in_ : int, D.
    feature_names_in_ : (D,) names of the columns, if the data had names.
    """

    estimator_: Any
    preprocessing_: Any

    def __init__(self, estimator: Any, preprocessing: Any) -> None:
        self.estimator = estimator
        self.preprocessing = preprocessing

    @whole_or_not
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the preprocessing and fit the model to X (N, D), NaN where missing."""
        del y
        X = self._checked(X, reset=True)
        missing = None if is_sparse(X) else np.isnan(X)
        some = missing is not None and missing.any()
        self.preprocessing_ = self.preprocessing.fit(X, missing=missing if some else None)
        self.estimator_ = clone(self.estimator).fit(self._transformed(X))
        for name in ("config", "info"):  # of an earlier fit, loaded from a file
            self.__dict__.pop(name, None)
        return self

    def _checked(self, X: Any, *, reset: bool) -> Any:
        kinds = [np.float64, np.float32, np.uint8]
        how = {"dtype": kinds, "order": "C", "ensure_all_finite": "allow-nan"}
        sparse = "csr" if get_tags(self.estimator).input_tags.sparse else False
        checked = checked_rows(self, X, reset=reset, accept_sparse=sparse, **how)
        if is_sparse(checked):
            refuse_stored(checked.data)
        return checked

    def _transformed(self, X: Any, *how: Any) -> Any:
        fitted = self.preprocessing_
        if not is_sparse(X) or fitted.reduces or fitted.prepare is not None:
            return fitted.transform(X, *how)
        floating = X.astype(np.float64 if X.dtype == np.float64 else np.float32)
        rows = sparse_rows(floating).scaled(columns=1.0 / (fitted.scale * fitted.divide))
        return rows - fitted.offset / fitted.scale if fitted.offset.any() else rows

    def prepared(self, X: Any) -> Any:
        """Return rows (N, D) preprocessed like those of the fit, (N, D')."""
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        # Estimates for a row depend on its last bits, which must not depend on the other rows.
        steady = self.estimator_._estimates and self.preprocessing_.reduces
        return self._transformed(X, *([times] if steady else []))

    def transform(self, X: Any, support: str = "auto") -> Array:
        """Return scores (N, K), zero for unused components; after sampling, averages over draws."""
        rows = self.prepared(X)
        return np.asarray(self.estimator_.transform(rows, support))

    allocate, predict = _asked(Queries.allocate), _asked(Criteria.predict)
    inclusion_probabilities = _asked(Queries.inclusion_probabilities)
    allocation_probability = _asked(Queries.allocation_probability)
    score_samples, score = _asked(Queries.score_samples), _asked(Queries.score)
    describe = _asked(Queries.describe)

    def inverse_transform(self, X: Any, support: str = "auto") -> Array:
        """Return the rows (N, D) that scores (N, K) reconstruct."""
        check_is_fitted(self)
        rows = self.estimator_.inverse_transform(X, support)
        return np.asarray(self.preprocessing_.inverse_transform(rows))

    @available_if(lambda self: hasattr(self.estimator, "impute"))  # type: ignore[untyped-decorator]
    def impute(self, X: Any) -> Array:
        """Impute each missing entry (NaN) in a copy of X (N, D) by its posterior mean."""
        rows = self.prepared(X)
        filled = self.preprocessing_.inverse_transform(self.estimator_.impute(rows))
        X = self._checked(X, reset=False)
        return np.asarray(np.where(np.isnan(X), filled, X))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draw rows (n_samples, D) from the model."""
        check_is_fitted(self)
        rows = self.estimator_.sample(n_samples, random_state)
        return np.asarray(self.preprocessing_.inverse_transform(rows))

    def save(self, path: Path | str) -> None:
        """Save the fitted estimator; `appca.load_model` restores it bit for bit."""
        check_is_fitted(self)
        write(path, self.estimator_, self)

    @property
    def components_(self) -> Array:
        """Change of a row by a score of 1 on each component, (K, D)."""
        return np.asarray(self.preprocessing_.directions(self.estimator_.components_.T).T)

    @property
    def mean_(self) -> Array:
        """Row (D,) whose scores are zero."""
        return np.asarray(self.preprocessing_.inverse_transform(self.estimator_.mean_[None])[0])

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names (K,) of the scores, such as adaptiveppca0."""
        return self.estimator_.get_feature_names_out(input_features)

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.input_tags, tags.transformer_tags = inner.input_tags, inner.transformer_tags
        return tags
