"""What is done to the data before a fit, as a few widgets."""

import streamlit as st

from appca.data.dataset import Dataset
from appca.data.prepared import at_hand
from appca.data.preprocessing import Preprocessing, suggest
from appca.data.vae.autoencoder import VAE, estimate_seconds
from appca.data.vae.autoencoder import suggest as suggest_vae
from appca.runs.home import home
from appca.storage.identity import digest_of
from appca.ui.parts import progress
from appca.ui.parts.widgets import around
from appca.ui.session import state
from appca.ui.session.callbacks import guarded
from appca.ui.settings import vae
from appca.words.numbers import about
from appca.words.wording import counted

SCALES = {
    "none": "As they are",
    "feature": "Each feature to variance 1",
    "global": "All by one number",
}
REDUCTIONS = {
    "none": "Keep all features",
    "dimensions": "PCA to dimensions",
    "share": "PCA to a share of variance",
    "vae": "Autoencoder (VAE)",
}
PLACES = 10  # of a per cent: there and back gives the same share
MOST_HIDDEN, MOST_EPOCHS, MOST_SEED = 4096, 2000, 2**31 - 1
VAE_OPTIONS = {
    "dimensions": ("Dimensions", "Features that are left; K can be no larger."),
    "hidden": ("Hidden units", "Width of the layer between; encoder and decoder have one each."),
    "epochs": ("Epochs", "How often training sees every row."),
    "seed": ("Start", "The same start gives the same autoencoder on the same machine."),
}


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
    if now.vae is not None:
        _autoencoder(dataset, now, now.vae)
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
        "uses 350 dimensions, or 99.5% of the variance. An autoencoder learns a few curved "
        "features instead of straight ones; the paper takes digits to 10.",
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
    if now.vae is not None:
        return "vae"
    return "none" if now.pca is None else "dimensions" if isinstance(now.pca, int) else "share"


def _autoencoder(dataset: Dataset, now: Preprocessing, options: VAE) -> None:
    """Draw the options of the autoencoder, and what has come of it or how long it will take."""
    limits = {
        "dimensions": (1, dataset.n_features),
        "hidden": (1, MOST_HIDDEN),
        "epochs": (1, MOST_EPOCHS),
        "seed": (0, MOST_SEED),
    }
    for place, (name, (label, meaning)) in zip(st.columns(4), VAE_OPTIONS.items(), strict=True):
        value = getattr(options, name)
        low, high = around(limits[name], value)
        _show(**{f"vae-{name}": value})
        place.number_input(label, low, high, key=f"pre-vae-{name}", on_change=_apply, help=meaning)
    fitted = at_hand(dataset, now, home())
    if fitted is not None and fitted.vae is not None:
        vae.view(dataset, fitted, fitted.vae, digest_of(now.to_dict()))
        return
    takes = about(estimate_seconds(dataset.n_rows, dataset.n_features, options))
    st.markdown(
        f"The autoencoder learns from all {counted(dataset.n_rows, 'row')}, {takes} in the "
        "background, when the next fit begins; later fits and maps with these settings share it."
    )
    if not progress.waiting():
        st.button("Start the fit", type="primary", key="pre-vae-start", on_click=progress.start)


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
    kind = seen["pre-reduce"]
    state.set_preprocessing(
        Preprocessing(
            divide=seen["pre-divide"],
            centre=seen["pre-centre"],
            scale=seen["pre-scale"],
            pca=reductions.get(kind),
            vae=_chosen_autoencoder(dataset) if kind == "vae" else None,
        )
    )


def _chosen_autoencoder(dataset: Dataset) -> VAE:
    """Return the options on screen; those suggested where there are none yet."""
    usual = suggest_vae(dataset.n_rows, dataset.n_features)
    seen = st.session_state
    return VAE(**{name: seen.get(f"pre-vae-{name}", getattr(usual, name)) for name in VAE_OPTIONS})
