"""How well adaptive PPCA finds planted directions, and how far it stays from a truth-started fit.

`python -m benchmarks.planted [SEEDS]`: for each shape the mean and the least matched |cos| between
fitted and true directions over the seeds, of the default start and of a fit started at the truth,
and the greatest gap between the two log-likelihoods in nats per row. Noise of standard deviation
0.1.
Writes results/planted.json.
"""

import numpy as np
from scipy.optimize import linear_sum_assignment

from appca import AdaptivePPCA
from benchmarks import results

SHAPES = [  # N, D, K, L
    (1000, 50, 10, 5),
    (1000, 50, 20, 10),
    (1000, 100, 50, 5),
    (5000, 100, 50, 25),
    (1000, 50, 10, 9),
    (1000, 100, 50, 25),
]
NOISE_SD = 0.1


def main() -> None:
    """Print one line a shape, and write all."""
    parser = results.arguments(__doc__)
    parser.add_argument("seeds", nargs="?", type=int, default=3)
    given = parser.parse_args()
    print("    N    D   K   L |  default: mean   least | from truth: mean | gap, nats per row")
    rows = []
    for n, d, k, active in SHAPES:
        found = np.array([one(n, d, k, active, seed) for seed in range(given.seeds)])
        row = {"N": n, "D": d, "K": k, "L": active, "seeds": given.seeds}
        row |= {"mean_cosine": found[:, 0].mean(), "least_cosine": found[:, 1].min()}
        row |= {"mean_cosine_from_truth": found[:, 2].mean(), "gap": found[:, 3].max()}
        rows.append(row)
        print(
            f"{n:5d} {d:4d} {k:3d} {active:3d} | {row['mean_cosine']:14.4f} "
            f"{row['least_cosine']:7.4f} | {row['mean_cosine_from_truth']:16.4f} "
            f"| {row['gap']:+8.3f}",
            flush=True,
        )
    results.write(given.out, "planted", rows)


def one(n: int, d: int, k: int, active: int, seed: int) -> tuple[float, float, float, float]:
    """Return mean and least |cos|, mean |cos| of the truth-started fit, and its lead in nats."""
    rng = np.random.default_rng(seed)
    W = np.linalg.qr(rng.standard_normal((d, k)))[0]
    Z = np.argsort(rng.random((n, k)), axis=1) < active
    Y = (rng.standard_normal((n, k)) * Z) @ W.T + NOISE_SD * rng.standard_normal((n, d))
    fitted = AdaptivePPCA(k, active, random_state=seed).fit(Y)
    from_truth = AdaptivePPCA(k, active, init=W.T, random_state=seed).fit(Y)
    cosines = matched(fitted.components_, W)
    gap = from_truth.score(Y) - fitted.score(Y)
    return cosines.mean(), cosines.min(), matched(from_truth.components_, W).mean(), gap


def matched(components: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Return |cos| (K,) under the best one-to-one matching of fitted and true directions."""
    cosines = np.abs(components @ W)
    return cosines[linear_sum_assignment(-cosines)]


if __name__ == "__main__":
    main()
