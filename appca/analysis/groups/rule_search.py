"""Search for the rule that describes selected rows best with few conditions.

A beam search. Columns become codes of few bins. How many rows of a rule are in each bin says at
once what F1 the rule would have with every range of that column. The bounds of the rule are then
moved between single values. The rows that conditions leave out are searched in the same way, for
groups of the form "one of these or both".
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from appca.analysis.groups.row_query import FEW_INTEGERS
from appca.analysis.groups.rule import Clause, RowRule, RuleQuality, rule_table
from appca.words.errors import InputError, naming_extra

if TYPE_CHECKING:
    import pandas as pd

LEAST = 6  # rows selected, and others
BINS = 32  # of a column
WIDTH, KEPT_COLUMNS = 20, 80  # rules that are kept at each length; columns that are searched
MOST_ROWS = 8_000  # that are searched: at most half of them selected
A_CONDITION = 0.02  # of F1 that another bound must add
_EDGES_FROM = 2_000  # rows
_PASSES = 2  # over the bounds of a rule


class _Binned(NamedTuple):
    """A table in bins; a code of BINS is in none."""

    codes: np.ndarray  # (P, n) int16
    ordered: np.ndarray  # (P,) bool: numbers, whose ranges count; of others single codes
    names: list[str]
    values: list[tuple[Any, ...]]  # of the codes of others
    edges: list[np.ndarray]  # of numbers


class _Goal(NamedTuple):
    """What rules are measured by."""

    wanted: np.ndarray  # (n,) bool: rows to describe
    weight: float  # of every other row
    negated: bool  # the rows to describe are those that miss a condition

    def f1(self, inside: Any, outside: Any) -> Any:
        """Return F1 of rules whose conditions so many wanted and other rows meet."""
        total = self.wanted.sum()
        if self.negated:
            inside, outside = total - inside, len(self.wanted) - total - outside
        return 2 * inside / (inside + self.weight * outside + total)


class _State(NamedTuple):
    worth: float
    rows: np.ndarray  # (n,) bool: rows that meet all ranges
    ranges: dict[int, tuple[int, int]]  # column to first and last code


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
        Columns in the rule, at most.
    random_state : int, Generator or None
        Chooses the third of the rows that is held out.

    Returns
    -------
    RowRule
        Its quality, and that of a decision tree with as many conditions, on the held-out rows.
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
    return described(columns, mask, max_clauses=max_clauses, random_state=random_state, rival=True)


def described(
    table: "pd.DataFrame",
    selected: np.ndarray,
    *,
    max_clauses: int = 4,
    random_state: Any = 0,
    rival: bool = False,
) -> RowRule:
    """Return the rule for rows (N,) bool of a table (see `rule_table`); see `appca.rule`."""
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
    rng = np.random.default_rng(random_state)
    fitting, held_out, weight = _split(selected, rng)
    part, wanted = table.iloc[fitting], selected[fitting]
    binned, best = _binned(part), (-np.inf, RowRule((), RuleQuality(0.0, 0.0), len(held_out)))
    for negated in (False, True):
        goal = _Goal(wanted, weight, negated)
        clauses = _sharpened(part, goal, _clauses(binned, _searched(binned, goal, max_clauses)))
        candidate = best[1]._replace(clauses=clauses, negated=negated)
        meeting = candidate.mask(part) ^ negated
        worth = float(goal.f1((meeting & wanted).sum(), (meeting & ~wanted).sum()))
        worth -= A_CONDITION * candidate.n_bounds
        best = max(best, (worth, candidate), key=lambda pair: pair[0])
    described_by = best[1]
    rest, of_rest = table.iloc[held_out], selected[held_out]
    tree = _tree(part, wanted, weight, rest, of_rest, described_by.n_bounds) if rival else None
    return described_by._replace(quality=_quality(described_by.mask(rest), of_rest), tree=tree)


def _split(selected: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    """Return rows to search, rows held out, and how many others one of the searched stands for."""
    inside, outside = (rng.permutation(np.flatnonzero(m)) for m in (selected, ~selected))
    held = [rows[: len(rows) // 3] for rows in (inside, outside)]
    inside, outside = inside[len(held[0]) :], outside[len(held[1]) :]
    taken = inside[: MOST_ROWS // 2]
    others = outside[: MOST_ROWS - len(taken)]
    weight = (len(outside) / len(others)) / (len(inside) / len(taken))
    return np.sort(np.r_[taken, others]), np.sort(np.concatenate(held)), weight


def _binned(table: "pd.DataFrame") -> _Binned:
    from pandas.api import types

    codes, ordered, values, edges = [], [], [], []
    for series in (table[name] for name in table.columns):
        boolean = types.is_bool_dtype(series)
        few = types.is_integer_dtype(series) and series.nunique() <= FEW_INTEGERS
        is_number = types.is_numeric_dtype(series) and not boolean and not few
        if is_number:
            x = series.to_numpy(dtype=np.float64, na_value=np.nan)
            there = x[np.isfinite(x)][:_EDGES_FROM]
            cuts = np.unique(np.quantile(there, np.arange(1, BINS) / BINS)) if len(there) else x[:0]
            code = np.where(np.isfinite(x), np.searchsorted(cuts, x), BINS)
            levels: tuple[Any, ...] = ()
        else:
            texts = series if boolean else series.astype(str).where(series.notna(), "")
            common = [v for v in texts.value_counts().index.tolist() if v != ""][:BINS]
            levels, cuts = tuple(common), np.empty(0)
            code = texts.map({v: i for i, v in enumerate(common)}).fillna(BINS).to_numpy()
        codes.append(code.astype(np.int16))
        ordered.append(is_number)
        values.append(levels)
        edges.append(cuts)
    return _Binned(np.array(codes), np.array(ordered), list(table.columns), values, edges)


def _searched(binned: _Binned, goal: _Goal, most: int) -> _State:
    everything = _State(-1.0, np.ones(len(goal.wanted), dtype=bool), {})
    every = np.arange(len(binned.codes))
    first = list(_extended(everything, every, binned, goal))
    columns = np.array(sorted({c for *_, c in first[:KEPT_COLUMNS]}))
    beam, best = _widest(first, [everything], binned), everything
    for _ in range(most):
        best = max([best, *beam], key=lambda state: state.worth)
        longer = [
            extension
            for place, state in enumerate(beam)
            if len(state.ranges) < most
            for extension in _extended(state, columns, binned, goal, place)
        ]
        beam = _widest(longer, beam, binned)
    return max([best, *beam], key=lambda state: state.worth)


_Extension = tuple[float, int, tuple[int, int], int]  # worth, state, range, column


def _widest(extensions: list[_Extension], states: list[_State], binned: _Binned) -> list[_State]:
    """Return the best extensions, each of other rows than those before it."""
    beam: list[_State] = []

    def rank(extension: _Extension) -> tuple[float, bool, bool]:
        """Of equals, "uses 1" comes before "does not use 2", and a range last."""
        worth, _, (low, _), column = extension
        values = binned.values[column]
        return -worth, not values, bool(values) and values[low] is False

    for worth, place, (low, high), column in sorted(extensions, key=rank):
        state, code = states[place], binned.codes[column]
        rows = state.rows & (code >= low) & (code <= high)
        if not any(np.array_equal(rows, other.rows) for other in beam):
            old = state.ranges.get(column, (0, BINS - 1))
            now = (max(low, old[0]), min(high, old[1]))
            beam.append(_State(worth, rows, state.ranges | {column: now}))
        if len(beam) == WIDTH:
            break
    return beam


def _extended(
    state: _State,
    columns: np.ndarray,
    binned: _Binned,
    goal: _Goal,
    place: int = 0,
) -> list[_Extension]:
    """Return the best range of each column for the rows of a state, the best column first."""
    parts = (state.rows & goal.wanted, state.rows & ~goal.wanted)
    low, high = np.triu_indices(BINS)
    counts = (_counts(binned.codes, columns, rows) for rows in parts)
    sums = (np.cumsum(np.pad(each, ((0, 0), (1, 0))), axis=1) for each in counts)
    inside, outside = (each[:, high + 1] - each[:, low] for each in sums)
    f1 = goal.f1(inside, outside)
    ordered = binned.ordered[columns][:, None]
    last = np.array([len(binned.edges[c]) for c in columns])[:, None]
    bounds = np.where(ordered, (low > 0).astype(int) + (high < last), 1)
    old = sum(
        _n_bounds(r, len(binned.edges[c]), binned.ordered[c]) for c, r in state.ranges.items()
    )
    allowed = np.where(ordered, (bounds > 0) & (high <= last), low == high)
    allowed &= inside + outside > 0
    worth = np.where(allowed, f1 - A_CONDITION * (old + bounds), -1.0)
    best = worth.argmax(axis=1)
    return sorted(
        (
            (float(worth[i, b]), place, (int(low[b]), int(high[b])), int(columns[i]))
            for i, b in enumerate(best)
        ),
        key=lambda extension: -extension[0],
    )


def _counts(codes: np.ndarray, columns: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return how many of some rows are in each bin of each column, (P, BINS)."""
    part = codes[np.ix_(columns, np.flatnonzero(rows))]
    offset = (np.arange(len(columns), dtype=np.int32) * (BINS + 1))[:, None]
    counts = np.bincount((part + offset).ravel(), minlength=len(columns) * (BINS + 1))
    return counts.reshape(len(columns), BINS + 1)[:, :BINS]


