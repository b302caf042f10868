"""What fits and likelihoods lose: the measurement on small data, and its tables on made-up rows."""

import numpy as np
import pytest

from appca import PPCA
from benchmarks import oracles, oracles_reading

CASE = {"data": "wine", "N": 178, "D": 13, "K": 4, "L": 2}


def test_a_default_fit_is_compared_with_the_best_of_the_starts(monkeypatch):
    monkeypatch.setattr(oracles, "SETS", {"wine": ({}, 60, 3, 2)})
    scores = iter([-15.0, -16.0, -14.5, -17.0] * 2)

    class Fit:
        def score(self, _X):
            return next(scores)

    monkeypatch.setattr(oracles, "fitted", lambda *_, **__: Fit())
    first, second = oracles.starts(3)
    assert (first["model"], second["model"]) == ("aPPCA", "aFA")
    assert (first["default"], first["lost"], first["median_lost"]) == (-15.0, 0.5, 1.5)
    assert (first["N"], first["D"], first["starts"]) == (60, 13, 3)


def test_gaps_are_compared_with_the_exact_sum(monkeypatch):
    """The mean over rows of what the best support and its exchanges leave out is never negative."""
    monkeypatch.setattr(oracles, "GAPS", {"planted": (40, 6, 3)})
    (row,) = oracles.gaps()
    assert row["supports"] == 20
    assert 0.0 < row["error"] < row["best_alone"]
    assert row["error"] < row["largest"]


def test_at_k_equal_l_neither_order_nor_sums_lose_anything(monkeypatch):
    """One support is its own best; the likelihood at L = K is that of PPCA."""
    monkeypatch.setattr(oracles, "GAPS", {"planted": (60, 3, 3)})
    (row,) = oracles.gaps()
    for name in ("error", "largest", "best_alone", "fit_lost"):
        assert row[name] == pytest.approx(0.0, abs=1e-9)
    monkeypatch.setattr(oracles, "STREAMS", {"wine": ({}, 3, 3, 59)})
    (row,) = oracles.streams()
    X, _ = oracles.rows_of("wine", 178, {})
    assert row["all"] <= PPCA(3).fit(X).score(X) + 1e-6
    assert 0.0 <= row["random"] <= row["random_worst"] < 0.5
    assert row["one_row"] < 0.05


def test_planted_rows_are_a_little_noisier_than_what_was_planted():
    X, classes = oracles.rows_of("planted", 4000, {})
    assert X.shape == (4000, 24)
    assert not classes.any()
    values = np.linalg.eigvalsh(np.cov(X.T))
    assert values[:12].mean() == pytest.approx(0.2**2, rel=0.05)


def test_losses_are_counted_for_each_model():
    losses = (("aPPCA", 0.001, 0.2), ("aPPCA", 0.35, 0.3), ("aFA", -0.5, 0.0))
    rows = [
        CASE | {"model": m, "default": -15.0, "lost": lost, "median_lost": usual, "starts": 30}
        for m, lost, usual in losses
    ]
    line = oracles_reading.starts_lines(rows)[0]
    assert line["data (K, L)"] == "wine, 178 x 13 (4, 2)"
    assert line["lost against the best start"] == "0.001"
    assert oracles_reading.starts_reading(rows) == [
        "aPPCA: a default fit loses less than 0.01 nats against the best of 30 random starts on 1 "
        "of 2 data sets, and at most 0.35 nats (wine). It is better than the median random start "
        "by more than that on 1 and worse on 1.",
        "aFA: a default fit loses less than 0.01 nats against the best of 30 random starts on 1 of "
        "1 data sets, and at most -0.50 nats (wine). It is better than the median random start by "
        "more than that on 1 and worse on 0.",
    ]


def test_gaps_and_streams_have_a_line_a_data_set():
    gap = CASE | {"supports": 6, "error": 0.25, "largest": 2.0, "best_alone": 1.5}
    gap |= {"fit_lost": 0.01, "noise": 0.9}
    (line,) = oracles_reading.gaps_lines([gap])
    assert [*line.values()][1:] == ["6", "1.5", "0.25", "2", "0.01", "0.9"]
    assert "0.25 to 0.25 nats a row" in oracles_reading.gaps_reading([gap])[0]
    stream = CASE | {"batch": 20, "all": -15.5, "one_row": 0.0049, "random": 0.02}
    stream |= {"random_worst": 0.05, "sorted": 0.03, "sorted_worst": 0.04}
    (line,) = oracles_reading.streams_lines([stream])
    assert [*line.values()][1:] == ["20", "-15.5", "0.02", "0.05", "0.03", "0.04", "0.0049"]
    assert oracles_reading.streams_reading([stream]) == [
        "The largest loss of a sorted stream is on wine: 0.03 of -15.5 nats per row, and 0.02 in "
        "random order. After a fit, learning one more row costs at most 0.0049 nats per row."
    ]
