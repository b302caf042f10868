"""The atlas of a run: panels, legend and the PCA picture beside, all with one selection."""

import json

import numpy as np
import streamlit as st

from appca.analysis.explore.projection import principal_scores
from appca.analysis.fitted import FittedRun
from appca.data.dataset import Dataset
from appca.data.preprocessing import Preprocessing
from appca.plots.explore.panel import Panel
from appca.plots.explore.sprites import Sprites, sprites_of
from appca.plots.palette import Colour
from appca.ui.explorer import panels
from appca.ui.explorer.component import explorer
from appca.ui.explorer.payload import HoverData
from appca.ui.session import selection, services
from appca.ui.session.fitting import Shown

PCA_HEIGHT = 190  # pixels


@st.cache_resource(show_spinner=False, max_entries=8)
def sprites(digest: str) -> Sprites | None:
    """Return the thumbnails of a data set, None when its rows are not images."""
    dataset = services.dataset(digest)
    return None if dataset.image_shape is None else sprites_of(dataset)


def draw(
    dataset: Dataset,
    shown: Shown,
    colour: Colour,
    *,
    by_pair: bool,
    axes: tuple[int, int],
    page: int,
    point_size: int,
) -> None:
    """Draw the panels of one page and take over what is selected in them."""
    drawn = _panels(f"{shown.key}-{by_pair}-{axes}-{page}", dataset, shown, page, by_pair, axes)
    result = explorer(
        "atlas",
        drawn,
        n_rows=dataset.n_rows,
        revision=f"{shown.config.id}-{by_pair}-{axes}-{page}",
        colour=colour,
        sprites=sprites(dataset.digest),
        selection=mask_or_none(dataset),
        hover=hover(shown, dataset),
        point_size=point_size,
    )
    take_over(dataset, result.selection, result.changed)


def pca_beside(dataset: Dataset, shown: Shown, colour: Colour, point_size: int) -> None:
    """Draw the first two principal components of all rows, linked with the atlas."""
    scores, shares = principal(dataset, shown)
    with st.container(key="pca_beside"):
        result = explorer(
            "pca",
            [panels.pca_panel(scores, shares)],
            n_rows=dataset.n_rows,
            revision=f"{dataset.digest}-{shown.config.preprocessing}",
            colour=colour,
            sprites=sprites(dataset.digest),
            selection=mask_or_none(dataset),
            hover=hover(shown, dataset),
            thumbnail_px=0,
            point_size=max(2, point_size - 1),
            columns=1,
            height=PCA_HEIGHT,
        )
    if result.changed:
        take_over(dataset, result.selection, result.changed)
        st.rerun()  # the panels above were drawn with the old selection


def take_over(dataset: Dataset, mask: np.ndarray | None, changed: bool) -> None:
    """Make what was selected in a picture the selection of all pages."""
    if changed and mask is not None:
        selection.put(dataset, mask)
    elif changed:
        selection.clear(dataset)


def principal(dataset: Dataset, shown: Shown) -> tuple[np.ndarray, np.ndarray]:
    """Return the first three principal components of the preprocessed data, and their shares."""
    return _principal(dataset.digest, json.dumps(shown.config.preprocessing), shown.fitted)


@st.cache_resource(show_spinner=False, max_entries=8)
def _principal(digest: str, options: str, _fitted: FittedRun) -> tuple[np.ndarray, np.ndarray]:
    X = services.dataset(digest).X
    chosen = Preprocessing.from_dict(json.loads(options))
    # The run's own autoencoder; a preview's scales come from a sample, so those are learned anew.
    before = _fitted.preprocessing if chosen.vae else chosen.fit(X)
    return principal_scores(before.transform(X))


@st.cache_resource(show_spinner=False, max_entries=32)
def _panels(
    key: str,
    _dataset: Dataset,
    _shown: Shown,
    page: int,
    by_pair: bool,
    axes: tuple[int, int],
) -> list[Panel]:
    del key
    return panels.page_of_panels(
        _dataset, _shown.fitted, sprites(_dataset.digest), page, by_pair=by_pair, axes=axes
    )


def hover(shown: Shown, dataset: Dataset) -> HoverData:
    """Return the texts of the hover card."""
    return _hover(shown.key, dataset, shown.fitted)


@st.cache_resource(show_spinner=False, max_entries=8)
def _hover(key: str, _dataset: Dataset, _fitted: FittedRun) -> HoverData:
    del key
    return panels.hover_of(_dataset, _fitted)


def mask_or_none(dataset: Dataset) -> np.ndarray | None:
    """Return the selection as the explorer takes it."""
    mask = selection.get(dataset)
    return mask if mask.any() else None


def colour_now(dataset: Dataset, shown: Shown, choice: str) -> Colour:
    """Return the chosen colouring of all rows."""
    return _colour(f"{shown.key}-{choice}", dataset, shown.fitted, choice)


@st.cache_resource(show_spinner=False, max_entries=32)
def _colour(key: str, _dataset: Dataset, _fitted: FittedRun, choice: str) -> Colour:
    del key
    return panels.colour_of(_dataset, _fitted, choice)
