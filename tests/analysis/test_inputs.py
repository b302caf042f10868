"""Every kind of rows and columns gives the answers of a dense array and of plain lists."""

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp

from appca import AdaptivePPCA, association, drift, enrichment, rule, variance_by

N = 90
NAMES = list("abcdef")
RNG = np.random.default_rng(0)
X = np.where(RNG.random((N, 6)) < 0.3, 0.0, RNG.normal(size=(N, 6)) + 1.0)
FRAME = pd.DataFrame(X, columns=NAMES)
CLASSES = np.arange(N) % 3
ROWS = {
    "float32": lambda: X.astype(np.float32),
    "big-endian": lambda: X.astype(">f4"),
    "long double": lambda: X.astype(np.longdouble),
    "list": X.tolist,
    "objects": lambda: X.astype(object),
    "masked": lambda: np.ma.MaskedArray(X),
    "pandas": lambda: FRAME.set_axis(np.arange(N)[::-1]),
    "nullable": lambda: FRAME.astype("Float64"),
    "arrow": lambda: FRAME.astype("double[pyarrow]"),
    "table of pyarrow": lambda: pa.table(FRAME),
    "numbered columns": lambda: FRAME.set_axis(range(6), axis=1),
    "several levels": lambda: FRAME.set_axis(pd.MultiIndex.from_product([["p"], NAMES]), axis=1),
    "polars": lambda: pytest.importorskip("polars").DataFrame(dict(FRAME)),
    "coo": lambda: sp.coo_array(X),
    "sparse frame": lambda: pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(X)),
    "dask": lambda: pytest.importorskip("dask.array").from_array(X, chunks=(40, 6)),
}
FUNCTIONS = {
    "association": lambda m, Z: association(
        m, Z, {"t": CLASSES}, n_permutations=19, random_state=0
    ),
    "rule": lambda m, Z: pd.DataFrame(rule(m, Z, X[:, 0] > 1).clauses),
    "drift": lambda m, Z: drift(m, Z, Z, n_permutations=19),
    "enrichment": lambda m, Z: enrichment(m, Z, {"s": NAMES[:5]}, NAMES, n_rotations=19),
    "variance_by": lambda m, Z: variance_by(m, Z, classes=CLASSES),
}


@pytest.fixture(scope="module")
def models():
    return [AdaptivePPCA(3, 1, random_state=0).fit(Z) for Z in (X, FRAME)]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("kind", ROWS)
def test_rows_of_every_kind_give_the_same_answer(models, kind, function):
    Z = ROWS[kind]()
    model = models[kind in ("pandas", "nullable", "arrow", "table of pyarrow", "polars")]
    found, expected = (FUNCTIONS[function](model, rows) for rows in (Z, FRAME))
    numbers = [table.select_dtypes("number").to_numpy(float) for table in (found, expected)]
    np.testing.assert_allclose(*numbers, rtol=1e-4, atol=1e-4)


DAYS = [datetime.date(2026, 1, 1) + datetime.timedelta(days=int(day)) for day in CLASSES * 9]
COLUMNS = [
    ([str(value) for value in CLASSES], pd.Series(CLASSES, dtype="Int64")),
    (CLASSES, pd.Categorical(CLASSES)),
    (CLASSES, CLASSES * 1.0),
    ((CLASSES > 0).tolist(), pd.Series(CLASSES > 0, dtype="boolean[pyarrow]")),
    (DAYS, pd.Series(pd.to_datetime(DAYS))),
    (DAYS, np.array(DAYS, dtype="M8[D]")),
    (X[:, 1].tolist(), pd.Series(X[:, 1], dtype="Float64")),
]


@pytest.mark.parametrize(("plain", "typed"), COLUMNS, ids=lambda values: type(values).__name__)
def test_columns_of_every_type_give_the_answer_of_a_plain_list(models, plain, typed):
    def answers(column):
        tests = association(models[0], X, {"t": column}, n_permutations=39, random_state=0)
        made = rule(models[0], X, X[:, 0] > 1, {"t": column})
        shares = variance_by(models[0], X, classes=column)["share"]
        selected = made.select(models[0], X, {"t": column})
        return tests["p"].sum(), made.clauses, selected.sum(), len(shares), round(shares.sum(), 9)

    gap = pd.Series(typed).mask(np.arange(N) == 0)
    assert answers(gap) == answers([None, *list(plain)[1:]])
