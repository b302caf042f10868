"""Tests of all types of rows: results equal those for a dense array, or there is an error."""

import re
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from matplotlib.figure import Figure

from appca import (
    PPCA,
    AdaptiveFactorAnalysis,
    AdaptivePPCA,
    FiniteSparseFA,
    InfiniteSparseFA,
    NonparametricPPCA,
    PearsonResiduals,
    association,
    drift,
    enrichment,
    explore,
    frames,
    plot_map,
    plot_subspaces,
    rule,
    save_html,
    variance_by,
)
from appca.canvas.widget import Explorer

NAMES = list("abcdefgh")


def frame(X: np.ndarray) -> pd.DataFrame:
    """Return rows as a data frame."""
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

NAMED = [kind for kind in KINDS if re.search("pandas|nullable|Arrow|arrow|polars|frame", kind)]
WITH_FUNCTIONS = ("float32", "objects", "masked", "numbered columns", "nullable")
N, D = 36, 5
FEW = {"max_iter": 2, "init": "pca", "random_state": 0}
SHORT = {"burn_in": 1, "n_draws": 2, "n_chains": 1, "random_state": 0}
MODELS = {
    "aPPCA": AdaptivePPCA(3, 1, **FEW),
    "aPPCA, best supports": AdaptivePPCA(3, 1, inference="hard", **FEW),
    "aPPCA, sizes": AdaptivePPCA(3, "learned", row_scale="learned", **FEW),
    "aPPCA, noise": AdaptivePPCA(3, 1, noise="feature", **FEW),
    "aPPCA, Gibbs": AdaptivePPCA(3, 1, inference="gibbs", chain_starts="init", **FEW | SHORT),
    "aFA": AdaptiveFactorAnalysis(3, 1, **FEW),
    "fsFA": FiniteSparseFA(3, init="pca", **SHORT),
    "isFA": InfiniteSparseFA(max_components=4, init="pca", **SHORT),
    "NPPCA": NonparametricPPCA(3, **SHORT),
    "PPCA": PPCA(3),
    "Pearson": PearsonResiduals(),
}
QUESTIONS = (
    *("transform", "score_samples", "score", "inclusion_probabilities", "allocate", "predict"),
    *("allocation_probability", "describe", "impute", "row_scales", "size_probabilities"),
    *("bic", "aic", "estimate_score_samples", "score_bands"),
)
IN_BLOCKS = ("score_blocks", "transform_blocks")
FITS = ("fit", "partial_fit", "fit_blocks")
# All convert rows by one function, which the last test checks. Types that become dense float64
# arrays are tested with three models: with missing values, without, and one that samples.
CASES = [
    (name, kind)
    for name in MODELS
    for kind in KINDS
    if name in ("aPPCA", "aFA", "fsFA") or re.match("float32|csr|coo|sparse|Dask", kind)
]
ONE_SENTENCE = r"[^\n]{20,300}\."
REFUSED = {
    "csr|coo|sparse": "Sparse data was passed|fills missing entries, but a sparse X",
    "Dask": "rows in memory|the sampler needs all rows|chunk . of its rows contains NaN",
}


def rows(*, gaps: bool) -> np.ndarray:
    rng = np.random.default_rng(0)
    W = np.linalg.qr(rng.normal(size=(D, 3)))[0]
    X = (np.eye(3)[np.arange(N) % 3] * rng.normal(size=(N, 3)) * 3) @ W.T
    X = np.abs(X + 0.4 * rng.normal(size=(N, D)) + 1)
    X[X < 0.5] = 0.0
    if gaps:
        X[::7, 2] = np.nan
    return X


def saved(model: Any, X: Any, table: Any) -> int:
    with tempfile.TemporaryDirectory() as folder:
        save_html(path := Path(folder) / "a.html", model, X, table)
        return path.stat().st_size


