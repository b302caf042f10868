"""Adaptive PPCA compared with mixtures, k-subspaces and scikit-learn's methods.

`APPCA_DATA=... python -m benchmarks.rivals [--data wine,digits] [--only PREFIX]` writes
results/rivals.json. Every method has one BLAS thread, three starts, the same rows (at most 2,500)
and the same held-out fifth of them. Results of other data and methods stay in the file.
"""

import json
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata
from sklearn.datasets import load_iris
from sklearn.decomposition import (
    NMF,
    PCA,
    FactorAnalysis,
    FastICA,
    MiniBatchDictionaryLearning,
    MiniBatchSparsePCA,
)
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from threadpoolctl import threadpool_limits

from appca import PPCA, AdaptivePPCA
from appca.data import brain
from appca.data.preprocessing import Preprocessing, suggest
from appca.data.sources import load
from appca.rivals import KSubspaces, MixtureOfFactorAnalysers
from benchmarks import results

SETS: dict[str, tuple[dict[str, Any], int, int]] = {  # name -> keywords of the source, K, L
    "digits": ({}, 8, 3),
    "wine": ({}, 5, 2),
    "breast_cancer": ({}, 6, 2),
    "iris": ({}, 3, 2),
    "planes": ({}, 3, 2),
    "turntable": ({}, 6, 2),
    "brain": ({}, 8, 3),
    "mnist": ({"n": 10_000}, 10, 3),
    "coil20": ({"size": 32}, 8, 2),
    "recording": ({}, 10, 3),
}
STARTS, NEIGHBOURS, MOST_ROWS = 3, 15, 2_500
PIECES = (0.25, 0.5, 0.75, 1, 1.5, 2, 3)  # multiples of K, to reach the error of adaptive PPCA
LEAST_NOISE = 1e-3  # relative to the mean noise of features; with less, a density is unbounded


class Method(NamedTuple):
    """A method, which is created for a seed."""

    name: str
    make: Callable[..., Any]  # with the keyword random_state
    axes: int  # number of distinct directions
    used: int  # number of directions that a row uses
    starts: int = STARTS


class _Dictionary(MiniBatchDictionaryLearning):  # type: ignore[misc]
    """Dictionary learning of centred rows."""

    def fit(self, X: Any, y: Any = None) -> Any:
        self.mean_ = X.mean(axis=0)
        return super().fit(X - self.mean_)

    def transform(self, X: Any) -> Any:
        return super().transform(X - self.mean_)

    def inverse_transform(self, X: Any) -> Any:
        return X @ self.components_ + self.mean_


class _ICA(FastICA):  # type: ignore[misc]
    """Independent components of principal scores; whitening needs a varying first feature."""

    def fit(self, X: Any, y: Any = None) -> Any:
        self.pca_ = PCA(self.n_components, random_state=0).fit(X)
        return super().fit(self.pca_.transform(X))

    def transform(self, X: Any) -> Any:
        return super().transform(self.pca_.transform(X))

    def inverse_transform(self, X: Any) -> Any:
        return self.pca_.inverse_transform(super().inverse_transform(X))


