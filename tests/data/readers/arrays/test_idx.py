import gzip
import io
import struct

import numpy as np
import pytest

from appca.data.files import ReadLimits
from appca.data.readers import kind_of, read, read_many
from appca.words import InputError


def idx(values, code=0x08):
    """Write by the format's own description: zeros, type, number of sides, sides, numbers."""
    sides = struct.pack(f">{values.ndim}I", *values.shape)
    return bytes([0, 0, code, values.ndim]) + sides + values.tobytes()


def file(values, code=0x08):
    return io.BytesIO(idx(values, code))


def noise(seed, *shape):
    return np.random.default_rng(seed).integers(256, size=shape, dtype=np.uint8)


def test_images_and_labels_find_each_other_whatever_their_order(seed):
    images, labels = noise(seed, 7, 4, 3), np.arange(7, dtype=np.uint8) % 3
    pair = [("x-labels-idx1-ubyte", file(labels)), ("x-images-idx3-ubyte", file(images))]
    for files in (pair, pair[::-1]):
        dataset = read_many(files)
        np.testing.assert_array_equal(dataset.X, images.reshape(7, 12))
        np.testing.assert_array_equal(dataset.labels["class"], labels)
        assert dataset.image_shape == (4, 3)
        assert dataset.X.dtype == np.uint8


def test_parts_of_one_kind_are_put_below_each_other_with_their_own_labels(seed):
    train, test = noise(seed, 5, 2, 2), noise([seed, 1], 3, 2, 2)
    files = [
        ("t10k-labels.idx", file(np.full(3, 9, np.uint8))),
        ("train-images.idx", file(train)),
        ("train-labels.idx", file(np.full(5, 4, np.uint8))),
        ("t10k-images.idx", file(test)),
    ]
    dataset = read_many(files)
    np.testing.assert_array_equal(dataset.X, np.vstack([train.reshape(5, 4), test.reshape(3, 4)]))
    assert dataset.labels["class"].tolist() == [4] * 5 + [9] * 3
    assert dataset.labels["file"].tolist() == ["train-images"] * 5 + ["t10k-images"] * 3


@pytest.mark.parametrize(
    ("code", "written", "kept"),
    [(0x09, "i1", "f8"), (0x0B, ">i2", "f8"), (0x0C, ">i4", "f8"), (0x0D, ">f4", "f4"),
     (0x0E, ">f8", "f8")],
)  # fmt: skip
def test_every_type_of_the_format_is_read_number_for_number(code, written, kept, seed):
    values = np.random.default_rng(seed).integers(-9, 9, size=(6, 5)).astype(written)
    dataset = read("values.idx", file(values, code))
    np.testing.assert_array_equal(dataset.X, values)
    assert dataset.X.dtype == np.dtype(kept)
    assert dataset.image_shape is None


def test_packed_files_are_known_by_their_content_whatever_they_are_called(seed):
    images = noise(seed, 6, 3, 3)
    packed = io.BytesIO(gzip.compress(idx(images)))
    assert kind_of("my digits.gz", packed) == "idx"
    np.testing.assert_array_equal(read("my digits.gz", packed).X, images.reshape(6, 9))
    assert kind_of("notes.gz", io.BytesIO(gzip.compress(b"notes"))) is None


def test_bytes_stay_on_the_disk_and_the_temporary_file_has_no_name(seed, tmp_path):
    images = noise(seed, 50, 8, 8)
    dataset = read(
        "x.idx.gz", io.BytesIO(gzip.compress(idx(images))), limits=ReadLimits(scratch=tmp_path)
    )
    base = dataset.X
    while base.base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)
    assert list(tmp_path.iterdir()) == []
    np.testing.assert_array_equal(dataset.X, images.reshape(50, 64))


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"a.idx": b""}, "is empty"),
        ({"a.idx": b"\0\0\x08"}, "not an IDX file"),
        ({"a.idx": b"\0\0\x07\x01" + bytes(8)}, "not an IDX file"),
        ({"a.idx": b"\0\0\x08\x03" + bytes(5)}, "ends within its header"),
        ({"a.idx": idx(noise(0, 4, 3, 3))[:-1]}, "must hold 4 x 3 x 3 numbers in 36 bytes"),
        ({"a.idx": idx(noise(0, 4, 3, 3)) + b"1"}, "it holds 37, so copy"),
        ({"a.idx": idx(noise(0, 4))}, "holds labels alone"),
        ({"a.idx": idx(noise(0, 4, 3)), "b.idx": idx(noise(0, 5))}, "5 labels and “a.idx” 4"),
        ({"a.idx": idx(noise(0, 4, 3)), "b.idx": idx(noise(0, 4, 2))}, "has images of 2"),
        (
            {"a.idx": idx(noise(0, 4, 3)), "b.idx": idx(noise(0, 4)), "c.idx": idx(noise(1, 4))},
            "1 file of images and 2 of labels",
        ),
        (
            {"a.idx": idx(noise(0, 4, 3)), "b.idx": idx(noise(1, 4, 3)),
             "c.idx": idx(noise(0, 4)), "d.idx": idx(noise(1, 4))},
            "names do not say which images",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_in_one_sentence(files, words):
    with pytest.raises(InputError, match=words):
        read_many([(name, io.BytesIO(data)) for name, data in files.items()])


def test_a_header_that_promises_more_than_the_limit_makes_nothing_of_that_size():
    promise = bytes([0, 0, 8, 2]) + struct.pack(">2I", 2**31, 2**31) + b"few bytes"
    with pytest.raises(InputError, match="must hold 2147483648 x 2147483648"):
        read("a.idx", io.BytesIO(promise))


@pytest.mark.real_data
def test_mnist_under_another_name_is_what_the_own_reader_makes_of_it(data_folder):
    from appca.data.sources import load

    files = [
        data_folder / "mnist" / f"train-{end}-ubyte.gz" for end in ("images-idx3", "labels-idx1")
    ]
    dataset = read_many([("mine-images.gz", files[0]), ("mine-labels.gz", files[1])])
    known = load("mnist", data_folder=data_folder)
    rows = np.array([int(one.rsplit("-", 1)[-1]) for one in dataset.ids[:500]]) - 1
    np.testing.assert_array_equal(rows, np.arange(500))
    np.testing.assert_array_equal(dataset.X[: known.n_rows], known.X)
    np.testing.assert_array_equal(
        dataset.labels["class"][: known.n_rows],
        np.ravel(next(iter(known.labels.values()))).astype(int),
    )
