"""Compiled loops over rows, components and points of `polynomials`.

Rows lie side by side, so that all inner loops run over neighbours in memory.
"""

from typing import Any

from appca.models.numeric_kernels import bare_kernel


@bare_kernel
def tilted(up: Any, down: Any, factor: Any, p: Any, mean: Any, variance: Any) -> None:
    """Write the probabilities p (K, w) of all B_k, and the mean and variance (w,) of their sum.

    up and down (K, w) are the odds of w rows as two numbers of at most 1, `factor` (w,) is exp(-t).
    """
    K, w = up.shape
    for i in range(w):
        mean[i] = 0.0
        variance[i] = 0.0
    for k in range(K):
        for i in range(w):
            likely = up[k, i] / (up[k, i] + down[k, i] * factor[i])
            p[k, i] = likely
            mean[i] += likely
            variance[i] += likely * (1.0 - likely)


@bare_kernel
def characteristic(p: Any, less: Any, sine: Any, re: Any, im: Any) -> None:
    """Multiply re + i im (M, w) by prod_k (1 + p_k (less + i sine)), less = cos theta - 1.

    Two of an even number of p go through together.
    """
    (K, w), M = p.shape, len(less)
    for m in range(M):
        for k in range(0, K, 2):
            for i in range(w):
                c, s = less[m, i], sine[m, i]
                a, b = 1.0 + p[k, i] * c, p[k, i] * s
                u, v = 1.0 + p[k + 1, i] * c, p[k + 1, i] * s
                x, y = a * u - b * v, a * v + b * u
                u, v = re[m, i], im[m, i]
                re[m, i] = u * x - v * y
                im[m, i] = u * y + v * x


@bare_kernel
def inclusion(p: Any, less: Any, sine: Any, re: Any, im: Any, x: Any, r: Any) -> None:
    """Write the inclusion probabilities (3) into r (K, w), from the summands over P, and 1 / P.

    Divisions are what takes the time: two of an even number of points share one. x (2, w) has the
    summand of theta = 0, and is room.
    """
    (K, w), M = r.shape, len(less)
    for k in range(K):
        for i in range(w):
            x[1, i] = x[0, i]
        for m in range(0, M, 2):
            for i in range(w):
                a = p[k, i]
                u, v = 1.0 + a * less[m, i], a * sine[m, i]
                weight, size = re[m, i] * u + im[m, i] * v, u * u + v * v
                u, v = 1.0 + a * less[m + 1, i], a * sine[m + 1, i]
                other, length = re[m + 1, i] * u + im[m + 1, i] * v, u * u + v * v
                x[1, i] += (weight * length + other * size) / (size * length)
        for i in range(w):
            probability = p[k, i] * x[1, i]
            r[k, i] = 0.0 if probability < 0.0 else (1.0 if probability > 1.0 else probability)
