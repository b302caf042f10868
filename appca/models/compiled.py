"""The one way kernels are compiled: serial, without the interpreter lock, cached on disk.

Modules named ``*_kernels`` use it at their top and are imported inside functions, so that nobody
pays for the compiler before a kernel is needed. A kernel gets its random numbers as arrays: the
generator stays outside, and the same seed gives the same bits with any version of the compiler.
"""

from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., object])


def kernel(function: Function) -> Function:
    """Compile a function of arrays and numbers."""
    return cast(Function, njit(cache=True, nogil=True)(function))


def wide_kernel(function: Function) -> Function:
    """Compile as `kernel`, for loops that are to become vector instructions, without checks.

    A division by zero gives what IEEE 754 says instead of an exception, and a product may be added
    without being rounded first.
    """
    options = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": {"contract"}}
    return cast(Function, njit(**options)(function))


def reassociated(function: Function) -> Function:
    """Compile so, with sums taken in any order, too, as a BLAS takes them."""
    fast = {"reassoc", "contract"}
    options = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": fast}
    return cast(Function, njit(**options)(function))
