"""Exponentials and logarithms of many numbers at once, compiled into vector instructions.

A call of the mathematical library for each number would keep the loops around it scalar.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from appca.models.algebra.compiled import bare_kernel

LANES = 64
BEYOND_LOG_2 = 2.3190468138462996e-17  # what log 2 exceeds its double by

MANTISSA = np.int64(2**52 - 1)
ONE = np.int64(1023 << 52)  # the bits of 1.0
LOG_2, ROOT_2 = math.log(2.0), math.sqrt(2.0)


class Exponential(NamedTuple):
    """How to take exp of numbers of a dtype: 2^n times Taylor's polynomial about 0."""

    least: Any  # weights below exp of it count as 0
    tiny: Any  # as do sums of products below this, and shares of a total below its root
    per_step: Any  # 1 / log 2
    step: Any  # log 2 in two parts, products of the first with any n being exact
    rest: Any
    round: Any  # 1.5 times 2 to the bits of the mantissa: what is added to it becomes an integer
    bias: Any  # of the exponent
    shift: Any  # how far left in the bits the exponent stands
    terms: tuple[Any, ...]  # 1/13! to 1/0!


@cache
def exponential(dtype: np.dtype[Any]) -> Exponential:
    """Constants for float32 or float64."""
    real, single = dtype.type, dtype.itemsize == 4
    whole, mantissa, bias = (np.int32, 23, 127) if single else (np.int64, 52, 1023)
    step = round(math.log(2.0) * 2.0**10) / 2.0**10
    rest = (math.log(2.0) - step) + BEYOND_LOG_2
    return Exponential(
        least=real(-27.0 if single else -115.0),
        tiny=real(1e-24 if single else 1e-100),
        per_step=real(1.0 / math.log(2.0)),
        step=real(step),
        rest=real(rest),
        round=real(1.5 * 2.0**mantissa),
        bias=whole(bias),
        shift=whole(mantissa),
        terms=tuple(real(1.0 / math.factorial(m)) for m in range(13, -1, -1)),
    )


@bare_kernel
def exponentials(x: Any, e: Any, power: Any, bits: Any) -> None:
    """Overwrite LANES numbers of at most 0 by exp of them, and those below e.least by 0.

    `power` (LANES,) is room for 2^n, `bits` the same memory as integers. The error is a rounding
    or two. A call of the mathematical library for each number would keep the loop scalar.
    """
    for i in range(LANES):
        power[i] = max(x[i], e.least) * e.per_step + e.round
    for i in range(LANES):
        n = power[i] - e.round
        y = (max(x[i], e.least) - n * e.step) - n * e.rest
        value = e.terms[0] * y + e.terms[1]
        value = value * y + e.terms[2]
        value = value * y + e.terms[3]
        value = value * y + e.terms[4]
        value = value * y + e.terms[5]
        value = value * y + e.terms[6]
        value = value * y + e.terms[7]
        value = value * y + e.terms[8]
        value = value * y + e.terms[9]
        value = value * y + e.terms[10]
        value = value * y + e.terms[11]
        value = value * y + e.terms[12]
        value = value * y + e.terms[13]
        x[i] = value if x[i] > e.least else value - value
    for i in range(LANES):
        bits[i] = (bits[i] + e.bias) << e.shift
    for i in range(LANES):
        x[i] *= power[i]


@bare_kernel
def logarithms(x: Any, bits: Any, power: Any) -> None:
    """Overwrite LANES positive float64 numbers by their logarithms.

    `bits` is the memory of x as integers and `power` (LANES,) scratch. With x = 2^n m, m between
    the root of 1/2 and that of 2, and y = (m - 1) / (m + 1), log m = 2 (y + y^3/3 + y^5/5 + ...).
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
