"""Tests of comparisons of groups, rules, and stored selections."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from appca import AdaptivePPCA, class_overlap, rule
from appca.analysis import groups
from appca.analysis.fitted import FittedRun
from appca.analysis.groups import GroupComparison, GroupDifference, compare, differences, sentence
from appca.analysis.rule import Clause, RowRule, RuleQuality, described, rule_table
from appca.analysis.selections import COMBINATIONS, SelectionStore, token_of
from appca.data.columns import NAME_LENGTH
from appca.data.dataset import Dataset
from appca.data.preprocessing import Preprocessing
from appca.data.sources import load
from appca.words import InputError, apart
from tests.fitted_runs import fitted_run


def made(seed: int, n: int = 300, features: int = 8) -> tuple[Dataset, FittedRun, np.ndarray]:
    """Rows among which nothing differs, and a group of a quarter of them."""
    rng, names = np.random.default_rng(seed), tuple(f"f{j}" for j in range(features))
    labels = {"kind": rng.choice(list("abcd"), n), "weight": rng.normal(size=n)}
    dataset = Dataset("d", rng.normal(size=(n, features)), np.arange(n), labels, None, names)
    active = np.argsort(rng.random((n, 4)), axis=1) < 2
    scores = np.where(active, rng.normal(size=(n, 4)), 0).astype(np.float32)
    error, membership = rng.random((2, n)).astype(np.float32)
    rows = {"scores": scores, "error": error, "membership": membership}
    fitted = fitted_run(active, log_likelihood_rows=rng.normal(size=n), **rows)
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
    third = np.outer(mask, np.arange(4) == 2) * (where == "score on component 3")
    labels["kind"] = np.where(mask & (where == "kind = c"), "c", labels["kind"])
    labels["weight"] = labels["weight"] - 3 * (mask & (where == "weight"))
    error = fitted.error + 2 * (mask & (where == "residual"))
    changed = Dataset("d", X, dataset.ids, labels, None, dataset.feature_names)
    scores = (fitted.scores - 4 * third) * active
    return changed, replace(fitted, active=active, scores=scores, error=error)


@pytest.mark.parametrize(
    ("two", "told"),
    [((130.2, 129.72), "130.2 129.72"), ((-1.444, 0.42), "−1.44 0.42"), ((5, 5), "5 5")],
)
def test_numbers_have_as_many_digits_as_show_their_difference(two, told):
    assert " ".join(apart(*two)) == told


def test_rows_among_another_class_are_found_where_classes_stand_apart(seed):
    rng, codes = np.random.default_rng(seed), np.repeat([0, 1], 60)
    X = rng.normal(size=(120, 4)) + 9 * codes[:, None]
    of = Dataset("two", X, np.arange(120)), fitted_run(np.ones((120, 4), dtype=bool))
    codes[[5, 99]], near = (1, 0), groups.nearest(*of)
    of_classes, n = class_overlap, np.arange(120)
    assert of_classes.strays(codes, near) == {5: 0, 99: 1}
    assert of_classes.mixing(codes, near, 2).tolist() == [[59, 1], [1, 59]]
    assert of_classes.mixed(codes, near) == []
    assert of_classes.mixed(rng.permutation(codes), near) == [0, 1]
    table, unlikely = of_classes.discriminated(X, codes, n)
    assert (table.tolist(), [*unlikely]) == ([[59, 1], [1, 59]], [99, 5])
    assert [to for to, own in unlikely.values() if own < 1e-3] == [1, 0]
    assert 40 < np.trace(of_classes.discriminated(X, rng.permutation(codes), n // 2)[0]) < 80
    assert not of_classes.discriminated(X[:8], codes[:8], n[:8])[0].any(), "too few of a class"
    planted = np.repeat([0, 1, 2, 2], 15) * 30.0  # of 15, 15 and 30 rows in class 0
    split = of_classes.kinds(X + np.r_[planted, planted][:, None], np.repeat([0, 1], 60), 3)
    assert [sorted(rows)[::14] for rows in split[:1]] == [[30, 44, 58]]
    assert [len(rows) for rows in split] == [30, 15, 15] * 2
    three = [np.r_[:15, 30:60], np.r_[15:30], np.r_[60:120]]  # at 0 and 60, at 30, and alone
    firm = of_classes.silhouettes(np.r_[planted, planted][:, None], np.repeat([0, 1], 60), three)
    first, last = 30 / (1800 / 44) - 1, 1 - (900 / 44) / 30  # b / a - 1 if a > b, else 1 - a / b
    assert firm == pytest.approx([(first + 2 * last) / 3, 1, 0])
    angle, font = np.deg2rad([0, 30, 90, 0, 20, 90, 0, 80, 90]), np.repeat([*"uvw"], 3)
    ink = np.outer([1, 1, -1, -1], np.cos(angle)) + np.outer([1, -1, 1, -1], np.sin(angle))
    ink = of_classes.at_one_contrast(ink.T * (2 + n[:9, None]) + 5)
    inside = of_classes.inside_groups(ink, n[:9] % 3, "abc", font)
    assert [pair[:3] for pair in inside[:3]] == [("w", *"bc"), ("v", *"ab"), ("u", *"ab")]
    assert inside[0][3] == pytest.approx(2 * np.sin(np.deg2rad(5))), "whatever the contrast"
    said = "a and b (3 of 3, usually 0.52 apart), b and c (3 of 3, usually 1.00 apart)"
    assert (len(inside), of_classes.closest_inside(inside)) == (9, said)
    away = of_classes.far_groups(X[:60] + 9 * (n[:60, None] > 53), n[:60] % 2, n[:60] // 6)
    assert next(iter(away)) == 54, "the first of a group of which every row is far"
    shifted = X + 30 * np.outer(n >= 100, [0, 1, 0, 0])  # of class 1, the last third in a feature
    assert np.flatnonzero(of_classes.beyond_gap(shifted[60:])).tolist() == [*range(40, 60)]
    assert {*of_classes.two_apart(np.c_[X[:, :1], X[:, :1], X[:, 2:3]], codes)} == {0, 2}
    assert of_classes.equal_to_others({3: 0, 9: 8}, n[:10] // 3) == {0: 3, 3: 0, 8: 9, 9: 8}
    two = Dataset("kinds", X + np.r_[np.zeros(60), planted][:, None] / 3, n)
    found = groups.kinds(two, of[1], np.repeat([0, 1], 60), 3)
    assert [len(rows) for rows, *_ in found] == [60, 30, 15, 15], "of tables, only clear ones"
    assert (not found[0][1], {d.name for d in found[1][1]}) == (True, {*two.column_names})
    assert of_classes.unlike_class(X + [0, 0, 20, 0] * (n == 30)[:, None], codes)[30] == 2
    near_all = np.tile(np.arange(10), (11, 1))
    assert of_classes.most_near(n[:11] // 2, near_all)[[4, 10]].tolist() == [0, 0], "the nearer"
    pairs = Dataset("pairs", X, n, {"subject": n // 2})
    assert (groups.nearest(pairs, of[1]) // 2 != n[:, None] // 2).all(), "other units"
    assert (groups.nearest(pairs, of[1], in_units=True) == near).all()
    copied = Dataset("copied", np.vstack([X, X[:3]]), np.arange(123))
    assert (groups.nearest(copied, of[1])[:3] != [[120], [121], [122]]).all(), "its copy"
    many = np.arange(1200)  # of which so many are at a site that sites are classes
    assert Dataset("m", np.c_[many, many % 7.0], many, {"site": many % 12}).related == ""
    lone = X + [4, 0, 0, 0] * (n == 30)[:, None]  # towards no other class
    assert 30 in of_classes.apart_in_class(lone, codes)
    some = np.where(n % 7, X[:, 0], np.nan)
    H = stats.kruskal(some[codes == 0], some[codes == 1], nan_policy="omit").statistic
    assert f"a {H / 101:.2f}" in of_classes.marked(np.c_[some, X[:, 1:]], "abcd", codes)[0]
    gaps = (n == 7)[:, None] & [True, False, True, True]
    filled = replace(of[1], imputed=X[gaps])  # neighbours are those of the model's values
    lost = replace(of[0], X=np.where(gaps, 4.5, X), missing=gaps)
    assert (groups.nearest(lost, filled) == near).all()
    assert of_classes.strays(rng.integers(2, size=120), near) == {}
    codes[60:90:2] = 2  # no class has nine of the ten nearest rows of row 99
    assert of_classes.strays(codes, near)[99] in {1, 2}
    codes = np.where(np.arange(120) < 60, 0, 1 + np.arange(120) % 4)
    codes[99] = 0
    most = np.bincount(codes[near[99]])
    assert of_classes.strays(codes, near)[99] == (most.argmax() if most.max() >= 5 else -1)


def test_images_are_compared_by_their_colours_and_nearly_equal_ones_are_paired(seed):
    rng, n = np.random.default_rng(seed), 60
    X = rng.uniform(size=(n, 4, 4, 3))
    X[:20, ..., 0] += 1.0
    X[7], X[9] = X[5] + 0.01, X[8]
    shown = Dataset("red", X.reshape(n, -1), np.arange(n), {}, (4, 4, 3))
    of = shown, fitted_run(np.ones((n, 48), dtype=bool))
    told = [d for d in compare(*of, np.arange(n) < 20).differences if d.kind == "image"]
    assert (told[0].name, told[0].effect, len(told)) == ("mean red", 1.0, 4)
    assert [", red" in d.name and d.effect > 0.8 for d in told if "pixel" in d.name] == [True]
    chance = [d for d in compare(*of, np.arange(n) % 2 > 0).differences if "pixel" in d.name]
    assert chance[0].p > 0.01, "48 times that of the pixel alone"
    assert groups.nearly_equal(*of, groups.nearest(*of)) == {7: 5}, "equal rows are told apart"
    table = replace(shown, image_shape=None)
    assert groups.nearly_equal(table, of[1], groups.nearest(*of)) == {}


def test_rows_of_a_rare_kind_are_among_alike_and_errors_are_not(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600, 5))
    X[:40] += 12  # a kind; the first ten of the others are errors, each another
    X[40:50] += 15 * rng.normal(size=(10, 5))
    of = Dataset("kinds", X, np.arange(600)), fitted_run(np.ones((600, 5), dtype=bool))
    alike = groups.among_alike(*of)
    assert (alike[:40].mean() > 0.5, alike[40:50].any()) == (True, False)


PLANTED = ("f5", "use of component 2", "score on component 3", "kind = c", "weight", "residual")


@pytest.mark.parametrize("where", PLANTED)
def test_a_planted_difference_ranks_first(seed, where):
    dataset, fitted, mask = made(seed)
    dataset, fitted = planted(dataset, fitted, mask, where)
    found = compare(dataset, fitted, mask)
    first = found.differences[0]
    assert (first.name, first.matters) == (where, True)
    assert abs(first.effect) > 0.474, "large"
    assert (first.effect < 0) == (where in ("score on component 3", "weight"))
    assert where in sentence(found)
    sizes = [abs(one.effect) for one in found.differences]
    assert sizes == sorted(sizes, reverse=True)


def test_sizes_of_rows_that_the_fit_does_not_see_are_no_differences(seed):
    dataset, fitted, mask = made(seed)
    X, higher = np.exp(dataset.X / 9 + 3.0 * mask[:, None]), []
    X[mask, 2] *= 2.0
    for how in ("clr", "none"):
        prepared = replace(fitted, preprocessing=Preprocessing(prepare=how).fit(X))
        told = compare(replace(dataset, X=X), prepared, mask).strongest()
        higher.append({each.name for each in told if each.kind == "feature" and each.effect > 0})
    assert (higher[0], len(higher[1])) == ({"f2"}, 8)


ALIKE = {"group": 2.0, "rest": 1.0, "d": 1.0, "p": 0.0, "corrected": 0.0}


def test_the_sentence_names_what_the_chart_shows():
    columns = [GroupDifference("feature", f"f{j}", effect=0.9, **ALIKE) for j in range(10)]
    last = GroupDifference("measure", "residual", effect=0.8, **ALIKE)
    text = sentence(GroupComparison(9, [*columns, last], None, []))
    assert ("f0" in text, "residual" in text) == (True, False)
    text = sentence(GroupComparison(9, [*columns[:9], last], None, ["t a"]))
    assert text.startswith("These rows, all 9 of t a, differ from the rest most in f0")
    assert "residual" in sentence(GroupComparison(9, [last], None, []))


def test_neighbouring_features_are_one_stretch():
    sizes = [0.1, 0.5, 0.9, 0.6, -0.7, -0.5, 0.0, 0.8]
    every = [GroupDifference("feature", f"f{j}", effect=x, **ALIKE) for j, x in enumerate(sizes)]
    every, names = sorted(every, key=lambda x: -abs(x.effect)), [f"f{j}" for j in range(8)]
    told = GroupComparison(9, every, None, [], names).strongest()
    assert [x.name for x in told] == ["f1 to f3, most at f2", "f7", "f4 to f5, most at f4"]


def test_all_tests_are_corrected_together_and_chance_is_found_as_rarely_as_it_should_be(seed):
    dataset, fitted, mask = made(seed, n=120)
    found = compare(dataset, fitted, mask)
    # 8 features, 4 scores, 4 uses, 6 subspaces, 4 kinds, 1 weight, 3 measures
    assert len(found.differences) == 30
    p = np.array([one.p for one in found.differences])
    ranks = [np.sum(p <= one) for one in p]  # Benjamini and Hochberg: least m p_j / j of p_j >= p
    expected = [min(30 * p[j] / ranks[j] for j in np.flatnonzero(p >= one)) for one in p]
    np.testing.assert_allclose([one.corrected for one in found.differences], expected, rtol=1e-12)
    masks = (np.random.default_rng(seed + k).permutation(120) < 30 for k in range(40))
    found = [min(one.corrected for one in compare(dataset, fitted, m).differences) for m in masks]
    # At most 5% of 40 are expected; 9 or more happen with probability 2e-4.
    assert (np.array(found) < 0.05).sum() <= 8


@pytest.mark.parametrize("counts", [(30, 50, 40, 100), (3, 4, 1, 40)])
def test_effects_and_p_are_counted_pairs_pooled_deviations_and_the_usual_tests(seed, counts):
    def compared(x: np.ndarray, y: np.ndarray) -> list[tuple[float, float | None, float]]:
        names = [str(j) for j in range(x.shape[1])]
        return [(one.effect, one.d, one.p) for one in differences("feature", names, x, y)]

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
    a, n, b, m = counts  # shares: chi-square, and exactly where rows are few
    table = [[a, n - a], [b, m - b]]
    few = stats.fisher_exact(table).pvalue
    expected = few if n < 10 else stats.chi2_contingency(table, correction=False).pvalue
    x, y = (np.arange(size)[:, None] < some for some, size in ((a, n), (b, m)))
    ((effect, _, p),) = compared(x, y)
    assert (effect, p) == pytest.approx((a / n - b / m, expected), rel=1e-9)
    assert compared(x | True, y | True) == []


def test_shares_means_and_missing_numbers_are_those_of_the_rows(seed):
    dataset, fitted, mask = made(seed)
    weight = np.where(np.arange(300) % 3, dataset.labels["weight"], np.nan)
    dataset = Dataset("d", dataset.X, dataset.ids, {"weight": weight}, None, None)
    found = {one.name: one for one in compare(dataset, fitted, mask).differences}
    use = found["use of component 3"]
    shares = [fitted.active[rows, 2].mean() for rows in (mask, ~mask)]
    assert (use.is_share, use.group, use.rest) == (True, *map(pytest.approx, shares))
    users, x, scores = fitted.active[:, 0], dataset.X[:, 2], fitted.scores[:, 0].astype(float)
    sides = {"score on component 1": (scores[mask & users], scores[~mask & users])}
    for name, both in (sides | {"feature 3": (x[mask], x[~mask])}).items():
        of, medians = found[name], [*map(np.median, both)]
        as_effect = np.subtract(*medians) * of.effect > 0  # otherwise, means
        assert (of.group, of.rest) == pytest.approx(medians if as_effect else [*map(np.mean, both)])
    there = np.isfinite(weight)
    expected = stats.mannwhitneyu(weight[mask & there], weight[~mask & there], method="asymptotic")
    assert found["weight"].p == pytest.approx(expected.pvalue)
    sides, both = np.where(there, mask, -1), fitted.with_rows(fitted.take(there))
    assert compare(dataset, fitted, sides) == compare(dataset.take(there), both, mask[there])
    for selected in (1, 299):
        with pytest.raises(InputError, match=f"2 rows .* got {selected} and {300 - selected}"):
            compare(dataset, fitted, np.arange(300) < selected)


def test_very_many_values_are_compared_on_a_sample_that_is_stated_and_pixels_are_not(monkeypatch):
    dataset, fitted, mask = made(3, n=3000)
    dataset, fitted = planted(dataset, fitted, mask, "f5")
    assert compare(dataset, fitted, mask).sampled is None
    monkeypatch.setattr(groups, "MOST_VALUES", 1)
    found, whole = compare(dataset, fitted, mask), compare(dataset, fitted, mask).differences
    assert (found.sampled, found.differences[0].name, found.differences) == (1750, "f5", whole)
    pictures = Dataset("d", dataset.X, dataset.ids, dataset.labels, (2, 4))
    kinds = {one.kind for one in compare(pictures, fitted, mask).differences}
    assert kinds == {"measure", "score", "use", "subspace", "class", "image"}


def test_labels_nested_in_the_class_of_the_group_are_no_findings(seed):
    (dataset, fitted, mask), kind = made(seed), made(seed)[0].labels["kind"]
    part = np.char.add(kind, np.where(dataset.labels["weight"] > 1, "1", "2"))
    labels = {"kind": kind, "part": part, "vowel": kind == "a", "other": mask}
    dataset, whole = replace(dataset, labels=labels), {"other"}
    both = mask | (kind == "b")
    for group, told in ((kind == "b", whole), (part == "b1", whole), (both, labels)):
        found = compare(dataset, fitted, group).differences
        assert {one.name.partition(" =")[0] for one in found if one.kind == "class"} == set(told)
    seen = np.where(np.arange(len(kind)) % 3, kind, "")
    found = compare(replace(dataset, labels={"seen": seen}), fitted, mask).differences
    of_b, gone = (next(d.group for d in found if d.name == f"seen = {c}") for c in ("b", "missing"))
    assert (of_b, gone) == (np.mean(kind[mask & (seen != "")] == "b"), np.mean(seen[mask] == ""))


def test_a_group_of_a_panel_is_told_by_more_than_its_panel():
    dataset, fitted, _ = made(0)
    supports = [tuple(support) for support in fitted.active]
    first = max(set(supports), key=supports.count)
    for mixed in (False, True):
        mask = np.array([support == first for support in supports])
        mask[np.flatnonzero(~mask)[0]] |= mixed
        kinds = {difference.kind for difference in compare(dataset, fitted, mask).differences}
        assert ("subspace" in kinds, "use" in kinds) == (mixed, mixed)
        assert {"class", "measure"} <= kinds


N = 900


def a_table(seed: int) -> dict:
    rng = np.random.default_rng(seed)
    columns = {f"x{j}": rng.normal(size=N) for j in range(20)}
    columns |= {"kind": np.array(list("abcd"))[rng.integers(0, 4, N)]}
    active = rng.random((N, 4)) < 0.6
    return rule_table(np.where(active, rng.normal(size=(N, 4)), 0.0), active, columns.items())


@pytest.mark.parametrize("number", range(2))
def test_a_planted_box_is_found_again(number):
    table = a_table(number)
    price, score = table["x3"], table["score 2"].values
    found = described(table, (price < 0.6) & (price > -1) & (score > -0.2), random_state=number)
    assert {clause.column for clause in found.clauses} == {"x3", "score 2"}
    assert min(found.quality) > 0.93
    bounds = {clause.column: clause for clause in found.clauses}
    assert bounds["x3"][1:3] == pytest.approx((-1, 0.6), abs=0.1)
    assert bounds["score 2"].low == pytest.approx(-0.2, abs=0.1)


def test_rows_of_one_kind_or_another_are_those_that_miss_a_condition():
    """No box of conditions describes them: it loses one kind, or takes others in."""
    table = a_table(1)
    either = (table["x3"] > 0.5) | (table["uses 3"].values == 1)
    found = described(table, either, random_state=1)
    assert {clause.column for clause in found.clauses} == {"x3", "uses 3"}
    assert min(found.quality) > 0.97
    assert found.conditions().startswith("not (")
    frame = pd.DataFrame({"x3": table["x3"], "uses 3": table["uses 3"].values == 1})
    assert eval(found.to_pandas(), {"table": frame}).tolist() == found.mask(table).tolist()
    assert not described(table, ~either, random_state=1).negated, "a box is said as a box"


def test_use_and_classes_are_conditions_and_rows_that_use_two_components_are_called_so():
    """A range of scores that none of them leaves would select the same rows."""
    rng = np.random.default_rng(1)
    active = rng.random((N, 4)).argsort(axis=1) < 2
    scores = np.where(active, rng.normal(size=(N, 4)), 0.0)
    scores[~active[:, 1], 0] *= 3.0
    table = rule_table(scores, active)
    conditions = described(table, active[:, 0] & active[:, 1], random_state=1).conditions()
    assert conditions in ("uses 1, uses 2", "uses 2, uses 1")
    table = a_table(1)
    uses = table["uses 3"].values == 1
    found = described(table, (table["kind"] == "b") & uses).sentence(["", "", "slant"])
    assert found == "kind is b, uses slant: 100% of them, 100% right"
    assert described(table, ~uses).sentence() == "does not use 3: 100% of them, 100% right"


def test_what_is_held_out_is_not_seen():
    table = a_table(2)
    wanted = table["x1"] > 0
    first, order = described(table, wanted, random_state=0), np.random.default_rng(0)
    groups = [order.permutation(np.flatnonzero(m)) for m in (wanted, ~wanted)]
    held = np.concatenate([rows[: len(rows) // 3] for rows in groups])
    other = table | {"x1": np.where(np.isin(np.arange(N), held), 0.0, table["x1"])}
    second = described(other, wanted, random_state=0)
    assert (second.clauses, second.n_held_out) == (first.clauses, len(held))
    assert second.quality != first.quality


def test_code_text_and_replay_select_the_same_rows():
    X = np.random.default_rng(6).normal(size=(400, 6))
    frame = pd.DataFrame({"price": X[:, 0], "kind": np.where(X[:, 1] > 0, "it's", "no")})
    model = AdaptivePPCA(3, 1, init="pca", random_state=0).fit(X)
    rows = model.describe(X)
    wanted = rows.active[:, 1] & (rows.scores[:, 1] > 0) & (X[:, 0] < 0.5)
    found = rule(model, X, wanted, frame)
    mask = found.select(model, X, frame)
    assert (mask & wanted).sum() / wanted.sum() > 0.9
    space = {"model": model, "X": X, "table": frame.copy(), "np": np}
    exec(found.to_python(), space)
    assert space["selected"].index.tolist() == np.flatnonzero(mask).tolist()
    table = rule_table(rows.scores, rows.active, frame.items())
    clauses = (Clause("kind", value="it's"), Clause("uses 1", value=False))
    made = RowRule(clauses, RuleQuality(1, 1), 1)
    frame["uses 1"] = rows.active[:, 0]
    assert eval(made.to_pandas(), {"table": frame}).tolist() == made.mask(table).tolist()
    assert made.mask(table).tolist() == ((frame["kind"] == "it's") & ~rows.active[:, 0]).tolist()
    gaps = pd.DataFrame({"a": [np.nan, 1.0, 3.0], "b": ["x", None, "x"]})
    assert Clause("a", low=0.0).mask(gaps["a"]).tolist() == [False, True, True]
    assert Clause("a", high=2.0).mask(gaps["a"]).tolist() == [False, True, False]
    assert Clause("b", value="x").mask(gaps["b"]).tolist() == [True, False, True]
    columns = rule_table(np.ones((2, 1)), np.eye(2, 1) > 0, [("uses 1", 5), ("a", 6), ("a", 7)])
    assert list(columns) == ["uses 1 (column)", "a", "a (column)", "uses 1", "score 1"]
    assert columns["uses 1 (column)"] == 5


def test_refusals_say_what_was_given_and_what_to_do():
    columns, few = a_table(0), np.arange(N) < 3
    for given, selected, words in (
        (columns, few, "at least 6 selected rows and 6 others; got 3 and 897"),
        (columns, np.arange(12) < 6, "“x0” has 900 values for 12 rows; give one value per row"),
        ({"same": np.ones(N)}, np.arange(N) < 50, "No column distinguishes"),
    ):
        with pytest.raises(InputError, match=words):
            described(given, selected)
    made = RowRule((Clause("price", high=2.0),), RuleQuality(1, 1), 1)
    with pytest.raises(InputError, match="needs the column “price”, which the table lacks"):
        made.mask(columns)


DIGEST = "ab" * 32


def mask_of(*rows: int, n: int = 10) -> np.ndarray:
    mask = np.zeros(n, dtype=bool)
    mask[list(rows)] = True
    return mask


def test_named_selections_come_back_from_the_disk(tmp_path):
    """Damaged files, and those of other rows: tests/faults/test_damage.py."""
    store = SelectionStore(tmp_path)
    for name, mask in (
        *(("door", mask_of(1)), ("  odd\n ones ", mask_of(1)), ("odd ones", mask_of(1, 3, 9))),
        ("All of <b>it</b> /../..", ~mask_of()),
    ):
        store.save(DIGEST, name, mask)
    again = SelectionStore(tmp_path).list(DIGEST, 10)
    assert [saved.name for saved in again] == ["All of <b>it</b> /../..", "door", "odd ones"]
    assert set(np.flatnonzero(again[2].mask)) == {1, 3, 9}
    assert SelectionStore(tmp_path).list("cd" * 32, 10) == []
    inside = [path.relative_to(tmp_path).parts for path in tmp_path.rglob("*.npz")]
    assert {parts[:2] for parts in inside} == {("selections", DIGEST)}
    for _ in range(2):
        store.delete(DIGEST, "door")
    for digest, name, mask, words in (
        (DIGEST, " \n ", mask_of(1), "needs a name"),
        (DIGEST, "empty", mask_of(), "no rows to save as “empty”"),
        ("../../x", "name", mask_of(1), "64 hex digits"),
    ):
        with pytest.raises(InputError, match=words):
            store.save(digest, name, mask)
    assert len(store.save(DIGEST, "n" * 500, mask_of(1))) == NAME_LENGTH
    assert len(list(tmp_path.rglob("*"))) == 5, "three selections in two folders, and no draft"
    masks = (mask_of(1, 2), mask_of(1), mask_of(2), mask_of(1, n=11))
    assert len({token_of(mask) for mask in masks}) == 4
    ways = (COMBINATIONS[how][2] for how in ("replace", "union", "intersect", "minus"))
    rows = [set(np.flatnonzero(way(mask_of(1, 2), mask_of(2, 3)))) for way in ways]
    assert rows == [{2, 3}, {1, 2, 3}, {2}, {1}]


CLASSES = groups.RowValues("kind", np.array([0, 1, 2, 1]), ("a", "b", "c"))
NUMBERS = groups.RowValues("size", np.array([1.0, 2.0, np.nan, 4.0]))
NOTHING = groups.RowValues("size", np.full(4, np.nan))


@pytest.mark.parametrize(
    ("column", "relation", "value", "rows"),
    [
        (CLASSES, "is", ["a", "c"], {0, 2}),
        (CLASSES, "is not", ["b"], {0, 2}),
        (NUMBERS, "above", 1.5, {1, 3}),
        (NUMBERS, "below", 2.0, {0}),
        (NUMBERS, "highest", 40, {3}),
        (NUMBERS, "lowest", 40, {0}),
        (NOTHING, "highest", 99, set()),
        (CLASSES, "above", 1, "“kind” has classes"),
        (NUMBERS, "is", ["a"], "“size” has numbers"),
        (NUMBERS, "highest", 0, "between 0 and 100"),
    ],
)
def test_a_rule_finds_its_rows_or_does_not_suit_its_column(column, relation, value, rows):
    if isinstance(rows, str):
        with pytest.raises(InputError, match=rows):
            groups.matching(column, relation, value)
        return
    assert set(np.flatnonzero(groups.matching(column, relation, value))) == rows


def run_of(n: int) -> FittedRun:
    active = np.zeros((n, 2), dtype=bool)
    active[:, 0], active[0, 1] = True, True
    numbers = np.arange(n, dtype=np.float32)
    return fitted_run(active, scores=active * numbers[:, None], log_likelihood_rows=-numbers)


def test_every_name_offered_has_its_column():
    wine = load("wine")
    fitted = replace(run_of(wine.n_rows), names=("", "slant"))
    names = groups.names_of(wine, fitted)
    columns = {key: groups.column_of(wine, fitted, key) for key in names}
    assert {key: column.name for key, column in columns.items()} == names
    assert {len(column.values) for column in columns.values()} == {178}
    assert np.array_equal(columns["feature:12"].values, wine.X[:, 12])
    assert columns["subspace"].names == ("{1}", "{1,2}")
    assert columns["subspace"].values.tolist() == [1] + [0] * 177
    assert np.array_equal(columns["likelihood"].values, -np.arange(178, dtype=np.float32))
    assert (names["score:0"], names["score:1"]) == ("score on component 1", "score on 2 · slant")
    assert np.isnan(columns["score:1"].values).tolist() == [False] + [True] * 177, "not used"
    assert not any(key.startswith("feature") for key in groups.names_of(load("digits"), run_of(4)))
    gaps = np.arange(6).reshape(3, 2) == 2
    labels = {"a:b": np.array(["x", "y", "x"]), "digit": np.array([3, 1, 3])}
    labels |= {"angle": np.arange(3), "weight": np.array([0.5, 0.5, 1])}
    dataset = Dataset("d", np.arange(6.0).reshape(3, 2), np.arange(3), labels, missing=gaps)
    columns = {name: groups.column_of(dataset, run_of(3), f"label:{name}") for name in labels}
    assert columns["digit"].names == ("1", "3")
    assert columns["angle"].names is columns["weight"].names is None
    assert groups.matching(columns["a:b"], "is", ["x"]).tolist() == [True, False, True]
    feature = groups.column_of(dataset, run_of(3), "feature:0")
    assert groups.matching(feature, "above", -1).tolist() == [True, False, True]
