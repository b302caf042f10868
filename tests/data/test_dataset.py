"""Tests of data sets: fields, missing values, digests, classes, images, storage, new rows."""

import io
from threading import Thread
from typing import Any

import numpy as np
import pytest

from appca.data.columns import Wanted, matched, read_as, renamed, wanted_by
from appca.data.dataset import Dataset, categories, natural
from appca.data.readers import read
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.plots.style import label_colour
from appca.storage import files
from appca.words import InputError
from tests.sentences import faults_of

X = np.arange(24, dtype=np.float64).reshape(4, 6)
LABELS = {"kind": np.array(["x", "y", "", "ä"]), "size": np.array([3, 1, 2, 1])}


def small(**changes: Any) -> Dataset:
    parts = {"name": "small", "X": X, "ids": np.array(list("abcd")), "labels": LABELS}
    return Dataset(**(parts | {"image_shape": (2, 3)} | changes))


def gappy() -> tuple[Dataset, np.ndarray]:
    """Return data whose gaps hold the means of their columns, and the rows with NaN there."""
    rng = np.random.default_rng(0)
    holes = rng.normal(size=(40, 5)) * np.arange(1, 6) + 3.0
    holes[rng.random((40, 5)) < 0.2] = np.nan
    missing = np.isnan(holes)
    full = np.where(missing, np.nanmean(holes, axis=0), holes)
    return Dataset("gappy", full, np.arange(40).astype(str), missing=missing), holes


@pytest.mark.parametrize("dtype", [np.int32, np.float16, bool, ">f8"])
def test_other_numbers_become_float64_and_all_parts_are_read_only(dtype):
    given = X.astype(dtype)
    dataset = small(X=given)
    assert dataset.X.dtype == np.float64
    np.testing.assert_array_equal(dataset.X, given.astype(float))
    for array in (dataset.X, dataset.ids, dataset.labels["kind"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]
    given[0, 0] = 1  # the caller's array stays writable
    assert small(X=X.astype("f4")).X.dtype == np.float32
    large = np.zeros((3000, 1000))  # 24 MB: more than one block of the check
    large[2345, 678] = np.nan
    with pytest.raises(InputError, match="row 2346, column 679 "):
        Dataset("x", large, np.arange(3000).astype(str))


def test_missing_cells_are_known_and_rows_are_taken_with_all_that_belongs_to_them():
    dataset, holes = gappy()
    np.testing.assert_array_equal(dataset.with_gaps(), holes)
    assert np.isfinite(dataset.X).all()
    assert dataset.n_missing == np.isnan(holes).sum()
    incomplete = np.flatnonzero(np.isnan(holes).any(axis=1))
    np.testing.assert_array_equal(dataset.incomplete_rows, incomplete)
    masked = Dataset("masked", np.ma.masked_invalid(holes), dataset.ids)
    assert masked.digest == dataset.digest
    np.testing.assert_array_equal(masked.with_gaps(), holes)
    assert dataset.take(np.flatnonzero(~dataset.missing.any(axis=1))).missing is None
    assert np.shares_memory(small().with_gaps(), small().X)
    rows = np.array([3, 0, 2])
    for found in (dataset.take(rows).with_gaps(), dataset.with_gaps(rows)):
        np.testing.assert_array_equal(found, holes[rows])
    part = small().take(rows)
    np.testing.assert_array_equal(part.X, X[rows])
    assert part.ids.tolist() == ["d", "a", "c"]
    for name, column in LABELS.items():
        assert part.labels[name].tolist() == column[rows].tolist()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"X": np.zeros(6)}, "table of rows and columns"),
        ({"X": np.zeros((1, 6)), "ids": ["a"], "labels": {}}, "at least 2 rows; got 1"),
        ({"X": np.zeros((4, 1)), "image_shape": None}, "at least 2 feature columns; got 1"),
        ({"X": np.array([["a", "b"]] * 4), "image_shape": None}, "contains numbers"),
        ({"X": np.zeros((4, 6), complex)}, "contains numbers"),
        ({"X": np.full((4, 6), np.nan)}, "row 1, column 1 is missing"),
        ({"X": np.full((4, 6), -np.inf)}, "row 1, column 1 is infinite"),
        ({"ids": ["a", "b"]}, "row ids must be one for each of the 4 rows"),
        ({"ids": ["a", "b", "b", "c"]}, "“b” appears more than once"),
        ({"labels": {"kind": np.zeros(3)}}, "“kind” must be one for each of the 4 rows"),
        ({"image_shape": (2, 2)}, "with 6 values in all"),
        ({"image_shape": (6,)}, r"\(h, w\) or \(h, w, 3\)"),
        ({"image_shape": (3, 1, 2)}, r"\(h, w\) or \(h, w, 3\)"),
        ({"feature_names": ["a"]}, "6 different feature names"),
        ({"feature_names": list("aabcde")}, "6 different feature names; got 5"),
        ({"missing": X[:3] > 1}, "be True or False for each of the 4 x 6 cells"),
        ({"missing": X}, "be True or False for each of the 4 x 6 cells"),
    ],
)
def test_parts_that_do_not_fit_are_refused_in_a_sentence(changes, words):
    with pytest.raises(InputError, match=words) as caught:
        small(**changes)
    assert "\n" not in str(caught.value)


