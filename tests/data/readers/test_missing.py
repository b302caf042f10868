"""Missing cells from a file to the store and into preprocessing: kept apart, never silent."""

import io

import numpy as np
import pytest

from appca.data.dataset import Dataset
from appca.data.preprocessing import Preprocessing
from appca.data.readers import read
from appca.data.store import DatasetStore
from appca.words import InputError


def gappy(seed=0, n=40, d=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.arange(1, d + 1) + 3.0
    missing = rng.random((n, d)) < 0.2
    holes = np.where(missing, np.nan, X)
    full = np.where(missing, np.nanmean(holes, axis=0), X)
    ids = np.array([f"r{i}" for i in range(n)])
    return Dataset("gappy", full, ids, missing=missing), holes


def test_a_data_set_knows_its_missing_cells_and_shows_them_as_nan():
    dataset, holes = gappy()
    np.testing.assert_array_equal(dataset.with_gaps(), holes)
    assert np.isfinite(dataset.X).all()
    assert dataset.n_missing == np.isnan(holes).sum()
    np.testing.assert_array_equal(
        dataset.incomplete_rows, np.flatnonzero(np.isnan(holes).any(axis=1))
    )
    with pytest.raises(ValueError, match="read-only"):
        dataset.missing[0, 0] = True


def test_without_missing_cells_there_is_no_mask_and_the_digest_is_the_old_one():
    X, ids = np.arange(12.0).reshape(4, 3), np.array(list("abcd"))
    plain = Dataset("plain", X, ids)
    none = Dataset("none", X, ids, missing=np.zeros(X.shape, bool))
    assert none.missing is None
    assert np.shares_memory(none.with_gaps(), none.X)
    assert none.digest == plain.digest
    assert plain.digest[:12] == "a2ceb31585d2"
    assert Dataset("gappy", X, ids, missing=X == 5).digest != plain.digest


def test_masked_means_missing_and_parts_keep_their_mask():
    dataset, holes = gappy()
    masked = Dataset("masked", np.ma.masked_invalid(holes), dataset.ids)
    assert masked.digest == dataset.digest
    np.testing.assert_array_equal(masked.with_gaps(), holes)
    rows = np.array([7, 3, 30, 0])
    np.testing.assert_array_equal(dataset.take(rows).with_gaps(), holes[rows])
    np.testing.assert_array_equal(dataset.with_gaps(rows), holes[rows])
    whole = np.flatnonzero(~dataset.missing.any(axis=1))
    assert dataset.take(whole).missing is None
    for mask in (dataset.missing[:3], dataset.missing.astype(float)):
        with pytest.raises(InputError, match="be True or False for each of the 40 x 5 cells"):
            Dataset("bad", dataset.X, dataset.ids, missing=mask)


def test_the_store_gives_the_mask_back(tmp_path):
    dataset, holes = gappy()
    store = DatasetStore(tmp_path)
    back = store.get(store.put(dataset))
    np.testing.assert_array_equal(back.with_gaps(), holes)


@pytest.mark.parametrize("scale", ["none", "feature", "global"])
def test_centre_and_scale_are_those_of_the_observed_cells(scale):
    dataset, holes = gappy()
    options = Preprocessing(divide=2.0, centre=True, scale=scale)
    Y = options.fit(dataset.X, missing=dataset.missing).transform(dataset.with_gaps())
    wanted = (holes - np.nanmean(holes, axis=0)) / 2.0
    if scale == "feature":
        wanted = wanted / np.nanstd(wanted, axis=0)
    elif scale == "global":
        wanted = wanted / np.sqrt(np.nanvar(wanted, axis=0).mean())
    np.testing.assert_allclose(Y, wanted, rtol=1e-10, atol=1e-12)
    odd = np.where(dataset.missing, 1e6, dataset.X)  # placeholders do not count
    again = options.fit(odd, missing=dataset.missing).transform(dataset.with_gaps())
    np.testing.assert_allclose(again, Y, rtol=1e-10, atol=1e-12)


def test_pca_needs_whole_rows():
    dataset, _ = gappy()
    words = f"Reducing by PCA needs whole rows, but {dataset.n_missing} cell"
    with pytest.raises(InputError, match=words):
        Preprocessing(pca=3).fit(dataset.X, missing=dataset.missing)


TABLE = b"name,a,b,c\nx,1,2,3\ny,?,5,6\nz,7,,9\nw,4,8,1\n"
ARRAY = np.array([[1.0, 2, 3], [np.nan, 5, 6], [7, np.nan, 9], [4, 8, 1]])


def as_npy():
    file = io.BytesIO()
    np.save(file, ARRAY)
    return file.getvalue()


@pytest.mark.parametrize(("name", "content"), [("t.csv", TABLE), ("t.npy", as_npy())])
def test_a_reader_leaves_missing_cells_to_the_model_when_asked(name, content):
    dataset = read(name, io.BytesIO(content), missing="model")
    np.testing.assert_array_equal(dataset.with_gaps(), ARRAY)
    np.testing.assert_allclose(dataset.X[[1, 2], [0, 1]], [4.0, 5.0])
    report = dataset.provenance["report"]
    assert (report["modelled"], report["filled"], report["dropped"]) == (2, 0, 0)
    mean = read(name, io.BytesIO(content), missing="mean")
    assert mean.missing is None
    np.testing.assert_array_equal(mean.X, dataset.X)
