"""The tab This data: how files were read, and the roles of columns."""

import gzip
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import streamlit as st

from appca.canvas.sheets import resized, sample, tile_of
from appca.data.dataset import MISSING, Dataset
from appca.data.files import few, in_one_line
from appca.data.pixels import KINDS, Judged, PixelShape, pixel_order, shape_of, with_shape
from appca.data.preprocessing import suggest
from appca.frames import counts_between
from appca.ordered import lines_of_rows
from appca.plots.components import data_uri
from appca.preparation import told
from appca.runs.fit import estimate_seconds
from appca.ui import arrivals, fits, kit, services, settings, state
from appca.ui.arrivals import AUTO, DOUBTS, HEAD_ROWS, HEADER_LINES, Opened, Reading
from appca.ui.kit import Act, acting, button, choice, markdown, press, tag, words
from appca.ui.rows import on_page, sheet_of
from appca.words import about, capital, counted, listed, minus, shortened

BARS, PARTS = 12, 24
MOST_JUDGED, MOSTLY_MISSING = 20_000, 0.2


class SeenColumn(NamedTuple):
    """One column of a table."""

    name: str
    role: str  # "id", "label", "feature" or "ignored"
    number: int
    feature: int  # index among the features, else -1
    n_missing: int
    why: str


class ColumnLook(NamedTuple):
    """A summary of a column's content."""

    words: str
    bars: list[float]
    gaps: list[float]  # share of missing cells in each part of the rows
    cells: Sequence[str | None]  # None if missing


def columns_of(reading: Reading) -> list[SeenColumn]:
    """Return a table's columns in file order; for other data, labels first."""
    report, data = reading.report, reading.dataset
    gaps, why = report.get("missing", {}), report.get("left_out", {})
    roles = report.get("roles") or dict.fromkeys(reading.head, "ignored")
    if not roles and data is not None:
        roles = dict.fromkeys(data.labels, "label") | dict.fromkeys(data.column_names, "feature")
        if data.missing is not None:
            gaps = dict(zip(data.column_names, data.missing.sum(axis=0).tolist(), strict=True))
    seen, numbers = [], count()
    for number, (name, role) in enumerate(roles.items()):
        feature = next(numbers) if role == "feature" else -1
        seen.append(SeenColumn(name, role, number, feature, gaps.get(name, 0), why.get(name, "")))
    return seen


def contents(reading: Reading, column: SeenColumn) -> ColumnLook:
    """Return a summary of a column's content."""
    cells: Sequence[str | None] = reading.head.get(column.name, [])
    words = column.why or ("" if column.role == "feature" else column.role)
    counts, gaps, data = np.array([]), list[float](), reading.dataset
    if data is not None and column.role == "feature":
        values = np.asarray(data.X[:, column.feature])
        if data.missing is not None:
            missing = np.asarray(data.missing[:, column.feature])
            parts = np.array_split(missing, min(PARTS, len(missing)))
            gaps, values = [float(part.mean()) for part in parts], values[~missing]
        counts = counts_between(values, BARS, MOST_JUDGED)
        words = f"{column.n_missing:,} missing" if column.n_missing else "none missing"
        first = data.with_gaps(slice(HEAD_ROWS))[:, column.feature]
        cells = cells or [None if np.isnan(value) else f"{float(value):.6g}" for value in first]
    elif data is not None and column.role == "label" and column.name in data.labels:
        names, codes = data.classes(column.name)
        gap = names[-1:] == [MISSING]
        counts, words = np.bincount(codes)[:BARS], counted(len(names) - gap, "value")
        if len(names) > BARS and data.labels[column.name].dtype.kind in "fiu":
            counts = counts_between(data.labels[column.name], BARS, MOST_JUDGED)
        words += f", {np.sum(codes == len(names) - 1):,} missing" * gap
        cells = cells or [names[code] for code in codes[:HEAD_ROWS]]
    elif column.role == "id":
        words = "names the rows"
        cells = cells or ([] if data is None else data.ids[:HEAD_ROWS].tolist())
    bars = (counts / counts.max(initial=1)).tolist()
    return ColumnLook(words, bars, gaps, cells or [""] * HEAD_ROWS)


