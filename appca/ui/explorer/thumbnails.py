"""The thumbnails of a data set, made once for all pages."""

import streamlit as st

from appca.plots.explore.sprites import Sprites, sprites_of
from appca.ui.session import services


@st.cache_resource(show_spinner=False, max_entries=8)
def sprites(digest: str) -> Sprites | None:
    """Return the thumbnails of a data set, None when its rows are not images."""
    dataset = services.dataset(digest)
    return None if dataset.image_shape is None else sprites_of(dataset)