def test_whatever_matters_to_numbers_or_identity_changes_the_digest_and_nothing_else():
    changes = [
        {"X": X.astype(np.float32)},
        {"X": X + 1},
        {"ids": ["a", "b", "c", "e"]},
        {"labels": {"kind": LABELS["kind"]}},
        {"labels": {"sort": LABELS["kind"], "size": LABELS["size"]}},
        {"labels": LABELS | {"size": np.array([3, 1, 2, 2])}},
        {"image_shape": (3, 2)},
        {"image_shape": None},
        {"feature_names": list("abcdef")},
        {"missing": X == 5},
    ]
    assert len({small(**change).digest for change in [{}, *changes]}) == 1 + len(changes)
    for alike in (
        {"X": np.asfortranarray(X)},
        {"ids": np.array(list("abcd"), "<U40")},
        {"name": "other", "provenance": {"source": "file"}},
        {"missing": np.zeros(X.shape, bool)},
    ):
        assert small(**alike).digest == small().digest
    plain = Dataset("plain", np.arange(12.0).reshape(4, 3), np.array(list("abcd")))
    assert (plain.digest[:12], plain.missing) == ("a2ceb31585d2", None), "as in every version"


def test_values_are_drawn_on_the_scale_of_the_whole_also_in_a_part():
    dataset = small()  # values 0 to 23
    assert dataset.images([3])[0].dtype == np.uint8
    assert dataset.images([0])[0][0, 0] == 0
    assert dataset.images([3])[0][1, 2] == 255
    part = dataset.take(np.array([0, 1]))
    np.testing.assert_array_equal(part.images([1])[0], dataset.images([1])[0])
    assert part.take(np.array([1, 0])).images([0])[0].max() < 255
    bytes_ = X.astype(np.uint8)
    image = small(X=bytes_, image_shape=(1, 2, 3)).images([1])[0]
    assert image[0, 1].tolist() == [9, 10, 11], "channels in row-major order"
    assert small(X=bytes_, provenance={"image_range": [0, 23]}).images([3])[0][1, 2] == 255
    with pytest.raises(InputError, match="has no images"):
        small(image_shape=None).images([0])


@pytest.mark.parametrize(
    ("low", "high"), [(-1.7e308, 1.7e308), (0.0, 1e-320), (1e-320, 1e300), (1.0, 1.0), (0.0, 1e35)]
)
def test_images_of_extreme_values_run_from_black_to_white_without_a_warning(low, high):
    values = np.array([[low, high], [high, low]])
    dataset = Dataset("x", values, np.array(["a", "b"]), image_shape=(1, 2))
    white = 255 if high > low else 0
    np.testing.assert_array_equal(dataset.images([0])[0], [[0, white]])
    np.testing.assert_array_equal(dataset.images([1])[0], [[white, 0]])


