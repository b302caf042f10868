"""Charts of chains and of sureness carry the numbers they claim."""

import numpy as np

from appca.plots import check


def chains(seed, shape=(3, 400)):
    return np.random.default_rng(seed).normal(size=shape)


def test_a_trace_is_every_draw_at_its_sweep(seed):
    draws = chains(seed)
    figure = check.traces(draws, "Noise variance", first=205, step=5)
    assert [line.name for line in figure.data] == ["chain 1", "chain 2", "chain 3"]
    for line, chain in zip(figure.data, draws, strict=True):
        np.testing.assert_array_equal(line.y, chain)
        assert (line.x[0], line.x[1], line.x[-1]) == (205, 210, 205 + 5 * 399)
    assert figure.layout.yaxis.title.text == "Noise variance"
    assert len({line.line.color for line in figure.data}) == 3


def test_a_long_trace_is_drawn_by_an_even_selection_at_the_right_sweeps():
    draws = np.arange(10_000.0)[None]
    (line,) = check.traces(draws, "x").data
    assert len(line.x) == 2000
    np.testing.assert_array_equal(line.x, line.y + 1)


def test_the_burn_in_is_shaded_as_far_as_it_went():
    values = -100.0 + np.arange(30.0)
    figure = check.likelihood_with_burn_in(values, 10, 12)
    np.testing.assert_allclose(figure.data[0].y, values / 10)
    (shade,) = figure.layout.shapes
    assert (shade.x0, shade.x1) == (0.5, 12.5)
    assert check.likelihood_with_burn_in(values, 10, 500).layout.shapes[0].x1 == 30.5
    assert not check.likelihood_with_burn_in(values, 10, 0).layout.shapes


def test_all_that_was_kept_is_in_sight_and_a_long_climb_does_not_flatten_it():
    values = np.concatenate([np.linspace(-1e6, -100, 20), -100 + np.sin(np.arange(50.0))])
    low, high = check.likelihood_with_burn_in(values, 1, 20).layout.yaxis.range
    assert -106 < low < -101 < -99 < high < -98
    low, high = check.likelihood_with_burn_in(values[20:], 1, 0).layout.yaxis.range
    assert low < values[20:].min() < values[20:].max() < high


def test_membership_counts_every_row_and_colours_the_doubtful(seed):
    values = np.random.default_rng(seed).random(500).astype(np.float32)
    values[:3] = (0.0, 1.0, 1.0000001)
    (bars,) = check.membership(values).data
    counts, colours = np.asarray(bars.y), np.asarray(bars.marker.color)
    assert counts.sum() == 500
    assert counts[colours == check.DOUBTFUL].sum() == np.sum(values < 0.5)
    assert bars.customdata[np.flatnonzero(colours == check.DOUBTFUL)[-1]][1] == 0.5
