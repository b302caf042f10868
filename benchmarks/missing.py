"""Errors on masked cells: adaptive PPCA, PPCA, column means and scikit-learn's imputers.

`APPCA_DATA=... python -m benchmarks.missing [NAME ...] [--seeds 5]` writes results/missing.json.
10% and 30% of the cells are masked at random. The root mean squared error on masked cells is in
units of the preprocessing that the app suggests, learned without these cells. "beaten" counts the
seeds for which adaptive PPCA is better. scikit-learn's imputers run for at most 64 columns.
"""

import time
import warnings

import numpy as np

from appca.analysis.compare import EVERY, FEW, MEANS, OWN, MaskedConfig, filled_in, hide
from appca.data.dataset import Dataset
from appca.data.preprocessing import suggest
from appca.data.sources import load
from benchmarks import results

CASES = {  # name -> K, L
    "wine": (4, 2),
    "breast_cancer": (6, 3),
    "digits": (10, 3),
    "mnist": (10, 3),
}
MNIST_ROWS, SHARES, MOST_COLUMNS = 2000, (0.1, 0.3), 64


def main() -> None:
    """Print and write one row per data set, share and method."""
    parser = results.arguments(__doc__)
    parser.add_argument("names", nargs="*", default=list(CASES), help="data sets, all by default")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    rows: list[results.Row] = []
    for name in options.names:
        K, L = CASES[name]
        dataset = load(name, **({"n": MNIST_ROWS} if name == "mnist" else {}))
        for share in SHARES:
            began = time.process_time()
            errors = masked_errors(dataset, (K, L), share, options.seeds)
            print(f"\n{dataset.name}, K = {K}, L = {L}, {share:.0%} masked")
            for method in sorted(errors, key=lambda method: errors[method].mean()):
                rmse, n = errors[method], options.seeds
                row: results.Row = {"data": dataset.name, "K": K, "L": L, "share": share}
                row |= {"method": method, "rmse": rmse.mean(), "seeds": n}
                row["standard_error"] = rmse.std(ddof=1) / np.sqrt(n) if n > 1 else None
                row["beaten"] = None if method == OWN else (errors[OWN] < rmse).sum()
                rows.append(row)
                print(f"  {method:16} {rmse.mean():.4f}, beaten {row['beaten']} of {n}")
            print(f"  {time.process_time() - began:.0f} s of CPU time", flush=True)
    results.write(options.out, "missing", rows)


def masked_errors(
    dataset: Dataset, sizes: tuple[int, int], share: float, seeds: int
) -> dict[str, np.ndarray]:
    """Return the root mean squared errors of each method, one per seed."""
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer, KNNImputer

    parameters = {"n_components": sizes[0], "n_active": sizes[1], "random_state": 0}
    options, errors = suggest(dataset), dict[str, list[float]]()
    config = MaskedConfig(dataset.digest, options.to_dict(), "aPPCA", parameters)
    for seed in range(seeds):
        hidden = hide(np.ones(dataset.X.shape, bool), share, np.random.default_rng(seed))
        Y = options.fit(dataset.X, missing=hidden).transform(dataset.X).astype(np.float64)
        truth, Y[hidden] = Y[hidden], np.nan
        fills = {method: filled_in(method, Y, config) for method in (OWN, FEW, EVERY, MEANS)}
        if Y.shape[1] <= MOST_COLUMNS:
            fills["10 nearest rows"] = KNNImputer(n_neighbors=10).fit_transform(Y)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # ten iterations do not always converge
                fills["ridge, iterated"] = IterativeImputer(random_state=0).fit_transform(Y)
        for method, filled in fills.items():
            error = float(np.sqrt(np.square(filled[hidden] - truth).mean()))
            errors.setdefault(method, []).append(error)
    return {method: np.array(values) for method, values in errors.items()}


if __name__ == "__main__":
    main()
