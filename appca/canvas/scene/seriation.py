"""Where the panels of a grid stand: those that share components beside each other."""

import math

import numpy as np

from appca.canvas.scene.groups import Components

RATIO = 1.5  # of width to height
MOVES = 500  # exchanges a panel
SEED = 3


def cells(components: list[Components], counts: np.ndarray) -> list[tuple[int, int]]:
    """Return the (column, row) of each panel, the same for the same panels."""
    from appca.canvas.scene.seriation_kernels import seriate

    n = len(components)
    columns = max(1, math.ceil(math.sqrt(n * RATIO)))
    rows = -(-n // columns)
    uses = np.zeros((n, 1 + max((k for support in components for k in support), default=0)))
    for p, support in enumerate(components):
        uses[p, list(support)] = 1
    weight = np.sqrt(np.sqrt(counts / max(1, counts.max(initial=1))))
    shared = uses @ uses.T * (0.3 + 0.7 * np.sqrt(np.outer(weight, weight)))
    at = np.arange(columns * rows)
    far = np.abs(at // columns - (rows - 1) / 2) / rows
    far += np.abs(at % columns - (columns - 1) / 2) / columns
    holder = np.full(len(at), -1)
    holder[np.argsort(far, kind="stable")[:n]] = np.argsort(-weight, kind="stable")
    stream = np.array([SEED], np.uint64)
    seriate(holder, shared, weight, far, columns, MOVES * n, stream)
    places = np.argsort(holder, kind="stable")[-n:].tolist()  # behind those that hold none
    return [(place % columns, place // columns) for place in places]