X, COLUMN = rows(gaps=False), {"class": np.arange(N) % 3}
FUNCTIONS = {
    "association": lambda m, X, table: association(m, X, table, n_permutations=9, random_state=0),
    "rule": lambda m, X, table: rule(m, X, np.arange(N) % 3 == 0, table),
    "drift": lambda m, X, _table: drift(m, X, X, n_permutations=9),
    "enrichment": lambda m, X, _table: enrichment(
        m, X, {"s": ["a", "b"]}, list("abcde"), least=2, n_rotations=9
    ),
    "variance_by": lambda m, X, table: variance_by(m, X, classes=table["class"]),
    "explore": explore,
    "save_html": saved,
    "plot_subspaces": lambda m, X, table: plot_subspaces(m, X, table["class"]),
    "plot_map": lambda m, X, table: plot_map(
        m, X, table["class"], coordinates=rows(gaps=False)[:, :2]
    ),
}


def plain(answer: Any) -> Any:
    """Convert a result to arrays of numbers."""
    if isinstance(answer, Figure):
        answer = tuple(dots.get_offsets() for axes in answer.axes for dots in axes.collections)
    elif isinstance(answer, Explorer):
        parts = answer._scene["buffers"].values()
        answer = tuple(np.frombuffer(part, np.uint8) for part in parts)
    elif isinstance(answer, pd.DataFrame):  # tests with equal q have no order
        answer = np.sort(answer.select_dtypes("number").to_numpy(), axis=0)
    if isinstance(answer, tuple):
        return [plain(part) for part in answer if part is not None and not isinstance(part, str)]
    return np.asarray(answer.toarray() if hasattr(answer, "toarray") else answer, float)


def asked(call: Callable[[], Any]) -> Any:
    """Return the result of a call, or its error message."""
    try:
        answer = call()
        answer = answer.compute() if hasattr(answer, "compute") else answer
    except (ValueError, TypeError) as error:
        return str(error)
    return plain(answer)


def fitted(model: Any, X: Any, way: str = "fit") -> Any:
    model = model.__class__(**model.get_params())
    getattr(model, way)([X[:15], X[15:]] if way == "fit_blocks" else X)
    return model


def learned(model: Any, X: Any, way: str) -> tuple[Any, ...]:
    """Fit to rows of some type; return results for dense rows, and the components."""
    model = fitted(model, X, way)
    model.__dict__.pop("feature_names_in_", None)
    names = ("components_", "noise_variance_", "mean_", "proportions_")
    say = getattr(model, "score_samples", model.transform)
    return say(rows(gaps=False)), *(getattr(model, name, None) for name in names)


def in_blocks(ask: Callable[[Any], Any], X: Any) -> np.ndarray:
    answer = ask([X[:15], X[15:]])
    answer = [answer] if isinstance(answer, float) else answer
    return np.vstack([np.atleast_1d(part) for part in answer])


def calls(name: str, known: Any, X: Any, *, parts: bool = True) -> dict[str, Callable[[], Any]]:
    """Return all queries of a model about rows and, for one model, all functions."""
    there = {
        ask: getattr(known, ask) for ask in QUESTIONS + IN_BLOCKS * parts if hasattr(known, ask)
    }
    if getattr(known, "n_active", None) != "learned":
        there.pop("size_probabilities", None)
    fits = [way for way in FITS[: 2 + parts] if hasattr(known, way)]
    functions = FUNCTIONS if name == "aPPCA" else {}
    return (
        {way: partial(learned, MODELS[name], X, way) for way in fits}
        | {ask: partial(in_blocks, there[ask], X) for ask in there if ask in IN_BLOCKS}
        | {ask: partial(there[ask], X) for ask in there if ask not in IN_BLOCKS}
        | {ask: partial(function, known, X, COLUMN) for ask, function in functions.items()}
    )


