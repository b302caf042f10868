"""Factors that digits share: adaptive factor analysis of the odd digits of MNIST."""

from typing import TYPE_CHECKING

import numpy as np

from appca.analysis.components.sharing import closest_pairs, popularity, sharing
from appca.data.numbers import percent
from appca.data.preprocessing import Preprocessing
from appca.data.sources.builtin import load
from appca.studies.parts.fitting import codes_of
from appca.studies.study import Outcome, Report, Row, Study

if TYPE_CHECKING:
    import plotly.graph_objects as go

ODD = ["1", "3", "5", "7", "9"]
NAMED = (("1", "7"), ("5", "9"))  # pairs that the paper says share much
SHUFFLES = 200  # of the labels, for what chance does to the grid
FEW_PATHS = 4  # of the sums over sets that only the likelihood needs
FAR = 3.0  # standard deviations of chance


def run(options: dict, report: Report, processes: int = 1) -> Outcome:
    """Fit, allocate, and count the factors that rows of two classes share."""
    del processes
    from appca.models.adaptive_fa import AdaptiveFactorAnalysis

    report("opening MNIST", 0.0)
    dataset = load("mnist", per_class=options["per_class"], classes=ODD)
    names, codes = codes_of(next(iter(dataset.labels.values())))
    dimensions = min(options["dimensions"], dataset.n_rows - 1)
    Y = Preprocessing(divide=255.0, pca=dimensions).fit(dataset.X).transform(dataset.X)

    def callback(progress: object) -> None:
        share = min(progress.iteration / max(progress.max_iter, 1), 1.0)
        report("fitting aFA", 0.05 + 0.85 * share)

    model = AdaptiveFactorAnalysis(
        n_components=options["n_components"],
        n_active=options["n_active"],
        n_paths=FEW_PATHS,
        random_state=options["seed"],
        callback=callback,
    ).fit(Y)
    report("choosing the factors of each digit", 0.9)
    return counted(model.allocate(Y), codes, names, options["seed"])


def counted(active: np.ndarray, codes: np.ndarray, names: list[str], seed: int = 0) -> Outcome:
    """Make grid, popularity and text of the allocation (N, K)."""
    found = sharing(active, codes, len(names))
    chance = by_chance(active, codes, len(names), seed)
    rows: list[Row] = [
        {
            "digit": names[a],
            "other": names[b],
            "shared": float(found.shared[a, b]),
            "of_the_most": float(found.grid[a, b]),
            "deviation": float((found.shared[a, b] - found.overall) / max(chance[a, b], 1e-12)),
        }
        for a in range(len(names))
        for b in range(a, len(names))
    ]
    used = popularity(active)
    arrays = {"shared": found.shared, "counts": found.counts, "popularity": used}
    arrays |= {"names": np.array(names), "overall": np.array(found.overall)}
    arrays["n_active"] = np.array(active.sum(axis=1).mean())
    popular: list[Row] = [
        {"rank": rank + 1, "factor": int(k) + 1, "share": float(used[k])}
        for rank, k in enumerate(np.argsort(-used, kind="stable"))
    ]
    ranks = [(names[pair.first], names[pair.second]) for pair in closest_pairs(found)]
    text = _text(rows, ranks, found.overall, used)
    return Outcome({"sharing": rows, "popularity": popular}, arrays, text)


def by_chance(active: np.ndarray, codes: np.ndarray, n_classes: int, seed: int) -> np.ndarray:
    """Return the standard deviation (C, C) of the grid when the labels are dealt out at random."""
    rng = np.random.default_rng(seed)
    drawn = [sharing(active, rng.permutation(codes), n_classes).shared for _ in range(SHUFFLES)]
    return np.std(drawn, axis=0)


def _text(rows: list[Row], ranks: list[tuple[str, str]], overall: float, used: np.ndarray) -> str:
    same = {str(row["digit"]): float(row["shared"]) for row in rows if row["digit"] == row["other"]}
    of_pair = {(str(row["digit"]), str(row["other"])): row for row in rows}
    own_first = [
        digit
        for digit, value in same.items()
        if all(value >= float(row["shared"]) for pair, row in of_pair.items() if digit in pair)
    ]
    told = " and ".join(
        f"{a} and {b} share {of_pair[a, b]['shared']:.2f} ({ranks.index((a, b)) + 1}. of "
        f"{len(ranks)} pairs, {of_pair[a, b]['deviation']:+.0f} standard deviations of chance)"
        for a, b in NAMED
        if (a, b) in of_pair
    ).replace("-", "−")
    first = " and ".join(ranks[0])
    right = [
        pair
        for pair in NAMED
        if pair in of_pair and float(of_pair[pair]["deviation"]) > FAR and ranks.index(pair) < 3
    ]
    kin = (
        "Every digit shares most with its own kind, as the paper says"
        if len(own_first) == len(same)
        else f"Only {', '.join(own_first) or 'none'} of the digits share most with their own kind"
    )
    pairs = {
        2: "and 1 and 7, and 5 and 9, stand out, as the paper says",
        1: f"but of its pairs only {' and '.join(right[0]) if right else ''} stand out",
    }.get(len(right), "but neither 1 and 7 nor 5 and 9 stand out")
    return (
        "Two digits of one class share "
        + ", ".join(f"{value:.2f} ({digit})" for digit, value in same.items())
        + f" factors, any two {overall:.2f}. Of different digits {first} share most, "
        f"{of_pair[ranks[0]]['shared']:.2f}; {told}. The factors are used by "
        f"{percent(used.min())} to {percent(used.max())} of the digits.\n\n{kin}, {pairs}."
    )


def figures(outcome: Outcome) -> "dict[str, go.Figure]":
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
    columns=("digit", "other", "shared", "of_the_most", "deviation"),
    figures=figures,
)
