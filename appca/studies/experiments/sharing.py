"""Factors that digits share: adaptive factor analysis of the odd digits of MNIST."""

import numpy as np

from appca.analysis.components.sharing import closest_pairs, popularity, sharing
from appca.data.preprocessing import Preprocessing
from appca.data.sources.builtin import load
from appca.studies.claims import CheckedClaim, checked, span
from appca.studies.parts.fitting import codes_of, passes_told
from appca.studies.study import Figures, Options, Outcome, Report, Row, Study
from appca.words.numbers import fixed

ODD = ["1", "3", "5", "7", "9"]
NAMED = (("1", "7"), ("5", "9"))  # pairs that the paper says share much
SHUFFLES = 200  # of the labels, for what chance does to the grid
FEW_PATHS = 4  # of the sums over sets that only the likelihood needs
FAR, FIRST = 3.0, 3  # standard deviations of chance and rank of a pair that shares much


def run(options: Options, report: Report, processes: int = 1) -> Outcome:
    """Fit, allocate, and count the factors that rows of two classes share."""
    from appca.models.adaptive_fa import AdaptiveFactorAnalysis

    report("opening MNIST", 0.0)
    dataset = load("mnist", per_class=options["per_class"], classes=ODD)
    names, codes = codes_of(next(iter(dataset.labels.values())))
    dimensions = min(options["dimensions"], dataset.n_rows - 1)
    Y = Preprocessing(divide=255.0, pca=dimensions).fit(dataset.X).transform(dataset.X)

    model = AdaptiveFactorAnalysis(
        n_components=options["n_components"],
        n_active=options["n_active"],
        n_paths=FEW_PATHS,
        random_state=options["seed"],
        callback=passes_told("fitting aFA", report, 0.05, 0.9),
    ).fit(Y)
    report("choosing the factors of each digit", 0.9)
    return counted(model.allocate(Y), codes, names, options["seed"])


def counted(active: np.ndarray, codes: np.ndarray, names: list[str], seed: int = 0) -> Outcome:
    """Make grid, popularity and claims of the allocation (N, K)."""
    shares = sharing(active, codes, len(names))
    chance = by_chance(active, codes, len(names), seed)
    rows: list[Row] = [
        {
            "digit": names[a],
            "other": names[b],
            "shared": float(shares.shared[a, b]),
            "of_the_most": float(shares.grid[a, b]),
            "deviation": float((shares.shared[a, b] - shares.overall) / max(chance[a, b], 1e-12)),
        }
        for a in range(len(names))
        for b in range(a, len(names))
    ]
    used = popularity(active)
    arrays = {"shared": shares.shared, "counts": shares.counts, "popularity": used}
    arrays |= {"names": np.array(names), "overall": np.array(shares.overall)}
    arrays["n_active"] = np.array(active.sum(axis=1).mean())
    popular: list[Row] = [
        {"rank": rank + 1, "factor": int(k) + 1, "share": float(used[k])}
        for rank, k in enumerate(np.argsort(-used, kind="stable"))
    ]
    ranks = [(names[pair.first], names[pair.second]) for pair in closest_pairs(shares)]
    tables = {"sharing": rows, "popularity": popular}
    return Outcome(tables, arrays, claims(rows, ranks, shares.overall))


def by_chance(active: np.ndarray, codes: np.ndarray, n_classes: int, seed: int) -> np.ndarray:
    """Return the standard deviation (C, C) of the grid when the labels are dealt out at random."""
    rng = np.random.default_rng(seed)
    drawn = [sharing(active, rng.permutation(codes), n_classes).shared for _ in range(SHUFFLES)]
    return np.asarray(np.std(drawn, axis=0))


def claims(rows: list[Row], ranks: list[tuple[str, str]], overall: float) -> list[CheckedClaim]:
    """Judge digits by their largest share, the pairs of the paper by rank and by chance."""
    shared = {(row["digit"], row["other"]): row["shared"] for row in rows}
    far = {(row["digit"], row["other"]): row["deviation"] for row in rows}
    same = {digit: shared[digit, digit] for digit, other in shared if digit == other}
    first = [
        value >= max(shared[pair] for pair in shared if digit in pair)
        for digit, value in same.items()
    ]
    measured = (
        f"{sum(first)} of {len(first)} do: {span(list(same.values()))} factors, any two digits "
        f"{overall:.2f}"
    )
    number = (f"{sum(first)} of {len(first)}", "own kind first")
    claim = "A digit shares most factors with its own kind"
    checked_claims = [checked(claim, measured, first, number=number)]
    for pair in (pair for pair in NAMED if pair in shared):
        rank = ranks.index(pair) + 1
        measured = (
            f"{shared[pair]:.2f} factors, number {rank} of {len(ranks)} pairs, "
            f"{fixed(far[pair], 0)} standard deviations from chance"
        )
        tests = [far[pair] > FAR and rank <= FIRST]
        number = (f"{rank} of {len(ranks)}", f"rank of {' and '.join(pair)}")
        claim = f"{' and '.join(pair)} share much"
        checked_claims.append(checked(claim, measured, tests, number=number))
    return checked_claims


def figures(outcome: Outcome) -> Figures:
    """Circles between the digits, and how popular each factor is."""
    from appca.plots.components.sharing import circles, popularity_bars

    arrays = outcome.arrays
    used = arrays["popularity"]
    factors = [f"factor {k + 1}" for k in range(len(used))]
    even = float(arrays["n_active"]) / len(used)
    return {
        "grid": circles(
            arrays["shared"], arrays["names"].tolist(), arrays["counts"], float(arrays["overall"])
        ),
        "popularity": popularity_bars(used, factors, even),
    }


_SIZE = {"dimensions": 350, "n_components": 100, "n_active": 50, "seed": 0}

STUDY = Study(
    name="sharing",
    title="Factors that digits share",
    paper=(
        "The paper fits aFA to 500 each of the digits 1, 3, 5, 7 and 9, and reads from a grid that "
        "a digit shares most factors with its own kind, and that 1 and 7, and 5 and 9, share much. "
        "K is 100; it does not say L."
    ),
    revision=1,
    sizes={
        "quick": {**_SIZE, "per_class": 100},
        "default": {**_SIZE, "per_class": 500},
        "full": {**_SIZE, "per_class": 500},
    },
    takes={"quick": 10.0, "default": 20.0, "full": 20.0},
    run=run,
    figures=figures,
)
