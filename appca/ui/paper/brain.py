"""The tab Brain: the paper's recording, separated into components."""

import re
from functools import partial

import streamlit as st

from appca.analysis.paper.brain_maps import BrainMaps
from appca.data.brain.recording import nifti_bytes
from appca.studies.experiments.brain import STUDY, titles_of
from appca.studies.store import Stored
from appca.ui.paper import results
from appca.ui.paper.why import shown
from appca.ui.parts.downloads import save_button


def body() -> None:
    """Draw the newest result, and where other recordings are opened."""
    kept = results.newest(STUDY)
    if kept is not None:
        shown(STUDY, kept, "maps", "courses")
        _save(kept)
    st.page_link("pages/data/data.py", label="Recordings of your own open in Explore")


def _save(kept: Stored) -> None:
    """Draw what saves the map of each model."""
    stored = BrainMaps.from_arrays(kept.outcome.arrays)
    with st.popover("Save a map (NIfTI)", icon=":material/download:"):
        for key, title in titles_of(kept.outcome).items():
            save_button(
                title,
                partial(nifti_bytes, stored.mask, stored.affine, stored.models[key].values),
                f"{re.sub(r'[^a-z0-9]+', '-', title.lower())}.nii.gz",
                key=f"brain-map-{key}",
            )
