"""New rows over the grey rows of the run, in the panels of the run."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import streamlit as st

from appca.analysis.data.new_data import NewRowsVerdict
from appca.analysis.explore.subspaces import Subspace, opens_in_pair_view, pairs, ranked
from appca.analysis.fitted import DescribedRows, FittedRun
from appca.data.dataset import Dataset
from appca.plots.explore.panel import Panel
from appca.plots.explore.sprites import Sprites, sprites_of
from appca.plots.palette import Colour, class_colour
from appca.storage.wording import counted
from appca.ui.explorer import panels
from appca.ui.explorer.component import explorer
from appca.ui.session.caching import by_key
from appca.ui.session.fitting import Shown
from appca.ui.session.state import KEYS

if TYPE_CHECKING:
    from appca.ui.data.new_data import DescribedData

MOST_OLD, MOST_NEW = 3000, 5000  # rows drawn of the run, and new ones
SEED = 11  # of the sample of the run's rows: the same each time
KINDS = ("new, fits", "new, does not fit")
OLD = -1  # no class: grey, and not in the legend
NEW = [tuple(bytes.fromhex(class_colour(code)[1:])) for code in range(len(KINDS))]
GREY = {"light": (200,) * 3, "dark": (95,) * 3}  # equal parts stay grey when colours are rounded
FEW, LARGE, SMALL = 1000, 5, 3  # rows drawn, and the size of a point of so few and of more


class OldAndNewRows(NamedTuple):
    """Rows of the run and, after them, new rows, as one data set."""

    dataset: Dataset
    fitted: FittedRun
    sprites: Sprites | None
    n_old: int


def draw(
    dataset: Dataset, shown: Shown, seen: "DescribedData", said: NewRowsVerdict
) -> np.ndarray | None:
    """Draw the panels; return the new rows that are marked in them, None when there are none."""
    n_new = seen.dataset.n_rows
    drawn = np.sort(said.order[:MOST_NEW])
    key = f"{shown.key}-{seen.key}-{drawn.tolist()}"
    both = _together(key, dataset, shown.fitted, seen.dataset, seen.fitted, drawn)
    by_pair = opens_in_pair_view(shown.fitted.active)
    groups = groups_of(both, by_pair)
    if not groups:
        st.info("No new row uses any component: all of them are the average and noise.")
        return None
    codes = np.full(both.dataset.n_rows, OLD)
    codes[both.n_old :] = ~said.fits[drawn]
    memory: dict[str, np.ndarray] = st.session_state.setdefault(KEYS.marked, {})
    mask = None
    if seen.key in memory:
        mask = np.zeros(both.dataset.n_rows, dtype=bool)
        mask[both.n_old :] = np.isin(drawn, memory[seen.key])
    plain = panels.panels_of(both.dataset, both.fitted, both.sprites, groups)
    result = explorer(
        "new-data",
        [_painted(panel, both.n_old, codes) for panel in plain],
        n_rows=both.dataset.n_rows,
        revision=f"new-{seen.key}",
        colour=Colour("category", "row", codes, KINDS),
        sprites=both.sprites,
        selection=mask,
        hover=panels.hover_of(both.dataset, both.fitted),
        point_size=LARGE if both.dataset.n_rows <= FEW else SMALL,
    )
    if result.changed:
        memory.clear()  # of other rows
        if result.selection is not None and result.selection[both.n_old :].any():
            memory[seen.key] = drawn[result.selection[both.n_old :]]
    st.caption(_caption(dataset, both, n_new, len(drawn), by_pair, len(groups)))
    values: np.ndarray | None = memory.get(seen.key)
    return values


def together(
    dataset: Dataset,
    fitted: FittedRun,
    new: Dataset,
    projected: DescribedRows,
    drawn: np.ndarray,
) -> OldAndNewRows:
    """Put a sample of the run's rows (`dataset`, `fitted`) and new rows one after the other.

    Of the rows in `new`, which has the columns of the run, those in `drawn` are taken; `projected`
    is what the run says of all of them.
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
    sprites = None
    if dataset.image_shape is not None:
        sprites = sprites_of(both, sprites_of(dataset).style)
        first = np.arange(both.n_rows) < len(old)  # thumbnails of new rows go before the others
        rank = np.argsort(np.argsort(first * both.n_rows + sprites.priority.astype(np.int64)))
        sprites = sprites._replace(priority=rank.astype(np.uint32))
    return OldAndNewRows(both, fitted.with_rows(rows), sprites, len(old))


_together = by_key(4)(together)


def groups_of(both: OldAndNewRows, by_pair: bool) -> list[Subspace]:
    """Return the subspaces, or pairs, that hold new rows, the fullest of those first."""
    active = both.fitted.active
    if by_pair:
        found = [group.components for group in pairs(active[both.n_old :], 0, panels.PAGE)]
        return [Subspace(pair, np.flatnonzero(active[:, pair].all(axis=1))) for pair in found]
    found = [group.components for group in ranked(active[both.n_old :]) if group.components]
    sets = {group.components: group.rows for group in ranked(active)}
    return [Subspace(S, sets[S]) for S in found[: panels.PAGE]]


def _painted(panel: Panel, n_old: int, codes: np.ndarray) -> Panel:
    """Colour a panel's rows; sign cells go, for they would count the run's rows and new ones."""
    is_new = panel.rows >= n_old
    grey = GREY["dark" if st.context.theme.type == "dark" else "light"]
    table = np.array([*NEW, grey], dtype=np.uint8)  # OLD, -1, is the last
    return panel._replace(
        subtitle=f"{is_new.sum():,} new, {(~is_new).sum():,} of the run",
        hollow=None if panel.hollow is None else panel.hollow & is_new,
        rgb=table[codes[panel.rows]],
        cells=(),
    )


def _unique(ids: np.ndarray, n_old: int) -> np.ndarray:
    if len(set(ids.tolist())) == len(ids):
        return ids
    return np.array([f"{text} ({'run' if i < n_old else i})" for i, text in enumerate(ids)])


def _label(
    name: str, dataset: Dataset, old: np.ndarray, new: Dataset, drawn: np.ndarray
) -> np.ndarray:
    columns = [
        side.labels[name][rows].astype(str) if name in side.labels else np.full(len(rows), "")
        for side, rows in ((dataset, old), (new, drawn))
    ]
    return np.concatenate(columns)


def _caption(
    dataset: Dataset, both: OldAndNewRows, n_new: int, drawn: int, by_pair: bool, n_groups: int
) -> str:
    text = "Grey: rows of the run"
    if both.n_old < dataset.n_rows:
        text += f", {both.n_old:,} of {dataset.n_rows:,} drawn at random"
    if drawn < n_new:
        text += f"; of {counted(n_new, 'new row')} the {drawn:,} that fit least"
    kind = "pairs" if by_pair else "subspaces"
    if n_groups == panels.PAGE:
        text += f"; the {n_groups} {kind} with most new rows"
    return f"{text}. A lasso lists only the new rows in it below."
