"""From files to a picture: read as a person would, opened at once, and read again where asked."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from appca.data.dataset import Dataset
from appca.data.readers import kind_of
from appca.data.readers.facts import in_one_line
from appca.data.readers.process import read_apart
from appca.data.readers.source import ReadLimits
from appca.runs.session import SUFFIX
from appca.ui.arrivals import dropping, image_shape, session_file
from appca.ui.arrivals.chips import Options, Report, changed
from appca.ui.arrivals.drops import DroppedFiles
from appca.ui.parts.text import markdown
from appca.ui.session import services, state
from appca.ui.session.callbacks import guarded
from appca.ui.session.state import KEYS
from appca.words.errors import InputError
from appca.words.wording import counted, shortened

EXPLORE, DATA = "pages/explore/explore.py", "pages/data/data.py"
THIS = {"tab": "this"}  # of the address: the tab with what was assumed
# Formats whose readers may find gaps
WITH_GAPS = ("csv", "parquet", "npy", "npz", "mat", "hdf5", "idx", "h5ad", "mtx", "zarr")
HEAD_ROWS = 9  # of a table, as they are written
KEPT_SECONDS = 3600  # how long data that nobody took over stay at hand


class Reading(NamedTuple):
    """Files that were read, or the sentence why not; either way what was found in them."""

    dataset: Dataset | None
    sentence: str
    report: Report
    head: Mapping[str, list[str | None]] = MappingProxyType({})  # column to its first cells


@dataclass
class Opened:
    """Files that were opened, at hand to be read otherwise."""

    arrival: DroppedFiles
    key: str  # of these files and no others
    kind: str | None  # the reader of the first that has one
    options: Options = field(default_factory=dict)  # with which they were opened
    draft: Options = field(default_factory=dict)  # as they are to be read next
    digest: str | None = None  # of the data set they became
    choices: dict[str, Options] = field(default_factory=dict)  # by digest
    said: str = ""  # of what was assumed, until it is read

    def read(self, options: Options) -> Reading:
        """Read the files with options; equal ones are read once."""
        return _read(self.key, json.dumps(options, sort_keys=True), self.arrival, options)

    def became(self, digest: str) -> None:
        """Keep the options for a data set, which an undo may bring back."""
        self.digest, self.draft = digest, self.options
        self.arrival.became(digest)
        self.choices[digest] = self.options

    def go_back(self, digest: str) -> None:
        """Bring back the options with which the files became a data set."""
        self.digest, self.options = digest, self.choices[digest]
        self.draft = self.options


def current() -> Opened | None:
    """Return the files of this window that can be read again."""
    opened: Opened | None = st.session_state.get(KEYS.arrival)
    return opened


def of(digest: str) -> Opened | None:
    """Return the files a data set was read from, while they are at hand, or could not be."""
    opened = current()
    if opened is None or opened.digest in (digest, None):
        return opened
    if digest not in opened.choices:
        return None
    opened.go_back(digest)  # by an undo
    return opened


def source_of(dataset: Dataset) -> tuple[str, Path] | None:
    """Return the one file that a data set was read from, as long as it is unchanged at hand."""
    opened = current()
    if opened is not None and dataset.digest in opened.choices and opened.arrival.is_there:
        files = opened.arrival.files
        return files[0] if len(files) == 1 else None
    path = services.datasets().origin(dataset.digest)
    return None if path is None else (path.name, path)


def uploaded(files: Sequence[UploadedFile]) -> DroppedFiles:
    """Return files of an uploader, moved to a folder of their own."""
    arrival = DroppedFiles(dropping.scratch())
    for file in files:
        arrival.place(file.name).write_bytes(file.getbuffer())
    return arrival


def arrive(arrival: DroppedFiles) -> None:
    """Open files and go to their picture; to the page Data where nobody can guess how to."""
    _take_events(arrival)
    before: Opened | None = st.session_state.pop(KEYS.arrival, None)
    if before is not None:
        before.arrival.remove()
    names = [name for name, _ in arrival.files]
    if len(names) == 1 and names[0].lower().endswith(SUFFIX):
        session_file.open_file(*arrival.files[0])
        arrival.remove()
        st.switch_page(EXPLORE)
    kinds = [kind for named in arrival.files if (kind := kind_of(*named)) is not None]
    kind = "nifti" if "nifti" in kinds else next(iter(kinds), None)  # with a table of events
    key = hashlib.sha256(" ".join(map(str, arrival.files)).encode()).hexdigest()[:16]
    opened = st.session_state[KEYS.arrival] = Opened(arrival, key, kind)
    guess = guessed(opened)
    opened.draft = opened.options
    if guess.dataset is None:
        st.switch_page(DATA, query_params=THIS)
    use(opened, guess.dataset)


def _take_events(arrival: DroppedFiles) -> None:
    """Give a table of events to the recording on screen, if both are there, and show it."""
    dataset = state.current_dataset()
    name, file = arrival.files[0]
    is_one = len(arrival.files) == 1 and name.lower().endswith(("events.tsv", "events.csv"))
    if not (is_one and dataset.is_recording):
        return
    from appca.data.brain.nifti import with_events

    try:
        events = with_events(dataset, name, file).provenance["events"]
    except InputError as error:
        state.notify("error", str(error))
    else:
        services.note(dataset.digest, events=events)
        n_events = counted(len(events), "event")
        state.notify("success", f"{n_events} added to “{shortened(dataset.name)}”.")
    arrival.remove()
    st.switch_page(EXPLORE)


def guessed(opened: Opened) -> Reading:
    """Read files as a person would: gaps are the model's, columns nobody can use are left out."""
    opened.options = {"missing": "model"} if opened.kind in WITH_GAPS else {}
    plain = opened.read(opened.options)
    unclear = plain.report.get("unclear")
    if plain.dataset is not None or not unclear:
        return plain
    without = opened.options | {"roles": dict.fromkeys(unclear, "ignored")}
    reading = opened.read(without)
    if reading.dataset is None:
        return plain  # its sentence says what is wrong
    opened.options = without
    return reading


