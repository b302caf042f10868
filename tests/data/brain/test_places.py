"""The places of voxels: in slices side by side as their millimetres say, and what is no voxel."""

import numpy as np
import pytest

from appca.data.brain import GAP, Event, blocks, has_places, side_by_side
from appca.data.dataset import Dataset
from appca.words import InputError

GRID = (5, 7, 6)
OBLIQUE = np.array([[0, 0.2, -3, 40], [2, 0, 0.1, -9], [0, -2.5, 0.3, 7], [0, 0, 0, 1.0]])
AFFINES = [np.diag([-3.0, 3.0, 4.0, 1.0]), np.diag([2.0, 2.0, 2.0, 1.0]), OBLIQUE]


def recording(voxels: np.ndarray, affine: np.ndarray) -> Dataset:
    ids = np.array(["voxel-{}-{}-{}".format(*voxel) for voxel in voxels])
    facts = {"grid": list(GRID), "affine": affine.tolist(), "repetition": 2.0}
    return Dataset("r", np.random.default_rng(0).random((len(ids), 20)), ids, provenance=facts)


@pytest.mark.parametrize("affine", AFFINES)
def test_slices_are_horizontal_and_true_to_scale_and_do_not_overlap(affine):
    voxels = np.argwhere(np.random.default_rng(1).random(GRID) < 0.4)
    places = side_by_side(recording(voxels, affine))
    turn = affine[:3, :3].T
    vertical = np.abs(turn[:, 2]).argmax()  # the index along which voxels go up
    upwards = np.sign(turn[vertical, 2]) * voxels[:, vertical]
    millimetres = voxels @ turn
    corners = []
    for height in np.unique(upwards):
        inside = upwards == height
        own, world = places[inside], millimetres[inside]
        apart = np.linalg.norm(own[:, None] - own, axis=2)
        np.testing.assert_allclose(
            apart, np.linalg.norm(world[:, None] - world, axis=2), atol=0.1 * apart.max()
        )
        for axis in (0, 1):  # right is right, the front is at the top
            assert np.corrcoef(own[:, axis], world[:, axis])[0, 1] > 0.98
        corners.append((own.min(axis=0), own.max(axis=0)))
    for i, (low, high) in enumerate(corners):
        for below, above in corners[:i]:
            assert (low > above).any() or (high < below).any()
        before = corners[i - 1][0] if i else None
        assert before is None or low[0] > before[0] or low[1] < before[1]  # right of it, or below
    side = max(np.ptp(places, axis=0)) / min(np.ptp(places, axis=0))
    assert side < 2.5
    assert GAP > 0


def test_rows_that_are_no_voxels_of_the_grid_are_one_sentence():
    for voxel in ((5, 0, 0), (0, 0, -1)):
        with pytest.raises(InputError, match="not the voxels it says"):
            side_by_side(recording(np.array([(0, 0, 0), voxel]), AFFINES[0]))
    plain = Dataset("p", np.eye(3), np.array(["a", "b", "c"]), provenance={"grid": GRID})
    assert not has_places(plain)


def test_events_of_one_type_with_less_than_a_volume_between_them_are_one_block():
    events = [Event(10.0 + i, 0.5, "face") for i in range(4)]
    other, late = Event(14.25, 1.0, "house"), Event(30.0, 2.0, "house")
    assert blocks([late, *events[::-1], other], 2.0) == [Event(10.0, 3.5, "face"), other, late]
    assert len(blocks(events, 0.05)) == 4
    long, short = Event(0.0, 9.0, "a"), Event(1.0, 2.0, "a")
    assert blocks([long, short], 2.0) == [long]
