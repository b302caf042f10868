"""COIL-20 by UMAP, coloured by the aPPCA projection: likeness that UMAP leaves out."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from appca.analysis.explore.class_neighbours import ClassNeighbour, nearest_classes
from appca.analysis.explore.projection import principal_scores, rgb
from appca.analysis.explore.subspaces import supports
from appca.analysis.explore.umap import EmbeddingConfig, EmbeddingStore, embed
from appca.data.preprocessing import Preprocessing
from appca.studies.claims import CheckedClaim, checked
from appca.studies.experiments.coil20 import opened
from appca.studies.parts.fitting import fit
from appca.studies.study import Figures, Options, Outcome, Report, Row, Study

MANY = 0.25  # share of the objects from which likeness is said to be left out


def run(options: Options, report: Report, processes: int = 1) -> Outcome:
    """Lay out by UMAP, fit aPPCA, and find each object's nearest other object in both."""
    dataset, Y, names, codes = opened(report)
    fitted = fit(Y, options, report, 0.05, 0.2)
    config = EmbeddingConfig(
        dataset.digest,
        Preprocessing(divide=255.0).to_dict(),
        n_neighbors=options["n_neighbors"],
        random_state=options["seed"],
    )
    with tempfile.TemporaryDirectory() as folder:
        store = EmbeddingStore(Path(folder))
        layout = embed(
            dataset,
            config,
            store,
            report=lambda stage, share: report(f"UMAP: {stage}", 0.2 + 0.7 * share),
        ).coordinates
    principal = principal_scores(Y, 3)[0]
    neighbours = {
        "appca": nearest_classes(fitted.components, fitted.scores, fitted.active, codes, names),
        "umap": nearest_in(layout, codes, names),
        "pca": nearest_in(principal, codes, names),
        "pixels": nearest_in(Y, codes, names),
    }
    rows = [_row(names[c], {key: value[c] for key, value in neighbours.items()}) for c in range(20)]
    arrays = {"umap": layout, "codes": codes, "names": np.array(names)}
    arrays["appca_rgb"] = rgb(fitted.scores, fitted.active)
    arrays["pca_rgb"] = rgb(principal, np.ones(principal.shape, dtype=bool))
    subspace, titles = supports(fitted.active)
    arrays |= {"subspace": subspace, "subspaces": np.array(titles)}
    return Outcome({"neighbours": rows}, arrays, claims(rows))


def nearest_in(E: np.ndarray, codes: np.ndarray, names: Sequence[str]) -> list[ClassNeighbour]:
    """Nearest other classes in one picture of all rows, by plain distance."""
    return nearest_classes(np.eye(E.shape[1]), E, np.ones(E.shape, dtype=bool), codes, names)


def _row(name: str, neighbours: dict[str, ClassNeighbour]) -> Row:
    row: Row = {"object": name}
    for key, neighbour in neighbours.items():
        row[key] = neighbour.other
        row[f"{key}_share"] = neighbour.share
    return row


def claims(rows: list[Row]) -> list[CheckedClaim]:
    """Judge by each object's nearest other object: by aPPCA, on the map, and in the pixels."""
    n, differs = len(rows), sum(row["appca"] != row["umap"] for row in rows)
    appca, umap, pca = (
        sum(row[key] == row["pixels"] for row in rows) for key in ("appca", "umap", "pca")
    )
    other = f"{differs} of {n} objects have another nearest object"
    same = f"aPPCA names that of the pixels for {appca} of {n}, UMAP for {umap}, PCA for {pca}"
    return [
        checked(
            "The colours show likeness that UMAP leaves out",
            other,
            [differs > n * MANY],
            number=(f"{differs} of {n}", "new nearest objects"),
        ),
        checked(
            "UMAP and PCA lose likeness that aPPCA keeps",
            same,
            [appca > umap, appca > pca],
            number=(f"{appca} of {n}", f"nearest right, UMAP {umap}"),
        ),
    ]


def figures(outcome: Outcome) -> Figures:
    """Draw the same map three times: by object, by aPPCA with a marker a subspace, by PCA."""
    from appca.plots.paper.study_panels import SYMBOLS, Scatter, scatters

    arrays = outcome.arrays
    x, y, codes = arrays["umap"][:, 0], arrays["umap"][:, 1], arrays["codes"]
    axes = ("UMAP 1", "UMAP 2")
    markers = ", ".join(
        f"{SYMBOLS[place % len(SYMBOLS)]} {name}"
        for place, name in enumerate(arrays["subspaces"].tolist())
    )
    names = [f"object {name}" for name in arrays["names"].tolist()]
    number = arrays["subspace"]
    scatter = Scatter(
        f"Coloured by the aPPCA projection: {markers}",
        x,
        y,
        codes,
        *axes,
        symbols=number,
        rgb=arrays["appca_rgb"],
    )
    pca = Scatter("Coloured by three principal components", x, y, codes, *axes)
    return {
        "appca": scatters([scatter], names, columns=1, size=7),
        "others": scatters(
            [
                Scatter("Coloured by object", x, y, codes, *axes),
                pca._replace(rgb=arrays["pca_rgb"]),
            ],
            names,
            columns=2,
        ),
    }


_SIZE = {"n_components": 4, "n_active": 3, "n_neighbors": 15, "seed": 0}

STUDY = Study(
    name="umap",
    title="UMAP coloured by the aPPCA projection",
    paper=(
        "The paper colours a UMAP of COIL-20 by the aPPCA projection, K = 4 and L = 3, with one "
        "marker a subspace, and says that this shows likeness of different objects that UMAP "
        "leaves out."
    ),
    revision=1,
    sizes=dict.fromkeys(("quick", "default", "full"), _SIZE),
    takes=dict.fromkeys(("quick", "default", "full"), 30.0),
    run=run,
    columns=("object", "appca", "appca_share", "umap", "umap_share", "pca", "pixels"),
    figures=figures,
)
