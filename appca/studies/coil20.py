"""Figures 8 to 10: COIL-20 by PCA, in the subspaces of aPPCA, by UMAP, and similar objects."""

import tempfile
from pathlib import Path

import numpy as np

from appca.analysis.components import width
from appca.analysis.map_quality import nearest_classes
from appca.analysis.rows import Mixture, SimilarRows, by_mixture, joined_pairs, mixture, similar
from appca.analysis.subspaces import principal_scores, rgb, supports, title
from appca.analysis.umap import EmbeddingConfig, EmbeddingStore, embed
from appca.data.dataset import Dataset
from appca.data.preprocessing import Preprocessing
from appca.data.sources import load
from appca.studies.fitting import (
    PCA_AXES,
    PanelFit,
    codes_of,
    crowded_panels,
    crowding_claim,
    fit,
    images_of,
    subspace_panels,
)
from appca.studies.study import (
    Claim,
    Figures,
    Options,
    Outcome,
    Report,
    Row,
    Study,
    checked,
    one_size,
    share,
)
from appca.words import fixed

STRONG = 0.3  # |r| from which a component counts as the width
MANY = 0.25  # share of the objects from which the map counts as lacking likeness
SHOWN, IMAGES = 12, 12  # groups drawn, and images of each
# What the paper names, by the numbers of COIL-20.
NAMED = {
    "The cat and a bottle": ({"4"}, {"8", "16"}),
    "The duck and a wooden part": ({"1"}, {"2", "7", "11"}),
}


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
    report("comparing neighbours", 0.7)
    how = {"n_neighbors": options["n_neighbors"], "most": 12}
    rows, arrays = crowded_panels(Y, fitted, codes, names, **how)
    wide = widths(fitted, width(dataset.images(np.arange(len(Y)))), codes)
    claims = [crowding_claim(rows), width_claim(wide)]
    return Outcome({"panels": rows, "width": wide}, arrays, claims)


def widths(fitted: PanelFit, values: np.ndarray, codes: np.ndarray) -> list[Row]:
    """Correlation of each component's scores with the width, over the rows that use it."""

    def correlation(a: np.ndarray, b: np.ndarray) -> float | None:
        varies = len(a) >= 3 and np.ptp(a) and np.ptp(b)
        return float(np.corrcoef(a, b)[0, 1]) if varies else None

    rows_of_table: list[Row] = []
    for k, used in enumerate(fitted.active.T):
        score, wide, objects = fitted.scores[used, k], values[used], codes[used]
        # Views of one object are not independent; their means are nearly so.
        inside = [objects == code for code in np.unique(objects)]
        means = [np.array([value[of].mean() for of in inside]) for value in (score, wide)]
        low = score <= np.median(score)
        rows_of_table.append(
            {
                "component": k + 1,
                "rows": len(score),
                "correlation": correlation(score, wide),
                "objects": len(inside),
                "correlation_of_objects": correlation(*means),
                "width_low_half": float(wide[low].mean()),
                "width_high_half": float(wide[~low].mean()),
                "sd": float(wide.std(ddof=1)),
            }
        )
    return rows_of_table


def width_claim(wide: list[Row]) -> Claim:
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


def object_names(outcome: Outcome) -> list[str]:
    """Names of the classes in a legend."""
    return [f"object {name}" for name in outcome.arrays["names"].tolist()]


def figures(outcome: Outcome) -> Figures:
    """Each subspace, and PCA; with images where the person has them."""
    from appca.plots.studies import Scatter, scatters

    arrays, names = outcome.arrays, object_names(outcome)
    pca, codes = arrays["pca"], arrays["codes"]
    images = images_of("coil20", np.arange(len(codes)))
    whole = Scatter("PCA, all images", pca[:, 0], pca[:, 1], codes, *PCA_AXES, images=images)
    panels = subspace_panels(arrays, codes, lambda name, n: f"{name}, {n} images", images)
    return {
        "subspaces": scatters(panels, names, columns=2, size=4),
        "pca": scatters([whole], names, columns=1),
    }


STUDY = Study(
    name="coil20",
    title="COIL-20 in two dimensions",
    paper=(
        "The paper shows COIL-20 by PCA and, K = 4 and L = 2, in the subspaces of aPPCA, and says "
        "that these reduce the crowding of PCA and that objects low on component 2 are narrow."
    ),
    revision=2,
    **one_size({"n_components": 4, "n_active": 2, "n_neighbors": 15, "seed": 0}, 3.0),
    run=run,
    figures=figures,
)


