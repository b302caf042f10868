"""The page Components: every component with its pattern, its users, and the rows at its ends."""

import numpy as np
import streamlit as st

from appca.analysis.components.alignment import summarise
from appca.analysis.components.components import common, extremes, name_of, own_name, partner
from appca.analysis.explore.projection import variance_shares
from appca.analysis.fitted import FittedRun
from appca.data.dataset import Dataset
from appca.data.numbers import percent, signed
from appca.plots.components.component_charts import loading_bars, score_histogram
from appca.plots.components.components import component_image, data_uri, pixels_of, ranked_loadings
from appca.runs import labels
from appca.runs.labels import NAME_LENGTH
from appca.storage.wording import counted
from appca.ui.data import vae
from appca.ui.data.overview import sheet_of
from appca.ui.explorer import atlas
from appca.ui.parts.chart import chart
from appca.ui.parts.component_list import in_data_space, in_units_of_the_fit, title_of
from appca.ui.parts.text import apart, markdown, tag, words
from appca.ui.parts.widgets import first_of_page
from appca.ui.session import names, selection, state
from appca.ui.session.caching import kept
from appca.ui.session.fitting import Shown

PAGE = 4  # components on a page
IMAGES, IMAGES_A_LINE = 12, 4  # at each end
TABLE_ROWS = 6
LOADINGS = 10
WIDTHS = (1.15, 1.2, 1.5, 1.2)  # of images: pattern, low end, scores, high end
TABLE_WIDTHS = (1.6, 1.1, 1.5, 1.1)


def body(dataset: Dataset, shown: Shown) -> None:
    """Draw one page of components, four below each other."""
    selected = " Orange: the selected rows." if selection.get(dataset).any() else ""
    st.caption(_explanation(dataset) + selected)
    vae.note(shown)
    damage = shown.run and labels.damage(shown.run)
    if damage:
        st.warning(markdown(damage))
    total = len(shown.fitted.components)
    first = first_of_page(total, PAGE, f"components-{state.config().id}")
    space = in_data_space if dataset.image_shape else in_units_of_the_fit
    patterns = kept(f"patterns-{shown.key}", lambda: space(shown.fitted))
    with st.container(key="components_page"):
        for k in range(first, min(first + PAGE, total)):
            with st.container(border=True):
                _component(dataset, shown, k, patterns[k])


def facts(dataset: Dataset, shown: Shown, k: int) -> str:
    """Say in a line how much component k, counted from 0, matters, and to whom."""
    active = shown.fitted.active
    shares = kept(f"shares-{shown.key}", lambda: variance_shares(shown.fitted))
    n_users = int(active[:, k].sum())
    parts = [
        f"{percent(shares[k], 1)} of variance",
        f"used by {percent(n_users / dataset.n_rows)} of rows ({n_users:,})",
    ]
    beside = partner(active, k)
    if beside is not None and beside.share < 1:
        parts.append(f"most often with {name_of(shown.fitted, beside.component)}")
    if shown.fitted.posterior:
        cosine = _agreement(shown.key, shown.fitted)[k]
        parts.append(f"mean |cos| over the draws {cosine:.3f}")
    return " · ".join(parts)


def classes_of(dataset: Dataset, rows: np.ndarray) -> str:
    """Say which classes some rows mostly have; nothing without classes."""
    found = dataset.class_column
    if found is None or not len(rows):
        return ""
    largest = common(found[0], found[1][rows])
    shares = ", ".join(f"{name} ({percent(share)})" for name, share in largest)
    return f"{next(iter(dataset.labels))}: {shares}"


def _explanation(dataset: Dataset) -> str:
    kind = "pattern" if dataset.image_shape else "mix of features"
    return (
        f"Each component is a {kind} that a row adds to the average, times its own score: red is "
        "what a positive score adds, blue what it takes away. Beside it the rows with the most "
        "negative and the most positive scores."
    )


def _component(dataset: Dataset, shown: Shown, k: int, pattern: np.ndarray) -> None:
    fitted = shown.fitted
    heading = tag("b", words(title_of(fitted, k)))
    heading += tag("span", words(facts(dataset, shown, k)), "ca-quiet")
    st.html(tag("div", heading, "ca-component"))
    ends = extremes(fitted, k, IMAGES if dataset.image_shape else TABLE_ROWS)
    widths = WIDTHS if dataset.image_shape else TABLE_WIDTHS
    pictured, low, middle, high = st.columns(widths, gap="medium")
    with pictured:
        _pattern(dataset, shown, k, pattern)
    with low:
        _end(dataset, shown, k, ends.low, "low")
    with middle:
        _scores(dataset, shown, k)
        _labelling(shown, k)
    with high:
        _end(dataset, shown, k, ends.high, "high")


