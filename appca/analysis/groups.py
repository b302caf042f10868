"""Differences between selected rows and the other rows, and selections by a condition."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import compress, islice
from typing import Any, NamedTuple

import numpy as np

from appca import class_overlap, row_types
from appca.analysis.components import name_of, supports
from appca.analysis.fitted import FittedRun
from appca.analysis.permutation import corrected
from appca.class_overlap import NEAREST
from appca.data.dataset import MISSING, Dataset, categories
from appca.frames import column_of as column_of_table
from appca.words import apart, of_column, percent, refuse_if, shortened

MOST_FEATURES, MOST_RANKED = 1000, 5_000  # in a list; rows whose neighbours in panels are ranked
OF_CLASSES = {"is": "is one of", "is not": "is none of"}
OF_NUMBERS = {"above": "is above", "below": "is below"}
OF_NUMBERS |= {"highest": "is among the highest, %", "lowest": "is among the lowest, %"}


class RowValues(NamedTuple):
    """A class or number for each row."""

    name: str
    values: np.ndarray  # (N,) numbers, or codes into names
    names: tuple[str, ...] | None = None  # class names; None for numbers


class RowColour(NamedTuple):
    """A way to colour rows, in addition to labels, columns and components."""

    about: str
    of: Callable[..., Any]  # (data, fit, trust of a map) -> (N,) or (N, m)
    offered: Callable[..., bool] | None = None  # (data, trust) -> bool; None: always


def _of_panels(dataset: Dataset, fitted: FittedRun, _: object) -> np.ndarray:
    from appca.analysis.map_quality import panel_trust

    X = fitted.preprocessing.transform(dataset.X)
    return np.column_stack(panel_trust(X, fitted.scores, fitted.active)[:3])


def types_of(dataset: Dataset, fitted: FittedRun, _: object = None) -> row_types.RowTypes:
    """Return the types of rows; the first call for a fit may take seconds."""
    return row_types.types_of(dataset, fitted, compare)


_TRUST = "Pink: the neighbours of the point are far from it in the data. Teal: rows near it in the "
_TRUST += "data are elsewhere in the picture; hover over the point to see lines to them."
MAP, TYPE = "trust of the map", "automatic type"
COLOURS = {
    "residual": RowColour("Distance from its reconstruction.", lambda _, run, __: run.error),
    "membership": RowColour("Probability of its support.", lambda _, run, __: run.membership),
    "likelihood": RowColour("How probable a row is.", lambda _, run, __: run.log_likelihood_rows),
    "row order": RowColour("The file's order.", lambda d, *_: np.arange(d.n_rows), lambda *_: True),
    MAP: RowColour(_TRUST, lambda _, __, trust: trust, lambda _, trust: trust is not None),
    TYPE: RowColour(row_types.ABOUT, types_of, lambda d, _: d.n_rows >= 2 * row_types.FEWEST),
    "trust of the panels": RowColour(_TRUST, _of_panels, lambda d, _: d.n_rows <= MOST_RANKED),
}
MEASURES = [key for key, colour in COLOURS.items() if colour.offered is None]


def names_of(dataset: Dataset, fitted: FittedRun, wanted: str = "") -> dict[str, str]:
    """Map keys of conditions to names, including the first features that contain `wanted`."""
    names = {f"label:{name}": name for name in dataset.labels}
    names |= {key: key for key in ("subspace", *MEASURES)}
    names |= {f"score:{k}": f"score on {name_of(fitted, k)}" for k in range(fitted.scores.shape[1])}
    if dataset.image_shape is None:
        named, part = enumerate(dataset.column_names), wanted.casefold()
        features = ((f"feature:{j}", name) for j, name in named if part in name.casefold())
        names |= dict(islice(features, MOST_FEATURES))
    return names


def column_of(dataset: Dataset, fitted: FittedRun, key: str) -> RowValues:
    """Return the column of a key from `names_of`; scores on unused components are NaN."""
    kind, _, rest = key.partition(":")
    if kind == "subspace":
        codes, names = supports(fitted.active)
        return RowValues(kind, codes, tuple(names))
    if kind == "score":
        k = int(rest)
        scores = np.where(fitted.active[:, k], fitted.scores[:, k], np.nan)
        return RowValues(f"score on {name_of(fitted, k)}", scores)
    if kind == "feature":
        j = int(rest)
        gaps = False if dataset.missing is None else dataset.missing[:, j]
        return RowValues(feature_name(dataset, j), np.where(gaps, np.nan, dataset.X[:, j]))
    if kind != "label":
        return RowValues(kind, np.asarray(COLOURS[kind].of(dataset, fitted, None)))
    values = dataset.labels[rest]
    if values.dtype.kind != "U" and column_of_table(rest, values).kind != "class":
        return RowValues(rest, values)
    names, codes = categories(values)
    return RowValues(rest, codes, tuple(names))


def feature_name(dataset: Dataset, j: int) -> str:
    """Return a feature's name, or a pixel's position (from 1, top left), or its number."""
    if dataset.feature_names is not None:
        return dataset.feature_names[j]
    if dataset.image_shape is None:
        return f"feature {j + 1}"
    row, column, *channel = np.unravel_index(j, dataset.image_shape)
    shade = f", {('red', 'green', 'blue')[channel[0]]}" if channel else ""
    return f"pixel row {row + 1}, column {column + 1}{shade}"


def matching(column: RowValues, relation: str, value: Any) -> np.ndarray:
    """Return which rows meet a condition, (N,) bool; rows with a missing number never do.

    For classes, `relation` is a key of `OF_CLASSES` and `value` contains class names. For numbers,
    it is a key of `OF_NUMBERS`; "highest" 5 means above the 95% quantile. Else raises InputError.
    """
    kind, rules = ("numbers", OF_NUMBERS) if column.names is None else ("classes", OF_CLASSES)
    msg = f"“{column.name}” has {kind}, so a rule is one of {', '.join(rules)}; got {relation}."
    refuse_if(relation not in rules, msg)
    if column.names is not None:
        wanted = [code for code, name in enumerate(column.names) if name in value]
        return np.isin(column.values, wanted, invert=relation == "is not")
    values, limit = np.asarray(column.values, dtype=np.float64), float(value)
    if relation in ("highest", "lowest"):
        msg = f"A share of rows must be between 0 and 100%; got {limit:g}."
        refuse_if(not 0 < limit < 100, msg)
        there, share = values[np.isfinite(values)], 100 - limit if relation == "highest" else limit
        limit = float(np.percentile(there, share)) if len(there) else np.nan
    with np.errstate(invalid="ignore"):
        return values > limit if relation in ("above", "highest") else values < limit


MOST_COMPARED = 2e10  # numbers in pairs of rows: about 2 s
DENSE = 1.2  # about the 90% quantile of the local outlier factor in five data sets


def _are_comparable(dataset: Dataset) -> bool:
    return NEAREST < dataset.n_rows <= MOST_COMPARED / max(dataset.X.size, 50 * dataset.n_rows)


def prepared(dataset: Dataset, fitted: FittedRun) -> np.ndarray:
    """Return all rows as the fit sees them, gaps filled by its model."""
    return fitted.preprocessing.transform(fitted.completed(dataset.X, dataset.missing))


def among_alike(dataset: Dataset, fitted: FittedRun) -> np.ndarray:
    """Whether rows (N,) have a local outlier factor (Breunig et al., 2000) below `DENSE`."""
    from sklearn.neighbors import LocalOutlierFactor

    if not _are_comparable(dataset):
        return np.zeros(dataset.n_rows, dtype=bool)
    Y = prepared(dataset, fitted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of repeated rows
        model = LocalOutlierFactor(n_neighbors=NEAREST, algorithm="brute").fit(Y)
    return np.asarray(-model.negative_outlier_factor_ < DENSE)


def nearest(
    dataset: Dataset, fitted: FittedRun, X: np.ndarray | None = None, *, in_units: bool = False
) -> np.ndarray:
    """Return the nearest rows (m, NEAREST) of X, or of rows in other units; none if n is large.

    With `in_units`, rows of the same unit count, too.
    """
    from sklearn.neighbors import NearestNeighbors

    if not _are_comparable(dataset):
        return np.empty((0, NEAREST), int)
    alike = [dataset.copies] if in_units else [dataset.copies, dataset.units]
    of = None if X is None else fitted.preprocessing.transform(X)
    k = NEAREST + sum(np.bincount(codes).max() - 1 for codes in alike) * (X is None)
    model = NearestNeighbors(n_neighbors=min(k, dataset.n_rows - 1), algorithm="brute")
    near = model.fit(prepared(dataset, fitted)).kneighbors(of, return_distance=False)
    if k > NEAREST:  # rows of one patient are alike whatever their class
        is_alike = np.any([codes[near] == codes[:, None] for codes in alike], axis=0)
        order = np.argsort(is_alike, axis=1, kind="stable")
        near = np.take_along_axis(near, order, axis=1)
    return np.asarray(near[:, :NEAREST])


# rows, features that differ in the class, mean silhouette
Kind = tuple[np.ndarray, list["GroupDifference"], float]


def kinds(dataset: Dataset, fitted: FittedRun, codes: np.ndarray, most: int) -> list[Kind]:
    """Return the clusters of each class; of tables clear types, if features differ."""
    Y, is_drawn = prepared(dataset, fitted), dataset.image_shape is not None or dataset.is_ordered
    types = partial(row_types.grouped, fewest=class_overlap.LEAST)
    split = class_overlap.kinds(Y, codes, most, None if is_drawn else types)
    told, clear = list[Kind](), set[int]()
    for rows, firm in zip(split, class_overlap.silhouettes(Y, codes, split), strict=True):
        sides = np.where(codes == codes[rows[0]], 0, -1) + np.isin(np.arange(len(codes)), rows)
        every = compare(dataset, fitted, sides).strongest() if not is_drawn and 0 in sides else []
        told.append((rows, [d for d in every if d.kind == "feature"], firm))
        clear |= {codes[rows[0]]} if is_drawn or told[-1][1] else set()
    vague = {int(codes[rows[0]]) for rows in split} - clear
    told = [kind for kind in told if codes[kind[0][0]] in clear]
    told += [(np.flatnonzero(codes == code), [], 0.0) for code in vague]
    return sorted(told, key=lambda kind: int(codes[kind[0][0]]))


def nearly_equal(dataset: Dataset, fitted: FittedRun, near: np.ndarray) -> dict[int, int]:
    """Map images or curves far nearer to another one than is usual to it, nearest first."""
    if not len(near) or (dataset.image_shape is None and not dataset.is_ordered):
        return {}
    return class_overlap.nearly_equal(prepared(dataset, fitted), near)


class ClassesApart(NamedTuple):
    """How far the classes of a label lie apart."""

    sentence: str
    about: str  # what the table counts, and the features that differ most
    table: np.ndarray  # (C, C) rows by class and the class of most of their nearest rows
    by_discriminants: np.ndarray  # (C, C) by class and that told from the others
    told: dict[int, tuple[int, float]]  # see `class_overlap.discriminated`
    far: dict[int, float]  # see `class_overlap.apart_in_class`
    ends: class_overlap.Ends
    inside: class_overlap.Pairs  # see `class_overlap.inside_groups`
    far_names: dict[int, float]  # see `class_overlap.far_groups`


def classes_apart(
    dataset: Dataset,
    fitted: FittedRun,
    near: np.ndarray,
    label: str,
    names: Sequence[str],
    codes: np.ndarray,
) -> ClassesApart:
    """Compare classes (N,), which `names` name, by nearest rows (N, NEAREST) and features."""
    table, Y = class_overlap.mixing(codes, near, len(names)), prepared(dataset, fitted)
    said = class_overlap.sentence(table, label, names)
    is_unit = label == dataset.related
    units = np.arange(len(Y)) if is_unit else dataset.units
    by_discriminants, told = class_overlap.discriminated(Y, codes, units)
    if dataset.image_shape is not None:  # unlikely images need a second opinion
        is_among = class_overlap.most_near(codes, near) == codes
        told = {row: of for row, of in told.items() if not is_among[row]}
    if n := by_discriminants.sum():
        share = percent(np.trace(by_discriminants) / n)
        said += f". Shrunken linear discriminants, cross-validated, tell {share}"
        if dataset.image_shape is None and 2 < Y.shape[1] == dataset.n_features:
            two = class_overlap.two_apart(Y, codes)
            share = percent(np.trace(class_overlap.discriminated(Y[:, two], codes, units)[0]) / n)
            said += f"; of {' and '.join(dataset.column_names[j] for j in two)} alone, {share}"
    others = f" of another {dataset.related}" * bool(dataset.related and not is_unit)
    about = f"Rows of each {label} by the commonest of their {NEAREST} nearest rows{others}; of "
    copied = bool(dataset.repeated_rows)
    about += "equally common ones the nearer." + " Its copies do not count." * copied
    about += " The two features are chosen with all rows." * ("alone" in said)
    ends, inside, far_names = class_overlap.Ends(), class_overlap.Pairs(), dict[int, float]()
    far = class_overlap.apart_in_class(Y, codes) if _are_comparable(dataset) else {}
    if dataset.image_shape is None and dataset.X.size <= class_overlap.MOST_VALUES:
        best, ends = class_overlap.marked(dataset.with_gaps(), dataset.column_names, codes)
        said += f". Share of ranks' variance between classes: {', '.join(best[:NAMED])}"
    if dataset.related == "name" != label:
        alike, of = class_overlap.at_one_contrast(dataset.X), dataset.labels["name"]
        far_names = class_overlap.far_groups(alike, codes, of)
        inside = class_overlap.inside_groups(alike, codes, names, of)
        said += f". Nearest inside a name: {class_overlap.closest_inside(inside)}"
    return ClassesApart(said, about, table, by_discriminants, told, far, ends, inside, far_names)


LEAST, LEAST_USERS = 2, 5  # minimum per side: rows; users of a component, to compare scores
MOST_CLASSES = 50  # maximum number of classes of a column; the largest are used
MOST_VALUES = 1 << 24  # maximum number of ranked values; larger data are sampled
EXACT, SMALL_COUNT = 20, 5.0  # exact tests: up to so many rows; for smaller expected counts
NAMED, MOST_SHOWN = 3, 10  # maximum number of differences in the sentence and in its chart
NEGLIGIBLE = 0.147  # smaller |delta| are negligible (Romano et al., 2006)
SIGNIFICANT = 0.05
FEWEST_SAMPLED, _BLOCK_VALUES = 1000, 1 << 22


class GroupDifference(NamedTuple):
    """One quantity compared between the group and the rest."""

    kind: str  # "feature", "image", "score", "use", "class", "subspace" or "measure"
    name: str  # a class is “column = class”
    group: float  # median, mean if there are two values or medians contradict, or share of rows
    rest: float
    effect: float  # Cliff's delta, or difference of shares; positive if larger in the group
    d: float | None  # Cohen's d of a number; NaN if neither side varies
    p: float  # Mann-Whitney, chi-square or Fisher
    corrected: float = np.nan  # for multiple tests (Benjamini-Hochberg)
    is_mean: bool = False  # whether `group` and `rest` of a number are means

    @property
    def is_share(self) -> bool:
        """Whether `group` and `rest` are shares of rows, not means."""
        return self.d is None

    @property
    def matters(self) -> bool:
        """Whether the effect is significant and not negligible."""
        return abs(self.effect) >= NEGLIGIBLE and self.corrected < SIGNIFICANT


class GroupComparison(NamedTuple):
    """A comparison of a group with the other rows."""

    n_group: int
    differences: list[GroupDifference]  # strongest first
    sampled: int | None  # number of rows sampled to compare features; None: all rows
    classes: list[str]  # of which the group is all rows
    ordered: Sequence[str] = ()  # names of features in order, if they are ordered

    def strongest(self) -> list[GroupDifference]:
        """Return what differs most, features before what the fit found; ordered ones joined."""
        strong = [each for each in self.differences if each.matters]
        has_features = any(each.kind == "feature" for each in strong)
        told, names, seen = list[GroupDifference](), self.ordered, set[int]()
        at = {name: j for j, name in enumerate(names)}
        effects = {at[d.name]: d.effect for d in strong if d.kind == "feature" and names}
        of_fit = {"measure": 2} | dict.fromkeys(("score", "use", "subspace"), int(has_features))
        for each in sorted(strong, key=lambda each: of_fit.get(each.kind, 0)):
            if each.kind == "feature" and names:
                first = last = at[each.name]
                if first in seen:
                    continue
                while effects.get(first - 1, 0.0) * each.effect > 0:
                    first -= 1
                while effects.get(last + 1, 0.0) * each.effect > 0:
                    last += 1
                seen |= {*range(first, last + 1)}
                joined = f"{names[first]} to {names[last]}, most at {each.name}"
                told.append(each._replace(name=joined if first < last else each.name))
            else:
                told.append(each)
        return told[:MOST_SHOWN]


def compare(dataset: Dataset, fitted: FittedRun, sides: np.ndarray) -> GroupComparison:
    """Compare the rows of a group with other rows by labels, features and the fit.

    `sides` (N,) is a mask of the group, or 1 in the group, 0 in the rest and −1 in neither. Of
    images, the mean and the pixel that differs most are compared. Labels are not if they define a
    side, divide the classes of the group's label or, if the other side is the rest, follow from it.
    Differences are ranked by effect, ties by Cohen's d. A side needs two rows, else InputError.
    """
    group, rest = np.flatnonzero(sides == 1), np.flatnonzero(sides == 0)
    ends = (group, 1), (rest, 0)
    msg = f"A comparison needs {LEAST} rows on each side; got {len(group):,} and {len(rest):,}."
    refuse_if(min(len(group), len(rest)) < LEAST, msg)
    active = fitted.active
    measures = np.stack([column_of(dataset, fitted, key).values for key in MEASURES], axis=1)
    scores = np.where(active, fitted.scores, np.nan)
    names = [name_of(fitted, k) for k in range(active.shape[1])]
    users = max(LEAST_USERS, min(len(group), len(rest)) // 4)  # scores are compared among users
    every = np.ones(len(sides), dtype=bool)
    parts: list[Any] = [  # kind, names, values, fewest values per side, rows
        ("measure", MEASURES, measures, LEAST, every),
        ("score", [f"score on {name}" for name in names], scores, users, every),
        ("use", [f"use of {name}" for name in names], active, 0, every),
        *_shades(dataset, every),
    ]
    classes, columns = list[str](), [column_of(dataset, fitted, "subspace")]
    columns += [column_of(dataset, fitted, f"label:{name}") for name in dataset.labels]
    labels = [codes for _, codes, named in columns[1:] if named is not None]
    wholes = [codes for codes in labels if np.array_equal(codes == codes[group[0]], sides == 1)]
    for k, (title, codes, named) in enumerate(columns):
        if named is None:
            parts.append(("class", [title], np.array(codes, float)[:, None], LEAST, every))
            continue
        is_group, is_rest = (np.array_equal(codes == codes[r[0]], sides == n) for r, n in ends)
        nested = (
            len(np.unique(codes + 1j * x)) in (len(named), 0 if (sides < 0).any() else x.max() + 1)
            for x in wholes
        )
        if is_group:
            classes.append(of_column(title, named[codes[group[0]]]))
        elif not is_rest and not (k and any(nested)):
            kind, way = ("class", " = ") if k else ("subspace", " ")
            members = _members(f"{title}{way}", codes, named)
            parts += [(kind, each, values, 0, classed) for each, values, classed in members]
    measured = []
    for kind, titles, values, least, classed in parts:
        x, y = (values[rows[classed[rows]]] for rows in (group, rest))
        measured += differences(kind, titles, x, y, least) if len(x) and len(y) else []
    sampled, most = None, max(FEWEST_SAMPLED, MOST_VALUES // dataset.n_features // 2)
    drawn = [np.sort(np.random.default_rng(0).permutation(of)[:most]) for of in (group, rest)]
    if dataset.image_shape is not None:
        measured += _strongest_pixel(dataset, *(dataset.X[rows] for rows in drawn))
    else:
        prepare, values = fitted.preprocessing.prepare, [*map(dataset.with_gaps, drawn)]
        if prepare is not None and prepare.is_by_row:  # sizes of rows are not in the fit
            values = [prepare.apply(side.astype(np.float64)) for side in values]
        n = sum(map(len, drawn))
        sampled, step = n if n < len(group) + len(rest) else None, max(1, _BLOCK_VALUES // n)
        for start in range(0, dataset.n_features, step):
            part = slice(start, start + step)
            x, y = (side[:, part].astype(np.float64) for side in values)
            measured += differences("feature", dataset.column_names[part], x, y)
    chosen_by = ("subspace", "use") if (active[group] == active[group[0]]).all() else ()
    told = [each for each in measured if each.kind not in chosen_by]
    q = corrected(np.array([each.p for each in told])).tolist()
    told = [each._replace(corrected=value) for each, value in zip(told, q, strict=True)]
    told.sort(key=lambda x: (-abs(x.effect), -abs(np.nan_to_num(x.d or 0.0)), x.name))
    ordered = dataset.column_names if dataset.is_ordered else ()
    return GroupComparison(len(group), told, sampled, classes, ordered)


def _shades(dataset: Dataset, every: np.ndarray) -> Iterator[Any]:
    """Yield the mean of each image's pixels, or of each colour, as a part of a comparison."""
    if shape := dataset.image_shape:
        colours = ["red", "green", "blue"] if shape[2:] else ["pixel"]
        means = dataset.X.reshape(dataset.n_rows, -1, len(colours)).mean(axis=1, dtype=np.float64)
        yield "image", [f"mean {colour}" for colour in colours], means, LEAST, every


