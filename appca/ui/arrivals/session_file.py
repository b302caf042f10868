"""A session as a file: saved on the page Export, opened where files are, here or elsewhere."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from appca.canvas.scene.colours import colour_choices
from appca.data.dataset import Dataset
from appca.runs.configuration import RunConfig
from appca.runs.home import home
from appca.runs.session import SUFFIX, Session, Unpacked, pack, unpack_apart
from appca.runs.store import Run
from appca.ui.arrivals import dropping
from appca.ui.canvas import canvas
from appca.ui.parts import controls
from appca.ui.parts.downloads import card, save_button, stem_of
from appca.ui.session import selection, services, state
from appca.ui.session.fitting import Shown
from appca.ui.session.state import KEYS
from appca.ui.settings import umap
from appca.words.numbers import size
from appca.words.wording import counted

SESSION = (
    "One file with the data, the chosen fits, numbers, names and signs of components, selections, "
    "colours and the map. Drop it on any page, here or on another machine."
)


def save(dataset: Dataset, shown: Shown) -> None:
    """Draw what saves a session: with which fits, with or without the data."""
    runs = {run.id: run for run in services.runs().list() if run.config.dataset == dataset.digest}
    if shown.run is not None:
        runs.setdefault(shown.run.id, shown.run)
    with card("Session", SESSION):
        chosen = st.multiselect(
            "Fits",
            runs,
            default=[run_id for run_id in [shown.config.id] if run_id in runs],
            format_func=lambda run_id: f"{runs[run_id].name} · {run_id[:6]}",
            key=f"session_runs-{shown.config.id}",
        )
        with_data = st.toggle(
            f"With the data ({size(dataset.X.nbytes)} before packing)",
            True,
            key="session_data",
            persist_state="session",
            help="Without them the file is small, but the reader must have the same data set.",
        )
        session = _session(dataset, shown, [runs[run_id] for run_id in chosen])
        made = partial(pack, session, home(), with_data=with_data)
        save_button("Save session", made, f"{stem_of(dataset.name)}{SUFFIX}", key="session")


def _session(dataset: Dataset, shown: Shown, runs: list[Run]) -> Session:
    """Return what is on screen, with runs."""
    here, keys = st.session_state, _keys(shown.config)
    map_of, laid_out = umap.config_of(dataset, shown.config), umap.at_hand(dataset, shown.config)
    return Session(
        services.datasets().get(dataset.digest),  # with its classes as they were read
        runs,
        selection.named(dataset),
        selection.get(dataset),
        shown.config.id,
        {name: here[key] for name, key in keys.items() if key in here} | here.get(KEYS.umap, {}),
        [(map_of, laid_out)] if map_of is not None and laid_out is not None else [],
    )


def open_file(name: str, file: Path) -> None:
    """Open a session file and look at what was on screen when it was saved."""
    with st.spinner("Opening the session"):
        _look_at(unpack_apart(name, file, home(), dropping.scratch()))


def _look_at(unpacked: Unpacked) -> None:
    """Bring what came out of the file on screen."""
    state.open_dataset(unpacked.dataset)
    run = services.runs().get(unpacked.opened or next(iter(unpacked.runs), ""))
    if run is not None:
        state.open_config(run.config)
    dataset = state.current_dataset()
    _look_like(unpacked.look, dataset, state.config())
    if unpacked.selected is not None:
        selection.put(dataset, unpacked.selected)
    n = len(unpacked.selections)
    kept = f" and {counted(n, 'kept selection')}" if n else ""
    runs = counted(len(unpacked.runs), "fit")
    state.notify("success", f"“{dataset.name}” is open, with {runs}{kept}.")


def _keys(config: RunConfig) -> dict[str, str]:
    """Return the keys of the widgets that say how the fit is drawn."""
    colour, feature = controls.keys(config.dataset)
    return {"colour": colour, "feature": feature, "view": controls.view_key(config.n_active)}


def _look_like(look: Mapping[str, Any], dataset: Dataset, config: RunConfig) -> None:
    """Draw the fit as where the file was saved; what this data set cannot have is left out."""
    allowed = {
        "colour": [*colour_choices(dataset), controls.FEATURE],
        "feature": range(dataset.n_features + 1),
        "view": canvas.VIEWS,
        "start": umap.STARTS,
        "n_neighbors": range(2, umap.MOST_NEIGHBOURS + 1),
    }
    sound = {name: look[name] for name in allowed if look.get(name) in allowed[name]}
    distance = look.get("min_dist")
    if isinstance(distance, int | float) and 0 <= distance <= 1:
        sound["min_dist"] = float(distance)
    keys = _keys(config)
    st.session_state.update({key: sound.pop(name) for name, key in keys.items() if name in sound})
    st.session_state[KEYS.umap] = sound
