"""A group against the rest, checked by counting pairs, by scipy and by permutation."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from appca.analysis import groups as group_difference
from appca.analysis.fitted import FittedRun
from appca.analysis.groups import GroupComparison, compare, differences, sentence
from appca.data.dataset import Dataset
from appca.words import InputError
from tests.fitted_runs import fitted_run


def made(seed: int, n: int = 300, features: int = 8) -> tuple[Dataset, FittedRun, np.ndarray]:
    """Rows among which nothing differs, and a group of a quarter of them."""
    rng = np.random.default_rng(seed)
    names = tuple(f"f{j}" for j in range(features))
    labels = {"kind": rng.choice(list("abcd"), n), "weight": rng.normal(size=n)}
    dataset = Dataset("d", rng.normal(size=(n, features)), np.arange(n), labels, None, names)
    active = np.argsort(rng.random((n, 4)), axis=1) < 2
    fitted = fitted_run(
        active=active,
        scores=np.where(active, rng.normal(size=(n, 4)), 0).astype(np.float32),
        error=rng.random(n).astype(np.float32),
        membership=rng.random(n).astype(np.float32),
        log_likelihood_rows=rng.normal(size=n),
    )
    mask = np.zeros(n, dtype=bool)
    mask[rng.permutation(n)[: n // 4]] = True
    return dataset, fitted, mask


def planted(
    dataset: Dataset, fitted: FittedRun, mask: np.ndarray, where: str
) -> tuple[Dataset, FittedRun]:
    """The same with one strong difference."""
    X, labels, active = np.array(dataset.X), dict(dataset.labels), np.array(fitted.active)
    X[mask, 5] += 3 * (where == "f5")
    active[:, 1] = mask if where == "use of component 2" else active[:, 1]
    scores = fitted.scores - 4 * (where == "score on component 3") * np.outer(
        mask, np.arange(4) == 2
    )
    labels["kind"] = np.where(mask & (where == "kind = c"), "c", labels["kind"])
    labels["weight"] = labels["weight"] - 3 * (mask & (where == "weight"))
    error = fitted.error + 2 * (mask & (where == "residual"))
    changed = Dataset("d", X, dataset.ids, labels, None, dataset.feature_names)
    return changed, replace(fitted, active=active, scores=scores * active, error=error)


PLANTED = ("f5", "use of component 2", "score on component 3", "kind = c", "weight", "residual")


def compared(x: np.ndarray, y: np.ndarray) -> list[tuple[float, float | None, float]]:
    """Effect, Cohen's d and p of each column."""
    names = [str(j) for j in range(x.shape[1])]
    return [(one.effect, one.d, one.p) for one in differences("feature", names, x, y)]


@pytest.mark.parametrize("where", PLANTED)
def test_a_planted_difference_ranks_first(seed, where):
    dataset, fitted, mask = made(seed)
    dataset, fitted = planted(dataset, fitted, mask, where)
    found = compare(dataset, fitted, mask)
    first = found.differences[0]
    assert first.name == where
    assert first.matters
    assert first.strength == "large"
    assert (first.effect < 0) == (where in ("score on component 3", "weight"))
    assert where in sentence(found)
    sizes = [abs(one.effect) for one in found.differences]
    assert sizes == sorted(sizes, reverse=True)


def test_all_tests_are_corrected_together_and_chance_is_found_as_rarely_as_it_should_be(seed):
    dataset, fitted, mask = made(seed, n=120)
    found = compare(dataset, fitted, mask)
    # 8 features, 4 scores, 4 uses, 6 subspaces, 4 kinds, 1 weight, 3 measures
    assert found.n_tests == len(found.differences) == 30
    p = np.array([one.p for one in found.differences])
    ranks = [np.sum(p <= one) for one in p]  # Benjamini and Hochberg: least m p_j / j of p_j >= p
    expected = [min(30 * p[j] / ranks[j] for j in np.flatnonzero(p >= one)) for one in p]
    got = [one.corrected for one in found.differences]
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    masks = (np.random.default_rng(seed + k).permutation(120) < 30 for k in range(60))
    found = [min(one.corrected for one in compare(dataset, fitted, m).differences) for m in masks]
    # At most 5% of 60 are expected; 11 or more happen with probability 2e-4.
    assert (np.array(found) < 0.05).sum() <= 10


def test_effects_of_numbers_are_counted_pairs_and_pooled_deviations(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 9, (13, 3)), rng.integers(0, 9, (21, 3))
    for j, (delta, d, _) in enumerate(compared(x, y)):
        assert delta == pytest.approx(np.sign(x[:, None, j] - y[None, :, j]).mean(), abs=1e-12)
        pooled = np.sqrt((12 * x[:, j].var(ddof=1) + 20 * y[:, j].var(ddof=1)) / 32)
        assert d == pytest.approx((x[:, j].mean() - y[:, j].mean()) / pooled, rel=1e-12)
    ((delta, d, p),) = compared(np.full((4, 1), 2.0), np.full((9, 1), 2.0))
    assert (delta, np.isnan(d), p) == (0.0, True, 1.0), "a constant column differs in nothing"
    ((_, _, p),) = compared(np.array([[5.0], [6], [7]]), np.array([[1.0], [2], [3], [4]]))
    assert p == pytest.approx(2 / 35), "of C(7, 3) arrangements, two tails"


