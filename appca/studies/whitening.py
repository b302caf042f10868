"""Figure 11: whitening, and classifying by raw values, by PCA's scores and by aPPCA's."""

import math
import warnings
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from appca.data.dataset import MISSING, Dataset, categories
from appca.data.preprocessing import Preprocessing, suggest
from appca.data.readers import read
from appca.data.sources import SOURCES, load
from appca.data.store import DatasetStore
from appca.studies.processes import Spec, Tick, work
from appca.studies.study import Claim, Figures, Options, Outcome, Report, Row, Study, checked, share
from appca.words import InputError, fixed, percent

LEAST_FOLDS = 2
BATCH, LEAST_BATCH = 200, 32  # rows of a step of the optimiser
LEAST_ROWS = 100  # of a subspace that gets a classifier of its own
RAW, PCA = "raw", "pca"
NEVER = math.inf  # components
NEAR = 0.02  # accuracy below the raw values' that counts as comparable
TITLES = {
    RAW: "Raw values",
    PCA: "PCA, whitened",
    "appca": "aPPCA, L = K - 1, whitened",
    "within": "aPPCA, L = K - 1, whitened inside each subspace",
    "each": "aPPCA, L = K - 1, one classifier a subspace",
    "half": "aPPCA, K = 2 L, whitened",
    "pattern": "PCA of L, with the pattern of aPPCA of K = 2 L",
    "zeros": "The pattern of aPPCA of K = 2 L alone",
}


class Labelled(NamedTuple):
    """Rows whose class is not missing."""

    name: str
    X: np.ndarray  # (N, D) as they were read
    y: np.ndarray  # (N,) codes of the classes
    names: tuple[str, ...]  # of the classes
    preprocessing: Preprocessing  # fitted to the training rows of a fold, never to all


@lru_cache(maxsize=1)
def labelled(source: str, n_rows: int, column: str = "") -> Labelled:
    """Open labelled data and keep at most the first `n_rows` rows whose class is not missing.

    The source is a built-in data set, a file, or the folder of a stored data set; `column` the
    labels with the classes, the first ones if empty. Raises InputError when the data cannot be had
    or have no classes.
    """
    path = Path(source).expanduser()
    if source in SOURCES:
        dataset = load(source, n=n_rows) if source == "mnist" else load(source)
    elif path.is_dir():
        dataset = DatasetStore(path.parent.parent).get(path.name)
    elif path.is_file():
        dataset = read(path.name, path)
    else:
        msg = (
            f"“{source}” is neither a file nor a built-in data set; the built-in ones are "
            f"{', '.join(SOURCES)}."
        )
        raise InputError(msg)
    return classified(dataset, n_rows, column)


def classified(dataset: Dataset, n_rows: int, column: str = "") -> Labelled:
    """Take the first rows whose class is not missing; see `labelled`."""
    if not dataset.labels:
        msg = f"“{dataset.name}” has no labels, and a classifier needs a class for every row."
        raise InputError(msg)
    if column and column not in dataset.labels:
        msg = (
            f"“{dataset.name}” has no column of labels called “{column}”; choose among "
            f"{', '.join(dataset.labels)}."
        )
        raise InputError(msg)
    names, codes = categories(dataset.labels[column or next(iter(dataset.labels))])
    has_class = np.flatnonzero(codes != names.index(MISSING)) if MISSING in names else codes >= 0
    X, codes = dataset.X[has_class][:n_rows], codes[has_class][:n_rows]
    present, y = np.unique(codes, return_inverse=True)
    if len(present) < 2:
        msg = f"“{dataset.name}” has fewer than two classes, so there is nothing to distinguish."
        raise InputError(msg)
    return Labelled(dataset.name, X, y, tuple(names[code] for code in present), suggest(dataset))


