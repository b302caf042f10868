"""Brain recordings as files: what is read, and one sentence for what cannot be."""

import gzip
import io
import struct

import nibabel
import numpy as np
import pytest

from appca.data import brain
from appca.data.brain import Event, check_events, mask_of, read_events
from appca.data.readers import read, read_many
from appca.words import InputError
from tests.data.file_makers import nifti

SHAPE, VOLUMES = (5, 6, 4), 20
AFFINE = np.diag([-3.0, 3.0, 4.0, 1.0])


def file(values: np.ndarray, **header) -> io.BytesIO:
    return io.BytesIO(nifti(values, **header))


@pytest.fixture
def volumes() -> np.ndarray:
    rng = np.random.default_rng(0)
    return (100 + rng.integers(0, 50, (*SHAPE, VOLUMES))).astype(np.int16)


@pytest.fixture
def mask() -> np.ndarray:
    inside = np.zeros(SHAPE, dtype=np.uint8)
    inside[1:4, 2:5, 1:3] = 1
    return inside


def refusal(name: str, content: object, **options) -> str:
    with pytest.raises(InputError) as caught:
        read(name, content, **options)
    sentence = str(caught.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence


def test_voxels_are_rows_and_volumes_columns_without_drift(volumes, mask):
    dataset = read("run.nii", file(volumes), mask=file(mask))
    inside = mask.astype(bool)
    assert dataset.X.shape == (18, VOLUMES)
    assert dataset.ids[0] == "voxel-1-2-1"
    assert dataset.feature_names[:3] == ("0 s", "2 s", "4 s")
    times = np.arange(VOLUMES)
    expected = np.stack(
        [
            row - np.polyval(np.polyfit(times, row, 3), times)
            for row in volumes[inside].astype(float)
        ]
    )
    expected /= expected.std()
    np.testing.assert_allclose(dataset.X, expected, atol=1e-4)
    np.testing.assert_allclose(dataset.labels["mean signal"], volumes[inside].mean(axis=1))


@pytest.mark.parametrize("axis", [3, 4])
def test_a_side_of_one_more_makes_no_difference(volumes, mask, axis):
    known = read("run.nii", file(volumes), mask=file(mask))
    dataset = read("run.nii", file(np.expand_dims(volumes, axis)), mask=file(mask))
    assert dataset.digest == known.digest


def test_a_data_set_gives_the_recording_back(volumes, mask):
    dataset = read("run.nii.gz", io.BytesIO(gzip.compress(nifti(volumes))), mask=file(mask))
    recording = brain.of_dataset(dataset)
    np.testing.assert_array_equal(recording.mask, mask.astype(bool))
    np.testing.assert_allclose(recording.affine, AFFINE)
    np.testing.assert_allclose(recording.series, dataset.X, atol=1e-5)  # cleaning twice is once
    assert recording.repetition == 2.0


@pytest.mark.parametrize(
    ("step", "unit", "seconds"),
    [(2.0, "sec", 2.0), (800.0, "msec", 0.8), (1500.0, "unknown", 1.5), (3.0, "unknown", 3.0)],
)
def test_the_time_of_a_volume_is_in_seconds_whatever_its_unit(volumes, mask, step, unit, seconds):
    dataset = read("run.nii", file(volumes, step=step, unit=unit), mask=file(mask))
    assert dataset.provenance["repetition"] == pytest.approx(seconds)


def test_without_a_mask_the_bright_middle_is_the_brain():
    rng = np.random.default_rng(1)
    values = rng.normal(20, 2, (16, 16, 12, VOLUMES))
    values[3:13, 3:13, 2:10] += 900
    dataset = read("run.nii", file(values.astype(np.float32)))
    found = brain.of_dataset(dataset).mask
    bright = np.zeros(found.shape, dtype=bool)
    bright[3:13, 3:13, 2:10] = True
    assert (found & ~bright).sum() == 0
    assert found.sum() > 0.6 * bright.sum()  # its rim is eaten away


def test_the_mask_is_the_largest_part_without_its_corners():
    """Erosion leaves a box of 6 x 5 x 4; dilation takes in what is two steps from it at most."""
    mean = np.zeros((20, 16, 14))
    mean[2:12, 3:12, 4:12] = 100
    mean[14:19, 8:13, 6:11] = 100  # of which erosion leaves one voxel
    low, high = np.array([4, 5, 6]), np.array([9, 9, 9])
    places = np.moveaxis(np.indices(mean.shape), 0, -1)
    steps = np.maximum(np.maximum(low - places, places - high), 0).sum(axis=-1)
    np.testing.assert_array_equal(mask_of(mean), steps <= 2)


def test_voxels_that_never_change_or_are_no_number_are_left_out(volumes, mask):
    values = volumes.astype(np.float32)
    values[1, 2, 1] = 7
    values[2, 3, 1, 5] = np.nan
    dataset = read("run.nii", file(values), mask=file(mask))
    assert dataset.n_rows == 16
    assert dataset.provenance["report"]["dropped"] == 2


def test_bad_recordings_are_one_sentence(volumes, mask):
    assert "is 3-dimensional (5 x 6 x 4)" in refusal("a.nii", file(volumes[..., 0]))
    assert "holds 1 volume;" in refusal("a.nii", file(volumes[..., :1]))
    assert "at least 16 volumes" in refusal("a.nii", file(volumes[..., :9]), mask=file(mask))
    assert "cannot be read as a NIfTI file" in refusal("a.nii", io.BytesIO(b"no brain" * 90))
    assert "is empty" in refusal("a.nii", io.BytesIO(b""))
    assert "pixdim[4]" in refusal("a.nii", file(volumes, step=0.0))
    broken = io.BytesIO(nifti(volumes)[:-500])
    assert "is truncated" in refusal("a.nii", broken, mask=file(mask))
    assert "give a mask, too" in refusal("a.nii", file(np.zeros_like(volumes)))
    still = np.full_like(volumes, 3)
    assert "nothing varies over time" in refusal("a.nii", file(still), mask=file(mask))


def test_masks_that_do_not_fit_are_one_sentence(volumes, mask):
    other = refusal("a.nii", file(volumes), mask=file(mask[:4]), mask_name="m.nii")
    assert "The mask “m.nii” is 4 x 6 x 4, the recording 5 x 6 x 4" in other
    assert "is zero everywhere" in refusal("a.nii", file(volumes), mask=file(0 * mask))


def test_a_header_that_promises_too_much_is_refused_before_anything_is_made():
    header = nibabel.Nifti1Header()
    header.set_data_shape((2000, 2000, 2000, 500))
    header.set_zooms((3.0, 3.0, 3.0, 2.0))
    header["vox_offset"], header["magic"] = 352, b"n+1"
    assert "would become" in refusal("a.nii", io.BytesIO(header.binaryblock + bytes(4)))


@pytest.mark.parametrize("side", [0.0, np.nan, 1e-30, 1e30])
def test_voxels_without_a_place_in_space_are_one_sentence(volumes, side):
    data = bytearray(nifti(volumes))
    struct.pack_into("<f", data, 280, side)  # srow_x
    assert "affine" in refusal("a.nii", io.BytesIO(data))


def test_numbers_too_large_to_square_are_one_sentence(volumes, mask):
    large = volumes.astype(np.float32) * np.float32(1e35)
    assert "beyond 1e19" in refusal("a.nii", file(large), mask=file(mask))


def test_what_a_header_has_wrong_and_nibabel_mends_is_not_printed(volumes, mask, capfd):
    data = bytearray(nifti(volumes))
    data[123] = 0xFF  # a unit that does not exist
    data[254] = 0x77  # a code of the place that does not exist
    assert read("a.nii", io.BytesIO(bytes(data)), mask=file(mask)).n_rows == 18
    assert capfd.readouterr().err == ""


def test_events_are_read_from_tabs_or_commas():
    tabs = io.BytesIO(b"onset\tduration\ttrial_type\n10\t16\tfaces\n40\t0\tplaces\n")
    commas = io.BytesIO("\ufeffduration,onset\r\n16,10\r\n0,40\r\n".encode())
    events = (Event(10.0, 16.0), Event(40.0, 0.0))
    assert read_events("e.csv", commas) == events
    assert read_events("e.tsv", tabs) == (Event(10.0, 16.0, "faces"), Event(40.0, 0.0, "places"))
    assert brain.parsed("10+16 40+0") == events


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("onset\tlength\n1\t2\n", "duration is missing"),
        ("onset\tduration\n", "holds 0 events"),
        ("onset\tduration\n1\tn/a\n", "Line 2 of “e.tsv”"),
        ("onset\tduration\n1\t-2\n", "not below 0"),
        ("onset\tduration\n1\n", "both must be numbers"),
    ],
)
def test_bad_events_are_one_sentence(text, words):
    with pytest.raises(InputError, match=words):
        read_events("e.tsv", io.BytesIO(text.encode()))


