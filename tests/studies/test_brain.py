"""The separation of the made-up brain, whose regions are known, and of recordings like it."""

import numpy as np
import pytest

from appca.data import brain, sources
from appca.data.brain import upright
from appca.plots.studies import TITLE_T
from appca.studies.brain import STUDY, separate, titles_of
from appca.words import InputError


def silent(_stage: str, _share: float) -> None:
    pass


@pytest.fixture(scope="module")
def outcome():
    return STUDY.run(STUDY.options("quick"), silent, 1)


@pytest.fixture(scope="module")
def small() -> brain.Recording:
    """Every tenth voxel of the made-up brain."""
    whole = brain.load("made-up")
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


def test_the_figures_show_each_map_once(outcome):
    drawn = STUDY.figures(outcome)
    titles = [note.text for note in drawn["maps"].layout.annotations]
    assert titles == ["aPPCA, K = 8, L = 3", "PPCA, 3 components", TITLE_T]
    counts = [sum(trace.y) for trace in drawn["errors"].data]
    assert all(0.99 * 2720 <= count <= 2720 for count in counts)
    assert set(titles_of(outcome)) == {"appca", "ppca_l", "ppca_k"}


def test_volumes_are_turned_upright_as_nibabel_does():
    from nibabel import Nifti1Image, as_closest_canonical

    volume = np.random.default_rng(0).random((3, 4, 5))
    for affine in (
        np.diag([-2.0, 3.0, 4.0, 1.0]),
        np.array([[0, 0.2, -3, 0], [2, 0, 0.1, 0], [0, -2, 0.3, 0], [0, 0, 0, 1.0]]),
    ):
        expected = as_closest_canonical(Nifti1Image(volume, affine)).get_fdata()
        np.testing.assert_allclose(upright(volume, affine), expected)


@pytest.mark.slow
@pytest.mark.real_data
def test_the_shared_recording_has_its_stimulus_at_the_back_of_the_brain():
    options = STUDY.options(components=[20], active=[8])
    found = STUDY.run(options, silent, 1)
    row = found.tables["fmri"][0]
    assert row["r"] > 0.5
    assert abs(row["r_shifted"]) < row["r"] / 2
    arrays = found.arrays
    places = np.argwhere(arrays["mask"]) @ arrays["affine"][:3, :3].T + arrays["affine"][:3, 3]
    active = arrays["map_t"] > arrays["threshold"]
    strongest = np.argsort(-arrays["map_appca"])[: active.sum()]
    back = np.quantile(places[:, 1], 0.35)
    assert np.mean(places[active, 1] < back) > 0.7
    assert np.mean(places[strongest, 1] < back) > 0.7
