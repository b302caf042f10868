import numpy as np
import pytest

from appca.plots.curves import loss


def test_the_axis_shows_all_but_the_first_steep_epochs():
    losses = np.r_[900.0, np.linspace(120, 100, 29)]
    figure = loss(losses)
    np.testing.assert_array_equal(figure.data[0].x, np.arange(1, 31))
    np.testing.assert_array_equal(figure.data[0].y, losses)
    low, high = figure.layout.yaxis.range
    assert low < 100
    assert 117 < high < 125


@pytest.mark.parametrize("losses", [[5.0], [-3.0, -3.0]])
def test_a_flat_or_single_loss_still_has_an_axis(losses):
    low, high = loss(np.array(losses)).layout.yaxis.range
    assert low < losses[0] < high
