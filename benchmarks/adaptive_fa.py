"""Adaptive factor analysis against the noise floor, and on odd digits: error, sharing, time.

`python -m benchmarks.adaptive_fa balanced [SEEDS]`: the balanced design (N = 1000, D = 50, noise of
standard deviation 0.1, K = 10 and 20, L = K / 2), ten data seeds unless told otherwise. A line a
seed with the mean squared error over that of the oracle (true W, best sets), the least matched
|cos| of the columns and the share of Z that is right: by default settings, and from the paper's
start and by its algorithm (PCA, best sets at once).

`APPCA_DATA=... python -m benchmarks.adaptive_fa digits [SEEDS]`: 2,500 odd MNIST digits, 500 each,
in 350 principal coordinates, K = 100, L = 50: seconds on the clock and of the processor for a fit,
start included, after one fit that compiles, and how many factors distinct rows of two digits share,
over the largest such mean.

They write results/adaptive_fa_balanced.json and results/adaptive_fa_digits.json.
"""

import time

import numpy as np
from scipy.optimize import linear_sum_assignment

from appca import AdaptiveFactorAnalysis
from appca.data.preprocessing import Preprocessing
from appca.data.sources.builtin import load
from appca.data.sources.designs import Synthetic, draw_synthetic
from appca.models.supports import fixed_size_supports, row_blocks
from appca.models.supports.row_supports import CollapsedModel
from benchmarks import results

PAPER = {"init": "pca", "allocation": "best", "annealing": 0, "max_iter": 30}
DIGITS = ("1", "3", "5", "7", "9")
K_DIGITS, L_DIGITS = 100, 50
FIELDS = ("oracle", "times_oracle", "least_cosine", "right", "paper_times_oracle", "paper_cosine")


def main() -> None:
    """Run the part that was asked for, and write its rows."""
    parts = {"balanced": (balanced, 10), "digits": (digits, 3)}
    parser = results.arguments(__doc__)
    parser.add_argument("part", choices=parts)
    parser.add_argument("seeds", nargs="?", type=int, help="10 of balanced, 3 of digits")
    given = parser.parse_args()
    part, usual = parts[given.part]
    results.write(given.out, f"adaptive_fa_{given.part}", part(given.seeds or usual))


def balanced(seeds: int) -> list[results.Row]:
    """Print a line a data seed, and the worst of all; return a row a data seed."""
    rows = []
    print("  K seed   oracle | default:  error   |cos|   Z right | paper's start:  error   |cos|")
    for k in (10, 20):
        lines = np.array([recovery(k, seed) for seed in range(seeds)])
        for seed, line in enumerate(lines):
            print(f"{k:3d} {seed:4d}   {in_words(line)}")
            rows.append({"K": k, "L": k // 2, "seed": seed, **dict(zip(FIELDS, line, strict=True))})
        worst = [f(lines[:, i]) for i, f in enumerate([max, max, min, min, min, max])]
        print(f"{k:3d} worst  {in_words(worst)}  (of the paper's start the best)")
    return rows


def in_words(numbers: np.ndarray | list[float]) -> str:
    """Format one line of the table."""
    floor, error, cosine, right, paper, paper_cosine = numbers
    mine = f"{error:6.3f} x {cosine:7.4f}  {100 * right:6.1f}%"
    return f"{floor:.5f} |        {mine}  |        {paper:8.1f} x {paper_cosine:7.3f}"


def recovery(k: int, seed: int) -> tuple[float, ...]:
    """Fit one draw of the design by default settings and as the paper does."""
    data = draw_synthetic(np.random.default_rng(seed), "balanced", n_components=k, n_active=k // 2)
    floor = oracle_error(data)
    mine = AdaptiveFactorAnalysis(k, k // 2, random_state=seed).fit(data.Y)
    paper = AdaptiveFactorAnalysis(k, k // 2, random_state=seed, **PAPER).fit(data.Y)
    cosine, right = found(mine, data)
    return (
        floor,
        error(mine, data) / floor,
        cosine,
        right,
        error(paper, data) / floor,
        found(paper, data)[0],
    )


def error(model: AdaptiveFactorAnalysis, data: Synthetic) -> float:
    """Mean squared reconstruction error of the rows."""
    return float(np.square(data.Y - model.inverse_transform(model.transform(data.Y))).mean())


def oracle_error(data: Synthetic) -> float:
    """Mean squared error of the best sets under the true loadings and the true noise."""
    noise, n_active = data.noise_sd**2, int(data.Z[0].sum())
    c, A = data.Y @ data.W / noise, data.W.T @ data.W / noise
    model, seeds = CollapsedModel(A, 1.0), row_blocks.row_seeds(data.Y)
    members = fixed_size_supports.best(c, model, n_active, seeds)[0]
    return float(np.square(data.Y - fixed_size_supports.means(c, members, model) @ data.W.T).mean())


def found(model: AdaptiveFactorAnalysis, data: Synthetic) -> tuple[float, float]:
    """Least |cos| of the columns under the best matching, and the share of Z that is right."""
    C = model.components_ / np.linalg.norm(model.components_, axis=1, keepdims=True)
    cosines = np.abs(C @ (data.W / np.linalg.norm(data.W, axis=0)))
    rows, columns = linear_sum_assignment(-cosines)
    right = np.mean(model.allocate(data.Y)[:, rows] == data.Z[:, columns])
    return float(cosines[rows, columns].min()), float(right)


def digits(seeds: int) -> list[results.Row]:
    """Print the time of a fit and the sharing grid, a block a seed; return a row a seed."""
    rows = []
    dataset = load("mnist", per_class=500, classes=DIGITS)
    X = Preprocessing(divide=255.0, centre=True, pca=350).fit(dataset.X).transform(dataset.X)
    labels = np.asarray(next(iter(dataset.labels.values()))).astype(str)
    AdaptiveFactorAnalysis(K_DIGITS, L_DIGITS, max_iter=2, random_state=0).fit(X)  # compiles
    for seed in range(seeds):
        clock, processor = time.perf_counter(), time.process_time()
        model = AdaptiveFactorAnalysis(K_DIGITS, L_DIGITS, random_state=seed).fit(X)
        clock, processor = time.perf_counter() - clock, time.process_time() - processor
        grid = sharing(model.allocate(X), labels)
        own = bool((grid.argmax(axis=1) == np.arange(5)).all())
        nats = model.log_likelihoods_[-1] / len(X)
        row = {"seed": seed, "clock_s": clock, "processor_s": processor, "passes": model.n_iter_}
        rows.append({**row, "nats": nats, "own_most": own, "digits": DIGITS, "grid": grid})
        print(
            f"seed {seed}: {clock:.1f} s on the clock, {processor:.1f} s of the processor, "
            f"{model.n_iter_} passes, {nats:.1f} nats per row; "
            f"row maxima on the diagonal: {'yes' if own else 'NO'}"
        )
        print("     " + "".join(f"{name:>7}" for name in DIGITS))
        for name, line in zip(DIGITS, grid, strict=True):
            print(f"{name:>5}" + "".join(f"{value:7.3f}" for value in line))
    return rows


def sharing(Z: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Mean number of factors that distinct rows of two digits share, over the largest."""
    members = [Z[labels == name].astype(float) for name in DIGITS]
    grid = np.array([[(a @ b.T).mean() for b in members] for a in members])
    for i, a in enumerate(members):
        both = a @ a.T
        grid[i, i] = (both.sum() - np.trace(both)) / (len(a) * (len(a) - 1))
    return grid / grid.max()


if __name__ == "__main__":
    main()
