"""Sums in one fixed order, compiled: the same bits for a row wherever it stands.

Without leave to reorder or to fuse (`kernel`), IEEE 754 fixes every bit of these loops, on any
processor. The inner loops run over independent sums, so they become vector instructions all the
same.
"""

from typing import Any

from appca.models.algebra.compiled import kernel


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
