"""Results on disk: back as they were, never half, never in the way when damaged."""

import math
import shutil

import numpy as np
import pytest

from appca.storage.files import aside
from appca.studies import store as store_module
from appca.studies.catalogue import STUDIES, study_of
from appca.studies.store import StudyStore
from appca.studies.study import CheckedClaim, Outcome
from appca.words import InputError

STUDY = STUDIES["z-priors"]
OPTIONS = STUDY.options("quick")
OUTCOME = Outcome(
    {
        "mixed": [
            {"name": "a,b\n“c”", "count": 3, "value": 0.1, "none": None},
            {"name": "=1+1", "count": None, "value": 1 / 3, "none": None},
            {"name": None, "count": -2, "value": math.pi * 1e-300, "none": None},
        ],
        "empty": [],
    },
    {"Z": np.eye(3, dtype=bool), "x": np.arange(4.0)},
    [
        CheckedClaim("3 < 4 | 5", "0.85", "“yes”, 7%", "partly"),
        CheckedClaim("a", "", "b", "not tested"),
    ],
    "What came out, 3 < 4.",
)


@pytest.fixture
def store(tmp_path) -> StudyStore:
    return StudyStore(tmp_path)


def test_a_result_comes_back_as_it_was(store):
    name = store.save(STUDY, OPTIONS, OUTCOME, 12.34)
    kept = store.get(name)
    assert name == STUDY.id(OPTIONS) == kept.id
    assert kept.outcome.tables == OUTCOME.tables
    assert (kept.outcome.claims, kept.outcome.text) == (OUTCOME.claims, OUTCOME.text)
    assert [type(row["count"]) for row in kept.outcome.tables["mixed"]] == [int, type(None), int]
    for key, array in OUTCOME.arrays.items():
        np.testing.assert_array_equal(kept.outcome.arrays[key], array)
    assert (kept.study, kept.options, kept.seconds) == ("z-priors", OPTIONS, 12.3)
    assert kept.versions["numpy"] == np.__version__
    assert [stored.id for stored in store.list()] == [name]
    assert store.list("table1") == []


def test_the_same_options_are_the_same_result_and_others_another(store):
    first = store.save(STUDY, OPTIONS, OUTCOME, 1.0)
    assert store.save(STUDY, OPTIONS, OUTCOME._replace(text="anew"), 1.0) == first
    assert store.get(first).outcome.text == "anew"
    other = STUDY.options("quick", seed=1)
    assert store.save(STUDY, other, OUTCOME, 1.0) != first
    assert STUDY._replace(revision=99).id(OPTIONS) != first
    assert len(store.list()) == 2
    assert not list(store.folder.glob(".*"))


@pytest.mark.parametrize("file", ["config.json", "mixed.csv", "arrays.npz"])
@pytest.mark.parametrize("how", ["cut", "gone", "nonsense"])
def test_a_damaged_result_is_skipped_and_can_be_made_again(store, file, how):
    name = store.save(STUDY, OPTIONS, OUTCOME, 1.0)
    other = store.save(STUDY, STUDY.options("quick", seed=1), OUTCOME, 1.0)
    path = store.folder / name / file
    if how == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:7] if how == "cut" else b"\xff\x00 no")
    assert store.get(name) is None
    assert [kept.id for kept in store.list()] == [other]
    store.save(STUDY, OPTIONS, OUTCOME, 1.0)
    assert store.get(name).outcome.tables == OUTCOME.tables


@pytest.mark.parametrize("name", ["", "../jobs", "a" * 12, "A" * 12, "../" * 4])
def test_what_is_not_a_stored_name_is_nothing(store, name):
    assert store.get(name) is None


def test_a_full_disk_leaves_the_old_result_and_no_half_one(store, monkeypatch):
    name = store.save(STUDY, OPTIONS, OUTCOME, 1.0)

    def full(*_arguments, **_more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store_module.np, "savez_compressed", full)
    with pytest.raises(InputError, match=r"could not be stored.*No space left.*APPCA_HOME"):
        store.save(STUDY, OPTIONS, OUTCOME._replace(text="anew"), 1.0)
    assert store.get(name).outcome.text == OUTCOME.text
    assert [path.name for path in store.folder.iterdir()] == [name]


def test_a_result_that_stands_aside_is_found_once_and_by_its_name(store):
    name = store.save(STUDY, OPTIONS, OUTCOME, 1.0)
    place = store.folder / name
    place.rename(aside(place))
    assert (store.get(name).id, store.get(name).outcome.text) == (name, OUTCOME.text)
    assert [kept.id for kept in store.list()] == [name]
    store.save(STUDY, OPTIONS, OUTCOME._replace(text="anew"), 1.0)
    shutil.copytree(place, aside(place))
    assert [kept.outcome.text for kept in store.list()] == ["anew"]


def test_a_result_that_is_replaced_while_it_is_read_is_read_again(store, monkeypatch):
    name = store.save(STUDY, OPTIONS, OUTCOME, 1.0)
    load = np.load

    def late(*given, **more):
        monkeypatch.setattr(store_module.np, "load", load)
        store.save(STUDY, OPTIONS, OUTCOME._replace(text="anew"), 1.0)
        return load(*given, **more)

    monkeypatch.setattr(store_module.np, "load", late)
    assert store.get(name).outcome.text == "anew"


def test_an_unknown_experiment_is_refused_with_the_names_there_are():
    with pytest.raises(InputError, match="no experiment “table9”; choose among planes, table1"):
        study_of("table9")
