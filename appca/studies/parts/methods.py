"""The methods that table 1 compares, all asked in the same way.

A sampled model is taken at its kept draw of largest posterior density. Every reconstruction is the
posterior mean of the scores on the row's most probable set of factors, times the loadings.
"""

import math
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from appca.models.algebra.loop import Callback, Progress


class Task(NamedTuple):
    """What a method is given."""

    Y: np.ndarray  # (N, D) rows to fit
    fresh: np.ndarray  # (M, D) rows of the same model, for the held-out log-likelihood
    n_components: int  # K
    n_active: int  # L
    most_active: int  # factors of the row that uses most
    burn_in: int
    n_draws: int
    seed: int
    callback: "Callback | None"


class MethodFit(NamedTuple):
    """What it gives back."""

    R: np.ndarray  # (N, D) reconstruction of the rows it was fitted to
    components: np.ndarray  # (M, D)
    Z: np.ndarray  # (N, M) bool
    log_likelihood: float  # of a fresh row, mean, nats
    standard_error: float  # of one row's number, mean; 0 where exact
    how: str  # the log-likelihood was come by
    seconds: float  # of the fit alone


class ComparedMethod(NamedTuple):
    """A row of the table."""

    title: str
    paper: str | None  # the row of the paper's table that it answers to
    make: Callable[[Task], Any]  # an estimator; None where it would repeat another one
    note: str  # what was chosen


MOST_BEYOND = 10  # factors that isFA may use beyond K; its prior is conditioned on that
CLIMB = 30  # passes of EM before aFA is sampled: enough to begin near, the chain goes on from there


def fit(method: ComparedMethod, task: Task) -> MethodFit | None:
    """Fit, reconstruct, and ask for the likelihood of the fresh rows; None if left out."""
    estimator = method.make(task)
    if estimator is None:
        return None
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn warns where it stops at its last iteration
        estimator.fit(task.Y)
    seconds = time.perf_counter() - began
    if hasattr(estimator, "published"):  # one draw has supports and scores to compare
        estimator = estimator.published()
    H = estimator.transform(task.Y)
    if hasattr(estimator, "estimate_score_samples"):
        Z, estimate = estimator.allocate(task.Y), estimator.estimate_score_samples(task.fresh)
        fresh, error, how = estimate.log_likelihood, float(estimate.error.mean()), estimate.method
    else:
        Z, fresh = np.ones(H.shape, dtype=bool), estimator.score_samples(task.fresh)
        error, how = 0.0, "exact"
    R = H @ estimator.components_ + estimator.mean_
    return MethodFit(R, estimator.components_, Z, float(fresh.mean()), error, how, seconds)


def _factor_analysis(n_components: int, seed: int) -> Any:
    from sklearn.decomposition import FactorAnalysis

    return FactorAnalysis(n_components, random_state=seed)


def _afa(task: Task, n_active: int | None = None, **settings: Any) -> Any:
    from appca.models.adaptive_fa import AdaptiveFactorAnalysis

    settings |= {"random_state": task.seed, "callback": task.callback}
    L = task.n_active if n_active is None else n_active
    return AdaptiveFactorAnalysis(task.n_components, L, **settings)


def _afa_most(task: Task) -> Any:
    return None if task.most_active == task.n_active else _afa(task, task.most_active)


def _afa_gibbs(task: Task) -> Any:
    quiet = task._replace(callback=_of_sweeps(task.callback))
    return _afa(quiet, inference="gibbs", max_iter=CLIMB, **_chain(task))


def _of_sweeps(callback: "Callback | None") -> "Callback | None":
    """Tell iterations of the start as none yet: the fit can be ended there, but no bar moves."""
    if callback is None:
        return None

    def heard(progress: "Progress") -> None:
        sampling = progress.stage in ("burn-in", "draws")
        callback(progress if sampling else progress._replace(iteration=0))

    return heard


def _chain(task: Task) -> dict[str, int]:
    return {"n_chains": 1, "burn_in": task.burn_in, "n_draws": task.n_draws}


def _sparse(task: Task) -> dict[str, Any]:
    return {**_chain(task), "random_state": task.seed, "callback": task.callback}


def _fsfa(task: Task) -> Any:
    from appca.models.finite_sparse_fa import FiniteSparseFA

    return FiniteSparseFA(task.n_components, **_sparse(task))


def _isfa(task: Task, alpha: Any = "infer") -> Any:
    from appca.models.infinite_sparse_fa import InfiniteSparseFA

    most = task.n_components + MOST_BEYOND
    return InfiniteSparseFA(most, alpha=alpha, **_sparse(task))


def _isfa_k(task: Task) -> Any:
    from appca.models.sampling.conditionals import harmonic

    return _isfa(task, task.n_components / harmonic(len(task.Y)))


METHODS: dict[str, ComparedMethod] = {
    "fa_k": ComparedMethod(
        "FA, K factors",
        "FA",
        lambda task: _factor_analysis(task.n_components, task.seed),
        "scikit-learn's FactorAnalysis",
    ),
    "fa_l": ComparedMethod(
        "FA, L factors",
        None,
        lambda task: _factor_analysis(task.n_active, task.seed),
        "as many factors as aFA gives to one row",
    ),
    "fsfa": ComparedMethod("fsFA, Gibbs", "fsFA", _fsfa, "K factors, alpha inferred"),
    "isfa_k": ComparedMethod(
        "isFA, Gibbs, alpha for K",
        "isFA",
        _isfa_k,
        f"alpha = K / H_N, so that K factors are expected; at most K + {MOST_BEYOND}",
    ),
    "isfa": ComparedMethod(
        "isFA, Gibbs, alpha inferred", "isFA", _isfa, f"at most K + {MOST_BEYOND} factors"
    ),
    "afa_gibbs": ComparedMethod(
        "aFA, Gibbs", "aFA Gibbs", _afa_gibbs, f"begun by {CLIMB} iterations of EM from ICA"
    ),
    "afa_paper": ComparedMethod(
        "aFA, EM, the paper's start",
        "aFA EM",
        partial(_afa, init="pca", allocation="best", mean="sample"),
        "from principal components, one set a row, sample mean",
    ),
    "afa": ComparedMethod(
        "aFA, EM", "aFA EM", _afa, "default settings: from independent components"
    ),
    "afa_most": ComparedMethod(
        "aFA, EM, L of the fullest row",
        "aFA EM",
        _afa_most,
        "only where rows use different numbers of factors",
    ),
}


def active_for(Z: np.ndarray) -> int:
    """Choose the L that aFA is given: the mean number of factors of a row, rounded, at least 1."""
    return max(1, math.floor(float(Z.sum(axis=1).mean()) + 0.5))
