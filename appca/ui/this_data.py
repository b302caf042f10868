"""The tab This data: how the files were read, and the roles of columns."""

import gzip
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import count, groupby
from typing import Any, NamedTuple

import numpy as np
import streamlit as st

from appca.canvas.sheets import resized, sample, style_of, tile_of
from appca.data.dataset import Dataset
from appca.data.pixels import Judged, PixelShape, pixel_order
from appca.data.readers.intake import duplicate_rows
from appca.plots.components import data_uri
from appca.runs.fit import estimate_seconds
from appca.ui import arrivals, fits, services, state
from appca.ui.arrivals import (
    DOUBTS,
    HEAD_ROWS,
    HEADER_LINES,
    KINDS,
    Chip,
    Opened,
    Reading,
    changed,
    chips,
    judged,
    shape_of,
    with_shape,
)
from appca.ui.kit import acting, button, choice, data_facts, fact_list, markdown, tag, words
from appca.ui.rows import is_dark, sheet_of
from appca.ui.services import by_key
from appca.ui.settings import preprocessing
from appca.ui.state import guarded
from appca.words import about, capital, counted, minus, shortened

BARS, PARTS = 12, 24  # of a histogram, and of the rows whose gaps are shown together
MOST_JUDGED = 20_000  # rows of a histogram
MOSTLY_MISSING = 0.2


class SeenColumn(NamedTuple):
    """One column of a table."""

    name: str
    role: str  # "id", "label", "feature" or "ignored"
    number: int  # in the file
    feature: int  # number among the features; -1 of other columns
    n_missing: int
    why: str  # it is left out


class ColumnLook(NamedTuple):
    """What a column holds."""

    words: str
    bars: list[float]  # heights, the greatest is 1
    gaps: list[float]  # share missing in each part of the rows
    cells: Sequence[str | None]  # None where missing


def columns_of(reading: Reading) -> list[SeenColumn]:
    """Return the columns of a table in the order of the file; of other data, as they are used."""
    report = reading.report
    gaps, why = report.get("missing", {}), report.get("left_out", {})
    roles = report.get("roles") or dict.fromkeys(reading.head, "ignored")
    if not roles and reading.dataset is not None:
        data = reading.dataset
        roles = dict.fromkeys(data.labels, "label") | dict.fromkeys(data.column_names, "feature")
        if data.missing is not None:
            gaps = dict(zip(data.column_names, data.missing.sum(axis=0).tolist(), strict=True))
    numbers = count()
    return [
        SeenColumn(
            name,
            role,
            number,
            next(numbers) if role == "feature" else -1,
            gaps.get(name, 0),
            why.get(name, ""),
        )
        for number, (name, role) in enumerate(roles.items())
    ]


