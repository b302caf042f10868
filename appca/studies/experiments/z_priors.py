"""The five designs of Z, drawn: black where a row uses a factor."""

import numpy as np

from appca.data.sources.designs import DESIGNS, draw_indicators
from appca.studies.claims import CheckedClaim, checked
from appca.studies.study import Figures, Options, Outcome, Report, Row, Study

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
    from appca.plots.paper.indicators import indicators

    return {"designs": indicators({name.capitalize(): Z for name, Z in outcome.arrays.items()})}


_SIZE = {"n_rows": 100, "n_components": 20, "n_active": 10, "seed": 0}

STUDY = Study(
    name="z-priors",
    title="The five designs of Z",
    paper="A figure of the paper shows the five indicator matrices: black cells are ones.",
    revision=1,
    sizes=dict.fromkeys(("quick", "default", "full"), _SIZE),
    takes=dict.fromkeys(("quick", "default", "full"), 0.1),
    run=run,
    figures=figures,
)
