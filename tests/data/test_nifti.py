"""Tests of brain recordings: files, masks, events and voxel positions."""

import gzip
import io
import struct

import nibabel
import numpy as np
import pytest

from appca.data import brain
from appca.data.brain import Event, blocks, has_places, mask_of, side_by_side
from appca.data.dataset import Dataset
from appca.data.readers import read_many
from appca.words import InputError
from tests.data.file_makers import nifti

VOLUMES, AFFINE = 20, np.diag([-3.0, 3.0, 4.0, 1.0])
OBLIQUE = np.array([[0, 0.2, -3, 40], [2, 0, 0.1, -9], [0, -2.5, 0.3, 7], [0, 0, 0, 1.0]])
VALUES = (100 + np.random.default_rng(0).integers(0, 50, (5, 6, 4, VOLUMES))).astype(np.int16)
MASK = np.zeros((5, 6, 4), dtype=np.uint8)
MASK[1:4, 2:5, 1:3] = 1
INSIDE, EVENTS = MASK.astype(bool), b"onset\tduration\n10\t6\n30\t6\n"


def recording(values=VALUES, mask=MASK, events=None, **header) -> Dataset:
    """Read a recording with a mask and events, if there are any."""
    data = values if isinstance(values, bytes) else nifti(values, **header)
    files = [] if mask is None else [("run_mask.nii", io.BytesIO(nifti(mask)))]
    files += [] if events is None else [("e.tsv", io.BytesIO(events))]
    return read_many([*files, ("run.nii", io.BytesIO(data))])


def altered(place: int, *codes: int) -> bytes:
    data = bytearray(nifti(VALUES))
    data[place : place + len(codes)] = bytes(codes)
    return bytes(data)


def test_voxels_are_rows_and_volumes_columns_without_drift():
    dataset = recording()
    assert dataset.ids[0] == "voxel-1-2-1"
    assert dataset.feature_names[:3] == ("0 s", "2 s", "4 s")
    times, series = np.arange(VOLUMES), VALUES[INSIDE].astype(float)
    expected = series - [np.polyval(np.polyfit(times, row, 3), times) for row in series]
    np.testing.assert_allclose(dataset.X, expected / expected.std(), atol=1e-4)
    np.testing.assert_allclose(dataset.labels["mean signal"], series.mean(axis=1))
    for values in (VALUES[..., None], VALUES[:, :, :, None], gzip.compress(nifti(VALUES))):
        assert recording(values).digest == dataset.digest
    assert np.argwhere(INSIDE).tolist() == brain.voxels_of(dataset).tolist()
    cropped = recording(mask=None)
    assert cropped.n_rows == MASK.size
    assert "no background" in cropped.provenance["report"]["notes"]["Voxels"]
    np.testing.assert_allclose(dataset.provenance["affine"], AFFINE)
    values = VALUES.astype(np.float32)
    values[1, 2, 1] = 7  # never changes
    values[2, 3, 1, 5] = np.nan
    dataset = recording(values)
    assert (dataset.n_rows, dataset.provenance["report"]["dropped"]) == (16, 2)


def test_the_mask_is_the_largest_part_without_its_corners():
    """Erosion leaves a box of 6 x 5 x 4; dilation takes in what is two steps from it at most."""
    mean = np.zeros((20, 16, 14))
    mean[2:12, 3:12, 4:12] = 100
    mean[14:19, 8:13, 6:11] = 100  # of which erosion leaves one voxel
    low, high = np.array([4, 5, 6]), np.array([9, 9, 9])
    places = np.moveaxis(np.indices(mean.shape), 0, -1)
    steps = np.maximum(np.maximum(low - places, places - high), 0).sum(axis=-1)
    np.testing.assert_array_equal(mask_of(mean), steps <= 2)


def _large_header() -> bytes:
    header = nibabel.Nifti1Header()
    header.set_data_shape((2000, 2000, 2000, 500))
    header.set_zooms((3.0, 3.0, 3.0, 2.0))
    header["vox_offset"], header["magic"] = 352, b"n+1"
    return header.binaryblock + bytes(4)


