"""One selection of rows for each data set, the same on every page and after a reload.

The session keeps the rows; the server keeps the last selections by a
short token that stands in the address (`sel`), because a browser reload is a new session. Those
that were given a name lie on disk.
"""

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress

import numpy as np
import streamlit as st

from appca.analysis.groups.rule import RowRule
from appca.analysis.groups.selections import SavedSelection, SelectionStore, combined, token_of
from appca.data.dataset import Dataset
from appca.runs.home import home
from appca.ui.session.state import KEYS, notify

REMEMBERED = 256  # selections by token; 70,000 rows take 9 kB each


def get(dataset: Dataset) -> np.ndarray:
    """Return the selected rows of a data set as a mask, shape (N,)."""
    mask: np.ndarray | None = st.session_state.setdefault(KEYS.selections, {}).get(dataset.digest)
    return np.zeros(dataset.n_rows, dtype=bool) if mask is None else mask


def put(dataset: Dataset, rows: np.ndarray) -> None:
    """Select these rows on every page; they are a mask (N,), or row numbers."""
    mask = rows if rows.dtype == bool else np.isin(np.arange(dataset.n_rows), rows)
    if not np.array_equal(get(dataset), mask):
        _keep(dataset, mask.copy())


def invert(dataset: Dataset) -> None:
    """Select all other rows."""
    put(dataset, ~get(dataset))


def packed(dataset: Dataset) -> bytes:
    """Return the selection as bits, for `show`."""
    return np.packbits(get(dataset)).tobytes()


def show(dataset: Dataset, bits: bytes) -> None:
    """Select what `packed` returned."""
    put(dataset, _unpacked(bits, dataset))


def combine(dataset: Dataset, other: np.ndarray, how: str) -> None:
    """Bring other rows into the selection; see `appca.analysis.groups.selections.COMBINATIONS`."""
    put(dataset, combined(get(dataset), other, how))


def store() -> SelectionStore:
    """Return the selections on disk, of all data sets."""
    return SelectionStore(home())


def named(dataset: Dataset) -> list[SavedSelection]:
    """Return the selections of a data set that were given a name."""
    return store().list(dataset.digest, dataset.n_rows)


def save(dataset: Dataset, name: str) -> str:
    """Keep the selection on disk under a name, and return it without what is around it."""
    return store().save(dataset.digest, name, get(dataset))


def save_rule(dataset: Dataset, mask: np.ndarray, rule: RowRule, names: Sequence[str]) -> None:
    """Keep a rule and the rows (N,) bool that meet it, under its conditions as a name."""
    name = store().save(dataset.digest, rule.conditions(names), mask, rule.to_json())
    notify("info", f"“{name}” is kept among the named selections.")


def rules_elsewhere(dataset: Dataset) -> list[RowRule]:
    """Return the rules that were kept with other data sets."""
    rules = []
    for text in store().rules(dataset.digest):
        with suppress(ValueError):  # files are changed by others, too
            rules.append(RowRule.from_json(text))
    return rules


def token(dataset: Dataset) -> str | None:
    """Return what stands in the address for the selection, or None without one."""
    mask = get(dataset)
    return token_of(mask) if mask.any() else None


def restore(dataset: Dataset, wanted: str | None) -> None:
    """Select what a token from the address stands for, if the server or the disk still knows it."""
    bits = _server_wide().get(wanted or "")
    if bits is not None and len(bits) == -(-dataset.n_rows // 8):
        _keep(dataset, _unpacked(bits, dataset))
    elif wanted:
        masks = {token_of(saved.mask): saved.mask for saved in named(dataset)}
        if wanted in masks:
            _keep(dataset, masks[wanted])


def _keep(dataset: Dataset, mask: np.ndarray) -> None:
    st.session_state.setdefault(KEYS.selections, {})[dataset.digest] = mask
    if mask.any():
        remembered = _server_wide()
        remembered[token_of(mask)] = np.packbits(mask).tobytes()
        while len(remembered) > REMEMBERED:
            remembered.popitem(last=False)


def _unpacked(packed: bytes, dataset: Dataset) -> np.ndarray:
    return np.unpackbits(np.frombuffer(packed, np.uint8), count=dataset.n_rows).astype(bool)


@st.cache_resource(show_spinner=False)
def _server_wide() -> OrderedDict[str, bytes]:
    return OrderedDict()
