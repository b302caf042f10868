"""Who fills masked cells best: adaptive PPCA, PPCA, or what ignores subspaces.

`APPCA_DATA=... python -m benchmarks.missing [NAME ...] [--seeds 5]`, names out of `CASES`, all by
default. A tenth and three tenths of the cells are masked at random, and the root of the mean
squared error on them is taken in units of preprocessing as the app suggests it (tables: one
standard deviation; images: white), learned without the masked cells. Mean over seeds and its
standard error; "beats" counts the seeds in which adaptive PPCA is better. The imputers of
scikit-learn (k nearest rows; a ridge regression of each column on all others) run where there are
at most 64 columns. Writes results/missing.json.
"""

import time
import warnings

import numpy as np

from appca.analysis.compare import EVERY, FEW, MEANS, OWN, MaskedConfig, filled_in, hide
from appca.data.preprocessing import suggest
from appca.data.sources import load
from appca.words import InputError
from benchmarks import results

CASES = {
    "wine": ({}, (4, 2)),
    "breast_cancer": ({}, (6, 3)),
    "digits": ({}, (10, 3)),
    "mnist": ({"n": 2000}, (10, 3)),
}
SHARES = (0.1, 0.3)
NEAREST, RIDGE = "10 nearest rows", "ridge, iterated"
MOST_COLUMNS = 64


def main() -> None:
    """Print a table for each data set and share, and where adaptive PPCA is not the best."""
    parser = results.arguments(__doc__)
    parser.add_argument("names", nargs="*", default=list(CASES), help="data sets, all by default")
    parser.add_argument("--seeds", type=int, default=5)
    chosen = parser.parse_args()
    lost: list[str] = []
    rows: list[results.Row] = []
    for name in chosen.names:
        options, sizes = CASES[name]
        try:
            dataset = load(name, **options)
        except InputError as error:
            print(f"{name}: {error}")
            continue
        for share in SHARES:
            began = time.process_time()
            errors = measured(dataset, sizes, share, chosen.seeds)
            told(f"{dataset.name}, K = {sizes[0]}, L = {sizes[1]}, {share:.0%} masked", errors)
            print(f"  {time.process_time() - began:.0f} s of the processor", flush=True)
            case = {"data": dataset.name, "K": sizes[0], "L": sizes[1], "share": share}
            rows += [{**case, **row} for row in compared(errors)]
            means = {method: values.mean() for method, values in errors.items()}
            better = [method for method in means if means[method] < means[OWN]]
            lost += [f"{name} at {share:.0%}: better are {', '.join(better)}"] if better else []
    print("\nWhere it does not hold:" if lost else "\nAdaptive PPCA is the best throughout.")
    print("\n".join(lost))
    results.write(chosen.out, "missing", rows)


def measured(dataset, sizes: tuple[int, int], share: float, seeds: int) -> dict[str, np.ndarray]:
    """Return each method's error for every seed."""
    parameters = {"n_components": sizes[0], "n_active": sizes[1], "random_state": 0}
    errors: dict[str, list[float]] = {}
    options = suggest(dataset)
    for seed in range(seeds):
        config = MaskedConfig(dataset.digest, options.to_dict(), "aPPCA", parameters)
        hidden = hide(np.ones(dataset.X.shape, bool), share, np.random.default_rng(seed))
        Y = options.fit(dataset.X, missing=hidden).transform(dataset.X).astype(np.float64)
        truth, Y[hidden] = Y[hidden], np.nan
        fills = {method: filled_in(method, Y, config) for method in (OWN, FEW, EVERY, MEANS)}
        if Y.shape[1] <= MOST_COLUMNS:
            fills |= imputed(Y)
        for method, filled in fills.items():
            error = float(np.sqrt(np.square(filled[hidden] - truth).mean()))
            errors.setdefault(method, []).append(error)
    return {method: np.array(values) for method, values in errors.items()}


def imputed(Y: np.ndarray) -> dict[str, np.ndarray]:
    """Fill by what scikit-learn offers."""
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer, KNNImputer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ten rounds do not always settle
        return {
            NEAREST: KNNImputer(n_neighbors=10).fit_transform(Y),
            RIDGE: IterativeImputer(random_state=0).fit_transform(Y),
        }


def compared(errors: dict[str, np.ndarray]) -> list[results.Row]:
    """Return a row a method, smallest error first; no standard error of a single seed."""
    rows = []
    for method, values in sorted(errors.items(), key=lambda item: item[1].mean()):
        n = len(values)
        row = {"method": method, "rmse": float(values.mean()), "seeds": n}
        row["standard_error"] = float(values.std(ddof=1) / np.sqrt(n)) if n > 1 else None
        row["beaten"] = None if method == OWN else int((errors[OWN] < values).sum())
        rows.append(row)
    return rows


def told(title: str, errors: dict[str, np.ndarray]) -> None:
    """Print the errors, smallest first."""
    print(f"\n{title}")
    for row in compared(errors):
        error = "" if row["standard_error"] is None else f" ± {row['standard_error']:.4f}"
        beats = "" if row["beaten"] is None else f"  beats {row['beaten']} of {row['seeds']}"
        print(f"  {row['method']:16} {row['rmse']:.4f}{error}{beats}")


if __name__ == "__main__":
    main()
