"""Compilation of kernels; compiled exponentials, logarithms and matrix products.

Modules named ``*_kernels`` are imported inside functions, so that they compile only when needed.
Calls of the mathematical library for single numbers would prevent vector instructions. These
products are faster than a BLAS, which copies both factors and pads ten directions to thirty-two
(60,000 x 784 in float32, ten directions: 45 ms, BLAS 72 ms).
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
            except (AttributeError, ImportError):  # the index was written by another version
                file.flush()
    except RuntimeError:  # no cache folder is writable
        compiled = njit(nogil=True, no_cfunc_wrapper=True, **options)(function)
    return cast(Function, compiled)


# Rewrites concern only expressions of whole arrays.
_BARE = {"_nrt": False, "no_rewrites": True, "error_model": "numpy"}


def bare_kernel(function: Function) -> Function:
    """Compile loops that allocate no arrays, without checks or reference counts."""
    return kernel(function, fastmath={"contract"}, **_BARE)


def reassociated(function: Function) -> Function:
    """Compile with sums in any order, as in a BLAS; other kernels fix the order and so all bits."""
    return kernel(function, fastmath={"reassoc", "contract"}, **_BARE)


LANES, MANTISSA = 64, np.int64(2**52 - 1)
ONE = np.int64(1023 << 52)  # the bits of 1.0
LOG_2, ROOT_2 = math.log(2.0), math.sqrt(2.0)

# exp y is 2^n times Taylor's polynomial about 0 of y - n log 2.
LEAST = -115.0  # weights below exp(LEAST) count as 0
PER_STEP = 1.0 / math.log(2.0)
STEP = round(math.log(2.0) * 2.0**10) / 2.0**10  # n STEP is exact for all n
REST = (math.log(2.0) - STEP) + 2.3190468138462996e-17  # plus the error of log 2 as a double
ROUND = 1.5 * 2.0**52  # adding it rounds to an integer
C2, C3, C4, C5, C6, C7 = (1.0 / math.factorial(m) for m in range(2, 8))
C8, C9, C10, C11, C12, C13 = (1.0 / math.factorial(m) for m in range(8, 14))


@bare_kernel
def exponentials(x: Any, power: Any, bits: Any) -> None:
    """Overwrite LANES numbers <= 0 by their exponentials; `bits` is the memory of `power`."""
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


QUAD = 4  # number of directions, or rows, processed together


def suits(dtype: Any, n_features: int, n_directions: int) -> bool:
    """Whether these products are faster than a BLAS; in float64, compiling takes too long."""
    return dtype == np.float32 and n_features >= 256 and n_directions <= 12


@reassociated
def project(X: Any, W: Any, P: Any) -> None:
    """Write W X' to the first columns of P (K, >= n); W (K, d) has X's dtype, and 4 divides K."""
    (n, d), zero = X.shape, X.dtype.type(0)
    for k in range(0, len(W), QUAD):
        for i in range(0, n, 2):
            other = i + 1 if i + 1 < n else i
            a = b = c = e = p = q = r = s = zero
            for j in range(d):
                x, y = X[i, j], X[other, j]
                a += x * W[k, j]
                b += x * W[k + 1, j]
                c += x * W[k + 2, j]
                e += x * W[k + 3, j]
                p += y * W[k, j]
                q += y * W[k + 1, j]
                r += y * W[k + 2, j]
                s += y * W[k + 3, j]
            P[k, i], P[k + 1, i], P[k + 2, i], P[k + 3, i] = a, b, c, e
            P[k, other], P[k + 1, other], P[k + 2, other], P[k + 3, other] = p, q, r, s


@reassociated
def add_outer(X: Any, S: Any, A: Any) -> None:
    """Add S X to A (K, d); S (K, n rounded up to fours) is zero from n on, and K even."""
    n, d = X.shape
    for i in range(0, n, QUAD):
        i1 = i + 1 if i + 1 < n else i
        i2, i3 = i + 2 if i + 2 < n else i, i + 3 if i + 3 < n else i
        for k in range(0, len(S), 2):
            s0, s1, s2, s3 = S[k, i], S[k, i + 1], S[k, i + 2], S[k, i + 3]
            t0, t1, t2, t3 = S[k + 1, i], S[k + 1, i + 1], S[k + 1, i + 2], S[k + 1, i + 3]
            for j in range(d):
                x0, x1, x2, x3 = X[i, j], X[i1, j], X[i2, j], X[i3, j]
                A[k, j] += (s0 * x0 + s1 * x1) + (s2 * x2 + s3 * x3)
                A[k + 1, j] += (t0 * x0 + t1 * x1) + (t2 * x2 + t3 * x3)


@reassociated
def centre(X: Any, origin: Any, weights: Any, B: Any, squares: Any) -> None:
    """Write X (n, d) minus the origin (d,) to B, and the weighted squares of its rows to (n,)."""
    (n, d), zero = X.shape, X.dtype.type(0)
    for i in range(n):
        a = zero
        for j in range(d):
            y = X[i, j] - origin[j]
            B[i, j] = y
            a += y * y * weights[j]
        squares[i] = a


@reassociated
def add_squares(X: Any, weights: Any, power: Any) -> None:
    """Add the squares of rows X (n, d), times weights (padded to fours by 0), to `power` (d,)."""
    n, d = X.shape
    for i in range(0, n, QUAD):
        i1 = i + 1 if i + 1 < n else i
        i2, i3 = i + 2 if i + 2 < n else i, i + 3 if i + 3 < n else i
        a, b, c, e = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
        for j in range(d):
            x0, x1, x2, x3 = X[i, j], X[i1, j], X[i2, j], X[i3, j]
            power[j] += (a * x0 * x0 + b * x1 * x1) + (c * x2 * x2 + e * x3 * x3)


@kernel
def multiply(X: Any, W: Any, P: Any) -> None:
    """Set P (n, K) = X W for X (n, d) and W (d, K), each sum from the first feature to the last."""
    n, d = X.shape
    whole = d - d % 4
    for i in range(n):
        p = P[i]
        p[:] = 0.0
        for j in range(0, whole, 4):  # four at a time, to read and write p less often
            x, y, z, t = X[i, j], X[i, j + 1], X[i, j + 2], X[i, j + 3]
            a, b, c, e = W[j], W[j + 1], W[j + 2], W[j + 3]
            for k in range(len(p)):
                p[k] = (((p[k] + x * a[k]) + y * b[k]) + z * c[k]) + t * e[k]
        for j in range(whole, d):
            x = X[i, j]
            for k in range(len(p)):
                p[k] += x * W[j, k]


@kernel
def squares(X: Any, out: Any) -> None:
    """Set out (n,) to the squared lengths of the rows of X (n, d), in four interleaved sums."""
    n, d = X.shape
    whole = d - d % 4
    for i in range(n):
        a = b = c = e = 0.0
        for j in range(0, whole, 4):
            a += X[i, j] * X[i, j]
            b += X[i, j + 1] * X[i, j + 1]
            c += X[i, j + 2] * X[i, j + 2]
            e += X[i, j + 3] * X[i, j + 3]
        for j in range(whole, d):
            a += X[i, j] * X[i, j]
        out[i] = (a + b) + (c + e)


@kernel
def subtract(H: Any, C: Any, X: Any) -> None:
    """Subtract H C from X (n, d), for scores H (n, K), mostly zero, and components C (K, d)."""
    n, d = X.shape
    for i in range(n):
        for k in range(len(C)):
            h = H[i, k]
            if h != 0.0:
                for j in range(d):
                    X[i, j] -= h * C[k, j]
