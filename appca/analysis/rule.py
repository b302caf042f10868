"""A rule that describes selected rows: ranges, classes and used components, joined by "and"."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from appca import frames
from appca.analysis.fitted import DescribedRows
from appca.data.dataset import Dataset
from appca.words import minus, naming_extra, percent, refuse_if, shortened

MOST_FEATURES = 200  # maximum number of features that rules use; with more, rules use none
LEAST = 6  # minimum number of rows per side
MOST_ROWS = 8_000  # maximum number of rows searched; at most half of them are selected
A_CONDITION = 0.02  # F1 that a condition, or "not", must add
USES, SCORE = "uses ", "score "  # columns of `rule_table`, with a component's number


class Clause(NamedTuple):
    """One condition on one column."""

    column: str
    low: float | None = None  # values must be above
    high: float | None = None  # values must be below
    value: bool | str | None = None  # a class, or whether a component is used

    def mask(self, values: Any) -> np.ndarray:
        """Return a mask of the values (N,) that meet the condition; missing values never do."""
        if isinstance(self.value, bool):
            plain = values.values if isinstance(values, frames.TableColumn) else values
            return np.asarray(np.asarray(plain, dtype=bool) == self.value)
        if self.value is not None:
            return np.asarray(frames.class_names(values) == self.value, dtype=bool)
        x, low = frames.numbers_of(values), -np.inf if self.low is None else self.low
        return np.asarray((x > low) & (x < (np.inf if self.high is None else self.high)))

    def words(self, names: Sequence[str] = ()) -> str:
        """Return the condition in words; `names` are names of components."""
        name = called(self.column, names)
        if isinstance(self.value, bool):
            return name if self.value else name.replace("uses", "does not use", 1)
        if self.value is not None:
            return f"{name} is {shortened(self.value)}"
        if self.low is not None and self.high is not None:
            return f"{name} from {minus(f'{self.low:.15g}')} to {minus(f'{self.high:.15g}')}"
        way, bound = ("above", self.low) if self.high is None else ("below", self.high)
        return f"{name} {way} {minus(f'{bound or 0.0:.15g}')}"  # rounded, it would miss rows

    def code(self) -> str:
        """Return the condition as pandas code for a DataFrame called table."""
        column = f"table[{self.column!r}]"
        if isinstance(self.value, bool):
            return column if self.value else f"~{column}"
        if self.value is not None:  # pandas converts integers with missing values to "3.0"
            texts = [self.value, *([f"{self.value}.0"] if self.value.isdecimal() else [])]
            return f"{column}.astype(str).isin({texts!r})"
        parts = [f"({column} > {self.low!r})"] if self.low is not None else []
        parts += [f"({column} < {self.high!r})"] if self.high is not None else []
        return " & ".join(parts)


def called(column: str, names: Sequence[str] = ()) -> str:
    """Return the title of a column in `rule_table`; `names` are names of components."""
    kind, k = component_of(column)
    if not k:
        return shortened(column)
    name = shortened(names[k - 1] if k <= len(names) else "") or k
    return f"uses {name}" if kind == USES else f"score on {name} (if used)"


def component_of(column: str) -> tuple[str, int]:
    """Return USES or SCORE and the component (from 1) of a column in `rule_table`; else "", 0."""
    kind, _, k = column.rpartition(" ")
    return (f"{kind} ", int(k)) if f"{kind} " in (USES, SCORE) and k.isdecimal() else ("", 0)


class RuleQuality(NamedTuple):
    """Quality of a rule on held-out rows."""

    recall: float  # share of the selected rows that meet the rule
    precision: float  # share of the rows meeting the rule that are selected


class RowRule(NamedTuple):
    """Conditions that the rows meet (or, if negated, do not all meet), with their quality."""

    clauses: tuple[Clause, ...]  # not empty
    quality: RuleQuality
    n_held_out: int
    negated: bool = False  # True: rows that fail at least one condition

    def mask(self, table: Any) -> np.ndarray:
        """Return which rows of a `rule_table` meet the rule, (N,); InputError without a column."""
        columns = frames.named_columns(table)
        for clause in self.clauses:
            msg = f"The rule needs the column “{shortened(clause.column)}”, which the table "
            msg += "lacks; add it, or rename a column."
            refuse_if(clause.column not in columns, msg)
        masks = [clause.mask(columns[clause.column]) for clause in self.clauses]
        return np.asarray(np.logical_and.reduce(masks)) ^ self.negated

    def select(self, model: Any, X: Any, table: Any = None) -> np.ndarray:
        """Return a mask (N,) of the rows X (N, D) of other data that meet the rule; see `rule`."""
        rows = model.describe(frames.matrix_of(X).for_model(model))
        return self.mask(rule_table(rows.scores, rows.active, frames.named_columns(table).items()))

    def conditions(self, names: Sequence[str] = ()) -> str:
        """Return the rule in words: "uses 3, price below 40" or "not (uses 3, price below 40)"."""
        said = ", ".join(clause.words(names) for clause in self.clauses)
        return f"not ({said})" if self.negated else said

    def sentence(self, names: Sequence[str] = ()) -> str:
        """Return the rule and its quality: "uses 3, price below 40: 94% of them, 97% right"."""
        recall, precision = map(percent, self.quality)
        return f"{self.conditions(names)}: {recall} of them, {precision} right"

    def to_pandas(self) -> str:
        """Return the rule as a filter of a DataFrame called table."""
        code = " & ".join(clause.code() for clause in self.clauses)
        return f"~({code})" if self.negated else code

    def to_python(self) -> str:
        """Return the rule as Python for a model, its rows X and a DataFrame called table."""
        lines = []
        for column in (clause.column for clause in self.clauses):
            kind, k = component_of(column)
            used, score = f"rows.active[:, {k - 1}]", f"rows.scores[:, {k - 1}]"
            values = used if kind == USES else f"np.where({used}, {score}, np.nan)"
            lines += [f"table[{column!r}] = {values}"] if k else []
        first = ["import numpy as np", "", "rows = model.describe(X)"] if lines else []
        return "\n".join([*first, *lines, f"selected = table[{self.to_pandas()}]"])


def rule_table(
    scores: np.ndarray, active: np.ndarray, table: Iterable[tuple[str, Any]] = ()
) -> dict[str, Any]:
    """Add uses and scores (NaN if unused) to a table, with " (column)" if a name is taken."""
    columns: dict[str, Any] = {}
    for name, values in table:
        free = name
        while free in columns or component_of(free)[1]:
            free += " (column)"
        columns[free] = values
    for k, used in enumerate(active.T):
        for kind, x in ((USES, used), (SCORE, np.where(used, scores[:, k], np.nan))):
            columns[f"{kind}{k + 1}"] = frames.number_column("", x)
    return columns


def dataset_table(dataset: Dataset, rows: DescribedRows) -> dict[str, Any]:
    """Return the columns that rules can use: named features, labels and components."""
    features: list[tuple[str, Any]] = []
    if dataset.image_shape is None and dataset.n_features <= MOST_FEATURES:
        numbers = (frames.number_column("", x) for x in dataset.with_gaps().T)
        features = list(zip(dataset.column_names, numbers, strict=True))
    return rule_table(rows.scores, rows.active, [*features, *dataset.labels.items()])


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

    The search adds the condition that raises F1 most, one at a time. The rule is the combination
    with the highest F1 after a deduction of 0.02 per condition.

    Parameters
    ----------
    model : fitted estimator
        With K components.
    X : array-like or data frame, shape (N, D)
    selected : array-like of bool, shape (N,)
        The rows to describe: at least six selected rows, and at least six others.
    table : data frame, or mapping of str to array-like of shape (N,), optional
        Columns that the rule may use in addition to use and scores: numbers and classes,
        distinguished as in `association`, but no dates. If a column is named like a component's,
        such as "score 1", " (column)" is appended to its name.
    max_clauses : int
        Maximum number of conditions.
    random_state : int, Generator or None
        Determines which third of the rows is held out.

    Returns
    -------
    RowRule
        Its `quality` is measured on held-out rows. ``rule.select(model, X, table)`` selects rows of
        other data, ``rule.to_pandas()`` and ``rule.to_python()`` return code for the rule.

    Raises
    ------
    InputError
        If either side has too few rows, or `selected` and X differ in length.
    """
    rows = model.describe(frames.matrix_of(X).for_model(model))
    columns = rule_table(rows.scores, rows.active, frames.named_columns(table).items())
    return described(columns, np.asarray(selected, dtype=bool), max_clauses, random_state)


