"""Diagnoses of chains, the verdict in words, and the alignment of draws."""

import numpy as np
import pytest

from appca import FiniteSparseFA
from appca.analysis.alignment import align, match
from appca.analysis.diagnostics import diagnose, invariants, verdict


def posterior(rng, n_chains=4, n_draws=500, shift=0.0, memory=0.0):
    """Chains of a variance; `shift` sets the last one apart, `memory` makes all of them slow."""
    noise = rng.normal(size=(n_chains, n_draws))
    for i in range(1, n_draws):
        noise[:, i] = memory * noise[:, i - 1] + np.sqrt(1 - memory**2) * noise[:, i]
    noise[-1] += shift
    return {
        "noise_variance": 3 + noise / 10,
        "alpha": np.ones((n_chains, n_draws)),
        "occupancy": rng.integers(5, 9, (n_chains, n_draws, 2)),
        "shared": rng.integers(0, 3, (n_chains, n_draws, 6)),
    }


def test_chains_that_agree_are_trusted(seed):
    found = diagnose(posterior(np.random.default_rng(seed)))
    names = [d.name for d in found]
    assert names == [
        "noise variance",
        "rows of component ranked 1",
        "rows of component ranked 2",
        "components shared by pairs of rows",
    ]  # alpha never moves
    assert all(d.r_hat < 1.02 for d in found)
    assert all(d.ess_bulk > 1000 for d in found)
    said = verdict([d._replace(r_hat=min(d.r_hat, 1.009)) for d in found], 4)
    assert said.level == "good"
    assert said.words.startswith("The chains agree: R-hat is at most 1.0")


def test_a_chain_apart_is_named(seed):
    said = verdict(diagnose(posterior(np.random.default_rng(seed), shift=2.0)), 4)
    assert said.level == "bad"
    assert said.words.startswith(
        "Do not trust these chains: they disagree about the noise variance"
    )


def test_slow_chains_are_doubtful_or_worse(seed):
    said = verdict(diagnose(posterior(np.random.default_rng(seed), memory=0.98)), 4)
    assert said.level in ("doubtful", "bad")
    assert "noise variance" in said.words


def test_one_chain_alone_is_never_good(seed):
    found = diagnose(posterior(np.random.default_rng(seed), n_chains=1))
    said = verdict([d._replace(r_hat=1.0) for d in found], 1)
    assert said.level == "doubtful"
    assert "run at least two" in said.words


def test_too_few_draws_are_said_to_be_too_few(seed):
    short = posterior(np.random.default_rng(seed), n_draws=3)
    assert verdict(diagnose(short), 4).words == "There are too few draws to judge: raise n_draws."


def test_chains_that_do_not_move_at_different_places_are_not_trusted():
    stuck = {"noise_variance": np.tile([[1.0], [2.0]], (1, 100))}
    (found,) = diagnose(stuck)
    assert found.raftery_lewis is None
    assert verdict([found], 2).level == "bad"


def test_two_values_half_of_the_time_each_can_be_judged():
    halves = np.tile([4.0, 5.0], (2, 100))
    (found,) = diagnose({"n_components": halves})
    assert found.r_hat == pytest.approx(1.0, abs=0.01)


def test_a_sampled_model_can_be_diagnosed():
    rng = np.random.default_rng(0)
    Y = (rng.normal(size=(80, 2)) * (rng.random((80, 2)) < 0.5)) @ rng.normal(size=(2, 5)) * 2
    model = FiniteSparseFA(3, burn_in=50, n_draws=100, random_state=0)
    sampled = model.fit(Y + 0.3 * rng.normal(size=Y.shape)).posterior_
    names = set(invariants(sampled))
    assert {"joint log-density", "collapsed log-likelihood", "loading variance", "alpha"} <= names
    found = diagnose(sampled)
    assert all(d.raftery_lewis.least == 3746 for d in found if d.raftery_lewis)
    assert not any(d.raftery_lewis.enough for d in found if d.raftery_lewis)


def test_shuffled_and_flipped_draws_come_back(seed):
    rng = np.random.default_rng(seed)
    W = np.linalg.qr(rng.normal(size=(8, 4)))[0].T * rng.uniform(1, 3, (4, 1))
    order = rng.permuted(np.tile(np.arange(4), (2, 5, 1)), axis=2)
    sign = rng.choice([-1.0, 1.0], (2, 5, 4))
    draws = W[order] * sign[..., None] + 0.01 * rng.normal(size=(2, 5, 4, 8))
    aligned = align(draws, W)
    np.testing.assert_allclose(aligned.components, np.broadcast_to(W, (2, 5, 4, 8)), atol=0.06)
    np.testing.assert_array_equal(np.take_along_axis(order, aligned.order, 2)[0, 0], np.arange(4))
    assert aligned.cosine.min() > 0.99
    # without alignment the average is nothing like W
    assert np.abs(draws.mean(axis=(0, 1)) - W).max() > 0.3


def test_an_unused_component_matches_nothing():
    reference = np.eye(3)[:2]
    order, sign, cosine = match(np.array([[0, 0, 0], [0, -2.0, 0], [1.0, 0, 0]]), reference)
    np.testing.assert_array_equal(order, [2, 1])
    np.testing.assert_array_equal(sign, [1.0, -1.0])
    np.testing.assert_allclose(cosine, 1.0)


def test_alignment_refuses_axes_that_do_not_fit():
    with pytest.raises(ValueError, match="must have the axes"):
        align(np.zeros((2, 3, 4)))
