"""From what pages show to the scene of it: numbers of components, colours and texts of the rows."""

import hashlib
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from appca.analysis.explore.projection import principal_scores
from appca.analysis.explore.trust import panel_trust
from appca.analysis.explore.umap import Embedding
from appca.analysis.fitted import FittedRun
from appca.canvas.scene.colours import PANELS, TRUST, trust_colour
from appca.canvas.scene.scene import Map, Scene
from appca.canvas.scene.shown import projected, scene_shown
from appca.data.brain.places import has_places, side_by_side
from appca.data.dataset import Dataset
from appca.runs.configuration import RunConfig
from appca.ui.session import services
from appca.ui.session.caching import by_key, kept
from appca.ui.session.fitting import Shown


class PageScene(NamedTuple):
    """A scene as a page draws it."""

    scene: Scene
    key: str  # of what is shown: rows that are asked for under it do not change
    scores: Callable[[np.ndarray], np.ndarray] | None = None  # of rows (n,) on all components

    @property
    def meta(self) -> dict[str, Any]:
        """The header."""
        return self.scene.meta


def scene_of(
    dataset: Dataset, shown: Shown, colouring: str, embedding: Embedding | None = None
) -> PageScene:
    """Lay out what is shown, once for all visitors, with PCA and with a UMAP of the same rows.

    Voxels of a recording also have a map of their places in slices.
    `colouring` is the key of one; a feature is among the scene's only if it is asked for.
    """
    fitted = shown.fitted
    feature = colouring if colouring.startswith("feature:") else None
    maps = {"pca": Map("PCA", principal_of(dataset, shown.config))}
    if has_places(dataset):
        places = kept(f"slices-{dataset.digest}", lambda: side_by_side(dataset))
        maps["slices"] = Map("Slices", places)
    laid_out, colourings = "", {}
    if embedding is not None:
        maps["umap"] = Map("UMAP", embedding.coordinates, embedding.near)
        laid_out = hashlib.blake2b(embedding.coordinates.tobytes()).hexdigest()
        if embedding.trust is not None:
            colourings[TRUST] = trust_colour(embedding.trust)
    of_data = (dataset.is_ordered, dataset.provenance.get("class_names"))
    parts = (shown.key, feature, laid_out, [*colourings], colouring == PANELS, of_data)
    key = hashlib.blake2b(repr(parts).encode(), digest_size=12).hexdigest()
    if colouring == PANELS:
        panels = _panel_trust(shown.key, dataset, fitted)
        colourings[PANELS] = trust_colour(panels, "Trust of the panels")
    scene = _of_fit(key, dataset, fitted, maps, feature=feature, colourings=colourings)
    return PageScene(scene, key, lambda rows: projected(dataset, fitted, rows))


@by_key(4)
def _panel_trust(dataset: Dataset, fitted: FittedRun) -> np.ndarray:
    X = fitted.preprocessing.transform(dataset.X)
    return np.column_stack(panel_trust(X, fitted.scores, fitted.active)[:3])


_of_fit = by_key(16)(scene_shown)


def principal_of(dataset: Dataset, config: RunConfig) -> np.ndarray:
    """Return the scores (N, 3) on the first principal components of the preprocessed data."""
    options = config.preprocessing
    return _principal(f"{dataset.digest}-{json.dumps(options)}", dataset, options)


@by_key(8)
def _principal(dataset: Dataset, options: dict[str, Any]) -> np.ndarray:
    before = services.prepared(dataset.digest, options)
    return principal_scores(before.transform(dataset.X))[0]
