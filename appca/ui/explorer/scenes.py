"""From what pages show to the scene of it: numbers of components, colours and texts of the rows."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import streamlit as st

from appca.analysis.explore.projection import principal_scores
from appca.analysis.fitted import FittedRun
from appca.data.dataset import Dataset
from appca.plots.explore.scene.scene import Map, Scene
from appca.plots.explore.scene.shown import lines_of, plane, projected, scene_shown
from appca.plots.explore.scene.texts import RowText
from appca.runs.configuration import RunConfig
from appca.runs.home import home
from appca.runs.numbering import ComponentNumbers, numbered
from appca.runs.store import Run
from appca.ui.session import services
from appca.ui.session.caching import by_key


class PageScene(NamedTuple):
    """A scene as a page draws it."""

    scene: Scene
    key: str  # of what is shown: rows that are asked for under it do not change
    lines: Sequence[RowText]  # of the hover card
    scores: Callable[[np.ndarray], np.ndarray] | None = None  # of rows (n,) on all components

    @property
    def meta(self) -> dict[str, Any]:
        """The header."""
        return self.scene.meta


def scene_of_fit(
    dataset: Dataset,
    config: RunConfig,
    fitted: FittedRun,
    *,
    key: str,
    maps: Mapping[str, Map] | None = None,
    feature: str | None = None,
) -> PageScene:
    """Lay a fit out, once for all visitors, with PCA and what other maps there are.

    Parameters
    ----------
    fitted : FittedRun
        With the numbers, signs and names under which people know the components.
    key : str
        Names the fit with all that in a cache.
    maps : mapping of str to Map, optional
    feature : str, optional
        Key of a feature that rows can be coloured by, too; see `colours.colour_of`.
    """
    pca = Map("PCA", plane(principal_of(dataset, config, fitted)[0]))
    maps = maps or {}
    marks = [digest(name, one.title, _content(one.coordinates)) for name, one in maps.items()]
    key = digest(key, feature, marks)
    shown = _of_fit(key, dataset, fitted, {"pca": pca, **maps}, feature)
    return PageScene(
        shown, key, lines_of(dataset, fitted), lambda rows: projected(dataset, fitted, rows)
    )


def scene_of_run(dataset: Dataset, run: Run, *, feature: str | None = None) -> PageScene:
    """Lay a stored run out, whether or not it is the one on screen; see `scene_of_fit`."""
    numbering = ComponentNumbers(home()).of_run(run)
    return scene_of_fit(
        *(dataset, run.config, numbered(run.fitted, numbering)),
        key=f"{run.id} {numbering.key}",
        feature=feature,
    )


@by_key(8)
def _of_fit(
    dataset: Dataset, fitted: FittedRun, maps: Mapping[str, Map], feature: str | None
) -> Scene:
    return scene_shown(dataset, fitted, maps, feature=feature)


def principal_of(
    dataset: Dataset, config: RunConfig, fitted: FittedRun | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the first three principal components of the preprocessed data, and their shares.

    `fitted` brings its own preprocessing where there is an autoencoder.
    """
    return _principal(dataset.digest, json.dumps(config.preprocessing), fitted)


@st.cache_resource(show_spinner=False, max_entries=8)
def _principal(
    digest: str, options: str, _fitted: FittedRun | None
) -> tuple[np.ndarray, np.ndarray]:
    chosen = json.loads(options)
    # The run's own autoencoder; a preview's scales come from a sample, so those are learned anew.
    before = None if _fitted is None else _fitted.preprocessing
    if not chosen.get("vae"):
        before = services.prepared(digest, chosen) or before
    assert before is not None  # all but an autoencoder is prepared at once
    return principal_scores(before.transform(services.dataset(digest).X))


def digest(*parts: object) -> str:
    """Name what some parts, which say what they are, make together."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=12).hexdigest()


def _content(values: np.ndarray) -> str:
    return hashlib.blake2b(np.ascontiguousarray(values).tobytes(), digest_size=12).hexdigest()
