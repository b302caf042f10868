"""A rule that describes selected rows: ranges, classes and used components, joined by "and"."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Self

import msgspec
import numpy as np
from msgspec import Meta

from appca.analysis.fitted import DescribedRows
from appca.data.dataset import Dataset
from appca.storage.schema import Count, Finite, Text
from appca.words.errors import InputError
from appca.words.numbers import number, percent
from appca.words.wording import shortened

if TYPE_CHECKING:
    import pandas as pd

MOST_FEATURES = 200  # of a table, above which rules are about labels and components
USES, SCORE = "uses ", "score "  # and the number of a component: columns of `rule_table`


class Clause(NamedTuple):
    """One condition on one column."""

    column: str
    low: float | None = None  # values above it
    high: float | None = None  # values below it
    value: str | bool | None = None  # of a class, or whether a component is used

    @property
    def n_bounds(self) -> int:
        """How many conditions this is for a decision tree."""
        return (self.low is not None) + (self.high is not None) + (self.value is not None)

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
    tree: RuleQuality | None = None  # of a decision tree with as many conditions, on the same rows
    negated: bool = False  # the rows are those that miss at least one condition

    @property
    def n_bounds(self) -> int:
        """How many conditions these are for a decision tree."""
        return sum(clause.n_bounds for clause in self.clauses)

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
        if not all(clause.n_bounds for clause in clauses):
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
