"""Artificial fitted runs with given arrays, and defaults for all others."""

from typing import Any

import numpy as np

from appca.analysis.fitted import DescribedRows, FittedModel, FittedRun
from appca.data.preprocessing import Fitted
from appca.runs.run import RunInfo


def fitted_model(components: np.ndarray | None = None, k: int = 2, **given: Any) -> FittedModel:
    """Return a model of K components, by default the first axes."""
    W = np.eye(k, max(k, 1)) if components is None else components
    K, D = W.shape
    plain: dict[str, Any] = {
        "mean": np.zeros(D),
        "noise_variance": 1.0,
        "latent_variance": np.ones(K),
        "explained_variance": np.ones(K),
        "scale": np.ones(K),
        "preprocessing": Fitted(1.0, np.zeros(D), np.ones(D), None),
        "log_likelihoods": np.array([-1.0]),
    }
    return FittedModel(components=W, **(plain | given))


def described_rows(active: np.ndarray, **given: Any) -> DescribedRows:
    """Return rows that use the active components (N, K), by default with scores 1."""
    N = len(active)
    plain: dict[str, Any] = {
        "scores": active.astype(np.float32),
        "inclusion": active.astype(np.float32),
        "membership": np.ones(N, np.float32),
        "error": np.ones(N, np.float32),
        "log_likelihood_rows": np.zeros(N),
    }
    return DescribedRows(active=active, **(plain | given))


def fitted_run(active: np.ndarray, **given: Any) -> FittedRun:
    """Return a run of rows that use the active components (N, K)."""
    of_rows = set(DescribedRows.__dataclass_fields__)
    rows = described_rows(active, **{name: given.pop(name) for name in of_rows & set(given)})
    beside = {name: given.pop(name) for name in {"posterior", "imputed"} & set(given)}
    return fitted_model(k=active.shape[1], **given).with_rows(rows, **beside)


def info_of(**given: Any) -> RunInfo:
    """Return facts of a fit, with defaults."""
    plain = {"n_iter": 3, "stop_reason": "converged", "log_likelihood": -1.5, "likelihood": "exact"}
    plain |= {"likelihood_error": 0.0, "n_rows": 30, "n_features": 7, "versions": {}}
    return RunInfo.from_dict(plain | {"seconds": 0.1} | given)


def differing(one: FittedRun, other: FittedRun) -> list[str]:
    """Return the names of the arrays whose bits differ between two runs."""
    first, second = one.to_arrays(), other.to_arrays()
    return sorted(
        name
        for name in first.keys() | second.keys()
        if name not in first
        or name not in second
        or (first[name].dtype, first[name].shape) != (second[name].dtype, second[name].shape)
        or first[name].tobytes() != second[name].tobytes()
    )
