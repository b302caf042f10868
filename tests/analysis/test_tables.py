"""Exports: the same numbers in every format, and no cell that a spreadsheet would run."""

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

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
    rng = np.random.default_rng(seed)
    active = np.zeros((30, 3), dtype=bool)
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
    arranged = fitted.arranged((2, 0, 1), (1, -1, 1))
    columns = Columns(inclusion=True)
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
    assert list(table.columns) == ["feature", "average", "feature (component)", "width"]
    assert table["average"].tolist() == patterns.mean.tolist()
    assert table.iloc[:, 2:].to_numpy().T.tolist() == patterns.components.tolist()
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
