"""The benchmark table on made-up runs: what is paired with what, and what is left out."""

import csv
import json

import numpy as np
import pytest

from benchmarks import growth, table
from benchmarks.methods import METHODS
from benchmarks.shapes import Shape, synthetic, tenth

SHAPE = Shape("made up", lambda: synthetic(60, 8, 3, 1), 3, 1)


def run(method, number, seconds, status="ok", **more):
    timed = {"processor_s": seconds, "clock_s": seconds} if status == "ok" else {}
    return {"method": method, "round": number, "status": status, **timed, **more}


def test_times_are_compared_within_a_round():
    runs = [run("pca", 0, 1.0), run("fa", 0, 4.0), run("pca", 1, 10.0), run("fa", 1, 20.0)]
    runs += [run("pca", 2, 1.0), run("fa", 2, 3.0)]
    pca, fa = table.summary(SHAPE, ["pca", "fa"], runs)
    assert pca["times_pca"] == 1.0
    assert fa["times_pca"] == 3.0  # the median of 4, 2 and 3, not 4.0 over 1.0
    assert fa["processor_s"] == 4.0


def test_a_method_that_failed_says_so_and_has_no_numbers():
    runs = [run("pca", 0, 1.0), run("fa", 0, None, "over 300 s")]
    fa = table.summary(SHAPE, ["pca", "fa"], runs)[1]
    assert fa["status"] == "over 300 s"
    assert fa["fits"] == 0
    assert fa["processor_s"] is fa["times_pca"] is None


def test_one_round_writes_both_files(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "QUICK", [SHAPE])
    table.main(["--quick", "--rounds", "1", "--methods", "appca_em", "--out", str(tmp_path)])
    with (tmp_path / "quick.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["method"] for row in rows] == [METHODS[m].title for m in ("pca", "appca_em")]
    assert all(row["status"] == "ok" and float(row["error"]) > 0.0 for row in rows)
    runs = json.loads((tmp_path / "quick.json").read_text())["runs"]
    assert [r["method"] for r in runs] == ["pca", "appca_em"]
    assert all(r["peak_bytes"] >= 60 * 8 * 4 for r in runs)


def test_unknown_methods_are_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        table.main(["--quick", "--methods", "magic"])
    assert ended.value.code == 2
    assert "got magic" in capsys.readouterr().err


def test_slopes_are_powers():
    assert growth.slope([1, 10, 100], [3.0, 300.0, 30_000.0]) == pytest.approx(2.0)


def test_every_tenth_row_is_held_back():
    kept, back = tenth(np.arange(40.0)[:, None])
    assert back.ravel().tolist() == [9.0, 19.0, 29.0, 39.0]
    assert len(kept) == 36


def test_synthetic_rows_are_of_the_model():
    X, fresh = synthetic(20_000, 8, 4, 2)
    assert X.dtype == np.float32
    assert fresh.shape == (2000, 8)
    values = np.linalg.eigvalsh(np.cov(X.T))
    np.testing.assert_allclose(values[:4], 0.25, rtol=0.1)
    np.testing.assert_allclose(values[4:], 0.25 + 4.0 * 2 / 4, rtol=0.1)
