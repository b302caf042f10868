"""Synthetic data: points near three planes (figure 1), designs of Z (figure 3), a laboratory."""

from types import ModuleType

import numpy as np

from appca.analysis.components import principal_scores, title
from appca.data.dataset import Dataset, categories
from appca.data.sources import DESIGNS, Synthetic, draw_indicators, draw_synthetic, load
from appca.studies.claims import Claim, checked, share
from appca.studies.fitting import PanelFit, fit, panels
from appca.studies.study import Figures, Options, Outcome, Report, Row, Study, sized
from appca.words import percent, refuse_if

RECOVERED, NEAR = 0.9, 5.0  # minimum share of points on their plane, maximum angle in degrees


def run_planes(options: Options, report: Report, processes: int = 1) -> Outcome:
    """Fit, and match subspaces to the planes of the points by the number of common rows."""
    from scipy.linalg import subspace_angles
    from scipy.optimize import linear_sum_assignment

    dataset = load("planes")
    names, codes = categories(dataset.labels["plane"])
    Y = np.asarray(dataset.X, dtype=np.float64)
    fitted = fit(Y, options, report)
    principal, shares, _ = principal_scores(Y, 2)
    subspaces = [subspace for subspace in fitted.subspaces if subspace.components]
    common = np.array([np.bincount(codes[part.rows], minlength=len(names)) for part in subspaces])
    rows: list[Row] = []
    for number, plane in zip(*linear_sum_assignment(-common), strict=True):
        (components, members), on_plane = subspaces[number], Y[codes == plane]
        basis = np.linalg.svd(on_plane - on_plane.mean(axis=0), full_matrices=False)[2][:2]
        angle = subspace_angles(fitted.components[list(components)].T, basis.T).max()
        row: Row = {"subspace": title(components), "plane": names[plane], "rows": len(members)}
        row |= {"of_the_plane": int(common[number, plane]), "rows_of_plane": len(on_plane)}
        rows.append(row | {"angle": float(np.degrees(angle))})
    arrays = fitted._asdict() | {"X": Y, "plane": codes, "names": np.array(names), "pca": principal}
    judged = plane_claims(rows, residual(Y, fitted), float(1 - shares.sum()))
    return Outcome({"planes": rows}, arrays, judged)


def residual(Y: np.ndarray, fitted: PanelFit) -> float:
    """Return the share of variance lost by projecting each row onto its subspace."""
    centred = Y - Y.mean(axis=0)
    H = (centred @ fitted.components.T) * fitted.active
    return float(np.square(centred - H @ fitted.components).sum() / np.square(centred).sum())


def plane_claims(rows: list[Row], rest: float, lost: float) -> list[Claim]:
    """Judge by rows, by angles, and by the variance that projections and PCA lose."""
    right = sum(row["of_the_plane"] for row in rows) / sum(row["rows_of_plane"] for row in rows)
    angle = max(row["angle"] for row in rows)
    return [
        checked(
            "aPPCA projects each point onto its own plane",
            f"true of {percent(right, 1)} of the points; planes within {angle:.2f} degrees",
            [right > RECOVERED, angle < NEAR],
            number=(percent(right), "on their own plane"),
        ),
        checked(
            "PCA superimposes the planes",
            f"aPPCA loses {percent(rest, 2)} of the variance, PCA {percent(lost, 1)}",
            [rest < lost],
            number=(percent(rest, 2), f"lost, PCA {percent(lost, 1)}"),
        ),
    ]


def _plane_figures(plots: ModuleType, outcome: Outcome) -> Figures:
    arrays, codes = outcome.arrays, outcome.arrays["plane"]
    names = [f"plane {name}" for name in arrays["names"].tolist()]
    drawn = panels(plots, arrays, codes, "aPPCA, subspace {}".format, "points")
    return {
        "projections": plots.scatters(drawn, names, columns=2, size=4),
        "space": plots.space(arrays["X"], codes, names, arrays["components"]),
    }


PLANES = Study(
    "planes",
    "Figure 1: Three planes in space",
    "The paper shows synthetic points near three planes, each spanned by two of three "
    "orthogonal directions. aPPCA projects each point onto its own plane, PCA all points onto one.",
    revision=2,
    **sized((1.5,) * 3, {"n_components": 3, "n_active": 2, "seed": 0}),
    run=run_planes,
    draw=_plane_figures,
)


NOTE = "The paper does not say how it drew its matrices; our generator documents every choice."