def contents(reading: Reading, column: SeenColumn) -> ColumnLook:
    """Return what a column holds."""
    cells: Sequence[str | None] = reading.head.get(column.name, [])
    words = column.why or ("" if column.role == "feature" else column.role)
    bars: list[float] = []
    gaps: list[float] = []
    data = reading.dataset
    if data is not None and column.role == "feature":
        values = np.asarray(data.X[:, column.feature])
        missing = None if data.missing is None else np.asarray(data.missing[:, column.feature])
        present = values if missing is None else values[~missing]
        some = present[:: max(1, len(present) // MOST_JUDGED)].astype(np.float64)
        if len(some) and np.isfinite(np.ptp(some)):
            counts = np.histogram(some, BARS)[0]
            bars = (counts / counts.max()).tolist()
        if missing is not None:
            parts = np.array_split(missing, min(PARTS, len(missing)))
            gaps = [float(part.mean()) for part in parts]
        words = f"{column.n_missing:,} missing" if column.n_missing else "none missing"
        first = data.with_gaps(slice(HEAD_ROWS))[:, column.feature]
        cells = cells or [None if np.isnan(value) else f"{float(value):.6g}" for value in first]
    elif data is not None and column.role == "label" and column.name in data.labels:
        names, codes = data.classes(column.name)
        counts = np.bincount(codes)[:BARS]
        bars, words = (counts / counts.max()).tolist(), counted(len(names), "value")
        cells = cells or [names[code] for code in codes[:HEAD_ROWS]]
    elif column.role == "id":
        words = "all differ"
        cells = cells or ([] if data is None else data.ids[:HEAD_ROWS].tolist())
    return ColumnLook(words, bars, gaps, cells or [""] * HEAD_ROWS)


AT_ONCE = 24  # features in the table; the others are one press away
MOST_SEEN = 200  # columns; of more, a name is looked for
MOST_PINNED = 6
LONGEST_LINE, SHOWN = 1 << 22, 100  # characters of a line that are read, and drawn
ASKED_COLUMNS, ASKED_ROWS = 5, 3  # of each reading of a file in doubt
LISTED = ("feature", "label", "id", "ignored")  # as in the menu


def chip_row(opened: Opened, reading: Reading) -> None:
    """Draw how the files are read, and one suggestion at most."""
    listed = chips(opened.kind, reading.report, opened.draft)
    parts = [tag("span", "Read as", "ca-quiet")] if listed else []
    parts += [
        choice(
            list(chip.choices.values()),
            "chip",
            chip.name,
            list(chip.choices).index(chip.now) if chip.now in chip.choices else -1,
            chip.label,
        )
        for chip in listed
    ]
    acts = {"chip": lambda name, place: _choose(opened, listed, name, place)}
    suggestion = _suggestion(opened, reading)
    if suggestion is not None:
        text, label, act = suggestion
        parts.append(tag("span", words(text), "ca-quiet ca-push"))
        parts.append(button(words(label), "suggested", "", css="ca-act ca-offer"))
        acts["suggested"] = lambda _value, _text: act()
    if parts:
        acting(tag("div", "".join(parts), "ca-read-as"), "read_as", acts)


def _choose(opened: Opened, listed: list[Chip], name: str, place: str) -> None:
    """Read the files otherwise; what the browser sends is a place in a list of ours."""
    for chip in listed:
        if chip.name == name and place.isdecimal() and int(place) < len(chip.choices):
            opened.draft = changed(opened.draft, name, list(chip.choices)[int(place)])


def _suggestion(opened: Opened, reading: Reading) -> tuple[str, str, Callable[[], None]] | None:
    """Return a reason, what to press, and what that does."""
    for column, values in reading.report.get("far", {}).items():
        value, n = values[0]
        gap = f"{value:g}"
        gaps = [*opened.draft.get("na_values", ()), gap]
        text = f"{shortened(column, 24)} holds {minus(gap)} in {counted(n, 'cell')}."
        return text, f"{minus(gap)} is a gap", partial(_change, opened, "na_values", gaps)
    for column, n in reading.report.get("likely_labels", {}).items():
        if column not in opened.draft.get("roles", {}):
            short = shortened(column, 24)
            text = f"{short} holds {counted(n, 'whole number')}."
            return text, f"Use {short} as label", partial(set_roles, opened, [column], "label")
    n_rows = reading.report.get("rows", 0)
    sparse = [
        column.name
        for column in columns_of(reading)
        if column.role == "feature" and column.n_missing > MOSTLY_MISSING * n_rows
    ]
    data = reading.dataset
    if "roles" in reading.report and sparse and data and len(sparse) <= data.n_features - 2:
        label = f"Ignore {counted(len(sparse), 'column')}"
        act = partial(set_roles, opened, sparse, "ignored")
        return f"Over {MOSTLY_MISSING:.0%} missing:", label, act
    return None


def _change(opened: Opened, name: str, value: object) -> None:
    opened.draft = changed(opened.draft, name, value)


def _question(opened: Opened, reading: Reading) -> None:
    """Draw both readings of a file that is in doubt, each with its first rows."""
    doubt = reading.report.get("doubt")
    if doubt is None or doubt["option"] in opened.draft:
        return
    st.markdown("**Which is right?**")
    option, other = doubt["option"], changed(opened.draft, doubt["option"], doubt["other"])
    both = {doubt["now"]: reading, doubt["other"]: opened.read(other)}
    for place, (value, read) in zip(st.columns(2, gap="large"), both.items(), strict=True):
        columns = columns_of(read)[:ASKED_COLUMNS]
        looks = [(column, contents(read, column)) for column in columns]
        cut = [(column, look._replace(cells=look.cells[:ASKED_ROWS])) for column, look in looks]
        with place:
            st.caption(DOUBTS[option, value])
            st.html(_table(cut, False))
            act = guarded(partial(_change, opened, option, value))
            st.button("This one", key=f"doubt-{value}", on_click=act)


def _lines(opened: Opened, reading: Reading) -> None:
    """Draw the first lines of a text table, of which another can be pressed to be the header."""
    (_, file), *others = opened.arrival.files
    if opened.kind != "csv" or others:
        return
    how: Any = {"encoding": reading.report.get("encoding", "utf-8"), "errors": "replace"}
    lines: list[str] = []
    with suppress(OSError, EOFError, zlib.error):
        with file.open("rb") as start:
            is_packed = start.read(2) == b"\x1f\x8b"
        with gzip.open(file, "rt", **how) if is_packed else file.open(**how) as text:
            lines = [text.readline(LONGEST_LINE) for _ in range(HEADER_LINES)]
    now = reading.report.get("header_line")
    rows = [
        tag("td", button(str(n), "line", n, f"Line {n} is the header", pressed=n == now))
        + tag("td", words(shortened(line.strip(), SHOWN)), "ca-is-label")
        for n, line in enumerate(lines, 1)
        if line.strip()
    ]
    body = tag("div", tag("table", "".join(tag("tr", row) for row in rows)), "ca-rows")
    acts = {"line": lambda n, _: _change(opened, "header", int(n)) if n.isdecimal() else None}
    with st.expander("Lines of the file", expanded=reading.dataset is None, key="header_lines"):
        st.caption("Press the number of the line that names the columns.")
        acting(body, "header_line", acts)


def set_roles(opened: Opened, names: Sequence[str], role: str) -> None:
    """Read the files with another role of some columns; a second id is none."""
    roles = dict(opened.draft.get("roles", {})) | dict.fromkeys(names, role)
    if role == "id":
        before = opened.read(opened.draft).report.get("roles", {}) | roles
        others = (name for name, was in before.items() if was == "id" and name != names[0])
        roles |= dict.fromkeys(others, "ignored")
    opened.draft = changed(opened.draft, "roles", roles)


def table(reading: Reading, opened: Opened | None, key: str) -> None:
    """Draw the first rows; with files at hand, columns get other roles here."""
    columns = columns_of(reading)
    can_change = opened is not None and "roles" in reading.report
    place = f"preview_first-{key}"
    listed = _found(columns, key, opened if can_change else None)
    features = [column for column in listed if column.role not in ("id", "label")]
    start = min(st.session_state.get(place, 0), max(0, len(features) - 1))
    labels = list(reading.dataset.labels) if reading.dataset is not None else []
    pinned = [column for column in columns if column.role in ("id", "label")]
    pinned.sort(key=lambda each: labels.index(each.name) if each.name in labels else -1)
    in_view = pinned[:MOST_PINNED] + features[start : start + AT_ONCE]
    body = _table([(column, contents(reading, column)) for column in in_view], can_change)
    body += _steps(features, start)

    def change(column: str, chosen: str) -> None:
        if opened is not None and column.isdecimal() and chosen in ("0", "1", "2", "3"):
            set_roles(opened, [columns[int(column)].name], LISTED[int(chosen)])

    def go(number: str, _text: str) -> None:
        st.session_state[place] = int(number) if number.isdecimal() else 0

    acting(body, "preview", {"role": change, "first": go})


def _found(columns: list[SeenColumn], key: str, opened: Opened | None) -> list[SeenColumn]:
    """Draw a search over many columns, and the role of all that it finds."""
    if len(columns) <= MOST_SEEN:
        return columns
    left, right = st.columns([2, 1], vertical_alignment="bottom")
    wanted = left.text_input(
        "Find a column", key=f"find-{key}", placeholder="part of the name"
    ).strip()
    listed = [column for column in columns if wanted.casefold() in column.name.casefold()]
    if wanted and listed and opened is not None:
        names = [column.name for column in listed]

        def set_all(_value: str, chosen: str) -> None:
            if chosen in ("0", "1", "2"):
                set_roles(opened, names, ("feature", "label", "ignored")[int(chosen)])

        label = f"Use {counted(len(names), 'column')} as"
        lists = choice(["Features", "Labels", "Ignored"], "all", "", -1, label)
        body = tag("label", f"{words(label)} {lists}", "ca-quiet")
        with right:
            acting(body, "role_of_all", {"all": set_all})
    return listed


def _table(drawn: list[tuple[SeenColumn, ColumnLook]], can_change: bool) -> str:
    heads = [_head(column, look, can_change) for column, look in drawn]
    rows = [
        "".join(_cell(look.cells, i, column.role) for column, look in drawn)
        for i in range(max((len(look.cells) for _, look in drawn), default=0))
    ]
    inner = tag("thead", tag("tr", "".join(heads)))
    inner += tag("tbody", "".join(tag("tr", row) for row in rows))
    about = {"tabindex": "0", "role": "region", "aria-label": "First rows"}
    return tag("div", tag("table", inner), "ca-rows", **about)


def _head(column: SeenColumn, holds: ColumnLook, can_change: bool) -> str:
    name = tag("b", words(shortened(column.name, 24)), title=column.name)
    css = f"ca-role ca-{column.role}"
    if can_change:
        names = [capital(role) for role in LISTED]
        now, label = LISTED.index(column.role), f"Role of {column.name}"
        role = choice(names, "role", column.number, now, label, css)
    else:
        role = tag("span", capital(column.role), css)
    bars = "".join(tag("i", "", style=f"height:{bar:.0%}") for bar in holds.bars)
    said = tag("small", words(holds.words), "ca-amber" * (column.n_missing > 0))
    parts = tag("div", bars, "ca-bars") + tag("div", "", "ca-gaps", style=_strip(holds.gaps))
    return tag("th", name + role + parts + said, f"ca-is-{column.role}", scope="col")


def _strip(gaps: list[float]) -> str:
    """Return a strip of the rows in the file's order, amber where some are missing."""
    if not any(gaps):
        return ""
    step, stops = 100 / len(gaps), []
    shades = [float(np.ceil(10 * share)) * 8 + 20 * (share > 0) for share in gaps]
    for shade, same in groupby(enumerate(shades), lambda part: part[1]):
        places = [i for i, _ in same]
        colour = f"color-mix(in srgb, var(--ca-gap) {shade:.0f}%, transparent)"
        stops.append(f"{colour} {places[0] * step:.1f}% {(places[-1] + 1) * step:.1f}%")
    return f"background-image:linear-gradient(90deg,{','.join(stops)})"


def _cell(cells: Sequence[str | None], row: int, role: str) -> str:
    text = cells[row] if row < len(cells) else ""
    if text is None:
        return tag("td", "missing", f"ca-is-{role} ca-amber")
    short = shortened(text, 18)
    body = words(minus(short) if role == "feature" else short)
    return tag("td", body, f"ca-is-{role}", title=text)


def _steps(features: list[SeenColumn], start: int) -> str:
    """Return what leads to the columns before and after those in the table."""
    end = min(start + AT_ONCE, len(features))
    steps = []
    if start:
        steps.append(button("Previous", "first", max(0, start - AT_ONCE), css="ca-act ca-offer"))
    if end < len(features):
        steps.append(button("Next", "first", end, css="ca-act ca-offer"))
    said = tag(
        "span", f"{start + 1:,} to {end:,} of {counted(len(features), 'column')}", "ca-quiet"
    )
    return tag("div", said + "".join(steps), "ca-steps") if steps else ""


CARDS, JUDGED = 4, 9  # shapes that are drawn, and first rows of which one is drawn in them
MOST_SIDE = 4096
ORDERS = ("Row by row", "Column by column")
Use = Callable[[PixelShape | None], None]


def shapes(opened: Opened, reading: Reading) -> None:
    """Draw the choice of height, width and order of pixels where rows can be images."""
    if opened.kind not in KINDS:
        return
    now = shape_of(opened.kind, opened.draft)
    if now is None and opened.kind == "csv" and reading.report.get("image_shape"):
        now = PixelShape(*reading.report["image_shape"])  # squares of whole numbers
    data = opened.read(with_shape(opened.kind, opened.draft, None)).dataset
    if data is None or data.image_shape is not None:
        return
    offered = judged(opened.kind, data)
    is_likely = now is not None or (bool(offered) and offered[0].is_likely)
    if reading.head and not is_likely:
        return

    def use(shape: PixelShape | None) -> None:
        opened.draft = with_shape(opened.kind, opened.draft, shape)

    with st.expander("Rows as images", expanded=is_likely, key="image_shapes"):
        _cards(data, now, offered, use)
        base = now or PixelShape(0, 0, by_column=opened.kind == "mat")
        for side, place in enumerate(st.columns(2)):
            label, key = ("Height", "Width")[side], f"side_{side}-{opened.key}"
            st.session_state[key] = base[side] or None
            place.number_input(
                label,
                1,
                MOST_SIDE,
                None,
                key=key,
                placeholder="no",
                on_change=guarded(partial(_typed, key, side, base, data.n_features, use)),
            )


def _typed(key: str, side: int, base: PixelShape, n_values: int, use: Use) -> None:
    """Take a height or a width; the other side follows from the number of values."""
    pixels, channels = st.session_state[key], base.channels
    if not pixels:
        return
    other, rest = divmod(n_values, pixels * channels)
    if rest or other > MOST_SIDE:
        colours = ", three a pixel," if channels == 3 else ""
        text = (
            f"A row of {n_values:,} values{colours} makes no image with a side of {pixels:,}: both "
            f"sides are whole numbers up to {MOST_SIDE:,}; give another side."
        )
        state.notify("error", text)
    else:
        height, width = (other, pixels) if side else (pixels, other)
        use(base._replace(height=height, width=width))


def _cards(data: Dataset, now: PixelShape | None, offered: list[Judged], use: Use) -> None:
    """Draw the chosen shape, in both orders, and the most plausible ones as pictures of one row."""
    likely = [each.shape for each in offered[:CARDS]]
    mine = [] if now is None else [now, now._replace(by_column=not now.by_column)]
    listed = list(dict.fromkeys([*mine, *likely]))
    row = int(np.argmax(np.var(data.X[:JUDGED], axis=1)))
    cards = [
        button(
            tag("span", tag("img", "", src=data_uri(_picture(data, row, shape)), alt=""))
            + tag("b", f"{shape.height} × {shape.width}")
            + tag("small", ORDERS[shape.by_column].lower() + ", colour" * (shape.channels == 3)),
            "shape",
            i,
            css="ca-shape",
            pressed=shape == now,
        )
        for i, shape in enumerate(listed)
    ]
    cards.append(button(tag("b", "No images"), "shape", -1, css="ca-shape", pressed=now is None))

    def take(place: str, _text: str) -> None:
        use(listed[int(place)] if place in map(str, range(len(listed))) else None)

    acting(tag("div", "".join(cards), "ca-shapes"), "shape_cards", {"shape": take})


def _picture(data: Dataset, row: int, shape: PixelShape) -> np.ndarray:
    """Return a row as an image, uint8; strokes are dark on a light page."""
    values = np.asarray(data.X[[row]], np.float64)[:, pixel_order(shape)]
    some = np.asarray(data.X[:: max(1, data.n_rows // 200)], np.float64)
    low, high = float(some.min()), float(some.max())
    levels = np.clip((values - low) / ((high - low) or 1.0), 0, 1) * 255
    images = resized(levels.astype(np.uint8).reshape(-1, *shape.sides), tile_of(shape.sides))
    image: np.ndarray = images[0]
    return 255 - image if style_of(images) == "ink" and not is_dark() else image


COLUMNS, LINES = 20, 6  # of the picture of images
MOST_NAMES = 6
LEAST = 4  # features of a line


def page(dataset: Dataset) -> None:
    """Draw the tab."""
    opened = arrivals.of(dataset.digest)
    if opened is not None and not _is_as_opened(opened):
        return
    if opened is None and dataset.image_shape is None:
        table(Reading(dataset, "", {}), None, dataset.digest[:12])
    with st.container(key="beside"):
        look, before = st.columns([1.5, 1], gap="large")
    with look:
        overview(dataset)
    with before:
        st.subheader("Before the fit", anchor=False)
        preprocessing(dataset)


def _is_as_opened(opened: Opened) -> bool:
    """Draw how the files are read; return whether the data on screen are what that gives."""
    reading = opened.read(opened.draft)
    names = [name for name, _ in opened.arrival.files]
    name = names[0] if len(names) == 1 else counted(len(names), "file")
    rows, columns = (reading.report.get(side, 0) for side in ("rows", "columns"))
    sides = f"{counted(rows, 'row')}, {counted(columns, 'column')}" if rows else ""
    st.html(tag("h3", words(name) + " " + tag("span", words(sides), "ca-quiet"), "ca-file"))
    chip_row(opened, reading)
    _question(opened, reading)
    shapes(opened, reading)
    if reading.dataset is None:
        st.error(markdown(reading.sentence))
    _lines(opened, reading)
    if reading.head or (reading.dataset is not None and reading.dataset.image_shape is None):
        table(reading, opened, opened.key)
    if reading.dataset is None:
        _cancel(opened)
        return False
    if reading.dataset.digest == opened.digest:
        return True
    pictures(reading.dataset)
    _finish(opened, reading.dataset)
    return False


def _finish(opened: Opened, data: Dataset) -> None:
    """Draw what the files are to become, and the way there."""
    with st.container(horizontal=True, vertical_alignment="center", key="preview_foot"):
        what = f"{data.n_features:,} features"
        if data.image_shape is not None:
            what = "images of " + " × ".join(map(str, data.image_shape[:2])) + " pixels"
        colour = f", coloured by {next(iter(data.labels))}" if data.labels else ""
        takes = about(estimate_seconds(data.n_rows, data.n_features, state.first_config(data)))
        rows = counted(data.n_rows, "row")
        st.text(f"{rows}, {what}{colour}. {capital(takes)}.", width="stretch")
        _cancel(opened)
        if st.button("Explore", type="primary", key="upload_use", icon=":material/arrow_forward:"):
            opened.options = opened.draft
            arrivals.use(opened, data)


def _cancel(opened: Opened) -> None:
    @guarded
    def back() -> None:
        opened.draft = opened.options

    if opened.digest is not None and opened.draft != opened.options:
        st.button("Cancel", key="upload_cancel", on_click=back)


def overview(dataset: Dataset) -> None:
    """Draw the facts and a picture of the rows."""
    st.subheader(markdown(dataset.name), anchor=False)
    constant, repeated = _checked(dataset.digest, dataset.X)
    named = f"{len(constant):,}" if len(constant) else "none"
    if len(constant) and dataset.feature_names is not None:
        names = ", ".join(dataset.feature_names[j] for j in constant[:MOST_NAMES])
        named += f": {names}{'…' if len(constant) > MOST_NAMES else ''}"
    lines = {
        "Constant features": named,
        "Repeated rows": f"{repeated:,}" if repeated else "none",
        "Fit": about(fits.seconds()),
    }
    st.html(fact_list(data_facts(dataset) | lines))
    _order(dataset)
    pictures(dataset)


def _order(dataset: Dataset) -> None:
    """Draw whether the features follow each other: components and rows are lines then."""
    if dataset.image_shape is not None or dataset.is_recording or dataset.n_features < LEAST:
        return

    def change() -> None:
        services.note(dataset.digest, ordered=bool(st.session_state[key]))

    key = f"ordered-{dataset.digest[:12]}"
    st.session_state[key] = dataset.is_ordered
    label = "Features are in order, such as times or wavelengths"
    st.toggle(label, key=key, on_change=guarded(change), help="Components and rows become lines.")


def pictures(dataset: Dataset) -> None:
    """Draw a sample of the images."""
    if dataset.image_shape is None:
        return
    rows = sample(dataset.n_rows, COLUMNS * LINES)
    with st.container(key="pictures"):
        alt = f"{counted(len(rows), 'image')} of the data set"
        st.image(sheet_of(dataset, rows, COLUMNS), width="stretch", alt=alt)
    st.caption(f"{counted(len(rows), 'row')} drawn at random, in the order of the data")


@by_key(16)
def _checked(X: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the numbers of the columns that have one value only, and how many rows repeat."""
    return np.flatnonzero((X[:1] == X).all(axis=0)), duplicate_rows(X)
