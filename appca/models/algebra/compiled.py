"""The one way kernels are compiled: serial, without the interpreter lock, cached on disk.

Modules named ``*_kernels`` use it at their top and are imported inside functions, so that nobody
pays for the compiler before a kernel is needed.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., object])


def kernel(function: Function) -> Function:
    """Compile a function of arrays and numbers."""
    return _compiled(function)


def wide_kernel(function: Function) -> Function:
    """Compile as `kernel`, for loops that are to become vector instructions, without checks.

    A division by zero gives what IEEE 754 says instead of an exception, and a product may be added
    without being rounded first.
    """
    return _compiled(function, error_model="numpy", fastmath={"contract"})


def bare_kernel(function: Function) -> Function:
    """Compile as `wide_kernel`, for what makes no arrays and is called every few hundred ns.

    Nobody counts who holds which array: that took up to half of a call that is handed many.
    """
    plain = {"_nrt": False, "no_rewrites": True}  # which are rules about whole arrays
    return _compiled(function, error_model="numpy", fastmath={"contract"}, **plain)


def reassociated(function: Function) -> Function:
    """Compile so, with sums taken in any order, too, as a BLAS takes them."""
    plain = {"_nrt": False, "no_rewrites": True}
    return _compiled(function, error_model="numpy", fastmath={"reassoc", "contract"}, **plain)


def _compiled(function: Function, **options: Any) -> Function:
    try:
        kernel = njit(cache=True, nogil=True, **options)(function)
        _discard_unreadable(kernel)
    except RuntimeError:  # no folder to keep compiled code in may be written to
        kernel = njit(nogil=True, **options)(function)
    return cast(Function, kernel)


def _discard_unreadable(compiled: Any) -> None:
    """Empty the cache of a function if it names a class that an earlier version of appca had.

    numba unpickles the argument types in it before it looks whether the source has changed.
    """
    file = getattr(compiled._cache, "_cache_file", None)
    if file is None:
        return
    try:
        file._load_index()
    except (AttributeError, ImportError):
        file.flush()
