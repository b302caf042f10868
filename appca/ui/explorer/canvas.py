"""The canvas on a page: every subspace of what is shown in one picture, with one selection."""

import base64
from typing import Any

import numpy as np
import streamlit as st

from appca.analysis.explore.umap import Embedding
from appca.analysis.fitted import FittedRun
from appca.data.dataset import Dataset
from appca.plots.explore.scene.scene import Map, Scene
from appca.runs.home import home
from appca.runs.numbering import ComponentNumbers, Numbering, numbered
from appca.ui.explorer import atlas, bundle, component, serving
from appca.ui.explorer.scenes import lines_of, scene_shown
from appca.ui.session import selection
from appca.ui.session.caching import by_key
from appca.ui.session.fitting import Shown

FOLDER = bundle.FOLDER / "canvas"
_canvas = st.components.v2.component(
    "appca_canvas",
    html="<div class='appca-canvas-box'></div>",
    js=bundle.closed_bundle(FOLDER / "host.js"),
    css=(FOLDER / "canvas.css").read_text(encoding="utf-8"),
    isolate_styles=False,
)


@by_key(6)
def _scene(
    dataset: Dataset,
    fitted: FittedRun,
    numbering: Numbering,
    maps: dict[str, Map],
    feature: str | None,
) -> Scene:
    return scene_shown(dataset, numbered(fitted, numbering), numbering, maps, feature=feature)


def numbering_of(shown: Shown) -> Numbering:
    """Return the numbers, signs and names under which people know the components."""
    known = ComponentNumbers(home())
    if shown.run is None:
        return known.of_preview(shown.config, shown.fitted)
    return known.of_run(shown.run)


def scene(
    dataset: Dataset, shown: Shown, colouring: str, embedding: Embedding | None = None
) -> Scene:
    """Return what is shown as a scene, laid out once for all visitors.

    Parameters
    ----------
    colouring : str
        Key of a colouring; a feature is one of the scene's colourings only if it is asked for.
    embedding : Embedding, optional
        A UMAP of the same rows, as a further layout.
    """
    numbering = numbering_of(shown)
    feature = colouring if colouring.startswith("feature:") else None
    maps = {"pca": Map("PCA", _plane(atlas.principal(dataset, shown)[0]))}
    which: list[Any] = [shown.key, numbering, feature]
    if embedding is not None:
        maps["umap"] = Map("UMAP", _plane(embedding.coordinates))
        which.append(embedding.info)
    fitted = shown.fitted if shown.run is None else shown.run.fitted
    return _scene(str(which), dataset, fitted, numbering, maps, feature)


def views(scene: Scene) -> dict[str, str]:
    """Return the layouts that there are: key to the name on screen, the first one first."""
    names = {"subspaces": "Subspaces", "pairs": "Pairs", "pca": "PCA", "umap": "UMAP"}
    found = {name: names.get(name, name) for name in scene.meta["layouts"]}
    first = scene.meta["first"]
    return {first: found[first]} | found


def draw(dataset: Dataset, shown: Shown, scene: Scene, layout: str, colouring: str) -> None:
    """Draw a scene of what is shown, and take over what is selected in it.

    Parameters
    ----------
    layout : str
        One of `views`.
    colouring : str
        A key of the scene's colourings.
    """
    key = "canvas"
    mask, seen, changed = component.latest_selection(
        key, st.session_state.get(key), dataset.n_rows, atlas.mask_or_none(dataset)
    )
    atlas.take_over(dataset, mask, changed)
    kept = selection.get(dataset)
    bits = np.packbits(kept, bitorder="little").tobytes()
    _canvas(
        key=key,
        data={
            "scene": serving.address(scene, dataset, shown.key, lines_of(dataset, shown.fitted)),
            "options": {"layout": layout, "colouring": colouring},
            "selected": base64.b64encode(bits).decode() if kept.any() else None,
            "seen": seen,
        },
        on_selection_change=_nothing,
        on_lost_change=_nothing,
    )


def _plane(coordinates: np.ndarray) -> np.ndarray:
    """Return two coordinates of each row, the second zero where there is one alone."""
    if coordinates.shape[1] > 1:
        return coordinates[:, :2]
    return np.column_stack([coordinates[:, 0], np.zeros(len(coordinates))])


def _nothing() -> None:
    """Stand for a reaction: the component's state appears in the session only with a callback."""
