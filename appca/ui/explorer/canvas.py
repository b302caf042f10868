"""The canvas on a page: every subspace of what is shown in one picture, with one selection."""

import base64
from typing import Any

import numpy as np
import streamlit as st

from appca.analysis.explore.umap import Embedding
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
_scene = by_key(6)(scene_shown)
_canvas = st.components.v2.component(
    "appca_canvas",
    html="<div class='appca-canvas-box'></div>",
    js=bundle.closed_bundle(FOLDER / "host.js"),
    css=(FOLDER / "canvas.css").read_text(encoding="utf-8"),
    isolate_styles=False,
)


def numbering_of(shown: Shown) -> Numbering:
    """Return the numbers, signs and names under which people know the components."""
    known = ComponentNumbers(home())
    if shown.run is None:
        return known.of_preview(shown.config, shown.fitted)
    return known.of_run(shown.run)


def draw(
    dataset: Dataset, shown: Shown, layout: str, colouring: str, embedding: Embedding | None = None
) -> None:
    """Draw what is shown, and take over what is selected in it.

    Parameters
    ----------
    layout : str
        One of `views`; "" for the one that suits the run.
    colouring : str
        A key of the scene's colourings.
    embedding : Embedding, optional
        A UMAP of the same rows, as a further layout.
    """
    feature = colouring if colouring.startswith("feature:") else None
    scene, numbering = _scene_of(dataset, shown, embedding, feature)
    fitted = shown.fitted if shown.run is None else shown.run.fitted
    lines = lines_of(dataset, numbered(fitted, numbering))
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
            "scene": serving.address(scene, dataset, shown.key, lines),
            "options": {"layout": layout or scene.meta["first"], "colouring": colouring},
            "selected": base64.b64encode(bits).decode() if kept.any() else None,
            "seen": seen,
        },
        on_selection_change=_nothing,
        on_lost_change=_nothing,
    )


def views(dataset: Dataset, shown: Shown, embedding: Embedding | None = None) -> dict[str, str]:
    """Return the layouts that there are: key to the name on screen, the first one first."""
    meta = _scene_of(dataset, shown, embedding)[0].meta
    names = {"subspaces": "Subspaces", "pairs": "Pairs", "pca": "PCA", "umap": "UMAP"}
    found = {name: names.get(name, name) for name in meta["layouts"]}
    first = meta["first"]
    return {first: found[first]} | found


def _scene_of(
    dataset: Dataset, shown: Shown, embedding: Embedding | None, feature: str | None = None
) -> tuple[Scene, Numbering]:
    numbering = numbering_of(shown)
    fitted = shown.fitted if shown.run is None else shown.run.fitted
    principal, _ = atlas.principal(dataset, shown)
    maps = {"pca": Map("PCA", _plane(principal))}
    which: list[Any] = [shown.key, numbering, feature]
    if embedding is not None:
        maps["umap"] = Map("UMAP", _plane(embedding.coordinates))
        which.append(embedding.info)
    drawn = numbered(fitted, numbering)
    return _scene(str(which), dataset, drawn, numbering, maps, feature=feature), numbering


def _plane(coordinates: np.ndarray) -> np.ndarray:
    """Return two coordinates of each row, the second zero where there is one alone."""
    if coordinates.shape[1] > 1:
        return coordinates[:, :2]
    return np.column_stack([coordinates[:, 0], np.zeros(len(coordinates))])


def _nothing() -> None:
    """Stand for a reaction: the component's state appears in the session only with a callback."""
