import numpy as np
import pytest

from appca.data.dataset import Dataset, categories, distinct, natural
from appca.words import InputError


def small(**changes):
    parts = {
        "name": "small",
        "X": np.arange(24, dtype=np.float64).reshape(4, 6),
        "ids": np.array(["a", "b", "c", "d"]),
        "labels": {"kind": np.array(["x", "y", "x", "z"]), "size": np.array([3, 1, 2, 1])},
        "image_shape": (2, 3),
    }
    return Dataset(**(parts | changes))


def test_the_parts_are_kept_read_only_and_the_caller_s_array_stays_writable():
    X = np.arange(12, dtype=np.float32).reshape(4, 3)
    dataset = small(X=X, image_shape=None, feature_names=["p", "q", "r"])
    assert (dataset.n_rows, dataset.n_features, dataset.X.dtype) == (4, 3, np.float32)
    assert dataset.feature_names == ("p", "q", "r")
    np.testing.assert_array_equal(dataset.X, X)
    np.testing.assert_array_equal(dataset.labels["size"], [3, 1, 2, 1])
    for array in (dataset.X, dataset.ids, dataset.labels["kind"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]
    X[0, 0] = 2.0


@pytest.mark.parametrize("dtype", [np.int32, np.uint16, np.float16, bool, ">f8"])
def test_other_numbers_become_float64(dtype):
    X = np.arange(24).reshape(4, 6).astype(dtype)
    assert small(X=X).X.dtype == np.float64
    np.testing.assert_array_equal(small(X=X).X, X.astype(float))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"X": np.zeros(6)}, "table of rows and columns"),
        ({"X": np.zeros((1, 6)), "ids": ["a"], "labels": {}}, "at least 2 rows; got 1"),
        ({"X": np.zeros((4, 1)), "image_shape": None}, "at least 2 feature columns; got 1"),
        ({"X": np.array([["a", "b"]] * 4), "image_shape": None}, "holds numbers"),
        ({"X": np.zeros((4, 6), complex)}, "holds numbers"),
        ({"X": np.full((4, 6), np.nan)}, "row 1, column 1 is missing"),
        ({"X": np.full((4, 6), -np.inf)}, "row 1, column 1 is infinite"),
        ({"ids": ["a", "b"]}, "row ids must be one for each of the 4 rows"),
        ({"ids": ["a", "b", "b", "c"]}, "“b” appears more than once"),
        ({"labels": {"kind": np.zeros(3)}}, "“kind” must be one for each of the 4 rows"),
        ({"image_shape": (2, 2)}, "with 6 values in all"),
        ({"image_shape": (6,)}, r"\(h, w\) or \(h, w, 3\)"),
        ({"image_shape": (1, 2, 3, 1)}, r"\(h, w\) or \(h, w, 3\)"),
        ({"image_shape": (3, 1, 2)}, r"\(h, w\) or \(h, w, 3\)"),
        ({"feature_names": ["a"]}, "6 different feature names"),
        ({"feature_names": list("aabcde")}, "6 different feature names; got 5"),
    ],
)
def test_parts_that_do_not_fit_are_refused_in_a_sentence(changes, words):
    with pytest.raises(InputError, match=words) as caught:
        small(**changes)
    assert "\n" not in str(caught.value)


def test_a_missing_value_deep_in_a_large_matrix_is_found(seed):
    rng = np.random.default_rng(seed)
    X = np.zeros((3000, 1000))  # 24 MB: more than one block of the check
    row, column = rng.integers(3000), rng.integers(1000)
    X[row, column] = np.nan
    with pytest.raises(InputError, match=f"row {row + 1}, column {column + 1} "):
        Dataset("x", X, np.arange(3000).astype(str))


