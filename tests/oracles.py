"""Slow reference computations; nothing here may import the package."""

import itertools
import math

import numpy as np


def subsets_of(n_columns, n_active):
    """Return all subsets of n_active columns, in lexicographic order."""
    return list(itertools.combinations(range(n_columns), n_active))


def subset_probabilities(logits, n_active):
    """Return the log sum of weights and the probability of every subset of a row, by enumeration.

    All weights are relative to the best subset, and each exponent is an exactly rounded sum, so
    that logits of thousands of nats lose no digits.
    """
    a = [float(value) for value in logits]
    subsets = subsets_of(len(a), n_active)
    best = max(subsets, key=lambda subset: math.fsum(a[k] for k in subset))
    minus_best = [-a[k] for k in best]
    weights = [math.exp(math.fsum([a[k] for k in subset] + minus_best)) for subset in subsets]
    total = math.fsum(weights)
    log_e = math.fsum([a[k] for k in best] + [math.log(total)])
    return log_e, np.array([weight / total for weight in weights])


def inclusion(logits, n_active):
    """Return log e_L (N,) and inclusion probabilities (N, K), by enumeration."""
    N, K = np.shape(logits)
    log_e, r = np.empty(N), np.empty((N, K))
    subsets = subsets_of(K, n_active)
    for n, row in enumerate(logits):
        log_e[n], p = subset_probabilities(row, n_active)
        for k in range(K):
            r[n, k] = math.fsum(p[i] for i, subset in enumerate(subsets) if k in subset)
    return log_e, r


def integer_inclusion(weights, n_active, columns):
    """Return log e_L and some inclusion probabilities for integer weights, exactly."""
    e = [1] + [0] * n_active
    for w in weights:
        for j in range(n_active, 0, -1):
            e[j] += w * e[j - 1]
    r = []
    for k in columns:
        without = 1  # e_j of the other weights, by exact division of the polynomial
        for j in range(1, n_active):
            without = e[j] - weights[k] * without
        share = weights[k] * without
        # ratio of two large integers, to all digits of a float
        r.append(share * 2**1200 // e[n_active] / 2**1200)
    return math.log(e[n_active]), np.array(r)


def large_problem(seed, n_columns, n_active):
    """Return logs of integers (1, K) of very different sizes, some columns, and their results."""
    numbers = np.random.default_rng(seed).integers(0, 90, n_columns)
    weights = [2 ** int(n) + 1 for n in numbers]
    columns = range(0, n_columns, max(1, n_columns // 40))
    logits = np.array([[math.log(w) for w in weights]])
    return logits, columns, *integer_inclusion(weights, n_active, columns)
