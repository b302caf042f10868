"""A fit at a glance: its fullest panels as small dots in the colours of the classes."""

import numpy as np

from appca.analysis.explore.subspaces import fullest
from appca.analysis.fitted import FittedRun
from appca.plots.palette import CATEGORICAL

WIDTH, HEIGHT, GAP = 720, 400, 10  # pixels
COLUMNS, LINES = 3, 2
MOST_ROWS = 900  # drawn in a panel
LIGHT = (0xF4, 0xF6, 0xF9), (0xFF, 0xFF, 0xFF)  # the ground and its panels
DARK = (0x0C, 0x10, 0x16), (0x16, 0x1D, 0x27)
EDGE = 0.5  # percent of the rows beyond each edge
DOT = np.argwhere(np.hypot(*np.mgrid[-2.5:3, -2.5:3]) < 3.0)  # its pixels, of six by six


def thumbnail(fitted: FittedRun, codes: np.ndarray | None, dark: bool = False) -> np.ndarray:
    """Draw the fullest subspaces, or pairs of components where there are very many.

    `codes` (N,) are the classes of the rows, the same colours on both grounds. Returns uint8
    (HEIGHT, WIDTH, 3).
    """
    picture = np.empty((HEIGHT, WIDTH, 3), np.uint8)
    ground, ground_of_panels = DARK if dark else LIGHT
    picture[:] = ground
    table = np.array([tuple(bytes.fromhex(colour[1:])) for colour in CATEGORICAL], np.uint8)
    groups = fullest(fitted.active, COLUMNS * LINES)
    columns, lines = min(COLUMNS, len(groups)) or 1, -(-len(groups) // COLUMNS) or 1
    width = (WIDTH - GAP * (columns + 1)) // columns
    height = (HEIGHT - GAP * (lines + 1)) // lines
    for place, group in enumerate(groups):
        line, column = divmod(place, columns)
        top, left = GAP + line * (height + GAP), GAP + column * (width + GAP)
        panel = picture[top : top + height, left : left + width]
        panel[:] = ground_of_panels
        rows = group.rows[np.random.default_rng(0).permutation(len(group.rows))[:MOST_ROWS]]
        colours = table[0 if codes is None else codes[rows] % len(table)]
        _dots(panel, _positions(fitted, group.components, rows), colours)
    return picture


def in_the_dark(picture: np.ndarray) -> np.ndarray:
    """Turn the lightness of a picture (h, w) or (h, w, 3) round and keep its hues."""
    wide = np.atleast_3d(picture).astype(int)
    turned = wide + 255 - wide.max(axis=2, keepdims=True) - wide.min(axis=2, keepdims=True)
    return np.asarray(turned, np.uint8).reshape(picture.shape)


def _positions(fitted: FittedRun, components: tuple[int, ...], rows: np.ndarray) -> np.ndarray:
    """Return places in a panel, from 0 to 1, by the two components that vary most."""
    scores = fitted.scores[rows][:, np.array(components)].astype(np.float64)
    widest = np.argsort(-scores.var(axis=0), kind="stable")[:2]
    positions = np.column_stack([scores[:, widest], np.zeros((len(rows), 2 - len(widest)))])
    low, high = np.percentile(positions, [EDGE, 100 - EDGE], axis=0)
    spread = np.where(high > low, high - low, 1.0)
    return np.where(high > low, (positions - low) / spread, 0.5)


def _dots(panel: np.ndarray, places: np.ndarray, colours: np.ndarray) -> None:
    """Draw round dots."""
    height, width, _ = panel.shape
    x = np.clip((0.06 + 0.88 * places[:, 0]) * width, 0, width - 6).astype(int)
    y = np.clip((0.94 - 0.88 * places[:, 1]) * height, 0, height - 6).astype(int)
    for down, right in DOT:
        panel[y + down, x + right] = colours
