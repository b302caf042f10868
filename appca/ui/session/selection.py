"""One selection of rows for each data set, the same on every page and after a reload.

The session keeps the rows and the steps that led to them; the server keeps the last selections by a
short token that stands in the address (`sel`), because a browser reload is a new session. Those
that were given a name lie on disk.
"""

from collections import OrderedDict
from typing import NamedTuple

import numpy as np
import streamlit as st

from appca.analysis.groups.selections import SavedSelection, SelectionStore, combined, token_of
from appca.data.dataset import Dataset
from appca.runs.home import home
from appca.ui.session.state import KEYS

REMEMBERED = 256  # selections by token; 70,000 rows take 9 kB each
STEPS = 50  # that can be undone


class _Kept(NamedTuple):
    """What the session keeps of a data set."""

    mask: np.ndarray  # (N,) bool
    past: tuple[bytes, ...] = ()  # packed, oldest first


def get(dataset: Dataset) -> np.ndarray:
    """Return the selected rows of a data set as a mask, shape (N,)."""
    return _kept(dataset).mask


def put(dataset: Dataset, mask: np.ndarray) -> None:
    """Select these rows on every page; the selection until now can be brought back by `undo`."""
    old = _kept(dataset)
    if np.array_equal(old.mask, mask):
        return
    past = (*old.past, np.packbits(old.mask).tobytes())[-STEPS:]
    _keep(dataset, _Kept(mask.copy(), past))


def clear(dataset: Dataset) -> None:
    """Select nothing."""
    put(dataset, _nothing(dataset))


def invert(dataset: Dataset) -> None:
    """Select all other rows."""
    put(dataset, ~get(dataset))


def undo(dataset: Dataset) -> None:
    """Go back to the selection before the last change, if there was one."""
    past = _kept(dataset).past
    if past:
        _keep(dataset, _Kept(_unpacked(past[-1], dataset), past[:-1]))


def steps(dataset: Dataset) -> int:
    """Count the changes that can be undone."""
    return len(_kept(dataset).past)


def combine(dataset: Dataset, other: np.ndarray, how: str) -> None:
    """Bring other rows into the selection; see `appca.analysis.groups.selections.COMBINATIONS`."""
    put(dataset, combined(get(dataset), other, how))


def named(dataset: Dataset) -> list[SavedSelection]:
    """Return the selections of a data set that were given a name."""
    return _store().list(dataset.digest, dataset.n_rows)


def damaged(dataset: Dataset) -> tuple[str, ...]:
    """Return a sentence for each named selection that cannot be read."""
    return _store().damaged(dataset.digest, dataset.n_rows)


def save(dataset: Dataset, name: str) -> str:
    """Keep the selection on disk under a name, and return it without what is around it."""
    return _store().save(dataset.digest, name, get(dataset))


def rename(dataset: Dataset, old: str, new: str) -> None:
    """Give a named selection another name; one that is taken is refused."""
    _store().rename(dataset.digest, old, new, dataset.n_rows)


def forget(dataset: Dataset, name: str) -> None:
    """Delete a named selection."""
    _store().delete(dataset.digest, name)


def token(dataset: Dataset) -> str | None:
    """Return what stands in the address for the selection, or None without one."""
    mask = get(dataset)
    return token_of(mask) if mask.any() else None


def restore(dataset: Dataset, wanted: str | None) -> None:
    """Select what a token from the address stands for, if the server or the disk still knows it."""
    packed = _server_wide().get(wanted or "")
    if packed is not None and len(packed) == -(-dataset.n_rows // 8):
        _keep(dataset, _Kept(_unpacked(packed, dataset)))
    elif wanted:
        known = {token_of(saved.mask): saved.mask for saved in named(dataset)}
        if wanted in known:
            _keep(dataset, _Kept(known[wanted]))


def _kept(dataset: Dataset) -> _Kept:
    kept = st.session_state.setdefault(KEYS.selections, {})
    return kept.get(dataset.digest) or _Kept(_nothing(dataset))


def _keep(dataset: Dataset, kept: _Kept) -> None:
    st.session_state.setdefault(KEYS.selections, {})[dataset.digest] = kept
    if kept.mask.any():
        known = _server_wide()
        known[token_of(kept.mask)] = np.packbits(kept.mask).tobytes()
        while len(known) > REMEMBERED:
            known.popitem(last=False)


def _nothing(dataset: Dataset) -> np.ndarray:
    return np.zeros(dataset.n_rows, dtype=bool)


def _unpacked(packed: bytes, dataset: Dataset) -> np.ndarray:
    return np.unpackbits(np.frombuffer(packed, np.uint8), count=dataset.n_rows).astype(bool)


def _store() -> SelectionStore:
    return SelectionStore(home())


@st.cache_resource(show_spinner=False)
def _server_wide() -> OrderedDict[str, bytes]:
    return OrderedDict()
