"""Chance is found as often as stated, one strong effect among many tests, and too few rows said."""

import numpy as np
import pytest
from scipy import stats

from appca import AdaptivePPCA, drift, enrichment
from appca.analysis.association import associated
from appca.analysis.new_rows import drifted
from appca.analysis.permutation import CLEAR, permuted
from appca.ui.new_rows import sentence

LEVELS = 0.001, 0.01, 0.05
N = 200


NULLS = {  # share of rows on one side, rows, blocks, and a column
    "blocks": (0.5, N, 4, lambda rng, block, n: rng.normal(size=n) + block),
    "30 rows": (0.5, 30, 1, lambda rng, _, n: rng.normal(size=n)),
    "ties": (0.5, N, 1, lambda rng, _, n: rng.integers(0, 3, n) + 0.5),
    "30 classes": (0.5, N, 1, lambda rng, _, n: rng.integers(0, 30, n).astype(str)),
    "half zeros": (0.3, N, 1, lambda rng, _, n: np.maximum(rng.normal(size=n), 0.0)),
    "skew": (0.1, N, 1, lambda rng, _, n: rng.lognormal(0, 2, n)),
}


def assert_levels(tests) -> None:
    for _, part in tests.groupby("part"):
        for level in LEVELS:
            assert (part["p"] <= level).sum() <= stats.binom.isf(1e-3, len(part), level), level


@pytest.mark.parametrize("name", NULLS)
def test_association_finds_chance_as_often_as_stated(name):
    share, n, n_blocks, draw = NULLS[name]
    rng = np.random.default_rng(5)
    block = rng.integers(0, n_blocks, n)
    odds = share + np.linspace(0.0, 0.4, n_blocks)[block] - 0.1 * (n_blocks > 1)
    active = rng.random((n, 1)) < odds[:, None]
    scores = np.where(active, rng.gamma(0.5, size=(n, 1)) + block[:, None], 0.0)
    table = {f"x{i}": draw(rng, block, n) for i in range(1000)}
    assert_levels(associated(scores, active, table, blocks=block, random_state=1))


@pytest.mark.parametrize("name", ["30 rows", "ties", "half zeros", "skew"])
def test_drift_finds_chance_as_often_as_stated_in_level_and_spread(name):
    share, n, _, draw = NULLS[name]
    rng = np.random.default_rng(4)
    n_new = max(int(share * n), 5)
    old, new = ({f"x{i}": draw(rng, 0, size) for i in range(1000)} for size in (n - n_new, n_new))
    tests = drifted(old, new, random_state=1)
    assert set(tests["part"]) == {"level", "spread"}
    assert_levels(tests)


@pytest.mark.parametrize("sigma", [0.01, 1.5])
def test_enrichment_finds_chance_at_most_as_often_as_stated_in_skewed_features(sigma):
    """With sigma 1.5 a component is hardly more than its one heaviest feature."""
    rng = np.random.default_rng(3)
    X, names = rng.lognormal(0.0, sigma, size=(200, 300)), [f"g{i}" for i in range(300)]
    sets = {f"s{i}": rng.choice(names, 15, replace=False).tolist() for i in range(250)}
    model = AdaptivePPCA(4, 1, random_state=0).fit(X)
    assert_levels(enrichment(model, X, sets, names).assign(part=""))


@pytest.mark.parametrize("n_tests", [25, 200, 2000])
def test_one_strong_effect_is_found_among_many_tests(n_tests):
    rng = np.random.default_rng(n_tests)
    active = rng.random((N, 1)) < 0.5
    active[:2, 0] = True, False
    table = {f"x{i}": rng.normal(size=N) for i in range(n_tests)}
    table["x0"] = table["x0"] + 1.5 * active[:, 0]
    use = associated(active * 1.0, active, table, random_state=0)
    assert use.loc[use["q"] < 0.05, "column"].tolist()[0] == "x0"
    assert (use["q"] < 0.05).sum() <= 3
    p = use.set_index("column").loc["x0", "p"]
    exact = stats.mannwhitneyu(table["x0"][active[:, 0]], table["x0"][~active[:, 0]]).pvalue
    assert abs(np.log10(p) - np.log10(max(exact, CLEAR))) < 2.5


def test_an_effect_of_nine_deviations_is_found_among_300_tests():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(150, 140))
    B = rng.normal(size=(150, 140))
    B[:, 3] += 9.0
    tests = drift(AdaptivePPCA(6, 1, random_state=0).fit(rng.normal(size=(150, 140))), A, B)
    assert len(tests) >= 280
    assert tests.loc[0, ["column", "part"]].tolist() == ["feature 4", "level"]
    assert tests.loc[0, "q"] < 1e-3


@pytest.mark.parametrize("distribution", [stats.norm(), stats.chi2(1), stats.chi2(9)])
def test_the_tail_is_that_of_the_distribution_or_heavier(distribution):
    exact = np.array([0.3, 1e-2, 1e-3, 1e-5, 1e-6])
    rng = np.random.default_rng(1)

    def draw(m, tests):
        return distribution.rvs((m, len(tests)), random_state=rng)

    p = np.median([permuted(distribution.isf(exact), draw, 999)[0] for _ in range(7)], axis=0)
    assert (p > exact / 3).all()
    assert (p < exact**0.75).all()


def test_p_is_at_least_what_the_orders_of_few_rows_allow_and_the_page_says_so():
    """Twelve rows in two halves have 924 orders, two of which are extreme."""
    side = np.arange(12) < 6
    tests = associated(side[:, None] * 1.0, side[:, None], {"x": np.arange(12.0)}, random_state=0)
    assert tests.loc[0, "p"] == pytest.approx(2 / 924, rel=0.6)
    assert tests.attrs["least_q"] == pytest.approx(1 / 924)
    rng = np.random.default_rng(0)
    few = [{f"x{i}": rng.normal(size=6) for i in range(60)} for _ in range(2)]
    tests = drifted(*few)
    assert tests.attrs["least_q"] >= 0.05
    assert sentence(tests, ()).startswith("**Nothing can be concluded")
    many = [{f"x{i}": rng.normal(size=100) for i in range(6)} for _ in range(2)]
    assert "No shift was found" in sentence(drifted(*many), ())


def test_components_are_compared_on_rows_that_the_fit_has_not_seen():
    """In 100 rows of 200 features, W suits the rows it was fitted to."""
    rng = np.random.default_rng(2)
    X, new = rng.normal(size=(2, 100, 200))
    model = AdaptivePPCA(6, 2, random_state=0).fit(X)
    of_components = drift(model, X, new).query("column.str.contains('uses|score')")
    assert of_components["q"].min() > 0.05
    assert of_components["n"].max() == 150
    unseen = drift(model, X[:99], new).query("column.str.contains('uses')")
    assert unseen["n"].max() == 199, "not all rows of the fit"
