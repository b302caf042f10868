import io
import zipfile

import numpy as np
import pytest

from appca.cli import main
from appca.data.files import ReadLimits
from appca.data.readers import read
from appca.data.sources import load as built_in
from appca.words import InputError


def saved(**arrays):
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def load(data, **options):
    return read("data.npz", io.BytesIO(data), **options)


def values(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


def test_the_only_matrix_is_taken_and_vectors_of_its_length_name_the_rows(seed):
    X = values(seed, 6, 4)
    data = saved(
        values=X,
        ids=np.array(list("abcdef")),
        kind=np.array(list("xyxyxy")),
        age=np.arange(6) // 2,
        weights=values([seed, 1], 6),
        other=np.arange(5),
    )
    dataset = load(data)
    np.testing.assert_array_equal(dataset.X, X)
    assert dataset.ids.tolist() == list("abcdef")
    assert list(dataset.labels) == ["kind", "age"]
    assert dataset.provenance["report"]["array"] == "values"


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("y", np.arange(5) % 2),
        ("labels", np.array(list("aabba"))),
        ("ids", np.arange(7)),
        ("target", np.zeros(9)),
    ],
)
def test_labels_of_another_length_are_refused(name, given, seed):
    with pytest.raises(InputError, match=f"“{name}” in “data.npz” has {len(given)} entries for"):
        load(saved(X=values(seed, 6, 4), **{name: given}))


def test_labels_of_another_length_may_go_with_another_array_or_name_the_classes(seed):
    train, test = values(seed, 6, 4), values([seed, 1], 5, 4)
    labels = {"y": np.arange(6) % 2, "labels": np.arange(5) % 2}
    dataset = load(saved(X=train, X_test=test, **labels, species=np.array(["u", "v"])))
    assert list(dataset.labels) == ["y"]
    unused = dataset.provenance["report"]["unused"]
    assert unused == {"labels": "5 values for 6 rows", "species": "2 values for 6 rows"}


def test_x_wins_among_several_and_another_can_be_chosen(seed):
    first, second = values(seed, 5, 3), values([seed, 1], 5, 3)
    data = saved(A=second, X=first)
    np.testing.assert_array_equal(load(data).X, first)
    np.testing.assert_array_equal(load(data, array="A").X, second)


def test_several_matrices_need_a_choice_and_are_listed(seed):
    data = saved(a=values(seed, 5, 3), b=values([seed, 1], 4, 3), c=np.arange(5))
    with pytest.raises(
        InputError, match="“a” \\(5 x 3\\), “b” \\(4 x 3\\); choose the one"
    ) as error:
        load(data)
    assert error.value.report["arrays"] == {"a": "5 x 3", "b": "4 x 3"}
    with pytest.raises(InputError, match=r"no array “z” in “data\.npz”; choose of “a”"):
        load(data, array="z")


def test_what_the_command_line_writes_comes_back_with_the_same_digest(tmp_path):
    assert main(["data", "digits", "--out", str(tmp_path / "digits.npz")]) == 0
    dataset = read("digits.npz", tmp_path / "digits.npz", image_shape=(8, 8))
    known = built_in("digits")
    np.testing.assert_array_equal(dataset.X, known.X)
    assert dataset.ids.tolist() == known.ids.tolist()
    assert list(dataset.labels) == list(known.labels)
    np.testing.assert_array_equal(dataset.labels["digit"], known.labels["digit"])


def test_images_keep_their_sides_and_column_order_is_understood(seed):
    stack = np.random.default_rng(seed).integers(256, size=(5, 4, 3), dtype=np.uint8)
    dataset = load(saved(X=np.asfortranarray(stack)))
    assert dataset.image_shape == (4, 3)
    np.testing.assert_array_equal(dataset.image(2), stack[2])


def test_ids_that_repeat_do_not_become_the_row_names(seed):
    assert load(saved(X=values(seed, 3, 2), ids=np.array([1, 1, 2]))).ids.tolist() == [
        "row-1",
        "row-2",
        "row-3",
    ]


def pickled():
    stream = io.BytesIO()
    np.savez(stream, X=np.array([{"a": 1}, [2]], dtype=object))
    return stream.getvalue()


def damaged(seed):
    data = bytearray(saved(X=values(seed, 50, 4)))
    data[300:320] = bytes(20)
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"no zip", "not a zip file"),
        (saved(), "holds no matrix of numbers; save one"),
        (saved(a=np.arange(9)), "holds no matrix of numbers, only “a” \\(9\\)"),
        (pickled(), "holds no matrix of numbers"),
        (saved(X=np.array([["a", "b"], ["c", "d"]])), "holds no matrix of numbers"),
        (damaged(0), "damaged"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_sentence(data, words):
    with pytest.raises(InputError, match=words):
        load(data)


def test_objects_are_refused_also_when_they_are_chosen_by_name():
    with pytest.raises(InputError, match="holds Python objects"):
        load(pickled(), array="X")


def test_an_array_beyond_the_limit_is_refused_by_its_header():
    stream = io.BytesIO()
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6)}
    )
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("X.npy", header.getvalue() + bytes(64))
    with pytest.raises(InputError, match="would become 1,000,000 x 1,000,000"):
        load(stream.getvalue(), limits=ReadLimits())
