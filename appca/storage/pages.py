"""Memory-mapped arrays without the memory: pages that were read are given back."""

import mmap
from typing import Any

import numpy as np


def give_back(part: np.ndarray) -> None:
    """Tell the system that the pages of some rows are not needed; they stay in the file.

    Nothing is done about arrays in memory, nor about copies on write, whose changes are nowhere
    else.
    """
    base: Any = part
    while base is not None and not isinstance(base, mmap.mmap):
        if getattr(base, "mode", "r") == "c":
            return
        base = base.base if isinstance(base, np.ndarray) else None
    if base is None or not part.flags.c_contiguous or not part.size:
        return
    if not hasattr(mmap, "MADV_DONTNEED"):  # not on every system
        return
    begin = part.ctypes.data - np.frombuffer(base, np.uint8).ctypes.data
    first = begin - begin % mmap.PAGESIZE
    base.madvise(mmap.MADV_DONTNEED, first, begin + part.nbytes - first)
