"""The tab Brain: the paper's recording, and a small one, separated into components."""

import re
from functools import partial
from typing import Any, NamedTuple

import streamlit as st

from appca.analysis.paper.brain_maps import BrainMaps
from appca.data.brain import recording as brain
from appca.data.brain.recording import nifti_bytes
from appca.studies.experiments.brain import STUDY, titles_of
from appca.studies.store import Stored
from appca.studies.study import Options
from appca.ui.paper import results
from appca.ui.paper.why import shown
from appca.ui.parts import progress
from appca.ui.parts.answers import answer
from appca.ui.parts.downloads import save_button
from appca.ui.session import computation
from appca.words.numbers import about

_SHARED_SIZE, _MADE_UP_SIZE = (48_751, 156), (2_720, 120)
_SECONDS, _SECONDS_A_NUMBER = 5.0, 1.7e-7  # measured: start, and for each voxel, volume and K
_USUAL = {brain.MADE_UP: (8, 3)}
_REAL = (40, 15)  # K and L of other recordings


class RecordingChoice(NamedTuple):
    """A recording that can be chosen."""

    key: str
    title: str
    n_voxels: int
    n_volumes: int


def body() -> None:
    """Draw a result at once, and below it what separates another recording."""
    place = st.container()
    earlier = [options for _, options in results.results_of(STUDY.name)]
    with st.expander("Another recording or other sizes", icon=":material/tune:", key="brain_other"):
        chosen = _recording(earlier)
        options = _settings(chosen, earlier)
        kept = results.stored(STUDY, options)
        if kept is None:
            _wait_or_offer(chosen, options)
    if kept is None:
        newest = results.newest(STUDY)
        kept = newest if newest and newest.options["recording"] in _choices() else None
    with place:
        if kept is None:
            answer(f"“{chosen.title}” is not separated yet", "Press Separate to see its numbers.")
        else:
            seen = _choices().get(kept.options["recording"], chosen)
            shown(STUDY, kept, "maps", "courses", of=f"Recording: {seen.title}")
            _save(kept)


def _save(kept: Stored) -> None:
    """Draw what saves the map of each model."""
    stored = BrainMaps.from_arrays(kept.outcome.arrays)
    with st.popover("Save a map (NIfTI)", icon=":material/download:"):
        for key, title in titles_of(kept.outcome).items():
            save_button(
                title,
                partial(nifti_bytes, stored.mask, stored.affine, stored.models[key].values),
                f"{re.sub(r'[^a-z0-9]+', '-', title.lower())}.nii.gz",
                "application/gzip",
                key=f"brain-map-{key}",
            )


def _recording(earlier: list[Options]) -> RecordingChoice:
    """Draw the choice of the recording; return it."""
    choices = _choices()
    if st.session_state.get("brain_recording") not in choices:
        newest = (options["recording"] for options in earlier if options["recording"] in choices)
        st.session_state["brain_recording"] = next(newest, next(iter(choices)))
    key = st.selectbox(
        "Recording",
        list(choices),
        format_func=lambda choice: choices[choice].title,
        key="brain_recording",
        persist_state="session",
    )
    st.page_link("pages/data/data.py", label="Recordings of your own open in Explore")
    return choices[key]


def _choices() -> dict[str, RecordingChoice]:
    recordings = [RecordingChoice(brain.MADE_UP, "Small brain, made up", *_MADE_UP_SIZE)]
    if brain.has_shared():
        title = "Faces, houses and scenes, one person"
        recordings.insert(0, RecordingChoice(brain.SHARED, title, *_SHARED_SIZE))
    return {choice.key: choice for choice in recordings}


def _settings(chosen: RecordingChoice, earlier: list[Options]) -> Options:
    """Draw K and L; return the options of the experiment."""
    here = (options for options in earlier if options["recording"] == chosen.key)
    usual = next(
        ((last["components"][0], last["active"][0]) for last in here), _USUAL.get(chosen.key, _REAL)
    )
    most = max(min(chosen.n_volumes - 4, int(0.8 * chosen.n_voxels) - 1), 2)
    look: dict[str, Any] = {"persist_state": "session", "width": 150}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        first, key = min(usual[0], most), f"brain_k_{chosen.key[:12]}"
        K = st.number_input("Components K", 2, most, first, key=key, **look)
        first, key = min(usual[1], most - 1), f"brain_l_{chosen.key[:12]}"
        L = st.number_input("Used per voxel L", 1, most - 1, first, key=key, **look)
    return STUDY.options(components=[K], active=[L], events="", recording=chosen.key)


def _wait_or_offer(chosen: RecordingChoice, options: Options) -> None:
    """Draw the running job, or how long it takes and the button."""
    spec = results.spec_of(STUDY, options)
    if progress.follow(spec["key"]):
        return
    K, L = options["components"][0], options["active"][0]
    if L >= K:
        st.warning(f"L must be below K = {K}; lower L.")
        return
    takes = about(_SECONDS + _SECONDS_A_NUMBER * chosen.n_voxels * chosen.n_volumes * K)
    kind = results.kind_of(STUDY, options)
    label = f"Separate, {takes}"
    computation.button(label, "brain_run", kind, spec["key"], spec, primary=False)
