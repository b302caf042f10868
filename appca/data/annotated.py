"""Annotated data (AnnData) in memory: the values that a model is fitted to, and what names rows."""

from typing import TYPE_CHECKING, Any

import numpy as np

from appca.words import refuse_if, shortened, unknown

if TYPE_CHECKING:
    import pandas as pd
    from anndata import AnnData

HIGHLY_VARIABLE = "highly_variable"
MOST_CATEGORIES = 1000  # of a column that rows are coloured by


def values_of(
    adata: "AnnData",
    layer: str | None,
    use_rep: str | None,
    features: np.ndarray | None,
    *,
    sparse: bool = False,
) -> Any:
    """Return the values (n_obs, D) that are fitted, in memory.

    `features` are a mask or places of the variables; None takes all. With `sparse` a sparse matrix
    stays one. Raises InputError when there is no such layer or key.
    """
    refuse_if(
        None not in (layer, use_rep),
        f"Give layer or use_rep, not both; got {layer!r} and {use_rep!r}.",
    )
    if use_rep is not None:
        values = _named("key", use_rep, adata.obsm, "obsm")
    else:
        values = adata.X if layer is None else _named("layer", layer, adata.layers, "layers")
    no_values = "This AnnData has no X; name a layer by layer=, or a key of obsm by use_rep=."
    refuse_if(values is None, no_values)
    values = values.to_memory() if hasattr(values, "to_memory") else values  # sparse and on disk
    part = values if features is None else values[:, features]
    return part.tocsr() if sparse and hasattr(part, "tocsr") else dense(part)


def dense(values: Any) -> np.ndarray:
    """Return a matrix as an array of float32 or float64; a sparse one is filled with its zeros."""
    array = values.toarray() if hasattr(values, "toarray") else np.asarray(values)
    is_number = array.dtype.kind in "buif"
    refuse_if(not is_number, f"The values must be numbers; got an array of type {array.dtype}.")
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def _named(kind: str, wanted: str, parts: Any, place: str) -> Any:
    if wanted not in parts:
        error = unknown(kind, wanted, parts.keys(), f" in {place}")
        raise error
    return parts[wanted]


def features_of(adata: "AnnData", mask_var: "str | np.ndarray | None") -> np.ndarray:
    """Return a mask (n_vars,) of the variables to fit."""
    if isinstance(mask_var, str) and (mask_var != HIGHLY_VARIABLE or mask_var in adata.var):
        mask_var = _named("column", mask_var, adata.var, "var").to_numpy()
    if mask_var is None or isinstance(mask_var, str):
        return np.ones(adata.n_vars, bool)
    mask = np.asarray(mask_var)
    refuse_if(
        mask.shape != (adata.n_vars,) or mask.dtype != bool,
        f"mask_var is a column of var, or True or False for each of the {adata.n_vars:,} "
        f"variables; got {shortened(mask.dtype)} of shape {mask.shape}.",
    )
    return mask


def distinct_names(names: Any) -> np.ndarray:
    """Return names (n,), those that repeat an earlier one with a number: "MATR3", "MATR3-1"."""
    taken: dict[str, int] = {}
    distinct = []
    for name in map(str, names):
        free = name
        while free in taken:
            taken[name] += 1
            free = f"{name}-{taken[name]}"
        taken[free] = 0
        distinct.append(free)
    return np.array(distinct, dtype=object)


def labels_of(obs: "pd.DataFrame") -> dict[str, np.ndarray]:
    """Return the columns that rows can be coloured by, (N,) each; categories come before numbers.

    Columns of words with more than 1,000 different ones are left out, as barcodes are.
    """
    import pandas as pd

    words, numbers = {}, {}
    for name, column in obs.items():
        kind = column.dtype
        if pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind):
            values = column.to_numpy(np.float64, na_value=np.nan)
            numbers[str(name)] = np.where(np.isfinite(values), values, np.nan)
        elif column.nunique() <= MOST_CATEGORIES:
            texts = column.astype(object).where(column.notna(), "")
            words[str(name)] = texts.to_numpy(str)
    return words | numbers
