"""The page Export: figures, projections, components, reports, models, scripts."""

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import streamlit as st

from appca.analysis.annotated import H5AD, ending_of, new_file, with_fit
from appca.analysis.as_python import Recipe, script
from appca.analysis.components import common, name_of, patterns
from appca.analysis.subspaces import Subspace, ranked, title, variance_shares
from appca.analysis.tables import Columns, projection_table
from appca.canvas.html import picture_page
from appca.canvas.scene import Map, Scene, scene_shown
from appca.canvas.sheets import is_ink, sample, tiles_of
from appca.data.dataset import Dataset
from appca.plots.components import component_figure, montage
from appca.plots.files import drawn, facts, framed, image, paragraph, section, table
from appca.runs import store
from appca.runs.home import threads
from appca.runs.model_file import annotated_fit, model_bytes
from appca.runs.run import MODELS
from appca.runs.store import title as run_title
from appca.ui import arrivals, controls, settings, state
from appca.ui.canvas import scene_of
from appca.ui.downloads import (
    card,
    collect,
    component_buttons,
    renewing,
    save_button,
    stem_of,
    table_buttons,
)
from appca.ui.fits import Shown
from appca.ui.kit import data_facts, fit_facts, markdown, one_of
from appca.ui.services import by_key
from appca.words import capital, counted, number, percent

if TYPE_CHECKING:
    from appca.plots.still import StillFigure

MAP = "umap"


class Material(NamedTuple):
    """What the figures of a run are made of."""

    dataset: Dataset
    shown: Shown  # the run, with names and signs that a person gave
    colour: str  # a key of `colours.colour_choices`
    selected: np.ndarray | None = None  # (N,) bool: all other rows turn grey
    coordinates: np.ndarray | None = None  # (N, 2), of the UMAP map where there is one


class StandingFigure(NamedTuple):
    """A figure with its name; it is made when it is asked for."""

    title: str
    about: str
    make: Callable[[], "StillFigure"]


def material(dataset: Dataset, shown: Shown, colour: str, rows: np.ndarray | None) -> Material:
    """Gather what the figures show; `rows` None marks no selection."""
    selected = None
    if rows is not None:
        selected = np.zeros(dataset.n_rows, dtype=bool)
        selected[rows] = True
    embedding = settings.stored_map(dataset, shown.config)
    map_ = None if embedding is None else embedding.coordinates[:, :2]
    return Material(dataset, shown, colour, selected, map_)


def recipe(shown: Shown) -> Recipe:
    """Return what a run was made with."""
    config = shown.config
    return Recipe(
        run=config.id,
        title=run_title(config),
        settings=config.of_import(None).to_dict(),
        threads=threads(),
        log_likelihood=shown.info.log_likelihood,
        imported=config.imported is not None,
        order=shown.numbering.order,
        signs=shown.numbering.signs,
    )


def figures(material: Material) -> dict[str, StandingFigure]:
    """Return the figures there are, by a word for the name of a file."""
    scene = cache(lambda: _scene(material))
    about = "As Explore shows them; images where there is room for them."
    standing = [StandingFigure("Subspaces", about, lambda: _drawn(material, scene()))]
    about = "What each looks like and explains."
    standing.append(StandingFigure("Components", about, lambda: _components(material)))
    if material.coordinates is not None:
        standing.append(StandingFigure("UMAP", "All rows.", lambda: _drawn(material, scene(), MAP)))
    return {figure.title.lower(): figure for figure in standing}


def _scene(material: Material) -> Scene:
    places, colour = material.coordinates, material.colour
    maps = {} if places is None else {MAP: Map("UMAP", places)}
    feature = colour if colour.startswith("feature:") else None
    return scene_shown(material.dataset, material.shown.fitted, maps, feature=feature)


def _drawn(material: Material, scene: Scene, layout: str = "") -> "StillFigure":
    from appca.canvas.figure import draw

    layout = layout or scene.meta["first"]
    return draw(scene, layout, material.colour, selected=material.selected)