def _strongest_pixel(dataset: Dataset, x: np.ndarray, y: np.ndarray) -> list[GroupDifference]:
    """Compare the pixel that differs most of those with a large d, its p times their number."""
    spread = np.sqrt(x.var(axis=0, dtype=float) + y.var(axis=0, dtype=float))
    d = (x.mean(axis=0, dtype=float) - y.mean(axis=0, dtype=float)) / np.maximum(spread, 1e-300)
    most = np.argsort(-np.abs(d), kind="stable")[:MOST_CLASSES]
    names = [feature_name(dataset, j) for j in most]
    told = sorted(differences("image", names, x[:, most], y[:, most]), key=lambda d: -abs(d.effect))
    return [each._replace(p=min(1.0, each.p * len(d))) for each in told[:1]]


def _members(title: str, codes: np.ndarray, named: Sequence[str]) -> Iterator[Any]:
    """Yield names (C,) of classes, members (N, C), rows with a class; last, of those without."""
    largest = np.sort(np.argsort(-np.bincount(codes), kind="stable")[:MOST_CLASSES])
    gone = codes == (len(named) - 1 if named[-1] == MISSING else -1)
    largest = largest[np.isin(largest, codes[~gone])]
    yield [f"{title}{named[code]}" for code in largest], codes[:, None] == largest, ~gone
    yield [f"{title}{MISSING}"], gone[:, None], np.ones_like(gone)


