"""Rows as pictures, rows as a table, and one row as an equation."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from appca import class_overlap as overlap
from appca.analysis import groups
from appca.analysis import rows as described
from appca.analysis.components import name_of, own_name, title
from appca.analysis.fitted import FittedRun
from appca.analysis.new_rows import NewRowsVerdict, odd_in_features, standing_out
from appca.canvas import sheets
from appca.data.dataset import Dataset
from appca.ordered import curves
from appca.plots.components import component_image, data_uri, montage, row_lines
from appca.plots.groups import image_row
from appca.plots.style import class_colour
from appca.ui import controls, fits, state
from appca.ui.kit import apart, every, markdown, press, table, tag, words
from appca.ui.services import by_key, kept, kept_of_row
from appca.ui.state import KEYS
from appca.words import counted, fixed, minus, number, percent, shortened

if TYPE_CHECKING:
    import pandas as pd


def is_dark() -> bool:
    """Whether the page is dark."""
    return bool(st.context.theme.type == "dark")


def _tiles(dataset: Dataset, rows: np.ndarray) -> np.ndarray:
    if dataset.image_shape is None:
        lines = row_lines(dataset, np.asarray(rows))
        return lines if is_dark() else 255 - lines
    return on_page(dataset, sheets.tiles_of(dataset, np.asarray(rows)))


def on_page(dataset: Dataset, images: np.ndarray) -> np.ndarray:
    """Invert strokes on a light page."""
    return 255 - images if sheets.is_ink(dataset) and not is_dark() else images


def strip(dataset: Dataset, rows: np.ndarray, colours: Sequence[str] | None = None) -> str:
    """Return the images of rows side by side as the source of an <img>, above coloured strips."""
    return data_uri(image_row(_tiles(dataset, rows), colours))


def figure(image: np.ndarray, name: str, alt: str = "") -> str:
    """Return an image with its name below as HTML."""
    picture = tag("img", "", src=data_uri(image), alt=alt or name)
    return tag("figure", picture + tag("figcaption", words(name)))


def sheet_of(dataset: Dataset, rows: np.ndarray, columns: int) -> np.ndarray:
    """Return the images of rows as one picture; ink is dark on a light page."""
    ground = 0 if is_dark() else 255
    return montage(on_page(dataset, sheets.tiles_of(dataset, rows)), columns, ground=ground)


PARAMETER, WANTED, LONGEST = "row", "point_wanted", 200
LONGEST_NUMBER, MOST_LABELS, MOST_TOLD = 16, 3, 8


def chosen(dataset: Dataset) -> int:
    """Return the row on screen: the last chosen, the address's, or the first selected row."""
    rows = st.session_state.setdefault(KEYS.points, {})
    selected = np.flatnonzero(state.get(dataset)).tolist()
    alone = selected[0] if len(selected) == 1 else None
    if alone != rows.get(f"alone-{dataset.digest}"):  # selected since then
        rows[f"alone-{dataset.digest}"] = alone
        rows |= {} if alone is None else {dataset.digest: alone}
    if dataset.digest not in rows:
        wanted = st.query_params.get(PARAMETER, "")
        linked = np.flatnonzero(dataset.ids == wanted).tolist()
        rows[dataset.digest] = [*linked, *selected, 0][0]
        if wanted and not linked:
            st.session_state[WANTED] = wanted[:LONGEST]
    row: int = min(rows[dataset.digest], dataset.n_rows - 1)
    st.query_params[PARAMETER] = str(dataset.ids[row])
    return row


def _show(dataset: Dataset, row: int) -> None:
    rows = st.session_state.setdefault(KEYS.points, {})
    rows |= {dataset.digest: int(row), f"held-{dataset.digest}": True}


def hold(dataset: Dataset, row: int | None) -> None:
    """Show and ring the clicked row; None removes the ring."""
    if row is None:
        st.session_state.setdefault(KEYS.points, {}).pop(f"held-{dataset.digest}", None)
        return
    _show(dataset, row)
    st.query_params["tab"] = "point"


def held(dataset: Dataset) -> int | None:
    """Return the ringed row."""
    is_held = f"held-{dataset.digest}" in st.session_state.get(KEYS.points, {})
    return chosen(dataset) if is_held else None


