"""Style of all figures: layout, colours, typeface, alternative texts, matplotlib."""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from appca.data import dataset
from appca.words import number, shortened

if TYPE_CHECKING:  # notebooks can draw without plotly
    import plotly.graph_objects as go

CLEAR = "rgba(0,0,0,0)"  # transparent


def framed(
    figure: "go.Figure", height: float, top: int = 34, bottom: int = 10, side: int = 10, **look: Any
) -> "go.Figure":
    """Set a figure's height and margins in pixels, and other layout options."""
    margin = {"l": side, "r": side, "t": top, "b": bottom}
    return figure.update_layout(height=height, margin=margin, **look)


def chart(
    traces: Any, height: float, x: Any, y: Any, top: Any = 8, bottom: Any = 8, **layout: Any
) -> "go.Figure":
    """Return a framed figure of traces; `x` and `y` are axis titles, or dicts of axis options."""
    import plotly.graph_objects as go

    across, down = ({"title": axis} if isinstance(axis, str) else axis for axis in (x, y))
    return framed(go.Figure(traces), height, top, bottom, xaxis=across, yaxis=down, **layout)


def legend_above(y: float = 1.02, **more: Any) -> dict[str, Any]:
    """Put the legend in a line above the plot, or below it unless `y` is positive."""
    anchor = {"yanchor": "bottom"} if y > 0 else {}
    return {"orientation": "h", "y": y, "x": 0, "title": None, **anchor, **more}


def category_axis(names: Sequence[str], letters: int) -> dict[str, Any]:
    """Return an axis with a line for each name of up to `letters` characters, first on top."""
    return {
        "tickvals": list(range(len(names))),
        "ticktext": [plain(shortened(name, letters)) for name in names],
        "range": [len(names) - 0.5, -0.5],
        "showgrid": False,
        "zeroline": False,
    }


def plain(text: str) -> str:
    """Escape the markup that Plotly interprets in texts."""
    return escape(text, quote=False)


# Ten colours with contrast 3 on light and dark backgrounds, from a search of sRGB: the minimum
# CIEDE2000 difference is 18.1, and 11.0 under three kinds of colour blindness.
CATEGORICAL = (
    *("#468cff", "#c87d1e", "#cd1914", "#6e966e", "#5a55e1"),
    *("#8c6446", "#f00f91", "#057d87", "#696e69", "#a578b4"),
)
# Twenty, by the same search: 11.7 and 6.9. Twenty colours alone cannot be distinguished, so shapes
# are used too if there are more than ten classes.
MANY = (
    *("#067854", "#848a90", "#d20000", "#908448", "#366ca2"),
    *("#a24e4e", "#f65a0c", "#d2066c", "#d260d8", "#d26c78"),
    *("#6c960c", "#666c6c", "#1290fc", "#786624", "#129c7e"),
    *("#a25a84", "#c012cc", "#068490", "#7242fc", "#8a7eae"),
)
MISSING = "#c3c8cf"  # rows without a value; lighter than the two greys of the palette
NEUTRAL = "#5f7fa3"  # rows without a colouring
SHAPES = ("circle", "diamond", "square", "cross", "triangle-up")

VIRIDIS = (
    *("#440154", "#482878", "#3e4989", "#31688e", "#26828e"),
    *("#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"),
)
LEVELS = 254  # one byte per row, minus the level of missing values
# Colours span the central 99% of the values, because one outlier would flatten the rest.
CLIP = (0.5, 99.5)
FEW_INTEGERS = 20  # maximum number of distinct integers in a column of classes


class Colour(NamedTuple):
    """A value per row: codes into `names` (negative: no class), or floats (NaN: none)."""

    kind: str  # "category" or "number"
    name: str
    values: np.ndarray  # (N,)
    names: tuple[str, ...] = ()  # category names
    colours: tuple[str, ...] = ()  # replaces `class_colour`


class Levels(NamedTuple):
    """A colouring as codes into a table of colours."""

    codes: np.ndarray  # (N,) uint8, or uint16 for more than 256 levels
    table: tuple[str, ...]  # (n_levels,) hex; the last one is for missing values
    shapes: tuple[str, ...]  # (n_levels,) names in SHAPES
    limits: tuple[float, float] | None  # values of the first and the last level
    clipped: tuple[bool, bool] = (False, False)  # whether values are below and above the limits


def label_colour(data: dataset.Dataset, name: str) -> Colour:
    """Colour by a label column; renamed classes keep their colours."""
    return colour_by(name, data.labels[name], data.class_order(name))


def colour_by(name: str, column: np.ndarray, order: Sequence[str] = ()) -> Colour:
    """Colour by a column (N,), with texts and few distinct integers as classes, else as numbers."""
    values = np.asarray(column)
    few = values.dtype.kind in "iu" and len(np.unique(values)) <= FEW_INTEGERS
    if not few and values.dtype.kind not in "UOSb":
        return Colour("number", name, values.astype(np.float64))
    names, codes = dataset.categories(values, order)
    if names and names[-1] == dataset.MISSING:
        names, codes = names[:-1], np.where(codes == len(names) - 1, -1, codes)
    return Colour("category", name, codes, tuple(names))


