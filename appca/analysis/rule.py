"""A rule that describes selected rows: ranges, classes and used components, joined by "and".

The rule is the path to one node of a small decision tree, or all rows off that path.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Self

import msgspec
import numpy as np
from msgspec import Meta

from appca.analysis.association import columns_of
from appca.analysis.fitted import DescribedRows
from appca.data.dataset import Dataset
from appca.storage.schema import Count, Finite, Text
from appca.words import InputError, naming_extra, number, percent, shortened

if TYPE_CHECKING:
    import pandas as pd

MOST_FEATURES = 200  # of a table, above which rules are about labels and components
LEAST = 6  # rows selected, and others
MOST_ROWS = 8_000  # that are searched: at most half of them selected
A_CONDITION = 0.02  # of F1 that another condition must add
USES, SCORE = "uses ", "score "  # and the number of a component: columns of `rule_table`


class Clause(NamedTuple):
    """One condition on one column."""

    column: str
    low: float | None = None  # values above it
    high: float | None = None  # values below it
    value: str | bool | None = None  # of a class, or whether a component is used

    def mask(self, column: "pd.Series[Any]") -> np.ndarray:
        """Return which values (N,) meet the condition; missing ones never do."""
        if self.value is not None:
            value = self.value if isinstance(self.value, bool) else str(self.value)
            there = column.notna().to_numpy()
            same = column.astype(bool if isinstance(value, bool) else str) == value
            return np.asarray(same.to_numpy() & there)
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        low = -np.inf if self.low is None else self.low
        high = np.inf if self.high is None else self.high
        with np.errstate(invalid="ignore"):
            return np.asarray((values > low) & (values < high))

    def words(self, names: Sequence[str] = ()) -> str:
        """Say the condition; `names` are those of the components."""
        name = called(self.column, names)
        if isinstance(self.value, bool):
            return name if self.value else name.replace("uses", "does not use", 1)
        if self.value is not None:
            return f"{name} is {shortened(self.value)}"
        if self.low is not None and self.high is not None:
            return f"{name} from {number(self.low)} to {number(self.high)}"
        way, bound = ("above", self.low) if self.high is None else ("below", self.high)
        return f"{name} {way} {number(bound or 0.0)}"

    def code(self) -> str:
        """Return the condition on a DataFrame called table, in pandas."""
        column = f"table[{self.column!r}]"
        if isinstance(self.value, bool):
            return column if self.value else f"~{column}"
        if self.value is not None:
            return f"({column}.astype(str) == {self.value!r})"
        bounds = ((self.low, ">"), (self.high, "<"))
        return " & ".join(
            f"({column} {sign} {bound!r})" for bound, sign in bounds if bound is not None
        )


def called(column: str, names: Sequence[str] = ()) -> str:
    """Return how a column of `rule_table` is called; `names` are those of the components."""
    kind, k = component_of(column)
    if not k:
        return shortened(column)
    named = names[k - 1] if k <= len(names) else ""
    return f"{'uses' if kind == USES else 'score on'} {shortened(named) or k}"


def component_of(column: str) -> tuple[str, int]:
    """Return USES or SCORE and the component, counted from 1, of a column of `rule_table`, or 0."""
    kind = next((kind for kind in (USES, SCORE) if column.startswith(kind)), "")
    k = column.removeprefix(kind)
    return (kind, int(k)) if kind and k.isdecimal() else ("", 0)


class RuleQuality(NamedTuple):
    """How well a rule describes rows that it was not made from."""

    recall: float  # share of the selected rows that it describes
    precision: float  # share of the described rows that are selected

    @property
    def f1(self) -> float:
        """Harmonic mean of both."""
        total = self.recall + self.precision
        return 2 * self.recall * self.precision / total if total else 0.0


_Share = Annotated[float, Meta(ge=0, le=1)]
_Condition = tuple[Text, Finite | None, Finite | None, bool | Text | None]


class _Stored(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    clauses: Annotated[list[_Condition], Meta(min_length=1)]
    quality: tuple[_Share, _Share]
    n_held_out: Count
    negated: bool = False


class RowRule(NamedTuple):
    """Conditions that rows meet together, or miss together, and their quality on held-out rows."""

    clauses: tuple[Clause, ...]
    quality: RuleQuality
    n_held_out: int
    tree: RuleQuality | None = None  # of the whole decision tree, on the same rows
    negated: bool = False  # the rows are those that miss at least one condition

    def mask(self, table: Any) -> np.ndarray:
        """Return which rows (N,) of a table, as `rule_table` returns it, the rule describes.

        Raises InputError when a column is missing.
        """
        missing = [clause.column for clause in self.clauses if clause.column not in table]
        if missing:
            msg = (
                f"The rule needs the column “{shortened(missing[0])}”, which the table lacks; add "
                "it, or name it so."
            )
            raise InputError(msg)
        masks = [clause.mask(table[clause.column]) for clause in self.clauses]
        return np.asarray(np.logical_and.reduce(masks)) ^ self.negated

    def select(self, model: Any, X: Any, table: Any = None) -> np.ndarray:
        """Return which rows X (N, D) of other data meet the rule, (N,) bool; see `appca.rule`."""
        rows = model.describe(X)
        return self.mask(rule_table(rows.scores, rows.active, table))

    def conditions(self, names: Sequence[str] = ()) -> str:
        """Say the rule: "uses 3, price below 40" or "not (uses 3, price below 40)"."""
        said = ", ".join(clause.words(names) for clause in self.clauses)
        return f"not ({said})" if self.negated else said

    def sentence(self, names: Sequence[str] = ()) -> str:
        """Say the rule and its quality: "uses 3, price below 40: 94% of them, 97% right"."""
        recall, precision = percent(self.quality.recall), percent(self.quality.precision)
        return f"{self.conditions(names)}: {recall} of them, {precision} right"

    def to_pandas(self) -> str:
        """Return the rule as a filter of a DataFrame called table."""
        code = " & ".join(clause.code() for clause in self.clauses)
        return f"~({code})" if self.negated else code

    def to_python(self) -> str:
        """Return the rule as Python for a model, its rows X and a DataFrame called table."""
        lines = []
        for clause in self.clauses:
            kind, k = component_of(clause.column)
            used = f"rows.active[:, {k - 1}]"
            score = f"np.where({used}, rows.scores[:, {k - 1}], np.nan)"
            if k:
                lines.append(f"table[{clause.column!r}] = {used if kind == USES else score}")
        first = ["import numpy as np", "", "rows = model.describe(X)"] if lines else []
        return "\n".join([*first, *lines, f"selected = table[{self.to_pandas()}]"])

    def to_json(self) -> str:
        """Return the rule as text that `from_json` reads."""
        parts = [self.clauses, self.quality, self.n_held_out, self.negated]
        return json.dumps(parts if self.negated else parts[:-1])  # older versions read three

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Rebuild a rule; ValueError when the text, which others may have written, is none."""
        try:
            stored = msgspec.json.decode(text, type=_Stored)
        except msgspec.DecodeError as error:
            raise ValueError(str(error)) from error
        clauses = tuple(Clause(*clause) for clause in stored.clauses)
        if any(clause == Clause(clause.column) for clause in clauses):
            msg = "a rule has a condition that bounds nothing"
            raise ValueError(msg)
        quality = RuleQuality(*stored.quality)
        return cls(clauses, quality, stored.n_held_out, negated=stored.negated)


