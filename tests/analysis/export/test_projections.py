"""Exports: the same rows and numbers in every format, and no cell that a spreadsheet would run."""

import io
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from appca.analysis.fitted import FittedRun
from appca.analysis.tables import (
    Columns,
    csv_bytes,
    headings,
    neutral,
    npz_bytes,
    parquet_bytes,
    projection_table,
)
from appca.data.dataset import Dataset
from tests.exact import table_of
from tests.fitted_runs import fitted_run


def dataset(n_rows: int = 30, labels: dict | None = None) -> Dataset:
    rng = np.random.default_rng(5)
    return Dataset(
        name="made up",
        X=rng.normal(size=(n_rows, 4)),
        ids=np.array([f"row-{n}" for n in range(n_rows)]),
        labels=labels
        if labels is not None
        else {
            "class": np.array(["a", "b", "c"])[np.arange(n_rows) % 3],
            "size": rng.random(n_rows),
        },
        image_shape=None,
        feature_names=None,
        provenance={},
    )


def run_of(n_rows: int = 30, seed: int = 0) -> FittedRun:
    rng = np.random.default_rng(seed)
    active = np.zeros((n_rows, 3), dtype=bool)
    np.put_along_axis(active, rng.permuted(np.tile([0, 1, 2], (n_rows, 1)), axis=1)[:, :2], True, 1)
    return fitted_run(
        scores=(rng.normal(size=(n_rows, 3)) * active).astype(np.float32),
        active=active,
        membership=rng.random(n_rows).astype(np.float32),
        error=rng.random(n_rows).astype(np.float32),
        log_likelihood_rows=rng.normal(size=n_rows) * 100,
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


def test_each_line_holds_what_belongs_to_its_row(seed):
    data, fitted = dataset(), run_of(seed=seed)
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


def test_csv_parquet_and_npz_hold_the_same_table(seed):
    fitted = run_of(seed=seed)
    table = projection_table(dataset(), fitted)
    as_csv = table_of(csv_bytes(table))
    as_parquet = pd.read_parquet(io.BytesIO(parquet_bytes(table)))
    with np.load(io.BytesIO(npz_bytes(table)), allow_pickle=False) as as_npz:
        for name in table.columns:
            expected = table[name].to_numpy()
            assert as_parquet[name].tolist() == expected.tolist()
            assert as_npz[name].tolist() == expected.tolist()
            read = as_csv[name].to_numpy()
            same = read if expected.dtype.kind == "O" else read.astype(expected.dtype)
            assert same.tolist() == expected.tolist()
        np.testing.assert_array_equal(as_npz["scores"], fitted.scores)


def test_a_selection_exports_only_its_rows_and_an_empty_one_only_the_heading():
    table = projection_table(dataset(), run_of(), np.array([4, 2]))
    assert pd.read_csv(io.BytesIO(csv_bytes(table)))["id"].tolist() == ["row-4", "row-2"]
    nothing = projection_table(dataset(), run_of(), np.array([], dtype=int))
    assert csv_bytes(nothing).count(b"\n") == 1
    assert list(pd.read_parquet(io.BytesIO(parquet_bytes(nothing))).columns) == list(table.columns)


@pytest.mark.parametrize("text", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1"])
def test_no_text_leaves_as_a_formula(text):
    labels = {f"{text} heading": np.array([text, "harmless"] * 15)}
    cells = pd.read_csv(io.BytesIO(csv_bytes(projection_table(dataset(labels=labels), run_of()))))
    heading = cells.columns[1]
    assert heading.startswith("'")
    assert cells[heading][0].startswith("'")
    assert cells[heading][1] == "harmless"


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("a;=1+1", "a;'=1+1"),
        ("a\t@SUM(A1)", "a\t'@SUM(A1)"),
        ("a|-2+3, b", "a|'-2+3, b"),
        (" =1+1", "' =1+1"),
        ("\u00a0=1+1", "'\u00a0=1+1"),
        ("＝1+1", "'＝1+1"),
        ("－2＋3", "'－2＋3"),
        ("＠SUM(A1)", "'＠SUM(A1)"),
        ('x;"=1+1', "x;'\"=1+1"),
        ("=1", "'=1"),
        ("a\n=1+1;+2+2", "a\n'=1+1;'+2+2"),
    ],
)
def test_no_text_leaves_as_a_formula_for_other_separators_and_signs(text, safe):
    assert neutral(text) == safe
    assert neutral(safe) == safe


