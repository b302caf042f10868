"""From the numbers of a run to the panels of its figure that stands alone."""

import numpy as np

from appca.analysis.components.components import name_of
from appca.analysis.explore.subspaces import Subspace, pairs, ranked, sign_cells, title
from appca.analysis.fitted import FittedRun
from appca.data.dataset import Dataset
from appca.data.numbers import percent
from appca.plots.explore.panel import Cell, Panel
from appca.storage.wording import counted

PAGE = 12  # panels of the figure
DOUBTFUL = 0.5  # a row whose set of components is less probable than this is drawn hollow
JITTER_SEED = 7  # of the vertical place of a point on a strip


def fullest_panels(dataset: Dataset, fitted: FittedRun, *, by_pair: bool = False) -> list[Panel]:
    """Return the panels with the most rows, the fullest first.

    Parameters
    ----------
    by_pair : bool
        One panel a pair of components, holding the rows that use both, instead of one a subspace.
    """
    if by_pair:
        groups = pairs(fitted.active, 0, PAGE)
    else:
        groups = [subspace for subspace in ranked(fitted.active) if subspace.components][:PAGE]
    return [_panel(dataset, fitted, group) for group in groups]


def _panel(dataset: Dataset, fitted: FittedRun, group: Subspace) -> Panel:
    components, rows = group
    drawn = components[:2]
    scores = fitted.scores[np.ix_(rows, np.array(drawn))].astype(np.float32)
    strip = len(drawn) == 1
    cells = [
        Cell(
            label=cell.label,
            n_rows=len(cell.rows),
            rows=rows[cell.rows],
            corner=(cell.signs[0], 1 if strip else cell.signs[1]),
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
