"""A model and the preprocessing of its rows, as one scikit-learn estimator."""

from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from appca.models.algebra.gaussian import Array
from appca.models.base.estimator import Description
from appca.models.base.saved import write
from appca.models.base.support_model import SupportModel
from appca.models.rows.steady_products import times


def _has(name: str) -> Any:
    """Offer a method only where the model behind the preprocessing has it."""
    return available_if(lambda self: hasattr(self.estimator, name))


class Preprocessed(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A model of `appca` that divides, centres, scales or reduces its rows first.

    `appca.load_model` returns it for files of the command line and of the app. Rows go in and come
    out in units of the data. Log-likelihoods and errors are those of the preprocessed rows, as the
    command line and the app show them.

    Parameters
    ----------
    estimator : one of the classes of `appca`
        `fit` fits a clone of it.
    preprocessing : appca.data.preprocessing.Preprocessing
        What is done to the rows first.

    Attributes
    ----------
    estimator_ : the model, fitted to preprocessed rows (N, D').
    preprocessing_ : appca.data.preprocessing.Fitted
    components_ : (K, D) what a score of 1 on each component adds to a row, in units of the data.
    mean_ : (D,) the row whose scores are zero, in units of the data.
    n_features_in_ : int, D.
    feature_names_in_ : (D,) names of the columns, if the data had names.
    """

    estimator_: Any
    preprocessing_: Any

    def __init__(self, estimator: Any, preprocessing: Any) -> None:
        self.estimator = estimator
        self.preprocessing = preprocessing

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the preprocessing and fit the model to X (N, D), NaN where missing."""
        del y
        X = self._checked(X, reset=True)
        missing = np.isnan(X)
        self.preprocessing_ = self.preprocessing.fit(X, missing=missing if missing.any() else None)
        self.estimator_ = clone(self.estimator).fit(self.preprocessing_.transform(X))
        for name in ("config", "info"):  # of the file of an earlier fit
            self.__dict__.pop(name, None)
        return self

    def _checked(self, X: Any, *, reset: bool) -> Array:
        kinds = [np.float64, np.float32, np.uint8]
        how = {"dtype": kinds, "order": "C", "ensure_all_finite": "allow-nan"}
        checked: Array = validate_data(self, X, reset=reset, **how)
        return checked

    def prepared(self, X: Any) -> Array:
        """Bring rows (N, D) to what the model was fitted to, (N, D')."""
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        # Draws about a row depend on its last bits, which must not depend on the other rows.
        steady = isinstance(self.estimator_, SupportModel) and self.preprocessing_.reduces
        rows: Array = self.preprocessing_.transform(X, *([times] if steady else []))
        return rows

    def _asked(self, query: str, X: Any, *more: Any) -> Any:
        rows = self.prepared(X)
        return getattr(self.estimator_, query)(rows, *more)

    def transform(self, X: Any, support: str = "auto") -> Array:
        """Scores (N, K), zero where a component is not used; after sampling averages over draws."""
        return np.asarray(self._asked("transform", X, support))

    def inverse_transform(self, X: Any, support: str = "auto") -> Array:
        """Return the rows (N, D) that scores (N, K) stand for."""
        check_is_fitted(self)
        rows = self.estimator_.inverse_transform(X, support)
        return np.asarray(self.preprocessing_.inverse_transform(rows))

    def allocate(self, X: Any, support: str = "auto") -> Array:
        """Which components each row uses, (N, K) bool."""
        return np.asarray(self._asked("allocate", X, support))

    @_has("predict")  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> Array:
        """Return the number (N,) of the panel of each row."""
        return np.asarray(self._asked("predict", X))

    def inclusion_probabilities(self, X: Any) -> Array:
        """Probability (N, K) that a row uses a component."""
        return np.asarray(self._asked("inclusion_probabilities", X))

    def allocation_probability(self, X: Any) -> Array:
        """Posterior probability (N,) of the support that `allocate` chose; below 0.5: doubtful."""
        return np.asarray(self._asked("allocation_probability", X))

    def score_samples(self, X: Any) -> Array:
        """Log-likelihood of each row after preprocessing, (N,) in nats."""
        return np.asarray(self._asked("score_samples", X))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log-likelihood of the rows after preprocessing, in nats."""
        return float(self._asked("score", X, y, sample_weight))

    def describe(self, X: Any) -> Description:
        """Say all of this of every row in one go."""
        described: Description = self._asked("describe", X)
        return described

    @_has("impute")  # type: ignore[untyped-decorator]
    def impute(self, X: Any) -> Array:
        """Copy of X (N, D) with the posterior mean of each missing entry (NaN) in its place."""
        rows = self._asked("impute", X)
        filled = self.preprocessing_.inverse_transform(rows)
        X = self._checked(X, reset=False)
        return np.asarray(np.where(np.isnan(X), filled, X))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draw rows (n_samples, D) from the model."""
        check_is_fitted(self)
        rows = self.estimator_.sample(n_samples, random_state)
        return np.asarray(self.preprocessing_.inverse_transform(rows))

    def save(self, path: Path | str) -> None:
        """Save the fitted estimator; `appca.load_model` gives it back, the same to the bit."""
        check_is_fitted(self)
        write(path, self.estimator_, self)

    @property
    def components_(self) -> Array:
        """What a score of 1 on each component adds to a row, (K, D)."""
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
