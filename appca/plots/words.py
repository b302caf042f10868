"""Figures in words, for those who hear a page instead of seeing it."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import plotly.graph_objects as go

from appca.words.numbers import minus

MOST_TRACES = 6  # named in a text
KINDS = {"bar": "bars", "histogram": "bars", "heatmap": "table of colours", "scatter": "points"}


def described(figure: go.Figure) -> str:
    """Return what a figure shows in a few sentences: its axes, and each trace with its extremes.

    Traces of other kinds than lines, points, bars and tables of colours are named without numbers.
    Names that came with the data stand in the text as they are.
    """
    traces = [trace for trace in figure.data if trace.visible not in (False, "legendonly")]
    titles = figure.layout.yaxis.title.text, figure.layout.xaxis.title.text
    axes = " over ".join(filter(None, titles))
    parts = [axes, *(_trace(trace, figure) for trace in traces[:MOST_TRACES])]
    left = len(traces) - MOST_TRACES
    if left > 0:
        parts.append(f"and {left} more")
    title = figure.layout.title.text
    text = "; ".join(part for part in ([title] if title else []) + parts if part)
    return f"Figure: {text}." if text else "Figure."


def _trace(trace: go.Scatter, figure: go.Figure) -> str:
    lines = "lines" in (trace.mode or "") if trace.type.startswith("scatter") else False
    kind = "line" if lines else KINDS.get(trace.type.removesuffix("gl"), trace.type)
    name = f"{trace.name}, {kind}" if trace.name else kind
    return f"{name}: {facts}" if (facts := _facts(trace, figure)) else name


def _facts(trace: go.Scatter, figure: go.Figure) -> str:
    if trace.type == "heatmap":
        shape = np.shape(trace.z)
        size = f"{shape[0]} by {shape[1]}, " if len(shape) == 2 else ""
        return size + _extent(np.ravel(trace.z), None) if trace.z is not None else ""
    if trace.type == "image":  # colours of pixels are no numbers to tell
        return ""
    lying = trace.type == "bar" and trace.orientation == "h"
    values, places = (trace.x, trace.y) if lying else (trace.y, trace.x)
    if values is None:
        return ""
    axis = figure.layout.yaxis if lying else figure.layout.xaxis
    names = dict(zip(_list(axis.tickvals), _list(axis.ticktext), strict=False))
    return _extent(values, None if places is None else [names.get(p, p) for p in _list(places)])


def _list(values: Iterable[Any] | None) -> list[Any]:
    return [] if values is None else list(values)


def _extent(values: Iterable[Any], places: Iterable[Any] | None) -> str:
    """Say how many numbers there are, and where the least and the greatest of them stand."""
    try:
        numbers = np.asarray(list(values), dtype=float)
    except (TypeError, ValueError):
        return ""
    finite = np.flatnonzero(np.isfinite(numbers))
    if not len(finite):
        return ""
    low, high = finite[numbers[finite].argmin()], finite[numbers[finite].argmax()]
    places = _list(places)
    ends = " to ".join(_number(numbers[i]) + _at(places, i, len(numbers)) for i in (low, high))
    return f"{len(finite):,} values from {ends}"


def _at(places: list[Any], i: int, count: int) -> str:
    if len(places) != count:
        return ""
    place = places[i]
    shown = _number(place) if isinstance(place, int | float | np.number) else str(place)
    return f" at {shown}"


def _number(value: float | np.number) -> str:
    return minus(f"{float(value):.4g}")
