import numpy as np

from appca.plots.paper.indicators import INK, MOST_ROWS, PAPER, indicators


def test_ones_are_black_and_zeros_white_with_factors_down():
    Z = np.array([[True, False, False], [True, True, False]])
    figure = indicators({"one": Z, "two": ~Z})
    image, other = figure.data
    np.testing.assert_array_equal(image.z, Z.T)
    np.testing.assert_array_equal(other.z, ~Z.T)
    assert [colour for _, colour in image.colorscale] == [PAPER, INK]
    assert (image.zmin, image.zmax) == (0, 1)  # also where all entries are alike
    assert [note.text for note in figure.layout.annotations] == ["one", "two"]
    assert figure.layout.yaxis.range == (3.5, 0.5)  # the first factor on top


def test_a_long_matrix_is_cut_and_one_alone_is_larger():
    Z = np.ones((2 * MOST_ROWS, 2), dtype=bool)
    figure = indicators({"long": Z})
    assert figure.data[0].z.shape == (2, MOST_ROWS)
    assert indicators({"a": Z, "b": Z}).layout.height < 2 * figure.layout.height
