"""Tests of tables: equal numbers in every format, no formulas; kinds of columns."""

import io
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from appca import AdaptivePPCA, association, rule, variance_by
from appca.analysis.fitted import FittedRun
from appca.analysis.tables import (
    Columns,
    Patterns,
    component_npz,
    component_table,
    csv_bytes,
    headings,
    neutral,
    npz_bytes,
    projection_table,
)
from appca.data.dataset import Dataset
from appca.data.preprocessing import Fitted
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
from tests.fitted_runs import fitted_run

LABELS = {"class": np.array(list("abc"))[np.arange(30) % 3], "size": np.arange(30) / 7}
COMPONENTS = np.arange(12.0).reshape(3, 4)
EXACT = {"float_precision": "round_trip"} if pd.__version__ < "3" else {}  # to the bit


def table_of(content: bytes) -> pd.DataFrame:
    return pd.read_csv(io.BytesIO(content), **EXACT)


def dataset(labels: dict = LABELS) -> Dataset:
    X = np.random.default_rng(5).normal(size=(30, 4))
    return Dataset("made up", X, np.array([f"row-{n}" for n in range(30)]), labels)


def run_of(seed: int = 0) -> FittedRun:
    rng, active = np.random.default_rng(seed), np.zeros((30, 3), dtype=bool)
    np.put_along_axis(active, rng.permuted(np.tile([0, 1, 2], (30, 1)), axis=1)[:, :2], True, 1)
    return fitted_run(
        scores=(rng.normal(size=(30, 3)) * active).astype(np.float32),
        active=active,
        membership=rng.random(30).astype(np.float32),
        error=rng.random(30).astype(np.float32),
        log_likelihood_rows=rng.normal(size=30) * 100,
        inclusion=rng.random((30, 3)).astype(np.float32),
    )


def test_component_j_is_row_j_of_the_run_on_screen():
    fitted = run_of()
    arranged, columns = fitted.arranged((2, 0, 1), (1, -1, 1)), Columns(inclusion=True)
    plain, table = (projection_table(dataset(), one, None, columns) for one in (fitted, arranged))
    kept = [name for name in table if name.startswith(("component_", "inclusion_"))]
    assert kept == [f"{what}_{n}" for what in ("component", "inclusion") for n in (1, 2, 3)]
    for number, (k, sign) in enumerate(((3, 1), (1, -1), (2, 1)), 1):
        assert (table[f"component_{number}"] == sign * plain[f"component_{k}"]).all()
        assert (table[f"inclusion_{number}"] == plain[f"inclusion_{k}"]).all()
    assert set(table["subspace"]) == {"{1,2}", "{1,3}", "{2,3}"}
    assert not np.signbit(table["component_2"][table["component_2"] == 0]).any(), "no -0.0"
    for names, expected in (
        (("slant", "", "slant"), ["slant (component_1)", "component_2", "slant (component_3)"]),
        (
            ("width", "membership", "component_1"),
            ["width", "membership (component_2)", "component_1 (component_3)"],
        ),
    ):
        named = replace(fitted, names=names)
        assert headings(named) == ["component_1", "component_2", "component_3"]
        assert headings(named, Columns(named=True)) == expected


def test_each_line_holds_what_belongs_to_its_row(seed):
    data, fitted = dataset(), run_of(seed)
    rows = np.random.default_rng(seed).permutation(30)[:12]
    table = projection_table(data, fitted, rows)
    assert table["id"].tolist() == [f"row-{n}" for n in rows]
    assert table["class"].tolist() == ["abc"[n % 3] for n in rows]
    for line, n in zip(table.itertuples(index=False), rows, strict=True):
        used = [k + 1 for k in range(3) if fitted.active[n, k]]
        assert line.subspace == f"{{{used[0]},{used[1]}}}"
        assert [line.component_1, line.component_2, line.component_3] == list(fitted.scores[n])
        assert line.membership == fitted.membership[n]
        assert line.reconstruction_error == fitted.error[n]
        assert line.log_likelihood == fitted.log_likelihood_rows[n]
    nothing = projection_table(data, fitted, np.array([], dtype=int))
    assert csv_bytes(nothing).count(b"\n") == 1
    assert list(pd.read_parquet(io.BytesIO(nothing.to_parquet(index=False))).columns) == list(
        table.columns
    )


