"""One row in the drawer: what it is built of, how sure that is, and which rows are near it."""

from functools import partial

import numpy as np
import streamlit as st

from appca.analysis.components.components import name_of, own_name
from appca.analysis.explore.point import (
    NearRows,
    RowParts,
    alternatives,
    near_in_data,
    near_in_subspace,
    parts,
    row_of,
    size_probabilities,
)
from appca.analysis.explore.subspaces import title
from appca.analysis.fitted import FittedRun
from appca.data.dataset import Dataset
from appca.plots.components.components import component_image, data_uri, pixels_of
from appca.ui.parts.selection_tools import select_button
from appca.ui.parts.text import markdown, table, table_line, tag, words
from appca.ui.rows import pictures, point_choice
from appca.ui.rows.pictures import is_dark
from appca.ui.session.caching import kept, kept_of_row
from appca.ui.session.callbacks import guarded
from appca.ui.session.fitting import Shown
from appca.words.numbers import fixed, minus, number, percent
from appca.words.wording import counted, shortened

NEAREST = 6
FEATURES = 8  # of a table's row, those farthest from the average
OTHERS = 3  # sets of components that the row might use instead
DOUBTFUL, CERTAIN = 0.5, 0.9


def body(dataset: Dataset, shown: Shown) -> None:
    """Draw the row that is selected alone, or the one last looked for."""
    row = point_choice.choose(dataset)
    fitted = shown.fitted
    pieces = parts(fitted, row_of(dataset, fitted, row), row)
    _heading(dataset, shown, row)
    st.caption("How it is built")
    st.html(built(dataset, pieces))
    st.markdown(equation(fitted, pieces))
    error = float(fitted.error[row])
    above, below = float(np.mean(fitted.error > error)), float(np.mean(fitted.error < error))
    side, share = ("smaller", above) if above > below else ("larger", below)
    than = f"{side} than that of {percent(share)} of the rows"
    st.caption(f"Mean squared error {number(error)}, {than}.")
    _others(dataset, shown, row)
    _near(dataset, shown, row)


def equation(fitted: FittedRun, pieces: RowParts) -> str:
    """Return the row as a sum in words: "average + 3.1 × component 2 − 1.9 × component 5"."""
    text = "average"
    for k, score in zip(pieces.components, pieces.scores, strict=True):
        size = fixed(score, 1)
        sign = "−" if size.startswith("−") else "+"
        name = markdown(own_name(fitted, k) or name_of(fitted, k))
        text += f" {sign} **{size.lstrip('−')}** × {name}"
    return text


def built(dataset: Dataset, pieces: RowParts) -> str:
    """Return a row as a sum in pictures, or its features beside what they are rebuilt as."""
    return _features(dataset, pieces) if dataset.image_shape is None else _sum(dataset, pieces)


def _heading(dataset: Dataset, shown: Shown, row: int) -> None:
    fitted = shown.fitted
    used = tuple(np.flatnonzero(fitted.active[row]).tolist())
    classes = dataset.class_column
    label = f"{next(iter(dataset.labels))} {classes[0][classes[1][row]]}, " if classes else ""
    sure = float(fitted.membership[row])
    picture = _picture(dataset, row, 84)
    name = str(dataset.ids[row])
    lines = tag(
        "div", words(name if name.casefold().startswith("row") else f"Row {name}"), "ca-name"
    )
    lines += tag("div", words(f"{label}in {f'panel {title(used)}' if used else 'no panel'}"))
    sizes = _sizes(dataset, shown, row)
    if sizes is not None:
        chance = f"probability {percent(float(sizes[len(used)]))}"
        lines += tag("div", words(f"uses {counted(len(used), 'component')}, {chance}"))
    verdict = "? Doubtful" if sure < DOUBTFUL else "✓ Certain" if sure >= CERTAIN else "Likely"
    css = "ca-doubt" if sure < DOUBTFUL else "ca-sure"
    lines += tag("span", f"{verdict}: {percent(sure)}", css)
    st.html(tag("div", picture + tag("div", lines), "ca-point"))


def _picture(dataset: Dataset, row: int, size: int) -> str:
    if dataset.image_shape is None and not dataset.is_ordered:
        return ""
    tile = pictures.tiles(dataset, np.array([row]))[0]
    return tag(
        "img", "", src=data_uri(tile), alt=f"row {dataset.ids[row]}", style=f"width:{size}px"
    )


