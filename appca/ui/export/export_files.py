"""Parts of the page Export: components, the model, figures and the report."""

from collections.abc import Callable
from functools import partial

import numpy as np
import streamlit as st

from appca.analysis.export.annotated_file import H5AD, ending_of, new_file, with_fit
from appca.analysis.export.as_python import script
from appca.data.dataset import Dataset
from appca.runs.model_file import annotated_fit, model_bytes
from appca.ui.arrivals import opening
from appca.ui.export.run_figures import StandingFigure, figures, material, recipe
from appca.ui.export.session_report import report
from appca.ui.parts.downloads import (
    card,
    collect,
    component_buttons,
    renewing,
    save_button,
    stem_of,
)
from appca.ui.parts.notes import autoencoder_note
from appca.ui.parts.text import markdown
from appca.ui.parts.widgets import one_of
from appca.ui.session import selection
from appca.ui.session.caching import by_key
from appca.ui.session.fitting import Shown

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
MIMES = {
    "html": "text/html",
    "png": "image/png",
    "svg": "image/svg+xml",
    "pdf": "application/pdf",
}


def components(dataset: Dataset, shown: Shown) -> None:
    """Draw the components' heading and buttons."""
    with card("Components", COMPONENTS):
        component_buttons(dataset, shown)
        autoencoder_note(shown)


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
                    save_button("Save figure", made, file_name, MIMES[kind], key=key, primary=True)
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


def session_report(dataset: Dataset, shown: Shown, rows: np.ndarray | None, colour: str) -> None:
    """Draw the report, whose figures have the given colouring."""
    parts = material(dataset, shown, colour, rows)
    made = renewing(shown, partial(report, parts, script(dataset, recipe(shown))))
    name = f"report-{shown.config.id}.html"
    with card("Report", REPORT):
        save_button("Save report", made, name, MIMES["html"], key="report")


def _file(figure: StandingFigure, kind: str) -> bytes:
    from appca.plots.still import file_of

    return file_of(figure.make(), kind)