def test_events_beyond_the_end_are_one_sentence():
    check_events([Event(39.9, 5.0)], VOLUMES, 2.0)
    with pytest.raises(InputError, match="1 of 2 events lie outside the recording, which lasts 40"):
        check_events([Event(1.0, 1.0), Event(40.0, 1.0)], VOLUMES, 2.0)


def test_a_recording_comes_with_its_mask_and_a_table_of_events(volumes, mask):
    table = b"onset\tduration\n10\t6\n30\t6\n"
    files = [
        ("run_events.tsv", io.BytesIO(table)),
        ("run.nii", file(volumes)),
        ("run_mask.nii", file(mask)),
    ]
    dataset = read_many(files)
    assert dataset.n_rows == 18
    assert dataset.provenance["events"] == [
        {"onset": 10.0, "duration": 6.0, "trial_type": ""},
        {"onset": 30.0, "duration": 6.0, "trial_type": ""},
    ]
    with pytest.raises(InputError, match="lie outside the recording"):
        read_many([("late.tsv", io.BytesIO(table.replace(b"30", b"99"))), *files[1:]])


def test_settings_that_are_no_events_are_refused():
    with pytest.raises(InputError, match="onset\\+duration"):
        brain.parsed("10 to 16")


def test_a_map_goes_out_where_its_voxels_were(mask):
    inside = mask.astype(bool)
    values = np.arange(1.0, inside.sum() + 1)
    image = nibabel.Nifti1Image.from_bytes(
        gzip.decompress(brain.nifti_bytes(inside, AFFINE, values))
    )
    np.testing.assert_allclose(image.affine, AFFINE)
    np.testing.assert_allclose(image.get_fdata()[inside], values)
    assert not image.get_fdata()[~inside].any()


def test_a_recording_that_is_not_there_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("APPCA_DATA", str(tmp_path))
    with pytest.raises(
        InputError, match=r"bold\.nii\.gz and sub-02_task-oneback_run-1_events\.tsv"
    ):
        brain.load("shared")
    with pytest.raises(InputError, match="There is no recording “other”"):
        brain.load("other")