def described(
    table: Mapping[str, Any], selected: np.ndarray, max_clauses: int = 4, random_state: Any = 0
) -> RowRule:
    """Return the rule for rows (N,) bool of a table (see `rule_table`); see `appca.rule`."""
    n, n_selected = len(selected), int(selected.sum())
    msg = f"A rule needs at least {LEAST} selected rows and {LEAST} others; got {n_selected:,} "
    msg += f"and {n - n_selected:,}, so select more or fewer."
    refuse_if(min(n_selected, n - n_selected) < LEAST, msg)
    rng = np.random.default_rng(random_state)
    sides = [rng.permutation(np.flatnonzero(mask)) for mask in (selected, ~selected)]
    held_out = np.concatenate([rows[: len(rows) // 3] for rows in sides])
    inside, outside = (rows[len(rows) // 3 :] for rows in sides)
    taken = inside[: MOST_ROWS // 2]
    others = outside[: MOST_ROWS - len(taken)]
    fitting = np.r_[taken, others]
    weight = (len(outside) / len(others)) / (len(inside) / len(taken))
    varied = [column for column in frames.columns_of(table, n)[0] if column.kind != "date"]
    varied.sort(key=lambda x: x.kind == "number" and component_of(x.name)[0] != USES)
    columns = {column.name: column for column in varied}
    part = {name: x._replace(values=x.values[fitting]) for name, x in columns.items()}
    orders = {name: np.argsort(x.values)[: x.there.sum()] for name, x in part.items()}
    most, negation = -np.inf, False
    best: tuple[Clause, ...] = ()
    for negated in (False, True):
        search = _Search(part, orders, selected[fitting], weight, negated)
        path = search.path(max_clauses)
        for chosen in (c for size in range(len(path)) for c in combinations(path, size + 1)):
            rows = search.rows(chosen)
            gain = search.f1((rows & search.wanted).sum(), (rows & ~search.wanted).sum())
            gain -= A_CONDITION * (len(chosen) + negated)
            if gain > most:
                most, best, negation = gain, chosen, negated
    refuse_if(not best, "No column distinguishes the rows, so there is no rule; add columns.")
    joined: dict[str, Clause] = {}  # joins two bounds of a column
    for clause in best:
        both = joined.get(clause.column, clause), clause
        low = max((c.low for c in both if c.low is not None), default=None)
        high = min((c.high for c in both if c.high is not None), default=None)
        joined[clause.column] = clause._replace(low=low, high=high)
    rule = RowRule(tuple(joined.values()), RuleQuality(0.0, 0.0), len(held_out), negation)
    meeting, wanted = rule.mask(columns)[held_out], selected[held_out]
    hits = float((meeting & wanted).sum())
    quality = RuleQuality(hits / max(int(wanted.sum()), 1), hits / max(int(meeting.sum()), 1))
    return rule._replace(quality=quality)


class _Search(NamedTuple):
    """Columns of N rows, and a mask of the wanted rows."""

    columns: dict[str, frames.TableColumn]
    orders: dict[str, np.ndarray]
    wanted: np.ndarray  # (N,) bool
    weight: float  # weight of an unwanted row
    negated: bool

    def rows(self, path: Sequence[Clause]) -> np.ndarray:
        masks = [clause.mask(self.columns[clause.column]) for clause in path]
        return np.asarray(np.logical_and.reduce([np.ones(len(self.wanted), dtype=bool), *masks]))

    def f1(self, inside: Any, outside: Any) -> Any:
        n = self.wanted.sum()
        if self.negated:
            inside, outside = n - inside, len(self.wanted) - n - outside
        return 2 * inside / (inside + self.weight * outside + n)

    def path(self, most: int) -> list[Clause]:
        path: list[Clause] = []
        reached = 0.0
        while len(path) < most:
            gain, clause = self.best(path)
            if clause is None or gain <= reached:
                break
            reached, path = gain, [*path, clause]
        for i in range(len(path)):
            gain, clause = self.best(path[:i] + path[i + 1 :])
            if clause is not None and gain >= reached:
                reached, path[i] = gain, clause
        return path

    def best(self, path: Sequence[Clause]) -> tuple[float, Clause | None]:
        """Return the condition that raises F1 most when added to a path, and that F1."""
        rows, most, best = self.rows(path), 0.0, None
        for name, column in self.columns.items():
            order = self.orders[name][rows[self.orders[name]]]
            x, hits = column.values[order], np.cumsum(self.wanted[order])
            cuts = np.flatnonzero(np.diff(x))
            if not len(cuts):
                continue
            if column.kind == "class":
                ends = np.r_[cuts, len(x) - 1]
                inside, n = np.diff(hits[ends], prepend=0)[None], np.diff(ends, prepend=-1)
            else:  # below and above
                inside = np.stack([hits[cuts], hits[-1] - hits[cuts]])
                n = np.stack([cuts + 1, len(x) - 1 - cuts])
            gains = self.f1(inside, n - inside)
            if gains.max() <= most:
                continue
            most = float(gains.max())
            side, place = np.unravel_index(gains.argmax(), gains.shape)
            if column.kind == "class":
                best = Clause(name, value=column.names[int(x[ends[place]])])
            elif component_of(name)[0] == USES:
                best = Clause(name, value=bool(side))
            else:
                below, above = x[cuts[place]], x[cuts[place] + 1]
                middle, slack = below / 2 + above / 2, above / 4 - below / 4
                shorter = (float(f"{middle:.{digits}g}") for digits in range(1, 18))
                bound = next(value for value in shorter if abs(value - middle) <= slack)
                best = Clause(name, low=bound) if side else Clause(name, high=bound)
        return most, best
