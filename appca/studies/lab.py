"""Figure 3, the five designs of Z, and synthetic data sets of them for the laboratory."""

import numpy as np

from appca.data.dataset import Dataset
from appca.data.sources import DESIGNS, Synthetic, draw_indicators, draw_synthetic
from appca.studies.study import (
    CheckedClaim,
    Figures,
    Options,
    Outcome,
    Report,
    Row,
    Study,
    checked,
    one_size,
)
from appca.words import InputError

NOTE = "The paper does not say how it drew its matrices; the generator writes down every choice."


def run(options: Options, report: Report, processes: int = 1) -> Outcome:
    """Draw one matrix of each design."""
    arrays, rows = {}, []
    for place, design in enumerate(DESIGNS):
        report(f"drawing the design {design}", place / len(DESIGNS))
        rng = np.random.default_rng([options["seed"], place])
        Z = draw_indicators(
            rng, design, options["n_rows"], options["n_components"], options["n_active"]
        )
        arrays[design] = Z
        rows.append(described(design, Z))
    return Outcome({"designs": rows}, arrays, claims(rows), NOTE)


def described(design: str, Z: np.ndarray) -> Row:
    """How full a matrix of indicators is, by row and by factor."""
    row, factor = Z.sum(axis=1), Z.mean(axis=0)
    return {
        "design": design,
        "per_row": float(row.mean()),
        "per_row_sd": float(row.std()),
        "least_popular": float(factor.min()),
        "most_popular": float(factor.max()),
        "different_sets": len(np.unique(Z, axis=0)),
    }


def claims(rows: list[Row]) -> list[CheckedClaim]:
    """Judge the draws by what the paper calls the designs; its picture has no numbers."""
    sparse, dense, classes, balanced, single = rows  # in the order of `DESIGNS`
    measured = (
        f"{sparse['per_row']:.1f} and {dense['per_row']:.1f} factors a row, "
        f"{classes['different_sets']} classes, a spread of {balanced['per_row_sd']:.1f} factors "
        f"a row where balanced, {single['different_sets']} state"
    )
    tests = [
        sparse["per_row"] < dense["per_row"],
        1 < classes["different_sets"] < balanced["different_sets"],
        balanced["per_row_sd"] == 0,
        single["different_sets"] == 1,
    ]
    claim = "Z is sparse, dense, of latent classes, balanced, or a single state"
    return [checked(claim, measured, tests, number=(f"{sum(tests)} of 4", "as they are called"))]


def figures(outcome: Outcome) -> Figures:
    """All matrices side by side."""
    from appca.plots.studies import indicators

    return {"designs": indicators({name.capitalize(): Z for name, Z in outcome.arrays.items()})}


MOST_LABELLED = 50  # different sets of factors that still make a label
MOST_VALUES = 5_000_000  # of a data set made here
LIMITS = {
    "n_rows": (20, 20_000),
    "n_features": (2, 1_000),
    "n_components": (1, 100),
    "n_active": (1, 100),
    "noise_sd": (0.001, 10.0),
    "seed": (0, 10**9),
}


def drawn(design: str, choices: Options) -> Synthetic:
    """Draw data of one of `appca.data.sources.DESIGNS`.

    The choices are n_rows, n_features, n_components, n_active, noise_sd and seed. Raises InputError
    for an unknown design or choices outside of `LIMITS`, in one sentence.
    """
    if design not in DESIGNS:
        msg = f"design must be one of {', '.join(DESIGNS)}; got “{design}”."
        raise InputError(msg)
    for name, (least, most) in LIMITS.items():
        if not least <= choices[name] <= most:
            msg = f"{name} must lie between {least:,} and {most:,}; got {choices[name]}."
            raise InputError(msg)
    if choices["n_rows"] * choices["n_features"] > MOST_VALUES:
        msg = (
            f"Rows times features must be at most {MOST_VALUES:,}; got {choices['n_rows']:,} x "
            f"{choices['n_features']:,}, so ask for fewer."
        )
        raise InputError(msg)
    sizes = {name: value for name, value in choices.items() if name != "seed"}
    rng = np.random.default_rng([choices["seed"], DESIGNS.index(design)])
    return draw_synthetic(rng, design, **sizes)


def dataset_of(design: str, choices: Options) -> Dataset:
    """Make a data set of `drawn`, with the choices, W and Z in its provenance.

    A row's true set of factors is a label while there are few different ones. No value is scaled:
    the features share a unit.
    """
    truth = drawn(design, choices)
    sets = np.array([",".join(map(str, np.flatnonzero(row) + 1)) or "none" for row in truth.Z])
    labels = {"true set": sets} if len(np.unique(sets)) <= MOST_LABELLED else {}
    return Dataset(
        name=(f"Synthetic, {design}, K = {choices['n_components']}, seed {choices['seed']}"),
        X=truth.Y,
        ids=np.array([f"row-{n + 1}" for n in range(len(truth.Y))]),
        labels=labels,
        provenance={
            "source": "synthetic",
            "comparable": True,
            "options": {"design": design, **choices},
            "truth": {
                "W": truth.W.tolist(),
                "Z": ["".join("01"[bit] for bit in row) for row in truth.Z.astype(int)],
            },
        },
    )


STUDY = Study(
    name="z-priors",
    title="The five designs of Z",
    paper="A figure of the paper shows the five indicator matrices: black cells are ones.",
    revision=1,
    **one_size({"n_rows": 100, "n_components": 20, "n_active": 10, "seed": 0}, 0.1),
    run=run,
    figures=figures,
)
