"""From the numbers of a run to the panels of the atlas and the texts of their points."""

from itertools import combinations

import numpy as np

from appca.analysis.components.components import name_of
from appca.analysis.explore.subspaces import Subspace, pair_counts, pairs, ranked, sign_cells, title
from appca.analysis.fitted import FittedRun
from appca.data.dataset import Dataset, categories
from appca.data.numbers import percent
from appca.plots.explore.panel import Cell, Panel
from appca.plots.explore.sprites import Sprites, mean_image
from appca.storage.wording import counted
from appca.ui.explorer.colours import MEASURES, colour_choices, colour_of
from appca.ui.explorer.payload import HoverColumn, HoverData

__all__ = ["MEASURES", "colour_choices", "colour_of"]  # that pages still take from here
PAGE = 12  # panels on a page; more scatter plots than that do not survive in every browser
DOUBTFUL = 0.5  # a row whose set of components is less probable than this is drawn hollow
JITTER_SEED = 7  # of the vertical place of a point on a strip


def axis_choices(active: np.ndarray) -> list[tuple[int, int]]:
    """Pairs of places within a subspace that can be its axes: (0, 1) is its first two."""
    return list(combinations(range(int(active.sum(axis=1).max())), 2))


def count(active: np.ndarray, by_pair: bool) -> int:
    """Count the panels that the whole atlas has."""
    if by_pair:
        return len(pair_counts(active))
    return sum(bool(subspace.components) for subspace in ranked(active))


def page_of_panels(
    dataset: Dataset,
    fitted: FittedRun,
    sprites: Sprites | None,
    page: int,
    *,
    by_pair: bool = False,
    axes: tuple[int, int] = (0, 1),
) -> list[Panel]:
    """Return the panels of one page of the atlas, counted from 0, the most occupied first.

    Parameters
    ----------
    sprites : Sprites, optional
        Gives the mean image of each sign cell.
    by_pair : bool
        One panel a pair of components, holding the rows that use both, instead of one a subspace.
    axes : pair of int
        Which two of a subspace's components are its axes; the first two where it has not so many.
    """
    start = page * PAGE
    if by_pair:
        groups = pairs(fitted.active, start, start + PAGE)
    else:
        used = [subspace for subspace in ranked(fitted.active) if subspace.components]
        groups = used[start : start + PAGE]
    return panels_of(dataset, fitted, sprites, groups, axes)


def panels_of(
    dataset: Dataset,
    fitted: FittedRun,
    sprites: Sprites | None,
    groups: list[Subspace],
    axes: tuple[int, int] = (0, 1),
) -> list[Panel]:
    """Return a panel for each of the given groups; see `page_of_panels`."""
    return [_panel(dataset, fitted, sprites, group, axes) for group in groups]


def pca_panel(scores: np.ndarray, shares: np.ndarray) -> Panel:
    """Return the familiar picture of all rows: the first two principal components."""
    y = scores[:, 1] if scores.shape[1] > 1 else np.zeros(len(scores), np.float32)
    return Panel(
        title="PCA",
        subtitle=f"all rows · {percent(shares[:2].sum(), 1)}",
        rows=np.arange(len(scores), dtype=np.int32),
        x=scores[:, 0],
        y=y,
        x_title="first principal component",
        y_title="second" if len(shares) > 1 else "",
    )


def hover_of(dataset: Dataset, fitted: FittedRun) -> HoverData:
    """Return what the hover card says of every row beside its image and its coordinates."""
    columns = []
    for name, values in dataset.labels.items():
        names, codes = categories(values)
        columns.append(HoverColumn(name, codes, tuple(names)))
    groups = ranked(fitted.active)
    member = np.empty(dataset.n_rows, dtype=np.int32)
    for number, group in enumerate(groups):
        member[group.rows] = number
    columns.append(
        HoverColumn("subspace", member, tuple(title(g.components, fitted.numbers) for g in groups))
    )
    columns += [
        HoverColumn(name.lower(), getattr(fitted, part)) for name, part in MEASURES.values()
    ]
    return HoverData(dataset.ids, columns)


def _panel(
    dataset: Dataset,
    fitted: FittedRun,
    sprites: Sprites | None,
    group: Subspace,
    axes: tuple[int, int],
) -> Panel:
    components, rows = group
    drawn = components[:2]  # also where another subspace has more components, and this one fewer
    if axes[1] < len(components):
        drawn = tuple(components[place] for place in axes)
    scores = fitted.scores[np.ix_(rows, np.array(drawn))].astype(np.float32)
    strip = len(drawn) == 1
    cells = [
        Cell(
            label=cell.label,
            n_rows=len(cell.rows),
            rows=rows[cell.rows],
            corner=(cell.signs[0], 1 if strip else cell.signs[1]),
            image=None if sprites is None else mean_image(sprites, rows[cell.rows]),
        )
        for cell in sign_cells(scores, drawn)
    ]
    return Panel(
        title=title(components, fitted.numbers),
        subtitle=f"{counted(len(rows), 'row')} · {percent(len(rows) / dataset.n_rows)}",
        rows=rows.astype(np.int32),
        x=scores[:, 0],
        y=_spread(dataset.n_rows)[rows] if strip else scores[:, 1],
        x_title=_axis_title(fitted, drawn[0]),
        y_title="spread at random" if strip else _axis_title(fitted, drawn[1]),
        hollow=fitted.membership[rows] < DOUBTFUL,
        cells=cells,
    )


def _axis_title(fitted: FittedRun, component: int) -> str:
    """Name a component where Plotly would read a tag in a name that somebody gave."""
    return name_of(fitted, component).replace("<", "‹").replace(">", "›")


def _spread(n_rows: int) -> np.ndarray:
    """Height of every row on a strip: random to look at, the same each time."""
    return np.random.default_rng(JITTER_SEED).uniform(-1, 1, n_rows).astype(np.float32)