@pytest.mark.parametrize("names", [("", "", ""), ("=slant", "id", "scores")])
def test_csv_parquet_and_npz_hold_the_same_table(seed, names):
    fitted, columns = replace(run_of(seed), names=names), Columns(named=True, inclusion=True)
    table, scores = projection_table(dataset(), fitted, None, columns), headings(fitted, columns)
    assert table[scores].to_numpy().tolist() == fitted.scores.tolist()
    as_csv = table_of(csv_bytes(table))
    assert list(as_csv) == ["'=slant" if name == "=slant" else name for name in table]
    as_parquet = pd.read_parquet(io.BytesIO(table.to_parquet(index=False)))
    as_npz = np.load(io.BytesIO(npz_bytes(table, COMPONENTS, scores)), allow_pickle=False)
    assert as_npz["scores"].tolist() == fitted.scores.tolist()
    assert as_npz["components"].tolist() == COMPONENTS.tolist()
    for place, name in enumerate(table.columns):
        expected = table[name].to_numpy()
        assert as_parquet[name].tolist() == expected.tolist()
        safe = "".join(c if c.isalnum() or c in "_-" else "_" for c in name)
        assert as_npz["scores_" if name == "scores" else safe].tolist() == expected.tolist()
        read = as_csv.iloc[:, place].to_numpy()
        same = read if expected.dtype.kind == "O" else read.astype(expected.dtype)
        assert same.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        *((text, f"'{text}") for text in ("=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)")),
        *((text, f"'{text}") for text in (" =1+1", "\u00a0=1+1", "＝1+1", "＠SUM(A1)")),
        *(("\t=1", "'\t'=1"), ("\r=1", "'\r'=1")),
        *(("a;=1+1", "a;'=1+1"), ("a\t@SUM(A1)", "a\t'@SUM(A1)"), ("a|-2+3, b", "a|'-2+3, b")),
        *(('x;"=1+1', "x;'\"=1+1"), ("a\n=1+1;+2+2", "a\n'=1+1;'+2+2")),
        *((text, text) for text in ("-1", "+2.5", "a=b", "1e-3", "x; -1.5", "a, b = c", "")),
    ],
)
def test_no_separator_or_sign_makes_a_formula_of_a_text(text, safe):
    assert neutral(text) == safe
    assert neutral(safe) == safe
    labels = {f"{text}heading": np.array([text, "harmless"] * 15)}
    cells = pd.read_csv(io.BytesIO(csv_bytes(projection_table(dataset(labels), run_of()))))
    assert cells.iloc[1, 1] == "harmless"
    if safe[:1] == "'":
        assert cells.columns[1].startswith("'")
        assert cells.iloc[0, 1].startswith("'")


def test_columns_of_any_name_stay_apart():
    labels = {"subspace": np.array(["mine"] * 30), "id": np.arange(30), "file": np.arange(30)}
    labels |= {"../a": np.arange(30), "..:a": np.arange(30) + 1}
    table = projection_table(dataset(labels), run_of())
    assert table["label_subspace"].tolist() == ["mine"] * 30
    assert table["label_id"].tolist() == list(range(30))
    assert table["subspace"][0].startswith("{")
    arrays = np.load(io.BytesIO(npz_bytes(table, COMPONENTS, [])), allow_pickle=False)
    assert len(arrays.files) == len(set(arrays.files))
    assert not any("/" in name or ".." in name for name in arrays.files)
    assert [arrays[name][0] for name in ("file", "___a", "___a_")] == [0, 0, 1]


def test_csv_and_npz_hold_the_same_components(seed):
    rng = np.random.default_rng(seed)

    def of(**changes: object) -> Dataset:
        given = {"name": "made up", "X": rng.normal(size=(5, 6)), "ids": np.arange(5).astype(str)}
        return Dataset(**(given | changes))

    given = {"scores": rng.normal(size=(5, 2)), "components": rng.normal(size=(2, 4))}
    given |= {"mean": rng.normal(size=4), "names": ("feature", "width")}
    run, columns = fitted_run(np.ones((5, 2), dtype=bool), **given), Columns(named=True)
    patterns = Patterns(rng.normal(size=(2, 6)), rng.normal(size=6))
    table = table_of(csv_bytes(component_table(of(), run, patterns, columns)))
    assert list(table.columns) == ["feature", "centre", "feature (component)", "width"]
    assert table["centre"].tolist() == patterns.mean.tolist()
    assert table.iloc[:, 2:].to_numpy().T.tolist() == patterns.components.tolist()
    before = Fitted(2.0, np.zeros(6), np.arange(1.0, 7), None)
    both = component_table(of(), replace(run, preprocessing=before), patterns, columns)
    np.testing.assert_allclose(both["width (scaled)"] * np.arange(2, 14, 2), both["width"])
    with np.load(io.BytesIO(component_npz(of(), run, patterns, columns))) as found:
        assert found["components"].tolist() == patterns.components.tolist()
        assert found["mean"].tolist() == patterns.mean.tolist()
        assert found["features"].tolist() == table["feature"].tolist()
        assert found["names"].tolist() == ["feature", "width"]
        assert found["components_of_fit"].tolist() == run.components.tolist()
    for changes, last in (
        ({"feature_names": ("a", "b", "c", "d", "e", "=f")}, "=f"),
        ({}, "feature 6"),
        ({"image_shape": (2, 3)}, "1,2"),
        ({"image_shape": (1, 2, 3)}, "0,1,2"),
    ):
        names = component_table(of(**changes), run, patterns, columns)["feature"]
        assert (len(names), names.iloc[-1]) == (6, last), "by the data or by their place"


N = 60
WHOLE = np.arange(N) % 3
GAP, FINE = [None, *WHOLE[1:].tolist()], np.linspace(0.0, 1.0, N)
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
    with pytest.raises(InputError, match="“a” of X has values that are not numbers"):
        matrix_of(pd.DataFrame({"a": ["x"]}))
    with pytest.raises(InputError, match=r"rows and features; got an array of shape \(3,\)"):
        matrix_of(np.ones(3))
    assert joined([1, 2], [1.5, None])[:3].tolist() == [1.0, 2.0, 1.5]
    assert column_of("x", joined(["1", "2"], np.array([2.0, np.nan]))).names == ("1", "2")
    numbers = numbers_of(["1.5", "", "x"])
    assert (numbers[0], np.isnan(numbers[1:]).tolist()) == (1.5, [True, True])


def test_columns_of_every_type_give_the_answer_of_a_plain_list():
    """With a gap, which some types can hold as NaN only."""
    X, classes = np.random.default_rng(0).normal(size=(90, 6)) + 1.0, np.arange(90) % 3
    model = AdaptivePPCA(3, 1, init="pca", random_state=0).fit(X)

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
