"""The largest weights of components as bars."""

import numpy as np

from appca.plots.components.components import NEGATIVE, POSITIVE, ranked_loadings
from appca.ui.parts.text import tag, words
from appca.words.numbers import signed

SURE = 2.0  # standard deviations from 0 from which on the sign of a weight is sure


def loadings(
    pattern: np.ndarray, names: tuple[str, ...] | None, spread: np.ndarray | None = None
) -> str:
    """Return the largest weights of a component (D,) of a table as HTML bars.

    With `spread` (D,), the standard deviations of all weights, both stand beside the names, and the
    bar of a weight that is less than `SURE` of them from 0 is hollow: its sign is not sure.
    """
    lines = []
    for item in ranked_loadings(pattern, names):
        colour = f"rgb{POSITIVE if item.value > 0 else NEGATIVE}"
        unsure = spread is not None and abs(item.value) < SURE * spread[item.place]
        look = f"box-shadow:inset 0 0 0 1px {colour};background:none" if unsure else ""
        look = look or f"background:{colour}"
        bar = tag("div", "", style=f"width:{item.share:.0%};{look}")
        value = signed(item.value)
        value += "" if spread is None else f" ± {spread[item.place]:.2g}"
        shown = item.name if spread is None else f"{item.name} {value}"
        text = tag("span", words(shown), title=f"{item.name}: {value}")
        lines.append(tag("div", text + tag("div", bar, "ca-track"), "ca-loading"))
    return "".join(lines)
