"""EM against Gibbs: the ladder of passes, the level that both reach, and what is claimed."""

import numpy as np
import pytest

from appca.studies.speed import STUDY, WAYS, draw, estimator, rungs, times
from appca.words import InputError

SMALL = {"n_rows": 80, "n_features": 10, "n_components": 4, "n_active": 2, "seeds": 1}


@pytest.fixture(scope="module")
def outcome():
    options = STUDY.options("quick", **SMALL, passes=6, sweeps=8)
    return STUDY.run(options, lambda _stage, _share: None, 1)


def _course(*pairs):
    return [{"seconds": float(seconds), "error": value} for seconds, value in pairs]


def test_times_are_taken_at_the_level_that_both_reach_or_at_the_end_of_em():
    em, gibbs = _course((1, 10.0), (2, 5.0), (4, 1.0)), _course((1, 10.0), (40, 5.04), (80, 5.0))
    assert times(em, gibbs, "error") == (2.0, 40.0, True)  # 5 is the worse end; 5.05 is near enough
    assert times(gibbs, em, "error") == (40.0, 2.0, True)
    assert times(em, gibbs, "error", to_end=True) == (4.0, 80.0, False)  # a lower bound
    arrives = _course((1, 10.0), (40, 1.05), (80, 1.0))
    assert times(em, arrives, "error", to_end=True) == (4.0, 40.0, True)
    better = _course((1, 10.0), (20, 0.5))
    assert times(em, better, "error", to_end=True) == (4.0, 20.0, True)  # EM's end counts
    higher = [[row | {"likelihood": -row["error"]} for row in rows] for rows in (em, gibbs)]
    assert times(*higher, "likelihood") == (2.0, 40.0, True)  # a higher likelihood is better


def test_the_rungs_rise_to_the_most_in_steps_of_at_most_a_factor_of_two():
    for most in (1, 2, 5, 8, 100, 256):
        steps = rungs(most)
        ratios = np.divide(steps[1:], steps[:-1])
        assert (steps[0], steps[-1]) == (1, most)
        assert np.all((ratios > 1) & (ratios <= 2))


def test_data_are_of_the_model_and_the_same_for_all_ways():
    options = STUDY.options("quick", n_rows=2000, noise_sd=0.1)
    Y, fresh = draw("aPPCA", 1, options)
    assert Y.shape == fresh.shape == (2000, 50)
    values = np.linalg.eigvalsh(np.cov(Y.T))[::-1]
    np.testing.assert_allclose(values[:8], 4 * 4 / 8, rtol=0.2)  # variance 4, half of the time
    np.testing.assert_allclose(values[8:], 0.01, rtol=0.45)
    assert not np.array_equal(Y, draw("aPPCA", 2, options)[0])


@pytest.mark.parametrize("name", WAYS)
def test_every_way_begins_at_the_principal_components_and_makes_the_passes_asked_for(name):
    options = STUDY.options("quick", **SMALL)
    model = estimator(WAYS[name], 5, options)
    assert model.init == "pca"
    model.fit(draw(WAYS[name].model, 0, options)[0])
    assert model.n_iter_ == 5
    assert (model.inference == "em") is WAYS[name].is_em


def test_every_em_is_compared_with_every_gibbs_of_its_model(outcome):
    table = outcome.tables["speed"]
    assert len(table) == 2 * (1 * 3 + 2 * 1)
    for row in table:
        assert row["ratio_least"] <= row["ratio"] * (1 + 1e-9)
        assert row["ratio"] == pytest.approx(row["seconds_gibbs"] / row["seconds_em"])
        assert row["to_end_reached"] in (0, 1)
    ladder = outcome.tables["ladder"]
    for name in WAYS:
        own = [row["seconds"] for row in ladder if row["way"] == name]
        assert own == sorted(own)  # a longer fit passes through the shorter one
        assert own[0] > 0
    figure = STUDY.figures(outcome)["courses"]
    assert len(figure.data) == 2 * len(WAYS)


def test_there_must_be_something_to_search_for():
    options = STUDY.options("quick", n_active=8)
    with pytest.raises(InputError, match="n_active must be below n_components=8"):
        STUDY.run(options, lambda _stage, _share: None, 1)
