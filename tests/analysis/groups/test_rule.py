"""A planted box is found again, and the rule, its sentence and its code select the same rows."""

import numpy as np
import pandas as pd
import pytest

from appca import AdaptivePPCA, rule
from appca.analysis.rule import Clause, RowRule, RuleQuality, described, rule_table
from appca.words import InputError

N = 900


def a_table(seed: int) -> dict:
    rng = np.random.default_rng(seed)
    columns = {f"x{j}": rng.normal(size=N) for j in range(20)}
    columns |= {"kind": np.array(list("abcd"))[rng.integers(0, 4, N)]}
    active = rng.random((N, 4)) < 0.6
    scores = np.where(active, rng.normal(size=(N, 4)), 0.0)
    return rule_table(scores, active, columns.items())


@pytest.mark.parametrize("number", range(20))
def test_a_planted_box_is_found_again(number):
    table = a_table(number)
    price, score = table["x3"], table["score 2"].values
    inside = (price < 0.6) & (price > -1) & (score > -0.2)
    found = described(table, inside, random_state=number)
    assert {clause.column for clause in found.clauses} == {"x3", "score 2"}
    assert min(found.quality) > 0.93
    bounds = {clause.column: clause for clause in found.clauses}
    assert bounds["x3"][1:3] == pytest.approx((-1, 0.6), abs=0.1)
    assert bounds["score 2"].low == pytest.approx(-0.2, abs=0.1)


@pytest.mark.parametrize("number", range(6))
def test_rows_of_one_kind_or_another_are_those_that_miss_a_condition(number):
    """No box of conditions describes them: it loses one kind, or takes others in."""
    table = a_table(number)
    either = (table["x3"] > 0.5) | (table["uses 3"].values == 1)
    found = described(table, either, random_state=number)
    assert {clause.column for clause in found.clauses} == {"x3", "uses 3"}
    assert min(found.quality) > 0.97
    assert found.conditions().startswith("not (")
    frame = pd.DataFrame({"x3": table["x3"], "uses 3": table["uses 3"].values == 1})
    kept = eval(found.to_pandas(), {"table": frame})
    assert kept.tolist() == found.mask(table).tolist()
    both = described(table, ~either, random_state=number)
    assert not both.negated, "a box is said as a box"


@pytest.mark.parametrize("number", range(3))
def test_use_and_classes_are_conditions_and_rows_that_use_two_components_are_called_so(number):
    """A range of scores that none of them leaves would select the same rows."""
    rng = np.random.default_rng(number)
    active = rng.random((N, 4)).argsort(axis=1) < 2
    scores = np.where(active, rng.normal(size=(N, 4)), 0.0)
    scores[~active[:, 1], 0] *= 3.0
    table = rule_table(scores, active)
    conditions = described(table, active[:, 0] & active[:, 1], random_state=number).conditions()
    assert conditions in ("uses 1, uses 2", "uses 2, uses 1")
    table = a_table(number)
    uses = table["uses 3"].values == 1
    found = described(table, (table["kind"] == "b") & uses).sentence(["", "", "slant"])
    assert found == "kind is b, uses slant: 100% of them, 100% right"
    assert described(table, ~uses).sentence() == "does not use 3: 100% of them, 100% right"


def test_what_is_held_out_is_not_seen():
    table = a_table(2)
    wanted = table["x1"] > 0
    first = described(table, wanted, random_state=0)
    order = np.random.default_rng(0)
    held = [
        (rows := order.permutation(np.flatnonzero(m)))[: len(rows) // 3] for m in (wanted, ~wanted)
    ]
    other = table | {"x1": table["x1"].copy()}
    other["x1"][np.concatenate(held)] = 0.0
    second = described(other, wanted, random_state=0)
    assert second.clauses == first.clauses
    assert second.n_held_out == sum(map(len, held))
    assert second.quality != first.quality


def test_code_text_and_replay_select_the_same_rows():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(400, 6))
    frame = pd.DataFrame({"price": X[:, 0], "kind": np.where(X[:, 1] > 0, "it's", "no")})
    model = AdaptivePPCA(3, 1, random_state=0).fit(X)
    rows = model.describe(X)
    wanted = rows.active[:, 1] & (rows.scores[:, 1] > 0) & (X[:, 0] < 0.5)
    found = rule(model, X, wanted, frame)
    mask = found.select(model, X, frame)
    assert (mask & wanted).sum() / wanted.sum() > 0.9
    space = {"model": model, "X": X, "table": frame.copy(), "np": np}
    exec(found.to_python(), space)
    assert space["selected"].index.tolist() == np.flatnonzero(mask).tolist()
    table = rule_table(rows.scores, rows.active, frame.items())
    made = RowRule(
        (Clause("kind", value="it's"), Clause("uses 1", value=False)), RuleQuality(1, 1), 1
    )
    frame["uses 1"] = rows.active[:, 0]
    assert eval(made.to_pandas(), {"table": frame}).tolist() == made.mask(table).tolist()
    assert made.mask(table).tolist() == ((frame["kind"] == "it's") & ~rows.active[:, 0]).tolist()


def test_missing_values_meet_no_condition_and_columns_called_like_components_are_kept_apart():
    table = pd.DataFrame({"a": [np.nan, 1.0, 3.0], "b": ["x", None, "x"]})
    assert Clause("a", low=0.0).mask(table["a"]).tolist() == [False, True, True]
    assert Clause("a", high=2.0).mask(table["a"]).tolist() == [False, True, False]
    assert Clause("b", value="x").mask(table["b"]).tolist() == [True, False, True]
    columns = rule_table(np.ones((2, 1)), np.eye(2, 1) > 0, [("uses 1", 5), ("a", 6), ("a", 7)])
    assert list(columns) == ["uses 1 (column)", "a", "a (column)", "uses 1", "score 1"]
    assert columns["uses 1 (column)"] == 5


@pytest.mark.parametrize(
    ("columns", "selected", "words"),
    [
        (a_table(0), np.arange(N) < 3, "at least 6 selected rows and 6 others; got 3 and 897"),
        (a_table(0), np.arange(12) < 6, "“x0” has 900 values for 12 rows; give one value a row"),
        ({"same": np.ones(N)}, np.arange(N) < 50, "No column differs"),
    ],
)
def test_refusals_say_what_was_given_and_what_to_do(columns, selected, words):
    with pytest.raises(InputError, match=words):
        described(columns, selected)
    made = RowRule((Clause("price", high=2.0),), RuleQuality(1, 1), 1)
    with pytest.raises(InputError, match="needs the column “price”, which the table lacks"):
        made.mask(columns)
