"""New rows among those of the fit, on one canvas."""

from typing import NamedTuple

import numpy as np
import streamlit as st

from appca.analysis.data.new_data import NewRowsVerdict
from appca.analysis.fitted import DescribedRows, FittedRun
from appca.canvas.scene.scene import Scene
from appca.canvas.scene.shown import scene_shown
from appca.data.dataset import Dataset
from appca.plots.palette import Colour
from appca.ui.canvas import canvas
from appca.ui.canvas.scenes import PageScene
from appca.ui.session.caching import by_key
from appca.ui.session.fitting import Shown
from appca.ui.session.state import KEYS
from appca.words.wording import counted

MOST_OLD, MOST_NEW = 3000, 5000  # rows drawn of the data, and new ones
SEED = 11  # of the sample of the data: the same each time
KINDS = ("new, fits", "new, does not fit")
OLD = -1  # no class: grey, and not in the legend
COLOURING = "new"
HEIGHT = 560  # pixels


class DescribedData(NamedTuple):
    """New rows and what the run says of them."""

    dataset: Dataset
    fitted: FittedRun  # a run's, with the new rows in the place of its own
    key: str  # names these numbers in a cache


class OldAndNewRows(NamedTuple):
    """Rows of the data and, after them, new rows, as one data set."""

    dataset: Dataset
    fitted: FittedRun
    n_old: int


def draw(
    dataset: Dataset, shown: Shown, seen: DescribedData, verdicts: NewRowsVerdict
) -> np.ndarray | None:
    """Draw the canvas; return the new rows that are selected in it, None when there are none."""
    drawn = np.sort(verdicts.order[:MOST_NEW])
    key = f"{shown.key}-{seen.key}-{verdicts.fits[drawn].tobytes().hex()[:4000]}-{drawn.tolist()}"
    both = _together(key, dataset, shown.fitted, seen.dataset, seen.fitted, drawn)
    codes = np.full(both.dataset.n_rows, OLD)
    codes[both.n_old :] = ~verdicts.fits[drawn]
    memory: dict[str, np.ndarray] = st.session_state.setdefault(KEYS.marked, {})

    def take(mask: np.ndarray) -> None:
        memory.clear()  # of other rows
        if mask[both.n_old :].any():
            memory[seen.key] = drawn[mask[both.n_old :]]

    selected = np.zeros(both.dataset.n_rows, dtype=bool)
    selected[both.n_old :] = np.isin(drawn, memory.get(seen.key, []))
    scene = PageScene(_scene(key, both, codes), f"new {key}")
    layout = scene.meta["first"]
    canvas.draw(
        both.dataset,
        scene,
        layout,
        COLOURING,
        key="canvas-new",
        height=HEIGHT,
        selected=selected,
        on_select=take,
    )
    st.caption(_caption(dataset, both, seen.dataset.n_rows, len(drawn)))
    return memory.get(seen.key)


@by_key(2)
def _scene(both: OldAndNewRows, codes: np.ndarray) -> Scene:
    colouring = Colour("category", "New rows", codes, KINDS)
    return scene_shown(
        both.dataset, both.fitted, outside=codes != OLD, colourings={COLOURING: colouring}
    )


def together(
    dataset: Dataset,
    fitted: FittedRun,
    new: Dataset,
    projected: DescribedRows,
    drawn: np.ndarray,
) -> OldAndNewRows:
    """Put a sample of the data (`dataset`, `fitted`) and new rows one after the other.

    Of the rows in `new`, which has the columns of the data, those in `drawn` are taken; `projected`
    is what the fit says of all of them.
    """
    order = np.random.default_rng(SEED).permutation(dataset.n_rows)
    old = np.sort(order[:MOST_OLD])
    ids = np.concatenate([dataset.ids[old], [f"new: {text}" for text in new.ids[drawn]]])
    names = dict.fromkeys([*dataset.labels, *new.labels])
    both = Dataset(
        name=new.name,
        X=np.concatenate([dataset.X[old], new.X[drawn]]),
        ids=_unique(ids, len(old)),
        labels={name: _label(name, dataset, old, new, drawn) for name in names},
        image_shape=dataset.image_shape,
        provenance=new.provenance,
    )
    rows = fitted.take(old).followed_by(projected.take(drawn))
    return OldAndNewRows(both, fitted.with_rows(rows), len(old))


_together = by_key(4)(together)


def _unique(ids: np.ndarray, n_old: int) -> np.ndarray:
    if len(set(ids.tolist())) == len(ids):
        return ids
    return np.array([f"{text} ({'data' if i < n_old else i})" for i, text in enumerate(ids)])


def _label(
    name: str, dataset: Dataset, old: np.ndarray, new: Dataset, drawn: np.ndarray
) -> np.ndarray:
    columns = [
        side.labels[name][rows].astype(str) if name in side.labels else np.full(len(rows), "")
        for side, rows in ((dataset, old), (new, drawn))
    ]
    return np.concatenate(columns)


def _caption(dataset: Dataset, both: OldAndNewRows, n_new: int, drawn: int) -> str:
    text = "Grey: the data"
    if both.n_old < dataset.n_rows:
        text += f", {both.n_old:,} of {dataset.n_rows:,} rows drawn at random"
    if drawn < n_new:
        text += f"; of {counted(n_new, 'new row')} the {drawn:,} that fit least"
    return f"{text}. A lasso lists only the new rows in it below."
