import threading

import numpy as np
import pytest

from appca.data.dataset import Dataset
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.storage import files
from appca.words import InputError


@pytest.fixture
def store(tmp_path):
    return DatasetStore(tmp_path)


def tiny(seed, name="tiny"):
    rng = np.random.default_rng(seed)
    return Dataset(
        name,
        rng.standard_normal((5, 4)).astype(np.float32),
        np.array([f"r{i}" for i in rng.permutation(5)]),
        {"größe": np.array(["a", "b", "", "a", "ä"]), "n": rng.integers(9, size=5)},
        image_shape=(2, 2),
        feature_names=("a", "b", "c", "d"),
        provenance={"source": "test", "report": {"rows": 5}},
    )


def test_a_data_set_comes_back_as_it_was_put(store, seed):
    dataset = tiny(seed)
    back = store.get(store.put(dataset))
    assert back.about() == dataset.about()
    assert back.digest == dataset.digest
    assert back.X.dtype == np.float32
    np.testing.assert_array_equal(back.X, dataset.X)
    np.testing.assert_array_equal(back.ids, dataset.ids)
    for key, column in dataset.labels.items():
        np.testing.assert_array_equal(back.labels[key], column)
        assert back.labels[key].dtype == column.dtype


def test_the_matrix_stays_on_disk_read_only_and_has_the_digest_of_its_content(store):
    back = store.get(store.put(tiny(0)))
    copy = np.array(back.X)
    again = Dataset(back.name, copy, back.ids, back.labels, back.image_shape, back.feature_names)
    assert again.digest == back.digest
    base = back.X
    while not isinstance(base, np.memmap):
        base = base.base
    with pytest.raises(ValueError, match="read-only"):
        back.X[0, 0] = 1


def test_the_list_shows_the_newest_first_with_what_a_person_wants_to_know(store, monkeypatch):
    for moment, name in ((100.0, "older"), (200.0, "newer")):
        monkeypatch.setattr("appca.data.store.time.time", lambda moment=moment: moment)
        store.put(tiny(int(moment), name))
    newest, oldest = store.list()
    assert (newest.name, oldest.name) == ("newer", "older")
    assert newest == store.summary(newest.digest)
    assert newest[1:] == ("newer", 5, "test", 200.0)


def test_the_same_data_again_is_the_same_entry_under_its_newest_name(store):
    first = store.put(tiny(0, "first"))
    created = store.list()[0].created
    assert store.put(tiny(0, "second")) == first
    (entry,) = store.list()
    assert entry.name == "second"
    assert entry.created == created


def test_a_deleted_data_set_is_gone_and_its_open_view_stays(store):
    digest = store.put(tiny(0))
    view = store.get(digest)
    store.delete(digest)
    assert store.list() == []
    np.testing.assert_array_equal(view.X, tiny(0).X)
    with pytest.raises(InputError, match="no stored data set"):
        store.get(digest)


@pytest.mark.parametrize("digest", ["", "abc", "../" * 3, "0" * 64, "g" * 64, "0" * 63 + "/", None])
def test_an_unknown_digest_never_becomes_a_path(store, digest):
    store.put(tiny(0))
    for action in (store.get, store.delete):
        with pytest.raises(InputError, match="no stored data set"):
            action(digest)
    assert len(store.list()) == 1


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


def test_two_writers_of_the_same_data_leave_one_whole_entry(store):
    dataset = load("digits")
    errors = []

    def put():
        try:
            store.put(dataset)
        except InputError as error:
            errors.append(error)

    threads = [threading.Thread(target=put) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert [entry.digest for entry in store.list()] == [dataset.digest]
    assert [path.name for path in store.folder.iterdir()] == [dataset.digest]
    np.testing.assert_array_equal(store.get(dataset.digest).X, dataset.X)
