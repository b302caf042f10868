"""Figures 8 to 10: COIL-20 by PCA, aPPCA's subspaces and UMAP, and similar objects."""

import tempfile
from itertools import combinations
from pathlib import Path
from types import ModuleType

import numpy as np

from appca.analysis.components import principal_scores, supports, title
from appca.analysis.map_quality import nearest_classes
from appca.analysis.rows import Mixture, SimilarRows, mixtures, similar
from appca.analysis.umap import EmbeddingConfig, EmbeddingStore, embed
from appca.data.dataset import Dataset, categories
from appca.data.preprocessing import Preprocessing
from appca.data.sources import load
from appca.studies.claims import Claim, checked, share
from appca.studies.fitting import PanelFit, crowded_panels, fit, images_of, panels
from appca.studies.study import Figures, Options, Outcome, Report, Row, Study, sized
from appca.words import fixed

LIT = 32  # grey levels; darker pixels are background
STRONG = 0.3  # minimum |r| of a component that represents the width
MANY = 0.25  # minimum share of objects that supports the claim that the map lacks similarity
SHOWN, IMAGES = 12, 12  # number of groups drawn, and of images per group
# Objects that the paper mentions, by their numbers in COIL-20.
NAMED = {
    "The cat and a bottle": ({"4"}, {"8", "16"}),
    "The duck and a wooden part": ({"1"}, {"2", "7", "11"}),
}


def opened(report: Report) -> tuple[Dataset, np.ndarray, list[str], np.ndarray]:
    """Return the data set, rows between 0 and 1, object names, and each row's index into them."""
    report("opening COIL-20", 0.0)
    dataset = load("coil20")
    return dataset, dataset.X.astype(np.float64) / 255.0, *categories(dataset.labels["object"])


def run(options: Options, report: Report, processes: int = 1) -> Outcome:
    """Fit, compare the crowding with PCA's, and correlate every component with the width."""
    dataset, Y, names, codes = opened(report)
    fitted = fit(Y, options, report, 0.2, 0.6)
    report("comparing neighbours", 0.7)
    how = {"n_neighbors": options["n_neighbors"], "most": 12}
    rows, arrays, crowding_claim = crowded_panels(Y, fitted, codes, names, **how)
    wide = widths(fitted, width(dataset.images(np.arange(len(Y)))), codes)
    return Outcome({"panels": rows, "width": wide}, arrays, [crowding_claim, width_claim(wide)])


def width(images: np.ndarray) -> np.ndarray:
    """Return the width (N,) of the lit part of uint8 images (N, h, w), relative to their width.

    The lit part extends from the first to the last lit column.
    """
    lit: np.ndarray = np.any(images >= LIT, axis=1)
    first, last = lit.argmax(axis=1), lit.shape[1] - lit[:, ::-1].argmax(axis=1)
    return np.asarray(np.where(lit.any(axis=1), last - first, 0) / lit.shape[1])


def widths(fitted: PanelFit, values: np.ndarray, codes: np.ndarray) -> list[Row]:
    """Correlate each component's scores with the width, over the rows that use the component."""

    def correlation(a: np.ndarray, b: np.ndarray) -> float | None:
        return float(np.corrcoef(a, b)[0, 1]) if len(a) >= 3 and np.ptp(a) and np.ptp(b) else None

    table: list[Row] = []
    for k, used in enumerate(fitted.active.T):
        score, wide = fitted.scores[used, k], values[used]
        # Views of an object are not independent, but the objects' means nearly are.
        objects, of = np.unique(codes[used], return_inverse=True)
        means = [np.bincount(of, value) / np.bincount(of) for value in (score, wide)]
        low = score <= np.median(score)
        row: Row = {"component": k + 1, "rows": len(score), "correlation": correlation(score, wide)}
        row |= {"objects": len(objects), "correlation_of_objects": correlation(*means)}
        row |= {"width_low_half": float(wide[low].mean())}
        row |= {"width_high_half": float(wide[~low].mean()), "sd": float(wide.std(ddof=1))}
        table.append(row)
    return table


def width_claim(wide: list[Row]) -> Claim:
    """Judge by |r| of component 2; partly by others, because their order is arbitrary."""
    strength = {row["component"]: abs(row["correlation"] or 0.0) for row in wide}
    second, most = strength.get(2, 0.0), max(wide, key=lambda row: strength[row["component"]])
    measured = f"strongest correlation: component {most['component']}, r = "
    measured += f"{fixed(most['correlation'] or 0.0)} over {most['rows']} images, "
    measured += f"{fixed(most['correlation_of_objects'] or 0.0)} over {most['objects']} objects; "
    measured += f"component 2: |r| = {second:.2f}"
    tests = [second >= STRONG, max(strength.values()) >= STRONG]
    number = (fixed(most["correlation"] or 0.0), f"r of width, component {most['component']}")
    return checked("Component 2 measures the width of the object", measured, tests, number=number)


