"""What the exports of the present run are made of, gathered while the page is drawn."""

import numpy as np
import streamlit as st

from appca.analysis.explore.umap import EmbeddingConfig, EmbeddingStore
from appca.analysis.export.as_python import Recipe
from appca.data.dataset import Dataset
from appca.runs.configuration import MODELS
from appca.runs.home import home, threads
from appca.runs.quality import MethodComparison, QualityConfig, QualityStore
from appca.runs.store import title
from appca.storage.errors import InputError
from appca.ui.check.compare_choice import sizes
from appca.ui.check.compare_quality import MANY
from appca.ui.export.run_figures import Material
from appca.ui.session.fitting import Shown
from appca.ui.session.state import KEYS


def material(dataset: Dataset, shown: Shown, colour: str, rows: np.ndarray | None) -> Material:
    """Gather what the figures show; `rows` None marks no selection."""
    selected = None
    if rows is not None:
        selected = np.zeros(dataset.n_rows, dtype=bool)
        selected[rows] = True
    found = coordinates(dataset, shown)
    return Material(dataset, shown.config, shown.info, shown.fitted, colour, selected, found)


def coordinates(dataset: Dataset, shown: Shown) -> np.ndarray | None:
    """Return the UMAP map of this data and preprocessing, if one has been laid out: (N, 2).

    That of the settings on the page UMAP comes first, then the usual one.
    """
    chosen = st.session_state.get(KEYS.umap) or {}
    own = {key: value for key, value in chosen.items() if key not in ("dataset", "preprocessing")}
    usual = {"n_neighbors": min(15, dataset.n_rows - 1)}
    store = EmbeddingStore(home())
    for settings in (own, usual, usual | {"start": "appca"}):
        start = {"run": shown.config.id if settings.get("start") == "appca" else None}
        try:
            config = EmbeddingConfig(
                dataset.digest, shown.config.preprocessing, **(settings | start)
            )
        except InputError:
            continue  # too few rows for any map
        found = store.get(config.id)
        if found is not None and len(found.coordinates) == dataset.n_rows:
            return found.coordinates[:, :2]
    return None


def comparison(shown: Shown) -> MethodComparison | None:
    """Return what has been measured of this run beside other methods, of all rows if possible."""
    k, active = sizes(shown)
    store = QualityStore(home())
    for rows in (None, MANY):
        found = store.get(QualityConfig(shown.config.to_dict(), k, active, rows).id)
        if found is not None:
            return found
    return None


def recipe(shown: Shown) -> Recipe:
    """Return what a run was made with."""
    config, spec = shown.config, MODELS[shown.config.model]
    return Recipe(
        run=config.id,
        title=title(config),
        estimator=spec.estimator,
        parameters=config.parameters,
        preprocessing=config.preprocessing,
        stopped_at=config.stopped_at,
        compiled=spec.can.compiled,
        threads=threads(),
        log_likelihood=shown.info.log_likelihood,
        imported=config.imported is not None,
    )
