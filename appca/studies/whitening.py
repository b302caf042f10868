"""Figure 11: whitening, and classification by raw values, PCA scores and aPPCA scores."""

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
from appca.studies.claims import Claim, checked, share
from appca.studies.fitting import Spec, work
from appca.studies.study import Options, Outcome, Report, Row, Study, sized
from appca.words import fixed, percent, refuse_if, refuse_unknown, unknown

BATCH, LEAST_BATCH = 200, 32  # maximum and minimum number of rows per step of the optimizer
LEAST_ROWS = 100  # minimum number of rows in a subspace with its own classifier
RAW, PCA = "raw", "pca"
NEAR = 0.02  # maximum loss of accuracy, relative to raw values, that counts as comparable
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
    X: np.ndarray  # (N, D), not preprocessed
    y: np.ndarray  # (N,) class indices
    names: tuple[str, ...]  # class names
    preprocessing: Preprocessing  # fitted to the training rows of a fold, never to all rows


@lru_cache(maxsize=1)
def labelled(source: str, n_rows: int, column: str = "") -> Labelled:
    """Open labelled data and keep at most the first `n_rows` rows whose class is not missing.

    The source is a built-in data set, a file, or the folder of a stored data set. Classes are the
    labels in `column`, by default the first. Raises InputError without data or classes.
    """
    path = Path(source).expanduser()
    if source in SOURCES:
        dataset = load(source, n=n_rows) if source == "mnist" else load(source)
    elif path.is_dir():
        dataset = DatasetStore(path.parent.parent).get(path.name)
    elif path.is_file():
        dataset = read(path.name, path)
    else:
        error = unknown("file or built-in data set", source, SOURCES)
        raise error
    return classified(dataset, n_rows, column)


def classified(dataset: Dataset, n_rows: int, column: str = "") -> Labelled:
    """Return the first rows whose class is not missing; see `labelled`."""
    msg = f"“{dataset.name}” has no labels, and a classifier needs a class for every row."
    refuse_if(not dataset.labels, msg)
    column = column or next(iter(dataset.labels))
    refuse_unknown("column of labels", column, dataset.labels, f" in “{dataset.name}”")
    names, codes = categories(dataset.labels[column])
    rows = np.flatnonzero(np.array(names)[codes] != MISSING)[:n_rows]
    present, y = np.unique(codes[rows], return_inverse=True)
    msg = f"“{dataset.name}” has fewer than two classes, so there is nothing to distinguish."
    refuse_if(len(present) < 2, msg)
    X = dataset.X[rows]
    return Labelled(dataset.name, X, y, tuple(names[code] for code in present), suggest(dataset))


