"""Figure 1: points near three planes in space, projected plane by plane, and by PCA."""

import numpy as np

from appca.analysis.subspaces import principal_scores, title
from appca.data.sources import load
from appca.studies.fitting import PCA_AXES, PanelFit, codes_of, fit, subspace_panels
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
from appca.words import percent

RECOVERED, NEAR = 0.9, 5.0  # share of the points, degrees; some points are near two planes


def run(options: Options, report: Report, processes: int = 1) -> Outcome:
    """Fit, and compare the subspaces with the planes the points were drawn from.

    Subspaces are paired with planes by their common rows.
    """
    from scipy.optimize import linear_sum_assignment

    dataset = load("planes")
    names, codes = codes_of(dataset.labels["plane"])
    Y = np.asarray(dataset.X, dtype=np.float64)
    fitted = fit(Y, options, report)
    principal, shares = principal_scores(Y, 2)
    subspaces = [subspace for subspace in fitted.subspaces if subspace.components]
    common = np.array(
        [np.bincount(codes[part.rows], minlength=len(names)) for part in subspaces], dtype=int
    )
    rows: list[Row] = []
    for number, plane in zip(*linear_sum_assignment(-common), strict=True):
        on_plane = Y[codes == plane]
        basis = np.linalg.svd(on_plane - on_plane.mean(axis=0), full_matrices=False)[2][:2]
        W = fitted.components[list(subspaces[number].components)]
        least = np.linalg.svd(np.linalg.qr(W.T)[0].T @ basis.T, compute_uv=False).min()
        rows.append(
            {
                "subspace": title(subspaces[number].components),
                "plane": names[plane],
                "rows": len(subspaces[number].rows),
                "of_the_plane": int(common[number, plane]),
                "rows_of_plane": len(on_plane),
                "angle": float(np.degrees(np.arccos(min(float(least), 1.0)))),
            }
        )
    arrays = fitted._asdict() | {"X": Y, "plane": codes, "names": np.array(names), "pca": principal}
    judged = claims(rows, residual(Y, fitted), float(1 - shares.sum()))
    return Outcome({"planes": rows}, arrays, judged)


def residual(Y: np.ndarray, fitted: PanelFit) -> float:
    """Share of the variance that the projections onto each row's subspace lose."""
    centred = Y - Y.mean(axis=0)
    lost = 0.0
    for subspace in fitted.subspaces:
        W = fitted.components[list(subspace.components)]
        members = centred[subspace.rows]
        lost += float(np.square(members - members @ W.T @ W).sum())
    return lost / float(np.square(centred).sum())


def claims(rows: list[Row], rest: float, lost: float) -> list[CheckedClaim]:
    """Judge by rows, angles and the shares of variance that projections and PCA lose."""
    right = sum(row["of_the_plane"] for row in rows) / sum(row["rows_of_plane"] for row in rows)
    angle = max(row["angle"] for row in rows)
    return [
        checked(
            "aPPCA projects each point onto its own plane",
            f"{percent(right, 1)} of the points, planes within {angle:.2f} degrees",
            [right > RECOVERED, angle < NEAR],
            number=(percent(right), "on their own plane"),
        ),
        checked(
            "PCA lays the planes over one another",
            f"{percent(rest, 2)} of the variance lost, by PCA {percent(lost, 1)}",
            [rest < lost],
            number=(percent(rest, 2), f"lost, PCA {percent(lost, 1)}"),
        ),
    ]


def figures(outcome: Outcome) -> Figures:
    """Points in space, and the four projections."""
    from appca.plots.studies import Scatter, scatters, space

    arrays = outcome.arrays
    pca, codes = arrays["pca"], arrays["plane"]
    names = [f"plane {name}" for name in arrays["names"].tolist()]
    panels = subspace_panels(arrays, codes, lambda name, _n: f"aPPCA, subspace {name}")
    panels.append(Scatter("PCA, all points", pca[:, 0], pca[:, 1], codes, *PCA_AXES))
    return {
        "projections": scatters(panels, names, columns=2, size=4),
        "space": space(arrays["X"], codes, names, arrays["components"]),
    }


STUDY = Study(
    name="planes",
    title="Three planes in space",
    paper=(
        "The paper shows synthetic points near three planes, each spanned by two of three "
        "orthogonal directions: aPPCA projects each point onto its own plane, PCA all onto one."
    ),
    revision=2,
    **one_size({"n_components": 3, "n_active": 2, "seed": 0}, 1.5),
    run=run,
    figures=figures,
)
