"""The tabs of the page Export for components, the model, figures and the report."""

from functools import partial

import numpy as np
import streamlit as st

from appca.analysis.components.components import own_name
from appca.analysis.export.as_python import script
from appca.analysis.export.components import Patterns, component_npz, component_table
from appca.analysis.export.projections import Columns, csv_bytes
from appca.analysis.fitted import FittedRun
from appca.data.dataset import Dataset
from appca.plots.components.component_figure import component_sheet
from appca.plots.components.components import png
from appca.plots.export.figure_files import NO_PICTURES, PICTURES, can_draw, page, picture
from appca.runs.model_file import model_bytes
from appca.runs.store import title
from appca.ui.data import vae
from appca.ui.export.export_material import comparison, material, recipe
from appca.ui.export.run_figures import StandingFigure, figures
from appca.ui.export.session_report import Report, report
from appca.ui.parts import controls
from appca.ui.parts.component_list import in_data_space
from appca.ui.parts.downloads import FORMATS, save_button
from appca.ui.parts.widgets import one_of
from appca.ui.session.caching import by_key
from appca.ui.session.fitting import Shown

EXAMPLE_FEATURES = 8
_can_draw = st.cache_resource(show_spinner=False)(can_draw)
WORDS = 430  # pixels, so that the buttons beside them stand below one another
MIMES = {
    "html": "text/html",
    "png": "image/png",
    "svg": "image/svg+xml",
    "pdf": "application/pdf",
}


def components(dataset: Dataset, shown: Shown) -> None:
    """Draw the tab of components: the buttons and a look at them."""
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
            primary=True,
        )
        save_button("Save NPZ", partial(component_npz, *given), f"{name}.npz", key="components-npz")
        if dataset.image_shape is not None:
            sheet = component_sheet(patterns.components, dataset.image_shape)
            save_button(
                "Save PNG", partial(png, sheet), f"{name}.png", MIMES["png"], key="components-png"
            )
    if dataset.image_shape is not None:
        st.image(sheet, alt=f"The {k} components, line by line")
    else:
        table = component_table(*given).head(EXAMPLE_FEATURES)
        st.dataframe(table, hide_index=True, width="stretch")
    st.caption(
        "One line a feature, in units of the data: the average and what each component adds to it "
        "for a score of 1. The NPZ file holds the same as arrays, and the components as they were "
        "fitted, after preprocessing."
    )
    vae.note(shown)


def model(shown: Shown) -> None:
    """Draw the tab of the model file."""
    name = f"model-{shown.config.id}.npz"
    save_button(
        "Save model",
        partial(model_bytes, shown.config, shown.fitted, shown.info),
        name,
        key="model",
        primary=True,
    )
    st.caption(
        "The fitted model with the preprocessing before it, in one file without pickle. It gives "
        "the same numbers wherever it is loaded, on any rows with the same features:"
    )
    lines = [
        "from appca import load_model",
        "",
        f'model = load_model("{name}")',
        "model.transform(X)  # scores of rows X, in units of the data",
        "model.allocate(X)  # which components each row uses",
        "model.score_samples(X)  # log-likelihood of each row",
    ]
    st.code("\n".join(lines), language="python")
    st.caption("Or in a shell, for a table of new rows:")
    st.code(f"python -m appca project {name} rows.csv --out projections.csv", language="bash")


def standing_figures(dataset: Dataset, shown: Shown, rows: np.ndarray | None) -> str:
    """Draw the tab of figures: colours, format, and a button for each; return the colouring."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        colour = controls.colouring(dataset)
        kinds = ["html", *PICTURES] if _can_draw() else ["html"]
        kind = one_of(
            "Format",
            {kind: kind.upper() for kind in kinds},
            key="export_kind",
            help_text="HTML can be zoomed and needs no network; SVG and PDF are for print.",
        )
    if len(kinds) == 1:
        st.caption(NO_PICTURES)
    for name, one in figures(material(dataset, shown, colour, rows)).items():
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{one.title}**  \n{one.about}", width=WORDS)
            save_button(
                f"Save {kind.upper()}",
                partial(_file, one, kind),
                f"{name}-{shown.config.id}.{kind}",
                MIMES[kind],
                key=f"figure-{name}",
            )
    return colour


def session_report(dataset: Dataset, shown: Shown, rows: np.ndarray | None, colour: str) -> None:
    """Draw the tab of the report, whose figures have the given colouring."""
    given = Report(
        material(dataset, shown, colour, rows),
        shown.config.id,
        title(shown.config) if shown.run is None else shown.run.name,
        script(dataset, recipe(shown)),
        comparison(shown),
    )
    save_button(
        "Save report",
        partial(report, given),
        f"report-{shown.config.id}.html",
        MIMES["html"],
        key="report",
        primary=True,
    )
    st.caption(
        "One HTML page to send or keep: data, preprocessing, settings, how the fit ended, every "
        "subspace with its mean image and classes, components, figures that can be zoomed, how "
        "this compares with other methods where that has been measured, versions, and the script "
        "that makes the run again. It opens without a network."
    )


def _file(one: StandingFigure, kind: str) -> bytes | str:
    return page(one.make(), one.title) if kind == "html" else picture(one.make(), kind)


@by_key(8)
def _patterns(fitted: FittedRun) -> Patterns:
    mean = fitted.preprocessing.inverse_transform(fitted.mean[None])[0]
    return Patterns(in_data_space(fitted), mean)
