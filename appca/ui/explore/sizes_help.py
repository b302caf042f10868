"""What K and L are, in plain words and a small drawing that follows the sliders."""

from math import comb

import streamlit as st

from appca.storage.wording import counted
from appca.ui.parts.text import tag

MOST_BLOCKS = 12  # drawn; further ones are dots
EXAMPLES = 3  # rows in the drawing
EXACT = 10**6  # larger numbers are given roughly
SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def explain(k: int, active: int | None, n_rows: int) -> None:
    """Draw the words behind a button; `active` is L, None for a model where rows choose it."""
    with st.popover("K and L?", type="tertiary", key="sizes_help"):
        st.markdown(
            "**K** is how many building blocks the whole data set shares. A building block, or "
            "component, is a pattern that can be added to the average or taken from it."
        )
        if active is None:
            st.markdown("In this model each row takes as many of them as fit it.")
        else:
            st.markdown(
                "**L** is how many of them one row may use: each row takes the L that fit it best, "
                "each in its own amount. Rows with the same choice share a subspace, and a panel."
            )
            st.html(drawing(k, active))
            st.markdown(in_numbers(k, active, n_rows))


def in_numbers(k: int, active: int, n_rows: int) -> str:
    """Return how many subspaces there can be, and how many rows one has on average."""
    ways = comb(k, active)
    start = f"K = {k} and L = {active} allow **{rough(ways)} "
    if ways == 1:
        return f"{start}subspace**: all {n_rows:,} rows use every block, as in PCA."
    if ways > n_rows:
        return (
            f"{start}subspaces**, more than the {counted(n_rows, 'row')}: most stay empty, so look "
            "at pairs of components instead, or take a smaller L."
        )
    each = counted(round(n_rows / ways), "row")
    return f"{start}subspaces**, with about {each} each if all were used alike."


def rough(number: int) -> str:
    """Return a count as people read it: "6", "125,970", "about 10²⁹"."""
    if number < EXACT:
        return f"{number:,}"
    power = len(str(number)) - 1
    first = round(number / 10**power)
    if first == 10:
        first, power = 1, power + 1
    power_of_ten = f"10{str(power).translate(SUPERSCRIPTS)}"
    return f"about {power_of_ten}" if first == 1 else f"about {first} × {power_of_ten}"


def drawing(k: int, active: int) -> str:
    """Return K blocks, and below them rows that each use L of them, as HTML."""
    shown = min(k, MOST_BLOCKS)
    rows = range(min(EXAMPLES, comb(k, active)))
    lines = [_line("shared", range(k), shown)]
    lines += [_line(f"row {row + 1}", choice(k, active, row), shown) for row in rows]
    words = f"{counted(k, 'block')}; each of the example rows below uses {active}"
    attributes = {"role": "img", "aria-label": words}
    return tag("div", "".join(lines), "ca-blocks", **attributes)


def choice(k: int, active: int, number: int) -> set[int]:
    """Return the blocks of an example row: others for each, spread over all that are drawn."""
    shown = min(k, MOST_BLOCKS)
    used = min(active, shown)
    return {(number + round(i * shown / used)) % shown for i in range(used)}


def _line(name: str, used: range | set[int], shown: int) -> str:
    blocks = [
        tag("i", "", f"ca-block-{block % 6}" if block in used else "") for block in range(shown)
    ]
    more = tag("span", "…") if isinstance(used, range) and len(used) > shown else ""
    return tag("b", name) + tag("div", "".join(blocks) + more)
