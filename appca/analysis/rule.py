"""A rule that describes selected rows: ranges, classes and used components, joined by "and".

The rule is the path to one node of a small decision tree, or all rows off that path.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Annotated, Any, NamedTuple, Self

import msgspec
import numpy as np
from msgspec import Meta

from appca.analysis.fitted import DescribedRows
from appca.data.dataset import Dataset
from appca.frames import (
    TableColumn,
    class_names,
    columns_of,
    matrix_of,
    n_rows_of,
    named_columns,
    number_column,
    numbers_of,
)
from appca.storage.schema import Count, Finite, Text
from appca.words import InputError, naming_extra, number, percent, shortened

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

    def mask(self, values: Any) -> np.ndarray:
        """Return which values (N,) meet the condition; missing ones never do."""
        if isinstance(self.value, bool):
            plain = values.values if isinstance(values, TableColumn) else values
            return np.asarray(np.asarray(plain, dtype=bool) == self.value)
        if self.value is not None:
            return np.asarray(class_names(values) == self.value, dtype=bool)
        x = numbers_of(values)
        low = -np.inf if self.low is None else self.low
        high = np.inf if self.high is None else self.high
        return np.asarray((x > low) & (x < high))

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
        if self.value is not None:  # of whole numbers with gaps pandas makes "3.0"
            texts = [self.value, *([f"{self.value}.0"] if self.value.isdecimal() else [])]
            return f"{column}.astype(str).isin({texts!r})"
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
    for kind in (USES, SCORE):
        k = column.removeprefix(kind)
        if k != column and k.isdecimal():
            return kind, int(k)
    return "", 0


class RuleQuality(NamedTuple):
    """How well a rule describes rows that it was not made from."""

    recall: float  # share of the selected rows that it describes
    precision: float  # share of the described rows that are selected


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
    negated: bool = False  # the rows are those that miss at least one condition

    def mask(self, table: Any) -> np.ndarray:
        """Return which rows (N,) of a table with columns as in `rule_table` the rule describes.

        Raises InputError when a column is missing.
        """
        columns = named_columns(table)
        missing = [clause.column for clause in self.clauses if clause.column not in columns]
        if missing:
            msg = (
                f"The rule needs the column “{shortened(missing[0])}”, which the table lacks; add "
                "it, or name it so."
            )
            raise InputError(msg)
        return _all_of(self.clauses, columns) ^ self.negated

    def select(self, model: Any, X: Any, table: Any = None) -> np.ndarray:
        """Return which rows X (N, D) of other data meet the rule, (N,) bool; see `appca.rule`."""
        rows = model.describe(matrix_of(X).for_model(model))
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
            if k:
                used, score = f"rows.active[:, {k - 1}]", f"rows.scores[:, {k - 1}]"
                values = used if kind == USES else f"np.where({used}, {score}, np.nan)"
                lines.append(f"table[{clause.column!r}] = {values}")
        first = ["import numpy as np", "", "rows = model.describe(X)"] if lines else []
        return "\n".join([*first, *lines, f"selected = table[{self.to_pandas()}]"])

    def to_json(self) -> str:
        """Return the rule as text that `from_json` reads."""
        return json.dumps([self.clauses, self.quality, self.n_held_out, self.negated])

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


def rule_table(scores: np.ndarray, active: np.ndarray, table: Any = None) -> dict[str, Any]:
    """Return what a rule can be about: a table's columns, and use and score of each component.

    Scores (N, K) become NaN where a row does not use the component. Raises InputError where a
    column of the table is called like one of them.
    """
    columns = named_columns(table)
    for k in range(active.shape[1]):
        values = active[:, k], np.where(active[:, k], scores[:, k], np.nan)
        for kind, x in zip((USES, SCORE), values, strict=True):
            name = f"{kind}{k + 1}"
            if name in columns:
                msg = f"“{name}” is a column of the table and of component {k + 1}; rename yours."
                raise InputError(msg)
            columns[name] = number_column(name, x)
    return columns


def dataset_table(dataset: Dataset, rows: DescribedRows) -> dict[str, Any]:
    """Return what a rule about a data set can be about: named features, labels, and components."""
    features: Sequence[str] = ()
    if dataset.image_shape is None and dataset.n_features <= MOST_FEATURES:
        features = dataset.column_names
    names = apart([*features, *dataset.labels])
    numbers = map(number_column, names, dataset.with_gaps().T if len(features) else ())
    columns = {column.name: column for column in numbers}
    labels = zip(names[len(features) :], dataset.labels.values(), strict=True)
    return rule_table(rows.scores, rows.active, columns | dict(labels))


def apart(names: Iterable[str]) -> list[str]:
    """Return names of columns that differ, also from those of components in `rule_table`."""
    taken: dict[str, None] = {}
    for name in names:
        free = name
        while free in taken or component_of(free)[1]:
            free += " (column)"
        taken[free] = None
    return list(taken)


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
    X : array-like or data frame, shape (N, D)
    selected : array-like of bool, shape (N,)
        The rows to describe; at least six, and at least six others.
    table : data frame, or mapping of str to array-like of shape (N,), optional
        Columns that the rule may be about, beside use of components and scores: numbers and
        classes, distinguished as in `association`. Dates are left out.
    max_clauses : int
        Conditions in the rule, at most: the depth of the decision tree.
    random_state : int, Generator or None
        Chooses the third of the rows that is held out.

    Returns
    -------
    RowRule
        Its `quality` is that on the held-out rows.
        ``rule.select(model, X, table)`` selects rows of other data, ``rule.to_pandas()`` and
        ``rule.to_python()`` are the rule as code.

    Raises
    ------
    InputError
        When there are too few rows on either side, or another number of rows than of X, or a column
        is called like one of a component, such as "score 1".
    """
    rows = model.describe(matrix_of(X).for_model(model))
    columns = rule_table(rows.scores, rows.active, table)
    mask = np.asarray(selected, dtype=bool)
    return described(columns, mask, max_clauses=max_clauses, random_state=random_state)