def folds(data: Labelled, n_folds: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Split the rows into (train, test) by class; InputError if there are too few rows."""
    from sklearn.model_selection import StratifiedKFold

    counts = np.bincount(data.y)
    rarest = f"{counts.min():,} rows of the rarest class, “{data.names[counts.argmin()]}”"
    msg = f"folds must lie between 2 and the {rarest}; got {n_folds}."
    refuse_if(not 2 <= n_folds <= counts.min(), msg)
    return list(StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(data.X, data.y))


def fold(data: Labelled, n_folds: int, seed: int, number: int) -> tuple[np.ndarray, ...]:
    """Return X (n, D) and y of training and test rows, preprocessed by the training rows."""
    train, test = folds(data, n_folds, seed)[number]
    fitted = data.preprocessing.fit(data.X[train])
    X, X_test = (np.asarray(fitted.transform(data.X[rows]), np.float32) for rows in (train, test))
    return X, data.y[train], X_test, data.y[test]


class Scores(NamedTuple):
    """Projections of rows by aPPCA."""

    H: np.ndarray  # (N, K) whitened scores, 0 where inactive
    Z: np.ndarray  # (N, K) bool


def whitened_within(train: Scores, test: Scores) -> tuple[np.ndarray, np.ndarray]:
    """Whiten scores (N, K) and (M, K) within each subspace, to mean 0 and unit covariance.

    The symmetric root rotates coordinates least. Mean and covariance are shrunk toward 0 and I by
    the weight of two rows per dimension. Test rows in subspaces missing from `train` stay the same.
    """
    H, H_test = np.zeros_like(train.H), test.H.copy()
    for members, others, active in subspaces(train, test):
        scores = train.H[np.ix_(members, active)].astype(np.float64)
        (n, L), prior = scores.shape, 2.0 * len(active)
        mean = scores.sum(axis=0) / (n + prior)
        squares = (scores - mean).T @ (scores - mean)
        values, vectors = np.linalg.eigh((squares + prior * np.eye(L)) / (n + prior))
        root = (vectors / np.sqrt(values)) @ vectors.T
        H[np.ix_(members, active)] = (scores - mean) @ root
        H_test[np.ix_(others, active)] = (test.H[np.ix_(others, active)] - mean) @ root
    return H, H_test


def subspaces(train: Scores, test: Scores) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield, for each support in `train`, its training rows, test rows and components."""
    sets, codes = np.unique(train.Z, axis=0, return_inverse=True)
    for number, chosen in enumerate(sets):
        others = np.flatnonzero((chosen == test.Z).all(axis=1))
        yield np.flatnonzero(codes.ravel() == number), others, np.flatnonzero(chosen)


def predict(
    X: np.ndarray, y: np.ndarray, X_test: np.ndarray, options: Options, n_all: int | None = None
) -> np.ndarray:
    """Predict classes by a perceptron; a subset of `n_all` rows gets as many steps as all rows."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    n, whole = len(X), n_all or len(X)
    batch = min(n, max(LEAST_BATCH, BATCH * n // whole))
    passes = max(1, round(options["epochs"] * -(-whole // BATCH) / -(-n // batch)))
    how = {"batch_size": batch, "max_iter": passes, "random_state": options["seed"]}
    network = MLPClassifier((options["hidden"],), **how)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the number of steps is fixed
        return np.asarray(network.fit(X, y).predict(X_test))


def predict_each(
    train: Scores, y: np.ndarray, test: Scores, joint: np.ndarray, options: Options
) -> np.ndarray:
    """Classify by one perceptron per subspace; small or one-class subspaces keep `joint` (M,)."""
    answer = joint.copy()
    for members, others, active in subspaces(train, test):
        classes = y[members]
        if len(others) and len(members) >= LEAST_ROWS and len(np.unique(classes)) > 1:
            X, X_test = train.H[np.ix_(members, active)], test.H[np.ix_(others, active)]
            answer[others] = predict(X, classes, X_test, options, len(y))
    return answer


def run(options: Options, report: Report, processes: int = 1, source: str = "") -> Outcome:
    """Classify by every method on every fold; `source` replaces the data in the options."""
    source = source or options["data"]
    report("opening the data", 0.0)
    data = labelled(source, options["n_rows"], options["label"])
    n_train = len(folds(data, options["folds"], options["seed"])[0][0])
    most, n_done = min(n_train - 1, data.X.shape[1]), min(options["folds_done"], options["folds"])
    for K in options["components"]:
        msg = f"components must lie between 2 and {most} for these data; got {K}."
        refuse_if(not 2 <= K <= most, msg)
    msg = f"folds_done must be at least 2 to show a spread; got {options['folds_done']}."
    refuse_if(n_done < 2, msg)
    wanted = sorted(set(options["components"]), reverse=True)  # longest fits first
    # PCA with K and with K - 1 components, each size once
    pca = {K: [K, K - 1] if K + 1 not in wanted else [K - 1] for K in wanted}
    specs = [
        {"source": source, "options": options, "fold": number, "K": K, "pca": pca[K]}
        for number in range(n_done)
        for K in wanted
    ]
    rows = work("appca.studies.whitening:cell", specs, report, processes)
    rows.sort(key=lambda row: (list(TITLES).index(row["method"]), row["K"] or 0, row["fold"]))
    table = summary(rows, options["folds"])
    raw = [percent(table[0][name], 1) for name in ("accuracy", "accuracy_sd")]  # first method
    text = f"We ran {n_done} of {options['folds']} folds of {len(data.y):,} rows ({data.name}). "
    text += f"With raw values, the accuracy is {raw[0]} (sd {raw[1]})."
    return Outcome({"whitening": table, "folds": rows}, {}, claims(table), text)


def cell(spec: Spec, tick: Report) -> list[Row]:
    """Measure all methods on a fold: with L = K - 1 as in the paper, then K of 2 K components."""
    from sklearn.decomposition import PCA as PrincipalComponents

    from appca.models.adaptive_ppca import AdaptivePPCA
    from appca.models.threads import single_threaded_blas

    options, K, seed = spec["options"], spec["K"], spec["options"]["seed"]
    stage = f"fold {spec['fold'] + 1}, K = {K}"
    tick(stage, 0.0)
    data = labelled(spec["source"], options["n_rows"], options["label"])
    X, y, X_test, y_test = fold(data, options["folds"], seed, spec["fold"])
    rows: list[Row] = []

    def note(method: str, K: int | None, L: int | None, inputs: int, answer: np.ndarray) -> None:
        row = {"method": method, "title": TITLES[method], "K": K, "L": L, "inputs": inputs}
        rows.append(row | {"fold": spec["fold"], "accuracy": float((answer == y_test).mean())})

    def score(
        method: str, K: int | None, L: int | None, H: np.ndarray, H_test: np.ndarray
    ) -> np.ndarray:
        predicted = predict(H, y, H_test, options)
        note(method, K, L, H.shape[1], predicted)
        return predicted

    def pca(size: int) -> tuple[np.ndarray, np.ndarray]:
        model = PrincipalComponents(size, whiten=True, random_state=seed)
        return model.fit_transform(X), model.transform(X_test)

    def appca(K: int, L: int) -> list[Scores]:
        model = AdaptivePPCA(K, L, whiten=True, random_state=seed).fit(X)
        return [Scores(model.transform(part), model.allocate(part)) for part in (X, X_test)]

    with single_threaded_blas():  # results must not depend on parallel work
        if max(options["components"]) == K:
            score(RAW, None, None, X, X_test)
        for size in spec["pca"]:
            score(PCA, size, size, *pca(size))
            tick(stage, 0.2)
        train, test = appca(K, K - 1)
        joint = score("appca", K, K - 1, train.H, test.H)
        score("within", K, K - 1, *whitened_within(train, test))
        note("each", K, K - 1, K - 1, predict_each(train, y, test, joint, options))
        tick(stage, 0.6)
        if min(len(X) - 1, X.shape[1]) >= 2 * K:
            train, test = appca(2 * K, K)
            score("half", 2 * K, K, train.H, test.H)
            patterns = [scores.Z.astype(np.float32) for scores in (train, test)]
            joined = [np.hstack(pair) for pair in zip(pca(K), patterns, strict=True)]
            score("pattern", 2 * K, K, *joined)
            score("zeros", 2 * K, K, *patterns)
    return rows


def summary(rows: Sequence[Row], n_folds: int) -> list[Row]:
    """Return means and spreads over the folds, and gains over PCA at equal K and at equal L."""
    groups: dict[tuple[str, int | None, int | None], dict[int, float]] = {}
    first: dict[tuple[str, int | None, int | None], Row] = {}
    for record in rows:
        key = (record["method"], record["K"], record["L"])
        groups.setdefault(key, {})[record["fold"]] = record["accuracy"]
        first.setdefault(key, {name: record[name] for name in list(record)[:5]})
    table = []
    for key, accuracies in groups.items():
        values, row = np.array(list(accuracies.values())), first[key] | {"folds": len(accuracies)}
        row |= {"accuracy": float(values.mean()), "accuracy_sd": float(values.std(ddof=1))}
        for name, size in zip(("gain_at_k", "gain_at_l"), key[1:], strict=True):
            pca = None if key[0] in {RAW, PCA} else groups.get((PCA, size, size))
            mean, error = (None, None) if pca is None else gain(accuracies, pca, n_folds)
            row |= {name: mean, f"{name}_error": error}
        table.append(row)
    return table


def gain(ours: dict[int, float], other: dict[int, float], n_folds: int) -> tuple[float, float]:
    """Return the mean gain in accuracy over common folds, and half its 95% interval.

    Folds share training rows, so the variance of the mean is multiplied by (1/n + test rows /
    training rows) times that of one fold (Nadeau and Bengio 2003).
    """
    from scipy.stats import t

    apart = np.array([value - other[number] for number, value in ours.items()])
    n = len(apart)
    variance = apart.var(ddof=1) * (1 / n + 1 / (n_folds - 1))
    return float(apart.mean()), float(t.ppf(0.975, n - 1) * np.sqrt(variance))


def claims(table: Sequence[Row]) -> list[Claim]:
    """Judge gains in accuracy by their 95% intervals for most of the sizes."""
    of: dict[str, list[Row]] = {method: [] for method in TITLES}
    for row in sorted(table, key=lambda row: row["L"] or 0):
        of[row["method"]].append(row)
    appca, each, half, level = of["appca"], of["each"], of["half"], of[RAW][0]["accuracy"] - NEAR
    sizes, near = {row["K"] for row in appca}, []
    for rows in (appca, of[PCA]):
        good = [row["K"] for row in rows if row["K"] in sizes and row["accuracy"] >= level]
        near.append(min(good, default=math.inf))
    ours, other = (f"above {max(sizes)}" if size == math.inf else f"= {size}" for size in near)
    better = [
        several["gain_at_k"] - joint["gain_at_k"] > several["gain_at_k_error"]
        for several, joint in zip(each, appca, strict=True)
    ]
    pairs = zip(of["pattern"], half, strict=True)
    as_good = sum(pattern["accuracy"] >= row["accuracy"] for pattern, row in pairs)
    equal = [row["gain_at_k"] > row["gain_at_k_error"] for row in appca]
    active = [row["gain_at_l"] > row["gain_at_l_error"] for row in half]

    def mostly(tests: list[bool]) -> list[bool]:
        return [True] if sum(tests) > len(tests) / 2 else tests

    return [
        checked(
            "aPPCA needs fewer components than PCA for the same accuracy",
            f"within {100 * NEAR:.0f} points of raw values: aPPCA at K {ours}, PCA at K {other}",
            [near[0] < near[1]] if min(near) < math.inf else [],
        ),
        checked(
            "At equal K, aPPCA with L = K − 1 does better than PCA",
            _gains(appca, "gain_at_k"),
            mostly(equal),
            number=(share(equal), "sizes above PCA of K"),
        ),
        checked(
            "One classifier per subspace is even better",
            f"better than one for all at {share(better)} sizes; {_gains(each, 'gain_at_k')}",
            mostly(better),
        ),
        checked(
            "At equal L, aPPCA with K = 2 L does better than PCA",
            f"{_gains(half, 'gain_at_l')}; PCA with the same zeros is as good at {as_good}",
            mostly(active),
            number=(share(active), "sizes above PCA of L"),
        ),
    ]


def _gains(rows: Sequence[Row], measure: str) -> str:
    size = measure[-1].upper()
    gains = (
        f"{fixed(100 * r[measure], 1)} ± {100 * r[f'{measure}_error']:.1f} ({size} = {r[size]})"
        for r in rows
    )
    return f"points above PCA: {', '.join(gains)}" if rows else "too few features to compare"


STUDY = Study(
    "whitening",
    "Figure 11: Whitening before a classifier",
    "The paper trains a perceptron with one hidden layer on 9,000 MNIST digits and tests it on "
    "1,000, ten times: on the pixels, on PCA's scores and on aPPCA's with L = K - 1. It states "
    "that aPPCA needs fewer components than PCA for the same accuracy, and that one classifier "
    "per subspace is even better. Its figure gives no numbers.",
    **sized(
        (40.0, 400.0, 3600.0),
        {"data": ("digits", "mnist", "mnist"), "label": "", "n_rows": 10_000, "seed": 0}
        | {"components": ([3, 5, 10, 20], [3, 5, 10, 20], [2, 3, 5, 7, 10, 15, 20, 30, 50])}
        | {"folds": (5, 10, 10), "folds_done": (3, 4, 10), "epochs": (100, 40, 40), "hidden": 64},
    ),
    run=run,
    columns=(
        *("title", "K", "L", "accuracy", "accuracy_sd"),
        *("gain_at_k", "gain_at_k_error", "gain_at_l", "gain_at_l_error"),
    ),
    draw=lambda plots, outcome: {"accuracy": plots.accuracy_curves(outcome.tables["whitening"])},
)
