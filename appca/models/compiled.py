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


def fused(function: Function) -> Function:
    """Compile one whose products may be added without being rounded before."""
    return cast(Function, njit(cache=True, nogil=True, fastmath={"contract"})(function))


def reassociated(function: Function) -> Function:
    """Compile one whose sums may be taken in any order, too, as a BLAS takes them."""
    return cast(Function, njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})(function))
