import itertools

import numpy as np

from appca.canvas.layouts import seriated_cells


def shared_of_neighbours(components, places):
    at = dict(zip(places, components, strict=True))
    return np.mean(
        [
            len(set(one) & set(at[beside]))
            for (column, row), one in at.items()
            for beside in ((column + 1, row), (column, row + 1))
            if beside in at
        ]
    )


def test_neighbours_share_components_and_places_are_the_same_each_time():
    components = list(itertools.combinations(range(8), 3))
    counts = np.arange(len(components), 0, -1)
    places = seriated_cells(components, counts)
    assert len(set(places)) == len(components)
    assert places == seriated_cells(components, counts)
    n_columns = max(column for column, _ in places) + 1
    in_turn = [divmod(p, n_columns)[::-1] for p in range(len(components))]
    assert shared_of_neighbours(components, places) > 1.5
    assert shared_of_neighbours(components, places) > shared_of_neighbours(components, in_turn)


def test_a_grid_may_hold_one_panel_or_a_row_without_components():
    assert seriated_cells([()], np.array([3])) == [(0, 0)]
    assert len(set(seriated_cells([(), (0,), (0, 1)], np.array([1, 5, 2])))) == 3
