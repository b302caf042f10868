"""Parts of the page Export: components, the model, figures and the report."""

from functools import partial

import numpy as np
import streamlit as st

from appca.analysis.components.components import in_data_space, own_name
from appca.analysis.export.as_python import script
from appca.analysis.export.components import Patterns, component_npz, component_table
from appca.analysis.export.projections import Columns, csv_bytes
from appca.analysis.fitted import FittedRun
from appca.data.dataset import Dataset
from appca.plots.components.component_figure import component_sheet
from appca.plots.components.components import png
from appca.runs.model_file import model_bytes
from appca.ui.data import vae
from appca.ui.export.button import kept
from appca.ui.export.export_material import material, recipe
from appca.ui.export.run_figures import StandingFigure, figures
from appca.ui.export.session_report import report
from appca.ui.parts.downloads import FORMATS, save_button
from appca.ui.parts.widgets import one_of
from appca.ui.session.caching import by_key
from appca.ui.session.fitting import Shown

COMPONENTS = "One line per feature, in units of the data: the average, and what a score of 1 adds."
MODEL = "Model and preprocessing in one file without pickle, for any rows with the same features."
REPORT = (
    "One HTML page: data, settings, every subspace, components, figures, versions and the script. "
    "It opens without a network."
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
    st.subheader("Components", anchor=False, help=COMPONENTS)
    component_buttons(dataset, shown)
    vae.note(shown)


def component_buttons(dataset: Dataset, shown: Shown) -> None:
    """Draw a button for each format of the components."""
    k = len(shown.fitted.components)
    columns = Columns(named=any(own_name(shown.fitted, i) for i in range(k)))
    patterns = _patterns(shown.key, shown.fitted)
    given = (dataset, shown.fitted, patterns, columns)
    with st.container(horizontal=True, gap="small"):
        name = f"components-{shown.config.id}"
        save_button(
            "Save CSV",
            lambda: csv_bytes(component_table(*given)),
            f"{name}.csv",
            FORMATS["csv"][1],
            key="components-csv",
        )
        save_button("Save NPZ", partial(component_npz, *given), f"{name}.npz", key="components-npz")
        if dataset.image_shape is not None:
            sheet = component_sheet(patterns.components, dataset.image_shape)
            save_button(
                "Save PNG", partial(png, sheet), f"{name}.png", MIMES["png"], key="components-png"
            )


def model(dataset: Dataset, shown: Shown) -> None:
    """Draw the model file, and the line that reads it."""
    name = f"model-{shown.config.id}.npz"
    st.subheader("Model", anchor=False, help=MODEL)
    made = partial(model_bytes, shown.config, shown.fitted, shown.info, dataset.feature_names)
    save_button("Save model", kept(shown, made), name, key="model")
    st.code(f'model = appca.load_model("{name}")', language="python", wrap_lines=True)


def standing_figures(dataset: Dataset, shown: Shown, rows: np.ndarray | None, colour: str) -> None:
    """Draw a button for each figure as a picture."""
    st.subheader("Figures", anchor=False)
    kind = one_of("Format", {kind: kind.upper() for kind in FIGURES}, key="export_kind")
    with st.container(horizontal=True, gap="small"):
        for name, one in figures(material(dataset, shown, colour, rows)).items():
            save_button(
                f"Save {one.title}",
                partial(_file, one, kind),
                f"{name}-{shown.config.id}.{kind}",
                MIMES[kind],
                key=f"figure-{name}",
            )


def session_report(dataset: Dataset, shown: Shown, rows: np.ndarray | None, colour: str) -> None:
    """Draw the report, whose figures have the given colouring."""
    given = material(dataset, shown, colour, rows)
    st.subheader("Report", anchor=False, help=REPORT)
    save_button(
        "Save report",
        kept(shown, partial(report, given, script(dataset, recipe(shown)))),
        f"report-{shown.config.id}.html",
        MIMES["html"],
        key="report",
    )


def _file(one: StandingFigure, kind: str) -> bytes:
    from appca.plots.still import file_of

    return file_of(one.make(), kind)


@by_key(8)
def _patterns(fitted: FittedRun) -> Patterns:
    mean = fitted.preprocessing.inverse_transform(fitted.mean[None])[0]
    return Patterns(in_data_space(fitted), mean)
