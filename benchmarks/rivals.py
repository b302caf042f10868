"""Adaptive PPCA beside mixtures, k-subspaces and scikit-learn: what each needs, keeps, finds again.

    python -m benchmarks.rivals --data wine,digits

Data that are not on this computer are left out by name. Every method has one BLAS thread, three
starts, the same at most 2,500 rows, and the same fifth of them held out.
"""

import time
import warnings
from collections.abc import Callable, Iterator
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

# name -> keywords of the source, K, L
SETS: dict[str, tuple[dict[str, Any], int, int]] = {
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
PIECES = (0.25, 0.5, 0.75, 1, 1.5, 2, 3)  # times K, to reach the error of adaptive PPCA
LEAST_NOISE = 1e-3  # of the mean noise of features, below which a density has no bound


class Line(NamedTuple):
    """What was measured of a method on a data set."""

    data: str
    rows: int  # fitted to; a quarter as many are held out
    features: int
    method: str
    axes: int  # distinct directions that a person has to learn
    used: int  # of these by one row
    parameters: int | None
    log_likelihood: float | None  # nats a row held out
    error: float | None  # of the rows held out, mean square over their variance
    neighbours: float  # share of nearest neighbours kept among rows of the fit
    accuracy: float | None  # of labels of rows held out, by nearest neighbours among the scores
    named: float | None  # how far an axis tells one class from the rest; see `naming`
    recurrence: float | None  # mean matched |cosine| of the directions of two starts
    cpu_s: float  # of the processor, one fit


class Method(NamedTuple):
    """A method by its name, made for a seed."""

    name: str
    make: Callable[[int], Any]
    axes: int
    used: int
    starts: int = STARTS


class _Dictionary(MiniBatchDictionaryLearning):  # type: ignore[misc]
    """Dictionary learning of rows about their mean."""

    def fit(self, X: Any, y: Any = None) -> Any:
        self.middle_ = X.mean(axis=0)
        return super().fit(X - self.middle_)

    def transform(self, X: Any) -> Any:
        return super().transform(X - self.middle_)

    def inverse_transform(self, X: Any) -> Any:
        return X @ self.components_ + self.middle_


class _ICA(FastICA):  # type: ignore[misc]
    """Independent components of principal scores: whitening needs a first feature that varies."""

    def fit(self, X: Any, y: Any = None) -> Any:
        self.before_ = PCA(self.n_components, random_state=0).fit(X)
        return super().fit(self.before_.transform(X))

    def transform(self, X: Any) -> Any:
        return super().transform(self.before_.transform(X))

    def inverse_transform(self, X: Any) -> Any:
        return self.before_.inverse_transform(super().inverse_transform(X))


class _FactorAnalysis(FactorAnalysis):  # type: ignore[misc]
    """Factor analysis that leads back to rows, and has no density where it has no bound."""

    def inverse_transform(self, X: Any) -> Any:
        return X @ self.components_ + self.mean_

    @property
    def n_parameters_(self) -> int:
        K, D = self.components_.shape
        return int(D * K - K * (K - 1) // 2 + 2 * D)


def methods(K: int, L: int) -> Iterator[Method]:
    """Yield the methods that any rows can be given to."""
    mixture, few = MixtureOfFactorAnalysers, max(2, round(K / L))
    yield Method(f"aPPCA ({K}, {L})", lambda s: AdaptivePPCA(K, L, random_state=s), K, L)
    yield Method(f"PPCA {L}", lambda s: PPCA(L, random_state=s), L, L, 1)
    yield Method(f"PPCA {K}", lambda s: PPCA(K, random_state=s), K, K, 1)
    yield mixture_of_ppca(K, L)
    if few != K:  # about as many parameters as ours
        yield mixture_of_ppca(few, L)
    yield Method(
        f"mixture of FA, {K} of {L}",
        lambda s: mixture(K, L, noise="diagonal", random_state=s),
        K * L,
        L,
    )
    yield Method(
        f"common loadings {K}, {K} pieces",
        lambda s: mixture(K, K, loadings="common", random_state=s),
        K,
        K,
    )
    yield Method(f"k-subspaces, {K} of {L}", lambda s: KSubspaces(K, L, random_state=s), K * L, L)
    yield Method(f"FA {K}", lambda s: _FactorAnalysis(K, random_state=s), K, K, 1)
    yield Method(f"sparse PCA {K}", lambda s: MiniBatchSparsePCA(K, random_state=s), K, K)
    yield Method(f"dictionary ({K}, {L}), cd", lambda s: _dictionary(K, L, s), K, L)
    yield Method(f"ICA {K}", lambda s: _ICA(K, random_state=s, max_iter=500), K, K)


def mixture_of_ppca(pieces: int, L: int, why: str = "") -> Method:
    """Describe a mixture of PPCA."""
    name = f"mixture of PPCA, {pieces} of {L}{why}"
    make: Callable[[int], Any] = lambda s: MixtureOfFactorAnalysers(pieces, L, random_state=s)  # noqa: E731
    return Method(name, make, pieces * L, L)


def _dictionary(K: int, L: int, seed: int) -> Any:
    return _Dictionary(
        K,
        fit_algorithm="cd",
        transform_algorithm="omp",
        transform_n_nonzero_coefs=L,
        random_state=seed,
    )


def special(X: np.ndarray, K: int) -> Iterator[Method]:
    """Yield methods that need rows of no negative entries, or one start."""
    if X.min() >= 0:
        yield Method(
            f"NMF {K}", lambda s: NMF(K, init="random", random_state=s, max_iter=500), K, K
        )
    try:
        from umap import UMAP
    except ImportError:
        return
    yield Method("UMAP 2", lambda s: UMAP(random_state=s, n_jobs=1), 2, 2, 1)


def directions(model: Any) -> np.ndarray | None:
    """Return all directions of a model as unit rows, or None where it has none."""
    W = getattr(model, "components_", None)
    W = getattr(model, "loadings_", None) if W is None else W
    if isinstance(model, _ICA):
        W = model.mixing_.T @ model.before_.components_
    if W is None:
        return None
    W = W.reshape(-1, W.shape[-1]).astype(np.float64)
    length = np.linalg.norm(W, axis=1, keepdims=True)
    found: np.ndarray = W / np.where(length > 0, length, 1.0)
    return found


def recurrence(models: list[Any]) -> float | None:
    """Return the mean matched |cosine| over pairs of starts."""
    axes = [directions(model) for model in models]
    found = []
    for i, one in enumerate(axes):
        for other in axes[:i]:
            if one is None or other is None:
                return None
            C = np.abs(one @ other.T)
            found.append(C[linear_sum_assignment(-C)].mean())
    return float(np.mean(found)) if found else None


def kept(X: np.ndarray, scores: np.ndarray) -> float:
    """Return the share of each row's nearest neighbours that it keeps among the scores."""
    near = [
        NearestNeighbors(n_neighbors=NEIGHBOURS).fit(Y).kneighbors(return_distance=False)
        for Y in (X, scores)
    ]
    pairs = zip(*near, strict=True)
    return float(np.mean([len(set(a) & set(b)) / NEIGHBOURS for a, b in pairs]))


def naming(scores: np.ndarray, labels: np.ndarray) -> float:
    """Return how well axes can be named by one class: the mean over axes of the best |2 AUC - 1|.

    An axis tells a class from the rest by its scores or by which rows use it at all, whichever is
    better: 1 where every axis tells one class apart without an error, 0 where none tells any.
    """
    own = labels[:, None] == np.unique(labels)  # rows x classes
    n = own.sum(axis=0)[:, None]
    apart = [
        # Mann and Whitney's U over its most, from -1 to 1
        2 * (own.T @ rankdata(seen, axis=0) - n * (n + 1) / 2) / (n * (len(own) - n)) - 1
        for seen in (scores, scores != 0)
    ]
    return float(np.abs(apart).max(axis=(0, 1)).mean())


def measured(data: str, method: Method, rows: tuple[np.ndarray, ...]) -> Line:
    """Fit from each start and measure the first."""
    X, Y, labels, others = rows
    models, seconds = [], []
    for seed in range(method.starts):
        model = method.make(seed)
        began = time.process_time()
        models.append(model.fit(X))
        seconds.append(time.process_time() - began)
    model = models[0]
    own, new = model.transform(X), model.transform(Y)
    accuracy = named = None
    if len(labels):
        named = naming(new, others)
        accuracy = KNeighborsClassifier(NEIGHBOURS).fit(own, labels).score(new, others)
    back = reconstructed(model, Y)
    return Line(
        data,
        *X.shape,
        method.name,
        method.axes,
        method.used,
        getattr(model, "n_parameters_", None),
        likelihood(model, Y),
        None if back is None else relative_error(X, Y, back),
        kept(X, own),
        accuracy,
        named,
        recurrence(models) if method.starts > 1 else None,
        float(np.median(seconds)),
    )


def likelihood(model: Any, Y: np.ndarray) -> float | None:
    """Return nats a row, where the model has a density that is bounded."""
    if not hasattr(model, "score_samples"):
        return None
    noise = np.atleast_1d(model.noise_variance_)
    if noise.min() < LEAST_NOISE * noise.mean():
        return None
    return float(model.score_samples(Y).mean())


def reconstructed(model: Any, Y: np.ndarray) -> np.ndarray | None:
    """Return what a model makes of rows, or None where it leads nowhere back."""
    if hasattr(model, "reconstruct"):
        found: np.ndarray = model.reconstruct(Y)
        return found
    if directions(model) is None:
        return None
    back: np.ndarray = model.inverse_transform(model.transform(Y))
    return back


def relative_error(X: np.ndarray, Y: np.ndarray, back: np.ndarray) -> float:
    """Mean square that is left of rows Y over their variance about the mean of X."""
    return float(np.square(Y - back).sum() / np.square(Y - X.mean(axis=0)).sum())


def as_exact(K: int, L: int, error: float, rows: tuple[np.ndarray, ...]) -> Method | None:
    """Return the smallest mixture of PPCA whose error is no larger, or None up to 3 K pieces."""
    X, Y = rows[:2]
    for pieces in sorted({max(2, round(share * K)) for share in PIECES}):
        model = MixtureOfFactorAnalysers(pieces, L, n_init=1, random_state=0).fit(X)
        if relative_error(X, Y, model.reconstruct(Y)) <= error:
            return mixture_of_ppca(pieces, L, ", as exact")
    return None


def raw_rows(name: str, keywords: dict[str, Any]) -> tuple[Any, Preprocessing, Any]:
    """Return rows as they are, how to preprocess them, and their labels or None."""
    if name == "iris":
        X, label = load_iris(return_X_y=True)
        how = Preprocessing(centre=True, scale="feature")
    elif name == "recording":
        X, label = brain.load(brain.SHARED).series, None
        how = Preprocessing(centre=True, scale="global")
    else:
        dataset = load(name, **keywords)
        X, how = dataset.X, suggest(dataset)
        label = next(iter(dataset.labels.values()), None) if name != "brain" else None
    return X, how, label


def rows_of(name: str, keywords: dict[str, Any]) -> tuple[np.ndarray, ...]:
    """Return rows to fit and rows held out, preprocessed, and their labels or nothing."""
    X, how, label = raw_rows(name, keywords)
    order = np.random.default_rng(0).permutation(len(X))[:MOST_ROWS]
    held = len(order) // 5
    test, train = np.sort(order[:held]), np.sort(order[held:])
    before = how.fit(X[train])
    labels = ([], []) if label is None else (np.asarray(label)[train], np.asarray(label)[test])
    return before.transform(X[train]), before.transform(X[test]), *labels


def lines_of(name: str, only: str) -> Iterator[Line]:
    """Yield what is measured on a data set, of methods whose name begins with `only`."""
    keywords, K, L = SETS[name]
    rows = rows_of(name, keywords)
    ours: Line | None = None
    for method in (*methods(K, L), *special(rows[0], K)):
        if not method.name.startswith(only):
            continue
        line = measured(name, method, rows)
        ours = ours or line
        yield line
    other = as_exact(K, L, ours.error or 0.0, rows) if ours and not only else None
    if other is not None:
        yield measured(name, other, rows)


def merged(
    before: list[results.Row], found: list[results.Row], *, whole: bool
) -> list[results.Row]:
    """Put what was found in place of what was measured before of the same data and methods."""
    data, new = found[0]["data"], {row["method"] for row in found}
    kept = [row for row in before if row["data"] != data or not (whole or row["method"] in new)]
    return sorted(kept + found, key=lambda row: list(SETS).index(row["data"]))


def main() -> None:
    """Measure, print as it goes, and write the rows after every data set."""
    parser = results.arguments(__doc__)
    parser.add_argument("--data", default=",".join(SETS), help="names of data sets")
    parser.add_argument("--only", default="", help="methods whose name begins so; others stay")
    options = parser.parse_args()
    names = options.data.split(",")
    before = results.read(options.out, "rivals")
    lines = before.rows if before else []
    for name in names:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = [line._asdict() for line in lines_of(name, options.only)]
            except (OSError, ValueError) as error:
                print(f"{name} is left out: {error}")
                continue
        print(*found, sep="\n", flush=True)
        lines = merged(lines, found, whole=not options.only)
        results.write(options.out, "rivals", lines)


if __name__ == "__main__":
    main()
