"""One selection of rows for each data set, the same on every page and after a reload.

The session keeps the rows; the server keeps the last selections by a short token that stands in
the address (`sel`), because a browser reload is a new session.
"""

import hashlib
from collections import OrderedDict

import numpy as np
import streamlit as st

from appca.data.dataset import Dataset
from appca.ui.state import KEYS

REMEMBERED = 256  # selections by token; 70,000 rows take 9 kB each


def get(dataset: Dataset) -> np.ndarray:
    """Return the selected rows of a data set as a mask, shape (N,)."""
    kept = st.session_state.setdefault(KEYS.selections, {})
    return kept.get(dataset.digest, np.zeros(dataset.n_rows, dtype=bool))


def put(dataset: Dataset, mask: np.ndarray) -> None:
    """Select these rows on every page."""
    st.session_state.setdefault(KEYS.selections, {})[dataset.digest] = mask.copy()
    if mask.any():
        known = _server_wide()
        known[_token(mask)] = np.packbits(mask).tobytes()
        while len(known) > REMEMBERED:
            known.popitem(last=False)


def clear(dataset: Dataset) -> None:
    """Select nothing."""
    st.session_state.setdefault(KEYS.selections, {}).pop(dataset.digest, None)


def token(dataset: Dataset) -> str | None:
    """Return what stands in the address for the selection, or None without one."""
    mask = get(dataset)
    return _token(mask) if mask.any() else None


def restore(dataset: Dataset, wanted: str | None) -> None:
    """Select what a token from the address stands for, if the server still knows it."""
    packed = _server_wide().get(wanted or "")
    if packed is not None and len(packed) == -(-dataset.n_rows // 8):
        bits = np.unpackbits(np.frombuffer(packed, np.uint8), count=dataset.n_rows)
        put(dataset, bits.astype(bool))


def _token(mask: np.ndarray) -> str:
    return hashlib.sha256(f"{len(mask)} ".encode() + np.packbits(mask).tobytes()).hexdigest()[:12]


@st.cache_resource(show_spinner=False)
def _server_wide() -> OrderedDict[str, bytes]:
    return OrderedDict()
