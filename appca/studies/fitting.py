"""Shared parts of experiments: a fitted aPPCA, its subspaces as panels beside PCA, images."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from appca.analysis.map_quality import crowding
from appca.analysis.subspaces import Subspace, principal_scores, ranked, title
from appca.data.dataset import Dataset
from appca.data.folders import folder_of_files
from appca.data.sources import are_here, load
from appca.studies.study import Claim, Options, Report, Row, checked
from appca.words import InputError, percent

if TYPE_CHECKING:
    from appca.models.loop import Callback, Progress
    from appca.plots.studies import Scatter

CLEARLY = 0.01  # accuracy
PCA_AXES = ("principal component 1", "principal component 2")


class PanelFit(NamedTuple):
    """Scores and components of a fitted model."""

    scores: np.ndarray  # (N, K)
    active: np.ndarray  # (N, K) bool
    components: np.ndarray  # (K, D)

    @property
    def subspaces(self) -> list[Subspace]:
        """The used subspaces, in the order of their components."""
        return sorted(ranked(self.active), key=lambda subspace: subspace.components)


def fit(
    Y: np.ndarray, options: Options, report: Report, start: float = 0.0, end: float = 1.0
) -> PanelFit:
    """Fit aPPCA by EM to Y (N, D) and describe all rows.

    The options are n_components, n_active and seed; `report` gets shares from `start` to `end`.
    """
    from appca.models.adaptive_ppca import AdaptivePPCA

    model = AdaptivePPCA(
        n_components=options["n_components"],
        n_active=options["n_active"],
        random_state=options["seed"],
        callback=reporting("fitting aPPCA", report, start, end),
    ).fit(Y)
    described = model.describe(Y)
    return PanelFit(described.scores, described.active, np.asarray(model.components_))


def reporting(stage: str, report: Report, start: float = 0.0, end: float = 1.0) -> "Callback":
    """Report every iteration of a fit, between two shares; an exception ends the fit."""

    def callback(progress: "Progress") -> None:
        share = min(progress.iteration / max(progress.max_iter, 1), 1.0)
        report(stage, start + (end - start) * share)

    report(stage, start)
    return callback


def codes_of(column: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Names of the classes, numbers as numbers, and each row's place among them."""
    texts = np.asarray(column).astype(str)
    names = sorted(set(texts.tolist()), key=lambda text: (len(text), text))
    place = {name: code for code, name in enumerate(names)}
    return names, np.array([place[text] for text in texts.tolist()])


def subspace_panels(
    arrays: Mapping[str, np.ndarray],
    codes: np.ndarray,
    named: Callable[[str, int], str],
    images: np.ndarray | None = None,
) -> "list[Scatter]":
    """Draw each subspace by its first and last component, with images (N, h, w) if there are any.

    `named` makes a panel's title of the subspace's and its number of rows. The arrays are scores
    and active (N, K); `codes` (N,) are the classes.
    """
    from appca.plots.studies import Scatter

    panels = []
    for subspace in PanelFit(arrays["scores"], arrays["active"], np.empty(0)).subspaces:
        first, last = subspace.components[0], subspace.components[-1]
        scores, rows = arrays["scores"][subspace.rows], subspace.rows
        name, drawn = named(title(subspace.components), len(rows)), codes[rows]
        axes = f"component {first + 1}", f"component {last + 1}"
        panel = Scatter(name, scores[:, first], scores[:, last], drawn, *axes)
        panels.append(panel._replace(images=None if images is None else images[rows]))
    return panels


def crowded_panels(
    Y: np.ndarray, fitted: PanelFit, codes: np.ndarray, names: list[str], **how: int
) -> tuple[list[Row], dict[str, np.ndarray]]:
    """Return one line a panel, k-NN accuracy in it and of the same rows in PCA; and the arrays.

    `how` are settings of `crowding`; the arrays are those that figures of the panels are made of.
    """
    principal, _ = principal_scores(Y, 2)
    crowdings = crowding(fitted.scores, fitted.active, principal, codes, **how)
    rows: list[Row] = [
        {
            "subspace": title(panel.components),
            "rows": len(panel.rows),
            "classes": len(np.unique(codes[panel.rows])),
            "panel_accuracy": inside.value,
            "panel_error": inside.error,
            "pca_same_rows": same.value,
            "pca_all_rows": every.value,
        }
        for panel, inside, same, every in sorted(crowdings, key=lambda row: row[0].components)
    ]
    arrays = {"scores": fitted.scores.astype(np.float32), "active": fitted.active}
    return rows, arrays | {"pca": principal, "codes": codes, "names": np.array(names)}


def crowding_claim(rows: list[Row]) -> Claim:
    """Judge whether panels of subspaces keep classes apart better than PCA, by more than `CLEARLY`.

    It holds in part if only the fewer rows of a panel make the difference: against PCA's picture of
    all rows, but not against that of the same rows.
    """
    weights = [row["rows"] for row in rows]
    panel, same, whole = (
        float(np.average([row[name] for row in rows], weights=weights))
        for name in ("panel_accuracy", "pca_same_rows", "pca_all_rows")
    )
    measured = (
        f"{percent(panel, 1)} of classes read off the nearest rows, {percent(same, 1)} in PCA's "
        f"picture of the same rows, {percent(whole, 1)} in that of all"
    )
    less = panel > same + CLEARLY
    tests = [less, less or panel > whole + CLEARLY]
    number = (percent(panel), f"read right, PCA {percent(same)}")
    return checked("The subspaces are less crowded than PCA", measured, tests, number=number)


def images_of(source: str, rows: np.ndarray) -> np.ndarray | None:
    """Return images (m, h, w) of rows (m,) of the "mnist" or "coil20" on this machine, or None.

    Nothing is downloaded for a figure.
    """
    if not are_here(source):
        return None
    try:
        copy = _opened(source, str(folder_of_files()))
    except InputError:  # a damaged file: the figure is drawn without images
        return None
    return copy.images(rows) if rows.max(initial=-1) < copy.n_rows else None


@lru_cache(maxsize=2)
def _opened(source: str, folder: str) -> Dataset:
    if source == "mnist":
        return load(source, data_folder=folder, n=10_000)
    return load(source, data_folder=folder)