def test_categories_are_in_natural_order_with_gaps_last():
    names, codes = categories(np.array(["obj10", "obj2", "", "obj2", "Obj1"]))
    assert names == ["Obj1", "obj2", "obj10", "missing"]
    assert [names[code] for code in codes] == ["obj10", "obj2", "missing", "obj2", "Obj1"]
    texts = ["obj" + digits for digits in ("10", "2", "9" * 5000, "1" + "0" * 5000)]
    assert sorted(texts, key=natural) == [texts[1], texts[0], *texts[2:]]


@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_distinct_rows_are_counted_once_each(dtype):
    rng = np.random.default_rng(0)
    X, kind = rng.integers(0, 4, (900, 5)).astype(dtype), rng.choice(["a", "b"], 900)
    for some, labels in ((X, {}), (X[::2, 1:3], {}), (X, {"kind": kind})):
        both = np.column_stack([some, (kind == "a")[: len(some)] * bool(labels)])
        first, ids = np.unique(both, axis=0, return_index=True)[1], np.arange(len(some))
        again = Dataset("d", some, ids, labels).repeated_rows
        assert [*again] == [*np.delete(ids, first)]
        assert all((both[row] == both[of]).all() for row, of in again.items())


@pytest.mark.parametrize("column", [list("dacbda"), [3, 0, 2, 1, 3, 0], ["", *"cabda"]])
def test_a_class_that_is_renamed_or_joined_keeps_the_colours_of_all_others(column):
    rows, labels = np.random.default_rng(0).random((6, 3)), {"kind": np.array(column)}
    before = Dataset("d", rows, np.arange(6).astype(str), labels)
    names, codes = before.classes("kind")
    after = renamed(before, {"kind": {names[0]: "zebra", names[2]: names[1]}, "gone": {"x": "y"}})
    now, coded = after.classes("kind")
    assert now == ["zebra", names[1], *names[3:]]
    assert coded.tolist() == [{0: 0, 1: 1, 2: 1}.get(code, code - 1) for code in codes]
    assert label_colour(after, "kind").names == tuple(n for n in now if n != "missing")
    some = after.take(np.array([0, 1, 4]))
    assert some.classes("kind")[0] == [n for n in now if n in {now[c] for c in coded[[0, 1, 4]]}]
    assert categories(after.labels["kind"])[0] != now, "sorted by name, zebra is not the first"
    assert after.digest == before.digest
    assert before.labels["kind"].tolist() == column


# the store


@pytest.fixture
def store(tmp_path) -> DatasetStore:
    return DatasetStore(tmp_path)


def test_a_data_set_comes_back_as_it_was_put(store):
    names = {"feature_names": list("pqrstu"), "provenance": {"source": "test"}}
    for dataset in (small(X=X.astype("f4"), **names), gappy()[0]):
        back = store.get(store.put(dataset))
        assert back.about() == dataset.about()
        np.testing.assert_array_equal(back.with_gaps(), dataset.with_gaps())
        again = Dataset(
            *(back.name, np.array(back.X), back.ids, back.labels, back.image_shape),
            *(back.feature_names, {}, back.missing),
        )
        assert again.digest == back.digest == dataset.digest
        assert back.X.dtype == dataset.X.dtype
        for key, column in dataset.labels.items():
            assert back.labels[key].dtype == column.dtype
    base = back.X
    while not isinstance(base, np.memmap):
        base = base.base
    with pytest.raises(ValueError, match="read-only"):
        back.X[0, 0] = 1


