"""What ships with the package: whole, stamped, small, and no row of anybody's data."""

from datetime import UTC, datetime

import numpy as np
import pytest

from appca.studies import store as module
from appca.studies.catalogue import STUDIES, shipped
from appca.studies.store import FOLDER, MOST_BYTES, ShippedResults, lean
from appca.studies.study import CheckedClaim, Outcome
from appca.words import InputError

PIXELS = {784, 1024}  # of an image of MNIST, of COIL-20
STUDY = STUDIES["z-priors"]


def test_all_that_ships_is_small_readable_and_of_an_experiment():
    files = [file for file in FOLDER.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) <= MOST_BYTES
    assert {file.suffix for file in files} <= {".json", ".csv", ".npz"}
    assert len(list(FOLDER.iterdir())) == len(shipped())


@pytest.mark.parametrize("name", STUDIES)
def test_every_result_has_its_stamp_its_verdict_and_its_figures(name, tmp_path, monkeypatch):
    monkeypatch.setenv("APPCA_DATA", str(tmp_path))  # nobody's own copy
    stored = shipped().get(name)
    if stored is None:
        pytest.skip("not computed yet: python -m appca paper --ship")
    study = STUDIES[name]
    assert study.size_of(stored.options) in study.sizes
    assert {"appca", "numpy"} <= set(stored.versions)
    assert datetime.fromtimestamp(stored.created, UTC).year >= 2025
    assert study.command(stored.options).startswith(f"python -m appca paper {name}")
    assert sum(bool(claim.value) for claim in stored.outcome.claims) >= 1
    for claim in stored.outcome.claims:
        assert len(claim.value) < 12
        assert len(claim.caption) < 36
    assert study.figures(stored.outcome)


@pytest.mark.parametrize("name", STUDIES)
def test_no_image_and_no_row_of_data_ships(name):
    stored = shipped().get(name)
    for key, array in (stored.outcome.arrays if stored else {}).items():
        assert key not in STUDIES[name].private
        assert array.dtype != np.uint8 or key.endswith("_rgb"), key  # what images are made of
        if name not in {"fmri", "planes", "z-priors"}:  # drawn here, or maps of components
            assert array.ndim <= 2, key
            assert not PIXELS & set(array.shape[1:]), key
    if name == "fmri" and stored:
        n_voxels = stored.outcome.arrays["mask"].sum()
        rows = [array for array in stored.outcome.arrays.values() if n_voxels in array.shape]
        assert all(array.ndim == 1 for array in rows)  # one number a voxel, never its course


def test_a_result_ships_in_the_place_of_an_older_one_and_within_the_limit(tmp_path, monkeypatch):
    store = ShippedResults(tmp_path)
    outcome = Outcome({"t": [{"a": 1}]}, {"x": np.ones(9)}, [CheckedClaim("a", "", "b", "yes")])
    store.save(STUDY, STUDY.options(seed=1), outcome, 1.0)
    name = store.save(STUDY, STUDY.options(seed=2), outcome, 1.0)
    (kept,) = store.list()
    assert (kept.id, kept.outcome.arrays["x"].dtype) == (name, np.float32)
    monkeypatch.setattr(module, "MOST_BYTES", 10)
    with pytest.raises(InputError, match="may have 10 bytes together; these have"):
        store.save(STUDY, STUDY.options(seed=2), outcome, 1.0)


def test_private_arrays_stay_at_home():
    found = lean(Outcome({}, {"signal": np.ones(3), "map": np.ones(3)}, []), ("signal",))
    assert list(found.arrays) == ["map"]
