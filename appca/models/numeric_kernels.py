"""The one way kernels are compiled, and compiled exponentials and logarithms.

Modules named ``*_kernels`` are imported inside functions, so that the compiler waits for need.
Calls of the mathematical library for single numbers would keep loops scalar.
"""

import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit

Function = TypeVar("Function", bound=Callable[..., object])


def kernel(function: Function, **options: Any) -> Function:
    """Compile a function of arrays and numbers."""
    try:
        compiled = njit(cache=True, nogil=True, no_cfunc_wrapper=True, **options)(function)
        file = getattr(compiled._cache, "_cache_file", None)
        if file is not None:
            try:
                file._load_index()
            except (AttributeError, ImportError):  # of a class that an earlier version had
                file.flush()
    except RuntimeError:  # no folder to keep compiled code in may be written to
        compiled = njit(nogil=True, no_cfunc_wrapper=True, **options)(function)
    return cast(Function, compiled)


# No rewrites, which are rules about whole arrays.
_BARE = {"_nrt": False, "no_rewrites": True, "error_model": "numpy"}


def bare_kernel(function: Function) -> Function:
    """Compile loops that make no arrays, without checks or reference counts, into vectors."""
    return kernel(function, fastmath={"contract"}, **_BARE)


def reassociated(function: Function) -> Function:
    """Compile so, with sums taken in any order, too, as a BLAS takes them."""
    return kernel(function, fastmath={"reassoc", "contract"}, **_BARE)


LANES = 64
MANTISSA = np.int64(2**52 - 1)
ONE = np.int64(1023 << 52)  # the bits of 1.0
LOG_2, ROOT_2 = math.log(2.0), math.sqrt(2.0)

# exp y is 2^n times Taylor's polynomial about 0 of y - n log 2.
LEAST = -115.0  # weights below exp of it count as 0
PER_STEP = 1.0 / math.log(2.0)
STEP = round(math.log(2.0) * 2.0**10) / 2.0**10  # its products with any n are exact
REST = (math.log(2.0) - STEP) + 2.3190468138462996e-17  # with what log 2 exceeds its double by
ROUND = 1.5 * 2.0**52  # what is added to it becomes an integer
C2, C3, C4, C5, C6, C7 = (1.0 / math.factorial(m) for m in range(2, 8))
C8, C9, C10, C11, C12, C13 = (1.0 / math.factorial(m) for m in range(8, 14))


@bare_kernel
def exponentials(x: Any, power: Any, bits: Any) -> None:
    """Overwrite LANES numbers of at most 0 by exp of them; `bits` is the memory of `power`."""
    for i in range(LANES):
        power[i] = max(x[i], LEAST) * PER_STEP + ROUND
    for i in range(LANES):
        n = power[i] - ROUND
        y = (max(x[i], LEAST) - n * STEP) - n * REST
        v = ((((C13 * y + C12) * y + C11) * y + C10) * y + C9) * y + C8
        v = ((((((v * y + C7) * y + C6) * y + C5) * y + C4) * y + C3) * y + C2) * y + 1.0
        x[i] = v * y + 1.0 if x[i] > LEAST else 0.0
    for i in range(LANES):
        bits[i] = (bits[i] + 1023) << 52
    for i in range(LANES):
        x[i] *= power[i]


@bare_kernel
def logarithms(x: Any, bits: Any, power: Any) -> None:
    """Overwrite LANES positive numbers by their logarithms; `bits` is the memory of x.

    With x = 2^n m and y = (m - 1) / (m + 1), log m = 2 (y + y^3/3 + y^5/5 + ...).
    """
    for i in range(LANES):
        power[i] = (bits[i] >> 52) - 1023
        bits[i] = (bits[i] & MANTISSA) | ONE
    for i in range(LANES):
        large = x[i] > ROOT_2
        m = 0.5 * x[i] if large else x[i]
        n = power[i] + 1.0 if large else power[i]
        y = (m - 1.0) / (m + 1.0)
        z = y * y
        value = z * (1.0 / 21.0) + 1.0 / 19.0
        value = value * z + 1.0 / 17.0
        value = value * z + 1.0 / 15.0
        value = value * z + 1.0 / 13.0
        value = value * z + 1.0 / 11.0
        value = value * z + 1.0 / 9.0
        value = value * z + 1.0 / 7.0
        value = value * z + 1.0 / 5.0
        value = value * z + 1.0 / 3.0
        x[i] = n * LOG_2 + 2.0 * (y + y * z * value)