def _components(material: Material) -> "StillFigure":
    dataset, fitted = material.dataset, material.shown.fitted
    shares = variance_shares(fitted)
    titles = [
        f"{capital(name_of(fitted, k))}\n{percent(share, 1)} of variance"
        for k, share in enumerate(shares)
    ]
    shape, names = dataset.image_shape, dataset.feature_names
    return component_figure(patterns(fitted, shape), titles, shape, names, times=dataset.times)


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
        paragraph(script, "pre"),
        "<h3>Versions</h3>",
        facts(versions),
    )


EXAMPLE_ROWS = 5
LINES = (
    "One line per row: id, labels, subspace, scores (zero for unused components), how sure "
    "the subspace is, mean squared error, log-likelihood. NPZ has the components, too."
)
PICTURE = (
    "One HTML file with hover, images, lasso, search, tour and colours. It opens in a browser "
    "without a network."
)
COMPONENTS = "One line per feature, in units of the data: the average, and what a score of 1 adds."
MODEL = "Model and preprocessing in one file without pickle, for any rows with the same features."
REPORT = (
    "One HTML page: data, settings, every subspace, components, figures, versions and the script. "
    "It opens without a network."
)
ANNOTATED = (
    "Scores in obsm, loadings in varm, supports and their probability in obs, the model in uns, "
    "named as appca.tl.appca names them."
)
FIGURES = ("png", "svg", "pdf")


def choices(dataset: Dataset) -> tuple[np.ndarray | None, str]:
    """Draw the choice of rows and colours; no rows stand for all."""
    mask = state.get(dataset)
    names = {
        "all": f"All {counted(dataset.n_rows, 'row')}",
        "selected": f"Selected ({mask.sum():,})",
    }
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        wanted = one_of(
            "Rows",
            names,
            key="export_rows",
            help_text="The selected rows alone in files of projections; marked in figures and "
            "report.",
        )
        if wanted == "selected" and not mask.any():
            st.info("Nothing is selected yet; draw a lasso in Explore.")
        rows = np.flatnonzero(mask) if wanted == "selected" else None
        return rows, controls.colouring(dataset)


def figure_card(
    dataset: Dataset, shown: Shown, rows: np.ndarray | None, colour: str
) -> Callable[[], None]:
    """Draw the choice of a figure and its button; return what draws the figure itself."""
    parts = material(dataset, shown, colour, rows)
    every = figures(parts)
    with card("Figure"):
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
            titles = {name: figure.title for name, figure in every.items()}
            chosen = one_of("Which", titles, key="export_figure", label_visibility="collapsed")
            formats = {kind: kind.upper() for kind in FIGURES}
            kind = one_of("Format", formats, key="export_kind", label_visibility="collapsed")
            for name, figure in every.items():
                made, file_name = partial(_file, figure, kind), f"{name}-{shown.config.id}.{kind}"
                if name == chosen:
                    key = f"figure-{name}"
                    save_button("Save figure", made, file_name, key=key, primary=True)
                else:
                    collect(file_name, made)
        with st.container(key="export_figure_place"):
            place = st.empty()
    place.caption("Drawing the figure …")
    marked = "" if parts.selected is None else state.token(dataset)
    where = "" if parts.coordinates is None else "map"
    key = f"{shown.key} {colour} {chosen} {marked} {where}"

    def draw() -> None:
        alt = f"Figure: {every[chosen].title}"
        place.image(preview(key, every[chosen]), alt=alt, width="stretch")

    return draw


@by_key(8)
def preview(figure: StandingFigure) -> bytes:
    """Return a figure as it will be saved, as PNG."""
    return _file(figure, "png")


def _file(figure: StandingFigure, kind: str) -> bytes:
    from appca.plots.still import file_of

    return file_of(figure.make(), kind)


def projections(dataset: Dataset, shown: Shown, rows: np.ndarray | None) -> None:
    """Draw the projections: the buttons, which columns, and the first lines."""
    stem = "projection" if rows is None else "selection"
    with card("Projections", LINES):
        place = st.container()
        columns = _columns(shown)
        with place:
            made = partial(projection_table, dataset, shown.fitted, rows, columns)
            table_buttons(made, shown, stem, columns=columns)
        first = np.arange(min(EXAMPLE_ROWS, dataset.n_rows)) if rows is None else rows
        table = projection_table(dataset, shown.fitted, first[:EXAMPLE_ROWS], columns)
        st.dataframe(table, hide_index=True, width="stretch")


