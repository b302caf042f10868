"""Planted associations come first, chance is uniform, and names of classes count for nothing."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import mannwhitneyu, spearmanr

from appca import AdaptivePPCA, association
from appca.analysis.association import associated, proposed_names
from appca.words import InputError

N, K = 240, 4
LETTERS = np.array(list("abcdefgh"))


def planted(seed: int) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Return scores, use, and a table: `who` goes with use of 2, `how` with the score on 3."""
    rng = np.random.default_rng(seed)
    who = rng.integers(0, 3, N)
    active = rng.random((N, K)) < 0.5
    active[:, 1] = rng.random(N) < np.array([0.2, 0.8, 0.4])[who]
    scores = np.where(active, rng.normal(size=(N, K)), 0.0)
    how = scores[:, 2] * active[:, 2] + np.where(active[:, 2], 1.2, 1.5) * rng.normal(size=N)
    table = {f"number {i}": rng.normal(size=N) for i in range(8)}
    table |= {f"class {i}": LETTERS[rng.integers(0, 5, N)] for i in range(8)}
    return scores, active, table | {"who": LETTERS[who], "how": how}


@pytest.mark.parametrize("number", range(20))
def test_planted_associations_come_first_in_both_parts(number):
    scores, active, table = planted(number)
    tests = associated(scores, active, table, random_state=number)
    use, score = (tests[tests["part"] == part].iloc[0] for part in ("use", "score"))
    assert (use["column"], use["component"], use["direction"][:7]) == ("who", 2, "high: b")
    assert (score["column"], score["component"], score["direction"]) == ("how", 3, "rises")
    assert max(use["q"], score["q"]) < 0.2


def test_names_and_order_of_classes_change_nothing():
    scores, active, table = planted(1)
    other = dict(zip("abcdefgh", ["9", "x", "a, b; low: c", "1", "b", "a", "0", "c"], strict=True))
    renamed = table | {
        name: pd.Categorical([other[v] for v in values], categories=sorted(other.values())[::-1])
        for name, values in table.items()
        if values.dtype.kind == "U"
    }
    first, second = (associated(scores, active, t, random_state=3) for t in (table, renamed))
    same = ["column", "component", "part", "effect", "n", "p", "q"]
    pd.testing.assert_frame_equal(first[same], second[same])
    for end in ("high", "low"):
        assert second[end].tolist() == [tuple(other[name] for name in x) for x in first[end]]


def test_effects_are_those_of_scipy_without_chance():
    rng = np.random.default_rng(2)
    n = 4000
    active = np.ones((n, 1), bool)
    active[: n // 2] = False
    scores = np.where(active, rng.normal(size=(n, 1)), 0.0)
    users, s = active[:, 0], scores[:, 0]
    x, y = rng.normal(size=n) + users, s + rng.normal(size=n)
    two = np.where(s + rng.normal(size=n) > 0.5, "p", "q")
    tests = associated(scores, active, {"x": x, "y": y, "two": two, "same": -s}, random_state=0)
    tests = tests.set_index(["column", "part"])
    effect = tests["effect"]
    delta = 2 * mannwhitneyu(x[users], x[~users]).statistic / (users.sum() * (~users).sum()) - 1
    assert effect["x", "use"] == pytest.approx(delta, abs=0.01)
    s, p = s[users], two[users] == "p"
    delta = 2 * mannwhitneyu(s[p], s[~p]).statistic / (p.sum() * (~p).sum()) - 1
    assert effect["two", "score"] == pytest.approx(delta, abs=0.01)
    assert effect["y", "score"] == pytest.approx(spearmanr(y[users], s)[0], abs=0.01)
    assert effect["same", "score"] == pytest.approx(1)
    assert tests.loc[("same", "score"), "direction"] == "falls"


def test_technical_columns_are_marked_and_useless_ones_left_out():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(90, 6))
    table = {
        "kind": LETTERS[np.arange(90) // 30],
        "code": np.array([7, 3, 5])[np.arange(90) // 30],
        "depth": np.exp(X.sum(axis=1)),
        "minus": -np.exp(X.sum(axis=1)),
        "Batch_2": LETTERS[rng.integers(0, 3, 90)],
        "when": [f"2026-03-{1 + i % 28:02d}" for i in rng.permutation(90)],
        "gaps": np.where(np.arange(90) % 3, rng.normal(size=90), np.nan),
        "free": rng.normal(size=90),
        "one": np.ones(90),
    }
    model = AdaptivePPCA(3, 1, random_state=0).fit(X)
    tests = association(model, X, table, n_permutations=19, random_state=0)
    columns = tests.drop_duplicates("column").set_index("column")
    assert columns["technical"][lambda s: s != ""].to_dict() == {
        **dict.fromkeys(["kind", "code"], "follows the row order"),
        **dict.fromkeys(["depth", "minus"], "follows the row sum"),
        "Batch_2": "named like a batch",
    }
    assert columns["kind"][["when", "code", "depth"]].tolist() == ["date", "class", "number"]
    assert tests.attrs["left_out"] == ["one"]
    used = tests[tests["part"] == "use"].groupby("column")["n"].max()
    assert (used["gaps"], used["free"]) == (60, 90)


@pytest.mark.parametrize(
    ("table", "blocks", "words"),
    [
        ({"a": [1.0, 2.0]}, None, "has 2 values for 30 rows; give one value a row"),
        ({"a": np.arange(30.0)}, "b", "must be a column of the table; got “b”"),
        ({"a": np.arange(30.0)}, np.zeros(3), "one value a row, 30; got shape"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(table, blocks, words):
    active = np.arange(30)[:, None] % 2 == 0
    with pytest.raises(InputError, match=words):
        associated(active * 1.0, active, table, blocks=blocks)


def test_each_component_is_proposed_a_name_of_its_own_and_technical_columns_name_none():
    lines = [
        ("depth", 1, "rises", 0.001, "follows the row sum", ()),
        ("grade", 1, "high: ...", 0.001, "", ("malignant, grade 3; x", "y")),
        ("grade", 2, "high: ...", 0.001, "", ("malignant, grade 3; x",)),
        ("digit", 2, "high: 7", 0.01, "", ("7",)),
        ("area", 3, "falls", 0.01, "", ()),
        ("weight", 4, "rises", 0.06, "", ()),
    ]
    names = ["column", "component", "direction", "q", "technical", "high"]
    tests = pd.DataFrame(lines, columns=names)
    assert proposed_names(tests) == {1: "malignant, grade 3; x", 2: "digit 7", 3: "low area"}
