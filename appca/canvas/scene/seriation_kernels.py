"""Places on a grid so that neighbours share components, by annealed exchanges."""

from typing import Any

import numpy as np

from appca.models.algebra.compiled import kernel
from appca.models.supports.slot_search_kernels import uniform


@kernel
def _worth(at: int, holder: Any, shared: Any, weight: Any, far: Any, columns: int) -> Any:
    """Return what the panel at a place gains from neighbours, less what it is off the middle."""
    panel = holder[at]
    if panel < 0:
        return 0.0
    column, total = at % columns, -2.4 * weight[panel] * far[at]
    if column > 0 and holder[at - 1] >= 0:
        total += shared[panel, holder[at - 1]]
    if column < columns - 1 and at + 1 < len(holder) and holder[at + 1] >= 0:
        total += shared[panel, holder[at + 1]]
    if at >= columns and holder[at - columns] >= 0:
        total += shared[panel, holder[at - columns]]
    if at + columns < len(holder) and holder[at + columns] >= 0:
        total += shared[panel, holder[at + columns]]
    return total


@kernel
def seriate(
    holder: Any, shared: Any, weight: Any, far: Any, columns: int, moves: int, stream: Any
) -> None:
    """Exchange the panels on a grid until neighbours share much; from warm to cold.

    `holder` (places,) is the panel at each place, along the rows of the grid, -1 for none; it is
    changed. `shared` (n, n) is what two panels gain as neighbours; `weight` (n,), 0 to 1, how much
    a panel is drawn to the middle; `far` (places,) how far a place is from the middle. `stream`
    (1,) is the state of the random numbers; it is changed.
    """
    places = len(holder)
    for move in range(moves):
        heat = 0.8 * (1 - move / moves) + 0.01
        i, j = int(uniform(stream) * places), int(uniform(stream) * places)
        if i == j or (holder[i] < 0 and holder[j] < 0):
            continue
        before = _worth(i, holder, shared, weight, far, columns)
        before += _worth(j, holder, shared, weight, far, columns)
        holder[i], holder[j] = holder[j], holder[i]
        after = _worth(i, holder, shared, weight, far, columns)
        after += _worth(j, holder, shared, weight, far, columns)
        if after < before and uniform(stream) > np.exp((after - before) / heat):
            holder[i], holder[j] = holder[j], holder[i]
