"""What fits and likelihoods lose against what can be computed exactly, or by many more starts.

`APPCA_DATA=... python -m benchmarks.oracles [starts] [gaps] [streams] [--starts 30]`, all parts by
default.

starts   A fit by default settings on twelve data sets, against the best of 30 fits from a random
         rotation or random loadings each (`init="random"`, seeds 1 to 30): nats per row lost,
         for aPPCA and aFA. Below zero the default is better than all of them.
gaps     The likelihood of rows with a tenth of their cells missing, summed over the best support
         and its exchanges of one component, against the sum over all supports: the error at the
         same parameters, mean and largest, in nats per row, and that of the best support alone; and
         what a fit with these sums loses, and its noise variance over that of the exact fit.
streams  `partial_fit` on batches in three random orders and sorted by class, against `fit` on all
         rows: nats per row lost, mean and worst; and one more row after a fit of all others.

Writes results/oracles_starts.json, oracles_gaps.json and oracles_streams.json.
"""

import time
import warnings
from collections.abc import Callable
from math import comb
from typing import Any
from unittest import mock

import numpy as np

from appca import AdaptiveFactorAnalysis, AdaptivePPCA
from appca.data.sources.builtin import load
from appca.models.incomplete import missing_supports
from benchmarks import results

SETS = {  # data: (options of the source, rows, K, L)
    "wine": ({}, 178, 4, 2),
    "wine, many": ({}, 178, 6, 2),
    "breast_cancer": ({}, 569, 6, 2),
    "digits, 300 rows": ({}, 300, 6, 3),
    "digits, 600 rows": ({}, 600, 8, 3),
    "digits": ({}, 1797, 8, 3),
    "digits, dense": ({}, 1797, 9, 5),
    "mnist in 16 x 16": ({"n": 1000}, 1000, 8, 3),
    "mnist in 16 x 16, 400 rows": ({"n": 1000}, 400, 10, 2),
    "coil20": ({"size": 32}, 1440, 8, 2),
    "turntable": ({}, 936, 6, 2),
    "planted": ({}, 800, 10, 5),
}
GAPS = {  # data: rows, K, L
    "planted": (400, 12, 4),
    "planted, noisy": (400, 12, 4),
    "digits": (400, 14, 4),
    "wine": (178, 10, 4),
    "breast_cancer": (400, 14, 4),
    "digits, 16 and 6": (300, 16, 6),
}
STREAMS = {  # data: options, K, L, rows of a batch
    "digits": ({}, 8, 3, 100),
    "wine": ({}, 4, 2, 20),
    "mnist": ({"n": 10_000}, 10, 3, 500),
}
SHARE = 0.1  # of the cells
MOST_SUMMED = 10**5  # supports, of the exact sum that errors are measured against
ORDERS = 3  # of a stream at random, and as many within classes
MODELS = {"aPPCA": AdaptivePPCA, "aFA": AdaptiveFactorAnalysis}


def main() -> None:
    """Run the parts that were asked for, and write their rows."""
    parts = {"starts": starts, "gaps": gaps, "streams": streams}
    parser = results.arguments(__doc__)
    parser.add_argument("parts", nargs="*", default=list(parts), help=", ".join(parts))
    parser.add_argument("--starts", type=int, default=30, help="random starts to compare with")
    chosen = parser.parse_args()
    for name in chosen.parts:
        rows = parts[name](chosen.starts) if name == "starts" else parts[name]()
        results.write(chosen.out, f"oracles_{name}", rows)