def rule_table(scores: np.ndarray, active: np.ndarray, table: Any = None) -> "pd.DataFrame":
    """Return what a rule can be about: a table's columns, and use and score of each component.

    Scores (N, K) become NaN where a row does not use the component. `table` is a DataFrame, or a
    mapping of str to array-like of shape (N,).
    """
    import pandas as pd

    items = table.items() if isinstance(table, Mapping) else pd.DataFrame(table).items()
    columns = {str(name): np.asarray(values) for name, values in items}
    for k in range(active.shape[1]):
        columns[f"{USES}{k + 1}"] = active[:, k].astype(bool)
        columns[f"{SCORE}{k + 1}"] = np.where(active[:, k], scores[:, k], np.nan)
    return pd.DataFrame(columns)


def dataset_table(dataset: Dataset, rows: DescribedRows) -> "pd.DataFrame":
    """Return what a rule about a data set can be about: labels, named features, and components."""
    columns: dict[str, np.ndarray] = dict(dataset.labels)
    if dataset.image_shape is None and dataset.n_features <= MOST_FEATURES:
        columns = dict(zip(dataset.column_names, dataset.with_gaps().T, strict=True)) | columns
    return rule_table(rows.scores, rows.active, columns)


@naming_extra()
def rule(
    model: Any,
    X: Any,
    selected: Any,
    table: Any = None,
    *,
    max_clauses: int = 4,
    random_state: Any = 0,
) -> RowRule:
    """Describe selected rows by a short rule.

    Parameters
    ----------
    model : fitted estimator
        With K components.
    X : array-like, shape (N, D)
    selected : array-like of bool, shape (N,)
        The rows to describe; at least six, and at least six others.
    table : DataFrame, or mapping of str to array-like of shape (N,), optional
        Columns that the rule may be about, beside use of components and scores.
    max_clauses : int
        Conditions in the rule, at most: the depth of the decision tree.
    random_state : int, Generator or None
        Chooses the third of the rows that is held out.

    Returns
    -------
    RowRule
        Its quality, and that of the decision tree that it is a part of, on the held-out rows.
        ``rule.select(model, X, table)`` selects rows of other data, ``rule.to_pandas()`` and
        ``rule.to_python()`` are the rule as code.

    Raises
    ------
    InputError
        When there are too few rows on either side, or another number of rows than of X.
    """
    rows = model.describe(X)
    columns = rule_table(rows.scores, rows.active, table)
    mask = np.asarray(selected, dtype=bool)
    return described(columns, mask, max_clauses=max_clauses, random_state=random_state)


