"""What comes back from the browser, checked before it is believed."""

import base64
import binascii
import string
from typing import Any, NamedTuple

import numpy as np

LONGEST_MOUNT = 40
MOST_SHEETS_ASKED = 16


class BrowserSelection(NamedTuple):
    """A selection made in the browser."""

    mount: str  # which life of the component on a page
    number: int  # counts the selections of that life
    rows: np.ndarray | None  # (N,) bool; None when the selection was cleared


def read_stamp(state: Any) -> tuple[str, int] | None:
    """Read which selection this is, without its rows; None when there is none.

    Raises
    ------
    ValueError
        When the stamp is not a short name and a count.
    """
    raw = state.get("selection") if hasattr(state, "get") else None
    if raw is None:
        return None
    mount, number = (raw.get("mount"), raw.get("number")) if hasattr(raw, "get") else (None, None)
    if isinstance(mount, str) and isinstance(number, int) and not isinstance(number, bool):
        known = set(mount) <= set(string.ascii_letters + string.digits + "-")
        if known and 0 < len(mount) <= LONGEST_MOUNT and number >= 1:
            return mount, number
    message = "The browser sent a selection without a valid stamp; it is ignored."
    raise ValueError(message)


def read_selection(state: Any, n_rows: int) -> BrowserSelection | None:
    """Read the selected rows out of the component's state.

    Parameters
    ----------
    state : mapping
        The component's state; key "selection" holds {"mount", "number", "bits"}.
    n_rows : int

    Raises
    ------
    ValueError
        When the bits are not base64 of exactly one bit a row.
    """
    stamp = read_stamp(state)
    if stamp is None:
        return None
    bits = state["selection"].get("bits")
    if bits is None:
        return BrowserSelection(*stamp, None)
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
    return BrowserSelection(*stamp, flags[:n_rows])


def read_need(state: Any, n_sheets: int) -> set[int]:
    """Read which sprite sheets the browser asks for; anything else is dropped.

    Parameters
    ----------
    state : mapping
        The component's state; key "need" holds a list of sheet numbers.
    n_sheets : int
    """
    raw = state.get("need") if hasattr(state, "get") else None
    if not isinstance(raw, list | tuple):
        return set()
    numbers = {n for n in raw if isinstance(n, int) and not isinstance(n, bool)}
    return set(sorted(n for n in numbers if 0 <= n < n_sheets)[:MOST_SHEETS_ASKED])
