"""The page UMAP: settings of the map, its job, and three linked pictures of all rows."""

from typing import Any

import numpy as np
import streamlit as st

from appca.analysis.explore.projection import pca_rgb, rgb
from appca.analysis.explore.subspaces import Subspace, ranked, title
from appca.analysis.explore.umap import Embedding, EmbeddingConfig, EmbeddingStore
from appca.data.dataset import Dataset
from appca.plots.explore.panel import Panel
from appca.plots.explore.points import MARKERS
from appca.plots.palette import Colour
from appca.runs.home import home
from appca.storage.errors import InputError
from appca.storage.wording import capital, counted
from appca.ui.explore import umap_classes
from appca.ui.explorer import atlas
from appca.ui.explorer.component import explorer
from appca.ui.parts import progress
from appca.ui.parts.text import duration, tag, words
from appca.ui.session import computation
from appca.ui.session.fitting import Shown
from appca.ui.session.state import KEYS

# The markers of `appca.plots.explore.points.MARKERS` as text.
SIGNS = ("●", "◆", "■", "▲", "✚", "★", "✖", "▼", "⬟", "⬢")
STARTS = {"pca": "PCA of the data", "appca": "The scores of the run"}
HEIGHT = 400  # pixels of a map
FEW_ROWS, MORE = 3000, 2  # pixels more for each point of few rows: their markers can be told apart
MOST_MARKS = 20  # subspaces named below the picture
NEIGHBOURS, DISTANCE, SPREAD = 15, 0.1, 1.0  # umap-learn's own defaults
LEAST_ROWS = 3  # two neighbours each
MOST_SPREAD = 10.0  # from 1 on, so that every least distance up to 1 is allowed


def is_offered(dataset: Dataset) -> bool:
    """Whether a map can be laid out; if not, say so."""
    if dataset.n_rows < LEAST_ROWS:
        st.info(
            f"UMAP lays out rows by their nearest ones, so it needs {LEAST_ROWS} or more; there "
            f"are {dataset.n_rows}."
        )
    return dataset.n_rows >= LEAST_ROWS


def settings(dataset: Dataset, shown: Shown) -> EmbeddingConfig:
    """Draw the settings and return them as the configuration of a map."""
    chosen = st.session_state.setdefault(KEYS.umap, {})
    most = min(200, dataset.n_rows - 1)
    told = "How many nearest rows are kept near. Few show fine detail, many the whole."
    first = min(NEIGHBOURS, most)
    neighbours = _number("Neighbours", "n_neighbors", chosen, first, (2, most), told)
    told = "How far apart groups may lie."
    spread = _number("Spread", "spread", chosen, SPREAD, (SPREAD, MOST_SPREAD), told)
    told = "How close points may come."
    distance = _number("Least distance", "min_dist", chosen, DISTANCE, (0.0, 1.0), told)
    starts = list(STARTS)
    start: str = st.selectbox(
        "Start from",
        starts,
        index=starts.index(chosen.get("start", "pca")),
        format_func=STARTS.__getitem__,
        key="umap_start",
        width=180,
        help="The first coordinates, from which the map is pulled into shape.",
    )
    config = EmbeddingConfig(
        dataset=dataset.digest,
        preprocessing=shown.config.preprocessing,
        n_neighbors=int(neighbours),
        min_dist=distance,
        spread=spread,
        start=start,
        run=shown.config.id if start == "appca" else None,
    )
    st.session_state[KEYS.umap] = config.to_dict()
    return config


def stored(config: EmbeddingConfig) -> Embedding | None:
    """Return the finished map, if there is one."""
    return EmbeddingStore(home()).get(config.id)


def at_hand(dataset: Dataset, shown: Shown) -> Embedding | None:
    """Return the finished map of this data and preprocessing, if there is one.

    That of the settings on the page UMAP comes first, then the usual one.
    """
    chosen = st.session_state.get(KEYS.umap) or {}
    own = {key: value for key, value in chosen.items() if key not in ("dataset", "preprocessing")}
    usual = {"n_neighbors": min(NEIGHBOURS, dataset.n_rows - 1)}
    for options in (own, usual, usual | {"start": "appca"}):
        start = {"run": shown.config.id if options.get("start") == "appca" else None}
        try:
            config = EmbeddingConfig(
                dataset.digest, shown.config.preprocessing, **(options | start)
            )
        except InputError:
            continue  # too few rows for any map
        found = stored(config)
        if found is not None and len(found.coordinates) == dataset.n_rows:
            return found
    return None


