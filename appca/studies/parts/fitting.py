"""aPPCA fitted for an experiment, and its subspaces as panels beside PCA's."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from appca.analysis.explore.subspaces import Subspace, ranked, title
from appca.studies.study import Report, Row

if TYPE_CHECKING:
    from appca.analysis.check.quality import Crowding


class Fit(NamedTuple):
    """What the experiments need of a fitted model."""

    scores: np.ndarray  # (N, K)
    active: np.ndarray  # (N, K) bool
    components: np.ndarray  # (K, D)

    @property
    def subspaces(self) -> list[Subspace]:
        """The used subspaces, in the order of their components."""
        return sorted(ranked(self.active), key=lambda subspace: subspace.components)


def fit(Y: np.ndarray, options: dict, report: Report, start: float = 0.0, end: float = 1.0) -> Fit:
    """
    Fit aPPCA by EM and describe all rows.

    Parameters
    ----------
    Y : ndarray, shape (N, D)
    options : dict
        n_components, n_active and seed.
    report : callable
        Told (stage, share), from `start` to `end`.
    """
    from appca import AdaptivePPCA

    def callback(progress: object) -> None:
        share = min(progress.iteration / max(progress.max_iter, 1), 1.0)
        report("fitting aPPCA", start + (end - start) * share)

    model = AdaptivePPCA(
        n_components=options["n_components"],
        n_active=options["n_active"],
        random_state=options["seed"],
        callback=callback,
    ).fit(Y)
    found = model.describe(Y)
    return Fit(found.scores, found.active, np.asarray(model.components_))


def codes_of(column: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Names of the classes, numbers as numbers, and each row's place among them."""
    texts = np.asarray(column).astype(str)
    names = sorted(set(texts.tolist()), key=lambda text: (len(text), text))
    place = {name: code for code, name in enumerate(names)}
    return names, np.array([place[text] for text in texts.tolist()])


def crowding_rows(found: "list[Crowding]", codes: np.ndarray, fitted: Fit) -> list[Row]:
    """One line a panel: k-NN accuracy in it, and of the same rows in PCA."""
    members = {subspace.components: subspace.rows for subspace in fitted.subspaces}
    return [
        {
            "subspace": title(one.components),
            "rows": one.n_rows,
            "classes": len(np.unique(codes[members[one.components]])),
            "panel_accuracy": one.panel.value,
            "panel_error": one.panel.error,
            "pca_same_rows": one.same_rows.value,
            "pca_all_rows": one.all_rows.value,
        }
        for one in sorted(found, key=lambda one: one.components)
    ]


def mean_of(rows: list[Row], name: str) -> float:
    """Mean over the panels, each counted by its rows."""
    weights = np.array([float(row["rows"]) for row in rows])
    return float(np.average([float(row[name]) for row in rows], weights=weights))


def crowding_verdict(rows: list[Row]) -> str:
    """Say whether panels of subspaces keep classes apart better than one picture by PCA."""
    panel, same, whole = (
        mean_of(rows, name) for name in ("panel_accuracy", "pca_same_rows", "pca_all_rows")
    )
    better = sum(float(row["panel_accuracy"]) > float(row["pca_same_rows"]) for row in rows)
    count = f"{better} of {len(rows)} panels are better than PCA's picture of the same rows"
    if panel > same + 0.01:
        return f"The panels are less crowded than PCA, as the paper says: {count}"
    if panel > whole + 0.01:
        return (
            "The panels are less crowded than PCA's one picture, but because each shows fewer "
            f"rows: {count}"
        )
    return f"The panels are not less crowded than PCA here: {count}"