def run_umap(options: Options, report: Report, processes: int = 1) -> Outcome:
    """Lay out by UMAP, fit aPPCA, and find each object's nearest other object in both."""
    dataset, Y, names, codes = opened(report)
    fitted = fit(Y, options, report, 0.05, 0.2)
    how = {"n_neighbors": options["n_neighbors"], "random_state": options["seed"]}
    config = EmbeddingConfig(dataset.digest, Preprocessing(divide=255.0).to_dict(), **how)

    def tick(stage: str, share: float) -> None:
        report(f"UMAP: {stage}", 0.2 + 0.7 * share)

    with tempfile.TemporaryDirectory() as folder:
        layout = embed(dataset, config, EmbeddingStore(Path(folder)), report=tick).coordinates
    principal = principal_scores(Y, 3)[0]
    of_appca = fitted.components, fitted.scores, fitted.active
    neighbours = {"appca": nearest_classes(*of_appca, codes, names)}
    for key, E in (("umap", layout), ("pca", principal), ("pixels", Y)):  # one picture of all rows
        picture = np.eye(E.shape[1]), E, np.ones(E.shape, dtype=bool)
        neighbours[key] = nearest_classes(*picture, codes, names)
    rows: list[Row] = [{"object": name} for name in names]
    for key, nearest in neighbours.items():
        for row, (other, votes) in zip(rows, nearest, strict=True):
            row |= {key: other, f"{key}_share": votes}
    arrays = {"umap": layout, "codes": codes, "names": np.array(names)}
    arrays["appca_rgb"] = rgb(fitted.scores, fitted.active)
    arrays["pca_rgb"] = rgb(principal, np.ones(principal.shape, dtype=bool))
    subspace, titles = supports(fitted.active)
    arrays |= {"subspace": subspace, "subspaces": np.array(titles)}
    return Outcome({"neighbours": rows}, arrays, umap_claims(rows))


def umap_claims(rows: list[Row]) -> list[Claim]:
    """Judge by each object's nearest other object: by aPPCA, on the map, and in the pixels."""
    n, differs = len(rows), sum(row["appca"] != row["umap"] for row in rows)
    appca, umap, pca = (
        sum(row[key] == row["pixels"] for row in rows) for key in ("appca", "umap", "pca")
    )
    return [
        checked(
            "The colours show likeness that UMAP leaves out",
            f"{differs} of {n} objects have another nearest object",
            [differs > n * MANY],
            number=(f"{differs} of {n}", "new nearest objects"),
        ),
        checked(
            "UMAP and PCA lose likeness that aPPCA keeps",
            f"aPPCA names that of the pixels for {appca} of {n}, UMAP for {umap}, PCA for {pca}",
            [appca > umap, appca > pca],
            number=(f"{appca} of {n}", f"nearest right, UMAP {umap}"),
        ),
    ]


def umap_figures(outcome: Outcome) -> Figures:
    """Draw the same map three times: by object, by aPPCA with a marker a subspace, by PCA."""
    from appca.plots.studies import SYMBOLS, Scatter, scatters

    arrays, names = outcome.arrays, object_names(outcome)
    markers = ", ".join(
        f"{SYMBOLS[place % len(SYMBOLS)]} {name}"
        for place, name in enumerate(arrays["subspaces"].tolist())
    )
    x, y = arrays["umap"][:, 0], arrays["umap"][:, 1]
    whole = Scatter("Coloured by object", x, y, arrays["codes"], "UMAP 1", "UMAP 2")
    by_appca = whole._replace(
        title=f"Coloured by the aPPCA projection: {markers}",
        symbols=arrays["subspace"],
        rgb=arrays["appca_rgb"],
    )
    by_pca = whole._replace(title="Coloured by three principal components", rgb=arrays["pca_rgb"])
    return {
        "appca": scatters([by_appca], names, columns=1, size=7),
        "others": scatters([whole, by_pca], names, columns=2),
    }