def differences(
    kind: str, names: Sequence[str], x: np.ndarray, y: np.ndarray, least: int = LEAST
) -> list[GroupDifference]:
    """Compare columns of the group (n, D) and the rest (m, D): numbers (NaN is missing) or bool.

    Numbers with `least` values per side get Cliff's delta, Cohen's d (pooled), a two-sided p by
    Mann-Whitney. Shares get chi-square, uncorrected, or Fisher's test if a count expects under 5.
    """
    from scipy.stats import chi2_contingency, fisher_exact, mannwhitneyu

    if x.dtype == bool:
        shares, n, m = [], len(x), len(y)
        for name, a, b in zip(names, x.sum(axis=0).tolist(), y.sum(axis=0).tolist(), strict=True):
            if a + b in (0, n + m):
                continue
            table = [[a, n - a], [b, m - b]]
            test = chi2_contingency(table, correction=False)
            few = test.expected_freq.min() < SMALL_COUNT
            chance = float(fisher_exact(table).pvalue if few else test.pvalue)
            shares.append(GroupDifference(kind, name, a / n, b / m, a / n - b / m, None, chance))
        return shares
    x, y = (np.where(np.isfinite(side), side, np.nan).astype(np.float64) for side in (x, y))
    counts = np.stack([np.isfinite(side).sum(axis=0) for side in (x, y)])
    enough = counts.min(axis=0) >= least
    if not enough.any():
        return []
    x, y, (n, m) = x[:, enough], y[:, enough], counts[:, enough]
    group, rest = np.nanmean(x, axis=0), np.nanmean(y, axis=0)
    both = np.vstack([x, y])
    ends = np.nanmin(both, axis=0), np.nanmax(both, axis=0)
    varied = ends[1] > ends[0]
    pooled = (n * np.nanvar(x, axis=0) + m * np.nanvar(y, axis=0)) / (n + m - 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        d = np.where(pooled > 0, (group - rest) / np.sqrt(pooled), np.nan)
    delta, p = np.zeros(x.shape[1]), np.ones(x.shape[1])
    if varied.any():
        method = "auto" if len(both) <= EXACT else "asymptotic"
        policy = "omit" if np.isnan(both).any() else "propagate"
        test = mannwhitneyu(x[:, varied], y[:, varied], axis=0, method=method, nan_policy=policy)
        delta[varied] = 2 * test.statistic / (n * m)[varied] - 1
        p[varied] = test.pvalue
    low, high, medians = *ends, [np.nanmedian(side, axis=0) for side in (x, y)]
    several = ~((both == low) | (both == high) | np.isnan(both)).all(axis=0)
    is_typical = several & (delta * np.subtract(*medians) > 0)
    group, rest = (np.where(is_typical, *of) for of in zip(medians, (group, rest), strict=True))
    results = (v.tolist() for v in (group, rest, delta, d, p, p + np.nan, ~is_typical))
    columns = zip(compress(names, enough), *results, strict=True)
    return [GroupDifference(kind, *column) for column in columns]


def sentence(of: GroupComparison, group: str = "These rows", rest: str = "the rest") -> str:
    """Return a sentence with the strongest differences of the group, by kind."""
    classes = " and ".join(name for name in of.classes if not group.endswith(f" of {name}"))
    group += f", all {of.n_group:,} of {classes}," if classes else ""
    strong = of.strongest()
    named = [each for each in strong if each.kind != "measure"][:NAMED] or strong[:NAMED]
    if not strong:
        tests = f"none of {len(of.differences):,} comparisons is significant and large"
        return f"{group} and {rest} show no clear difference: {tests}."
    phrases = []
    for difference in named:
        sides = difference.group, difference.rest
        if difference.is_share:
            how = "{} of them, {} of the others".format(*map(percent, sides))
        else:
            way = "higher" if difference.effect > 0 else "lower"
            typical = "on average" if difference.is_mean else "typically"
            how = "{}: {} {}, the others {}".format(
                way, typical, *apart(*sides, 3 + (difference.kind == "feature"))
            )
            how += ", among its users" * (difference.kind == "score")
        phrases.append(f"{shortened(difference.name, 60)} ({how})")
    listed = " and ".join([", ".join(phrases[:-1]), phrases[-1]] if phrases[1:] else phrases)
    return f"{group} differ from {rest} most in {listed}."