def _n_bounds(codes: tuple[int, int], last: int, ordered: bool) -> int:
    return (codes[0] > 0) + (codes[1] < last) if ordered else 1


def _clauses(binned: _Binned, state: _State) -> list[Clause]:
    clauses = []
    for column, (low, high) in state.ranges.items():
        name, edges = binned.names[column], binned.edges[column]
        if binned.ordered[column]:
            below = float(edges[low - 1]) if low > 0 else None
            above = float(np.nextafter(edges[high], np.inf)) if high < len(edges) else None
            clauses.append(Clause(name, below, above))
        else:
            clauses.append(Clause(name, value=binned.values[column][low]))
    return clauses


def _sharpened(table: "pd.DataFrame", goal: _Goal, clauses: list[Clause]) -> tuple[Clause, ...]:
    """Move each bound to where F1 is largest, between two values, as a short number."""
    for _ in range(_PASSES):
        sides = [(place, side) for place in range(len(clauses)) for side in ("low", "high")]
        for place, side in sides:
            clause = clauses[place]
            if getattr(clause, side) is None:
                continue
            free = [_with(clause, side, None), *(c for c in clauses if c is not clause)]
            rows = np.logical_and.reduce([c.mask(table[c.column]) for c in free])
            x = table[clause.column].to_numpy(dtype=np.float64)[rows]
            bound = _best_bound(x if side == "low" else -x, rows, goal)
            clauses[place] = _with(clause, side, bound if side == "low" else -bound)
    return tuple(clauses)


