"""The stimulus, maps and places by other routes; the separation of the made-up brain."""

from statistics import NormalDist

import numpy as np
import pytest
from scipy.stats import gamma

from appca.analysis import brain
from appca.data import brain as recordings
from appca.data import sources
from appca.data.brain import Event, cleaned, upright
from appca.studies.brain import STUDY, separate
from appca.words import InputError

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


def silent(_stage: str, _share: float) -> None:
    pass


@pytest.fixture(scope="module")
def outcome():
    return STUDY.run(STUDY.options("quick"), silent, 1)


@pytest.fixture(scope="module")
def small() -> recordings.Recording:
    """Every tenth voxel of the made-up brain."""
    whole = recordings.load("made-up")
    places = np.argwhere(whole.mask)[::10]
    mask = np.zeros_like(whole.mask)
    mask[tuple(places.T)] = True
    return whole._replace(series=whole.series[::10], signal=whole.signal[::10], mask=mask)


def tiny(**changes) -> dict:
    return STUDY.options("quick", components=[4], active=[2], **changes)


def test_the_component_follows_the_stimulus_and_not_one_six_seconds_later(outcome):
    appca, small, large = outcome.tables["fmri"][:3]
    assert appca["r"] > 0.7
    assert appca["p"] < 0.05
    for row in (appca, small, large):
        assert abs(row["r_shifted"]) < row["r"] / 2


def test_the_map_is_where_the_stimulus_was_put(outcome):
    region = sources.brain().labels["region"]
    values = outcome.arrays["map_appca"]
    driven = np.isin(region, ["visual cortex", "face area", "place area"])
    strongest = np.argsort(-values)[:60]
    assert driven[strongest].mean() > 0.9
    assert driven[outcome.arrays["map_t"] > outcome.arrays["threshold"]].mean() > 0.9
    appca, small, _ = outcome.tables["fmri"][:3]
    assert (appca["on"] < 0.7, appca["on_inside"] > 0.9, small["on"]) == (True, True, 1.0)


def test_errors_are_forced_down_by_choice_and_stay_above_those_of_all_components(outcome):
    table = outcome.tables["fmri"]
    assert [row["data"] for row in table] == ["recording"] * 3 + ["phases randomised"] * 3
    for appca, small in ((table[0], table[1]), (table[3], table[4])):
        assert appca["rmse"] < small["rmse"]
    assert table[3]["p"] > 0.05


def test_without_events_nothing_is_said_of_a_stimulus(small):
    other = separate(small, tiny(events="10+16 70+16"), silent)  # instead of the recording's
    assert other.tables["recording"][0]["events"] == 2
    found = separate(small._replace(events=()), tiny(), silent)
    assert [claim.holds for claim in found.claims[2:]] == ["not tested"] * 2
    assert found.tables["fmri"][0]["r"] is None
    assert "map_t" not in found.arrays
    assert len(STUDY.figures(found)) == 3


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"components": [3], "active": [3]}, "L from 1 to K"),
        ({"components": [400], "active": [3]}, "K must be at most 116"),
        ({"components": [4, 5], "active": [2]}, "lists of equal length"),
        ({"events": "10+16 240+16"}, "1 of 2 events lie outside"),
        ({"events": "ten"}, "written as onset"),
    ],
)
def test_settings_that_do_not_suit_are_one_sentence(small, changes, words):
    with pytest.raises(InputError, match=words):
        separate(small, tiny() | changes, silent)


def test_volumes_are_turned_upright_as_nibabel_does():
    from nibabel import Nifti1Image, as_closest_canonical

    volume = np.random.default_rng(0).random((3, 4, 5))
    for affine in (
        np.diag([-2.0, 3.0, 4.0, 1.0]),
        np.array([[0, 0.2, -3, 0], [2, 0, 0.1, 0], [0, -2, 0.3, 0], [0, 0, 0, 1.0]]),
    ):
        expected = as_closest_canonical(Nifti1Image(volume, affine)).get_fdata()
        np.testing.assert_allclose(upright(volume, affine), expected)
