"""Cached fits of every model in every mode, and exact results by enumeration."""

import itertools
from copy import deepcopy
from functools import cache
from math import comb
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp
from sklearn.base import clone

from appca import (
    PPCA,
    AdaptiveFactorAnalysis,
    AdaptivePPCA,
    FiniteSparseFA,
    InfiniteSparseFA,
    NonparametricPPCA,
)
from tests.models.synthetic import planted

D, K, L = 7, 4, 2
EM = {"n_components": K, "n_active": L, "init": "pca", "random_state": 0}
CHAINS = {"n_chains": 2, "burn_in": 12, "n_draws": 10, "random_state": 0}
GIBBS = EM | CHAINS | {"inference": "gibbs"}
LEARNED = {"n_active": "learned", "row_scale": "learned"}
FITS = {
    "PPCA": PPCA(3, random_state=0),
    "PPCA, gaps": PPCA(3, random_state=0),
    "EM": AdaptivePPCA(**EM),
    "own variances": AdaptivePPCA(**EM, latent_variance="component", mean="sample"),
    "hard": AdaptivePPCA(**EM, inference="hard", mean="zero"),
    "gaps": AdaptivePPCA(**EM, latent_variance="component"),
    "noise": AdaptivePPCA(**EM, noise="feature"),
    "sizes": AdaptivePPCA(**EM | LEARNED),
    "all": AdaptivePPCA(**EM | LEARNED, noise="feature", latent_variance="component"),
    "Gibbs": AdaptivePPCA(**GIBBS),
    "Gibbs, sizes": AdaptivePPCA(**GIBBS | LEARNED),
    "aFA": AdaptiveFactorAnalysis(**EM),
    "aFA, best": AdaptiveFactorAnalysis(**EM, allocation="best"),
    "aFA, Gibbs": AdaptiveFactorAnalysis(**GIBBS),
    "NPPCA": NonparametricPPCA(5, **CHAINS),
    "fsFA": FiniteSparseFA(5, **CHAINS),
    "isFA": InfiniteSparseFA(5, **CHAINS),
}
SAMPLED = [name for name, model in FITS.items() if getattr(model, "inference", "gibbs") == "gibbs"]
SAMPLED = [name for name in SAMPLED if "PPCA" not in name or name == "NPPCA"]
BY_EM, WITH_GAPS = [name for name in FITS if name not in SAMPLED], ["PPCA, gaps", "gaps"]


def rows_of(seed=0, n=160, d=D, k=K):
    """Return rows of different sizes and units, far from zero."""
    rng = np.random.default_rng(seed)
    X = planted(n, d, k, L, seed=seed, noise=0.4, scales=np.linspace(1, 3, k), offset=2.0).X
    return X * np.linspace(0.5, 2.0, d) * rng.choice([0.7, 1.6], (n, 1))


def rows_for(name):
    """Return rows (120, D) for a fit, and 40 rows for queries, half of them from the fit."""
    X = rows_of()
    if name in WITH_GAPS:
        X[np.random.default_rng(1).random(X.shape) < 0.15] = np.nan
        X[:3, :3], X[110] = np.nan, np.nan  # three rows with one pattern, and an empty row
    return X[:120], X[100:]


def unfitted(name, **changes):
    return clone(FITS[name]).set_params(**changes)


@cache
def _fit(name):
    return unfitted(name).fit(rows_for(name)[0])


def fit_of(name):
    """Return a copy of a fit, which a test may change."""
    return deepcopy(_fit(name))


class Draw(NamedTuple):
    """Parameters of a model: y ~ N(mu + W (x * z), u psi), x ~ N(0, u tau2)."""

    W: np.ndarray  # (k, D)
    mu: np.ndarray  # (D,)
    psi: np.ndarray  # (D,)
    tau2: np.ndarray  # (k,)
    log_prior: np.ndarray  # (C,) log prior of each set
    sets: np.ndarray  # (C, k) bool
    grid: np.ndarray  # (J,)
    omega: np.ndarray  # (J,)