def folds(data: Labelled, n_folds: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Divide the rows (train, test), each class evenly.

    Raises InputError for fewer than two folds, or more than the rarest class has rows.
    """
    from sklearn.model_selection import StratifiedKFold

    counts = np.bincount(data.y)
    if n_folds < LEAST_FOLDS or counts.min() < n_folds:
        msg = (
            f"folds must lie between {LEAST_FOLDS} and the {counts.min():,} rows of the rarest "
            f"class, “{data.names[int(counts.argmin())]}”; got {n_folds}."
        )
        raise InputError(msg)
    return list(StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(data.X, data.y))


class LabelledFold(NamedTuple):
    """One division of the rows, preprocessed as its training rows ask for."""

    X: np.ndarray  # (n, D) float32, to learn from
    y: np.ndarray
    X_test: np.ndarray  # (m, D)
    y_test: np.ndarray


def fold(data: Labelled, n_folds: int, seed: int, number: int) -> LabelledFold:
    """Return one of the folds."""
    train, test = folds(data, n_folds, seed)[number]
    fitted = data.preprocessing.fit(data.X[train])
    X, X_test = (np.asarray(fitted.transform(data.X[rows]), np.float32) for rows in (train, test))
    return LabelledFold(X, data.y[train], X_test, data.y[test])


class Scores(NamedTuple):
    """Projections of rows by aPPCA."""

    H: np.ndarray  # (N, K) whitened scores, 0 where inactive
    Z: np.ndarray  # (N, K) bool


def whitened_within(train: Scores, test: Scores) -> tuple[np.ndarray, np.ndarray]:
    """Make scores uncorrelated, of mean 0 and variance 1, inside each subspace; (N, K) and (M, K).

    The coordinates are turned as little as possible (the symmetric root), so that a coordinate
    means nearly the same in all subspaces. Mean and covariance of a subspace are drawn towards 0
    and the identity by as many rows as twice its dimensions. Rows of `test` in a subspace that
    `train` does not have stay as they are.
    """
    H, H_test = np.zeros_like(train.H), test.H.copy()
    for members, others, active in subspaces(train, test):
        scores = train.H[np.ix_(members, active)].astype(np.float64)
        n, L = scores.shape
        prior = 2.0 * L
        mean = scores.sum(axis=0) / (n + prior)
        centred = scores - mean
        covariance = (centred.T @ centred + prior * np.eye(L)) / (n + prior)
        values, vectors = np.linalg.eigh(covariance)
        root = (vectors / np.sqrt(values)) @ vectors.T
        H[np.ix_(members, active)] = (scores - mean) @ root
        H_test[np.ix_(others, active)] = (test.H[np.ix_(others, active)] - mean) @ root
    return H, H_test


def subspaces(train: Scores, test: Scores) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield, for each set in `train`: its rows there, its rows in `test`, its components."""
    sets, codes = np.unique(train.Z, axis=0, return_inverse=True)
    for number, chosen in enumerate(sets):
        others = np.flatnonzero((chosen == test.Z).all(axis=1))
        yield np.flatnonzero(codes.ravel() == number), others, np.flatnonzero(chosen)


def predict(
    X: np.ndarray, y: np.ndarray, X_test: np.ndarray, options: Options, n_all: int | None = None
) -> np.ndarray:
    """Train a perceptron with one hidden layer on (n, d); predict the classes of `X_test` (m, d).

    The options are hidden (units), epochs and seed. Where X is a part of `n_all` rows, it gets as
    many steps as the whole would.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    n, whole = len(X), n_all or len(X)
    batch = min(n, max(LEAST_BATCH, BATCH * n // whole))
    steps = options["epochs"] * -(-whole // BATCH)
    network = MLPClassifier(
        (options["hidden"],),
        batch_size=batch,
        max_iter=max(1, round(steps / -(-n // batch))),
        random_state=options["seed"],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # all get the same number of steps
        return np.asarray(network.fit(X, y).predict(X_test))


def predict_each(
    train: Scores, y: np.ndarray, test: Scores, joint: np.ndarray, options: Options
) -> np.ndarray:
    """Classify by a separate perceptron in every subspace.

    Small subspaces, and those of a single class that others may contradict, keep the prediction
    `joint` (M,) of the classifier of all rows.
    """
    answer = joint.copy()
    for members, others, active in subspaces(train, test):
        classes = y[members]
        if len(others) and len(members) >= LEAST_ROWS and len(np.unique(classes)) > 1:
            X, X_test = train.H[np.ix_(members, active)], test.H[np.ix_(others, active)]
            answer[others] = predict(X, classes, X_test, options, len(y))
    return answer


def run(options: Options, report: Report, processes: int = 1) -> Outcome:
    """Classify by every method on every fold, and sum up."""
    return classify(options["data"], options, report, processes)


def classify(source: str, options: Options, report: Report, processes: int = 1) -> Outcome:
    """Classify the rows of a source as `labelled` opens it, whatever the options call it."""
    report("opening the data", 0.0)
    data = labelled(source, options["n_rows"], options["label"])
    n_train = len(folds(data, options["folds"], options["seed"])[0][0])
    most, n_done = min(n_train - 1, data.X.shape[1]), min(options["folds_done"], options["folds"])
    for K in options["components"]:
        if not 2 <= K <= most:
            msg = f"components must lie between 2 and {most} for these data; got {K}."
            raise InputError(msg)
    if n_done < 2:
        msg = f"folds_done must be at least 2 to show a spread; got {options['folds_done']}."
        raise InputError(msg)
    seen: set[int] = set()
    shared: list[Options] = []  # each K, largest first, and the sizes of PCA to compare, each once
    for K in sorted(set(options["components"]), reverse=True):
        sizes = [size for size in (K, K - 1) if size not in seen]
        seen.update(sizes)
        shared.append({"K": K, "pca": sizes, "raw": not shared})
    specs = [
        {"source": source, "options": options, "fold": number, **sizes}
        for number in range(n_done)
        for sizes in shared
    ]
    parts = work("appca.studies.whitening:cell", specs, report, processes)
    rows = [row for part in parts for row in part]
    rows.sort(key=lambda row: (list(TITLES).index(row["method"]), row["K"] or 0, row["fold"]))
    table = summary(rows, options["folds"])
    raw = table[0]  # the first method of `TITLES`
    text = (
        f"Of {len(data.y):,} rows of {data.name}, {raw['folds']} of {options['folds']} folds; raw "
        f"values give {percent(raw['accuracy'], 1)} (sd {percent(raw['accuracy_sd'], 1)})."
    )
    return Outcome({"whitening": table, "folds": rows}, {}, claims(table), text)


def cell(spec: Spec, tick: Tick) -> list[Row]:
    """One fold and K: the accuracy of all methods.

    As in the paper L = K - 1, in three ways; then half of 2 K active, and its pattern of zeros.
    """
    from sklearn.decomposition import PCA as PrincipalComponents

    from appca.models.adaptive_ppca import AdaptivePPCA
    from appca.models.threads import single_threaded_blas

    options, K = spec["options"], spec["K"]
    stage = f"fold {spec['fold'] + 1}, K = {K}"
    tick(stage, 0.0)
    data = labelled(spec["source"], options["n_rows"], options["label"])
    part = fold(data, options["folds"], options["seed"], spec["fold"])
    rows: list[Row] = []

    def note(method: str, K: int | None, L: int | None, inputs: int, answer: np.ndarray) -> None:
        row = {"method": method, "title": TITLES[method], "K": K, "L": L, "inputs": inputs}
        right = float((answer == part.y_test).mean())
        rows.append(row | {"fold": spec["fold"], "accuracy": right})

    def score(
        method: str, K: int | None, L: int | None, X: np.ndarray, X_test: np.ndarray
    ) -> np.ndarray:
        """Train on inputs (n, d), note the accuracy on (m, d), return the predictions."""
        predicted = predict(X, part.y, X_test, options)
        note(method, K, L, X.shape[1], predicted)
        return predicted

    def pca(size: int) -> tuple[np.ndarray, np.ndarray]:
        model = PrincipalComponents(size, whiten=True, random_state=options["seed"])
        return model.fit_transform(part.X), model.transform(part.X_test)

    def appca(K: int, L: int) -> list[Scores]:
        model = AdaptivePPCA(K, L, whiten=True, random_state=options["seed"]).fit(part.X)
        return [Scores(model.transform(X), model.allocate(X)) for X in (part.X, part.X_test)]

    with single_threaded_blas():  # the same numbers whatever runs beside
        if spec["raw"]:
            score(RAW, None, None, part.X, part.X_test)
        for size in spec["pca"]:
            score(PCA, size, size, *pca(size))
            tick(stage, 0.2)
        train, test = appca(K, K - 1)
        joint = score("appca", K, K - 1, train.H, test.H)
        score("within", K, K - 1, *whitened_within(train, test))
        note("each", K, K - 1, K - 1, predict_each(train, part.y, test, joint, options))
        tick(stage, 0.6)
        if min(len(part.X) - 1, part.X.shape[1]) >= 2 * K:
            train, test = appca(2 * K, K)
            score("half", 2 * K, K, train.H, test.H)
            patterns = [scores.Z.astype(np.float32) for scores in (train, test)]
            joined = [np.hstack(pair) for pair in zip(pca(K), patterns, strict=True)]
            score("pattern", 2 * K, K, *joined)
            score("zeros", 2 * K, K, *patterns)
    return rows


def summary(rows: Sequence[Row], n_folds: int) -> list[Row]:
    """Mean and spread over the folds, and the gain over PCA at equal K and at equal L."""
    groups: dict[tuple[str, int | None, int | None], dict[int, float]] = {}
    inputs = {}
    for record in rows:
        key = (record["method"], record["K"], record["L"])
        groups.setdefault(key, {})[record["fold"]] = record["accuracy"]
        inputs[key] = record["inputs"]
    table = []
    for (method, K, L), accuracies in groups.items():
        values = np.array(list(accuracies.values()))
        row: Row = {"method": method, "title": TITLES[method], "K": K, "L": L}
        row |= {"inputs": inputs[method, K, L], "folds": len(values)}
        row |= {"accuracy": float(values.mean()), "accuracy_sd": float(values.std(ddof=1))}
        for name, size in (("gain_at_k", K), ("gain_at_l", L)):
            pca = None if method in {RAW, PCA} else groups.get((PCA, size, size))
            mean, error = (None, None) if pca is None else gain(accuracies, pca, n_folds)
            row |= {name: mean, f"{name}_error": error}
        table.append(row)
    return table


def gain(ours: dict[int, float], other: dict[int, float], n_folds: int) -> tuple[float, float]:
    """Return the gain in accuracy on the shared folds, and half of its 95% interval.

    The training rows of two folds are mostly the same, so the spread over folds is too small;
    the variance of the mean is enlarged to (1/n + test rows / training rows) times theirs
    (Nadeau and Bengio 2003).
    """
    from scipy.stats import t

    apart = np.array([value - other[number] for number, value in ours.items()])
    n = len(apart)
    variance = apart.var(ddof=1) * (1 / n + 1 / (n_folds - 1))
    return float(apart.mean()), float(t.ppf(0.975, n - 1) * np.sqrt(variance))


def claims(table: Sequence[Row]) -> list[Claim]:
    """Judge gains in accuracy by their 95% intervals, at most of the sizes.

    The first claim compares the least K that comes within `NEAR` of the raw values.
    """

    def of(method: str) -> list[Row]:
        rows = (row for row in table if row["method"] == method)
        return sorted(rows, key=lambda row: row["L"] or 0)

    def mostly(tests: Sequence[bool]) -> Sequence[bool]:
        return [True] if sum(tests) > len(tests) / 2 else tests

    (raw,), appca, each, half = (of(method) for method in (RAW, "appca", "each", "half"))
    sizes, near = [row["K"] for row in appca], []
    for rows in (appca, [row for row in of(PCA) if row["K"] in sizes]):
        reached = (row["K"] for row in rows if row["accuracy"] >= raw["accuracy"] - NEAR)
        near.append(min(reached, default=NEVER))
    ours, other = (f"above {max(sizes)}" if K == NEVER else f"= {K}" for K in near)
    better = [
        single["gain_at_k"] - joint["gain_at_k"] > single["gain_at_k_error"]
        for single, joint in zip(each, appca, strict=True)
    ]
    as_good = sum(
        pattern["accuracy"] >= single["accuracy"]
        for pattern, single in zip(of("pattern"), half, strict=True)
    )
    equal = [row["gain_at_k"] > row["gain_at_k_error"] for row in appca]
    active = [row["gain_at_l"] > row["gain_at_l_error"] for row in half]
    return [
        checked(
            "aPPCA needs fewer components than PCA for the same accuracy",
            f"within {100 * NEAR:.0f} points of the raw values at K {ours}, PCA at K {other}",
            [near[0] < near[1]] if min(near) < NEVER else [],
        ),
        checked(
            "At equal K, aPPCA with L = K − 1 does better than PCA",
            _gains(appca, "gain_at_k"),
            mostly(equal),
            number=(share(equal), "sizes above PCA of K"),
        ),
        checked(
            "One classifier for each subspace does better still",
            f"than one for all at {share(better)} sizes; {_gains(each, 'gain_at_k')}",
            mostly(better),
        ),
        checked(
            "At equal active coordinates, aPPCA with K = 2 L does better than PCA",
            f"{_gains(half, 'gain_at_l')}; PCA with the pattern of zeros as good at {as_good}",
            mostly(active),
            number=(share(active), "sizes above PCA of L"),
        ),
    ]


def _gains(rows: Sequence[Row], measure: str) -> str:
    """Write how far each size is above PCA, in points, with the 95% interval."""
    size = measure[-1].upper()
    listed = ", ".join(
        f"{fixed(100 * row[measure], 1)} ± {100 * row[f'{measure}_error']:.1f} "
        f"({size} = {row[size]})"
        for row in rows
    )
    return f"points above PCA: {listed}" if listed else "too few features to compare"


def figures(outcome: Outcome) -> Figures:
    """Draw accuracy against K and against active coordinates."""
    from appca.plots.studies import accuracy_curves

    return {"accuracy": accuracy_curves(outcome.tables["whitening"])}


_SIZES: Options = {"data": "mnist", "components": [3, 5, 10, 20], "folds": 10, "label": ""}
_SIZES |= {"hidden": 64, "epochs": 40, "seed": 0, "n_rows": 10_000}

STUDY = Study(
    name="whitening",
    title="Whitening before a classifier",
    paper=(
        "The paper trains a perceptron with one hidden layer on 9,000 MNIST digits and tests it on "
        "1,000, ten times: on the pixels, on PCA's scores and on aPPCA's with L = K - 1. It states "
        "that aPPCA needs fewer components than PCA for the same accuracy, and that one classifier "
        "for each subspace does better still. Its figure gives no numbers."
    ),
    revision=1,
    sizes={
        "quick": {**_SIZES, "data": "digits", "folds": 5, "folds_done": 3, "epochs": 100},
        "default": {**_SIZES, "folds_done": 4},
        "full": {**_SIZES, "components": [2, 3, 5, 7, 10, 15, 20, 30, 50], "folds_done": 10},
    },
    takes={"quick": 40.0, "default": 400.0, "full": 3600.0},
    run=run,
    columns=(
        *("title", "K", "L", "accuracy", "accuracy_sd"),
        *("gain_at_k", "gain_at_k_error", "gain_at_l", "gain_at_l_error"),
    ),
    figures=figures,
)
