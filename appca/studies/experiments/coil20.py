"""COIL-20 by PCA and in the subspaces of aPPCA: crowding, and what a component means."""

import numpy as np

from appca.analysis.check.quality import crowding
from appca.analysis.components.shapes import width
from appca.analysis.explore.projection import principal_scores
from appca.data.dataset import Dataset
from appca.data.sources.builtin import load
from appca.studies.claims import CheckedClaim, checked
from appca.studies.parts.fitting import (
    PCA_AXES,
    PanelFit,
    codes_of,
    crowding_claim,
    crowding_rows,
    fit,
    subspace_panels,
)
from appca.studies.parts.own_copy import images_of
from appca.studies.study import Figures, Options, Outcome, Report, Row, Study
from appca.words.numbers import fixed

STRONG = 0.3  # |r| from which a component is said to go with the width


def opened(report: Report) -> tuple[Dataset, np.ndarray, list[str], np.ndarray]:
    """Images, rows between 0 and 1, names of the objects and each row's place among them."""
    report("opening COIL-20", 0.0)
    dataset = load("coil20")
    names, codes = codes_of(dataset.labels["object"])
    return dataset, dataset.X.astype(np.float64) / 255.0, names, codes


def run(options: Options, report: Report, processes: int = 1) -> Outcome:
    """Fit, measure crowding against PCA, and the width along every component."""
    dataset, Y, names, codes = opened(report)
    fitted = fit(Y, options, report, 0.2, 0.6)
    principal, _ = principal_scores(Y, 2)
    report("comparing neighbours", 0.7)
    how = {"n_neighbors": options["n_neighbors"], "most": 12}
    crowded = crowding(fitted.scores, fitted.active, principal, codes, **how)
    rows = crowding_rows(crowded, codes, fitted)
    wide = widths(fitted, width(dataset.images(np.arange(len(Y)))), codes)
    arrays = {"scores": fitted.scores.astype(np.float32), "active": fitted.active}
    arrays |= {"pca": principal, "codes": codes, "names": np.array(names)}
    claims = [crowding_claim(rows), width_claim(wide)]
    return Outcome({"panels": rows, "width": wide}, arrays, claims)


def widths(fitted: PanelFit, values: np.ndarray, codes: np.ndarray) -> list[Row]:
    """Correlation of each component's scores with the width, over the rows that use it."""
    rows_of_table: list[Row] = []
    for k in range(fitted.active.shape[1]):
        rows = np.flatnonzero(fitted.active[:, k])
        score, wide = fitted.scores[rows, k], values[rows]
        # Views of one object are not independent; their means are nearly so.
        of_object = [
            (score[of_class].mean(), wide[of_class].mean())
            for of_class in (codes[rows] == code for code in np.unique(codes[rows]))
        ]
        means = np.array(of_object)
        low, high = score <= np.median(score), score > np.median(score)
        rows_of_table.append(
            {
                "component": k + 1,
                "rows": len(rows),
                "correlation": _correlation(score, wide),
                "objects": len(means),
                "correlation_of_objects": _correlation(means[:, 0], means[:, 1]),
                "width_low_half": float(wide[low].mean()),
                "width_high_half": float(wide[high].mean()),
                "sd": float(wide.std(ddof=1)),
            }
        )
    return rows_of_table


def _correlation(a: np.ndarray, b: np.ndarray) -> float | None:
    if len(a) < 3 or not np.ptp(a) or not np.ptp(b):
        return None
    return float(np.corrcoef(a, b)[0, 1])


def width_claim(wide: list[Row]) -> CheckedClaim:
    """Judge by |r| of component 2; another one holds in part, as their order is arbitrary."""
    strength = {row["component"]: abs(row["correlation"] or 0.0) for row in wide}
    second, most = strength.get(2, 0.0), max(wide, key=lambda row: strength[row["component"]])
    measured = (
        f"strongest: component {most['component']}, r = {fixed(most['correlation'] or 0.0)} over "
        f"{most['rows']} images, {fixed(most['correlation_of_objects'] or 0.0)} over "
        f"{most['objects']} objects; component 2: |r| = {second:.2f}"
    )
    tests = [second >= STRONG, max(strength.values()) >= STRONG]
    number = (fixed(most["correlation"] or 0.0), f"r of width, component {most['component']}")
    return checked("Component 2 is the width of the object", measured, tests, number=number)


def figures(outcome: Outcome) -> Figures:
    """Each subspace, and PCA; with images where the person has them."""
    from appca.plots.paper.study_panels import Scatter, scatters

    arrays = outcome.arrays
    names = [f"object {name}" for name in arrays["names"].tolist()]
    pca, codes = arrays["pca"], arrays["codes"]
    images = images_of("coil20", np.arange(len(codes)))
    whole = Scatter("PCA, all images", pca[:, 0], pca[:, 1], codes, *PCA_AXES, images=images)
    panels = subspace_panels(arrays, codes, lambda name, n: f"{name}, {n} images", images)
    return {
        "subspaces": scatters(panels, names, columns=2, size=4),
        "pca": scatters([whole], names, columns=1),
    }


_SIZE = {"n_components": 4, "n_active": 2, "n_neighbors": 15, "seed": 0}

STUDY = Study(
    name="coil20",
    title="COIL-20 in two dimensions",
    paper=(
        "The paper shows COIL-20 by PCA and, K = 4 and L = 2, in the subspaces of aPPCA, and says "
        "that these reduce the crowding of PCA and that objects low on component 2 are narrow."
    ),
    revision=2,
    sizes=dict.fromkeys(("quick", "default", "full"), _SIZE),
    takes=dict.fromkeys(("quick", "default", "full"), 3.0),
    run=run,
    figures=figures,
)
