"""Adaptive PPCA beside mixtures of PPCA and k-subspaces: what each needs, keeps and finds again.

    python -m benchmarks.rivals --data wine,digits

The built-in data sets; those that are not on this computer are left out by name. Every method
has one BLAS thread, three starts, and the same fifth of the rows held out.
"""

import time
import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from threadpoolctl import threadpool_limits

from appca import PPCA, AdaptivePPCA
from appca.data.preprocessing import suggest
from appca.data.sources.builtin import load
from appca.rivals.mixture import MixtureOfFactorAnalysers
from appca.rivals.subspaces import KSubspaces
from benchmarks import results

# name -> keywords of the source, K, L
SETS: dict[str, tuple[dict[str, Any], int, int]] = {
    "digits": ({}, 8, 3),
    "wine": ({}, 5, 2),
    "breast_cancer": ({}, 6, 2),
    "planes": ({}, 3, 2),
    "turntable": ({}, 6, 2),
    "brain": ({}, 8, 3),
    "mnist": ({"n": 10_000}, 10, 3),
    "coil20": ({"size": 32}, 8, 2),
}
STARTS, NEIGHBOURS, MOST_ROWS = 3, 15, 10_000


class Line(NamedTuple):
    """What was measured of a method on a data set."""

    data: str
    method: str
    axes: int  # distinct directions that a person has to learn
    parameters: int | None
    log_likelihood: float | None  # nats a row held out
    error: float  # of the rows held out, mean square over their variance
    neighbours: float  # share of nearest neighbours kept among rows of the fit
    accuracy: float | None  # of labels of rows held out, by nearest neighbours among the scores
    recurrence: float  # mean matched |cosine| of the directions of two starts
    cpu_s: float  # of the processor, one fit


def methods(K: int, L: int) -> dict[str, tuple[Any, int]]:
    """Return the estimators by name with how many directions each has."""
    mixture = MixtureOfFactorAnalysers
    few = max(2, round(K / L))  # pieces with about as many parameters as ours
    return {
        f"aPPCA ({K}, {L})": (AdaptivePPCA(K, L), K),
        f"PPCA {L}": (PPCA(L), L),
        f"PPCA {K}": (PPCA(K), K),
        f"mixture of PPCA, {K} of {L}": (mixture(K, L), K * L),
        f"mixture of PPCA, {few} of {L}": (mixture(few, L), few * L),
        f"mixture of FA, {K} of {L}": (mixture(K, L, noise="diagonal"), K * L),
        f"k-subspaces, {K} of {L}": (KSubspaces(K, L), K * L),
    }


def directions(model: Any) -> np.ndarray:
    """Return all directions of a model as unit rows."""
    W = getattr(model, "components_", None)
    W = model.loadings_ if W is None else W
    W = W.reshape(-1, W.shape[-1]).astype(np.float64)
    length = np.linalg.norm(W, axis=1, keepdims=True)
    found: np.ndarray = W / np.where(length > 0, length, 1.0)
    return found


def recurrence(models: list[Any]) -> float:
    """Return the mean matched |cosine| over pairs of starts."""
    found = []
    for i, one in enumerate(models):
        for other in models[:i]:
            C = np.abs(directions(one) @ directions(other).T)
            found.append(C[linear_sum_assignment(-C)].mean())
    return float(np.mean(found))


def kept(X: np.ndarray, scores: np.ndarray) -> float:
    """Return the share of each row's nearest neighbours that it keeps among the scores."""
    near = [
        NearestNeighbors(n_neighbors=NEIGHBOURS).fit(Y).kneighbors(return_distance=False)
        for Y in (X, scores)
    ]
    pairs = zip(*near, strict=True)
    return float(np.mean([len(set(a) & set(b)) / NEIGHBOURS for a, b in pairs]))


def measured(data: str, name: str, kind: Any, axes: int, rows: tuple[np.ndarray, ...]) -> Line:
    """Fit from each start and measure the first."""
    X, Y, labels, others = rows
    models, seconds = [], []
    for seed in range(STARTS):
        model = type(kind)(**(kind.get_params() | {"random_state": seed}))
        began = time.process_time()
        models.append(model.fit(X))
        seconds.append(time.process_time() - began)
    model = models[0]
    own, new = model.transform(X), model.transform(Y)
    back = model.reconstruct(Y) if hasattr(model, "reconstruct") else model.inverse_transform(new)
    accuracy = None
    if len(labels):
        accuracy = KNeighborsClassifier(NEIGHBOURS).fit(own, labels).score(new, others)
    likelihood = model.score(Y) if hasattr(model, "score_samples") else None
    return Line(
        data,
        name,
        axes,
        getattr(model, "n_parameters_", None),
        likelihood,
        float(np.square(Y - back).sum() / np.square(Y - X.mean(axis=0)).sum()),
        kept(X, own),
        accuracy,
        recurrence(models),
        float(np.median(seconds)),
    )


def rows_of(name: str, keywords: dict[str, Any]) -> tuple[np.ndarray, ...]:
    """Return rows to fit and rows held out, preprocessed, and their labels or nothing."""
    dataset = load(name, **keywords)
    order = np.random.default_rng(0).permutation(dataset.n_rows)[:MOST_ROWS]
    held = len(order) // 5
    test, train = np.sort(order[:held]), np.sort(order[held:])
    before = suggest(dataset).fit(dataset.X[train])
    label = next(iter(dataset.labels.values()), None)
    labels = ([], []) if label is None else (np.asarray(label)[train], np.asarray(label)[test])
    return before.transform(dataset.X[train]), before.transform(dataset.X[test]), *labels


def main() -> None:
    """Measure, print as it goes, and write the rows after every data set."""
    parser = results.arguments(__doc__)
    parser.add_argument("--data", default=",".join(SETS), help="names of data sets")
    options = parser.parse_args()
    lines: list[results.Row] = []
    for name in options.data.split(","):
        keywords, K, L = SETS[name]
        try:
            rows = rows_of(name, keywords)
        except (OSError, ValueError) as error:
            print(f"{name} is left out: {error}")
            continue
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for title, (kind, axes) in methods(K, L).items():
                lines.append(measured(name, title, kind, axes, rows)._asdict())
                print(lines[-1], flush=True)
        results.write(options.out, "rivals", lines)


if __name__ == "__main__":
    main()
