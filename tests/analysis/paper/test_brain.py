"""The stimulus, the reference map and the measures of place, each by another route."""

from statistics import NormalDist

import numpy as np
import pytest
from scipy.stats import gamma

from appca.analysis import brain
from appca.data.brain import Event, cleaned

EVENTS = tuple(Event(10.0 + 30.0 * i, 16.0) for i in range(7))
T, STEP = 120, 2.0


def test_the_stimulus_is_the_integral_of_the_response_over_the_events():
    def answered(seconds: np.ndarray) -> np.ndarray:
        """Integral of the response, from the distribution functions of its two gammas."""
        return (gamma.cdf(seconds, 6) - gamma.cdf(seconds, 16) / 6) / (1 - 1 / 6)

    times = STEP * np.arange(T) + 0.1  # the tenth that begins with a volume counts for it
    known = sum(answered(times - one.onset) - answered(times - one.end) for one in EVENTS)
    raw = brain.stimulus(EVENTS, T, STEP)
    np.testing.assert_allclose(raw, known, atol=1e-3)
    later = brain.stimulus(EVENTS, T, STEP, shift=6.0)
    np.testing.assert_allclose(later[3:], raw[:-3], atol=1e-12)


def test_the_t_map_is_that_of_whitened_least_squares_and_finds_what_follows(seed):
    """By the precision matrix of each voxel instead of by differences."""
    rng = np.random.default_rng(seed)
    raw = brain.stimulus(EVENTS, T, STEP)
    series, memory = rng.standard_normal((304, T)), np.zeros(304)
    memory[:4] = 0.0, 0.3, 0.6, -0.4
    for t in range(1, T):
        series[:, t] += memory * series[:, t - 1]
    series[4:34] += 3 * brain.unit(raw) * np.sqrt(T)
    found = brain.reference(series, raw)
    X = np.column_stack([raw, np.vander(np.linspace(-1, 1, T), 4)])
    for y, t in zip(series[:8], found.t, strict=False):
        left = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
        rho = np.mean(left[1:] * left[:-1]) / np.mean(left**2)
        whitener = np.eye(T) - np.diag(np.full(T - 1, np.trunc(100 * rho) / 100), -1)
        precision = whitener.T @ whitener
        inverse = np.linalg.inv(X.T @ precision @ X)
        weights = inverse @ X.T @ precision @ y
        left = y - X @ weights
        wanted = weights[0] / np.sqrt(inverse[0, 0] * (left @ precision @ left) / (T - 5))
        np.testing.assert_allclose(t, wanted, rtol=1e-4)
    assert found.active[4:34].all()
    assert found.active[34:].mean() < 0.02
    normal = NormalDist().inv_cdf(1 - 0.05 / 304)
    assert normal < found.threshold < normal + 0.2  # 115 degrees of freedom


def test_time_courses_are_freed_of_cubic_drift_and_of_length_one(seed):
    rng = np.random.default_rng(seed)
    times = np.arange(T)
    course = rng.standard_normal(T)
    left = course - np.polyval(np.polyfit(times, course, 3), times)
    drifting = course + 5 + 0.3 * times - 1e-3 * times**2
    np.testing.assert_allclose(brain.unit(drifting), left / np.linalg.norm(left), atol=1e-9)
    assert not brain.unit(np.stack([times, times**2.0])).any()


def test_a_stimulus_that_nothing_follows_is_no_rarer_than_its_shifts(seed):
    rng = np.random.default_rng(seed)
    raw = brain.stimulus([Event(float(at), 4.0) for at in rng.integers(0, 230, 9)], T, STEP)
    own = brain.circular_p(brain.unit(raw)[None], raw)
    assert own <= 3 / T
    turned = brain.unit(np.roll(raw, 41))[None]
    assert brain.circular_p(turned, raw) > own
    assert brain.circular_p(turned, np.roll(raw, 41)) == own


def test_the_place_of_a_map_is_counted_by_hand():
    active = np.array([1, 1, 0, 0, 0, 0], dtype=bool)
    found = brain.place(np.array([3.0, 0.0, 2.0, -4.0, 0.0, 0.0]), active)
    wanted = {"dice": 0.5, "energy_inside": 9 / 29, "on": 0.5, "on_inside": 0.5}
    assert found == pytest.approx(wanted)
    nothing = brain.place(np.zeros(6), np.zeros(6, dtype=bool))
    assert nothing == dict.fromkeys(wanted, 0.0)


@pytest.mark.parametrize("n_volumes", [60, 61])
def test_random_phases_keep_spectra_and_lose_what_is_shared(n_volumes):
    rng = np.random.default_rng(3)
    shared = np.sin(np.arange(n_volumes) * 2 * np.pi * 6 / n_volumes)
    series = cleaned(shared + 0.5 * rng.standard_normal((400, n_volumes)))
    turned = brain.phase_randomised(rng, series)
    power = [np.square(np.abs(np.fft.rfft(one, axis=1))).mean(axis=0) for one in (series, turned)]
    peak = np.argmax(power[0])
    assert np.argmax(power[1]) == peak == 6
    assert power[1][peak] == pytest.approx(power[0][peak], rel=0.1)
    largest = [np.linalg.eigvalsh(one.T @ one / 400)[-1] for one in (series, turned)]
    assert largest[1] < 0.7 * largest[0]
    assert turned.std() == pytest.approx(1.0, abs=1e-3)