def wait_or_offer(dataset: Dataset, config: EmbeddingConfig) -> None:
    """Draw the running job, or the button that starts it."""
    if progress.follow(config.id):
        return
    st.markdown(
        f"UMAP lays out all {counted(dataset.n_rows, 'row')} in the background: about 20 s for "
        "2,000 rows, one to two minutes for 70,000. The first one of a session takes 10 s more. "
        "With another least distance, spread or start the neighbours need not be sought again."
    )
    computation.button("Lay out the map", "umap_run", "umap", config.id, config.to_dict())


def pictures(
    dataset: Dataset,
    shown: Shown,
    embedding: Embedding,
    colour: Colour,
    *,
    size: int,
    named: bool = False,
) -> None:
    """Draw the map three times: coloured by the projection, by PCA, and by the chosen colours.

    `named` writes the classes' names on it.
    """
    drawn = panels_of(dataset, shown, embedding, colour.name)
    if named:
        names = umap_classes.names_on_map(dataset, embedding.coordinates[:, :2])
        drawn = [panel._replace(names=names) for panel in drawn]
    result = explorer(
        "umap",
        drawn,
        n_rows=dataset.n_rows,
        revision=f"umap-{dataset.digest}-{embedding.info}",
        colour=colour,
        sprites=atlas.sprites(dataset.digest),
        selection=atlas.mask_or_none(dataset),
        hover=atlas.hover(shown, dataset),
        thumbnail_px=0,  # colours are what this page is about; the toolbar turns images on
        point_size=size + (MORE if dataset.n_rows <= FEW_ROWS else 0),
        columns=3,
        height=HEIGHT,
    )
    atlas.take_over(dataset, result.selection, result.changed)
    st.html(_marks(ranked(shown.fitted.active)))
    st.caption(
        "Red, green and blue are the scores on a row's first, second and third own component (on "
        "the left) or on the first three principal components (in the middle): where colours "
        "change, the map bends the projection. "
        f"Laid out in {duration(embedding.info['seconds'])}."
    )


def panels_of(dataset: Dataset, shown: Shown, embedding: Embedding, third: str) -> list[Panel]:
    """Return the map three times: coloured by the projection, by PCA, and as `third` says."""
    fitted = shown.fitted
    x, y = np.ascontiguousarray(embedding.coordinates[:, :2].T)
    everything = Panel("", "", np.arange(dataset.n_rows, dtype=np.int32), x, y, origin=False)
    principal, _ = atlas.principal(dataset, shown)
    member = np.empty(dataset.n_rows, dtype=np.uint8)
    for number, group in enumerate(ranked(fitted.active)):
        member[group.rows] = number % len(MARKERS)
    return [
        everything._replace(
            title=shown.config.model,
            subtitle="a marker for each subspace",
            rgb=rgb(fitted.scores, fitted.active),
            symbol=member,
        ),
        everything._replace(title="PCA", subtitle="three components", rgb=pca_rgb(principal)),
        everything._replace(title=capital(third), subtitle=f"{dataset.n_rows:,} rows"),
    ]


def _marks(groups: list[Subspace]) -> str:
    named = [
        tag("span", words(f"{SIGNS[n % len(SIGNS)]} {title(group.components)}"))
        for n, group in enumerate(groups[:MOST_MARKS])
    ]
    if len(groups) > MOST_MARKS:
        named.append(tag("span", words(f"and {len(groups) - MOST_MARKS:,} more")))
    return tag("div", "".join(named), "ca-marks")


def _number(
    label: str,
    name: str,
    chosen: dict[str, Any],
    default: float,
    limits: tuple[float, float],
    told: str,
) -> float:
    least, most = limits
    value = type(least)(min(max(chosen.get(name, default), least), most))
    return st.number_input(label, least, most, value, key=f"umap_{name}", help=told, width=125)
