"""What the exports of the present run are made of, gathered while the page is drawn."""

import numpy as np

from appca.analysis.export.as_python import Recipe
from appca.data.dataset import Dataset
from appca.runs.configuration import MODELS
from appca.runs.home import threads
from appca.runs.store import title
from appca.ui.export.run_figures import Material
from appca.ui.session.fitting import Shown
from appca.ui.settings import umap


def material(dataset: Dataset, shown: Shown, colour: str, rows: np.ndarray | None) -> Material:
    """Gather what the figures show; `rows` None marks no selection."""
    selected = None
    if rows is not None:
        selected = np.zeros(dataset.n_rows, dtype=bool)
        selected[rows] = True
    found = coordinates(dataset, shown)
    return Material(dataset, shown, colour, selected, found)


def coordinates(dataset: Dataset, shown: Shown) -> np.ndarray | None:
    """Return the UMAP map of this data and preprocessing, if one has been laid out: (N, 2)."""
    embedding = umap.at_hand(dataset, shown)
    return None if embedding is None else embedding.coordinates[:, :2]


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
        order=shown.numbering.order,
        signs=shown.numbering.signs,
    )
