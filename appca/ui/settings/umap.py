"""The map (UMAP) as a view of Explore: its settings, and laying it out in the background."""

import numpy as np
import streamlit as st

from appca.analysis.explore.trust import EXACT, REFERENCES
from appca.analysis.explore.umap import Embedding, EmbeddingConfig, EmbeddingStore
from appca.data.dataset import Dataset
from appca.runs.configuration import RunConfig
from appca.runs.home import home
from appca.ui.parts import progress
from appca.ui.session.fitting import Shown
from appca.ui.session.state import KEYS
from appca.words.errors import InputError
from appca.words.numbers import about, percent

STARTS = {"pca": "PCA of the data", "appca": "Scores of the model"}
NEIGHBOURS, DISTANCE = 15, 0.1  # umap-learn's own defaults
MOST_NEIGHBOURS = 200
LEAST_ROWS = 3  # two neighbours each
START_SECONDS, ROW_SECONDS = 15.0, 1e-3


def settings(dataset: Dataset) -> None:
    """Draw the settings; another map is laid out when it is asked for."""
    chosen = st.session_state.setdefault(KEYS.umap, {})
    most = min(MOST_NEIGHBOURS, dataset.n_rows - 1)
    if dataset.n_rows < LEAST_ROWS:
        return
    near = "How many nearest rows are kept near. Few show fine detail, many the whole."
    boxes: list[tuple[str, str, float, tuple[float, float], str]] = [
        ("Neighbours", "n_neighbors", NEIGHBOURS, (2, most), near),
        ("Least distance", "min_dist", DISTANCE, (0.0, 1.0), "How close points may come."),
    ]
    for label, name, usual, (low, high), meaning in boxes:
        value = type(low)(min(max(chosen.get(name, usual), low), high))
        key = f"umap_{name}"
        chosen[name] = st.number_input(label, low, high, value, key=key, help=meaning)
    starts = list(STARTS)
    chosen["start"] = st.selectbox(
        "Start from",
        starts,
        index=starts.index(chosen.get("start", "pca")),
        format_func=STARTS.__getitem__,
        key="umap_start",
        help="The first coordinates, from which the map is pulled into shape.",
    )


def config_of(dataset: Dataset, fit: RunConfig) -> EmbeddingConfig | None:
    """Return the map of the present settings; None where there are too few rows for any."""
    chosen = st.session_state.get(KEYS.umap) or {}
    usual = {"n_neighbors": min(NEIGHBOURS, dataset.n_rows - 1)}
    asked = {name: chosen[name] for name in ("n_neighbors", "min_dist", "start") if name in chosen}
    run = fit.id if asked.get("start") == "appca" else None
    try:
        return EmbeddingConfig(dataset.digest, fit.preprocessing, run=run, **(usual | asked))
    except InputError:
        return None


def at_hand(dataset: Dataset, fit: RunConfig) -> Embedding | None:
    """Return the finished map of the present settings, if there is one."""
    config = config_of(dataset, fit)
    stored = None if config is None else EmbeddingStore(home()).get(config.id)
    return stored if stored is not None and len(stored.coordinates) == dataset.n_rows else None


def trust_sentence(trust: np.ndarray) -> str:
    """Say how far a map can be trusted as a whole, and how that was counted; trust is (N, 3)."""
    false, missing, kept = trust.mean(axis=0, dtype=np.float64)
    how = "All ranks are counted."
    if len(trust) > EXACT:
        how = f"Ranks beyond the map's nearest rows are estimated from {REFERENCES:,} rows."
    return (
        f"Trustworthiness {1 - false:.3f}, continuity {1 - missing:.3f}, nearest rows kept "
        f"{percent(kept)}. {how}"
    )


def offer(dataset: Dataset, shown: Shown) -> None:
    """Draw how far the map is, or the button that lays it out."""
    config = config_of(dataset, shown.config)
    if config is None:
        st.caption(f"A map needs {LEAST_ROWS} rows or more.")
    elif not progress.follow(config.id, cancel="umap_cancel"):
        takes = about(START_SECONDS + ROW_SECONDS * dataset.n_rows)
        label = f"Lay out the map, {takes}"
        progress.button(label, "umap_run", "umap", config.id, config.to_dict())
