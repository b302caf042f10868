"""A sweep over orthonormal W (D, K) that leaves the density exp(tr(F'W)) invariant.

It draws every column given the others (Hoff 2009), then every pair of columns within its plane:
single columns rotate slowly within a plane, and can only flip signs if D = K.

See docs/mathematics.md 1.3.
"""

from itertools import combinations

import numpy as np
from scipy import linalg, stats
from scipy.special import i0e


def draw(rng, F, W):
    """Columns, then pairs."""
    W, K = W.copy(), W.shape[1]
    for k in range(K):
        W[:, k] = draw_column(rng, F[:, k], np.delete(W, k, axis=1))
    for i, j in combinations(range(K), 2):
        W[:, [i, j]] = draw_pair(rng, F[:, [i, j]], W[:, [i, j]])
    return W


def complement(others):
    """Orthonormal basis N (D, D - K + 1) of all that is orthogonal to the columns `others`."""
    return linalg.null_space(others.T) if others.size else np.eye(len(others))


def draw_column(rng, f, others):
    """w orthogonal to the columns `others`, with density exp(f'w) on their unit sphere.

    In a basis N of their complement w = N u, and u has density exp((N'f)'u): von Mises-Fisher.
    """
    N = complement(others)
    g = N.T @ f
    kappa = np.linalg.norm(g)
    if len(g) == 1:  # the sphere is two points
        u = np.ones(1) if rng.random() < 1 / (1 + np.exp(-2 * g[0])) else -np.ones(1)
    elif kappa == 0:
        u = rng.standard_normal(len(g))
        u = u / np.linalg.norm(u)
    else:
        u = stats.vonmises_fisher.rvs(g / kappa, kappa, random_state=rng).ravel()
    return N @ u


def pair_branches(F, W):
    """(p, q) of the rotations and of the reflections of W = (a, b) within its plane.

    (a cos t + b sin t, b cos t - a sin t) and (a cos t + b sin t, a sin t - b cos t) have log
    densities p cos t + q sin t.
    """
    (aFi, aFj), (bFi, bFj) = W.T @ F
    return (aFi + bFj, bFi - aFj), (aFi - bFj, bFi + aFj)


def draw_pair(rng, F, W):
    """Choose a branch by its weight 2 pi I0(radius), then an angle: von Mises."""
    a, b = W.T
    branches = pair_branches(F, W)
    radii = np.hypot(*np.transpose(branches))
    weights = i0e(radii) * np.exp(radii - radii.max())
    turned = rng.random() < weights[0] / weights.sum()
    p, q = branches[0] if turned else branches[1]
    t = rng.vonmises(np.arctan2(q, p), np.hypot(p, q))
    w_i, w_j = a * np.cos(t) + b * np.sin(t), b * np.cos(t) - a * np.sin(t)
    return np.column_stack([w_i, w_j if turned else -w_j])
