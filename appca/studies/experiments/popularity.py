"""How many rows use each factor: the truth, infinite sparse FA and adaptive FA."""

import numpy as np

from appca.studies.claims import CheckedClaim, checked
from appca.studies.experiments.table1 import draw
from appca.studies.parts.fitting import passes_told
from appca.studies.parts.methods import METHODS, Task, active_for, fit
from appca.studies.processes import Spec, Tick, work
from appca.studies.study import Figures, Options, Outcome, Report, Row, Study

DESIGNS = ("sparse", "dense")
LINES = ("isfa_k", "isfa", "afa", "afa_most")
TRUTH = "truth"
NOTE = "With exactly L factors a row the shares of aFA add up to L, whatever the truth does."


def run(options: Options, report: Report, processes: int = 1) -> Outcome:
    """Fit the models to one data set of each design, and count."""
    common = {"K": options["n_components"], "seed": options["seed"], "options": options}
    specs = [{"design": design, **common} for design in DESIGNS]
    curves = work("appca.studies.experiments.popularity:curves_of", specs, report, processes)
    rows, apart = [], []
    for design, of_design in zip(DESIGNS, curves, strict=True):
        rows += [
            {
                "design": design,
                "method": name,
                "title": title_of(name),
                "rank": rank + 1,
                "share": share,
            }
            for name, curve in of_design.items()
            for rank, share in enumerate(curve)
        ]
        apart += [distance(design, name, of_design) for name in of_design if name != TRUTH]
    return Outcome({"distance": apart, "popularity": rows}, {}, claims(apart), NOTE)


def curves_of(spec: Spec, tick: Tick) -> dict[str, list[float]]:
    """Sorted shares of the rows that use each factor: the true ones and those of each method."""
    from appca.models.algebra.threads import single_threaded_blas

    options = spec["options"]
    with single_threaded_blas():
        truth, fresh, _ = draw(spec)
        curves = {TRUTH: ordered(truth.Z)}
        chain = (options["burn_in"], options["n_draws"], spec["seed"], None)
        most = int(truth.Z.sum(axis=1).max())
        task = Task(truth.Y, fresh[:1], spec["K"], active_for(truth.Z), most, *chain)
        for place, name in enumerate(LINES):
            ends = place / len(LINES), (place + 1) / len(LINES)
            callback = passes_told(f"{spec['design']}: {title_of(name)}", tick, *ends)
            fitted = fit(METHODS[name], task._replace(callback=callback))
            if fitted is not None:
                curves[name] = ordered(fitted.Z)
    return curves


def ordered(Z: np.ndarray) -> list[float]:
    """Shares of the rows that use each factor, largest first; unused factors are left out."""
    share = np.sort(Z.mean(axis=0))[::-1]
    return [float(value) for value in share if value > 0]


def distance(design: str, method: str, curves: dict[str, list[float]]) -> Row:
    """Mean absolute difference of two sorted curves; a factor that one lacks has share 0 there."""
    truth, approximate = curves[TRUTH], curves[method]
    width = max(len(truth), len(approximate))
    padded = [np.pad(curve, (0, width - len(curve))) for curve in (truth, approximate)]
    return {
        "design": design,
        "method": method,
        "title": title_of(method),
        "factors": len(approximate),
        "true_factors": len(truth),
        "distance": float(np.abs(padded[0] - padded[1]).mean()),
    }


def title_of(name: str) -> str:
    """Name a line."""
    return "Truth" if name == TRUTH else METHODS[name].title


def claims(apart: list[Row]) -> list[CheckedClaim]:
    """Judge each design by whose curve is nearest to the true one."""
    checked_claims = []
    for design in DESIGNS:
        near = {row["method"]: row["distance"] for row in apart if row["design"] == design}
        order = sorted(near, key=lambda method: near[method])
        told = ", ".join(f"{title_of(method)} {near[method]:.3f}" for method in order)
        claim = f"aFA estimates the popularity of factors best on {design} data"
        tests = [order[0].startswith("afa")]
        nearest = min(near[method] for method in near if method.startswith("afa"))
        number = (f"{nearest:.3f}", f"off the truth, {design}")
        measured = f"mean distance from the truth: {told}"
        checked_claims.append(checked(claim, measured, tests, number=number))
    return checked_claims


def figures(outcome: Outcome) -> Figures:
    """Draw the paper's figure: truth in red."""
    from appca.plots.paper.popularity import popularity

    return {"popularity": popularity(outcome.tables["popularity"])}


_SIZES = {"n_features": 50, "n_components": 20, "noise_sd": 0.1, "seed": 0}

STUDY = Study(
    name="popularity",
    title="Popularity of the factors",
    paper=(
        "The paper shows the share of the points that use each factor, sorted, for sparse and "
        "dense data: the truth in red, the estimates of isFA and aFA beside it."
    ),
    revision=1,
    sizes={
        "quick": {**_SIZES, "n_rows": 300, "burn_in": 30, "n_draws": 30},
        "default": {**_SIZES, "n_rows": 1000, "burn_in": 150, "n_draws": 150},
        "full": {**_SIZES, "n_rows": 1000, "burn_in": 1000, "n_draws": 1000},
    },
    takes={"quick": 10.0, "default": 30.0, "full": 400.0},
    run=run,
    columns=("design", "title", "factors", "true_factors", "distance"),
    figures=figures,
)
