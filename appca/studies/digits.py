"""Figures 5 and 7: factors that odd digits share, and strokes of the digits of each subspace."""

import numpy as np

from appca.analysis.components import closest_pairs, popularity, sharing
from appca.analysis.subspaces import title
from appca.data.preprocessing import Preprocessing
from appca.data.sources import load
from appca.studies.fitting import codes_of, fit, images_of, reporting
from appca.studies.study import (
    CheckedClaim,
    Figures,
    Options,
    Outcome,
    Report,
    Row,
    Study,
    checked,
    span,
)
from appca.studies.vae_digits import SIZES, coded, effects, measures, strongest
from appca.words import fixed, minus

ODD = ["1", "3", "5", "7", "9"]
NAMED = (("1", "7"), ("5", "9"))  # pairs that the paper says share much
SHUFFLES = 200  # of the labels, for what chance does to the grid
FEW_PATHS = 4  # of the sums over sets that only the likelihood needs
FAR, FIRST = 3.0, 3  # standard deviations of chance and rank of a pair that shares much
COLUMNS, LINES = 20, 4
CLEAR, SLIGHT = 0.5, 0.2  # standard deviations, as is usual for Cohen's d


def run_sharing(options: Options, report: Report, processes: int = 1) -> Outcome:
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
        callback=reporting("fitting aFA", report, 0.05, 0.9),
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
    return Outcome(tables, arrays, sharing_claims(rows, ranks, shares.overall))


def by_chance(active: np.ndarray, codes: np.ndarray, n_classes: int, seed: int) -> np.ndarray:
    """Return the standard deviation (C, C) of the grid when the labels are dealt out at random."""
    rng = np.random.default_rng(seed)
    drawn = [sharing(active, rng.permutation(codes), n_classes).shared for _ in range(SHUFFLES)]
    return np.asarray(np.std(drawn, axis=0))


def sharing_claims(
    rows: list[Row], ranks: list[tuple[str, str]], overall: float
) -> list[CheckedClaim]:
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


def sharing_figures(outcome: Outcome) -> Figures:
    """Circles between the digits, and how popular each factor is."""
    from appca.plots.components import circles, popularity_bars

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


_SHARING_SIZE = {"dimensions": 350, "n_components": 100, "n_active": 50, "seed": 0}

SHARING = Study(
    name="sharing",
    title="Factors that digits share",
    paper=(
        "The paper fits aFA to 500 each of the digits 1, 3, 5, 7 and 9, and reads from a grid that "
        "a digit shares most factors with its own kind, and that 1 and 7, and 5 and 9, share much. "
        "K is 100; it does not say L."
    ),
    revision=1,
    sizes={
        "quick": {**_SHARING_SIZE, "per_class": 100},
        "default": {**_SHARING_SIZE, "per_class": 500},
        "full": {**_SHARING_SIZE, "per_class": 500},
    },
    takes={"quick": 10.0, "default": 20.0, "full": 20.0},
    run=run_sharing,
    figures=sharing_figures,
)


def run_strokes(options: Options, report: Report, processes: int = 1) -> Outcome:
    """Train, fit, draw members at random, and measure ink and slant in every subspace."""
    digits = coded(options, report, 0.9)
    fitted = fit(digits.Y, options, report, 0.9, 1.0)
    rows = effects(digits, fitted)
    rng = np.random.default_rng(options["seed"])
    arrays = {}
    values = measures(digits)
    for number, subspace in enumerate(fitted.subspaces):
        drawn = rng.permutation(subspace.rows)[: COLUMNS * LINES]
        arrays[f"rows_{number}"] = drawn
        for place, measured in enumerate(values.values()):
            arrays[f"values_{number}_{place}"] = measured[subspace.rows].astype(np.float32)
    arrays["subspaces"] = np.array([title(part.components) for part in fitted.subspaces])
    return Outcome({"strokes": rows}, arrays, stroke_claims(rows))


def stroke_claims(rows: list[Row]) -> list[CheckedClaim]:
    """Judge ink and slant by the largest difference of a subspace from all other digits."""
    ink, *slants = (strongest(rows, name) for name in dict.fromkeys(r["measure"] for r in rows))
    return [differs("thickness", [ink]), differs("slant", slants)]


def differs(what: str, rows: list[Row]) -> CheckedClaim:
    """Take the largest of the effects: it holds from `CLEAR` on, and partly from `SLIGHT` on."""
    most = max(rows, key=lambda row: abs(float(row["effect"])))
    size = abs(most["effect"])
    measured = (
        f"{most['measure'].split(',')[0]} of {most['subspace']}: {fixed(most['effect'])} "
        f"(± {most['effect_error']:.2f}) standard deviations from the other digits, "
        f"{fixed(most['effect_within_classes'])} within a class"
    )
    tests = [size >= CLEAR, size >= SLIGHT]
    number = (f"{minus(format(most['effect'], '+.2f'))} sd", f"{what} in {most['subspace']}")
    return checked(f"The subspaces differ in {what}", measured, tests, number=number)


def stroke_figures(outcome: Outcome) -> Figures:
    """Members of each subspace drawn at random, if the person has them; the measures' spread."""
    from appca.plots.studies import boxes, sheets

    arrays, rows = outcome.arrays, outcome.tables["strokes"]
    subspaces = arrays["subspaces"].tolist()
    names = list(dict.fromkeys(str(row["measure"]) for row in rows))
    drawn = {
        f"Subspace {name}, {len(arrays[f'values_{number}_0']):,} digits": images
        for number, name in enumerate(subspaces)
        if (images := images_of("mnist", arrays[f"rows_{number}"])) is not None
    }
    spread = {
        name: {
            subspace: arrays[f"values_{number}_{place}"]
            for number, subspace in enumerate(subspaces)
        }
        for place, name in enumerate(names)
    }
    pictures = {"members": sheets(drawn, COLUMNS, 1.5)} if drawn else {}
    return pictures | {"spread": boxes(spread)}


STROKES = Study(
    name="strokes",
    title="Thickness and slant of the digits in each subspace",
    paper=(
        "The paper shows digits drawn at random from each subspace, and says that most in one are "
        "thicker and most in another slanted. It gives no numbers."
    ),
    revision=2,
    sizes=SIZES,
    takes={"quick": 15.0, "default": 60.0, "full": 180.0},
    run=run_strokes,
    figures=stroke_figures,
)