def levels(colour: Colour) -> Levels:
    """Convert a colouring to one code per row and a table of colours."""
    values = np.asarray(colour.values)
    if colour.kind == "category":
        count = len(colour.names)
        table = colour.colours or tuple(class_colour(code, count) for code in range(count))
        cycle = 1 if colour.colours else len(SHAPES)
        shapes = (*(SHAPES[code // 10 % cycle] for code in range(count)), SHAPES[0])
        codes = np.where(values < 0, count, values)
        codes = codes.astype(np.uint8 if count < 256 else np.uint16)
        return Levels(codes, (*table, MISSING), shapes, None)
    finite = np.isfinite(values := values.astype(np.float64))
    some = values[finite] if finite.any() else np.array([0.0, 1.0])
    is_whole = (some == np.rint(some)).all()
    low, high = np.percentile(some, CLIP, method="nearest" if is_whole else "linear")
    if not high > low:  # constant or nearly so: use the full range
        low, high = some.min(), some.max()
    scaled = np.clip((np.where(finite, values, low) - low) / ((high - low) or 1.0), 0, 1)
    codes = np.where(finite, np.rint(scaled * (LEVELS - 1)), LEVELS).astype(np.uint8)
    limits, clipped = (float(low), float(high)), (bool(some.min() < low), bool(some.max() > high))
    table = (*viridis(LEVELS), MISSING)
    return Levels(codes, table, (SHAPES[0],) * len(table), limits, clipped)


def class_colour(code: int, count: int | None = None) -> str:
    """Return the colour of a class out of `count`; colours repeat after twenty classes."""
    colours = CATEGORICAL if (code + 1 if count is None else count) <= len(CATEGORICAL) else MANY
    return colours[code % len(colours)]


def viridis(n: int) -> tuple[str, ...]:
    """Sample Viridis at ``n`` points, without ends that are invisible on black or white."""
    stops = np.array([list(bytes.fromhex(colour[1:])) for colour in VIRIDIS])
    place, ends = np.linspace(0.04, 0.95, n), np.linspace(0, 1, len(stops))
    channels = np.rint([np.interp(place, ends, channel) for channel in stops.T])
    return tuple(f"#{bytes(rgb).hex()}" for rgb in channels.T.astype(np.uint8))


MOST_TRACES = 6  # maximum number of traces named in a text
KINDS = {"bar": "bars", "histogram": "bars", "heatmap": "table of colours", "scatter": "points"}


def described(figure: "go.Figure") -> str:
    """Describe a figure in a few sentences: its axes, and each trace with its extremes.

    Only lines, points, bars and tables of colours are described; other traces are named. Names
    from the data appear unchanged.
    """
    traces = [trace for trace in figure.data if trace.visible not in (False, "legendonly")]
    layout = figure.layout
    titles = layout.yaxis.title.text, layout.xaxis.title.text
    parts = [layout.title.text, " over ".join(filter(None, titles))]
    for trace in traces[:MOST_TRACES]:
        part, kind, size = trace.to_plotly_json(), trace.type.removesuffix("gl"), ""
        words = "line" if "lines" in part.get("mode", "") else KINDS.get(kind, kind)
        axis, values, places = layout.xaxis, part.get("y"), part.get("x")
        if kind == "bar" and trace.orientation == "h":
            axis, values, places = layout.yaxis, places, values
        elif kind == "heatmap":
            values, places = np.ravel(trace.z), None
            size = " by ".join(map(str, np.shape(trace.z))) + ", "
        texts = dict(zip(axis.tickvals or (), axis.ticktext or (), strict=False))
        places = [] if places is None else [texts.get(place, place) for place in places]
        ends = _ends([] if values is None else list(values), places)
        parts.append(f"{trace.name}, {words}" if trace.name else words)
        parts[-1] += f": {size}{ends}" if ends else ""
    left = len(traces) - MOST_TRACES
    parts.append(f"and {left} more" if left > 0 else "")
    text = "; ".join(filter(None, parts))
    return f"Figure: {text}." if text else "Figure."


def _ends(values: list[Any], places: list[Any]) -> str:

    def text(value: Any) -> str:
        return number(float(value), 4) if isinstance(value, int | float | np.number) else str(value)

    try:
        numbers = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        return ""
    finite = np.flatnonzero(np.isfinite(numbers))
    if not len(finite):
        return ""
    ends = []
    for i in (finite[numbers[finite].argmin()], finite[numbers[finite].argmax()]):
        at = f" at {text(places[i])}" if len(places) == len(numbers) else ""
        ends.append(text(numbers[i]) + at)
    return f"{len(finite):,} values from {' to '.join(ends)}"