AT_ONCE, MOST_SEEN, MOST_PINNED = 24, 8, 6
LONGEST_LINE, SHOWN = 1 << 22, 100
ASKED_COLUMNS, ASKED_ROWS = 5, 3  # numbers shown for each reading of an ambiguous file
LISTED = ("feature", "label", "ignored", "id")


def _chip_row(opened: Opened, reading: Reading) -> None:
    listed = {chip.name: chip for chip in arrivals.chips(opened.kind, reading.report, opened.draft)}
    parts = [tag("span", "Read as", "ca-quiet")] if listed else []
    for chip in listed.values():
        values = list(chip.choices)
        now = values.index(chip.now) if chip.now in values else -1
        parts.append(choice(list(chip.choices.values()), "chip", chip.name, now, chip.label))

    def choose(name: str, place: str) -> None:
        values = list(listed[name].choices) if name in listed else []
        if place.isdecimal() and int(place) < len(values):
            opened.change(name, values[int(place)])

    acts: dict[str, Act] = {"chip": choose}
    if (suggestion := _suggestion(opened, reading)) is not None:
        text, label, act = suggestion
        parts.append(tag("span", words(text), "ca-quiet ca-push"))
        parts.append(button(words(label), "suggested", "", css="ca-act ca-offer"))
        acts["suggested"] = lambda _value, _text: act()
    if parts:
        acting(tag("div", "".join(parts), "ca-read-as"), "read_as", acts)


def _suggestion(opened: Opened, reading: Reading) -> tuple[str, str, Callable[[], None]] | None:
    for column, values in reading.report.get("far", {}).items():
        gap, n = f"{values[0][0]:g}", values[0][1]
        gaps = [*opened.draft.get("na_values", ()), gap]
        text = f"{shortened(column, 24)} contains {minus(gap)} in {counted(n, 'cell')}."
        label = f"{minus(gap)} means missing everywhere"
        return text, label, partial(opened.change, "na_values", gaps)
    if names := list(reading.report.get("likely_labels", {})):
        label = f"Use as label{'s' * (len(names) > 1)}"
        return listed(names), label, partial(_set_roles, opened, names, "label")
    doubtful = arrivals.doubtful_features(reading)
    for start, are in ("a repeat of", "repeat other features"), ("empty", ""):
        names = [name for name, what in doubtful.items() if what.startswith(start)]
        if len(names) > 1:
            text = f"{listed(names)} {are or f'are {doubtful[names[0]]}'}."
            return text, "Leave them out", partial(_set_roles, opened, names, "ignored")
    for name, what in doubtful.items():
        act = partial(_set_roles, opened, [name], "ignored")
        return f"“{shortened(name)}” is {what}.", "Leave it out", act
    most, data = MOSTLY_MISSING * reading.report.get("rows", 0), reading.dataset
    features = (column for column in columns_of(reading) if column.role == "feature")
    sparse = [column.name for column in features if column.n_missing > most]
    if "roles" in reading.report and sparse and data and len(sparse) <= data.n_features - 2:
        label = f"Ignore {counted(len(sparse), 'column')}"
        act = partial(_set_roles, opened, sparse, "ignored")
        return f"Over {MOSTLY_MISSING:.0%} missing:", label, act
    return None