@pytest.mark.parametrize(
    "changes",
    [
        {"X": np.arange(24, dtype=np.float32).reshape(4, 6)},
        {"X": np.arange(1, 25, dtype=np.float64).reshape(4, 6)},
        {"ids": ["a", "b", "c", "e"]},
        {"labels": {"kind": np.array(["x", "y", "x", "z"])}},
        {"labels": {"sort": np.array(["x", "y", "x", "z"]), "size": np.array([3, 1, 2, 1])}},
        {"labels": {"kind": np.array(["x", "y", "x", "y"]), "size": np.array([3, 1, 2, 1])}},
        {"image_shape": (3, 2)},
        {"image_shape": None},
        {"feature_names": list("abcdef")},
    ],
)
def test_whatever_matters_to_numbers_or_identity_changes_the_digest(changes):
    assert small(**changes).digest != small().digest


def test_the_digest_does_not_depend_on_memory_layout_text_width_name_or_provenance():
    X = np.arange(24, dtype=np.float64).reshape(4, 6)
    wide = np.array(["a", "b", "c", "d"], dtype="<U40")
    assert small(X=np.asfortranarray(X)).digest == small(ids=wide).digest == small().digest
    assert small(name="other", provenance={"source": "file"}).digest == small().digest


def test_rows_are_taken_with_all_that_belongs_to_them(seed):
    rows = np.random.default_rng(seed).permutation(4)[:3]
    part = small().take(rows)
    np.testing.assert_array_equal(part.X, small().X[rows])
    assert part.ids.tolist() == [small().ids[row] for row in rows]
    assert part.labels["kind"].tolist() == [small().labels["kind"][row] for row in rows]
    assert part.labels["size"].tolist() == [small().labels["size"][row] for row in rows]


def test_grey_values_are_drawn_on_the_scale_of_the_whole_also_in_a_part():
    dataset = small()  # values 0 to 23
    assert dataset.images([3])[0].dtype == np.uint8
    assert dataset.images([0])[0][0, 0] == 0
    assert dataset.images([3])[0][1, 2] == 255
    part = dataset.take(np.array([0, 1]))
    np.testing.assert_array_equal(part.images([1])[0], dataset.images([1])[0])
    assert part.take(np.array([1, 0])).images([0])[0].max() < 255


def test_colour_images_keep_their_channels_in_row_major_order():
    X = np.arange(24, dtype=np.uint8).reshape(4, 6)
    image = small(X=X, image_shape=(1, 2, 3)).images([1])[0]
    assert image.shape == (1, 2, 3)
    assert image[0, 1].tolist() == [9, 10, 11]
    bright = small(X=X, provenance={"image_range": [0, 23]})
    assert bright.images([3])[0][1, 2] == 255


def test_a_table_has_no_images():
    with pytest.raises(InputError, match="has no images"):
        small(image_shape=None).images([0])[0]


def test_categories_are_in_natural_order_with_gaps_last():
    names, codes = categories(np.array(["obj10", "obj2", "", "obj2", "Obj1"]))
    assert names == ["Obj1", "obj2", "obj10", "missing"]
    assert [names[code] for code in codes] == ["obj10", "obj2", "missing", "obj2", "Obj1"]
    texts = ["obj" + digits for digits in ("10", "2", "9" * 5000, "1" + "0" * 5000)]
    assert sorted(texts, key=natural) == [texts[1], texts[0], *texts[2:]]


@pytest.mark.parametrize(
    ("low", "high"), [(-1.7e308, 1.7e308), (0.0, 1e-320), (1e-320, 1e300), (1.0, 1.0), (0.0, 1e35)]
)
def test_images_of_extreme_values_run_from_black_to_white_without_a_warning(low, high):
    values = np.array([[low, high], [high, low]])
    dataset = Dataset("x", values, np.array(["a", "b"]), image_shape=(1, 2))
    white = 255 if high > low else 0
    np.testing.assert_array_equal(dataset.images([0])[0], [[0, white]])
    np.testing.assert_array_equal(dataset.images([1])[0], [[white, 0]])


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64, "U3"])
def test_distinct_rows_are_counted_once_each(dtype):
    X = np.random.default_rng(0).integers(0, 4, (3000, 5)).astype(dtype)
    assert distinct(X) == len({row.tobytes() for row in X})
    assert distinct(X[::2, 1:3]) == len({row.tobytes() for row in X[::2, 1:3]})
    assert distinct(X[:0]) == 0
