"""The first rows of a table, with what each column is for; how it is read, as chips."""

from collections.abc import Sequence
from itertools import groupby

import numpy as np
import streamlit as st

from appca.ui.arrivals.chips import Chip, changed, chips
from appca.ui.arrivals.opening import Opened, Reading
from appca.ui.data.columns import MOSTLY_MISSING, ColumnLook, SeenColumn, columns_of, contents
from appca.ui.parts.acts import acting, button, choice
from appca.ui.parts.text import tag, words
from appca.words.numbers import minus
from appca.words.wording import capital, counted, shortened

AT_ONCE = 24  # features in the table; the others are one press away
MOST_STRIPS = 200  # columns of the overview; of more, a name is looked for
MOST_PINNED = 6
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
        text, label, names, role = suggestion
        parts.append(tag("span", words(text), "ca-quiet ca-push"))
        parts.append(button(words(label), "suggested", "", css="ca-act ca-offer"))
        acts["suggested"] = lambda _value, _text: set_roles(opened, names, role)
    if parts:
        acting(tag("div", "".join(parts), "ca-read-as"), "read_as", acts)


def _choose(opened: Opened, listed: list[Chip], name: str, place: str) -> None:
    """Read the files otherwise; what the browser sends is a place in a list of ours."""
    for chip in listed:
        if chip.name == name and place.isdecimal() and int(place) < len(chip.choices):
            opened.draft = changed(opened.draft, name, list(chip.choices)[int(place)])


def _suggestion(opened: Opened, reading: Reading) -> tuple[str, str, list[str], str] | None:
    """Return a reason, what to press, and the columns that get a role."""
    for name, n in reading.report.get("likely_labels", {}).items():
        if name not in opened.draft.get("roles", {}):
            short = shortened(name, 24)
            text = f"{short} holds {counted(n, 'whole number')}."
            return text, f"Use {short} as label", [name], "label"
    n_rows = reading.report.get("rows", 0)
    sparse = [
        column.name
        for column in columns_of(reading)
        if column.role == "feature" and column.n_missing > MOSTLY_MISSING * n_rows
    ]
    if "roles" in reading.report and sparse and reading.dataset is not None:
        label = f"Ignore {counted(len(sparse), 'column')}"
        return f"Over {MOSTLY_MISSING:.0%} missing:", label, sparse, "ignored"
    return None


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
    body += _overview(columns, features, start, reading.report.get("rows", 0))

    def change(column: str, chosen: str) -> None:
        if opened is not None and column.isdecimal() and chosen in ("0", "1", "2", "3"):
            set_roles(opened, [columns[int(column)].name], LISTED[int(chosen)])

    def go(number: str, _text: str) -> None:
        st.session_state[place] = int(number) if number.isdecimal() else 0

    acting(body, "preview", {"role": change, "first": go})


def _found(columns: list[SeenColumn], key: str, opened: Opened | None) -> list[SeenColumn]:
    """Draw a search over many columns, and the role of all that it finds."""
    if len(columns) <= MOST_STRIPS:
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


def _overview(
    columns: list[SeenColumn], features: list[SeenColumn], start: int, n_rows: int
) -> str:
    """Return all columns as one strip, of which each leads to its place; steps of very many."""
    end = min(start + AT_ONCE, len(features))
    said = f"{start + 1:,} to {end:,} of {counted(len(features), 'column')}" if features else ""
    steps = []
    if start:
        steps.append(button("Previous", "first", max(0, start - AT_ONCE), css="ca-act ca-offer"))
    if end < len(features):
        steps.append(button("Next", "first", end, css="ca-act ca-offer"))
    line = tag("div", tag("span", said, "ca-quiet") + "".join(steps), "ca-steps") if steps else ""
    if len(columns) > MOST_STRIPS or not steps:
        return line
    places = {column.name: j for j, column in enumerate(features)}
    strips = "".join(
        tag(
            "button",
            "",
            f"ca-strip ca-{column.role}"
            + " ca-in-view" * (start <= places.get(column.name, -1) < end),
            type="button",
            tabindex="-1",
            title=f"{column.name}: {column.role}, {column.n_missing:,} missing",
            style=f"--gap:{column.n_missing / max(1, n_rows):.0%}",
            **{"data-act": "first", "data-value": str(places.get(column.name, 0))},
        )
        for column in columns
    )
    return tag("div", strips, "ca-strips", **{"aria-hidden": "true"}) + line
