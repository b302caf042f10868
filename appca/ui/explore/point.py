"""The page Point: one row as a sum of components, how sure that is, and which rows are near it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from appca.analysis.capabilities import ENUMERATED
from appca.analysis.components.components import name_of
from appca.analysis.explore.point import (
    Alternatives,
    NearRows,
    RowParts,
    alternatives,
    near_in_data,
    near_in_subspace,
    parts,
    row_of,
    share_below,
)
from appca.analysis.explore.subspaces import title
from appca.analysis.fitted import FittedRun
from appca.data.dataset import Dataset
from appca.data.numbers import nats, number, percent
from appca.plots.explore.point import dumbbells, probabilities
from appca.storage.wording import counted
from appca.ui.data.overview import sheet_of
from appca.ui.explore import point_choice, point_pictures
from appca.ui.explorer import atlas
from appca.ui.parts.chart import chart
from appca.ui.parts.text import fact_list, markdown
from appca.ui.session.caching import kept
from appca.ui.session.fitting import Shown

if TYPE_CHECKING:
    import pandas as pd

NEAREST = 8
MOST_FEATURES = 14  # drawn; the table below has more
MOST_LINES = 500  # of that table
MOST_INCLUSIONS = 12
DOUBTFUL = 0.5


def sum_of(dataset: Dataset, shown: Shown, row: int) -> None:
    """Draw the row as average + components = reconstruction, and what is left."""
    x = row_of(dataset, shown.fitted, row)
    found = parts(shown.fitted, x, row)
    if dataset.image_shape is None:
        gaps = None if dataset.missing is None else dataset.missing[row]
        features(dataset, shown, found, gaps, "point_features")
    else:
        st.html(point_pictures.pictured(dataset, shown.fitted, found, dark_ink=dark_ink(dataset)))
        st.caption(
            "Each component times the row's score on it, on one scale of colours together with "
            "the residual: red adds, blue takes away. Residual = this row − reconstruction."
        )


def how_sure(dataset: Dataset, shown: Shown, row: int) -> None:
    """Draw the facts of the row beside the probabilities of its sets."""
    left, right = st.columns([1, 1.25], gap="large")
    with left:
        st.subheader("This row", anchor=False)
        st.html(fact_list(facts(dataset, shown.fitted, row)))
    with right:
        st.subheader("Which components it uses", anchor=False)
        _sets(dataset, shown, row)


def facts(dataset: Dataset, fitted: FittedRun, row: int) -> dict[str, str]:
    """Return what is known of a row: names and values."""
    lines = {"Id": str(dataset.ids[row])}
    lines |= {name: str(values[row]) for name, values in dataset.labels.items()}
    used = tuple(np.flatnonzero(fitted.active[row]).tolist())
    same = int((fitted.active == fitted.active[row]).all(axis=1).sum())
    likely, error = fitted.log_likelihood_rows, fitted.error
    membership = float(fitted.membership[row])
    doubt = ", which is doubtful" if membership < DOUBTFUL else ""
    lines |= {
        "Subspace": f"{title(used)}, {same:,} of {dataset.n_rows:,} rows",
        "Membership": f"{percent(membership, 1)} probable{doubt}",
        "Log-likelihood": f"{nats(likely[row])}; "
        f"{percent(share_below(likely, row))} of the other rows are less probable",
        "Residual": f"{number(error[row])} mean square a feature after preprocessing; "
        f"{percent(share_below(error, row))} of the other rows have a smaller one",
    }
    return lines


def near(dataset: Dataset, shown: Shown, row: int) -> None:
    """Draw the nearest rows, in the data and in the row's subspace; a click looks at one."""
    st.subheader("Nearest rows", anchor=False)
    within = near_in_subspace(shown.fitted, row, NEAREST)
    with st.container(key="near"):
        st.caption("In the data, after preprocessing")
        before = shown.fitted.preprocessing
        found = kept(
            f"near-{shown.key}-{row}", lambda: near_in_data(dataset.X, before, row, NEAREST)
        )
        _neighbours(dataset, found, "data")
        used = tuple(np.flatnonzero(shown.fitted.active[row]).tolist())
        if not used:
            st.caption("It uses no component, so it lies in no subspace beside others.")
        elif len(within.rows):
            name = f"In its subspace {title(used)}, by what the run keeps of the rows"
            st.caption(markdown(name))
            _neighbours(dataset, within, "subspace")
        else:
            st.caption(markdown(f"No other row has exactly the components {title(used)}."))


def dark_ink(dataset: Dataset) -> bool:
    """Whether grey means ink, which is dark on a light page, as on all other pictures."""
    sprites = atlas.sprites(dataset.digest)
    return sprites is not None and sprites.style == "ink" and st.context.theme.type != "dark"