@pytest.mark.parametrize("text", ["-1", "+2.5", "a=b", "plain", "1e-3", "x; -1.5", "a, b = c", ""])
def test_numbers_and_plain_words_are_left_alone(text):
    assert neutral(text) == text


def test_label_columns_named_like_results_keep_both():
    labels = {"subspace": np.array(["mine"] * 30), "id": np.arange(30), "file": np.arange(30)}
    table = projection_table(dataset(labels=labels), run_of())
    assert table["label_subspace"].tolist() == ["mine"] * 30
    assert table["label_id"].tolist() == list(range(30))
    assert table["subspace"][0].startswith("{")
    with np.load(io.BytesIO(npz_bytes(table))) as arrays:
        assert arrays["file"].tolist() == list(range(30))


def test_names_that_cannot_be_files_stay_apart_inside_the_archive():
    labels = {"../a": np.arange(30), "..:a": np.arange(30) + 1}
    archive = npz_bytes(projection_table(dataset(labels=labels), run_of()))
    names = zipfile.ZipFile(io.BytesIO(archive)).namelist()
    assert len(names) == len(set(names))
    assert not any("/" in name or ".." in name for name in names)
    with np.load(io.BytesIO(archive)) as arrays:
        assert arrays["___a"][0] == 0
        assert arrays["___a_"][0] == 1


def test_components_travel_with_the_archive_on_request():
    components = np.arange(12.0).reshape(3, 4)
    with np.load(io.BytesIO(npz_bytes(projection_table(dataset(), run_of()), components))) as a:
        np.testing.assert_array_equal(a["components"], components)


def test_components_are_called_as_a_person_called_them_and_no_two_alike():
    fitted = replace(run_of(), names=("slant", "", "slant"))
    assert headings(fitted) == ["component_1", "component_2", "component_3"]
    wanted = ["slant (component_1)", "component_2", "slant (component_3)"]
    assert headings(fitted, Columns(named=True)) == wanted
    fitted = replace(fitted, names=("width", "membership", "component_1"))
    wanted = ["width", "membership (component_2)", "component_1 (component_3)"]
    assert headings(fitted, Columns(named=True)) == wanted


def test_named_and_uncertain_columns_agree_in_all_formats(seed):
    sure = np.random.default_rng(seed).random((30, 3)).astype(np.float32)
    fitted = replace(run_of(seed=seed), names=("=slant", "id", "scores"), inclusion=sure)
    columns = Columns(named=True, inclusion=True)
    table = projection_table(dataset(), fitted, columns=columns)
    names = headings(fitted, columns)
    assert table[names].to_numpy().tolist() == fitted.scores.tolist()
    inclusion = [f"inclusion_{k}" for k in (1, 2, 3)]
    assert table[inclusion].to_numpy().tolist() == fitted.inclusion.tolist()
    as_csv = table_of(csv_bytes(table))
    assert list(as_csv.columns) == ["'=slant" if name == "=slant" else name for name in table]
    with np.load(io.BytesIO(npz_bytes(table, scores=names)), allow_pickle=False) as as_npz:
        assert as_npz["scores"].tolist() == fitted.scores.tolist()
        assert as_npz["scores_"].tolist() == fitted.scores[:, 2].tolist()
    as_parquet = pd.read_parquet(io.BytesIO(parquet_bytes(table)))
    assert list(as_parquet.columns) == list(table.columns)
