"""Probabilistic PCA in closed form (Tipping & Bishop 1999)."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from appca.models.adaptive_ppca import SubspaceModel
from appca.models.loop import Callback

TOL = SubspaceModel.tol


@dataclass(eq=False, repr=False)
class PPCA(SubspaceModel):
    """Probabilistic PCA, y = W x + mu + e: every row uses every component.

    The likelihood is maximized in closed form or, with missing entries (NaN), by exact EM. The
    noise variance is the mean of all D - q discarded eigenvalues, including zeros if N < D;
    scikit-learn's `PCA` averages only min(N, D) - q.

    Parameters
    ----------
    n_components : int
        Number q of components, at most min(N - 1, D).
    whiten : bool
        Divide scores by their root mean square over the training rows.
    random_state : int, Generator, RandomState or None
        Seed of `sample`, and of the iterative eigensolver above 3,000 rows and features.
    callback : callable or None
        Called with a `Progress` in each iteration. StopIteration ends the fit and keeps its state;
        any other exception leaves the estimator unchanged.
    verbose : bool or int
        Print a line for each iteration.

    Attributes
    ----------
    components_ : (K, D) orthonormal rows, by decreasing variance, with the largest entry positive.
    mean_ : (D,) sample mean; learned if entries are missing.
    noise_variance_ : float, sigma2.
    latent_variance_ : (K,) eigenvalues minus the noise variance.
    explained_variance_ : (K,) mean square of the latent coordinate.
    scale_ : (K,) root mean square of the training scores.
    log_likelihoods_ : (1,) total log-likelihood of the training rows, in nats; with missing
        entries, (n_iter_,) that of the observed entries after each iteration.
    n_iter_, stop_reason_ : 1 and "closed form"; with missing entries, as in EM.

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
    n_active = property(lambda model: model.n_components, doc="L, which is K here.")

    n_components: int = 2
    _: KW_ONLY
    whiten: bool = False
    random_state: Any = None
    callback: Callback | None = None
    verbose: bool | int = False
