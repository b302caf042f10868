"""The data sets that are one click away: bundled ones, and MNIST and COIL-20."""

import json
from typing import Any

import streamlit as st

from appca.data.sources.builtin import SOURCES, Option, Source, load
from appca.data.sources.receive import receive
from appca.storage.errors import InputError
from appca.storage.wording import counted
from appca.ui.parts.text import tag, words
from appca.ui.parts.widgets import one_of
from appca.ui.session import services, state, watching
from appca.ui.session.callbacks import guarded

DROPPED = "source-files"


def cards(*, offline: bool) -> None:
    """Draw a card with its choices for each data set that needs no network, or that may need it."""
    for source in SOURCES.values():
        if source.offline == offline:
            _card(source)


def published() -> None:
    """Draw the data sets that are read from disk or downloaded, and a place to drop their files."""
    cards(offline=False)
    st.caption(
        "Files in the data folder are read from there; else they are downloaded once, checked, "
        "and kept. Without a network, get the files elsewhere and drop them here."
    )
    st.file_uploader(
        "Files of MNIST or COIL-20",
        type=["gz", "zip", "mat"],
        accept_multiple_files=True,
        key=DROPPED,
        label_visibility="collapsed",
        on_change=_dropped,
    )


@guarded
def _dropped() -> None:
    """Keep the files that were dropped, and say of each what became of it."""
    kept: list[str] = []
    refused: list[str] = []
    for file in st.session_state[DROPPED]:
        try:
            (kept if receive(file.name, file) else refused).append(f"“{file.name}”")
        except InputError as error:
            state.notify("error", str(error))
    if refused:
        are = "is no file" if len(refused) == 1 else "are no files"
        state.notify("error", f"{', '.join(refused)} {are} of MNIST or COIL-20 by name.")
    if kept:
        state.notify("success", f"{', '.join(kept)} kept in the data folder; now press Open.")


def _card(source: Source) -> None:
    with st.container(border=True, key=f"source-{source.key}"):
        left, right = st.columns([3, 1], vertical_alignment="center")
        left.html(_text(source))
        busy = watching.running(source.key) is not None
        right.button(
            "Loading…" if busy else "Open",
            key=f"source-{source.key}-open",
            disabled=busy,
            width="stretch",
            on_click=_open,
            args=[source],
        )
        for option in source.options:
            _widget(source, option)


def _text(source: Source) -> str:
    shape = f"{counted(source.rows, 'row')} × {source.features:,}"
    lines = [("ca-name", source.title), ("ca-quiet", source.description), ("ca-quiet", shape)]
    return "".join(tag("div", words(text), css) for css, text in lines)


def _widget(source: Source, option: Option) -> None:
    key, label, most = _key(source, option), option.help, option.most
    if option.choices is None:
        box: dict[str, Any] = {"value": option.default, "placeholder": "no"}
        st.number_input(label, option.least, most, key=key, persist_state="session", **box)
    elif option.default is None:
        st.pills(label, option.choices, selection_mode="multi", key=key, persist_state="session")
    else:
        one_of(label, {one: str(one) for one in option.choices}, default=option.default, key=key)


def _chosen(source: Source) -> dict[str, object]:
    """Return the options that differ from their defaults."""
    values = {one: st.session_state.get(_key(source, one), one.default) for one in source.options}
    return {
        one.name: value for one, value in values.items() if value not in (one.default, [], None)
    }


def _key(source: Source, option: Option) -> str:
    return f"source-{source.key}-{option.name}"


@guarded
def _open(source: Source) -> None:
    if source.offline:
        state.open_dataset(services.datasets().put(load(source.key)))
        return
    options = _chosen(source)
    key = f"{source.key} {json.dumps(options, sort_keys=True)}"
    spec = {"key": source.key, "options": options}
    watching.start("download", spec, watching.Watched("download", source.key), key=key)