def draw_of(model, at, weights, omega, rho):
    W, mu, psi, tau2 = at
    k = len(W)
    sets = np.array(list(itertools.product([False, True], repeat=k)))
    if weights is None:
        rho = np.eye(k + 1)[model.n_active_] if rho is None else rho
        counts = np.array([comb(k, size) for size in range(k + 1)])
        sets = sets[rho[sets.sum(axis=1)] > 0]
        prior = np.log((rho / counts)[sets.sum(axis=1)])
    else:
        prior = np.where(sets, np.log(weights), np.log1p(-weights)).sum(axis=1)
    grid = np.ones(1) if omega is None else model.row_scale_values_
    omega = np.ones(1) if omega is None else omega
    return Draw(W, mu, psi * np.ones(len(mu)), tau2, prior, sets, grid, omega)


def published_draw(model):
    extra = [getattr(model, f"{name}_probabilities_", None) for name in ("row_scale", "size")]
    at = model.components_, model.mean_, model.noise_variance_, model.latent_variance_
    return draw_of(model, at, getattr(model, "weights_", None), *extra)


def raw_draws(model):
    """Return the draws that queries use, taken from all stored draws."""
    for chain, i in zip(model.query_draws_.chain, model.query_draws_.draw, strict=True):
        at = {
            name: values[chain, i]
            for name, values in model.posterior_.items()
            if "_mean" not in name
        }
        W, weights = at["components"], at.get("weights")
        used = slice(None) if weights is None else np.flatnonzero(weights > 0)
        tau2 = at.get("latent_variance", np.ones(len(W)))[used]
        weights = None if weights is None else weights[used]
        extra = at.get("row_scale_probabilities"), at.get("size_probabilities")
        at = W[used], at["mean"], at["noise_variance"], tau2
        yield draw_of(model, at, weights, *extra)


class Answers(NamedTuple):
    """Results for rows by enumeration, with dense normal densities of observed entries."""

    log_likelihood: np.ndarray  # (n,)
    p: np.ndarray  # (n, C, J)
    inclusion: np.ndarray  # (n, k)
    scores: np.ndarray  # (n, k), E[x * z]
    means: np.ndarray  # (n, C, k), E[x * z] given the set


def enumerated(draw, X):
    joint = np.empty((len(X), len(draw.sets), len(draw.grid)))
    means = np.zeros((len(X), len(draw.sets), len(draw.W)))
    for n, c in itertools.product(range(len(X)), range(len(draw.sets))):
        seen, z = ~np.isnan(X[n]), draw.sets[c]
        W, r = draw.W[np.ix_(z, seen)], (X[n] - draw.mu)[seen]
        C = (W.T * draw.tau2[z]) @ W + np.diag(draw.psi[seen])
        solved = np.linalg.solve(C, r)
        means[n, c, z] = draw.tau2[z] * (W @ solved)
        log_det = np.linalg.slogdet(2 * np.pi * C)[1]
        joint[n, c] = -0.5 * (log_det + seen.sum() * np.log(draw.grid) + r @ solved / draw.grid)
        joint[n, c] += draw.log_prior[c] + np.log(draw.omega)
    log_p = logsumexp(joint, axis=(1, 2))
    p = np.exp(joint - log_p[:, None, None])
    of_set = p.sum(axis=2)
    return Answers(log_p, p, of_set @ draw.sets, np.einsum("nc,nck->nk", of_set, means), means)


def placed(W, reference):
    """Return (component of W, component of the reference, sign) of the best matching."""
    units = [V / np.linalg.norm(V, axis=1, keepdims=True) for V in (W, reference)]
    cosine = units[0] @ units[1].T
    return [
        (i, j, np.sign(cosine[i, j]))
        for i, j in zip(*linear_sum_assignment(-abs(cosine)), strict=True)
    ]
