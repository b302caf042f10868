"""Compiled matrix products: of few columns, and with sums in one fixed order.

A BLAS copies both factors and rounds ten directions up to thirty-two; these loops read rows where
they are (60,000 x 784 in float32, ten directions: 45 ms, by BLAS 72). `reassociated` sums become
vector instructions; without leave to reorder, IEEE 754 fixes every bit of a row.
"""

from typing import Any

import numpy as np

from appca.models.numeric_kernels import kernel, reassociated

QUAD = 4  # directions, or rows, that go through together


def suits(dtype: Any, n_features: int, n_directions: int) -> bool:
    """Whether these products beat a BLAS, as measured; in float64 compiling costs too much."""
    return dtype == np.float32 and n_features >= 256 and n_directions <= 12


@reassociated
def project(X: Any, W: Any, P: Any) -> None:
    """Put W X' into the first columns of P (K, at least n); W (K, d) has X's dtype, K in fours."""
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
    """Put X (n, d) less the origin (d,) into B, and the weighted squares of its rows into (n,)."""
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
        for j in range(0, whole, 4):  # four at a time: p is read and written less often
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
    """Take H C from X (n, d), for scores H (n, K), many of them zero, and components C (K, d)."""
    n, d = X.shape
    for i in range(n):
        for k in range(len(C)):
            h = H[i, k]
            if h != 0.0:
                for j in range(d):
                    X[i, j] -= h * C[k, j]