def _choose(dataset: Dataset) -> int:
    row, through = chosen(dataset), np.flatnonzero(state.get(dataset))
    word = "selected row" if len(through) else "row"

    def search(text: str) -> None:
        if (match := find(dataset, text)) is not None:
            _show(dataset, match)
            st.session_state[WANTED] = ""

    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        look: Any = {"placeholder": "Row id or number", "max_chars": LONGEST, "width": 160}
        look |= {"label_visibility": "collapsed", "on_change": state.pass_value}
        st.text_input("Find a row", key=WANTED, args=[WANTED, search], **look)
        for name, side, by in (("previous", "left", -1), ("next", "right", 1)):
            target = neighbour(row, through, dataset.n_rows, by)
            look = {"icon": f":material/chevron_{side}:", "disabled": target is None}
            look["help"] = f"The {'one before' if by < 0 else 'next one'}, {word} by {word}."
            label = apart("", f"{name.capitalize()} row")
            press(label, f"point_{name}", _show, dataset, target, **look)
    if text := st.session_state.get(WANTED, "").strip():
        st.warning(f"No row has the id “{markdown(text)}”; numbers are 1 to {dataset.n_rows:,}.")
    return row


def find(dataset: Dataset, text: str) -> int | None:
    """Return the row with this id or number (from 1), or the first id that contains the text."""
    text = text.strip()
    matches = np.flatnonzero(dataset.ids == text)
    if not len(matches) and text:
        if text.isdecimal() and len(text) < LONGEST_NUMBER and 1 <= int(text) <= dataset.n_rows:
            return int(text) - 1
        matches = np.flatnonzero(np.char.find(np.char.lower(dataset.ids), text.lower()) >= 0)
    return int(matches[0]) if len(matches) else None


def neighbour(row: int, through: np.ndarray, n_rows: int, by: int) -> int | None:
    """Return the previous (-1) or next (1) row, within `through` if not empty; None at an end."""
    among = through if len(through) else np.arange(n_rows)
    place = np.searchsorted(among, row) - 1 if by < 0 else np.searchsorted(among, row, side="right")
    return int(among[place]) if 0 <= place < len(among) else None


NEAREST, FEATURES, OTHERS, ALIKE = 6, 16, 3, "among alike"
DOUBTFUL, CERTAIN = 0.5, 0.9


def body(dataset: Dataset, shown: fits.Shown) -> None:
    """Draw the single selected row, or the row found last."""
    row, fitted = _choose(dataset), shown.fitted
    pieces = described.parts(dataset, fitted, row)
    y = fitted.preprocessing.transform(dataset.with_gaps(slice(row, row + 1)))[0].astype(float)
    st.html(_heading(dataset, shown, row, y))
    st.caption("How it is built")
    st.html(_built(dataset, pieces, row))
    st.markdown(equation(fitted, pieces))
    error = float(fitted.error[row])
    above, below = float(np.mean(fitted.error > error)), float(np.mean(fitted.error < error))
    side, share = ("smaller", above) if above > below else ("larger", below)
    than = f"{side} than that of {percent(share)} of the rows"
    st.caption(f"Mean squared error {number(error)} of prepared values, {than}.")

    def probable() -> str:
        sets = described.alternatives(fitted, y, OTHERS + 1)
        return ", ".join(f"{title(S)} {percent(p)}" for S, p in sets) if sets[1:] else ""

    if said := kept_of_row(f"sets-{shown.key}-{row}", probable):
        st.caption(f"Probability of each panel: {said}")
    within = described.near_in_subspace(fitted, row, NEAREST)
    _neighbours(dataset, within, "Nearest in this panel", "panel")
    _neighbours(dataset, near_rows(dataset, shown, row), "Nearest in the data", "data")
    of = dataset, np.array([row]), str(dataset.ids[row])
    controls.leave_out_button("Leave out", *of, "point_leave_out")


def equation(fitted: FittedRun, pieces: described.RowParts) -> str:
    """Return a row as a sum in words: "centre + 3.1 × component 2 − 1.9 × component 5"."""
    text = "centre"
    for k, score in zip(pieces.components, pieces.scores, strict=True):
        size = fixed(score, 1)
        sign = "−" if size.startswith("−") else "+"
        name = markdown(own_name(fitted, k) or name_of(fitted, k))
        text += f" {sign} **{size.lstrip('−')}** × {name}"
    return text