def _pattern(dataset: Dataset, shown: Shown, k: int, pattern: np.ndarray) -> None:
    if dataset.image_shape is None:
        loadings = ranked_loadings(pattern, dataset.feature_names, LOADINGS)
        chart(loading_bars(loadings), f"loadings-{shown.config.id}-{k}")
        if dataset.n_features > LOADINGS:
            st.caption(f"the strongest {LOADINGS} of {dataset.n_features:,} features")
        return
    source = data_uri(component_image(pattern, dataset.image_shape))
    limit = float(np.abs(pixels_of(pattern, dataset.image_shape)).max(initial=0))
    image = tag("img", "", src=source, alt=name_of(shown.fitted, k))
    ends = "".join(tag("span", text) for text in (signed(-limit), "0", signed(limit)))
    scale = tag("div", "", "ca-scale") + tag("div", ends, "ca-ends")
    st.html(tag("div", image + scale, "ca-pattern"))


def _scores(dataset: Dataset, shown: Shown, k: int) -> None:
    users = shown.fitted.active[:, k]
    if not users.any():
        st.caption("No row uses this component.")
        return
    chosen = selection.get(dataset)
    scores = shown.fitted.scores[users, k].astype(np.float64)
    chart(score_histogram(scores, chosen[users]), f"scores-{shown.config.id}-{k}")
    with st.container(horizontal=True, horizontal_alignment="center", gap="small"):
        _select(dataset, np.flatnonzero(users), f"Select its {counted(int(users.sum()), 'row')}", k)


def _end(dataset: Dataset, shown: Shown, k: int, rows: np.ndarray, end: str) -> None:
    if not len(rows):
        return
    scores = shown.fitted.scores[rows, k]
    sign = "Most negative" if end == "low" else "Most positive"
    span = f"{signed(scores[0])} to {signed(scores[-1])}"
    st.caption(markdown(f"{sign}, {span}"))
    sprites, mostly = atlas.sprites(dataset.digest), classes_of(dataset, rows)
    if sprites is None:
        _members(dataset, rows, scores)
    else:
        with st.container(key=f"extremes-{end}-{k}"):
            alt = f"The {len(rows)} rows with the {sign.lower()} scores. {mostly}"
            st.image(sheet_of(sprites, rows, IMAGES_A_LINE), width="stretch", alt=alt)
    if mostly:
        st.caption(markdown(mostly))
    _select(dataset, rows, f"Select these {len(rows)}", k, end)


def _members(dataset: Dataset, rows: np.ndarray, scores: np.ndarray) -> None:
    import pandas as pd

    columns = dataset.leading_columns(rows, score=scores.round(3))
    st.dataframe(pd.DataFrame(columns), hide_index=True, width="stretch")


def _select(dataset: Dataset, rows: np.ndarray, label: str, k: int, end: str = "users") -> None:
    st.button(
        label,
        key=f"select-{end}-{k}",
        type="tertiary",
        icon=":material/lasso_select:",
        on_click=selection.put,
        args=[dataset, np.isin(np.arange(dataset.n_rows), rows)],
    )


def _labelling(shown: Shown, k: int) -> None:
    """Draw what names a component and turns its sign; a preview has nothing to keep that in."""
    run = shown.run
    with st.container(horizontal=True, horizontal_alignment="center", gap="small"):
        key = f"label-{shown.config.id}-{k}"
        st.text_input(
            f"Name of component {k + 1}",
            own_name(shown.fitted, k),
            key=key,
            max_chars=NAME_LENGTH,
            placeholder="a name of your own",
            label_visibility="collapsed",
            width=170,
            disabled=run is None,
            on_change=lambda: names.rename(run, k, st.session_state[key]),
        )
        st.button(
            apart("Flip sign", f"of component {k + 1}"),
            key=f"flip-{k}",
            icon=":material/swap_horiz:",
            disabled=run is None,
            on_click=names.flip,
            args=[run, k],
            help="Turn red into blue and every score into its negative: the fit does not know "
            "which way round a component is. Kept with the run, used on every page and in files.",
        )


@st.cache_resource(show_spinner="Aligning the draws…", max_entries=16)
def _agreement(key: str, _fitted: FittedRun) -> np.ndarray:
    del key
    return summarise(_fitted.posterior["components"], _fitted.components).cosine
