"""Pearson residuals of counts, a preprocessing step."""

from typing import Any, Literal, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from appca.models.data_checks import checked_rows, refuse_not_finite, refuse_where
from appca.models.estimator import whole_or_not
from appca.models.numerics import Array, inverse_or_zero
from appca.models.rows import ShiftedSparse, is_sparse, refuse_stored, sparse_rows


class PearsonResiduals(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Pearson residuals: deviations of counts from expected counts, in standard deviations.

    (x - mu) / sqrt(mu + mu^2 / theta), clipped to [-clip, clip], where mu is the sum of the row
    times the share of the feature in all counts. These are the residuals of
    `scanpy.experimental.pp.normalize_pearson_residuals`, whose defaults are theta=100 and
    clip="sqrt".

    For sparse counts, Poisson residuals without clipping (the default) are a sparse matrix minus a
    matrix of rank one. Other residuals are dense, with 8 N D bytes (4 N D in float32).

    Parameters
    ----------
    theta : float
        Overdispersion of the negative binomial; infinite for Poisson counts.
    clip : float or "sqrt"
        Maximum absolute residual; "sqrt" means the square root of the number of fitted rows.

    Attributes
    ----------
    proportions_ : (D,) share of each feature in all counts of the fit.
    clip_ : float
    n_features_in_ : int, D.

    References
    ----------
    J. Lause, P. Berens, D. Kobak, "Analytic Pearson residuals for normalization of single-cell
    RNA-seq UMI data", Genome Biology 22, 258 (2021).

    Examples
    --------
    >>> import scipy.sparse
    >>> from appca import AdaptivePPCA, PearsonResiduals
    >>> X = scipy.sparse.random_array((300, 40), density=0.2, rng=0).ceil()
    >>> model = PearsonResiduals().fit(X)
    >>> AdaptivePPCA(4, 2, random_state=0).fit_transform(model.transform(X)).shape
    (300, 4)
    """

    proportions_: Array
    clip_: float

    def __init__(self, theta: float = np.inf, clip: float | Literal["sqrt"] = np.inf) -> None:
        self.theta = theta
        self.clip = clip

    @whole_or_not
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the shares of features from counts X (N, D), an array or a sparse matrix.

        Raises ValueError if counts are negative or all zero, or theta or clip is not positive.
        """
        del y
        msg = "theta and clip must be positive numbers, or clip 'sqrt'; got "
        msg += f"theta={self.theta!r} and clip={self.clip!r}."
        refuse_where({msg: not (self.clip == "sqrt" or self.clip > 0) or not self.theta > 0})
        X = self._checked(X, reset=True)
        totals = np.ones(X.shape[0]) @ X if is_sparse(X) else X.sum(axis=0, dtype=np.float64)
        msg = "X must contain counts above 0, but all are 0: check how the data were read."
        refuse_where({msg: not totals.any()})
        self.proportions_ = totals / totals.sum()
        self.clip_ = float(np.sqrt(X.shape[0]) if self.clip == "sqrt" else self.clip)
        return self

    def transform(self, X: Any) -> Any:
        """Return residuals (N, D) of counts X (N, D), sparse for sparse counts if possible.

        `set_output` for data frames makes them dense.
        """
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        sparse, usual = is_sparse(X), get_config()["transform_output"]
        sums = np.asarray(X @ np.ones(X.shape[1]) if sparse else X.sum(axis=1, dtype=np.float64))
        frames = getattr(self, "_sklearn_output_config", {}).get("transform", usual) != "default"
        if sparse and np.isinf(self.theta) and np.isinf(self.clip_) and not frames:
            # (x - r p) / sqrt(r p) = x / sqrt(r p) - sqrt(r) sqrt(p)
            by_row, by_column = np.sqrt(sums), np.sqrt(self.proportions_)
            counts = sparse_rows(X).scaled(inverse_or_zero(by_row), inverse_or_zero(by_column))
            return ShiftedSparse(counts.values, by_row[:, None], by_column[None])
        X, mu = X.toarray() if sparse else X, np.outer(sums, self.proportions_)
        residuals: Array = (X - mu) * inverse_or_zero(np.sqrt(mu + np.square(mu) / self.theta))
        np.clip(residuals, -self.clip_, self.clip_, out=residuals)
        return residuals.astype(X.dtype, copy=False)

    def _checked(self, X: Any, *, reset: bool) -> Any:
        how = {"dtype": [np.float64, np.float32], "accept_sparse": "csr"}
        X = checked_rows(self, X, reset=reset, ensure_all_finite=False, **how)
        if is_sparse(X):
            refuse_stored(X.data)
        else:
            refuse_not_finite(X)
        least = X.min() if X.shape[0] else 0.0
        msg = "Negative values in data: X must contain counts of at least 0; got "
        msg += f"{least:g}: pass the original counts."
        refuse_where({msg: least < 0})
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
