"""Cards of the page Export: a figure, projections, picture, components, report, model, script."""

from collections.abc import Callable
from functools import partial

import numpy as np
import streamlit as st

from appca.analysis.export.annotated_file import H5AD, ending_of, new_file, with_fit
from appca.analysis.export.as_python import script
from appca.analysis.export.projections import Columns, projection_table
from appca.canvas.file import picture_page
from appca.data.dataset import Dataset
from appca.runs.model_file import annotated_fit, model_bytes
from appca.ui.arrivals import opening
from appca.ui.canvas.scenes import scene_of
from appca.ui.export.run_figures import StandingFigure, figures, material, recipe
from appca.ui.export.session_report import report
from appca.ui.parts import controls
from appca.ui.parts.downloads import (
    card,
    collect,
    component_buttons,
    renewing,
    save_button,
    stem_of,
    table_buttons,
)
from appca.ui.parts.text import markdown
from appca.ui.parts.widgets import one_of
from appca.ui.session import selection
from appca.ui.session.caching import by_key
from appca.ui.session.fitting import Shown
from appca.ui.settings import umap
from appca.words.wording import counted

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
    mask = selection.get(dataset)
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
    marked = "" if parts.selected is None else selection.token(dataset)
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
        scene = scene_of(dataset, shown, colour, umap.at_hand(dataset, shown.config)).scene
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
    source, name = opening.source_of(dataset), _annotated_name(dataset)
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