def described(
    table: Mapping[str, Any],
    selected: np.ndarray,
    *,
    max_clauses: int = 4,
    random_state: Any = 0,
) -> RowRule:
    """Return the rule for rows (N,) bool of a table (see `rule_table`); see `appca.rule`."""
    from sklearn.tree import DecisionTreeClassifier

    n = n_rows_of(table)
    if selected.shape != (n,):
        msg = f"selected must have one value a row, {n:,}; got shape {selected.shape}."
        raise InputError(msg)
    n_selected = int(selected.sum())
    if min(n_selected, n - n_selected) < LEAST:
        msg = (
            f"A rule needs at least {LEAST} selected rows and {LEAST} others; got {n_selected:,} "
            f"and {n - n_selected:,}, so select more or fewer."
        )
        raise InputError(msg)
    columns = {column.name: column for column in columns_of(table, n)[0] if column.kind != "date"}
    if not columns:
        msg = "No column differs between the rows, so there is no rule; add columns."
        raise InputError(msg)
    numbers, meanings = _encoded(columns.values())
    fitting, held_out, weight = _split(selected, np.random.default_rng(random_state))
    part = {name: x._replace(values=x.values[fitting]) for name, x in columns.items()}
    tree = DecisionTreeClassifier(max_depth=max_clauses, class_weight="balanced", random_state=0)
    tree.fit(numbers[fitting], selected[fitting])
    paths = list(_paths(tree.tree_, meanings))
    clauses, negated = _searched(paths, part, selected[fitting], weight)
    clauses = _joined(clauses, part)
    mask = _all_of(clauses, columns) ^ negated
    meeting, wanted = mask[held_out], selected[held_out]
    hits = float((meeting & wanted).sum())
    quality = RuleQuality(hits / max(int(wanted.sum()), 1), hits / max(int(meeting.sum()), 1))
    return RowRule(clauses, quality, len(held_out), negated)