def _heading(dataset: Dataset, shown: fits.Shown, row: int, y: np.ndarray) -> str:
    fitted, name = shown.fitted, str(dataset.ids[row])
    used = tuple(np.flatnonzero(fitted.active[row]).tolist())
    some = list(dataset.labels.items())[:MOST_TOLD]
    label = "".join(f"{shortened(of)} {shortened(values[row])}, " for of, values in some)
    called = name if name.casefold().startswith("row") else f"Row {name}"
    lines = tag("div", words(called), "ca-name")
    gaps = 0 if dataset.missing is None else int(dataset.missing[row].sum())
    label += f"{counted(gaps, 'value')} of {dataset.n_features} missing, " * bool(gaps)
    lines += tag("div", words(f"{label}in {f'panel {title(used)}' if used else 'no panel'}"))
    if fitted.size_probabilities is not None:
        key = f"sizes-{shown.key}-{row}"
        sizes = kept_of_row(key, lambda: described.size_probabilities(fitted, y))
        chance = f"probability {percent(float(sizes[len(used)]))}"
        lines += tag("div", words(f"uses {counted(len(used), 'component')}, {chance}"))
    sure = float(fitted.membership[row])
    verdict = "? Doubtful" if sure < DOUBTFUL else "✓ Certain" if sure >= CERTAIN else "Likely"
    verdict = "? Few values;" if dataset.sparse_rows[row] else verdict
    css = "ca-doubt" if verdict.startswith("?") else "ca-sure"
    lines += tag("span", f"{verdict}{' panel' * bool(used)}: {percent(sure)}", css)
    return tag("div", _picture(dataset, row, 84) + tag("div", lines), "ca-point")


def _picture(dataset: Dataset, row: int, size: int) -> str:
    if dataset.image_shape is None and not dataset.is_ordered:
        return ""
    source = data_uri(_tiles(dataset, np.array([row]))[0])
    return tag("img", "", src=source, alt=f"row {dataset.ids[row]}", style=f"width:{size}px")