@pytest.mark.parametrize("counts", [(30, 50, 40, 100), (990, 1000, 400, 9000), (3, 4, 1, 40)])
def test_shares_are_tested_by_chi_square_and_those_of_few_rows_exactly(counts):
    a, n, b, m = counts
    table = [[a, n - a], [b, m - b]]
    expected = stats.chi2_contingency(table, correction=False).pvalue
    if n < 10:
        expected = stats.fisher_exact(table).pvalue
    x, y = (np.arange(size)[:, None] < some for some, size in ((a, n), (b, m)))
    ((effect, _, p),) = compared(x, y)
    assert (effect, p) == pytest.approx((a / n - b / m, expected), rel=1e-9)
    assert compared(x | True, y | True) == []


def test_shares_means_and_missing_numbers_are_those_of_the_rows(seed):
    dataset, fitted, mask = made(seed)
    weight = np.array(dataset.labels["weight"])
    weight[::3] = np.nan
    dataset = Dataset("d", dataset.X, dataset.ids, {"weight": weight}, None, None)
    found = {one.name: one for one in compare(dataset, fitted, mask).differences}
    use = found["use of component 3"]
    assert use.is_share
    assert use.group == pytest.approx(fitted.active[mask, 2].mean())
    assert use.rest == pytest.approx(fitted.active[~mask, 2].mean())
    users = fitted.active[:, 0]
    score = found["score on component 1"]
    assert score.group == pytest.approx(fitted.scores[mask & users, 0].mean(), rel=1e-5)
    assert found["feature 3"].rest == pytest.approx(dataset.X[~mask, 2].mean())
    there = np.isfinite(weight)
    expected = stats.mannwhitneyu(weight[mask & there], weight[~mask & there], method="asymptotic")
    assert found["weight"].p == pytest.approx(expected.pvalue)


def test_very_many_values_are_compared_on_a_sample_that_is_stated_and_pixels_are_not(monkeypatch):
    dataset, fitted, mask = made(3, n=3000)
    dataset, fitted = planted(dataset, fitted, mask, "f5")
    assert compare(dataset, fitted, mask).sampled is None
    monkeypatch.setattr(group_difference, "MOST_VALUES", 1)
    found = compare(dataset, fitted, mask)
    assert found.sampled == 750 + 1000  # the whole group, and a thousand others
    assert found.differences[0].name == "f5"
    assert found.differences == compare(dataset, fitted, mask).differences
    pictures = Dataset("d", dataset.X, dataset.ids, dataset.labels, (2, 4))
    kinds = {one.kind for one in compare(pictures, fitted, mask).differences}
    assert kinds == {"measure", "score", "use", "subspace", "class"}


@pytest.mark.parametrize("selected", [0, 1, 299, 300])
def test_a_group_without_enough_rows_on_both_sides_is_refused(selected):
    dataset, fitted, _ = made(0)
    with pytest.raises(InputError, match=f"got {selected:,} selected and {300 - selected:,} other"):
        compare(dataset, fitted, np.arange(300) < selected)


def test_the_sentence_names_at_most_one_difference_of_each_kind():
    dataset, fitted, mask = made(1)
    dataset, fitted = planted(dataset, fitted, mask, "f5")
    dataset, fitted = planted(dataset, fitted, mask, "kind = c")
    X = np.array(dataset.X)
    X[mask, 1] -= 2.5
    dataset = Dataset("d", X, dataset.ids, dataset.labels, None, dataset.feature_names)
    text = sentence(compare(dataset, fitted, mask))
    assert text.startswith("These rows differ from the rest most in ")
    assert "f5 (higher: " in text
    assert "kind = c (100% of them, " in text
    assert "f1" not in text
    nothing = sentence(GroupComparison(5, 95, [], None, 30))
    assert "do not differ: in 30 tests" in nothing


@pytest.mark.parametrize("mixed", [False, True])
def test_a_group_of_a_panel_is_told_by_more_than_its_panel(mixed):
    dataset, fitted, _ = made(0)
    supports = [tuple(support) for support in fitted.active]
    first = max(set(supports), key=supports.count)
    mask = np.array([support == first for support in supports])
    mask[np.flatnonzero(~mask)[0]] |= mixed
    kinds = {difference.kind for difference in compare(dataset, fitted, mask).differences}
    assert ("subspace" in kinds, "use" in kinds) == (mixed, mixed)
    assert {"class", "measure"} <= kinds
