"""The kind of a column is decided by its values, whatever library, dtype or gaps it has."""

from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from appca import AdaptivePPCA, association, rule, variance_by
from appca.frames import (
    class_names,
    column_of,
    columns_of,
    joined,
    matrix_of,
    named_columns,
    numbers_of,
)
from appca.words import InputError

N = 60
WHOLE = np.arange(N) % 3
GAP = [None, *WHOLE[1:].tolist()]
FINE = np.linspace(0.0, 1.0, N)
DAYS = [date(2026, 1, 1) + timedelta(days=int(i)) for i in range(N)]


@pytest.mark.parametrize(
    "values",
    [
        GAP,
        np.r_[np.nan, WHOLE[1:]],
        np.array(GAP, dtype=object),
        np.ma.MaskedArray(WHOLE, mask=np.arange(N) == 0),
        pd.Series(pd.array(GAP, dtype="Int64")),
        pd.array(GAP, dtype="Int64"),
        pd.Series(GAP, dtype="int64[pyarrow]"),
        pd.Series(pd.Categorical(np.r_[np.nan, WHOLE[1:]])),
        pd.Categorical(np.r_[np.nan, WHOLE[1:]]),
        pa.chunked_array([GAP]),
        ["", *(f"{value}.0" for value in WHOLE[1:])],
        ["", *map(str, WHOLE[1:])],
        [Decimal("NaN"), *map(Decimal, WHOLE[1:].tolist())],
    ],
    ids=lambda values: type(values).__name__,
)
def test_a_gap_neither_makes_numbers_of_classes_nor_renames_them(values):
    column = column_of("x", values)
    assert (column.kind, sorted(column.names)) == ("class", ["0", "1", "2"])
    assert np.flatnonzero(~column.there).tolist() == [0]
    assert class_names(values)[1:].tolist() == WHOLE[1:].astype(str).tolist()
    assert class_names(column).tolist() == class_names(values).tolist()


@pytest.mark.parametrize(
    ("values", "kind", "names"),
    [
        *((FINE.astype(dtype), "number", ()) for dtype in (float, "f2", ">f8", str, object)),
        (pd.Series([None, *FINE[1:]], dtype="double[pyarrow]"), "number", ()),
        *((values, "number", ()) for values in (np.arange(N), np.r_[np.inf, FINE[1:]])),
        (pd.to_timedelta(np.arange(N), "s"), "number", ()),
        (WHOLE > 0, "class", ("False", "True")),
        (pd.Series([None, *(WHOLE[1:] > 0)], dtype="boolean"), "class", ("True", "False")),
        ([True, None, *(WHOLE[2:] > 0).tolist()], "class", ("True", "False")),
        (2**60 + WHOLE, "class", tuple(str(2**60 + i) for i in range(3))),
        (["1E5", "2E3"] * 30, "class", ("1E5", "2E3")),
        (["007", "7"] * 30, "class", ("007", "7")),
        ([" a", "a", "NA"] * 20, "class", ("a", "NA")),
        ([1, "a", 2.5] * 20, "class", ("1", "a", "2.5")),
        (pd.Series(["a", None] * 30, dtype="string[pyarrow]"), "class", ("a",)),
        *((days, "date", ()) for days in (DAYS, [day.isoformat() for day in DAYS])),
        (pd.Series(pd.to_datetime(DAYS)), "date", ()),
        (pd.Series(pd.to_datetime(DAYS).tz_localize("CET")), "date", ()),
        ([None, *DAYS[1:]], "date", ()),
        (["2026-99-99", "2026-01-01"] * 30, "class", ("2026-99-99", "2026-01-01")),
    ],
    ids=lambda x: str(x)[:9],
)
def test_values_decide_the_kind(values, kind, names):
    column = column_of("x", values)
    assert (column.kind, column.names) == (kind, names)
    if kind == "date":
        expected = (np.datetime64("2026-01-01") - np.datetime64(0, "s")).astype("m8[h]") / 24
        assert abs(column.values[5] - 5 - expected.astype(float)) < 0.05


