"""The data sets that are one click away, as cards with a picture."""

import json
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from appca.data.sources.builtin import SOURCES, Option, Source, are_here, load
from appca.data.sources.receive import receive
from appca.plots.components.components import montage
from appca.plots.data.thumbnail import in_the_dark
from appca.ui.parts.text import apart, tag, words
from appca.ui.parts.widgets import one_of
from appca.ui.rows.pictures import is_dark
from appca.ui.session import services, state, watching
from appca.ui.session.callbacks import guarded
from appca.words.errors import InputError

EXPLORE = "pages/explore/explore.py"
PICTURES = Path(__file__).with_name("pictures")  # of the data sets that ship with the project
PHOTOGRAPHS = {"turntable", "coil20"}  # that stay as they are in the dark
ACROSS, DOWN = 9, 5  # images on a card
SAMPLE = 1440  # first rows of files, of which some are drawn
DROPPED = "source-files"


def cards() -> None:
    """Draw a card for each data set, MNIST and COIL-20 first."""
    with st.container(key="cards-built-in"):
        for source in sorted(SOURCES.values(), key=lambda source: source.offline):
            with st.container(border=True, key=f"source-{source.key}"):
                _card(source)


def _card(source: Source) -> None:
    picture = _shipped(source.key) if source.offline else _drawn(source.key)
    if picture is not None:
        turned = is_dark() and source.key not in PHOTOGRAPHS
        picture = in_the_dark(picture) if turned else picture
        st.image(picture, width="stretch", alt=f"Some of {source.title}")
    else:
        st.html(tag("div", words(source.tile), "ca-tile"))
    st.html(
        tag("div", words(source.title), "ca-name")
        + tag("div", words(f"{source.description}. {source.rows:,} rows"), "ca-quiet")
    )
    busy = watching.running(source.key) is not None
    label = apart("Loading…" if busy else "Open", source.title)
    pressed = st.button(label, key=f"source-{source.key}-open", disabled=busy)
    if source.options:
        label = apart("Options", f"of {source.title}")
        with st.popover(label, type="tertiary", key=f"more-{source.key}"):
            for option in source.options:
                _widget(source, option)
            _own_files(source.key)
    if pressed:
        _open(source)
        st.switch_page(EXPLORE)


@cache
def _shipped(key: str) -> np.ndarray:
    from PIL import Image

    with Image.open(PICTURES / f"{key}.png") as file:
        return np.asarray(file.convert("RGB"))


def _drawn(key: str) -> np.ndarray | None:
    """Draw images of a published data set whose files are here."""
    return _of_files(key) if are_here(key) else None


def ahead() -> Iterator[Callable[[], object]]:
    """Draw ahead what the cards of published data sets show."""
    return (partial(_drawn, source.key) for source in SOURCES.values() if not source.offline)


@st.cache_resource(show_spinner=False)
def _of_files(key: str) -> np.ndarray | None:
    try:
        dataset = load(key, n=SAMPLE)
    except InputError:  # another file by that name; said when it is opened
        return None
    rows = np.random.default_rng(0).permutation(dataset.n_rows)[: ACROSS * DOWN]
    sheet = montage(dataset.images(np.sort(rows)), ACROSS, gap=0)
    return sheet if key in PHOTOGRAPHS else 255 - sheet


def _own_files(key: str) -> None:
    """Draw a place for the published files, for machines without a network."""
    st.file_uploader(
        "Files of MNIST or COIL-20 from elsewhere",
        type=["gz", "zip", "mat"],
        accept_multiple_files=True,
        key=f"{DROPPED}-{key}",
        on_change=_dropped,
        args=[f"{DROPPED}-{key}"],
        help="Files in the data folder are read from there; else they are downloaded once.",
    )


@guarded
def _dropped(key: str) -> None:
    """Keep the files that were given, and say of each what became of it."""
    kept: list[str] = []
    refused: list[str] = []
    for file in st.session_state[key]:
        try:
            (kept if receive(file.name, file) else refused).append(f"“{file.name}”")
        except InputError as error:
            state.notify("error", str(error))
    if refused:
        are = "is no file" if len(refused) == 1 else "are no files"
        state.notify("error", f"{', '.join(refused)} {are} of MNIST or COIL-20 by name.")
    if kept:
        state.notify("success", f"{', '.join(kept)} kept in the data folder; now press Open.")


def _widget(source: Source, option: Option) -> None:
    key, label, most = _key(source, option), option.help, option.most
    if option.choices is None:
        box: dict[str, Any] = {"value": option.default, "placeholder": "no"}
        st.number_input(label, option.least, most, key=key, persist_state="session", **box)
    elif option.default is None:
        st.pills(label, option.choices, selection_mode="multi", key=key, persist_state="session")
    else:
        names = {choice: str(choice) for choice in option.choices}
        one_of(label, names, default=option.default, key=key)


def _chosen(source: Source) -> dict[str, object]:
    """Return the options that differ from their defaults."""
    values = {of: st.session_state.get(_key(source, of), of.default) for of in source.options}
    return {of.name: value for of, value in values.items() if value not in (of.default, [], None)}


def _key(source: Source, option: Option) -> str:
    return f"source-{source.key}-{option.name}"


def _open(source: Source) -> None:
    if source.offline:
        state.open_dataset(services.datasets().put(load(source.key)))
        return
    options = _chosen(source)
    key = f"{source.key} {json.dumps(options, sort_keys=True)}"
    spec = {"key": source.key, "options": options}
    watching.start("download", spec, watching.Watched("download", source.key), key=key)
