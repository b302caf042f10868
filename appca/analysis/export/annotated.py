"""What a fit adds to annotated data (AnnData): the same parts in memory and in an .h5ad file."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from appca.analysis.components.components import in_units_of_the_fit
from appca.analysis.explore.subspaces import Supports, supports
from appca.analysis.fitted import DescribedRows, FittedModel, FittedRun

PLAIN = (bool, int, float, str)  # settings that every version of anndata can write


class Additions(NamedTuple):
    """The parts that a fit adds, each by its key."""

    obsm: dict[str, np.ndarray]
    varm: dict[str, np.ndarray]
    uns: dict[str, dict[str, Any]]
    obs: dict[str, np.ndarray | Supports]


class AnnotatedFit(NamedTuple):
    """A fit, as a file of annotated data keeps it."""

    run: FittedRun
    params: Mapping[str, Any]  # settings; those with plain values are kept
    ratio: np.ndarray | None  # (K,) share of variance of the components


def additions(
    key: str,
    model: FittedModel,
    rows: DescribedRows,
    ratio: np.ndarray | None,
    params: Mapping[str, Any],
    features: np.ndarray | None,
    names: np.ndarray,
) -> Additions:
    """Return what a fit adds under a key, as "appca".

    That is ``obsm["X_appca"]``, ``varm["appca"]``, ``uns["appca"]``, ``obs["appca_support"]`` and
    ``obs["appca_probability"]``. `ratio` (K,) is the share of the variance that each component
    explains; of `params`, settings of the fit, only plain values are kept. `features` (n_vars,)
    says which variables the D features are, None where they are none; `names` (D,) are stored so
    that the model finds them again.
    """
    loadings = in_units_of_the_fit(model).T.astype(np.float32)
    varm = {}
    if features is not None:
        varm[key] = np.zeros((len(features), len(model.components)), np.float32)
        varm[key][features] = loadings
    uns = {
        "params": {name: value for name, value in params.items() if isinstance(value, PLAIN)},
        "variance": np.asarray(model.explained_variance),
        "features": np.asarray(names).astype(str).astype(object),
        "model": dict(model.model_arrays()),
    }
    uns |= {} if ratio is None else {"variance_ratio": np.asarray(ratio)}
    obs: dict[str, np.ndarray | Supports] = {f"{key}_support": supports(rows.active)}
    obs[f"{key}_probability"] = rows.membership
    return Additions({f"X_{key}": rows.scores}, varm, {key: uns}, obs)
