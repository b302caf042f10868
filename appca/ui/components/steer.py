"""The tab Steer: scores under the hand, and the row they stand for, rebuilt as the hand moves."""

import base64
from typing import Any

import numpy as np
import streamlit as st

from appca.analysis.components.components import own_name
from appca.analysis.components.steering import Steering, fullest_pair, steering
from appca.canvas.scene.pictures import picture_list
from appca.data.dataset import Dataset
from appca.plots.components.components import data_uri
from appca.plots.palette import MISSING, NEUTRAL, class_colour
from appca.ui.parts.widgets import one_of, scripted
from appca.ui.rows import pictures, point_choice
from appca.ui.session.caching import kept
from appca.ui.session.fitting import Shown

MOST_COLUMNS = 16  # of a table, as bars
MOST_DOTS = 2500  # rows in the panel, a fair sample
STARTS = {"average": "The average", "row": "A row"}
_steer = scripted(__file__, "<div class='ca-steer'></div>")


def body(dataset: Dataset, shown: Shown) -> None:
    """Draw where to start from, and the parts that a hand moves."""
    st.markdown("**Drag the point or a slider and watch the row change.**")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        begin = one_of("Start from", STARTS, "steer_start", "average")
        row = point_choice.choose(dataset) if begin == "row" else None
    fixed = kept(f"steer-{shown.key}-{pictures.is_dark()}", lambda: _fixed(dataset, shown))
    _steer(key="steer", data=fixed | _start(dataset, shown, row))


def _fixed(dataset: Dataset, shown: Shown) -> dict[str, Any]:
    """Return what the browser needs of a fit, whatever row is started from."""
    fitted = shown.fitted
    steered = steering(fitted, None if dataset.image_shape else MOST_COLUMNS)
    drawn = picture_list(fitted, dataset, dark=pictures.is_dark()) if dataset.image_shape else []
    parts = [
        {
            "number": k + 1,
            "name": own_name(fitted, k),
            "picture": data_uri(drawn[k]) if drawn else None,
            "reach": float(steered.reach[k]),
        }
        for k in range(len(fitted.components))
    ]
    return {
        "parts": parts,
        "average": _packed(steered.average),
        "patterns": _packed(steered.patterns),
        "image": _image(dataset),
        "columns": [] if dataset.image_shape else _columns(dataset, steered),
        "pair": list(map(int, fullest_pair(fitted.active)))[::-1],  # across and up as in Explore
        "cloud": _cloud(dataset, shown),
    }


def _start(dataset: Dataset, shown: Shown, row: int | None) -> dict[str, Any]:
    fitted = shown.fitted
    if row is None:
        start = [0.0] * len(fitted.components)
        return {"id": f"{shown.key} average", "start": start, "from": "the average", "given": None}
    start = np.where(fitted.active[row], fitted.scores[row], 0.0).tolist()
    image = pictures.strip(dataset, np.array([row])) if dataset.image_shape else None
    name = str(dataset.ids[row])
    return {"id": f"{shown.key} {row}", "start": start, "from": name, "given": image}


def _image(dataset: Dataset) -> dict[str, Any] | None:
    """Return how values become grey levels, as `Dataset.as_images` makes them."""
    if dataset.image_shape is None:
        return None
    height, width, *channels = dataset.image_shape
    low, high = dataset.image_range
    return {
        "width": width,
        "height": height,
        "channels": channels[0] if channels else 1,
        "low": low,
        "factor": 255.0 / ((high - low) or 1.0),
        "ink": pictures.is_ink(dataset),
    }


def _columns(dataset: Dataset, steered: Steering) -> list[dict[str, Any]]:
    names, X = dataset.column_names, dataset.X[:, steered.columns].astype(np.float64)
    reached = np.abs(steered.patterns * steered.reach[:, None]).max(axis=0)
    low = np.minimum(X.min(axis=0), steered.average - reached)
    high = np.maximum(X.max(axis=0), steered.average + reached)
    return [
        {"name": names[j], "low": float(low[i]), "high": float(high[i])}
        for i, j in enumerate(steered.columns.tolist())
    ]


def _cloud(dataset: Dataset, shown: Shown) -> dict[str, Any]:
    """Return the scores of a fair sample of rows, zero where a component is not used."""
    rows = np.random.default_rng(0).permutation(dataset.n_rows)[:MOST_DOTS]
    scores = np.where(shown.fitted.active[rows], shown.fitted.scores[rows], 0.0)
    classes = dataset.class_column
    codes = np.zeros(len(rows), np.uint8)
    colours = [NEUTRAL]
    if classes is not None and (count := len(classes[0])) < 255:
        codes = np.where(classes[1][rows] < 0, count, classes[1][rows]).astype(np.uint8)
        colours = [*(class_colour(code, count) for code in range(count)), MISSING]
    packed = base64.b64encode(codes.tobytes()).decode()
    return {"scores": _packed(scores), "codes": packed, "colours": colours, "count": len(rows)}


def _packed(values: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f4").tobytes()).decode()