@pytest.mark.parametrize("library", ["dict", "pandas", "pyarrow", "polars"])
def test_tables_of_all_libraries_have_the_same_columns(library):
    table = {"a": GAP, "b": ["x", ""] * 30, "c": [1.5] * N, "d": FINE.tolist()}
    if library != "dict":
        made = pytest.importorskip(library)
        table = made.table(table) if library == "pyarrow" else made.DataFrame(table)
    columns, left_out = columns_of(table, N)
    assert [(c.name, c.kind) for c in columns] == [("a", "class"), ("d", "number")]
    assert left_out == ["b", "c"]
    with pytest.raises(InputError, match="has 60 values for 7 rows; give one value per row"):
        columns_of(table, 7)


def test_names_are_texts_and_columns_of_the_same_name_are_refused():
    assert list(named_columns(pd.Series([1], name="y"))) == ["y"]
    assert list(named_columns([1, 2], "label")) == ["label"]
    assert list(named_columns(np.eye(2))) == ["0", "1"]
    assert list(named_columns(pd.DataFrame([[1]], columns=[("a", 1)]))) == ["a, 1"]
    assert named_columns(None) == {}
    for table in ({1: [0], "1": [0]}, pd.DataFrame([[1, 2]], columns=["1", "1"])):
        with pytest.raises(InputError, match="Two columns of the table are called “1”; rename"):
            named_columns(table)
    with pytest.raises(InputError, match=r"one value per row; got an array of shape \(2, 2\)"):
        column_of("x", np.eye(2))


def test_masked_cells_are_missing_and_words_are_refused():
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [True, False, True]})
    dense = np.array([[1.0, 1.0], [2.0, 0.0], [4.0, 1.0]])
    masked = np.ma.MaskedArray(dense, mask=dense == 2)
    for X in (masked, frame.mask(dense == 2), frame.astype("Float64").mask(dense == 2)):
        np.testing.assert_array_equal(matrix_of(X).values, masked.filled(np.nan))
    assert matrix_of(dense.astype(np.uint8)).values.dtype == np.uint8
    assert matrix_of(frame).names == ("a", "b")
    with pytest.raises(InputError, match="“a” of X holds values that are no numbers"):
        matrix_of(pd.DataFrame({"a": ["x"]}))
    with pytest.raises(InputError, match=r"rows and features; got an array of shape \(3,\)"):
        matrix_of(np.ones(3))
    assert joined([1, 2], [1.5, None])[:3].tolist() == [1.0, 2.0, 1.5]
    assert column_of("x", joined(["1", "2"], np.array([2.0, np.nan]))).names == ("1", "2")
    numbers = numbers_of(["1.5", "", "x"])
    assert (numbers[0], np.isnan(numbers[1:]).tolist()) == (1.5, [True, True])


def test_columns_of_every_type_give_the_answer_of_a_plain_list():
    """With a gap, which some types can hold as NaN only."""
    rng = np.random.default_rng(0)
    X, classes = rng.normal(size=(90, 6)) + 1.0, np.arange(90) % 3
    model = AdaptivePPCA(3, 1, random_state=0).fit(X)

    def answers(column):
        tests = association(model, X, {"t": column}, n_permutations=39, random_state=0)
        made = rule(model, X, X[:, 0] > 1, {"t": column})
        shares = variance_by(model, X, classes=column)["share"]
        selected = made.select(model, X, {"t": column})
        return tests["p"].sum(), made.clauses, selected.sum(), len(shares), round(shares.sum(), 9)

    dates = [date(2026, 1, 1) + timedelta(days=int(day)) for day in classes * 9]
    for plain, typed in (
        (classes, pd.Series(classes, dtype="Int64")),
        ((classes > 0).tolist(), pd.Series(classes > 0, dtype="boolean[pyarrow]")),
        (dates, pd.Series(pd.to_datetime(dates))),
        (X[:, 1].tolist(), pd.Series(X[:, 1], dtype="Float64")),
    ):
        gap = pd.Series(typed).mask(np.arange(90) == 0)
        assert answers(gap) == answers([None, *list(plain)[1:]])