def test_the_list_shows_the_newest_first_under_its_newest_name(store, monkeypatch):
    for moment, name in ((100.0, "older"), (200.0, "new"), (300.0, "newer")):
        monkeypatch.setattr("appca.data.store.time.time", lambda moment=moment: moment)
        store.put(small(name=name, X=X + (name == "older"), provenance={"source": "test"}))
    newest, oldest = store.list()
    assert (newest.name, oldest.name) == ("newer", "older")
    assert newest == store.summary(newest.digest)
    assert newest[1:] == ("newer", 4, "test", 200.0, newest.digest)


def test_what_is_deleted_is_gone_and_its_open_view_stays_and_no_digest_is_a_path(store):
    digests = []
    threads = [Thread(target=lambda: digests.append(store.put(small()))) for _ in range(6)]
    for step in (Thread.start, Thread.join):  # six writers of the same leave one whole entry
        for thread in threads:
            step(thread)
    (digest,) = set(digests)
    assert [path.name for path in store.folder.iterdir()] == [digest]
    view = store.get(digest)
    for unknown in ("", "abc", "../" * 3, "0" * 64, "g" * 64, "0" * 63 + "/", None):
        for action in (store.get, store.delete):
            with pytest.raises(InputError, match="no stored data set"):
                action(unknown)
    store.delete(digest)
    assert store.list() == []
    np.testing.assert_array_equal(view.X, X)
    with pytest.raises(InputError, match="no stored data set"):
        store.get(digest)
    with pytest.raises(InputError, match=r"“one” has a single row; .* at least 2, so add rows\."):
        store.put(Dataset("one", X[:1], np.array(["a"]), least_rows=1))
    assert store.list() == []


def test_opening_hashes_nothing_and_loading_again_repairs(store, monkeypatch):
    wine = load("wine")
    file = store.folder / store.put(wine) / "matrix.npy"
    content = bytearray(file.read_bytes())
    content[-9] ^= 1
    file.write_bytes(content)
    with monkeypatch.context() as patch:
        patch.setattr("hashlib.file_digest", lambda *_: pytest.fail("it is hashed"))
        patch.setattr(files, "check_file", lambda *_: pytest.fail("it is checked"))
        assert store.get(wine.digest).n_rows == 178
    store.put(wine)
    assert np.array_equal(store.get(wine.digest).X, wine.X)


NAMES = ("a", "b", "c")


def rows(some, names=NAMES, **more) -> Dataset:
    some = np.asarray(some)
    return Dataset("new", some, np.arange(len(some)), feature_names=names, **more)


@pytest.fixture
def some(seed) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(5, 3))


def test_columns_are_found_by_name_in_any_order_and_others_left_out(some):
    shuffled = rows(
        np.column_stack([some[:, 2], np.ones(5), some[:, 0], some[:, 1]]), ("c", "x", "a", "b")
    )
    found = matched(shuffled, Wanted(3, NAMES))
    np.testing.assert_array_equal(found.dataset.X, some)
    assert (found.dataset.feature_names, list(found.dataset.ids)) == (NAMES, list("01234"))
    assert (found.by_name, found.reordered, found.ignored) == (True, True, ("x",))
    found = matched(rows(np.column_stack([some, some[:, 0]]), (*NAMES, "x")), Wanted(3, NAMES))
    assert (found.reordered, found.ignored) == (False, ("x",))
    np.testing.assert_array_equal(found.dataset.X, some)


SQUARE, OBLONG = ({"names": None, "image_shape": shape} for shape in ((2, 2), (3, 4)))


