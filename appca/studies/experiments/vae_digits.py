"""MNIST digits through an autoencoder, in the three subspaces of aPPCA, and by PCA."""

from typing import NamedTuple

import numpy as np

from appca.analysis.check.quality import crowding
from appca.analysis.components.shapes import effect, ink, slant, within_classes
from appca.analysis.explore.projection import principal_scores
from appca.analysis.explore.subspaces import title
from appca.data.preprocessing import Preprocessing
from appca.data.sources.builtin import load
from appca.studies.parts import autoencoder
from appca.studies.parts.fitting import (
    PCA_AXES,
    PanelFit,
    codes_of,
    crowding_claim,
    crowding_rows,
    fit,
    subspace_panels,
)
from appca.studies.study import Figures, Options, Outcome, Report, Row, Study


class Digits(NamedTuple):
    """Digits and their codes."""

    images: np.ndarray  # (N, 28, 28) uint8
    names: list[str]  # of the digits
    codes: np.ndarray  # (N,) into the names
    Y: np.ndarray  # (N, d) what the autoencoder makes of them


_LAST: dict[tuple[int, ...], Digits] = {}  # two experiments in one process share the training


def coded(options: Options, report: Report, end: float) -> Digits:
    """Open the digits and bring them to the codes of an autoencoder; report up to share `end`."""
    names = ("n_rows", "dimensions", "epochs", "seed")
    key = tuple(options[name] for name in names)
    if key not in _LAST:
        report("opening MNIST", 0.0)
        dataset = load("mnist", n=options["n_rows"])
        X = Preprocessing(divide=255.0).fit(dataset.X).transform(dataset.X)
        networks = autoencoder.train(
            X,
            options["dimensions"],
            options["epochs"],
            options["seed"],
            lambda stage, share: report(stage, end * share),
        )
        labels = codes_of(next(iter(dataset.labels.values())))
        images = dataset.images(np.arange(dataset.n_rows))
        Y = autoencoder.encode(networks, X).astype(np.float64)
        _LAST.clear()
        _LAST[key] = Digits(images, *labels, Y)
    return _LAST[key]


def measures(digits: Digits) -> dict[str, np.ndarray]:
    """Ink mass in pixels, slant in degrees and its size, one value a digit."""
    leaning = slant(digits.images)
    return {
        "ink, pixels": ink(digits.images),
        "slant, degrees": leaning,
        "size of the slant, degrees": np.abs(leaning),
    }


def effects(digits: Digits, fitted: PanelFit) -> list[Row]:
    """Each measure in each subspace against all other digits, also within the classes."""
    rows: list[Row] = []
    for name, values in measures(digits).items():
        adjusted, middle = within_classes(values, digits.codes), np.median(values)
        for subspace in fitted.subspaces:
            inside = np.zeros(len(values), dtype=bool)
            inside[subspace.rows] = True
            raw, same = effect(values, inside), effect(adjusted, inside)
            above = float(np.mean(values[inside] > middle))
            row: Row = {"measure": name, "subspace": title(subspace.components), "rows": raw.rows}
            row |= {"mean": raw.mean, "sd": raw.sd, "above_median": above}
            row |= {"effect": raw.size, "effect_error": raw.error}
            row |= {"effect_within_classes": same.size, "effect_within_classes_error": same.error}
            rows.append(row)
    return rows


def run(options: Options, report: Report, processes: int = 1) -> Outcome:
    """Train, fit, and describe every subspace: classes, crowding, ink and slant."""
    digits = coded(options, report, 0.85)
    fitted = fit(digits.Y, options, report, 0.85, 0.95)
    principal, _ = principal_scores(digits.Y, 2)
    report("comparing neighbours", 0.95)
    crowdings = crowding(
        fitted.scores,
        fitted.active,
        principal,
        digits.codes,
        n_neighbors=options["n_neighbors"],
        random_state=options["seed"],
    )
    rows = crowding_rows(crowdings, digits.codes, fitted)
    sizes = effects(digits, fitted)
    shares = class_shares(digits, fitted)
    arrays = {"scores": fitted.scores.astype(np.float32), "active": fitted.active}
    arrays |= {"pca": principal, "codes": digits.codes, "names": np.array(digits.names)}
    tables = {"panels": rows, "classes": shares, "effects": sizes}
    return Outcome(tables, arrays, [crowding_claim(rows)])


def class_shares(digits: Digits, fitted: PanelFit) -> list[Row]:
    """Share of each digit among the rows of each subspace and among all, a line a digit."""
    rows: list[Row] = []
    for code, name in enumerate(digits.names):
        row: Row = {"digit": name, "all": float(np.mean(digits.codes == code))}
        for subspace in fitted.subspaces:
            of_class = digits.codes[subspace.rows] == code
            row[title(subspace.components)] = float(of_class.mean())
        rows.append(row)
    return rows


def strongest(rows: list[Row], measure: str) -> Row:
    """Return the subspace in which a measure differs most from all other digits."""
    of_measure = [row for row in rows if row["measure"] == measure]
    return max(of_measure, key=lambda row: abs(float(row["effect"])))


def figures(outcome: Outcome) -> Figures:
    """Three subspaces and PCA, coloured by digit."""
    from appca.plots.studies import Scatter, scatters

    arrays = outcome.arrays
    names, codes, pca = arrays["names"].tolist(), arrays["codes"], arrays["pca"]
    panels = subspace_panels(arrays, codes, lambda name, n: f"Subspace {name}, {n:,} digits")
    panels.append(Scatter("PCA, all digits", pca[:, 0], pca[:, 1], codes, *PCA_AXES))
    return {"digits": scatters(panels, names, columns=2, size=3)}


SIZE = {"dimensions": 10, "n_components": 3, "n_active": 2, "n_neighbors": 15, "seed": 0}
SIZES = {
    "quick": {**SIZE, "n_rows": 2000, "epochs": 30},
    "default": {**SIZE, "n_rows": 10_000, "epochs": 30},
    "full": {**SIZE, "n_rows": 10_000, "epochs": 100},
}

STUDY = Study(
    name="digits",
    title="Digits behind an autoencoder",
    paper=(
        "The paper reduces 10,000 MNIST digits to 10 dimensions by a variational autoencoder, and "
        "shows the three subspaces of aPPCA, K = 3 and L = 2, beside PCA: many of the digits are "
        "more separate there."
    ),
    revision=1,
    sizes=SIZES,
    takes={"quick": 15.0, "default": 60.0, "full": 180.0},
    run=run,
    figures=figures,
)