def _columns(shown: Shown) -> Columns:
    has_names = any(shown.fitted.names)
    with st.container(horizontal=True, gap="medium"):
        named = has_names and st.toggle(
            "Names of components as headings",
            key="export_named",
            persist_state="session",
            help="The names given on the page Components, instead of component_1 and so on.",
        )
        inclusion = st.toggle(
            "Inclusion probabilities",
            key="export_inclusion",
            persist_state="session",
            help="How sure it is that a row uses each component, one column more for each.",
        )
    return Columns(bool(named), bool(inclusion))


def picture(dataset: Dataset, shown: Shown, colour: str) -> None:
    """Draw what saves the picture."""
    with card("Picture", PICTURE):
        scene = scene_of(dataset, shown, colour, settings.stored_map(dataset, shown.config)).scene
        colourings = scene.meta["colourings"]
        first = colour if colour in colourings else next(iter(colourings), "")
        made = partial(picture_page, [scene], dataset.name, first)
        name = f"{stem_of(dataset.name)}-{shown.config.id}.html"
        save_button("Save HTML", renewing(shown, made), name, key="picture")


def components(dataset: Dataset, shown: Shown) -> None:
    """Draw the components' heading and buttons."""
    with card("Components", COMPONENTS):
        component_buttons(dataset, shown)


def session_report(dataset: Dataset, shown: Shown, rows: np.ndarray | None, colour: str) -> None:
    """Draw the report, whose figures have the given colouring."""
    parts = material(dataset, shown, colour, rows)
    made = renewing(shown, partial(report, parts, script(dataset, recipe(shown))))
    name = f"report-{shown.config.id}.html"
    with card("Report", REPORT):
        save_button("Save report", made, name, key="report")


def model(dataset: Dataset, shown: Shown) -> None:
    """Draw the model file, and the line that reads it."""
    name = f"model-{shown.config.id}.npz"
    made = partial(model_bytes, shown.config, shown.fitted, shown.info, dataset.feature_names)
    with card("Model", MODEL):
        save_button("Save model", renewing(shown, made), name, key="model")
        st.code(f'model = appca.load_model("{name}")', language="python", wrap_lines=True)


def annotated(dataset: Dataset, shown: Shown) -> None:
    """Draw what saves annotated data: the file that was opened with the fit, or a new one."""
    source, name = arrivals.source_of(dataset), _annotated_name(dataset)
    if name is None or source is None:
        said = "A new file: the rows as X, their labels as obs, and this fit."
        said += f" To add the fit to “{name}” instead, open that file again." if name else ""
    else:
        said = f"“{name}” with this fit. Nothing else in the file is changed."

    def made() -> bytes:
        fit = annotated_fit(shown.config, shown.fitted)
        if name is None or source is None:
            return new_file(dataset, fit)
        return with_fit(*source, dataset, fit)

    zipped = name is not None and source is not None and ending_of(name) != H5AD
    title, ending = ("Save Zarr", ".zarr.zip") if zipped else ("Save H5AD", H5AD)
    file_name = f"{stem_of(name or dataset.name)}-{shown.config.id}{ending}"
    with card("AnnData", ANNOTATED):
        save_button(title, renewing(shown, made), file_name, key="h5ad")
        st.caption(markdown(said))


def _annotated_name(dataset: Dataset) -> str | None:
    """Return the name of the annotated data that all rows came from; None of other data."""
    names = list(dataset.provenance.get("files", ()))
    report = dataset.provenance.get("report", {})
    whole = report.get("rows") == dataset.n_rows and "array" in report
    whole = whole and "sample" not in dataset.provenance
    return names[0] if whole and len(names) == 1 and ending_of(names[0]) else None


def as_python(dataset: Dataset, shown: Shown) -> None:
    """Draw the script that makes the fit again, as a file and to be copied by its button."""
    imported = "This fit was imported; the script fits its data, which need not give its numbers."
    again = "Makes the same numbers again on the same machine with the same versions."
    made = script(dataset, recipe(shown))
    with card("Python", again if shown.config.imported is None else None):
        if shown.config.imported is not None:
            st.caption(imported)
        save_button("Save script", made.encode, f"fit-{shown.config.id}.py", key="script")
        with st.expander("Show the script"):
            st.code(made, language="python", wrap_lines=True)
