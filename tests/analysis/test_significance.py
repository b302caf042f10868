"""Tests of association, enrichment and drift: false positive rates, and simulated effects."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.stats import kstest, mannwhitneyu, spearmanr, ttest_ind

from appca import AdaptivePPCA, association, drift, enrichment
from appca.analysis.association import associated, goes_with, measures_of_rows, proposed_names
from appca.analysis.new_rows import drifted
from appca.analysis.permutation import CLEAR, permuted
from appca.data.dataset import Dataset
from appca.data.readers.process import read_sets, read_sets_apart
from appca.ui.new_rows import sentence
from appca.words import InputError

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
    table, how = table | {"block": block}, "block" if n_blocks > 1 else ()
    assert_levels(associated(scores, active, table, how, random_state=1))


def test_a_class_that_is_constant_within_the_sites_adjusted_for_has_a_p_of_one():
    rng, site = np.random.default_rng(0), np.arange(331) % 38
    scores = rng.normal(size=(331, 2))
    for sites in (site + 101, np.array([f"S{i}" for i in site])):  # numbered sites are classes
        table = {"site": sites, "litho": np.array([*"abcd"])[site % 4], "x": scores[:, 0]}
        tests = associated(scores, scores < 9, table, "site", random_state=0).set_index("column")
        assert (tests.loc["litho", "p"].to_numpy() == 1).all()
        assert tests.loc["x", "p"].min() < 0.01


def test_ages_of_few_years_are_numbers_and_grades_are_classes():
    rng, years = np.random.default_rng(0), np.arange(200) % 12
    scores = (years + rng.normal(size=200))[:, None]
    table = {"age": years + 20, "grade": years, "age group": years % 5}
    tests = associated(scores, scores < 99, table, random_state=0).set_index("column")
    kinds = tests["kind"].groupby(level=0).first().to_dict()
    assert kinds == {"age": "number", "grade": "class", "age group": "class"}


def test_covariates_explain_what_they_drive_and_nothing_else():
    rng, p, ways = np.random.default_rng(0), list[list[float]](), ((), ["batch", "age"])
    for _ in range(60):
        (age, x, noise, more), batch = rng.normal(size=(4, N)), rng.integers(0, 4, N)
        scores = (batch + age + x / 2 + noise)[:, None]
        table = {"batch": batch, "age": age, "driven": batch + age + more, "x": x}
        both = [associated(scores, scores < 9, table, of, random_state=1) for of in ways]
        p.append([tests.set_index("column").loc[c, "p"] for tests in both for c in ("driven", "x")])
    plain, _, driven, inside = np.transpose(p)
    assert kstest(driven, "uniform").pvalue > 0.01
    assert max(plain.max(), np.quantile(inside, 0.9)) < 0.01


@pytest.mark.parametrize("name", ["30 rows", "half zeros", "skew"])
def test_drift_finds_chance_as_often_as_stated_in_level_and_spread(name):
    share, n, _, draw = NULLS[name]
    rng, n_new = np.random.default_rng(4), max(int(share * n), 5)
    old, new = ({f"x{i}": draw(rng, 0, size) for i in range(1000)} for size in (n - n_new, n_new))
    tests = drifted(old, new, random_state=1)
    assert set(tests["part"]) == {"level", "spread"}
    assert_levels(tests)


def test_enrichment_finds_chance_at_most_as_often_as_stated_in_skewed_features():
    """A component is hardly more than its one heaviest feature."""
    rng = np.random.default_rng(3)
    X, names = rng.lognormal(0.0, 1.5, size=(200, 300)), [f"g{i}" for i in range(300)]
    sets = {f"s{i}": rng.choice(names, 15, replace=False).tolist() for i in range(250)}
    model = AdaptivePPCA(4, 1, init="pca", random_state=0).fit(X)
    assert_levels(enrichment(model, X, sets, names).assign(part=""))


@pytest.mark.parametrize("n_tests", [25, 2000])
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


@pytest.mark.parametrize("distribution", [stats.norm(), stats.chi2(1)])
def test_the_tail_is_that_of_the_distribution_or_heavier(distribution):
    exact, rng = np.array([0.3, 1e-2, 1e-3, 1e-5, 1e-6]), np.random.default_rng(1)

    def draw(m, tests):
        return distribution.rvs((len(tests), m), random_state=rng)

    p = np.median([permuted(distribution.isf(exact), draw, 999)[0] for _ in range(7)], axis=0)
    assert (p > exact / 3).all()
    assert (p < exact**0.75).all()


def test_planted_associations_come_first_whatever_classes_are_called():
    scores, active, table = planted(1)
    tests = associated(scores, active, table, random_state=3)
    use, score = (tests[tests["part"] == part].iloc[0] for part in ("use", "score"))
    assert (use["column"], use["component"], use["direction"][:7]) == ("who", 2, "high: b")
    assert (score["column"], score["component"], score["direction"]) == ("how", 3, "rises")
    assert max(use["q"], score["q"]) < 0.2
    other = dict(zip("abcdefgh", ["9", "x", "a, b; low: c", "1", "b", "a", "0", "c"], strict=True))
    renamed = table | {
        name: pd.Categorical([other[v] for v in values], categories=sorted(other.values())[::-1])
        for name, values in table.items()
        if values.dtype.kind == "U"
    }
    second = associated(scores, active, renamed, random_state=3)
    same = ["column", "component", "part", "effect", "n", "p", "q"]
    pd.testing.assert_frame_equal(tests[same], second[same])
    for end in ("high", "low"):
        assert second[end].tolist() == [tuple(other[name] for name in x) for x in tests[end]]


def test_p_is_at_least_what_the_orders_of_few_rows_allow_and_the_page_says_so():
    """Twelve rows in two halves have 924 orders, two of which are extreme."""
    side = np.arange(12) < 6
    tests = associated(side[:, None] * 1.0, side[:, None], {"x": np.arange(12.0)}, random_state=0)
    assert tests.loc[0, "p"] == pytest.approx(2 / 924, rel=0.6)
    assert tests.attrs["least_q"] == pytest.approx(1 / 924)
    rng = np.random.default_rng(0)
    tests = drifted(*[{f"x{i}": rng.normal(size=6) for i in range(60)} for _ in range(2)])
    assert tests.attrs["least_q"] >= 0.05
    assert sentence(tests, ()).startswith("**Nothing can be concluded")
    many = [{f"x{i}": rng.normal(size=100) for i in range(6)} for _ in range(2)]
    assert "No shift was found" in sentence(drifted(*many), ())


def test_components_are_compared_on_rows_that_the_fit_has_not_seen():
    """In 100 rows of 200 features, W suits the rows it was fitted to."""
    X, new = np.random.default_rng(2).normal(size=(2, 100, 200))
    model = AdaptivePPCA(6, 2, init="pca", random_state=0).fit(X)
    of_components = drift(model, X, new).query("column.str.contains('uses|score')")
    assert of_components["q"].min() > 0.05
    assert of_components["n"].max() == 150
    unseen = drift(model, X[:99], new).query("column.str.contains('uses')")
    assert unseen["n"].max() == 199, "not all rows of the fit"


N_PLANTED, K = 240, 4
LETTERS = np.array(list("abcdefgh"))


def planted(seed: int) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Return scores, use, and a table: `who` goes with use of 2, `how` with the score on 3."""
    rng = np.random.default_rng(seed)
    who, active = rng.integers(0, 3, N_PLANTED), rng.random((N_PLANTED, K)) < 0.5
    active[:, 1] = rng.random(N_PLANTED) < np.array([0.2, 0.8, 0.4])[who]
    scores = np.where(active, rng.normal(size=(N_PLANTED, K)), 0.0)
    how = scores[:, 2] * active[:, 2] + np.where(active[:, 2], 1.2, 1.5) * rng.normal(
        size=N_PLANTED
    )
    table = {f"number {i}": rng.normal(size=N_PLANTED) for i in range(8)}
    table |= {f"class {i}": LETTERS[rng.integers(0, 5, N_PLANTED)] for i in range(8)}
    return scores, active, table | {"who": LETTERS[who], "how": how}


