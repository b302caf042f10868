"""The report of a run: one HTML page with data, settings, result, figures and how to make it again.

It is made of what is stored, without a look at the page, so that it can be made when its button is
pressed. It opens without a network; texts from files are shown literally.
"""

from appca.analysis.components.components import common
from appca.analysis.explore.subspaces import Subspace, ranked, title
from appca.canvas.sprites import is_ink, sample, tiles_of
from appca.plots.components.components import montage
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
from appca.runs import store
from appca.runs.configuration import MODELS
from appca.ui.export.run_figures import Material, figures
from appca.ui.parts.facts import data_facts, fit_facts
from appca.words.numbers import number, percent
from appca.words.wording import counted

MOST_SUBSPACES = 40
SAMPLE_COLUMNS, SAMPLE, SAMPLE_WIDTH = 16, 64, 530  # images of the data, and pixels of all


def report(material: Material, script: str) -> str:
    """Return the page; `script` makes the run again."""
    shown, dataset = material.shown, material.dataset
    name = store.title(shown.config) if shown.run is None else shown.run.name
    body = [
        facts({"Data": dataset.name, "Fit": f"{name} ({shown.config.id})"}),
        _data(material),
        _settings(material),
        section("Fit", facts(fit_facts(shown))),
        _selection(material),
        _subspaces(material),
        *(
            section(f"Figure: {each.title}", paragraph(each.about), drawn(each.make(), each.title))
            for each in figures(material).values()
        ),
        _again(material, script),
    ]
    return framed(f"{name}: {dataset.name}", "".join(body))


def _data(material: Material) -> str:
    dataset = material.dataset
    parts = [facts(data_facts(dataset) | {"Digest (SHA-256)": dataset.digest})]
    if dataset.image_shape is not None:
        rows = sample(dataset.n_rows, SAMPLE)
        tiles = tiles_of(dataset, rows)
        sheet = montage(255 - tiles if is_ink(dataset) else tiles, SAMPLE_COLUMNS)
        text = f"{counted(len(rows), 'row')} drawn at random"
        parts.append(image(sheet, text, round(SAMPLE_WIDTH * sheet.shape[0] / sheet.shape[1])))
    return section("Data", *parts)


def _settings(material: Material) -> str:
    config = material.shown.config
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


def _selection(material: Material) -> str:
    if material.selected is None:
        return ""
    chosen, total = material.selected.sum(), counted(material.dataset.n_rows, "row")
    return section("Selection", paragraph(f"{chosen:,} of {total}; in figures the rest is grey."))


def _subspaces(material: Material) -> str:
    every = ranked(material.shown.fitted.active)
    columns = ["Subspace", "Rows", "Share", "Membership", "Mean square error"]
    if material.dataset.class_column is not None:
        columns.append(next(iter(material.dataset.labels)))
    lines = [_line(material, subspace) for subspace in every[:MOST_SUBSPACES]]
    about = "Rows with the same choice of components share a subspace; the fullest first."
    parts = [paragraph(about), table(columns, lines)]
    if left := every[MOST_SUBSPACES:]:
        together = counted(sum(len(subspace.rows) for subspace in left), "row")
        parts.append(paragraph(f"And {len(left):,} more with {together} together."))
    return section("Subspaces", *parts)


def _line(material: Material, subspace: Subspace) -> list[object]:
    fitted, classes = material.shown.fitted, material.dataset.class_column
    line: list[object] = [
        title(subspace.components),
        f"{len(subspace.rows):,}",
        percent(len(subspace.rows) / material.dataset.n_rows),
        percent(fitted.membership[subspace.rows].mean(dtype=float), 1),
        number(fitted.error[subspace.rows].mean(dtype=float)),
    ]
    if classes is not None:
        most = common(classes[0], classes[1][subspace.rows])
        line.append(", ".join(f"{name} ({percent(share)})" for name, share in most))
    return line


def _again(material: Material, script: str) -> str:
    versions = {name: str(version) for name, version in material.shown.info.versions.items()}
    about = (
        "This script makes the fit again; the same machine and versions give the same numbers to "
        "the bit."
    )
    return section(
        "How to make it again",
        paragraph(about),
        code(script),
        "<h3>Versions</h3>",
        facts(versions),
    )
