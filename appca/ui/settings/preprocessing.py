"""What is done to the data before a fit, as a few widgets."""

import streamlit as st

from appca.data.dataset import Dataset
from appca.data.preprocessing import Preprocessing, suggest
from appca.ui.parts.widgets import around
from appca.ui.session import state
from appca.ui.session.callbacks import guarded

SCALES = {
    "none": "As they are",
    "feature": "Each feature to variance 1",
    "global": "All by one number",
}
REDUCTIONS = {
    "none": "Keep all features",
    "dimensions": "PCA to dimensions",
    "share": "PCA to a share of variance",
}
PLACES = 10  # of a per cent: there and back gives the same share


def preprocessing(dataset: Dataset) -> None:
    """Draw the widgets; a change applies at once and is recorded with every run."""
    now = Preprocessing.from_dict(state.config().preprocessing)
    _show(divide=now.divide, centre=now.centre, scale=now.scale, reduce=_kind(now))
    left, right = st.columns(2)
    left.number_input(
        "Divide all values by",
        *around((1e-9, 1e12), now.divide),
        key="pre-divide",
        format="%g",
        on_change=_apply,
        help="255 brings grey values to 0 … 1; 1 leaves the values alone.",
    )
    left.toggle(
        "Subtract each feature's mean",
        key="pre-centre",
        on_change=_apply,
        help="The model has a mean of its own; centring matters for the mean setting “zero”.",
    )
    right.selectbox(
        "Scale",
        SCALES,
        format_func=SCALES.__getitem__,
        key="pre-scale",
        on_change=_apply,
        help="Features in different units should each be brought to variance 1; pixels should "
        "not, or noise at the rim counts as much as the picture.",
    )
    with right:
        _reduction(dataset, now)
    if now != suggest(dataset):
        act, args = guarded(state.set_preprocessing), [suggest(dataset)]
        st.button("Use what is suggested", key="pre-suggest", on_click=act, args=args)


def _reduction(dataset: Dataset, now: Preprocessing) -> None:
    st.selectbox(
        "Reduce first",
        REDUCTIONS,
        format_func=REDUCTIONS.__getitem__,
        key="pre-reduce",
        on_change=_apply,
        help="PCA keeps the directions of largest variance: faster for very wide data. The paper "
        "uses 350 dimensions, or 99.5% of the variance.",
    )
    most = min(dataset.n_rows - 1, dataset.n_features)
    if isinstance(now.pca, int):
        _show(dimensions=min(now.pca, most))
        st.number_input("Dimensions", 1, most, key="pre-dimensions", on_change=_apply)
    elif now.pca is not None:
        share = round(100 * now.pca, PLACES)
        _show(share=share)
        label, (low, high) = "Share of variance, %", around((1.0, 99.99), share)
        st.number_input(label, low, high, key="pre-share", format="%g", on_change=_apply)


def _kind(now: Preprocessing) -> str:
    return "none" if now.pca is None else "dimensions" if isinstance(now.pca, int) else "share"


def _show(**values: object) -> None:
    """Bring values to the widgets of their names."""
    st.session_state.update({f"pre-{name}": value for name, value in values.items()})


@guarded
def _apply() -> None:
    seen = st.session_state
    dataset = state.current_dataset()
    reductions = {
        "none": None,
        "dimensions": min(seen.get("pre-dimensions", 50), dataset.n_features, dataset.n_rows - 1),
        "share": round(seen.get("pre-share", 99.5) / 100, PLACES + 2),
    }
    state.set_preprocessing(
        Preprocessing(
            divide=seen["pre-divide"],
            centre=seen["pre-centre"],
            scale=seen["pre-scale"],
            pca=reductions[seen["pre-reduce"]],
        )
    )