def rows_of(name: str, n: int, options: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of a data set, tables in standard deviations, and their classes."""
    rng = np.random.default_rng(0)
    if name.startswith("planted"):
        noise = 0.6 if "noisy" in name else 0.2
        W = np.linalg.qr(rng.standard_normal((24, 12)))[0]
        Z = np.argsort(rng.random((n, 12)), axis=1) < 4
        X = (Z * rng.standard_normal((n, 12))) @ W.T + noise * rng.standard_normal((n, 24))
        return X, np.zeros(n)
    dataset = load(name.split(",", maxsplit=1)[0].split(" ", maxsplit=1)[0], **options)
    X = np.asarray(dataset.X, np.float64)
    classes = next(iter(dataset.labels.values()))
    some = np.sort(rng.permutation(len(X))[:n])
    X, classes = X[some], np.asarray(classes)[some]
    if "16 x 16" in name:
        X = np.pad(X.reshape(-1, 28, 28), ((0, 0), (2, 2), (2, 2)))
        X = X.reshape(-1, 16, 2, 16, 2).mean(axis=(2, 4)).reshape(len(X), 256)
    if dataset.image_shape is not None:
        return X / X.max(), classes
    return (X - X.mean(axis=0)) / X.std(axis=0), classes


def fitted(kind: Callable[..., AdaptivePPCA], X: np.ndarray, k: int, n_active: int, **how: object):
    """Fit, and say nothing of the end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind(k, n_active, **{"random_state": 0, **how}).fit(X)


def starts(n_starts: int) -> list[results.Row]:
    """Return a row a data set and model."""
    rows = []
    for name, (options, n, k, n_active) in SETS.items():
        X, _ = rows_of(name, n, options)
        for model, kind in MODELS.items():
            began = time.process_time()
            default = fitted(kind, X, k, n_active).score(X)
            seconds = time.process_time() - began
            random = [
                fitted(kind, X, k, n_active, init="random", random_state=seed).score(X)
                for seed in range(1, n_starts + 1)
            ]
            case = {"data": name, "N": len(X), "D": X.shape[1], "K": k, "L": n_active}
            lost, usual = max(random) - default, max(random) - float(np.median(random))
            print(
                f"{model:5} {name} ({k}, {n_active}): {lost:.3f} lost, {seconds:.2f} s", flush=True
            )
            one = {"model": model, "default": default, "lost": lost, "median_lost": usual}
            rows.append({**case, **one, "starts": n_starts, "processor_s": seconds})
    return rows


def gaps() -> list[results.Row]:
    """Return a row a data set."""
    rows = []
    for name, (n, k, n_active) in GAPS.items():
        X, _ = rows_of(name, n, {})
        X[np.random.default_rng(1).random(X.shape) < SHARE] = np.nan
        with summing_up_to(MOST_SUMMED):
            exact = fitted(AdaptivePPCA, X, k, n_active)
            truth = exact.score_samples(X)
        with summing_up_to(1):
            told = exact.describe(X)
            near = fitted(AdaptivePPCA, X, k, n_active)
        with summing_up_to(MOST_SUMMED):
            lost = truth.mean() - near.score(X)
        error = truth - told.log_likelihood
        alone = error - np.log(told.membership)
        case = {"data": name, "N": n, "D": X.shape[1], "K": k, "L": n_active}
        case |= {"supports": comb(k, n_active), "error": error.mean(), "largest": error.max()}
        case |= {"best_alone": alone.mean(), "fit_lost": lost}
        case |= {"noise": near.noise_variance_ / exact.noise_variance_}
        print(", ".join(f"{key} {value:.4g}" for key, value in list(case.items())[1:]), flush=True)
        rows.append(case)
    return rows


def summing_up_to(n_sets: int) -> Any:
    """Let the library sum over all supports of a row with gaps while they are at most so many."""
    return mock.patch.object(missing_supports, "MOST_SETS", n_sets)


def streams() -> list[results.Row]:
    """Return a row a data set."""
    rows = []
    for name, (options, k, n_active, size) in STREAMS.items():
        X, classes = rows_of(name, 10_000, options)
        whole = fitted(AdaptivePPCA, X, k, n_active)
        orders = [np.random.default_rng(seed).permutation(len(X)) for seed in range(ORDERS)]
        case = {"data": name, "N": len(X), "D": X.shape[1], "K": k, "L": n_active, "batch": size}
        case |= {"all": whole.score(X), "one_row": one_row_more(X[orders[0]], k, n_active)}
        by_class = [order[np.argsort(classes[order], kind="stable")] for order in orders]
        for name_of, some in (("random", orders), ("sorted", by_class)):
            lost = [whole.score(X) - streamed(X[order], k, n_active, size) for order in some]
            case |= {name_of: float(np.mean(lost)), f"{name_of}_worst": max(lost)}
        print(", ".join(f"{key} {value}" for key, value in case.items()), flush=True)
        rows.append(case)
    return rows


def streamed(X: np.ndarray, k: int, n_active: int, size: int) -> float:
    """Nats per row of all rows, learned in batches in the order in which they come."""
    model = AdaptivePPCA(k, n_active, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a first batch of few rows
        for start in range(0, len(X), size):
            model.partial_fit(X[start : start + size])
    return float(model.score(X))


def one_row_more(X: np.ndarray, k: int, n_active: int) -> float:
    """Nats per row that the last row costs, learned after a fit of the others."""
    model = fitted(AdaptivePPCA, X[:-1], k, n_active)
    before = model.score(X)
    return before - model.partial_fit(X[-1:]).score(X)


if __name__ == "__main__":
    main()
