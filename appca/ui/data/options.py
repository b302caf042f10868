"""Options of files that no chip can hold: labels of annotated data, and names of images."""

import streamlit as st

from appca.ui.arrivals.chips import AUTO, changed
from appca.ui.arrivals.opening import Opened, Reading
from appca.ui.session.callbacks import guarded


def more_options(opened: Opened, reading: Reading) -> None:
    """Draw them; a change reads the files otherwise."""
    if reading.report.get("obs"):
        _labels(opened, reading.report["obs"])
    if opened.kind == "images":
        _pattern(opened)


def _labels(opened: Opened, columns: list[str]) -> None:
    def change() -> None:
        labels = st.session_state[key]
        opened.draft = changed(opened.draft, "labels", AUTO if labels == columns else labels)

    now = opened.draft.get("labels", columns)
    key = f"labels-{opened.key}-{now}"  # another one shows what an undo brings back
    st.multiselect(
        "Labels, from obs",
        columns,
        default=now,
        key=key,
        on_change=guarded(change),
        help="The picture begins with the colours of the first. To move a label to the end, "
        "remove it and add it again.",
    )


def _pattern(opened: Opened) -> None:
    def change() -> None:
        opened.draft = changed(opened.draft, "pattern", st.session_state[key].strip() or AUTO)

    now = opened.draft.get("pattern", "")
    key = f"pattern-{opened.key}-{now}"
    st.text_input(
        "Pattern of the names",
        now,
        key=key,
        placeholder="{class}__{n}.png",
        disabled=opened.draft.get("classes") in ("folder", "none"),
        on_change=guarded(change),
        help="Each name in braces becomes a label; {n} stands for digits, * for anything. "
        "With a / the folders count, too: {class}/*",
    )
