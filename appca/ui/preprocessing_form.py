"""What is done to the data before a fit, as a few widgets."""

import streamlit as st

from appca.data.dataset import Dataset
from appca.data.preprocessing import Preprocessing, suggest
from appca.ui import state

SCALES = {
    "none": "As they are",
    "feature": "Each feature to variance 1",
    "global": "All by one number",
}
REDUCTIONS = {"none": "None", "dimensions": "To dimensions", "share": "To a share of variance"}


def preprocessing(dataset: Dataset) -> None:
    """Draw the widgets; a change applies at once and is recorded with every run."""
    now = Preprocessing.from_dict(state.config().preprocessing)
    left, right = st.columns(2)
    with left:
        _keyed("pre-divide", now.divide)
        st.number_input(
            "Divide all values by",
            1e-9,
            1e12,
            key="pre-divide",
            format="%g",
            on_change=_apply,
            help="255 brings grey values to 0 … 1; 1 leaves the values alone.",
        )
        _keyed("pre-centre", now.centre)
        st.toggle(
            "Subtract each feature's mean",
            key="pre-centre",
            on_change=_apply,
            help="The model has a mean of its own; centring matters for the mean setting “zero”.",
        )
    with right:
        _keyed("pre-scale", now.scale)
        st.selectbox(
            "Scale",
            list(SCALES),
            format_func=SCALES.get,
            key="pre-scale",
            on_change=_apply,
            help="Features in different units should each be brought to variance 1; pixels should "
            "not, or noise at the rim counts as much as the picture.",
        )
        _reduction(dataset, now)
    if now != suggest(dataset):
        st.button("Use what is suggested", key="pre-suggest", on_click=_suggested, args=[dataset])


def _reduction(dataset: Dataset, now: Preprocessing) -> None:
    kind = "none" if now.pca is None else "dimensions" if isinstance(now.pca, int) else "share"
    _keyed("pre-reduce", kind)
    st.selectbox(
        "Reduce by PCA first",
        list(REDUCTIONS),
        format_func=REDUCTIONS.get,
        key="pre-reduce",
        on_change=_apply,
        help="Keeps the directions of largest variance: faster for very wide data. The paper uses "
        "350 dimensions, or 99.5 % of the variance.",
    )
    most = min(dataset.n_rows - 1, dataset.n_features)
    if kind == "dimensions":
        _keyed("pre-dimensions", min(int(now.pca), most))
        st.number_input("Dimensions", 1, most, key="pre-dimensions", on_change=_apply)
    if kind == "share":
        _keyed("pre-share", 100 * float(now.pca))
        st.number_input(
            "Share of variance, %", 1.0, 99.99, key="pre-share", format="%g", on_change=_apply
        )


def _keyed(key: str, value: object) -> None:
    st.session_state[key] = value


def _apply() -> None:
    seen = st.session_state
    dataset = state.current_dataset()
    reductions = {
        "none": None,
        "dimensions": min(seen.get("pre-dimensions", 50), dataset.n_features, dataset.n_rows - 1),
        "share": seen.get("pre-share", 99.5) / 100,
    }
    state.set_preprocessing(
        Preprocessing(
            divide=seen["pre-divide"],
            centre=seen["pre-centre"],
            scale=seen["pre-scale"],
            pca=reductions[seen["pre-reduce"]],
        )
    )


def _suggested(dataset: Dataset) -> None:
    state.set_preprocessing(suggest(dataset))