def described(
    table: "pd.DataFrame", selected: np.ndarray, *, max_clauses: int = 4, random_state: Any = 0
) -> RowRule:
    """Return the rule for rows (N,) bool of a table (see `rule_table`); see `appca.rule`."""
    from sklearn.tree import DecisionTreeClassifier

    if selected.shape != (len(table),):
        msg = f"selected must have one value a row, {len(table):,}; got shape {selected.shape}."
        raise InputError(msg)
    n_selected = int(selected.sum())
    if min(n_selected, len(selected) - n_selected) < LEAST:
        msg = (
            f"A rule needs at least {LEAST} selected rows and {LEAST} others; got {n_selected:,} "
            f"and {len(selected) - n_selected:,}, so select more or fewer."
        )
        raise InputError(msg)
    numbers, meanings = _encoded(table)
    fitting, held_out, weight = _split(selected, np.random.default_rng(random_state))
    part, wanted = table.iloc[fitting], selected[fitting]
    tree = DecisionTreeClassifier(max_depth=max_clauses, class_weight="balanced", random_state=0)
    tree.fit(numbers[fitting], wanted)
    rest, of_rest = table.iloc[held_out], selected[held_out]
    clauses, negated = _searched(list(_paths(tree.tree_, meanings)), part, wanted, weight)
    best = RowRule(_joined(clauses, part), RuleQuality(0, 0), len(held_out), negated=negated)
    return best._replace(
        quality=_quality(best.mask(rest), of_rest),
        tree=_quality(tree.predict(numbers[held_out]), of_rest),
    )


def _searched(
    paths: list[tuple[Clause, ...]], table: "pd.DataFrame", wanted: np.ndarray, weight: float
) -> tuple[tuple[Clause, ...], bool]:
    """Return the part of a path, and whether to negate it, of the largest F1 less a penalty."""
    parts = {
        chosen
        for path in paths
        for size in range(1, len(path) + 1)
        for chosen in combinations(path, size)
    }
    parts |= {tuple(dict.fromkeys(map(_use, chosen))) for chosen in parts}
    masks = {c: c.mask(table[c.column]) for c in {c for chosen in parts for c in chosen}}
    ranges = {chosen: sum(c.value is None for c in chosen) for chosen in parts}
    best: tuple[tuple[Clause, ...], bool] = (), False
    most = -np.inf
    for chosen in sorted(parts, key=lambda chosen: (ranges[chosen], repr(chosen))):
        meeting = np.logical_and.reduce([masks[clause] for clause in chosen])
        for negated in (False, True):
            rows = meeting ^ negated
            inside, outside = (rows & wanted).sum(), (rows & ~wanted).sum()
            f1 = 2 * inside / (inside + weight * outside + wanted.sum())
            if f1 - A_CONDITION * len(chosen) > most:
                most, best = f1 - A_CONDITION * len(chosen), (chosen, negated)
    return best