def _with(clause: Clause, side: str, bound: float | None) -> Clause:
    return clause._replace(low=bound) if side == "low" else clause._replace(high=bound)


def _best_bound(x: np.ndarray, rows: np.ndarray, goal: _Goal) -> float:
    """Return the bound on the values x of some rows (n,) bool above which F1 is largest."""
    order = np.argsort(-x, kind="stable")
    values = x[order]
    wanted = goal.wanted[rows][order]
    f1 = goal.f1(np.cumsum(wanted), np.cumsum(~wanted))
    ends = np.append(values[1:] < values[:-1], True)  # equal values go together
    best = int(np.argmax(np.where(ends, f1, -1.0)))
    last = values[best]
    following = values[best + 1] if best + 1 < len(values) else last - max(abs(last), 1.0)
    return _between(following, last)


def _between(low: float, high: float) -> float:
    """Return the shortest number in the middle half of what is from low to high."""
    quarter = high / 4 - low / 4
    for digits in range(1, 17):
        value = float(f"{low / 2 + high / 2:.{digits}g}")
        if low + quarter <= value <= high - quarter and value < high:
            return value
    return float(low)


def _quality(mask: np.ndarray, wanted: np.ndarray) -> RuleQuality:
    hit = float((mask & wanted).sum())
    return RuleQuality(hit / max(int(wanted.sum()), 1), hit / max(int(mask.sum()), 1))


def _tree(
    table: "pd.DataFrame",
    wanted: np.ndarray,
    weight: float,
    rest: "pd.DataFrame",
    of_rest: np.ndarray,
    n_bounds: int,
) -> RuleQuality:
    """Return the quality on the rest of a decision tree with as many conditions."""
    import pandas as pd
    from sklearn.tree import DecisionTreeClassifier

    both = pd.get_dummies(pd.concat([table, rest])).astype(float).to_numpy()
    tree = DecisionTreeClassifier(max_leaf_nodes=n_bounds + 1, random_state=0)
    tree.fit(both[: len(table)], wanted, np.where(wanted, 1.0, weight))
    return _quality(tree.predict(both[len(table) :]).astype(bool), of_rest)