@pytest.mark.parametrize(
    ("values", "mask", "words"),
    [
        (VALUES[..., 0], MASK, "is 3-dimensional (5 x 6 x 4)"),
        (VALUES[..., :1], MASK, "(5 x 6 x 4 x 1); a recording over time has four dimensions"),
        (VALUES[..., :9], MASK, "at least 16 volumes"),
        (b"no brain" * 90, MASK, "is not a readable NIfTI file"),
        (b"", None, "is empty"),
        (nifti(VALUES, step=0.0), MASK, "pixdim[4]"),
        (nifti(VALUES)[:-500], MASK, "is truncated"),
        (np.zeros_like(VALUES), None, "varies over time"),
        (np.full_like(VALUES, 3), MASK, "varies over time"),
        (VALUES, MASK[:4], "“run_mask.nii” has the grid 4 x 6 x 4, but the recording has 5 x 6"),
        (VALUES, 0 * MASK, "is zero everywhere"),
        (VALUES.astype(np.float32) * np.float32(1e35), MASK, "beyond 1e19"),
        (_large_header(), None, "would become"),
        *(
            (altered(280, *struct.pack("<f", side)), None, "affine")
            for side in (0.0, np.nan, 1e-30, 1e30)  # srow_x
        ),
    ],
)
def test_a_bad_recording_is_refused_in_one_sentence(values, mask, words):
    with pytest.raises(InputError) as caught:
        recording(values, mask)
    assert words in str(caught.value)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_events_come_with_a_recording_from_tabs_or_commas(tmp_path, monkeypatch):
    dataset = recording(events=EVENTS)
    assert brain.events_of(dataset) == (Event(10.0, 6.0), Event(30.0, 6.0))
    assert brain.parsed("10+6 30+6") == brain.events_of(dataset)
    with pytest.raises(InputError, match="onset\\+duration"):
        brain.parsed("10 to 16")
    table = "\ufeffduration,onset,trial_type\r\n16,10,faces\r\n0,30,places\r\n".encode()
    events = brain.events_of(recording(events=table))
    assert events == (Event(10.0, 16.0, "faces"), Event(30.0, 0.0, "places"))
    for text, words in (
        ("onset\tlength\n1\t2\n", "duration is missing"),
        ("onset\tduration\n", "contains 0 events"),
        ("onset\tduration\n1\tn/a\n", "Line 2 of “e.tsv”"),
        ("onset\tduration\n1\t-2\n", "not below 0"),
        ("onset\tduration\n1\n", "both must be numbers"),
        ("onset\tduration\n1\t1\n40\t1\n", "1 of 2 events are outside .* which lasts 40 s"),
    ):
        with pytest.raises(InputError, match=words):
            recording(events=text.encode())
    monkeypatch.setenv("APPCA_DATA", str(tmp_path))
    for key, words in (
        ("shared", r"bold\.nii\.gz and sub-02_task-oneback_run-1_events\.tsv"),
        ("other", "There is no recording “other”"),
    ):
        with pytest.raises(InputError, match=words):
            brain.load(key)


def test_events_of_one_type_with_less_than_a_volume_between_them_are_one_block():
    events = [Event(10.0 + i, 0.5, "face") for i in range(4)]
    other, late = Event(14.25, 1.0, "house"), Event(30.0, 2.0, "house")
    assert blocks([late, *events[::-1], other], 2.0) == [Event(10.0, 3.5, "face"), other, late]
    assert len(blocks(events, 0.05)) == 4
    long, short = Event(0.0, 9.0, "a"), Event(1.0, 2.0, "a")
    assert blocks([long, short], 2.0) == [long]


def placed(voxels: np.ndarray, affine: np.ndarray) -> Dataset:
    ids = np.array(["voxel-{}-{}-{}".format(*voxel) for voxel in voxels])
    facts = {"grid": [5, 7, 6], "affine": affine.tolist(), "repetition": 2.0}
    return Dataset("r", np.random.default_rng(0).random((len(ids), 20)), ids, provenance=facts)


@pytest.mark.parametrize("affine", [AFFINE, np.diag([2.0, 2.0, 2.0, 1.0]), OBLIQUE])
def test_slices_are_horizontal_and_true_to_scale_and_do_not_overlap(affine):
    voxels = np.argwhere(np.random.default_rng(1).random((5, 7, 6)) < 0.4)
    places, turn = side_by_side(placed(voxels, affine)), affine[:3, :3].T
    vertical = np.abs(turn[:, 2]).argmax()  # the index along which voxels go up
    upwards, millimetres = np.sign(turn[vertical, 2]) * voxels[:, vertical], voxels @ turn
    corners = []
    for height in np.unique(upwards):
        own, world = places[upwards == height], millimetres[upwards == height]
        apart, true = (np.linalg.norm(x[:, None] - x, axis=2) for x in (own, world))
        np.testing.assert_allclose(apart, true, atol=0.1 * apart.max())
        for axis in (0, 1):  # right is right, the front is at the top
            assert np.corrcoef(own[:, axis], world[:, axis])[0, 1] > 0.98
        low, high = own.min(axis=0), own.max(axis=0)
        assert all((low > top).any() or (high < bottom).any() for bottom, top in corners)
        for before, _ in corners[-1:]:
            assert low[0] > before[0] or low[1] < before[1]  # right of it, or below
        corners.append((low, high))
    assert max(np.ptp(places, axis=0)) / min(np.ptp(places, axis=0)) < 2.5


def test_units_of_time_and_odd_headers_are_read(capfd):
    for step, unit, seconds in (
        *((2.0, "sec", 2.0), (800.0, "msec", 0.8)),
        *((1500.0, "unknown", 1.5), (3.0, "unknown", 3.0)),
    ):
        assert recording(step=step, unit=unit).provenance["repetition"] == pytest.approx(seconds)
    for place, code in ((123, 0xFF), (254, 0x77)):  # a unit and a place that do not exist
        assert recording(altered(place, code)).n_rows == 18
    assert capfd.readouterr().err == "", "nibabel repairs it and is silent"


def test_a_map_is_written_where_its_voxels_were_and_rows_must_be_voxels_of_the_grid():
    values = np.arange(1.0, INSIDE.sum() + 1)
    packed = brain.nifti_bytes(INSIDE, AFFINE, values)
    image = nibabel.Nifti1Image.from_bytes(gzip.decompress(packed))
    np.testing.assert_allclose(image.affine, AFFINE)
    np.testing.assert_allclose(image.get_fdata()[INSIDE], values)
    assert not image.get_fdata()[~INSIDE].any()
    for voxel in ((5, 0, 0), (0, 0, -1)):
        with pytest.raises(InputError, match="not voxels of its grid"):
            side_by_side(placed(np.array([(0, 0, 0), voxel]), AFFINE))
    assert not has_places(Dataset("p", np.eye(3), list("abc"), provenance={"grid": [5, 7, 6]}))