def features(
    dataset: Dataset, shown: Shown, found: RowParts, gaps: np.ndarray | None, key: str
) -> None:
    """Draw a row of a table: its features beside their reconstruction, and the sum as a table."""
    names = dataset.column_names
    spread = kept(f"spread-{dataset.digest}", lambda: _spread(dataset.X))
    order = np.argsort(-np.abs(found.residual) / spread, kind="stable")
    top = order[:MOST_FEATURES]
    left, right = st.columns([1, 1.25], gap="large")
    with left:
        figure = dumbbells(
            [names[j] for j in top],
            ((found.original - found.average) / spread)[top],
            ((found.reconstruction - found.average) / spread)[top],
        )
        chart(figure, key)
        if len(order) > MOST_FEATURES:
            st.caption(
                f"The {MOST_FEATURES} worst rebuilt of {dataset.n_features:,} features, the worst "
                "on top."
            )
    with right:
        st.dataframe(
            sum_table(names, shown.fitted, found, order[:MOST_LINES], spread, gaps),
            hide_index=True,
            width="stretch",
            height=430,
        )
        st.caption(
            "In the units of the data: average + components = reconstruction; residual = this row "
            "− reconstruction, in the last column in standard deviations (sd) of the feature."
            + _of_gaps(gaps)
        )


def _of_gaps(gaps: np.ndarray | None) -> str:
    if gaps is None or not gaps.any():
        return ""
    n = counted(int(gaps.sum()), "cell")
    return f" {n} of this row {'is' if gaps.sum() == 1 else 'are'} missing and left empty here."


def sum_table(
    names: Sequence[str],
    fitted: FittedRun,
    found: RowParts,
    order: np.ndarray,
    spread: np.ndarray,
    gaps: np.ndarray | None = None,
) -> "pd.DataFrame":
    """Return the sum as a table, one line a feature; of missing cells only what the run says."""
    import pandas as pd

    columns = {"feature": [names[j] for j in order], "this row": found.original[order]}
    columns["average"] = found.average[order]
    for k, term in zip(found.components, found.terms, strict=True):
        columns[f"+ {name_of(fitted, k)}"] = term[order]
    columns["= reconstruction"] = found.reconstruction[order]
    columns["residual"] = found.residual[order]
    columns["residual, sd"] = (found.residual / spread)[order]
    table = pd.DataFrame(columns)
    numbers = table.columns[1:]
    table[numbers] = table[numbers].map(lambda value: float(f"{value:.4g}"))
    if gaps is not None:
        table.loc[gaps[order], ["this row", "residual", "residual, sd"]] = np.nan
    return table


def _sets(dataset: Dataset, shown: Shown, row: int) -> None:
    fitted = shown.fitted
    found = kept(f"sets-{shown.key}-{row}", lambda: _of_row(fitted, dataset, row))
    active = shown.fitted.active[row]
    if found is None:
        inclusion = shown.fitted.inclusion[row]
        order = np.argsort(-inclusion, kind="stable")[:MOST_INCLUSIONS]
        names = [name_of(shown.fitted, k) for k in order]
        figure = probabilities(names, inclusion[order], active[order].tolist())
        text = (
            "How probable it is that the row uses each component; its sets are more than "
            f"{ENUMERATED:,}, too many to list. Blue: the components it was given."
        )
    else:
        chosen = tuple(np.flatnonzero(active).tolist())
        names = [title(S) for S in found.sets]
        figure = probabilities(names, found.probability, [chosen == S for S in found.sets])
        text = _in_words(found)
    chart(figure, "point_sets")
    st.caption(markdown(text))


def _in_words(found: Alternatives) -> str:
    if found.n_sets == 1:
        return "Every row uses all components: there is no other set."
    listed = len(found.sets)
    which = f"all {listed}" if listed == found.n_sets else f"the {listed} most probable"
    return (
        f"Posterior probabilities of {which} sets of components, exact: all {found.n_sets:,} that "
        "the row could use were weighed. Blue: the set it was given."
    )


def _neighbours(dataset: Dataset, found: NearRows, where: str) -> None:
    places = st.columns(NEAREST, gap="small")
    sprites = atlas.sprites(dataset.digest)
    classes = dataset.class_column
    for place, row, distance in zip(places, found.rows, found.distances, strict=False):
        with place, st.container(gap=None):
            if sprites is not None:
                sheet = sheet_of(sprites, np.array([row]), 1)
                st.image(sheet, width=72, alt=f"Row {dataset.ids[row]}")
            st.button(
                markdown(str(dataset.ids[row])),
                key=f"near-{where}-{row}",
                type="tertiary",
                on_click=point_choice.show,
                args=[dataset, row],
                help="Look at this row",
            )
            said = f"{classes[0][classes[1][row]]} · " if classes else ""
            st.caption(markdown(f"{said}{number(distance)} away"))


def _of_row(fitted: FittedRun, dataset: Dataset, row: int) -> Alternatives | None:
    y = fitted.preprocessing.transform(dataset.with_gaps(slice(row, row + 1)))[0]
    return alternatives(fitted, y.astype(np.float64))


def _spread(X: np.ndarray) -> np.ndarray:
    """Return the standard deviation of every feature (D,); 1 where it is constant."""
    spread = X.std(axis=0, dtype=np.float64)
    return np.where(spread > 0, spread, 1.0)