def _question(opened: Opened, reading: Reading) -> None:
    doubt = reading.report.get("doubt")
    if doubt is None or doubt["option"] in opened.draft:
        return
    st.markdown("**Which is right?**")
    option, other = doubt["option"], arrivals.changed(opened.draft, doubt["option"], doubt["other"])
    both = {doubt["now"]: reading, doubt["other"]: opened.read(other)}
    for place, (value, read) in zip(st.columns(2, gap="large"), both.items(), strict=True):
        looks = [(column, contents(read, column)) for column in columns_of(read)[:ASKED_COLUMNS]]
        cut = [(column, look._replace(cells=look.cells[:ASKED_ROWS])) for column, look in looks]
        with place:
            st.caption(DOUBTS[option, value])
            st.html(_table(cut, False))
            press("This one", f"doubt-{value}", opened.change, option, value)


def _lines(opened: Opened, reading: Reading) -> None:
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
    now, rows = reading.report.get("header_line"), ""
    for n, line in enumerate(lines, 1):
        if line.strip():
            head = tag("td", button(str(n), "line", n, f"Line {n} is the header", pressed=n == now))
            text = words(shortened(line.strip(), SHOWN))
            rows += tag("tr", head + tag("td", text, "ca-is-label"))
    acts: dict[str, Act] = {"line": lambda n, _: opened.change("header", int(n))}
    with st.expander("Lines of the file", expanded=reading.dataset is None, key="header_lines"):
        st.caption("Press the number of the line that names the columns.")
        acting(tag("div", tag("table", rows), "ca-rows"), "header_line", acts)


def _set_roles(opened: Opened, names: Sequence[str], role: str) -> None:
    roles = dict(opened.draft.get("roles", {})) | dict.fromkeys(names, role)
    if role == "id":
        before = opened.read(opened.draft).report.get("roles", {}) | roles
        others = (name for name, was in before.items() if was == "id" and name != names[0])
        roles |= dict.fromkeys(others, "ignored")
    opened.change("roles", roles)


def _preview(reading: Reading, opened: Opened | None, key: str) -> None:
    columns = listed = columns_of(reading)
    can_change = opened is not None and "roles" in reading.report

    def set_roles(names: list[str], place: str) -> None:
        if opened is not None and place in ("0", "1", "2", "3"):
            _set_roles(opened, names, LISTED[int(place)])

    if len(columns) > MOST_SEEN:
        left, right = st.columns([2, 1], vertical_alignment="bottom")
        look: Any = {"key": f"find-{key}", "placeholder": "parts of names, such as: date, score"}
        typed = left.text_input("Find a column", **look).casefold().split(",")
        wanted = [part.strip() for part in typed if part.strip()] or [""]
        listed = [each for each in columns if any(part in each.name.casefold() for part in wanted)]
        names = [column.name for column in listed]
        if any(wanted) and names and can_change:
            label = f"Use {counted(len(names), 'column')} as"
            texts = ["Features", "Labels", "Ignored"] + ["Id"] * (len(names) == 1)
            body = f"{words(label)} {choice(texts, 'all', '', -1, label)}"
            with right:
                acts: dict[str, Act] = {"all": lambda _, place: set_roles(names, place)}
                acting(tag("label", body, "ca-quiet"), "role_of_all", acts)
    labels = list(reading.dataset.labels) if reading.dataset is not None else []
    pinned = [column for column in listed if column.role in ("id", "label")]
    pinned.sort(key=lambda each: labels.index(each.name) if each.name in labels else -1)
    others = pinned[MOST_PINNED:] + [each for each in listed if each not in pinned]
    first = kit.first_of_page(len(others), AT_ONCE, f"preview_first-{key}")
    in_view = pinned[:MOST_PINNED] + others[first : first + AT_ONCE]
    body = _table([(column, contents(reading, column)) for column in in_view], can_change)
    if len(others) > AT_ONCE:
        last = min(first + AT_ONCE, len(others))
        said = f"{first + 1:,} to {last:,} of {counted(len(others), 'other column')}"
        body += tag("div", tag("span", said, "ca-quiet"), "ca-steps")

    def change(column: str, place: str) -> None:
        if column.isdecimal():
            set_roles([columns[int(column)].name], place)

    acting(body, "preview", {"role": change})


