"""Rows of every kind that people have, made from a dense array (N, D), NaN where missing."""

import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp

NAMES = list("abcdefgh")


def frame(X: np.ndarray) -> pd.DataFrame:
    """Return rows with names."""
    return pd.DataFrame(X, columns=NAMES[: X.shape[1]])


def _mapped(X: np.ndarray) -> np.ndarray:
    with tempfile.NamedTemporaryFile() as file:
        X.tofile(file.name)
        return np.memmap(file.name, X.dtype, "r", shape=X.shape)


def _read_only(X: np.ndarray) -> np.ndarray:
    X = np.asfortranarray(X)
    X.flags.writeable = False
    return X


def _masked(X: np.ndarray) -> np.ma.MaskedArray:
    missing = np.isnan(X)
    return np.ma.MaskedArray(np.where(missing, -9999.0, X), missing)


def _several_levels(X: np.ndarray) -> pd.DataFrame:
    return frame(X).set_axis(pd.MultiIndex.from_product([["p"], NAMES[: X.shape[1]]]), axis=1)


def _dask(X: np.ndarray) -> Any:
    return pytest.importorskip("dask.array").from_array(X, chunks=(len(X) // 3, X.shape[1]))


def _none(X: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(X), None, X.astype(object))


KINDS: dict[str, Callable[[np.ndarray], Any]] = {
    "float32": lambda X: X.astype(np.float32),
    "read-only, by columns": _read_only,
    "big-endian": lambda X: X.astype(">f8"),
    "list": lambda X: _none(X).tolist(),
    "objects": _none,
    "masked": _masked,
    "memory map": _mapped,
    "pandas": lambda X: frame(X).set_axis(np.arange(len(X))[::-1]),
    "nullable": lambda X: frame(X).astype("Float64"),
    "Arrow-backed": lambda X: frame(X).astype("Float64").astype("double[pyarrow]"),
    "objects of pandas": lambda X: frame(X).astype(object),
    "numbered columns": pd.DataFrame,
    "several levels": _several_levels,
    "pyarrow": lambda X: pa.Table.from_pandas(frame(X)),
    "polars": lambda X: pytest.importorskip("polars").from_pandas(frame(X)),
    "csr": sp.csr_array,
    "coo": sp.coo_matrix,
    "sparse frame": lambda X: pd.DataFrame.sparse.from_spmatrix(
        sp.csr_matrix(X), columns=NAMES[: X.shape[1]]
    ),
    "Dask": _dask,
    "Dask, masked": lambda X: pytest.importorskip("dask.array").ma.masked_invalid(_dask(X)),
    "Dask frame": lambda X: pytest.importorskip("dask.dataframe").from_pandas(frame(X), 3),
}
