"""The report of a run: one HTML page with data, settings, result, figures and how to make it again.

It is made of what is stored, without a look at the page, so that it can be made when its button is
pressed. It opens without a network; texts from files are shown literally.
"""

from typing import NamedTuple

import numpy as np

from appca.analysis.components.components import common
from appca.analysis.explore.projection import explained_share
from appca.analysis.explore.subspaces import Subspace, ranked, title
from appca.data.numbers import number, percent
from appca.plots.components.components import montage
from appca.plots.explore.sprites import Sprites, mean_image, sprites_of, tiles_of
from appca.plots.export.report_page import (
    code,
    drawn,
    facts,
    framed,
    image,
    paragraph,
    section,
    table,
)
from appca.runs.configuration import MODELS
from appca.storage.wording import counted
from appca.ui.data.overview import source_of
from appca.ui.export.run_figures import Material, figures
from appca.ui.parts.text import DOUBTFUL_ROWS, duration, ended, nats_per_row, size

MOST_SUBSPACES = 40
SAMPLE_COLUMNS, SAMPLE = 16, 64  # images of the data
MOST_SELECTED = 64
SIDE = 64  # pixels of a mean image
DOUBTFUL = 0.5


class Report(NamedTuple):
    """What a report says beside the figures."""

    material: Material
    run: str  # id
    name: str  # of the run
    script: str  # that makes it again


def report(given: Report) -> str:
    """Return the page."""
    dataset = given.material.dataset
    pictured = sprites_of(dataset)
    body = [
        facts({"Data": dataset.name, "Fit": f"{given.name} ({given.run})"}),
        _data(given.material, pictured),
        _settings(given.material),
        _fit(given.material),
        _selection(given.material, pictured),
        _subspaces(given.material, pictured),
        *(
            section(f"Figure: {one.title}", paragraph(one.about), drawn(one.make(), one.title))
            for one in figures(given.material).values()
        ),
        _again(given),
    ]
    return framed(f"{given.name}: {dataset.name}", "".join(body))


def _data(material: Material, pictured: Sprites | None) -> str:
    dataset = material.dataset
    lines = {
        "Rows": f"{dataset.n_rows:,}",
        "Features": f"{dataset.n_features:,}",
        "Images": "–" if dataset.image_shape is None else " × ".join(map(str, dataset.image_shape)),
        "Labels": ", ".join(dataset.labels) or "none",
        "Values": f"{dataset.X.dtype}, {size(dataset.X.nbytes)}",
        "Source": source_of(dataset) or "–",
        "Digest (SHA-256)": dataset.digest,
    }
    parts = [facts(lines)]
    if pictured is not None:
        rows = np.argsort(pictured.priority)[:SAMPLE]
        parts.append(_sheet(pictured, rows, f"{counted(len(rows), 'row')} drawn at random"))
    return section("Data", *parts)


def _settings(material: Material) -> str:
    config = material.config
    before, parameters = (
        {name: value for name, value in chosen.items() if value is not None}
        for chosen in (config.preprocessing, config.parameters)
    )
    model = MODELS[config.model]
    return section(
        "Settings",
        paragraph(f"{model.title}. {model.about}"),
        "<h3>Before the fit</h3>",
        facts(before),
        "<h3>Model</h3>",
        facts(parameters),
    )


def _fit(material: Material) -> str:
    info, fitted, config = material.info, material.fitted, material.config
    error = info.likelihood_error / info.n_rows
    explained = percent(explained_share(fitted), 1)
    doubtful = percent(float(np.mean(fitted.membership < DOUBTFUL)), 1)
    lines = {
        "Log-likelihood": nats_per_row(info) + (f" ± {error:.2g}" if error else ""),
        "Explained": f"{explained} of the variance of the preprocessed data",
        "Residual": f"{number(fitted.error.mean(dtype=float))} mean square a feature",
        "Ended": ended(info.stop_reason),
        "Work": f"{counted(info.n_iter, 'sweep' if config.is_sampled else 'iteration')} in "
        f"{duration(info.seconds)}",
        "Noise variance": f"{fitted.noise_variance:.4g}",
        "Subspaces in use": f"{len(ranked(fitted.active)):,}",
        "Doubtful rows": f"{doubtful}, {DOUBTFUL_ROWS}",
    }
    return section("Fit", facts(lines))


def _selection(material: Material, pictured: Sprites | None) -> str:
    if material.selected is None:
        return ""
    rows = np.flatnonzero(material.selected)
    total = counted(material.dataset.n_rows, "row")
    parts = [paragraph(f"{len(rows):,} of {total}; in the figures all others are grey.")]
    if pictured is not None and len(rows):
        shown = rows[np.argsort(pictured.priority[rows])][:MOST_SELECTED]
        parts.append(_sheet(pictured, shown, f"{len(shown):,} of them"))
    return section("Selection", *parts)


def _subspaces(material: Material, pictured: Sprites | None) -> str:
    every = ranked(material.fitted.active)
    classes = material.dataset.class_column
    columns = ["Subspace", "Rows", "Share", "Membership", "Mean square error"]
    columns += ["Mean image"] if pictured is not None else []
    columns += [next(iter(material.dataset.labels))] if classes is not None else []
    lines = [_line(material, one, pictured) for one in every[:MOST_SUBSPACES]]
    about = "Rows with the same choice of components share a subspace; the fullest first."
    parts = [paragraph(about), table(columns, lines)]
    if left := every[MOST_SUBSPACES:]:
        together = counted(sum(len(one.rows) for one in left), "row")
        parts.append(paragraph(f"And {len(left):,} more with {together} together."))
    return section("Subspaces", *parts)


def _line(material: Material, one: Subspace, pictured: Sprites | None) -> list[object]:
    fitted, classes = material.fitted, material.dataset.class_column
    line: list[object] = [
        title(one.components, fitted.numbers),
        f"{len(one.rows):,}",
        percent(len(one.rows) / material.dataset.n_rows),
        percent(fitted.membership[one.rows].mean(dtype=float), 1),
        number(fitted.error[one.rows].mean(dtype=float)),
    ]
    if pictured is not None:
        mean = mean_image(pictured, one.rows)
        line.append("" if mean is None else _on_paper(pictured, mean))
    if classes is not None:
        most = common(classes[0], classes[1][one.rows])
        line.append(", ".join(f"{name} ({percent(share)})" for name, share in most))
    return line


def _again(given: Report) -> str:
    versions = {name: str(version) for name, version in given.material.info.versions.items()}
    about = (
        "This script makes the fit again; the same machine and versions give the same numbers to "
        "the bit."
    )
    return section(
        "How to make it again",
        paragraph(about),
        code(given.script),
        "<h3>Versions</h3>",
        facts(versions),
    )


def _on_paper(sprites: Sprites, images: np.ndarray) -> np.ndarray:
    """Turn bright ink on black into dark ink on the white page."""
    return 255 - images if sprites.style == "ink" else images


def _sheet(sprites: Sprites, rows: np.ndarray, text: str) -> str:
    """Draw the images of rows in one picture."""
    drawn = montage(_on_paper(sprites, tiles_of(sprites, np.sort(rows))), SAMPLE_COLUMNS)
    high, wide = drawn.shape[:2]
    return image(drawn, text, max(SIDE, round(1060 * high / max(wide, SIDE * 8))))