def use(opened: Opened, dataset: Dataset) -> None:
    """Look at a data set in Explore, in place of what the same files were before."""
    digest = services.put_again(dataset)
    opened.became(digest)
    state.open_dataset(digest)
    opened.said = in_one_line(dataset.provenance.get("report", {}), dataset)
    st.switch_page(EXPLORE)


def assumed() -> None:
    """Draw what was assumed of the files on screen, with the way to change it, until it is read."""
    opened = current()
    if opened is None or not opened.said or opened.digest != state.config().dataset:
        return
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="assumed", width="stretch"
    ):
        st.markdown(markdown(opened.said), width="content")
        for name in list(opened.read(opened.options).report.get("likely_labels", {}))[:1]:
            if st.button(f"Use {markdown(f'“{shortened(name)}”')} as label", key="assumed_label"):
                roles = opened.options.get("roles", {}) | {name: "label"}
                _read_as(opened, opened.options | {"roles": roles})
        rows = opened.kind == "mat" and not opened.options.get("transpose")
        if rows and st.button("Columns are samples", key="assumed_columns"):
            _read_as(opened, changed(opened.options, "transpose", True))
        shape = image_shape.likely(opened.kind, state.current_dataset())
        if shape is not None:
            label = f"{shape.height} × {shape.width}: show as images"
            if st.button(label, key="assumed_images"):
                _read_as(opened, image_shape.with_shape(opened.kind, opened.options, shape))
        st.page_link(DATA, label="Change", query_params=THIS, width="content")
        st.button(
            "Close",
            icon=":material/close:",
            type="tertiary",
            key="assumed_close",
            on_click=_read_it,
        )


def _read_as(opened: Opened, options: Options) -> None:
    """Read the files with other options, and look at what they become."""
    reading = opened.read(options)
    if reading.dataset is None:
        state.notify("error", reading.sentence)
        return
    opened.options = options
    use(opened, reading.dataset)


@guarded
def _read_it() -> None:
    opened = current()
    if opened is not None:
        opened.said = ""


@st.cache_resource(show_spinner="Reading the file", max_entries=4, ttl=KEPT_SECONDS)
def _read(key: str, options_text: str, _arrival: DroppedFiles, _options: Options) -> Reading:
    del key, options_text  # they say which
    limits = ReadLimits(scratch=dropping.scratch(), head_rows=HEAD_ROWS)
    try:
        dataset = read_apart(_arrival.files, limits=limits, **_options)
    except InputError as error:
        report = error.report or {}
        return Reading(None, str(error), report, report.pop("head", {}))
    report = dataset.provenance.get("report", {})
    return Reading(dataset, "", report, report.pop("head", {}))
