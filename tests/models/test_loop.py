"""How a climb goes on, begins anew and ends."""

import math
from itertools import pairwise

import numpy as np
import pytest

from appca.models.loop import STOPPED, Progress, iterate, nesterov, watcher


def halving(state):
    """Log-likelihood -x^2; every step halves x."""
    return -(state**2), state / 2.0


def test_plain_iteration_reports_the_likelihood_of_the_state_it_returns():
    climb = iterate(nesterov(halving, 8.0), tol=0.0, max_iter=3)
    assert climb.state == 1.0
    assert climb.log_likelihoods == [-16.0, -4.0, -1.0]
    assert climb.log_likelihood == -1.0
    assert climb.stop_reason == "reached max_iter=3 before it converged"


@pytest.mark.parametrize(
    ("window", "words"),
    [
        (1, "improvement below tol over the last iteration"),
        (3, "improvement below tol over the last 3 iterations"),
        (10, "improvement below tol over the last 10 iterations"),
    ],
)
def test_it_stops_when_so_many_iterations_together_gain_less_than_their_share(window, words):
    climb = iterate(nesterov(halving, 1.0), tol=1e-6, max_iter=500, window=window)
    values, least = [-1.0, *climb.log_likelihoods], 1e-7 * window
    gains = np.subtract(values[window:], values[:-window])
    assert gains[-1] < least
    assert np.all(gains[:-1] >= least)
    assert climb.stop_reason == f"converged: {words}"


def test_a_plateau_shorter_than_ten_iterations_does_not_stop_it():
    heights = [0.0, *[1.0] * 9, 6.0, *[6.0] * 20]
    path = ((height, i) for i, height in enumerate(heights))
    climb = iterate(path, tol=1e-3, max_iter=30)
    assert climb.log_likelihood == 6.0


def onwards(before, now, beta):
    return now + beta * (now - before)


def creeping(state):
    """Log-likelihood -x^2; every step takes a hundredth off x."""
    return -(state**2), 0.99 * state


def test_momentum_begins_anew_where_the_likelihood_falls():
    seen = []

    def extend(before, now, beta):
        seen.append(beta)
        return onwards(before, now, beta)

    values = iterate(nesterov(creeping, 1.0, extend), tol=-1.0, max_iter=200).log_likelihoods
    assert all(b >= a for a, b in pairwise(values))
    rises = [b - a for a, b in pairwise(seen)]
    assert min(rises) < 0.0  # it did begin anew
    seen.clear()
    iterate(nesterov(creeping, 1.0, extend, age=500), tol=-1.0, max_iter=1)
    assert seen == [0.98]  # at most, whatever the age


@pytest.mark.parametrize("value", [-1e9, math.nan], ids=["lower", "not a number"])
def test_momentum_that_hurts_is_refused(value):
    def advance(state):
        return (value, state) if state > 100.0 else halving(state)

    path = nesterov(advance, 8.0, lambda _before, _now, _beta: 1000.0)
    climb = iterate(path, tol=-math.inf, max_iter=6)
    assert climb.log_likelihoods == [-(4.0**2 / 4.0**i) for i in range(6)]


def test_halt_turns_its_sentence_into_the_reason():
    climb = iterate(
        nesterov(halving, 8.0),
        tol=0.0,
        max_iter=50,
        halt=lambda state: "small enough" if state < 2.0 else None,
    )
    assert climb.state == 1.0
    assert climb.stop_reason == "small enough"


def test_the_callback_learns_stage_and_scaled_likelihood_and_may_stop():
    seen = []

    def callback(progress):
        seen.append(progress)
        if progress.iteration == 2:
            raise StopIteration

    watch = watcher(callback, "fit", 9, scale=10.0)
    climb = iterate(nesterov(halving, 8.0), tol=0.0, max_iter=9, watch=watch)
    assert seen == [Progress(1, 9, -160.0, "fit"), Progress(2, 9, -40.0, "fit")]
    assert climb.stop_reason == STOPPED == "stopped by the callback"
    assert climb.state == 2.0
