"""Rows as a table, those that fit least first, and one of them taken apart."""

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from appca.analysis.data.new_data import NewRowsVerdict
from appca.analysis.explore.point import parts, row_of
from appca.analysis.explore.subspaces import title
from appca.analysis.fitted import FittedRun
from appca.data.dataset import Dataset
from appca.plots.components.components import data_uri
from appca.ui.parts.text import markdown
from appca.ui.rows import point
from appca.ui.rows.pictures import is_dark, on_page
from appca.ui.session.caching import by_key

if TYPE_CHECKING:
    import pandas as pd

MOST_LISTED = 100  # rows; the saved file has all
HEIGHT = 400  # pixels


def draw(
    dataset: Dataset,
    fitted: FittedRun,
    verdict: NewRowsVerdict,
    order: np.ndarray,
    key: str,
) -> int:
    """Draw the table and take apart the row that is ticked, else the first; return that row.

    `order` has the rows to list, at least one, those that fit least first; `key` names the numbers:
    another table is another widget.
    """
    top = order[:MOST_LISTED]
    images = _images(f"{key}-{is_dark()}-{top.tolist()}", dataset, fitted, top)
    pictures = {name: st.column_config.ImageColumn(name, width="small") for name in images}
    event = st.dataframe(
        table_of(dataset, fitted, verdict, top, images),
        hide_index=True,
        width="stretch",
        height=HEIGHT,
        key=f"row-table-{key}",
        selection_mode="single-row",
        on_select="rerun",
        column_config=pictures,
        row_height=44 if images else None,
    )
    if len(top) < len(order):
        st.caption(f"The {len(top)} that fit least of {len(order):,}.")
    ticked = event["selection"]["rows"]
    row = int(top[ticked[0]] if ticked and ticked[0] < len(top) else top[0])
    st.subheader(f"{markdown(str(dataset.ids[row]))}, taken apart", anchor=False)
    pieces = parts(fitted, row_of(dataset, fitted, row), row)
    st.html(point.built(dataset, pieces))
    return row


def table_of(
    dataset: Dataset,
    fitted: FittedRun,
    verdict: NewRowsVerdict,
    rows: np.ndarray,
    images: dict[str, list[str]],
) -> "pd.DataFrame":
    """Return what is known of rows as a table; `images` gives columns of pictures."""
    import pandas as pd

    columns: dict[str, object] = {"id": dataset.ids[rows]} | images
    columns["fits"] = np.where(verdict.fits[rows], "yes", "no")
    for name, values in list(dataset.labels.items())[:1]:
        columns[name if name not in columns else f"{name} (label)"] = values[rows]
    columns["T² / limit"], columns["Q / limit"] = verdict.ratios[rows].round(2).T
    columns["subspace"] = [title(tuple(np.flatnonzero(fitted.active[row]))) for row in rows]
    if fitted.row_scales is not None:
        columns["scale"] = fitted.row_scales[rows].round(2)
    columns["membership"] = fitted.membership[rows].round(3)
    columns["residual"] = [float(f"{value:.3g}") for value in fitted.error[rows]]
    columns["log-likelihood"] = fitted.log_likelihood_rows[rows].round(2)
    return pd.DataFrame(columns)


def reconstructed(fitted: FittedRun, rows: np.ndarray) -> np.ndarray:
    """Return what the run rebuilds of rows (n, D), in units of the data."""
    W, mean = fitted.components.astype(np.float64), fitted.mean.astype(np.float64)
    return fitted.preprocessing.inverse_transform(fitted.scores[rows].astype(np.float64) @ W + mean)


@by_key(16)
def _images(dataset: Dataset, fitted: FittedRun, rows: np.ndarray) -> dict[str, list[str]]:
    if dataset.image_shape is None:
        return {}
    pictures = {
        "image": dataset.images(rows),
        "reconstruction": dataset.as_images(reconstructed(fitted, rows)),
    }
    return {
        name: [data_uri(image) for image in on_page(dataset, images)]
        for name, images in pictures.items()
    }
