"""Planted shifts come first, chance is uniform, and effects are Cliff's delta."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import mannwhitneyu

from appca import AdaptivePPCA, drift
from appca.analysis.new_rows import drifted
from appca.words import InputError


@pytest.fixture(scope="module")
def model():
    return AdaptivePPCA(3, 2, random_state=0).fit(rows(400, 0))


def rows(n: int, seed: int) -> pd.DataFrame:
    values = np.random.default_rng(seed).normal(size=(n, 12)) * np.linspace(3, 1, 12)
    return pd.DataFrame(values).add_prefix("x")


@pytest.mark.parametrize("number", range(5))
def test_planted_shifts_of_level_spread_and_a_component_come_first(model, number):
    old, new = rows(300, 10 + number), rows(100, 90 + number)
    new["x4"] += 3
    new["x9"] *= 3
    new -= 4 * model.components_[0]
    first = drift(model, old, new).set_index(["column", "part"])
    for key, way in ((("x4", "level"), "higher"), (("x9", "spread"), "higher")):
        assert first.loc[key, ["direction", "n"]].tolist() == [way, 400]
        assert first.loc[key, "q"] < 0.05
    assert first.loc[("score 1", "level"), "direction"] == "lower"
    assert first.loc[("score 1", "level"), "q"] < 0.05
    delta = 2 * mannwhitneyu(new["x4"], old["x4"]).statistic / (100 * 300) - 1
    assert first.loc[("x4", "level"), "effect"] == pytest.approx(delta, abs=0.01)
    assert first.loc[("x4", "level"), "new"] == pytest.approx(new["x4"].mean())


def test_classes_differ_without_a_sign_and_tables_must_agree(model):
    old = pd.DataFrame({"kind": list("aab" * 20), "x": np.arange(60.0)})
    new = pd.DataFrame({"kind": list("bbb" * 20), "x": np.arange(60.0)})
    tests = drifted(old, new).set_index("column")
    assert tests.loc["kind", ["direction", "part"]].tolist() == ["high: b; low: a", "level"]
    assert np.isnan(tests.loc["kind", "old"])
    with pytest.raises(InputError, match="1 columns in one only"):
        drifted(old, new.drop(columns="x"))
    with pytest.raises(InputError, match="got 60 and 4 rows"):
        drifted(old, new[:4])
    for other in (rows(9, 0).iloc[:, ::-1], rows(9, 0).rename(columns={"x0": "x11", "x11": "y"})):
        with pytest.raises(InputError, match="X_new has the column “x11” where X_old has “x0”"):
            drift(model, rows(9, 0), other)