def _sum(dataset: Dataset, pieces: RowParts) -> str:
    """Return average, components and what they add up to as pictures in a line."""
    shape = dataset.image_shape or ()
    grey = dataset.as_images(np.stack([pieces.average, pieces.reconstruction]).astype(np.float32))
    grey = pictures.on_page(dataset, grey)
    limit = max((float(np.abs(pixels_of(term, shape)).max()) for term in pieces.terms), default=1.0)
    html = [pictures.figure(grey[0], "average")]
    for k, score, term in zip(pieces.components, pieces.scores, pieces.terms, strict=True):
        picture = component_image(np.sign(score) * term, shape, limit, dark=is_dark())
        html += [
            tag("span", f"{minus(format(score, '+.1f'))} ×"),
            pictures.figure(picture, str(k + 1)),
        ]
    html += [tag("span", "="), pictures.figure(grey[1], "rebuilt")]
    return tag("div", "".join(html), "ca-built")


def _features(dataset: Dataset, pieces: RowParts) -> str:
    """Return the features that lie farthest from the average, and what the model makes of them."""
    spread = kept(f"spread-{dataset.digest}", lambda: _spread(dataset.X))
    far = np.argsort(-np.abs(pieces.original - pieces.average) / spread, kind="stable")[:FEATURES]
    lines = (
        table_line(
            dataset.column_names[j],
            [number(float(side[j])) for side in (pieces.original, pieces.reconstruction)],
        )
        for j in far.tolist()
    )
    return table(("", "value", "rebuilt"), lines)


def _spread(X: np.ndarray) -> np.ndarray:
    """Return the standard deviation of every feature (D,); 1 where it is constant."""
    spread = X.std(axis=0, dtype=np.float64)
    return np.where(spread > 0, spread, 1.0)


def _others(dataset: Dataset, shown: Shown, row: int) -> None:
    """Say which other components the row might use; nothing where there are too many to count."""
    fitted = shown.fitted

    def of_row() -> str:
        supports = alternatives(fitted, _preprocessed(dataset, fitted, row), OTHERS + 1)
        if supports is None or supports.n_sets == 1:
            return ""
        pairs = zip(supports.sets, supports.probability.tolist(), strict=True)
        return ", ".join(f"{title(S)} {percent(p)}" for S, p in pairs)

    said = kept_of_row(f"sets-{shown.key}-{row}", of_row)
    if said:
        st.caption(f"How probable each panel is: {said}")


def _sizes(dataset: Dataset, shown: Shown, row: int) -> np.ndarray | None:
    """Return how probable it is that the row uses 0 to K components, where that is learned."""
    fitted = shown.fitted
    if fitted.size_probabilities is None:
        return None
    return kept_of_row(
        f"sizes-{shown.key}-{row}",
        lambda: size_probabilities(fitted, _preprocessed(dataset, fitted, row)),
    )


def _preprocessed(dataset: Dataset, fitted: FittedRun, row: int) -> np.ndarray:
    values = fitted.preprocessing.transform(dataset.with_gaps(slice(row, row + 1)))
    return np.asarray(values[0], dtype=np.float64)


def _near(dataset: Dataset, shown: Shown, row: int) -> None:
    fitted = shown.fitted
    within = near_in_subspace(fitted, row, NEAREST)
    around = near_rows(dataset, shown, row)
    _neighbours(dataset, within, "Nearest in this panel", "panel")
    _neighbours(dataset, around, "Nearest in the data", "data")
    near = np.array([row, *within.rows, *around.rows])
    select_button("Select neighbours", dataset, near, "select_neighbours", icon=":material/hub:")


def near_rows(dataset: Dataset, shown: Shown, row: int) -> NearRows:
    """Return the rows nearest to a row in the data, which are the same for every K and L."""
    preprocessing = shown.fitted.preprocessing
    return kept_of_row(
        f"near-{dataset.digest}-{shown.config.preprocessing}-{row}",
        partial(near_in_data, dataset.X, preprocessing, row, NEAREST),
    )


def _neighbours(dataset: Dataset, near_rows: NearRows, heading: str, where: str) -> None:
    if not len(near_rows.rows):
        return
    st.caption(heading)
    pictured = dataset.image_shape is not None
    names, codes = (pictured and dataset.class_column) or ((), np.full(dataset.n_rows, -1))
    with st.container(key=f"near_{where}", horizontal=True, gap=None if pictured else "small"):
        for row in near_rows.rows.tolist():
            key = f"near-{where}-{row}"
            with st.container(key=key, width=46 if pictured else "content", gap=None):
                if pictured:
                    st.html(_picture(dataset, row, 40))
                name = names[codes[row]] if codes[row] >= 0 else dataset.ids[row]
                st.button(
                    markdown(shortened(name)),
                    key=f"look-{where}-{row}",
                    type="tertiary",
                    on_click=guarded(point_choice.show),
                    args=[dataset, row],
                    help=f"Look at {markdown(str(dataset.ids[row]))}",
                )