def _table(drawn: list[tuple[SeenColumn, ColumnLook]], can_change: bool) -> str:
    heads, rows = "".join(_head(column, look, can_change) for column, look in drawn), ""
    for i in range(max((len(look.cells) for _, look in drawn), default=0)):
        cells = ""
        for column, look in drawn:
            text, css = look.cells[i] if i < len(look.cells) else "", f"ca-is-{column.role}"
            if text is None:
                cells += tag("td", "missing", f"{css} ca-amber")
            else:
                short = shortened(text, 18)
                body = words(minus(short) if column.role == "feature" else short)
                cells += tag("td", body, css, title=text)
        rows += tag("tr", cells)
    inner = tag("thead", tag("tr", heads)) + tag("tbody", rows)
    about = {"tabindex": "0", "role": "region", "aria-label": "First rows"}
    return tag("div", tag("table", inner), "ca-rows", **about)


def _bars(heights: Iterable[float]) -> str:
    return tag("div", "".join(tag("i", "", style=f"height:{x:.0%}") for x in heights), "ca-bars")


def _head(column: SeenColumn, holds: ColumnLook, can_change: bool) -> str:
    name = tag("b", words(shortened(column.name, 24)), title=column.name)
    css = f"ca-role ca-{column.role}"
    if can_change:
        now, label = LISTED.index(column.role), f"Role of {column.name}"
        role = choice([*map(capital, LISTED)], "role", column.number, now, label, css)
    else:
        role = tag("span", capital(column.role), css)
    said = tag("small", words(holds.words), "ca-amber" * (column.n_missing > 0))
    strip, step = "", 100 / max(1, len(holds.gaps))
    if any(holds.gaps):  # amber where cells are missing, in file order
        stops = []
        for i, share in enumerate(holds.gaps):
            shade = np.ceil(10 * share) * 8 + 20 * (share > 0)
            colour = f"color-mix(in srgb, var(--ca-gap) {shade:.0f}%, transparent)"
            stops.append(f"{colour} {i * step:.1f}% {(i + 1) * step:.1f}%")
        strip = f"background-image:linear-gradient(90deg,{','.join(stops)})"
    parts = _bars(holds.bars) + tag("div", "", "ca-gaps", style=strip)
    return tag("th", name + role + parts + said, f"ca-is-{column.role}", scope="col")


CARDS, JUDGED, MOST_SIDE = 4, 9, 4096
ORDERS = ("Row by row", "Column by column")
Use = Callable[[PixelShape | None], None]


def _shapes(opened: Opened, reading: Reading) -> None:
    if opened.kind not in KINDS:
        return
    now = shape_of(opened.kind, opened.draft)
    if now is None and opened.kind == "csv" and reading.report.get("image_shape"):
        now = PixelShape(*reading.report["image_shape"])
    data = opened.read(with_shape(opened.kind, opened.draft, None)).dataset
    if data is None or data.image_shape is not None:
        return
    offered = arrivals.judged(opened.kind, data)
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
            typed = partial(_typed, side, base, data.n_features, use)
            look: Any = {"placeholder": "no", "on_change": state.pass_value, "args": [key, typed]}
            place.number_input(label, 1, MOST_SIDE, None, key=key, **look)


def _typed(side: int, base: PixelShape, n_values: int, use: Use, pixels: int | None) -> None:
    channels = base.channels
    if not pixels:
        return
    other, rest = divmod(n_values, pixels * channels)
    if rest or other > MOST_SIDE:
        colours = ", three per pixel," if channels == 3 else ""
        limit = f"sides must be whole numbers up to {MOST_SIDE:,}; choose another side."
        text = f"A row of {n_values:,} values{colours} has no image of side {pixels:,}: {limit}"
        state.notify("error", text)
    else:
        height, width = (other, pixels) if side else (pixels, other)
        use(base._replace(height=height, width=width))


