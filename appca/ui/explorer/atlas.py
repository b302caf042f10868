"""The atlas of a run: panels, legend and the PCA picture beside, all with one selection."""

from typing import Any

import numpy as np
import streamlit as st

from appca.data.dataset import Dataset
from appca.plots.explore.panel import Panel
from appca.plots.explore.sprites import Sprites, sprites_of
from appca.plots.palette import Colour
from appca.ui.explorer import panels
from appca.ui.explorer.component import explorer
from appca.ui.explorer.payload import HoverData
from appca.ui.explorer.scenes import principal_of
from appca.ui.session import selection, services
from appca.ui.session.caching import by_key
from appca.ui.session.fitting import Shown

PCA_HEIGHT = 190  # pixels
_panels = by_key(32)(panels.page_of_panels)
_colour = by_key(32)(panels.colour_of)
_hover = by_key(8)(panels.hover_of)


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
    which = f"{by_pair}-{axes}-{page}"
    given = (dataset, shown.fitted, sprites(dataset.digest), page)
    drawn = _panels(f"{shown.key}-{which}", *given, by_pair=by_pair, axes=axes)
    revision = f"{shown.config.id}-{which}"
    linked("atlas", drawn, dataset, shown, colour, revision=revision, point_size=point_size)


def pca_beside(dataset: Dataset, shown: Shown, colour: Colour, point_size: int) -> None:
    """Draw the first two principal components of all rows, linked with the atlas."""
    scores, shares = principal(dataset, shown)
    with st.container(key="pca_beside"):
        changed = linked(
            "pca",
            [panels.pca_panel(scores, shares)],
            *(dataset, shown, colour),
            revision=f"{dataset.digest}-{shown.config.preprocessing}",
            thumbnail_px=0,
            point_size=max(2, point_size - 1),
            columns=1,
            height=PCA_HEIGHT,
        )
    if changed:
        st.rerun()  # the panels above were drawn with the old selection


def linked(
    key: str, drawn: list[Panel], dataset: Dataset, shown: Shown, colour: Colour, **look: Any
) -> bool:
    """Draw panels with the selection of all pages; tell whether a person changed it in them."""
    result = explorer(
        key,
        drawn,
        n_rows=dataset.n_rows,
        colour=colour,
        sprites=sprites(dataset.digest),
        selection=mask_or_none(dataset),
        hover=hover(shown, dataset),
        **look,
    )
    take_over(dataset, result.selection, result.changed)
    return result.changed


def take_over(dataset: Dataset, mask: np.ndarray | None, changed: bool) -> None:
    """Make what was selected in a picture the selection of all pages."""
    if changed and mask is not None:
        selection.put(dataset, mask)
    elif changed:
        selection.clear(dataset)


def principal(dataset: Dataset, shown: Shown) -> tuple[np.ndarray, np.ndarray]:
    """Return the first three principal components of the preprocessed data, and their shares."""
    return principal_of(dataset, shown.config, shown.fitted)


def hover(shown: Shown, dataset: Dataset) -> HoverData:
    """Return the texts of the hover card."""
    return _hover(shown.key, dataset, shown.fitted)


def mask_or_none(dataset: Dataset) -> np.ndarray | None:
    """Return the selection as the explorer takes it."""
    mask = selection.get(dataset)
    return mask if mask.any() else None


def colour_now(dataset: Dataset, shown: Shown, choice: str) -> Colour:
    """Return the chosen colouring of all rows."""
    return _colour(f"{shown.key}-{choice}", dataset, shown.fitted, choice)


def first_colour(dataset: Dataset, shown: Shown) -> Colour:
    """Return the colouring of a page that offers no choice: by class, if there is one."""
    return colour_now(dataset, shown, next(iter(panels.colour_choices(dataset))))