@pytest.mark.parametrize(
    ("some", "how", "wanted", "words"),
    [
        (np.eye(3), {}, Wanted(4, ("a", "b", "hue", "ash")), "lacks 2 .* “hue”, “ash”; add"),
        (np.eye(3), {}, Wanted(9, tuple("abmnopqrs")), "lacks 7 .*, “q”, “r” and 1 more; add"),
        (np.eye(3), {"names": None}, Wanted(4, tuple("abcd")), "has 3 features, .* 4 features;"),
        (np.eye(4), SQUARE, Wanted(9, image_shape=(3, 3)), "have 2 × 2 .* the fit 3 × 3 pixels;"),
        (np.eye(12), OBLONG, Wanted(12, image_shape=(2, 2, 3)), "3 × 4 .* 2 × 2 pixels in colour;"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(some, how, wanted, words):
    with pytest.raises(InputError, match=words) as refused:
        matched(rows(some, **how), wanted)
    assert faults_of(str(refused.value), "“new”") == ""


@pytest.mark.parametrize(
    ("some", "dtype", "expected"),
    [
        (np.array([[0.0, 255.0], [3.0, 4.0]]), np.uint8, np.uint8),
        (np.array([[0.5, 255.0], [3.0, 4.0]]), np.uint8, np.float64),
        (np.array([[0.5, 255.0], [3.0, 4.0]]), np.float32, np.float32),
        (np.array([[1, 2], [3, 4]], np.uint8), np.float64, np.float64),
    ],
)
def test_values_come_in_the_run_s_type_unless_that_would_change_them(some, dtype, expected):
    found = matched(rows(some, None), Wanted(2, dtype=np.dtype(dtype))).dataset.X
    assert found.dtype == expected
    np.testing.assert_array_equal(found, some)


def test_numbers_that_were_read_as_a_label_and_gaps_go_with_their_columns(some):
    label, gaps = np.array([1, 2, 1, 2, 3]), np.zeros((5, 2), dtype=bool)
    gaps[1, 1] = True
    new = rows(some[:, [2, 0]], ("c", "a"), labels={"b": label, "d": label}, missing=gaps)
    found = matched(new, Wanted(3, NAMES)).dataset
    np.testing.assert_array_equal(found.X, np.column_stack([some[:, 0], label, some[:, 2]]))
    assert list(found.labels) == ["d"]
    assert np.argwhere(found.missing).tolist() == [[1, 0]]


def test_columns_without_names_and_pixels_are_taken_in_order(some):
    found = matched(rows(some, None), Wanted(3, NAMES))
    assert not found.by_name
    assert found.dataset.feature_names == NAMES
    np.testing.assert_array_equal(found.dataset.X, some)
    new = rows(np.eye(4), ("p1", "p2", "p3", "p4"), image_shape=(2, 2))
    found = matched(new, Wanted(4, ("x0", "x1", "x2", "x3"), (2, 2), image_range=(0.0, 16.0)))
    assert not found.by_name
    assert (found.dataset.image_range, found.dataset.image_shape) == ((0.0, 16.0), (2, 2))
    digits, wine = load("digits"), load("wine")
    assert wanted_by(digits)[2:] == ((8, 8), digits.X.dtype, digits.image_range)
    assert matched(wine, wanted_by(wine)).dataset.digest == wine.digest


def test_a_new_file_is_read_by_the_columns_of_the_run():
    def opened(text: str):
        return lambda roles: read(
            "new.csv", io.BytesIO(text.encode()), **({"roles": roles} if roles else {})
        )

    # "id" counts up and would be the rows' name; "y" holds few whole numbers and would be a label.
    table = "id,y,a,extra\n1,0,0.5,\n2,1,0.25,7\n3,0,0.125,8\n"
    found = read_as(opened(table), Wanted(3, ("y", "a", "id")))
    np.testing.assert_array_equal(found.dataset.X, [[0, 0.5, 1], [1, 0.25, 2], [0, 0.125, 3]])
    assert found.ignored == ("extra",)  # its gap does not matter
    for cells, key, value in (
        ("x,2,3", "not_numbers", {"a": {"x": 1}}),
        ("1,,3", "missing", {"b": 1}),
    ):
        with pytest.raises(InputError, match="1 missing cell") as refused:
            read_as(opened(f"a,b,c\n{cells}\n4,5,6\n7,8,9\n"), Wanted(3, NAMES))
        assert refused.value.report[key] == value