def _cards(data: Dataset, now: PixelShape | None, offered: list[Judged], use: Use) -> None:
    mine = [] if now is None else [now, now._replace(by_column=not now.by_column)]
    listed = list(dict.fromkeys([*mine, *(each.shape for each in offered[:CARDS])]))
    row, cards = int(np.argmax(np.var(data.X[:JUDGED], axis=1))), ""
    for i, shape in enumerate(listed):
        order = ORDERS[shape.by_column].lower() + ", colour" * (shape.channels == 3)
        name = tag("b", f"{shape.height} × {shape.width}") + tag("small", order)
        body = tag("span", tag("img", "", src=data_uri(_picture(data, row, shape)), alt="")) + name
        cards += button(body, "shape", i, css="ca-shape", pressed=shape == now)
    cards += button(tag("b", "No images"), "shape", -1, css="ca-shape", pressed=now is None)

    def take(place: str, _text: str) -> None:
        use(listed[int(place)] if place in map(str, range(len(listed))) else None)

    acting(tag("div", cards, "ca-shapes"), "shape_cards", {"shape": take})


def _picture(data: Dataset, row: int, shape: PixelShape) -> np.ndarray:
    values = np.asarray(data.X[[row]], np.float64)[:, pixel_order(shape)]
    some = np.asarray(data.X[:: max(1, data.n_rows // 200)], np.float64)
    low, high = float(some.min()), float(some.max())
    levels = np.clip((values - low) / ((high - low) or 1.0), 0, 1) * 255
    images = resized(levels.astype(np.uint8).reshape(-1, *shape.sides), tile_of(shape.sides))
    return on_page(data, images[0])


COLUMNS, LINES, ROW_LINES = 20, 6, 12


def page(dataset: Dataset) -> None:
    """Draw the tab."""
    opened = arrivals.of(dataset.digest)
    if opened is not None and not _is_as_opened(opened):
        return
    if opened is None and dataset.image_shape is None:
        report = dataset.provenance.get("report", {})
        if report:
            said = in_one_line(report, dataset)
            st.caption(markdown(f"{said} To read it otherwise, drop the file again."))
        is_table = {*dataset.labels, *dataset.column_names} <= report.get("roles", {}).keys()
        _preview(Reading(dataset, "", report if is_table else {}), None, dataset.digest[:12])
    with st.container(key="beside"):
        look, before = st.columns([1.5, 1], gap="large")
    with look:
        _overview(dataset)
    with before:
        st.subheader("Before the fit", anchor=False)
        settings.preprocessing(dataset)
        _before_and_after(dataset)


def _is_as_opened(opened: Opened) -> bool:
    """Draw how the files are read; return whether these are the data on screen."""
    reading = opened.read(opened.draft)
    data, names = reading.dataset, [name for name, _ in opened.arrival.files]
    name = names[0] if len(names) == 1 else counted(len(names), "file")
    rows, columns = (reading.report.get(side, 0) for side in ("rows", "columns"))
    sides = f"{counted(rows, 'row')}, {counted(columns, 'column')}" if rows else ""
    st.html(tag("h3", words(name) + " " + tag("span", words(sides), "ca-quiet"), "ca-file"))
    _chip_row(opened, reading)
    _question(opened, reading)
    _shapes(opened, reading)
    if data is None:
        st.error(markdown(reading.sentence))
    _lines(opened, reading)
    if reading.head or (data is not None and data.image_shape is None):
        _preview(reading, opened, opened.key)
    if opened.draft.get("roles"):
        press("Use detected roles", "detected_roles", opened.change, "roles", AUTO)
    if data is not None and data.digest == opened.digest:
        return True
    if data is not None:
        _pictures(data)
    with st.container(horizontal=True, vertical_alignment="center", key="preview_foot"):
        if data is not None:
            what = f"{data.n_features:,} features"
            if data.image_shape is not None:
                what = "images of " + " × ".join(map(str, data.image_shape[:2])) + " pixels"
            colour = f", coloured by {next(iter(data.labels))}" if data.labels else ""
            first = state.first_config(data)
            takes = capital(about(estimate_seconds(data.n_rows, data.n_features, first)))
            rows = "Not used yet: " * (opened.digest is not None) + counted(data.n_rows, "row")
            st.text(f"{rows}, {what}{colour}. {takes}.", width="stretch")
        if opened.digest is not None and opened.draft != opened.options:
            press("Cancel", "upload_cancel", setattr, opened, "draft", opened.options)
        look: Any = {"type": "primary", "icon": ":material/arrow_forward:"}
        if data is not None and st.button("Explore", key="upload_use", **look):
            arrivals.use(opened, opened.draft, data)
    return False


def _before_and_after(dataset: Dataset) -> None:
    name = str(state.config().preprocessing.get("prepare", "none"))
    if name == "none":
        return
    X = dataset.with_gaps(sample(dataset.n_rows, MOST_JUDGED // dataset.n_features + ROW_LINES))
    drawn, are_lines = "", dataset.is_ordered
    of = "Some rows" if are_lines else "All values"
    for title, prepare in ((f"{of} before", "none"), (f"{of} after", name)):
        options = {"prepare": prepare} if are_lines else suggest(dataset, prepare).to_dict()
        Y = services.prepared(dataset.digest, options).transform(X)
        drawn += tag("figure", _drawn(Y, are_lines) + tag("figcaption", title))
    st.html(tag("div", drawn, "ca-before"))


def _drawn(Y: np.ndarray, are_lines: bool) -> str:
    if not are_lines:
        bars = np.sqrt(np.histogram(Y[~np.isnan(Y)], 3 * BARS)[0])
        return _bars(bars / bars.max())
    lines = lines_of_rows(Y[:ROW_LINES], (Y.min(), Y.max()), (72, 220)).max(axis=0)
    image = np.full((*lines.shape, 4), (80, 136, 194, 0), np.uint8)
    image[:, :, 3] = 255 * lines
    return tag("img", "", src=data_uri(image), alt="")


def _overview(dataset: Dataset) -> None:
    st.subheader(markdown(dataset.name), anchor=False)
    constant, repeated, odd = _checked(dataset.digest, dataset)
    names = [dataset.feature_names[j] for j in constant] if dataset.feature_names else []
    named = f"{len(constant):,}{': ' * bool(names)}{few(names)}" if len(constant) else "none"
    lines = {
        "Constant features": named,
        "Repeated rows": f"{repeated:,}" if repeated else "none",
        "Fit": about(fits.seconds()),
    }
    st.html(kit.fact_list(dataset.facts | lines | ({"To check": odd} if odd else {})))
    if dataset.image_shape is None and not dataset.is_recording and dataset.n_features >= 4:
        key = f"ordered-{dataset.digest[:12]}"
        st.session_state[key] = dataset.is_ordered
        look: Any = {"on_change": state.pass_value, "help": "Components and rows become lines."}
        look["args"] = [key, lambda on: services.note(dataset.digest, ordered=on)]
        st.toggle("Features are in order, such as times or wavelengths", key=key, **look)
    _pictures(dataset)


def _pictures(dataset: Dataset) -> None:
    if dataset.image_shape is None:
        return
    rows = sample(dataset.n_rows, COLUMNS * LINES)
    with st.container(key="pictures"):
        alt = f"{counted(len(rows), 'image')} of the data set"
        st.image(sheet_of(dataset, rows, COLUMNS), width="stretch", alt=alt)
    st.caption(f"{counted(len(rows), 'row')} drawn at random, in the order of the data")


@services.by_key(16)
def _checked(data: Dataset) -> tuple[np.ndarray, int, str]:
    constant = np.flatnonzero((data.X[:1] == data.X).all(axis=0))
    return constant, len(data.repeated_rows), told(data).strip()
