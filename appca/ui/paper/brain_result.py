"""The page Brain, lower part: maps, slices to move through, numbers, and maps to take away."""

import re
from functools import partial
from itertools import chain

import numpy as np
import streamlit as st

from appca.analysis.paper.brain_maps import BrainMaps
from appca.data.brain.recording import nifti_bytes
from appca.plots.paper import brain as plots
from appca.runs.home import home
from appca.studies.experiments.brain import STUDY, titles_of
from appca.studies.store import Stored, StudyStore, csv_text
from appca.studies.study import Row
from appca.ui.parts.chart import chart
from appca.ui.parts.downloads import save_button
from appca.ui.parts.study_files import claims_table, made
from appca.ui.parts.text import markdown
from appca.ui.parts.widgets import one_of

TABLE = {
    "data": "data",
    "model": "model",
    "K": "K",
    "L": "L",
    "rmse": "RMSE",
    "rmse_sd": "its sd",
    "heldout": "held-out, nats",
    "r": "r",
    "p": "p",
    "r_shifted": "r, 6 s later",
    "dice": "Dice",
    "energy_inside": "squares inside",
    "on": "on",
    "on_inside": "on inside",
    "on_outside": "on outside",
}
EXPLAINED = (
    "RMSE: over voxels, in units of the recording's standard deviation. Held-out: log-likelihood a "
    "voxel of those not fitted to. r: with the stimulus, p by circular shifts. Dice: overlap of "
    "the map's strongest voxels with as many active ones of the linear model; squares inside: "
    "share of the map's squares there. On: share of voxels that use the component, and of those "
    "inside and outside the active ones."
)
REFERENCE = "Linear model, t"
SIDES = ("Left to right", "Back to front", "Low to high")


def result(kept: Stored) -> None:
    """Draw everything that was found."""
    outcome = kept.outcome
    figures = STUDY.figures(outcome)
    st.subheader("Maps", anchor=False)
    chart(figures["maps"], "brain_maps")
    st.caption(
        "Warm: the voxel goes with the stimulus; cold: against it; grey: neither, or the voxel "
        "does not use the component. The left of the picture is the left of the brain. Full "
        "colour at the 99.5th percentile of each map."
    )
    _cuts(kept)
    st.subheader("Courses and errors", anchor=False)
    with st.container(key="beside_brain"):
        left, right = st.columns(2, gap="medium")
    with left:
        chart(figures["courses"], "brain_courses")
    with right:
        chart(figures["errors"], "brain_errors")
    _numbers(kept)
    _save(kept)


def _maps(kept: Stored) -> dict[str, np.ndarray]:
    """All maps (V,) by their title."""
    found = BrainMaps.from_arrays(kept.outcome.arrays)
    maps = {title: found.models[key].values for key, title in titles_of(kept.outcome).items()}
    return maps if found.stimulus is None else maps | {REFERENCE: found.stimulus.t}


def _cuts(kept: Stored) -> None:
    """Draw three slices of one map through a voxel that sliders move."""
    found, maps = BrainMaps.from_arrays(kept.outcome.arrays), _maps(kept)
    st.subheader("Slices", anchor=False)
    title = one_of("Map", {name: name for name in maps}, f"brain_map_{kept.id}", next(iter(maps)))
    peak = _peak(found, maps[title])
    shape = plots.upright(found.mask, found.affine).shape
    place: list[int] = []
    for column, side, n, best in zip(st.columns(3), SIDES, shape, peak, strict=True):
        key = f"brain_cut_{kept.id}_{title}_{side}"
        # A slider needs two places; a recording of one slice has one.
        place.append(column.slider(side, 0, n - 1, best, key=key) if n > 1 else 0)
    x, y, z = place
    chart(plots.cuts(found, maps[title], (x, y, z)), "brain_cuts")
    st.caption("The slices begin at the map's largest value; point at a voxel to read its value.")


def _peak(found: BrainMaps, values: np.ndarray) -> tuple[int, ...]:
    volume = np.full(found.mask.shape, -np.inf)
    volume[found.mask] = values
    turned = plots.upright(volume, found.affine)
    return tuple(int(at) for at in np.unravel_index(np.argmax(turned), turned.shape))


def _numbers(kept: Stored) -> None:
    st.subheader("Numbers", anchor=False)
    rows = [{label: _short(row[name]) for name, label in TABLE.items()} for row in _all_rows(kept)]
    st.dataframe(rows, key="brain_table", hide_index=True, width="content")
    st.caption(f"{EXPLAINED} Below come all other sizes this recording was separated with.")
    st.markdown(f"**The paper.** {markdown(STUDY.paper)}")
    claims_table(kept.outcome)


def _short(value: object) -> object:
    return round(value, 3) if isinstance(value, float) else value


def _all_rows(kept: Stored) -> list[Row]:
    """Return the rows of this result, and those of other sizes from the same recording."""
    same = ("recording", "events", "seed")
    others = [
        other.outcome.tables["fmri"]
        for other in StudyStore(home()).list(STUDY.name)
        if all(other.options[name] == kept.options[name] for name in same)
    ]
    found: dict[tuple[object, ...], Row] = {}
    for row in chain(kept.outcome.tables["fmri"], *others):
        found.setdefault((row["data"], row["model"], row["K"], row["L"]), row)
    return list(found.values())


def _save(kept: Stored) -> None:
    """Draw the buttons that save maps and tables."""
    found = BrainMaps.from_arrays(kept.outcome.arrays)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        for number, (title, values) in enumerate(_maps(kept).items()):
            stem = re.sub(r"[\W_]+", "-", title.lower())
            save_button(
                f"Save map: {title}",
                partial(nifti_bytes, found.mask, found.affine, values),
                f"{stem}.nii.gz",
                "application/gzip",
                key=f"brain-{number}",
            )
        table = partial(csv_text, kept.outcome.tables["fmri"])
        save_button("Save table", table, "fmri.csv", "text/csv", key="brain-table")
    st.caption(f"{made(kept)}.")
