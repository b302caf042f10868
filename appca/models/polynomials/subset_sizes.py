"""Subsets of any size under weights exp(a), where each size has a probability.

p(z) = rho_l / C(K, l) with l the size of z, so that

    p(y) / p(y | no component) = sum_l rho_l e_l(exp a) / C(K, l)

A component with a > 0 counts 1 where it is in and exp(-a) where it is not, any other exp(a) where
it is in and 1 where it is not. The subset of all a > 0 then counts 1 and no subset counts more, so
nothing overflows. A size of probability zero would let the sum underflow: callers keep
probabilities above a small number.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

Floats = NDArray[np.float64]

LEAST_LOG_WEIGHT = -115.0  # smaller weights count as 0: their products would be denormal numbers
TABLE_FLOATS = 2**18  # 2 MB of tables per block of rows stay in a core's second-level cache


def log_counts(n_components: int) -> Floats:
    """Return the logs (K + 1,) of the numbers C(K, l) of subsets of each size."""
    sizes = np.arange(n_components + 1)
    counts: Floats = gammaln(n_components + 1) - gammaln(sizes + 1) - gammaln(sizes[::-1] + 1)
    return counts


def inclusion(logits: Floats, probabilities: Floats) -> tuple[Floats, Floats, Floats]:
    """Sum over the supports of each row, given logits (N, K) and `probabilities` (K + 1,) above 0.

    Returns log sum_l rho_l e_l(exp a) / C(K, l) (N,), posterior inclusion probabilities (N, K), and
    posterior probabilities of the sizes (N, K + 1).
    """
    n, K = logits.shape
    log_sum, r, sizes = np.empty(n), np.empty((n, K)), np.empty((n, K + 1))
    weights = np.exp(np.log(probabilities) - log_counts(K))
    for part in _parts(n, K):
        log_sum[part], r[part], sizes[part] = _inclusion(logits[part], weights)
    return log_sum, r, sizes


def draw(rng: np.random.Generator, logits: Floats, probabilities: Floats) -> NDArray[np.bool_]:
    """Draw a subset (N, K) bool of each row: its size first, then its members from the last on."""
    n, K = logits.shape
    uniforms, chosen = rng.random((n, K + 1)), np.zeros((n, K), dtype=bool)
    weights = np.exp(np.log(probabilities) - log_counts(K))
    for part in _parts(n, K):
        table, into, _ = _tables(logits[part])
        rows = np.arange(table.shape[2])
        sizes = np.cumsum(table[K] * weights[:, None], axis=0)
        left = (sizes > uniforms[part, K] * sizes[-1]).argmax(axis=0)
        for k in range(K - 1, -1, -1):
            with_k = into[k] * table[k, left - 1, rows]  # of none left it is not read
            member = (left > 0) & (uniforms[part, k] * table[k + 1, left, rows] < with_k)
            chosen[part, k] = member
            left = left - member
    return chosen


def _inclusion(logits: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
    table, into, out = _tables(logits)
    base = np.maximum(logits, 0.0).sum(axis=1)
    K, n = into.shape
    sizes = table[K] * weights[:, None]
    total = sizes.sum(axis=0)
    after, r = np.repeat(weights[:, None], n, axis=1), np.empty((K, n))
    for k in range(K - 1, -1, -1):  # after[j]: of all completions, with j among the first k + 1
        np.einsum("jn,jn->n", table[k, : k + 1], after[1 : k + 2], out=r[k])
        after = out[k] * after[: k + 1] + into[k] * after[1 : k + 2]
    r *= into
    return base + np.log(total), (r / total).T, (sizes / total).T


def _tables(logits: Floats) -> tuple[Floats, Floats, Floats]:
    """Give sums (K + 1, K + 1, n) over j of the first k components, and their weights (K, n)."""
    a = np.ascontiguousarray(logits.T, dtype=np.float64)  # rows last: operations run over them
    K, n = a.shape
    into, out = np.minimum(a, 0.0), np.minimum(-a, 0.0)
    for w in (into, out):
        w[w < LEAST_LOG_WEIGHT] = -np.inf
        np.exp(w, out=w)
    table = np.zeros((K + 1, K + 1, n))
    table[0, 0] = 1.0
    for k in range(K):
        np.multiply(table[k, : k + 2], out[k], out=table[k + 1, : k + 2])
        table[k + 1, 1 : k + 2] += into[k] * table[k, : k + 1]
    return table, into, out


def _parts(n: int, K: int) -> list[slice]:
    step = max(64, TABLE_FLOATS // (K + 2) ** 2)
    return [slice(start, start + step) for start in range(0, n, step)]


def best(logits: Floats, probabilities: Floats) -> tuple[NDArray[np.bool_], Floats]:
    """Most probable subset (N, K) bool of each row over all sizes, and its log weight (N,)."""
    n, K = logits.shape
    order = np.argsort(-logits, axis=1, kind="stable")
    gains = np.zeros((n, K + 1))
    np.cumsum(np.take_along_axis(logits, order, axis=1), axis=1, out=gains[:, 1:])
    gains += np.log(probabilities) - log_counts(K)
    size = gains.argmax(axis=1)
    chosen = np.zeros((n, K), dtype=bool)
    np.put_along_axis(chosen, order, np.arange(K) < size[:, None], axis=1)
    return chosen, gains[np.arange(n), size]


def log_weight(logits: Floats, chosen: NDArray[np.bool_], probabilities: Floats) -> Floats:
    """Log weight (N,) of a subset (N, K) bool of each row."""
    gain = (np.log(probabilities) - log_counts(logits.shape[1]))[chosen.sum(axis=1)]
    weight: Floats = logits.sum(axis=1, where=chosen) + gain
    return weight