def _split(selected: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    """Return rows to search, rows held out, and how many others one of the searched stands for."""
    inside, outside = (rng.permutation(np.flatnonzero(m)) for m in (selected, ~selected))
    held = [rows[: len(rows) // 3] for rows in (inside, outside)]
    inside, outside = inside[len(held[0]) :], outside[len(held[1]) :]
    taken = inside[: MOST_ROWS // 2]
    others = outside[: MOST_ROWS - len(taken)]
    weight = (len(outside) / len(others)) / (len(inside) / len(taken))
    return np.sort(np.r_[taken, others]), np.sort(np.concatenate(held)), weight


def _encoded(table: "pd.DataFrame") -> tuple[np.ndarray, list[Clause]]:
    """Return the table as numbers (N, P) for a tree, and the clause of values above each bound."""
    from pandas.api.types import is_bool_dtype

    numbers: list[np.ndarray] = []
    meanings: list[Clause] = []
    for column in columns_of(table, len(table))[0]:
        if column.kind == "number":
            meanings.append(Clause(column.name))
            numbers.append(column.values)
        elif is_bool_dtype(table[column.name]):
            meanings.append(Clause(column.name, value=True))
            numbers.append(table[column.name].to_numpy())
        elif column.kind == "class":
            meanings += [Clause(column.name, value=value) for value in column.names]
            numbers += [column.values == code for code in range(len(column.names))]
    if not numbers:
        msg = "No column differs between the rows, so there is no rule; add columns."
        raise InputError(msg)
    return np.column_stack(numbers).astype(np.float32), meanings


def _paths(tree: Any, meanings: list[Clause]) -> Iterator[tuple[Clause, ...]]:
    """Yield the conditions of each leaf of a tree that clauses can express."""
    waiting: list[tuple[int, tuple[Clause, ...]]] = [(0, ())]
    while waiting:
        node, path = waiting.pop()
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        if left < 0:
            yield path
            continue
        clause, bound = meanings[tree.feature[node]], float(tree.threshold[node])
        below: tuple[Clause, ...] = ()
        above: tuple[Clause, ...] = (clause,)
        if clause.value is True:
            below = (clause._replace(value=False),)
        elif clause.value is None:
            kind, k = component_of(clause.column)
            below, above = (clause._replace(high=bound),), (clause._replace(low=bound),)
            if not np.isfinite(bound):  # the tree separates missing values from all others
                ends = [Clause(f"{USES}{k}", value=used) for used in (True, False)]
                below, above = ((ends[0],), (ends[1],)) if kind == SCORE else ((), ())
        waiting += [(left, path + below), (right, path + above)]


def _use(clause: Clause) -> Clause:
    """Return the use of a component for a range of its scores; other clauses unchanged."""
    kind, k = component_of(clause.column)
    return Clause(f"{USES}{k}", value=True) if kind == SCORE else clause


def _joined(clauses: Sequence[Clause], table: "pd.DataFrame") -> tuple[Clause, ...]:
    """Return one clause a column, with short numbers as bounds between the same values."""
    joined: dict[str, Clause] = {}
    for clause in clauses:
        values = table[clause.column].to_numpy() if clause.value is None else np.empty(0)
        before = joined.get(clause.column, clause)
        low = _short(values, clause.low) if clause.low is not None else before.low
        high = _short(values, clause.high) if clause.high is not None else before.high
        joined[clause.column] = clause._replace(low=low, high=high)
    return tuple(joined.values())


def _short(values: np.ndarray, bound: float) -> float:
    """Return the shortest number in the middle half of the gap between values around a bound."""
    below, above = values[values <= bound].max(), values[values > bound].min()
    for digits in range(1, 17):
        value = float(f"{below / 2 + above / 2:.{digits}g}")
        if abs(value - (below / 2 + above / 2)) <= above / 4 - below / 4:
            return value
    return bound


def _quality(mask: np.ndarray, wanted: np.ndarray) -> RuleQuality:
    hit = float((mask & wanted).sum())
    return RuleQuality(hit / max(int(wanted.sum()), 1), hit / max(int(mask.sum()), 1))