def curve(dataset: Dataset, lines: dict[str, np.ndarray], *, named: bool = False) -> str:
    """Return one or two curves (D,) of ordered features as HTML, with ticks and ranges."""
    names, most = dataset.column_names, dataset.n_features - 1
    parts = 4 if max(map(len, names)) <= TICK <= most else 2
    places = [(i * most + parts // 2) // parts for i in range(parts + 1)]
    colours, said = [*map(class_colour, range(len(lines)))], ""
    for (name, line), colour in zip(lines.items(), colours, strict=True):
        ends = f" {number(np.nanmin(line))} to {number(np.nanmax(line))}"
        said += tag("span", tag("b", words(name), style=f"color:{colour}") + words(ends))
    legend = tag("div", said, "ca-quiet ca-chips-row") * named
    ticks = "".join(tag("span", words(shortened(names[j], 16))) for j in places)
    source = data_uri(curves(np.stack([*lines.values()]), colours), "svg+xml")
    picture = tag("img", "", src=source, alt=" and ".join(lines))
    return legend + tag("div", picture + tag("div", ticks, "ca-ticks ca-quiet"), "ca-curve")


def opposed(dataset: Dataset, two: dict[str, np.ndarray]) -> str:
    """Return two rows (D,) of ordered features, and their difference, as curves in HTML."""
    difference = curve(dataset, {"difference": np.subtract(*two.values())}, named=True)
    return tag("div", curve(dataset, two, named=True) + difference, "ca-curves")


def _built(dataset: Dataset, pieces: described.RowParts, row: int) -> str:
    shape = dataset.image_shape
    if dataset.is_ordered:
        row_of = dataset.with_gaps(slice(row, row + 1))[0].astype(float)
        return opposed(dataset, {"measured": row_of, "rebuilt": pieces.reconstruction})
    if shape is None:
        spread = kept(f"spread-{dataset.digest}", lambda: dataset.X.std(axis=0, dtype=np.float64))
        gap = np.zeros(len(spread), bool) if dataset.missing is None else dataset.missing[row]
        others = pieces.average, pieces.reconstruction
        far = np.sum([np.abs(pieces.original - other) for other in others], axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        far, z = np.where(gap, -1.0, far / spread), (pieces.original - pieces.average) / spread
        farthest = [j for j in np.argsort(-far, kind="stable")[:FEATURES].tolist() if not gap[j]]
        farthest += np.flatnonzero(gap)[:FEATURES].tolist()
        measured = ["missing" if gap[j] else number(pieces.original[j], 6) for j in farthest]
        away = ("" if gap[j] else minus(f"{z[j]:+.1f}") for j in farthest)
        rebuilt = (number(x, 4) for x in pieces.reconstruction[farthest])
        columns = [dataset.column_names[j] for j in farthest], measured, away, rebuilt
        return table(("", "value", "deviations", "rebuilt"), zip(*columns, strict=True))
    grey = dataset.as_images(np.stack([pieces.average, pieces.reconstruction]).astype(np.float32))
    grey = on_page(dataset, grey)
    limit = max((float(np.abs(term).max()) for term in pieces.terms), default=1.0)
    html = figure(grey[0], "centre")
    for k, score, term in zip(pieces.components, pieces.scores, pieces.terms, strict=True):
        picture = component_image(np.sign(score) * term, shape, limit, dark=is_dark())
        html += tag("span", f"{minus(format(score, '+.1f'))} ×") + figure(picture, str(k + 1))
    return tag("div", html + tag("span", "=") + figure(grey[1], "rebuilt"), "ca-built")


def near_rows(dataset: Dataset, shown: fits.Shown, row: int) -> np.ndarray:
    """Return the rows nearest to a row in the preprocessed data."""

    def nearest() -> np.ndarray:
        X = shown.fitted.completed(dataset.X, dataset.missing)
        return described.near_in_data(X, shown.fitted.preprocessing, row, NEAREST)

    return kept_of_row(f"near-{dataset.digest}-{shown.key}-{row}", nearest)


def _neighbours(dataset: Dataset, near: np.ndarray, heading: str, where: str) -> None:
    if not len(near):
        return
    st.caption(heading)
    pictured = dataset.image_shape is not None
    names, codes = dataset.class_column or ((), np.full(dataset.n_rows, -1))
    with st.container(key=f"near_{where}", horizontal=True, gap=None if pictured else "small"):
        for row in near.tolist():
            key = f"near-{where}-{row}"
            with st.container(key=key, width=46 if pictured else "content", gap=None):
                if pictured:
                    st.html(_picture(dataset, row, 40))
                of, label = str(dataset.ids[row]), names[codes[row]] if codes[row] >= 0 else ""
                said = f"{of} ({label})" if label and not pictured else label or of
                said = shortened(said) + " (few values)" * bool(dataset.sparse_rows[row])
                look: Any = {"type": "tertiary", "help": f"Look at {markdown(of)}"}
                press(markdown(said), f"look-{where}-{row}", _show, dataset, row, **look)


Columns = dict[str, Any]  # by name: a value of each row
MOST_LISTED, HEIGHT, TICK = 100, 400, 6  # rows; pixels; letters or features for five ticks


def draw(
    dataset: Dataset,
    fitted: FittedRun,
    verdict: NewRowsVerdict,
    order: np.ndarray,
    key: str,
    more: Columns,
) -> int:
    """Draw the rows `order` as a table, and the ticked or first row as a sum; return that row."""
    top = order[: MOST_LISTED if dataset.image_shape else 10 * MOST_LISTED]
    images = _images(f"{key}-{is_dark()}-{top.tolist()}", dataset, fitted, top)
    shown = {name: st.column_config.ImageColumn(name, width="small") for name in images}
    look: Any = {"hide_index": True, "width": "stretch", "height": HEIGHT, "column_config": shown}
    look |= {"selection_mode": "single-row", "on_select": "rerun", "key": f"row-table-{key}"}
    look["row_height"] = 44 if images else None
    lines = table_of(dataset, fitted, verdict, top, images | {n: x[top] for n, x in more.items()})
    ticked = st.dataframe(lines, **look)["selection"]["rows"]
    if len(top) < len(order):
        st.caption(f"The first {len(top)} of {len(order):,} rows.")
    row = int(top[ticked[0]] if ticked and ticked[0] < len(top) else top[0])
    st.subheader(f"{markdown(str(dataset.ids[row]))}, as a sum of components", anchor=False)
    st.html(_built(dataset, described.parts(dataset, fitted, row), row))
    return row


def unusual(dataset: Dataset, shown: fits.Shown) -> tuple[NewRowsVerdict, dict[int, str], Columns]:
    """Return how the rows fit, unusual ones first; rows far in a feature; columns of a table."""
    fitted, key = shown.fitted, shown.key
    said = kept(f"unusual-{key}", lambda: standing_out(described.distances(fitted)))
    usual, far, columns = said.fits, said.ratios.max(axis=1), Columns()
    places, alike = np.empty(0, int), np.zeros(dataset.n_rows, dtype=bool)
    if dataset.image_shape is None:
        of = dataset.X, fitted.preprocessing.transform, dataset.missing, dataset.is_ordered
        places, worst, ratios = kept(f"odd-{key}", lambda: odd_in_features(*of))
        if ratios.any():
            names, far = np.array(dataset.column_names), np.maximum(far, ratios)
            jointly = np.char.add(names[-1 - worst], " given the others")
            columns = {"farthest in": np.where(worst < 0, jointly, names[worst])}
            columns["value / limit"] = ratios.round(2)
            usual = usual & ~np.isin(np.arange(dataset.n_rows), places)
    if not usual.all():  # rows among others like them are rather a kind than errors
        alike = kept(f"alike-{key}", lambda: groups.among_alike(dataset, fitted)) & ~usual
        columns[ALIKE] = np.where(alike, "yes", "")
    said = said._replace(fits=usual, order=np.lexsort((-far, alike, usual)))
    places = places[np.argsort(alike[places], kind="stable")].tolist()
    return said, {row: str(columns["farthest in"][row]) for row in places}, columns


def nearest_classes(dataset: Dataset, near: np.ndarray) -> dict[str, np.ndarray]:
    """Return by label the class of most of the nearest rows (m, NEAREST) of m rows."""
    said = dict[str, np.ndarray]()
    for label, names, codes in every(dataset)[:MOST_LABELS] if len(near) else ():
        most = overlap.most_near(codes, near)
        of = zip(most, overlap.votes(codes, near).max(axis=1), strict=True)
        texts = [f"{names[c]} ({n} of {overlap.NEAREST})" if n else "none" for c, n in of]
        said[f"nearest {label}"] = np.array(texts)
    return said


def table_of(
    dataset: Dataset, fitted: FittedRun, verdict: NewRowsVerdict, rows: np.ndarray, more: Columns
) -> "pd.DataFrame":
    """Return facts about rows as a table; `more` are additional columns."""
    import pandas as pd

    stands_out = np.where(verdict.fits[rows], "no", "yes")
    columns: Columns = {"id": dataset.ids[rows], "stands out": stands_out} | more
    away = np.abs(fitted.preprocessing.transform(dataset.X[rows]) - fitted.mean)
    is_table = dataset.image_shape is None and away.shape[1] == dataset.n_features
    if is_table and "farthest in" not in more:
        seen = 1.0 if dataset.missing is None else ~dataset.missing[rows]
        columns["farthest in"] = np.array(dataset.column_names)[(away * seen).argmax(axis=1)]
    for name, values in dataset.labels.items():
        columns[name if name not in columns else f"{name} (label)"] = values[rows]
    columns["T² / limit"], columns["Q / limit"] = verdict.ratios[rows].round(2).T
    columns["subspace"] = [title(tuple(np.flatnonzero(fitted.active[row]))) for row in rows]
    if fitted.row_scales is not None:
        columns["scale"] = fitted.row_scales[rows].round(2)
    columns["membership"] = fitted.membership[rows].round(3)
    columns["residual"] = [float(f"{value:.3g}") for value in fitted.error[rows]]
    columns["log-likelihood"] = fitted.log_likelihood_rows[rows].round(2)
    return pd.DataFrame(columns)


@by_key(16)
def _images(dataset: Dataset, fitted: FittedRun, rows: np.ndarray) -> Columns:
    if dataset.image_shape is None:
        return {}
    W, scores = (of.astype(np.float64) for of in (fitted.components, fitted.scores[rows]))
    rebuilt = fitted.preprocessing.inverse_transform(scores @ W + fitted.mean.astype(np.float64))
    pictures = {"image": dataset.images(rows), "reconstruction": dataset.as_images(rebuilt)}
    return {
        name: [data_uri(image) for image in on_page(dataset, images)]
        for name, images in pictures.items()
    }