class _FactorAnalysis(FactorAnalysis):  # type: ignore[misc]
    """Factor analysis with `inverse_transform`."""

    def inverse_transform(self, X: Any) -> Any:
        return X @ self.components_ + self.mean_

    @property
    def n_parameters_(self) -> int:
        K, D = self.components_.shape
        return int(D * K - K * (K - 1) // 2 + 2 * D)


def methods(K: int, L: int, X: np.ndarray) -> Iterator[Method]:
    """Yield the methods that can fit the rows, and whose packages are installed."""
    mixture = MixtureOfFactorAnalysers
    yield Method(f"aPPCA ({K}, {L})", partial(AdaptivePPCA, K, L), K, L)
    yield Method(f"PPCA {L}", partial(PPCA, L), L, L, 1)
    yield Method(f"PPCA {K}", partial(PPCA, K), K, K, 1)
    for pieces in dict.fromkeys((K, max(2, round(K / L)))):  # about as many parameters as aPPCA
        yield mixture_of_ppca(pieces, L)
    diagonal = partial(mixture, K, L, noise="diagonal")
    yield Method(f"mixture of FA, {K} of {L}", diagonal, K * L, L)
    common = partial(mixture, K, K, loadings="common")
    yield Method(f"common loadings {K}, {K} pieces", common, K, K)
    yield Method(f"k-subspaces, {K} of {L}", partial(KSubspaces, K, L), K * L, L)
    yield Method(f"FA {K}", partial(_FactorAnalysis, K), K, K, 1)
    yield Method(f"sparse PCA {K}", partial(MiniBatchSparsePCA, K), K, K)
    coding = {"transform_algorithm": "omp", "transform_n_nonzero_coefs": L}
    dictionary = partial(_Dictionary, K, fit_algorithm="cd", **coding)
    yield Method(f"dictionary ({K}, {L}), cd", dictionary, K, L)
    yield Method(f"ICA {K}", partial(_ICA, K, max_iter=500), K, K)
    if X.min() >= 0:
        yield Method(f"NMF {K}", partial(NMF, K, init="random", max_iter=500), K, K)
    if find_spec("umap"):
        from umap import UMAP

        yield Method("UMAP 2", partial(UMAP, n_jobs=1), 2, 2, 1)


def mixture_of_ppca(pieces: int, L: int, why: str = "") -> Method:
    """Return a mixture of PPCA."""
    name = f"mixture of PPCA, {pieces} of {L}{why}"
    return Method(name, partial(MixtureOfFactorAnalysers, pieces, L), pieces * L, L)


def directions(model: Any) -> np.ndarray | None:
    """Return all directions of a model as unit rows, or None if it has none."""
    W = getattr(model, "components_", getattr(model, "loadings_", None))
    if isinstance(model, _ICA):
        W = model.mixing_.T @ model.pca_.components_
    if W is None:
        return None
    W = W.reshape(-1, W.shape[-1]).astype(np.float64)
    length = np.linalg.norm(W, axis=1, keepdims=True)
    return np.asarray(W / np.where(length > 0, length, 1.0))


def recurrence(models: list[Any]) -> float | None:
    """Return the mean |cosine| of matched directions over pairs of starts; None without pairs."""
    axes = [W for W in map(directions, models) if W is not None]
    cosines = [np.abs(one @ other.T) for one, other in combinations(axes, 2)]
    matched = [C[linear_sum_assignment(-C)].mean() for C in cosines]
    return float(np.mean(matched)) if matched else None


def neighbours_kept(X: np.ndarray, scores: np.ndarray) -> float:
    """Return the mean share of a row's nearest neighbours that are also nearest by scores."""
    near = [
        NearestNeighbors(n_neighbors=NEIGHBOURS).fit(Y).kneighbors(return_distance=False)
        for Y in (X, scores)
    ]
    pairs = zip(*near, strict=True)
    return float(np.mean([len(set(a) & set(b)) / NEIGHBOURS for a, b in pairs]))


def naming(scores: np.ndarray, labels: np.ndarray) -> float:
    """Return how well single classes describe axes: the mean over axes of the largest |2 AUC - 1|.

    An axis separates a class from the rest by its scores or by its use, whichever is better: 1 if
    every axis separates one class without error, 0 if no axis separates any.
    """
    own = labels[:, None] == np.unique(labels)  # rows x classes
    n = own.sum(axis=0)[:, None]
    apart = [
        # Mann and Whitney's U, scaled to -1 to 1
        2 * (own.T @ rankdata(seen, axis=0) - n * (n + 1) / 2) / (n * (len(own) - n)) - 1
        for seen in (scores, scores != 0)
    ]
    return float(np.abs(apart).max(axis=(0, 1)).mean())


def relative_error(X: np.ndarray, Y: np.ndarray, back: np.ndarray) -> float:
    """Return the mean squared residual of rows Y, relative to their spread about the mean of X."""
    return float(np.square(Y - back).sum() / np.square(Y - X.mean(axis=0)).sum())


def measured(data: str, method: Method, rows: tuple[np.ndarray, ...]) -> results.Row:
    """Fit from each start; measure the first fit on its rows and on held-out rows."""
    X, Y, labels, labels_held_out = rows
    models, seconds = [], []
    for seed in range(method.starts):
        began = time.process_time()
        models.append(method.make(random_state=seed).fit(X))
        seconds.append(time.process_time() - began)
    model = models[0]
    scores, scores_held_out = model.transform(X), model.transform(Y)
    back = log_likelihood = accuracy = named = None
    if hasattr(model, "reconstruct"):
        back = model.reconstruct(Y)
    elif directions(model) is not None:
        back = model.inverse_transform(scores_held_out)
    if hasattr(model, "score_samples"):
        noise = np.atleast_1d(model.noise_variance_)
        if noise.min() >= LEAST_NOISE * noise.mean():
            log_likelihood = float(model.score_samples(Y).mean())
    if len(labels):
        named = naming(scores_held_out, labels_held_out)
        nearest = KNeighborsClassifier(NEIGHBOURS).fit(scores, labels)
        accuracy = nearest.score(scores_held_out, labels_held_out)
    return {
        "data": data,
        "rows": len(X),
        "features": X.shape[1],
        "method": method.name,
        "axes": method.axes,
        "used": method.used,
        "parameters": getattr(model, "n_parameters_", None),
        "log_likelihood": log_likelihood,
        "error": None if back is None else relative_error(X, Y, back),
        "neighbours": neighbours_kept(X, scores),
        "accuracy": accuracy,
        "named": named,
        "recurrence": recurrence(models),
        "cpu_s": float(np.median(seconds)),
    }


def rows_of(name: str, keywords: dict[str, Any]) -> tuple[np.ndarray, ...]:
    """Return preprocessed rows to fit and held-out rows, with their labels if any."""
    label: Any = None
    if name == "iris":
        X, label = load_iris(return_X_y=True)
        preprocessing = Preprocessing(centre=True, scale="feature")
    elif name == "recording":
        X = brain.load(brain.SHARED).series
        preprocessing = Preprocessing(centre=True, scale="global")
    else:
        dataset = load(name, **keywords)
        X, preprocessing = dataset.X, suggest(dataset)
        label = next(iter(dataset.labels.values()), None) if name != "brain" else None
    order = np.random.default_rng(0).permutation(len(X))[:MOST_ROWS]
    held_out = len(order) // 5
    test, train = np.sort(order[:held_out]), np.sort(order[held_out:])
    fitted = preprocessing.fit(X[train])
    labels = ([], []) if label is None else (np.asarray(label)[train], np.asarray(label)[test])
    return fitted.transform(X[train]), fitted.transform(X[test]), *map(np.asarray, labels)


def rows_measured(name: str, prefix: str) -> Iterator[results.Row]:
    """Measure the methods whose names begin with a prefix on a data set.

    Without a prefix, the last method is the smallest mixture of PPCA, with at most 3 K pieces,
    whose error is no larger than that of adaptive PPCA.
    """
    keywords, K, L = SETS[name]
    rows = rows_of(name, keywords)
    found = []
    for method in methods(K, L, rows[0]):
        if method.name.startswith(prefix):
            found.append(measured(name, method, rows))
            yield found[-1]
    for pieces in sorted({max(2, round(share * K)) for share in PIECES}) if not prefix else ():
        model = MixtureOfFactorAnalysers(pieces, L, n_init=1, random_state=0).fit(rows[0])
        if relative_error(*rows[:2], model.reconstruct(rows[1])) <= found[0]["error"]:
            yield measured(name, mixture_of_ppca(pieces, L, ", as exact"), rows)
            return


def main() -> None:
    """Measure, print, and write all rows after each data set."""
    parser = results.arguments(__doc__)
    parser.add_argument("--data", default=",".join(SETS), help="names of data sets")
    parser.add_argument("--only", default="", help="prefix of methods to measure")
    options = parser.parse_args()
    path = options.out / "rivals.json"
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else []
    warnings.simplefilter("ignore")
    threadpool_limits(1)
    for name in options.data.split(","):
        new = list(rows_measured(name, options.only))
        print(*new, sep="\n", flush=True)
        again = {row["method"] for row in new}
        rows = [
            row
            for row in rows
            if row["data"] != name or (options.only and row["method"] not in again)
        ]
        rows = sorted(rows + new, key=lambda row: list(SETS).index(row["data"]))
        results.write(options.out, "rivals", rows)


if __name__ == "__main__":
    main()
