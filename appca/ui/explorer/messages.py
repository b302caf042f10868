"""What comes back from the browser, checked before it is believed."""

import base64
import binascii
import logging
import re
from typing import Any

import numpy as np
import streamlit as st

MOUNT = re.compile(r"[A-Za-z0-9-]{1,40}")
log = logging.getLogger(__name__)


def read_stamp(state: Any) -> tuple[str, int] | None:
    """Read which selection this is, without its rows; None when there is none.

    A stamp is which life of the component on a page made it, and which one of that life it is.

    Raises
    ------
    ValueError
        When the stamp is not a short name and a count.
    """
    raw = state.get("selection") if hasattr(state, "get") else None
    if raw is None:
        return None
    mount, number = (raw.get("mount"), raw.get("number")) if hasattr(raw, "get") else (None, None)
    if isinstance(mount, str) and MOUNT.fullmatch(mount) and type(number) is int and number >= 1:
        return mount, number
    message = "The browser sent a selection without a valid stamp; it is ignored."
    raise ValueError(message)


def read_selection(state: Any, n_rows: int) -> np.ndarray | None:
    """Read the selected rows (n_rows,), bool, out of a component's state; None if cleared.

    Its key "selection" holds {"mount", "number", "bits"}.

    Raises
    ------
    ValueError
        When the bits are not base64 of exactly one bit a row.
    """
    bits = None if read_stamp(state) is None else state["selection"].get("bits")
    if bits is None:
        return None
    try:
        raw = base64.b64decode(bits, validate=True)
    except (TypeError, ValueError, binascii.Error) as error:
        message = "The browser sent a selection that is not base64; it is ignored."
        raise ValueError(message) from error
    if len(raw) != -(-n_rows // 8):
        message = (
            f"The browser sent a selection of {len(raw):,} bytes for {n_rows:,} rows, which need "
            f"{-(-n_rows // 8):,}; it is ignored."
        )
        raise ValueError(message)
    flags = np.unpackbits(np.frombuffer(raw, np.uint8), bitorder="little").astype(bool)
    if flags[n_rows:].any():
        message = f"The browser selected rows beyond the last of {n_rows:,}; it is ignored."
        raise ValueError(message)
    return flags[:n_rows]


def latest_selection(
    key: str, state: object, n_rows: int, given: np.ndarray | None
) -> tuple[np.ndarray | None, tuple[str, int] | None, bool]:
    """Choose between the caller's selection and a newer one of the browser.

    Streamlit keeps the component's state over reruns, so a stamp tells what is new in it.
    """
    memory = f"{key}-seen"
    seen = st.session_state.get(memory)
    try:
        stamp = read_stamp(state)
        if stamp is None or stamp == seen:
            return given, seen, False
        st.session_state[memory] = stamp
        return read_selection(state, n_rows), stamp, True
    except ValueError as error:
        log.warning("%s", error)
        return given, seen, False