def difference(one: Any, other: Any) -> float:
    if isinstance(one, list):
        return max((difference(*pair) for pair in zip(one, other, strict=True)), default=0.0)
    assert one.shape == other.shape
    assert (np.isnan(one) == np.isnan(other)).all()
    return float(np.nanmax(np.abs(one - other) / (1.0 + np.abs(one)), initial=0.0))


@pytest.fixture(scope="module")
def dense() -> dict[str, Any]:
    known = {name: fitted(model, X) for name, model in MODELS.items()}
    both = [rows(gaps=gaps) for gaps in (False, True)]
    return {
        name: (
            model,
            [{ask: asked(call) for ask, call in calls(name, model, Z).items()} for Z in both],
        )
        for name, model in known.items()
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_rows_of_every_kind_get_the_answer_of_a_dense_array_or_one_sentence(dense, name, kind):
    known, expected = dense[name]
    parts = not re.search("list|coo|Dask frame", kind)
    refused = next((why for kinds, why in REFUSED.items() if re.match(kinds, kind)), "(?!)")
    for gaps, wanted in zip((False, True), expected, strict=True):
        if gaps and kind in ("csr", "coo", "sparse frame"):
            continue
        Z = KINDS[kind](rows(gaps=gaps))
        for question, call in calls(name, known, Z, parts=parts).items():
            if question in FUNCTIONS and not (
                re.match("csr|coo|sparse|Dask", kind) or (gaps and kind in WITH_FUNCTIONS)
            ):
                continue  # tested below with names; otherwise equal to a dense array
            right, found, of = wanted[question], asked(call), (question, gaps)
            if isinstance(right, str) or isinstance(found, str):
                assert isinstance(found, str), (of, right)
                assert isinstance(right, str) or re.search(refused, found), (of, found)
                assert re.fullmatch(ONE_SENTENCE, found), (of, found)
                continue
            if kind == "float32" and question == "explore":
                continue  # returns bytes
            # Fits may end elsewhere, because rows in parts are summed in another order.
            climbs = question in (*FITS, "drift") and re.match("float32|Dask|csr|coo|sparse", kind)
            rounded = kind == "float32" or question == "save_html"  # contains the names
            tolerance = 0.05 if climbs else 2e-3 if rounded else 1e-9
            assert difference(right, found) < tolerance, (of, difference(right, found))


@pytest.mark.parametrize("kind", NAMED)
def test_names_reach_every_path_and_another_order_is_refused(kind, dense, monkeypatch):
    named, parts = KINDS[kind](X), kind != "Dask frame"
    model = fitted(MODELS["aPPCA"], named)
    assert [*model.feature_names_in_] == NAMES[:D]
    assert {*drift(model, named, named, n_permutations=9)["column"]} > {*NAMES[:D]}
    right = dense["aPPCA"][1][0]
    for question, call in calls("aPPCA", model, named, parts=parts).items():
        found = asked(call)
        if isinstance(found, str) and not isinstance(right[question], str):
            assert re.search("in memory|a sparse X", found), (question, found)
    monkeypatch.setattr(sys.modules[__name__], "NAMES", ["b", "a", *NAMES[2:]])
    other = calls("aPPCA", model, KINDS[kind](X), parts=parts)
    for question in {*other} - {*FITS, "score_bands", "size_probabilities"}:
        assert re.search("names|in the same order|in memory", str(asked(other[question]))), question


class ConversionError(Exception):
    """The error of the replaced conversion."""


def refuse(*_args: Any, **_how: Any) -> None:
    raise ConversionError


def replaced(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Make a function of `frames` raise wherever it is imported."""
    function = getattr(frames, name)
    for module in [*sys.modules.values()]:
        if getattr(module, name, None) is function:
            monkeypatch.setattr(module, name, refuse)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_every_call_takes_its_rows_through_the_one_conversion(name, dense, monkeypatch):
    known, (expected, _) = dense[name]
    replaced(monkeypatch, "matrix_of")
    for question, call in calls(name, known, X).items():
        if not isinstance(expected[question], str):
            with pytest.raises(ConversionError):
                call()
