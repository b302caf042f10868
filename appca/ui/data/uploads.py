"""Own files: what was found in them, what shall be done about it, and then their use as data."""

import hashlib
import json
from typing import Any, NamedTuple

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from appca.data.dataset import Dataset
from appca.data.readers import kind_of
from appca.data.readers.process import read_apart, warm
from appca.data.readers.source import ReadLimits
from appca.runs.home import home
from appca.storage.errors import InputError
from appca.storage.wording import counted
from appca.ui.data import intake_report
from appca.ui.data.role_editor import Report
from appca.ui.data.upload_forms import Finding, Options, form_of
from appca.ui.parts import packing
from appca.ui.parts.text import markdown
from appca.ui.parts.widgets import one_of
from appca.ui.session import services, state
from appca.ui.session.callbacks import guarded
from appca.ui.session.state import KEYS

WAYS = {"files": "Files", "folder": "A folder of images"}
KEPT_SECONDS = 3600  # how long data that nobody took over stay at hand
SCRATCH = "uploads"  # below the home: where large files lie while they are looked at


class Upload(NamedTuple):
    """The files that lie in the uploader."""

    files: list[UploadedFile]
    key: str  # of these files and no others
    kind: str | None  # the reader of the first that has one


class Reading(NamedTuple):
    """Files that were read, or the sentence why not; either way what was found in them."""

    dataset: Dataset | None
    sentence: str
    report: Report


def uploads() -> None:
    """Draw the uploader and, once files are there, their report."""
    generation = st.session_state.setdefault(KEYS.upload, 0)  # another key drops the old files
    files = _uploader(generation)
    if not files:
        warm()
        st.caption("The files stay on this computer.")
        return
    try:
        upload = _upload(files)
        options = form_of(upload.kind, upload.key, lambda options: _finding(upload, options))
    except InputError as error:
        st.error(markdown(str(error)))
        return
    outcome = _read(upload, options)
    if outcome.report:
        intake_report.draw(outcome.report, outcome.dataset)
    if outcome.dataset is None:
        st.error(markdown(outcome.sentence))
    else:
        label, args = f"Use these {counted(outcome.dataset.n_rows, 'row')}", [outcome.dataset]
        st.button(label, type="primary", key="upload_use", on_click=_use, args=args)


def _uploader(generation: int) -> list[UploadedFile]:
    if one_of("What to upload", WAYS, key="upload_way", label_visibility="collapsed") == "folder":
        return packing.uploader(
            "A folder of images; its folders or the files' names tell the classes",
            folder=True,
            key=f"upload-folder-{generation}",
            help="Many files are packed into one by the browser, so that none is lost on the way.",
        )
    return packing.uploader(
        "A table (CSV, TSV, Parquet), arrays (NPY, NPZ, MAT, HDF5, IDX), images, a zip of them, or "
        "a brain recording (NIfTI)",
        key=f"upload-{generation}",
        help="Tables and IDX files may be packed by gzip. Several files make one data set when "
        "they are images, IDX images with their labels, or a recording with its mask.",
    )


def _upload(files: list[UploadedFile]) -> Upload:
    packing.check(files)
    key = hashlib.sha256(" ".join(file.file_id for file in files).encode()).hexdigest()[:16]
    kinds = (kind_of(file.name, file) for file in files)
    return Upload(files, key, next((kind for kind in kinds if kind is not None), None))


def _finding(upload: Upload, options: Options) -> Finding:
    """Return what the files hold when read so: the forms ask for it before all is chosen."""
    text = json.dumps(options, sort_keys=True)
    known: dict[str, Any] = st.session_state.setdefault(KEYS.findings, {})
    if known.get("key") != upload.key:
        known.clear()
        known["key"] = upload.key
    if text not in known:
        outcome = _outcome(upload.key, text, upload.files, options)
        known[text] = Finding(outcome.sentence, outcome.report)
    found: Finding = known[text]
    return found


def _read(upload: Upload, options: Options) -> Reading:
    """Read the files as was chosen; data sets from readings on the way are not kept."""
    chosen = json.dumps(options, sort_keys=True)
    for text in set(st.session_state.get(KEYS.findings, {})) - {chosen, "key"}:
        _outcome.clear(upload.key, text)
    return _outcome(upload.key, chosen, upload.files, options)


@st.cache_resource(show_spinner="Reading the file", max_entries=4, ttl=KEPT_SECONDS)
def _outcome(key: str, options_text: str, _files: list[UploadedFile], _options: Options) -> Reading:
    del key, options_text  # they say which
    limits = ReadLimits(scratch=home() / SCRATCH)
    try:
        dataset = read_apart([(file.name, file) for file in _files], limits=limits, **_options)
    except InputError as error:
        return Reading(None, str(error), error.report or {})
    return Reading(dataset, "", dataset.provenance.get("report", {}))


@guarded
def _use(dataset: Dataset) -> None:
    state.open_dataset(services.datasets().put(dataset))
    st.session_state[KEYS.upload] += 1
    st.session_state.pop(KEYS.findings, None)
    _outcome.clear()
    state.notify("success", f"“{dataset.name}” is open.")
