"""Synthetic data of the paper's table 1: five designs of the indicator matrix Z.

The paper draws W and X standard normal and adds noise of standard deviation 0.1; it gives neither
D, N, L nor the laws of Z. What is drawn here, so that nothing is left unsaid:

- ``sparse``: the finite Beta-Bernoulli law with pi_k ~ Beta(alpha/K, 1), alpha = 3: few popular
  factors and a tail of rare ones, alpha / (1 + alpha/K) active per row on average;
- ``dense``: pi_k ~ Beta(8, 2): every factor is used by most rows;
- ``subspace``: rows fall into classes of equal probability; the K factors are dealt out to the
  classes in disjoint blocks, so that sharing one factor means sharing all of them;
- ``balanced``: exactly L of the K factors, uniformly (the aFA prior);
- ``single``: one state, every row uses the same L factors.
"""

from typing import NamedTuple

import numpy as np

from appca.words.errors import InputError

DESIGNS = ("sparse", "dense", "subspace", "balanced", "single")
SPARSE_MASS = 3.0
DENSE_SHAPE = (8.0, 2.0)


class Synthetic(NamedTuple):
    """A draw of the model together with the truth behind it."""

    Y: np.ndarray  # (N, D) data
    W: np.ndarray  # (D, K) true columns
    X: np.ndarray  # (N, K) true scores, also of the factors that are off
    Z: np.ndarray  # (N, K) bool, which factors a row uses
    noise_sd: float


def draw_indicators(
    rng: np.random.Generator, design: str, n_rows: int, n_components: int, n_active: int
) -> np.ndarray:
    """Draw the indicator matrix Z, (N, K) bool, of one of `DESIGNS`.

    L only matters for ``subspace`` (size of a block), ``balanced`` and ``single``. Raises
    InputError if the design is unknown or L is not between 1 and K.
    """
    if not 1 <= n_active <= n_components:
        msg = f"n_active must be between 1 and n_components={n_components}; got {n_active}."
        raise InputError(msg)
    shape = (n_rows, n_components)
    if design == "sparse":
        odds = rng.beta(SPARSE_MASS / n_components, 1.0, n_components)
        return rng.random(shape) < odds
    if design == "dense":
        return rng.random(shape) < rng.beta(*DENSE_SHAPE, n_components)
    if design == "subspace":
        block = np.arange(n_components) // n_active
        return np.equal(block, rng.integers(block[-1] + 1, size=n_rows)[:, None])
    if design == "balanced":
        return rng.random(shape).argsort(axis=1).argsort(axis=1) < n_active
    if design == "single":
        return np.broadcast_to(rng.permutation(n_components) < n_active, shape).copy()
    msg = f"design must be one of {', '.join(DESIGNS)}; got {design!r}."
    raise InputError(msg)


def draw_synthetic(
    rng: np.random.Generator,
    design: str,
    *,
    n_rows: int = 1000,
    n_features: int = 50,
    n_components: int = 10,
    n_active: int = 5,
    noise_sd: float = 0.1,
) -> Synthetic:
    """Draw Y = (X * Z) W' + noise of one design, W and X standard normal (paper, section 5.1).

    Returns Y (N, D), W (D, K), X and Z (N, K), and the noise standard deviation.
    """
    Z = draw_indicators(rng, design, n_rows, n_components, n_active)
    W = rng.standard_normal((n_features, n_components))
    X = rng.standard_normal(Z.shape)
    noise = noise_sd * rng.standard_normal((n_rows, n_features))
    return Synthetic((X * Z) @ W.T + noise, W, X, Z, noise_sd)