def test_effects_are_those_of_scipy_without_chance():
    rng, n = np.random.default_rng(2), 4000
    active = np.ones((n, 1), bool)
    active[: n // 2] = False
    scores = np.where(active, rng.normal(size=(n, 1)), 0.0)
    users, s = active[:, 0], scores[:, 0]
    x, y = rng.normal(size=n) + users, s + rng.normal(size=n)
    two = np.where(s + rng.normal(size=n) > 0.5, "p", "q")
    rare = np.where(users & (np.arange(n) % 100 == 0), "rare", "usual")
    table = {"x": x, "y": y, "two": two, "same": -s, "rare": rare}
    tests = associated(scores, active, table, random_state=0)
    assert "rare" not in proposed_names(tests.assign(component=tests.index)).values()
    tests = tests.set_index(["column", "part"])
    effect = tests["effect"]
    delta = 2 * mannwhitneyu(x[users], x[~users]).statistic / (users.sum() * (~users).sum()) - 1
    assert effect["x", "use"] == pytest.approx(delta, abs=0.01)
    s, p = s[users], two[users] == "p"
    assert effect["two", "score"] == pytest.approx(spearmanr(p, s)[0], abs=0.01), "not relative"
    assert effect["y", "score"] == pytest.approx(spearmanr(y[users], s)[0], abs=0.01)
    assert effect["same", "score"] == pytest.approx(1)
    assert tests.loc[("same", "score"), "direction"] == "falls"
    phi = np.corrcoef(rare == "rare", users)[0, 1]
    assert effect["rare", "use"] == pytest.approx(phi, abs=0.02), "a rare class, if all use it"
    assert tests.loc[("rare", "use"), ["direction", "high"]].tolist() == ["high: rare", ()]


def test_technical_columns_are_marked_and_useless_ones_left_out():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(90, 6))
    assert "row sum" not in measures_of_rows(X), "a sum of values of both signs is no total"
    X += 9
    table = {
        "kind": LETTERS[np.arange(90) // 30],
        "code": np.array([7, 3, 5])[np.arange(90) // 30],
        "depth": np.exp(X.sum(axis=1) - 54),
        "minus": -np.exp(X.sum(axis=1) - 54),
        "Batch_2": LETTERS[rng.integers(0, 3, 90)],
        "when": [f"2026-03-{1 + i % 28:02d}" for i in rng.permutation(90)],
        "gaps": np.where(np.arange(90) % 3, rng.normal(size=90), np.nan),
        "free": rng.normal(size=90),
        "one": np.ones(90),
    }
    model = AdaptivePPCA(3, 1, init="pca", random_state=0).fit(X)
    tests = association(model, X, table, n_permutations=19, random_state=0)
    columns = tests.drop_duplicates("column").set_index("column")
    assert columns["technical"][lambda s: s != ""].to_dict() == {
        **dict.fromkeys(["kind", "code"], "the file is sorted by this column"),
        **dict.fromkeys(["depth", "minus"], "it is correlated with the row sum"),
        "Batch_2": "its name suggests a batch",
    }
    assert columns["kind"][["when", "code", "depth"]].tolist() == ["date", "class", "number"]
    assert tests.attrs["left_out"] == ["one"]
    used = tests[tests["part"] == "use"].groupby("column")["n"].max()
    assert (used["gaps"], used["free"]) == (60, 90)


def test_what_does_not_fit_is_refused_in_a_sentence():
    active, x = np.arange(30)[:, None] % 2 == 0, np.arange(30.0)
    for table, name, words in (
        ({"a": [1.0, 2.0]}, (), "has 2 values for 30 rows; give one value per row"),
        ({"a": x, "one": [1] * 30}, "one", "that vary, with at most 200 classes; got “one”"),
        ({"a": x}, ["a", "b"], "that vary, with at most 200 classes; got “b”"),
    ):
        with pytest.raises(InputError, match=words):
            associated(active * 1.0, active, table, name)


def test_each_component_is_proposed_a_name_of_its_own_and_technical_columns_name_none():
    lines = [
        ("depth", 1, "rises", 0.001, "follows the row sum", "", ""),
        ("grade", 1, "high: ...", 0.001, "", ["malignant, grade 3; x", "y"], ["benign"]),
        ("grade", 2, "high: ...", 0.001, "", ["malignant, grade 3; x"], ["benign"]),
        ("digit", 2, "high: 7", 0.01, "", "7", "1"),
        ("digit", 3, "high: 1", 0.001, "", "1", "7"),
        ("rain", 3, "falls", 0.001, "", "", ""),
        ("area", 3, "falls", 0.01, "", "", ""),
        *(("mass", 3, "rises", 0.02, "", "", ""), ("weight", 4, "rises", 0.06, "", "", "")),
    ]
    names = ["column", "component", "direction", "q", "technical", "high", "low"]
    tests = pd.DataFrame(lines, columns=names).assign(effect=0.5, part="score")
    expected = {1: "malignant, grade 3; x – benign", 2: "digit 7 – 1", 3: "low area, high mass"}
    assert proposed_names(tests, {"rain"}) == expected


N_ROWS, RNG = 300, np.random.default_rng(1)
CODES, TWO = RNG.integers(0, 5, N_ROWS), RNG.integers(0, 2, N_ROWS)
AGE, NOISE = RNG.normal(40, 9, N_ROWS), RNG.normal(size=(N_ROWS, 4))
PLANTED = 2.0 * (CODES == 0) - 2.0 * (CODES == 3) + 0.1 * NOISE[:, 0]
USED = (RNG.random(N_ROWS) < np.where(TWO, 0.9, 0.2))[:, None]
NAMES = np.array(["setosa", "b", "c", "virginica", "e"])


@pytest.mark.parametrize(
    ("labels", "scores", "active", "sentences"),
    [
        ({"digit": CODES.astype(str)}, PLANTED, None, ["higher for digit 0, lower for digit 3"]),
        ({"kind": NAMES[CODES]}, PLANTED, None, ["higher for setosa, lower for virginica"]),
        ({"kind": TWO.astype(str), "age": AGE}, NOISE[:, 0] - AGE, None, ["falls with age"]),
        ({"kind": TWO.astype(str)}, NOISE, None, [""] * 4),
        ({}, NOISE, None, [""] * 4),
        (
            {"answer": np.array(["no", "yes"])[TWO]},
            NOISE[:, :1] * USED,
            USED,
            ["used more for answer yes, used less for answer no"],
        ),
    ],
)
def test_the_label_that_explains_most_is_said_and_chance_is_not(labels, scores, active, sentences):
    scores = scores.reshape(N_ROWS, -1)
    active = np.ones(scores.shape, bool) if active is None else active
    dataset = Dataset("d", NOISE, np.arange(N_ROWS).astype(str), labels)
    assert goes_with(dataset, SimpleNamespace(scores=scores, active=active)) == sentences


D = 120
GENES = [f"gene {d}" for d in range(D)]


class Weights:
    """A model with weights (K, D) whose rows are nothing but what they leave over."""

    def __init__(self, components):
        self.components_, self.mean_ = components, np.zeros(components.shape[1])

    def describe(self, X):
        return type("Rows", (), {"scores": np.zeros((len(X), len(self.components_)))})


def blocks_of_features(rng, n):
    """Return rows whose features vary together in twelve blocks of ten."""
    return np.repeat(rng.normal(size=(n, 12)), 10, axis=1) + 0.5 * rng.normal(size=(n, D))


def test_planted_sets_come_first():
    rng, W = np.random.default_rng(1), np.zeros((2, D))
    W[0, :12], W[1, 40:52] = 1.0, -1.0
    Z = np.eye(2)[rng.integers(0, 2, 300)]
    X = 3 * (Z * rng.normal(1, 1, size=(300, 2))) @ W + blocks_of_features(rng, 300)
    model = AdaptivePPCA(2, 1, init="pca", random_state=0).fit(X)
    sets = {f"set {s}": rng.choice(GENES, 12, replace=False) for s in range(40)}
    sets |= {"first": GENES[:12], "second": GENES[40:52]}
    tests = enrichment(model, X, sets, GENES, random_state=1)
    assert set(tests["set"][:2]) == {"first", "second"}
    for _, test in tests[:2].iterrows():
        part = slice(0, 12) if test["set"] == "first" else slice(40, 52)
        weight = model.components_[test["component"] - 1, part].mean()
        assert (test["sign"] == "+", test["q"] < 0.2) == (weight > 0, True)


def test_p_is_uniform_where_features_vary_together_and_naive_tests_are_not():
    rng = np.random.default_rng(3)
    X = blocks_of_features(rng, 400)
    model = Weights(rng.normal(size=(60, 400)) @ X)
    sets = {f"block {b}": GENES[10 * b : 10 * b + 10] for b in range(12)}
    tests = enrichment(model, X, sets, GENES, random_state=1)
    for sign in "+-":
        one = tests[(tests["sign"] == sign) & (tests["set"] == "block 3")]
        assert len(one) == 60
        assert kstest(one["p"], "uniform").pvalue > 0.01
    inside = np.isin(GENES, sets["block 3"])
    naive = [ttest_ind(w[inside], w[~inside]).pvalue for w in model.components_]
    assert kstest(naive, "uniform").pvalue < 1e-6


def test_regions_of_an_atlas_are_sets_of_voxels(tmp_path):
    import nibabel

    def saved(name, values):
        nibabel.save(nibabel.Nifti1Image(values, np.eye(4)), tmp_path / name)
        return name, tmp_path / name

    atlas = np.zeros((4, 5, 6), np.int16)
    atlas[:2], atlas[3, 1, 2] = 7, 2
    file = saved("atlas.nii.gz", atlas)
    sets = read_sets(*file)
    assert (sets["region 2"], len(sets["region 7"])) == (["voxel-3-1-2"], 60)
    names = ["voxel-{}-{}-{}".format(*place) for place in np.ndindex(4, 5, 6)]
    tests = enrichment(Weights((np.arange(D) < 60)[None] * 1.0), np.eye(D), file[1], names)
    assert (tests.loc[0, "set"], tests.loc[0, "sign"]) == ("region 7", "+")
    assert tests.loc[0, "p"] < 1e-3
    space = {"grid": [4, 5, 6], "affine": np.eye(4).tolist(), "repetition": 2.0}
    near = {"affine": (np.eye(4) + 1e-5).tolist()}
    for other in ({}, near):
        assert read_sets_apart(*file, tmp_path, space | other) == sets
    for other, words in (
        ({"grid": [4, 5, 7]}, "has the grid 4 x 5 x 6, but the recording has 4 x 5 x 7; resample"),
        ({"affine": np.diag([-1.0, 1, 1, 1]).tolist()}, "the recording's by up to 2; resample"),
    ):
        with pytest.raises(InputError, match=words):
            read_sets_apart(*file, tmp_path, space | other)
    with pytest.raises(InputError, match="has the grid 5 x 6, but the recording has 5 x 6 x 1"):
        read_sets(*saved("flat.nii", atlas[0]))


def test_files_of_sets_and_refusals(tmp_path):
    gmt, table = tmp_path / "a.gmt", tmp_path / "b.csv"
    gmt.write_text("one\thttp\tx\ty\r\ntwo\t\tz\n", encoding="utf-8")
    table.write_text('feature,set\nx,one\n"y",one\nz,two\n', encoding="utf-8")
    ways = (read_sets, partial(read_sets_apart, scratch=tmp_path, space={}))
    assert [read(path.name, path) for path in (gmt, table) for read in ways] == [
        {"one": ["x", "y"], "two": ["z"]}
    ] * 4
    for text in ("x,one,more\n", "x," + "y" * 200_000):
        table.write_text(text, encoding="utf-8")
        for read in ways:
            with pytest.raises(InputError, match="a feature and its set in each line"):
                read("b.csv", table)
    for sets, names, words in (
        ({"a": ["x"]}, ["x"], "120 features; got 1 names"),
        ({"a": GENES[:4]}, GENES, "No set has 5 or more of the 120 features"),
    ):
        with pytest.raises(InputError, match=words):
            enrichment(Weights(np.ones((1, D))), np.ones((9, D)), sets, names)


@pytest.fixture(scope="module")
def model():
    return AdaptivePPCA(3, 2, init="pca", random_state=0).fit(rows(400, 0))


def rows(n: int, seed: int) -> pd.DataFrame:
    values = np.random.default_rng(seed).normal(size=(n, 12)) * np.linspace(3, 1, 12)
    return pd.DataFrame(values).add_prefix("x")


def test_planted_shifts_of_level_spread_and_a_component_come_first(model):
    old, new = rows(300, 10), rows(100, 90)
    new["x4"] += 3
    new["x9"] *= 3
    new -= 4 * model.components_[0]
    first = drift(model, old, new).set_index(["column", "part"])
    ways = ("x4", "level", "higher"), ("x9", "spread", "higher"), ("score 1", "level", "lower")
    for column, part, way in ways:
        found = first.loc[(column, part)]
        assert (found["direction"], found["q"] < 0.05) == (way, True)
    delta = 2 * mannwhitneyu(new["x4"], old["x4"]).statistic / (100 * 300) - 1
    found = first.loc[("x4", "level")]
    assert found["effect"] == pytest.approx(delta, abs=0.01)
    assert (found["n"], found["new"]) == (400, pytest.approx(new["x4"].mean()))


def test_classes_differ_without_a_sign_and_tables_must_agree(model):
    old = pd.DataFrame({"kind": list("aab" * 20), "x": np.arange(60.0)})
    new = pd.DataFrame({"kind": list("bbb" * 20), "x": np.arange(60.0)})
    tests = drifted(old, new).set_index("column")
    assert tests.loc["kind", ["direction", "part"]].tolist() == ["high: b; low: a", "level"]
    assert np.isnan(tests.loc["kind", "old"])
    with pytest.raises(InputError, match="1 columns in only one of them"):
        drifted(old, new.drop(columns="x"))
    with pytest.raises(InputError, match="got 60 and 4 rows"):
        drifted(old, new[:4])
    for other in (rows(9, 0).iloc[:, ::-1], rows(9, 0).rename(columns={"x0": "x11", "x11": "y"})):
        with pytest.raises(InputError, match="X_new has the column “x11” where X_old has “x0”"):
            drift(model, rows(9, 0), other)