def _all_of(clauses: Sequence[Clause], columns: Mapping[str, Any]) -> np.ndarray:
    masks = [clause.mask(columns[clause.column]) for clause in clauses]
    return np.asarray(np.logical_and.reduce(masks))


def _searched(
    paths: list[tuple[Clause, ...]],
    columns: Mapping[str, TableColumn],
    wanted: np.ndarray,
    weight: float,
) -> tuple[tuple[Clause, ...], bool]:
    """Return the part of a path, and whether to negate it, of the largest F1 less a penalty."""
    parts = {
        chosen
        for path in paths
        for size in range(1, len(path) + 1)
        for chosen in combinations(path, size)
    }
    parts |= {tuple(dict.fromkeys(map(_use, chosen))) for chosen in parts}
    masks = {c: c.mask(columns[c.column]) for c in {c for chosen in parts for c in chosen}}
    ranges = {chosen: sum(c.value is None for c in chosen) for chosen in parts}
    best: tuple[tuple[Clause, ...], bool] = (), False
    most = -np.inf
    for chosen in sorted(parts, key=lambda chosen: (ranges[chosen], repr(chosen))):
        meeting = np.logical_and.reduce([masks[clause] for clause in chosen])
        for negated in (False, True):
            rows = meeting ^ negated
            inside, outside = (rows & wanted).sum(), (rows & ~wanted).sum()
            f1 = 2 * inside / (inside + weight * outside + wanted.sum())
            gain = f1 - A_CONDITION * (len(chosen) + 0.01 * negated)
            if gain > most:
                most, best = gain, (chosen, negated)
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


Sides = tuple[tuple[Clause, ...], tuple[Clause, ...]]  # of values below and above a bound


def _encoded(columns: Iterable[TableColumn]) -> tuple[np.ndarray, list[Sides]]:
    """Return columns as numbers (N, P) for a tree, and the clauses on both sides of a bound."""
    numbers: list[np.ndarray] = []
    meanings: list[Sides] = []
    for name, kind, values, names in columns:
        if kind == "number":
            sides = (False, True) if component_of(name)[0] == USES else (None, None)
            below, above = (Clause(name, value=used) for used in sides)
            meanings.append(((below,), (above,)))
            numbers.append(values)
        else:
            each = [(Clause(name, value=value),) for value in names]
            meanings += [(each[1 - i] if len(names) == 2 else (), x) for i, x in enumerate(each)]
            numbers += [values == code for code in range(len(names))]
    return np.column_stack(numbers).astype(np.float32), meanings


def _paths(tree: Any, meanings: list[Sides]) -> Iterator[tuple[Clause, ...]]:
    """Yield the conditions of each leaf of a tree that clauses can express."""
    waiting: list[tuple[int, tuple[Clause, ...]]] = [(0, ())]
    while waiting:
        node, path = waiting.pop()
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        if left < 0:
            yield path
            continue
        below, above = meanings[tree.feature[node]]
        bound = float(tree.threshold[node])
        if above[0].value is None:
            kind, k = component_of(above[0].column)
            below, above = (below[0]._replace(high=bound),), (above[0]._replace(low=bound),)
            if not np.isfinite(bound):  # the tree separates missing values from all others
                ends = [(Clause(f"{USES}{k}", value=used),) for used in (True, False)]
                below, above = (ends[0], ends[1]) if kind == SCORE else ((), ())
        waiting += [(left, path + below), (right, path + above)]


def _use(clause: Clause) -> Clause:
    """Return the use of a component for a range of its scores; other clauses unchanged."""
    kind, k = component_of(clause.column)
    return Clause(f"{USES}{k}", value=True) if kind == SCORE else clause


def _joined(clauses: Sequence[Clause], columns: Mapping[str, TableColumn]) -> tuple[Clause, ...]:
    """Return one clause a column, with short numbers as bounds between the same values."""
    joined: dict[str, Clause] = {}
    for clause in clauses:
        values, before = columns[clause.column].values, joined.get(clause.column, clause)
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