UMAP = Study(
    name="umap",
    title="UMAP coloured by the aPPCA projection",
    paper=(
        "The paper colours a UMAP of COIL-20 by the aPPCA projection, K = 4 and L = 3, with one "
        "marker a subspace, and says that this shows likeness of different objects that UMAP "
        "leaves out."
    ),
    revision=1,
    **one_size({"n_components": 4, "n_active": 3, "n_neighbors": 15, "seed": 0}, 30.0),
    run=run_umap,
    columns=("object", "appca", "appca_share", "umap", "umap_share", "pca", "pixels"),
    figures=umap_figures,
)


def run_similar(options: Options, report: Report, processes: int = 1) -> Outcome:
    """Fit, group the projections inside each subspace, and count what objects they join."""
    _, Y, names, codes = opened(report)
    fitted = fit(Y, options, report, 0.2, 0.5)
    report("grouping similar images", 0.6)
    size, seed = options["group_size"], options["seed"]
    groups = similar(fitted.scores, fitted.components, fitted.subspaces, size, seed)
    mixtures = [mixture(group, codes, len(names)) for group in groups]
    order = by_mixture(groups, mixtures)
    rows: list[Row] = []
    for group, mixed in ((groups[place], mixtures[place]) for place in order):
        counts = ", ".join(f"object {names[c]} ({mixed.counts[c]})" for c in mixed.joined)
        row: Row = {"subspace": title(group.components), "rows": len(group.rows)}
        row |= {"objects": len(mixed.joined), "joined": counts}
        row |= {"effective_objects": float(mixed.effective), "spread": float(group.spread)}
        rows.append(row)
    shown = [place for place in order if len(mixtures[place].joined) > 1][:SHOWN]
    arrays = {
        f"rows_{number:02d}": spread(groups[place], codes) for number, place in enumerate(shown)
    }
    arrays["shown"] = np.array([order.index(place) for place in shown], dtype=int)
    return Outcome({"groups": rows}, arrays, similar_claims(mixtures, names))


def spread(group: SimilarRows, codes: np.ndarray, most: int = IMAGES) -> np.ndarray:
    """Rows of a group, nearest its middle, taken from its objects in turn, object by object."""
    of_rows = codes[group.rows]
    turn = np.array([(of_rows[:place] == code).sum() for place, code in enumerate(of_rows)])
    taken = np.lexsort((of_rows, turn))[:most]
    return np.asarray(group.rows[taken[np.lexsort((turn[taken], of_rows[taken]))]])


def similar_claims(mixtures: list[Mixture], names: list[str]) -> list[Claim]:
    """Judge by whether any group joins different objects, and the pairs that the paper names."""
    joined = [{names[c] for c in mixed.joined} for mixed in mixtures]
    several, pairs = [len(first) > 1 for first in joined], len(joined_pairs(mixtures))
    measured = f"{share(several)} groups join several objects, {pairs} different pairs"
    number = (share(several), "groups mix objects")
    made = [checked("Different objects fall together", measured, [any(several)], number=number)]
    for what, (first, other) in NAMED.items():
        both = [bool(group & first and group & other) for group in joined]
        number = (share(both), what.lower())
        measured = f"in {share(both)} groups"
        made.append(checked(f"{what} fall together", measured, [any(both)], number=number))
    return made


def similar_figures(outcome: Outcome) -> Figures:
    """How many objects each group mixes; images of the most even ones where the person has them."""
    from appca.plots.studies import mixed_bars, sheets

    rows, named = outcome.tables["groups"], {}
    for number, row in enumerate((rows[place] for place in outcome.arrays["shown"]), start=1):
        images = images_of("coil20", outcome.arrays[f"rows_{number - 1:02d}"])
        if images is not None:
            place = f"{number}. Subspace {row['subspace']}, {row['rows']} images"
            named[f"{place}: {row['joined']}"] = images
    pictures = {"groups": sheets(named, columns=IMAGES, zoom=1.8)} if named else {}
    return pictures | {"mixtures": mixed_bars(rows)}


SIMILAR = Study(
    name="similar",
    title="Different objects that look alike",
    paper=(
        "The paper groups the aPPCA projections of COIL-20 by k-means inside the subspaces and "
        "shows different objects that fall together, such as the lucky cat and a bottle, or the "
        "duck and a wooden part."
    ),
    revision=2,
    **one_size({"n_components": 4, "n_active": 3, "group_size": 20, "seed": 0}, 4.0),
    run=run_similar,
    columns=("subspace", "rows", "objects", "effective_objects", "spread", "joined"),
    figures=similar_figures,
)