def run_designs(options: Options, report: Report, processes: int = 1) -> Outcome:
    """Draw one indicator matrix of each design."""
    arrays = {}
    for place, design in enumerate(DESIGNS):
        rng = np.random.default_rng([options["seed"], place])
        sizes = options["n_rows"], options["n_components"], options["n_active"]
        arrays[design] = draw_indicators(rng, design, *sizes)
    rows = [described(design, Z) for design, Z in arrays.items()]
    return Outcome({"designs": rows}, arrays, design_claims(rows), NOTE)


def described(design: str, Z: np.ndarray) -> Row:
    """Summarize how full an indicator matrix is, by row and by factor."""
    row, factor = Z.sum(axis=1), Z.mean(axis=0)
    facts: Row = {"design": design, "per_row": float(row.mean()), "per_row_sd": float(row.std())}
    facts |= {"least_popular": float(factor.min()), "most_popular": float(factor.max())}
    return facts | {"different_sets": len(np.unique(Z, axis=0))}


def design_claims(rows: list[Row]) -> list[Claim]:
    """Judge samples by the paper's names of the designs, because its figure shows no numbers."""
    sparse, dense, classes, balanced, single = rows  # in the order of `DESIGNS`
    measured = (
        f"{sparse['per_row']:.1f} and {dense['per_row']:.1f} factors per row, "
        f"{classes['different_sets']} classes, a standard deviation of "
        f"{balanced['per_row_sd']:.1f} factors over balanced rows, {single['different_sets']} state"
    )
    tests = [
        sparse["per_row"] < dense["per_row"],
        1 < classes["different_sets"] < balanced["different_sets"],
        balanced["per_row_sd"] == 0,
        single["different_sets"] == 1,
    ]
    claim = "Z is sparse, dense, of latent classes, balanced, or a single state"
    return [checked(claim, measured, tests, number=(share(tests), "as they are called"))]


Z_PRIORS = Study(
    "z-priors",
    "Figure 3: The five designs of Z",
    "The paper shows the five indicator matrices; black cells are ones.",
    **sized((0.1,) * 3, {"n_rows": 100, "n_components": 20, "n_active": 10, "seed": 0}),
    run=run_designs,
    draw=lambda plots, outcome: {
        "designs": plots.indicators({name.capitalize(): Z for name, Z in outcome.arrays.items()})
    },
)


MOST_LABELLED = 50  # maximum number of distinct supports in a label
MOST_VALUES = 5_000_000  # maximum size of a synthetic data set
LIMITS = {
    "n_rows": (20, 20_000),
    "n_features": (2, 1_000),
    "n_components": (1, 100),
    "n_active": (1, 100),
    "noise_sd": (0.001, 10.0),
    "seed": (0, 10**9),
}


def drawn(design: str, choices: Options) -> Synthetic:
    """Draw data of a design in `appca.data.sources.DESIGNS` with choices inside `LIMITS`.

    Raises InputError if there are more than `MOST_VALUES` values, or L exceeds K.
    """
    shape = f"{choices['n_rows']:,} x {choices['n_features']:,}"
    msg = f"Rows times features must be at most {MOST_VALUES:,}; got {shape}, so ask for fewer."
    refuse_if(choices["n_rows"] * choices["n_features"] > MOST_VALUES, msg)
    sizes = {name: value for name, value in choices.items() if name != "seed"}
    rng = np.random.default_rng([choices["seed"], DESIGNS.index(design)])
    return draw_synthetic(rng, design, **sizes)


def dataset_of(design: str, choices: Options) -> Dataset:
    """Convert `drawn` data to a data set labelled by support; its provenance has choices, W, Z."""
    truth = drawn(design, choices)
    sets = np.array([",".join(map(str, np.flatnonzero(row) + 1)) or "none" for row in truth.Z])
    Z = ["".join("01"[bit] for bit in row) for row in truth.Z.astype(int)]
    return Dataset(
        name=f"Synthetic, {design}, K = {choices['n_components']}, seed {choices['seed']}",
        X=truth.Y,
        ids=np.array([f"row-{n + 1}" for n in range(len(truth.Y))]),
        labels={"true set": sets} if len(np.unique(sets)) <= MOST_LABELLED else {},
        provenance={"source": "synthetic", "comparable": True}
        | {"options": {"design": design, **choices}, "truth": {"W": truth.W.tolist(), "Z": Z}},
    )
