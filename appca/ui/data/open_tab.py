"""The tab Open: a place for files, recent work, and the data sets that are one click away."""

import streamlit as st

from appca.data.readers.process import warm
from appca.runs.session import SUFFIX
from appca.ui.arrivals import opening
from appca.ui.data import recent, sources
from appca.ui.session.state import KEYS

KINDS = (
    "CSV, TSV, Parquet · NPY, NPZ, MAT, HDF5, IDX · H5AD, Zarr, MTX · images, ZIP · NIfTI · session"
)
LATEST = 4  # works shown here; the tab Recent has all


def page() -> None:
    """Draw the tab."""
    _files()
    latest = recent.works()[:LATEST]
    if latest:
        st.subheader("Recent work", anchor=False)
        recent.cards(latest)
    st.subheader("Built in", anchor=False)
    sources.cards()


def _files() -> None:
    generation = st.session_state.setdefault(KEYS.upload, 0)  # another key drops the old files
    folder = st.session_state.get("upload_folder", False)
    files = st.file_uploader(
        "Drop a file, a folder or images anywhere",
        accept_multiple_files="directory" if folder else True,
        key=f"upload-{'folder-' * folder}{generation}",
        help="Tables and IDX files may be packed by gzip. Several files make one data set when "
        "they are images, IDX images with their labels, or a recording with its mask.",
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"{KINDS} ({SUFFIX}). Files stay on this computer.")
        st.toggle("Choose a folder", key="upload_folder")
    if not files:  # as in a browser, which brings them as it brings those dropped anywhere
        warm()
        return
    st.session_state[KEYS.upload] += 1
    opening.arrive(opening.uploaded(files))
