"""The benchmark table on made-up runs: what is paired with what, and what is left out."""

import csv
import json

import numpy as np
import pytest

from benchmarks import growth, long, methods, passes, table
from benchmarks.methods import METHODS
from benchmarks.shapes import LARGE, LIMIT_S, SHORT_S, Shape, synthetic, tenth

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


@pytest.fixture
def fits(monkeypatch):
    """Let fits take no time: {method: what its process says}; returns what was begun, limits."""
    says, begun = {}, []

    def one(shape, method, _folder, limit):
        begun.append((shape.name, method, limit))
        status = says.get(method, "ok") if limit else "not begun"
        seconds = 100.0 if status == "slow" else 1.0
        ok = "ok" if status == "slow" else status
        return {"status": ok, "clock_s": seconds, "processor_s": seconds}

    monkeypatch.setattr(table, "one", one)
    return says, begun


def test_a_fit_that_takes_long_is_made_once(fits):
    says, begun = fits
    says["fa"] = "slow"
    runs = table.runs_of(SHAPE, ["pca", "fa"], 3, table.Budget(40.0))
    assert [method for _, method, _ in begun] == ["pca", "fa", "pca", "pca"]
    assert table.summary(SHAPE, ["pca", "fa"], runs)[1]["fits"] == 1


def test_a_method_that_was_ended_has_less_time_on_later_data(fits):
    says, begun = fits
    says["fa"] = f"over {LIMIT_S} s"
    budget = table.Budget(40.0)
    for _ in range(2):
        table.runs_of(SHAPE, ["pca", "fa"], 2, budget)
    limits = [limit for _, method, limit in begun if method == "fa"]
    assert limits == [LIMIT_S, SHORT_S]


def test_nothing_is_begun_that_could_end_too_late(fits):
    _, begun = fits
    runs = table.runs_of(SHAPE, ["pca", "fa"], 3, table.Budget(LIMIT_S / 60 - 0.1))
    assert [limit for _, _, limit in begun] == [0, 0]  # once, to say so
    assert {run["status"] for run in runs} == {"not begun"}


def test_on_the_large_data_one_method_has_what_was_promised(fits):
    _, begun = fits
    shape = LARGE[0]._replace(draw=SHAPE.draw)
    table.runs_of(shape, ["pca", "appca_one", "fa"], 1, table.Budget(40.0))
    assert [limit for _, _, limit in begun] == [SHORT_S, 600, SHORT_S]


def test_a_package_that_is_not_there_is_left_out_with_a_word(fits, monkeypatch, capsys, tmp_path):
    _, begun = fits
    monkeypatch.setattr(methods.importlib.util, "find_spec", lambda _name: None)
    table.compare([SHAPE], ["pca", "spams"], 1, table.Budget(40.0), tmp_path / "some")
    assert [method for _, method, _ in begun] == ["pca"]
    title = METHODS["spams"].title
    assert f"{title} is not installed and left out." in capsys.readouterr().out
    assert json.loads((tmp_path / "some.json").read_text())["left_out"] == [title]


@pytest.mark.parametrize("name", ["pca", "fa"])
def test_likelihoods_without_a_covariance_are_those_of_scikit_learn(name):
    X, fresh = synthetic(300, 12, 4, 2)
    model = METHODS[name].make(4, 2, X.shape).fit(X.astype(np.float64))
    assert METHODS[name].score(model, fresh) == pytest.approx(model.score(fresh), rel=1e-6)


def test_a_long_run_does_not_end_below_the_quick_fit():
    X = synthetic(400, 10, 4, 2)
    (row,) = long.measured([SHAPE._replace(draw=lambda: X, n_components=4, n_active=2)], 60)
    assert row["passes"] == 60
    assert -1e-6 < row["below"] == pytest.approx(row["long_nats"] - row["quick_nats"])


def test_a_pass_is_compared_with_its_products():
    (row,) = passes.measured([SHAPE], turns=3)
    assert row["pass_s"] > row["products_s"] > 0.0


@pytest.mark.thorough
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
