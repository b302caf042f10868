"""The thumbnails of a data set, made once for all pages."""

import streamlit as st

from appca.plots.explore.sprites import Sprites, sprites_of
from appca.ui.session import services


@st.cache_resource(show_spinner=False, max_entries=8)
def sprites(digest: str) -> Sprites | None:
    """Return the thumbnails of a data set, None when its rows are not images."""
    return sprites_of(services.dataset(digest))