def _figures(plots: ModuleType, outcome: Outcome) -> Figures:
    arrays, codes = outcome.arrays, outcome.arrays["codes"]
    names = [f"object {name}" for name in arrays["names"].tolist()]
    images = images_of("coil20", np.arange(len(codes)))
    *subspaces, pca = panels(plots, arrays, codes, "{}, {} images".format, "images", images)
    return {
        "subspaces": plots.scatters(subspaces, names, columns=2, size=4),
        "pca": plots.scatters([pca], names, columns=1),
    }


STUDY = Study(
    "coil20",
    "Figure 8: COIL-20 in two dimensions",
    "The paper shows COIL-20 by PCA and in the subspaces of aPPCA (K = 4, L = 2). It states that "
    "these reduce the crowding of PCA and that objects with low scores on component 2 are narrow.",
    revision=2,
    **sized((3.0,) * 3, {"n_components": 4, "n_active": 2, "n_neighbors": 15, "seed": 0}),
    run=run,
    draw=_figures,
)


def rgb(scores: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Return the colour (N, 3), uint8, of every row, similar for near rows of a panel.

    Channel j (red, green, blue) is the score on the row's j-th active component of the first three,
    as a rank among all rows, scaled to 0.01 .. 0.99. `scores` and `active` are (N, K).
    """
    from scipy.stats import rankdata

    position, channels = np.cumsum(active, axis=1), np.full((len(scores), 3), 0.5)
    for j in range(3):
        of_row = active & (position == j + 1)
        has = of_row.any(axis=1)
        values = scores[has, of_row[has].argmax(axis=1)]
        if len(values) > 1:
            channels[has, j] = 0.01 + 0.98 * (rankdata(values) - 1) / (len(values) - 1)
    return np.round(255 * channels).astype(np.uint8)


def run_umap(options: Options, report: Report, processes: int = 1) -> Outcome:
    """Embed by UMAP, fit aPPCA, and find each object's nearest other object in both."""
    dataset, Y, names, codes = opened(report)
    fitted = fit(Y, options, report, 0.05, 0.2)
    how = {"n_neighbors": options["n_neighbors"], "random_state": options["seed"]}
    config = EmbeddingConfig(dataset.digest, Preprocessing(divide=255.0).to_dict(), **how)
    with tempfile.TemporaryDirectory() as folder:
        store = EmbeddingStore(Path(folder))
        layout = embed(
            dataset, config, store, report=lambda stage, share: report(stage, 0.2 + 0.7 * share)
        ).coordinates
    principal = principal_scores(Y, 3)[0]
    of_appca = fitted.components, fitted.scores, fitted.active
    neighbours = {"appca": nearest_classes(*of_appca, codes, names)}
    for key, E in (("umap", layout), ("pca", principal), ("pixels", Y)):  # pictures of all rows
        picture = np.eye(E.shape[1]), E, np.ones(E.shape, dtype=bool)
        neighbours[key] = nearest_classes(*picture, codes, names)
    rows: list[Row] = [{"object": name} for name in names]
    for key, nearest in neighbours.items():
        for row, (other, votes) in zip(rows, nearest, strict=True):
            row |= {key: other, f"{key}_share": votes}
    subspace, titles = supports(fitted.active)
    arrays = {"umap": layout, "codes": codes, "names": np.array(names), "subspace": subspace}
    arrays |= {"subspaces": np.array(titles), "appca_rgb": rgb(fitted.scores, fitted.active)}
    arrays["pca_rgb"] = rgb(principal, np.ones(principal.shape, dtype=bool))
    return Outcome({"neighbours": rows}, arrays, umap_claims(rows))


def umap_claims(rows: list[Row]) -> list[Claim]:
    """Judge by each object's nearest other object, in aPPCA, on the map, and in the pixels."""
    n, differs = len(rows), sum(row["appca"] != row["umap"] for row in rows)
    appca, umap, pca = (sum(r[k] == r["pixels"] for r in rows) for k in ("appca", "umap", "pca"))
    return [
        checked(
            "The colours show similarities that UMAP misses",
            f"the nearest object in aPPCA is not that in UMAP for {differs} of {n} objects",
            [differs > n * MANY],
            number=(f"{differs} of {n}", "new nearest objects"),
        ),
        checked(
            "UMAP and PCA lose similarities that aPPCA preserves",
            f"the nearest object is that in pixels for {appca} of {n} objects; UMAP {umap}, "
            f"PCA {pca}",
            [appca > umap, appca > pca],
            number=(f"{appca} of {n}", f"nearest right, UMAP {umap}"),
        ),
    ]


def _umap_figures(plots: ModuleType, outcome: Outcome) -> Figures:
    arrays = outcome.arrays
    names = [f"object {name}" for name in arrays["names"].tolist()]
    subspaces = enumerate(arrays["subspaces"].tolist())
    markers = ", ".join(f"{plots.SYMBOLS[n % len(plots.SYMBOLS)]} {name}" for n, name in subspaces)
    x, y = arrays["umap"].T
    whole = plots.Scatter("Coloured by object", x, y, arrays["codes"], "UMAP 1", "UMAP 2")
    by_appca = whole._replace(symbols=arrays["subspace"], rgb=arrays["appca_rgb"])
    by_appca = by_appca._replace(title=f"Coloured by the aPPCA projection: {markers}")
    by_pca = whole._replace(title="Coloured by three principal components", rgb=arrays["pca_rgb"])
    return {
        "appca": plots.scatters([by_appca], names, columns=1, size=7),
        "others": plots.scatters([whole, by_pca], names, columns=2),
    }


UMAP = Study(
    "umap",
    "Figure 9: UMAP coloured by the aPPCA projection",
    "The paper colours a UMAP of COIL-20 by the aPPCA projection (K = 4, L = 3), with one "
    "marker per subspace. It states that this shows similarities between objects that UMAP "
    "misses.",
    **sized((30.0,) * 3, {"n_components": 4, "n_active": 3, "n_neighbors": 15, "seed": 0}),
    run=run_umap,
    columns=("object", "appca", "appca_share", "umap", "umap_share", "pca", "pixels"),
    draw=_umap_figures,
)


def run_similar(options: Options, report: Report, processes: int = 1) -> Outcome:
    """Fit, cluster the projections in each subspace, and count the objects that groups join."""
    _, Y, names, codes = opened(report)
    fitted = fit(Y, options, report, 0.2, 0.5)
    report("grouping similar images", 0.6)
    size, seed = options["group_size"], options["seed"]
    groups = similar(fitted.scores, fitted.components, fitted.subspaces, size, seed)
    mixed = mixtures(groups, codes, len(names))
    rows: list[Row] = []
    arrays: dict[str, np.ndarray] = {}
    shown: list[int] = []
    for place, (group, objects) in enumerate(mixed):
        counts = ", ".join(f"object {names[c]} ({objects.counts[c]})" for c in objects.joined)
        row: Row = {"subspace": title(group.components), "rows": len(group.rows)}
        row |= {"objects": len(objects.joined), "joined": counts}
        rows.append(row | {"effective_objects": objects.effective, "spread": group.spread})
        if len(objects.joined) > 1 and len(shown) < SHOWN:
            arrays[f"rows_{len(shown):02d}"] = spread(group, codes)
            shown.append(place)
    arrays["shown"] = np.array(shown, dtype=int)
    return Outcome({"groups": rows}, arrays, similar_claims([x for _, x in mixed], names))


def spread(group: SimilarRows, codes: np.ndarray, most: int = IMAGES) -> np.ndarray:
    """Return the rows nearest to a group's centre, taken from its objects in turn."""
    of_rows = codes[group.rows]
    turn = np.array([(of_rows[:place] == code).sum() for place, code in enumerate(of_rows)])
    taken = np.lexsort((of_rows, turn))[:most]
    return np.asarray(group.rows[taken[np.lexsort((turn[taken], of_rows[taken]))]])


def similar_claims(mixtures: list[Mixture], names: list[str]) -> list[Claim]:
    """Judge by whether any group joins distinct objects, and by the pairs that the paper names."""
    joined = [{names[c] for c in mixed.joined} for mixed in mixtures]
    several = [len(group) > 1 for group in joined]
    pairs = len({pair for group in joined for pair in combinations(sorted(group), 2)})
    measured = f"{share(several)} clusters contain several objects, {pairs} different pairs"
    number = (share(several), "clusters mix objects")
    made = [checked("Different objects share a cluster", measured, [any(several)], number=number)]
    for what, (first, other) in NAMED.items():
        both = [bool(group & first and group & other) for group in joined]
        measured, number = f"in {share(both)} clusters", (share(both), what.lower())
        made.append(checked(f"{what} share a cluster", measured, [any(both)], number=number))
    return made


def _similar_figures(plots: ModuleType, outcome: Outcome) -> Figures:
    rows, named = outcome.tables["groups"], {}
    for number, place in enumerate(outcome.arrays["shown"]):
        row, images = rows[place], images_of("coil20", outcome.arrays[f"rows_{number:02d}"])
        if images is not None:
            where = f"{number + 1}. Subspace {row['subspace']}, {row['rows']} images"
            named[f"{where}: {row['joined']}"] = images
    pictures = {"groups": plots.sheets(named, columns=IMAGES, zoom=1.8)} if named else {}
    return pictures | {"mixtures": plots.mixed_bars(rows)}


SIMILAR = Study(
    "similar",
    "Figure 10: Different objects that look alike",
    "The paper clusters the aPPCA projections of COIL-20 by k-means within the subspaces. It "
    "shows different objects in one cluster, such as the lucky cat and a bottle, or the duck and "
    "a wooden part.",
    revision=2,
    **sized((4.0,) * 3, {"n_components": 4, "n_active": 3, "group_size": 20, "seed": 0}),
    run=run_similar,
    columns=("subspace", "rows", "objects", "effective_objects", "spread", "joined"),
    draw=_similar_figures,
)
