"""Own files: what was found in one, what shall be done about it, and then its use as a data set."""

import json
from typing import NamedTuple

import numpy as np
import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from appca.data.dataset import Dataset
from appca.data.errors import InputError
from appca.data.readers import SUFFIXES, read
from appca.data.readers.roles import ROLES
from appca.data.wording import counted
from appca.ui import services, state
from appca.ui.intake_report import facts
from appca.ui.state import KEYS
from appca.ui.text import markdown

KINDS = sorted({suffix.rsplit(".", 1)[-1] for suffix in SUFFIXES})
MISSING = {
    "refuse": "Refuse the file",
    "mean": "Put in the column's mean",
    "drop": "Leave out their rows",
}


class Outcome(NamedTuple):
    """A file that was read, or the sentence why not; either way what was found in it."""

    dataset: Dataset | None
    sentence: str
    report: dict


def uploads() -> None:
    """Draw the uploader and, once a file is there, its report."""
    generation = st.session_state.setdefault(KEYS.upload, 0)  # another key drops the old file
    file = st.file_uploader(
        "A table (CSV, TSV), a NumPy array (NPY), a zip of images or a brain recording (NIfTI)",
        type=KINDS,
        key=f"upload-{generation}",
        help="Tables may have a header, an id column and label columns. Images in a zip take "
        "their class from their folder or their name.",
    )
    if file is None:
        st.caption("The file stays on this computer.")
        return
    options = _options(file)
    outcome = _read(file, options)
    if outcome.report:
        st.html(facts(outcome.report))
    if outcome.dataset is None:
        st.error(markdown(outcome.sentence))
    else:
        st.button(
            f"Use these {counted(outcome.dataset.n_rows, 'row')}",
            type="primary",
            key="upload_use",
            on_click=_use,
            args=[outcome.dataset],
        )


def _read(file: UploadedFile, options: dict) -> Outcome:
    return _outcome(file.file_id, json.dumps(options, sort_keys=True), file, options)


@st.cache_resource(show_spinner="Reading the file", max_entries=4)
def _outcome(file_id: str, options_text: str, _file: UploadedFile, _options: dict) -> Outcome:
    del file_id, options_text  # the key
    try:
        dataset = read(_file.name, _file, **_options)
    except InputError as error:
        return Outcome(None, str(error), error.report or {})
    return Outcome(dataset, "", dataset.provenance.get("report", {}))


def _options(file: UploadedFile) -> dict:
    """Draw the choices that this file calls for."""
    if file.name.lower().endswith(".zip"):
        return _zip_options()
    options: dict = {}
    if not file.name.lower().endswith((".npy", ".nii", ".nii.gz")):
        roles = _roles(file, _read(file, {}))
        options = {"roles": roles} if roles else {}
    if _read(file, options).report.get("missing"):
        chosen = st.selectbox(
            "Missing cells", list(MISSING), format_func=MISSING.get, key=f"missing-{file.file_id}"
        )
        options |= {"missing": chosen} if chosen != "refuse" else {}
    return options


def _zip_options() -> dict:
    options: dict = {}
    left, right = st.columns(2)
    with left:
        side = st.number_input(
            "Bring images to, pixels", 2, 1024, None, key="zip_side", placeholder="as they are"
        )
        if side:
            options["size"] = (int(side), int(side))
    with right:
        st.space("small")
        if st.toggle("Keep colour", key="zip_colour"):
            options["colour"] = "keep"
        if st.toggle("Skip files that are no images", key="zip_broken"):
            options["broken"] = "skip"
    return options


def _roles(file: UploadedFile, guess: Outcome) -> dict[str, str]:
    """Draw the columns' roles; return those that differ from the guess."""
    roles = guess.report.get("roles")
    if not roles:
        return _named_roles(guess)
    import pandas as pd

    table = pd.DataFrame({"column": list(roles), "used as": list(roles.values())})
    with st.expander("What each column is for"):
        edited = st.data_editor(
            table,
            key=f"roles-{file.file_id}",
            hide_index=True,
            disabled=["column"],
            column_config={
                "used as": st.column_config.SelectboxColumn(options=list(ROLES), required=True)
            },
        )
    changed = np.flatnonzero(edited["used as"].to_numpy() != table["used as"].to_numpy())
    return {table["column"][j]: edited["used as"][j] for j in changed}


def _named_roles(guess: Outcome) -> dict[str, str]:
    """Let columns be left out by name when one of them kept the file from being read."""
    if "ignored" not in guess.sentence:
        return {}
    text = st.text_input("Columns to leave out, by name", key="ignored", placeholder="name, name")
    return {name.strip(): "ignored" for name in text.split(",") if name.strip()}


def _use(dataset: Dataset) -> None:
    try:
        state.open_dataset(services.datasets().put(dataset))
    except InputError as error:
        state.notify("error", str(error))
        return
    st.session_state[KEYS.upload] += 1
    _outcome.clear()
    state.notify("success", f"“{dataset.name}” is open.")
