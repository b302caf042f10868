"""The autoencoder of the digits: its loss, its training, and its absence."""

import sys

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.stats import bernoulli, norm

from appca.data.sources import load
from appca.studies import vae_digits
from appca.studies.vae_digits import Networks
from appca.words import MissingExtraError


@pytest.fixture(scope="module")
def digits() -> np.ndarray:
    return (load("digits").X[:900] / 16).astype(np.float32)


@pytest.mark.thorough
def test_training_lowers_the_bound_and_the_seed_decides_it(digits):
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((900, 4))
    before, after, again, other = (
        vae_digits.train(digits, 4, epochs, seed)
        for epochs, seed in ((1, 0), (25, 0), (25, 0), (25, 1))
    )
    bounds = [vae_digits.negative_bound(np, nets, digits, noise) for nets in (before, after)]
    assert bounds[1] < 0.9 * bounds[0]
    assert vae_digits.encode(after, digits).shape == (900, 4)
    for name in Networks._fields:
        assert getattr(after, name).tobytes() == getattr(again, name).tobytes(), name
    assert not np.allclose(after.code, other.code)


def test_the_loss_is_the_evidence_lower_bound_and_jax_knows_its_slope(monkeypatch):
    import jax
    from jax.flatten_util import ravel_pytree

    monkeypatch.setattr(vae_digits, "HIDDEN", 7)
    rng = np.random.default_rng(3)
    X, noise = rng.random((4, 5)), rng.standard_normal((4, 2))
    nets = Networks(*(v + 0.05 * rng.standard_normal(v.shape) for v in vae_digits.start(rng, X, 2)))
    value = vae_digits.negative_bound(np, nets, X, noise)
    assert value == pytest.approx(_bound(nets, X, noise), rel=1e-9)

    flat, shaped = ravel_pytree(nets)
    flat = np.asarray(flat, np.float64)
    sizes = np.cumsum([np.size(part) for part in nets])[:-1]

    def loss(theta: np.ndarray) -> float:
        pieces = zip(np.split(theta, sizes), nets, strict=True)
        moved = Networks(*(piece.reshape(part.shape) for piece, part in pieces))
        return float(vae_digits.negative_bound(np, moved, X, noise))

    gradient = jax.jit(jax.grad(lambda w: vae_digits.negative_bound(jax.numpy, w, X, noise)))

    def slope(theta: np.ndarray) -> np.ndarray:
        parts = gradient(shaped(theta.astype(np.float32)))
        return np.asarray(ravel_pytree(parts)[0], np.float64)

    assert check_grad(loss, slope, flat) < 1e-3 * np.linalg.norm(slope(flat))


def _bound(nets: Networks, X: np.ndarray, noise: np.ndarray) -> float:
    """Minus log p(x | c) - log p(c) + log q(c | x), integrated over q where that is exact."""
    hidden = np.maximum((X - nets.shift) @ nets.inward + nets.inward_bias, 0)
    mean = hidden @ nets.code + nets.code_bias
    sd = np.exp((hidden @ nets.spread + nets.spread_bias) / 2)
    hidden = np.maximum((mean + sd * noise) @ nets.outward + nets.outward_bias, 0)
    p = 1 / (1 + np.exp(-(hidden @ nets.picture + nets.picture_bias)))
    fit = X * bernoulli.logpmf(1, p) + (1 - X) * bernoulli.logpmf(0, p)
    nodes, masses = np.polynomial.hermite_e.hermegauss(30)  # E over q of log q - log p(c)
    draws = mean[..., None] + sd[..., None] * nodes
    gap = norm.logpdf(draws, mean[..., None], sd[..., None]) - norm.logpdf(draws)
    divergence = gap @ masses / masses.sum()
    return float((divergence.sum(axis=1) - fit.sum(axis=1)).mean())


def test_a_report_can_end_the_training(digits):
    told = []

    def report(stage: str, share: float) -> None:
        told.append(share)
        if share > 0.4:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        vae_digits.train(digits[:100], 2, 25, 0, report)
    assert told == sorted(told)
    assert max(told) < 0.6


def test_without_jax_one_sentence_says_what_to_install(digits, monkeypatch):
    monkeypatch.setitem(sys.modules, "optax", None)
    words = r"needs the package (jax|optax).*pip install .appca\[vae\]"
    with pytest.raises(MissingExtraError, match=words):
        vae_digits.train(digits, 4, 1, 0)
