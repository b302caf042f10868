"""Session files from strangers: none answers for a fit, each is checked as a whole."""

import io
from dataclasses import replace

import numpy as np
import pytest

from appca.data.store import DatasetStore
from appca.runs.fit import fit_run, preview
from appca.runs.session import Session, pack, unpack
from appca.runs.store import RunStore, title
from appca.words import InputError
from tests.attacks.forged import altered, fitted, npy, rolled, setting, small, sound
from tests.sentences import faults_of

SIZES = {"n_components": 3, "n_active": 2}


@pytest.fixture(scope="module")
def dataset():
    return small()


@pytest.fixture(scope="module")
def run(dataset, tmp_path_factory):
    return fitted(tmp_path_factory.mktemp("sender"), dataset, **SIZES)


@pytest.fixture(scope="module")
def content(run, dataset):
    return sound(run, dataset)


def opened(file, home):
    found = unpack("x.appca", file, home)
    return found, [RunStore(home).get(one) for one in found.runs]


def test_rolled_scores_never_stand_for_the_fit_of_the_same_settings(content, run, tmp_path):
    found, (forged,) = opened(rolled(content), tmp_path)
    assert RunStore(tmp_path).get(run.id) is None
    assert forged.id == found.opened != run.id
    assert forged.config.imported == forged.fitted.digest()
    assert forged.name == "aPPCA, K = 3, L = 2 (imported)" == title(forged.config)
    assert forged.config.to_be_fitted() == run.config


def test_a_forged_run_stands_beside_the_fit_that_is_here(content, run, dataset, tmp_path):
    own = fitted(tmp_path, dataset, **SIZES)
    _, (forged,) = opened(rolled(content), tmp_path)
    assert {own.id, forged.id} == {one.id for one in RunStore(tmp_path).list()}
    assert np.array_equal(RunStore(tmp_path).get(run.id).fitted.scores, run.fitted.scores)


def test_the_very_run_that_was_fitted_here_is_that_run(content, run, dataset, tmp_path):
    own = fitted(tmp_path, dataset, **SIZES)
    found, (same,) = opened(io.BytesIO(content), tmp_path)
    assert (found.runs, found.opened, same.config.imported) == ((own.id,), own.id, None)


def test_the_mark_survives_being_sent_on_and_brought_back(content, run, dataset, tmp_path):
    _, (first,) = opened(io.BytesIO(content), tmp_path / "a")
    again = pack(Session(dataset, [first], opened=first.id))
    assert again == content
    found, (second,) = opened(io.BytesIO(again), tmp_path / "b")
    assert (second.id, second.name, found.opened) == (first.id, first.name, first.id)
    back, _ = opened(io.BytesIO(again), run.path.parents[1])
    assert back.runs == (run.id,)


def test_a_file_cannot_say_that_its_run_is_no_import(content, run, tmp_path):
    for told in (None, "0" * 64):
        file = altered(content, setting("runs", 0, "config", "imported", value=told))
        (one,) = unpack("x.appca", file, tmp_path).runs
        assert RunStore(tmp_path).get(one).config.imported == run.fitted.digest()


def test_an_imported_run_is_not_fitted(content, dataset, tmp_path):
    _, (one,) = opened(io.BytesIO(content), tmp_path)
    for fit in (fit_run, preview):
        with pytest.raises(InputError, match="came in a session file"):
            fit(dataset, one.config)


def test_a_name_kept_for_a_run_stays_without_the_mark(content, tmp_path):
    _, (one,) = opened(altered(content, setting("runs", 0, "name", value="my run")), tmp_path)
    assert (one.name, one.custom_name) == ("my run (imported)", "my run")
    assert RunStore(tmp_path).rename(one.id, "").name == "aPPCA, K = 3, L = 2 (imported)"


def test_what_a_full_disk_left_out_is_added_by_opening_the_file_again(
    content, tmp_path, monkeypatch
):
    def refuse(*_, **__):
        raise InputError("The disk is full; free some space.")

    with monkeypatch.context() as now:
        now.setattr(RunStore, "save", refuse)
        with pytest.raises(InputError, match="disk is full"):
            unpack("x.appca", io.BytesIO(content), tmp_path)
    (data,) = DatasetStore(tmp_path).list()
    assert DatasetStore(tmp_path).get(data.digest).n_rows == 45
    assert RunStore(tmp_path).list() == []
    assert len(unpack("x.appca", io.BytesIO(content), tmp_path).runs) == 1


def test_columns_of_long_names_are_sent_and_received(dataset, tmp_path):
    names = tuple(f"{'long ' * 400}{j}" for j in range(dataset.n_features))
    long = replace(dataset, feature_names=names, provenance={"report": {"roles": {names[0]: "x"}}})
    found = unpack("x.appca", io.BytesIO(pack(Session(long, []))), tmp_path)
    assert DatasetStore(tmp_path).get(found.dataset).feature_names == names


def parameter(name, value):
    return setting("runs", 0, "config", "parameters", name, value=value)


def config(name, value):
    return setting("runs", 0, "config", name, value=value)


def info(name, value):
    return setting("runs", 0, "info", name, value=value)


RUN = "Fit 1 in “bad.appca” cannot be opened: "
AGAIN = "; save the file again."
WHOLE, EVIL = "must be a whole number of at least", "1); import os; ("
BAD = {
    "K a text": (
        parameter("n_components", "abc"),
        f"{RUN}n_components {WHOLE} 1 and at most 100,000; got 'abc'{AGAIN}",
    ),
    "K not that of the arrays": (
        parameter("n_components", 7),
        "“bad.appca” is damaged; save it again.",
    ),
    "tol without end": (
        parameter("tol", float("inf")),
        f"{RUN}tol must be a finite number, a text or yes/no to be recorded; got inf{AGAIN}",
    ),
    "start code": (
        parameter("init", EVIL),
        f"{RUN}init must be 'auto', 'quartimax', 'annealed', 'ica', 'pca' or 'random' or an array "
        f"of n_components by features; got {EVIL!r}{AGAIN}",
    ),
    "parameters a list": (
        config("parameters", [1]),
        f"{RUN}it has a list for “parameters”, where a group of named values belongs{AGAIN}",
    ),
    "stop that is code": (
        config("stopped_at", EVIL),
        f"{RUN}it has {EVIL!r} for “stopped_at”, where a whole number or nothing belongs{AGAIN}",
    ),
    "another model": (
        config("model", "__import__"),
        f"{RUN}There is no model “__import__”; choose one of aPPCA, aFA, NPPCA, isFA, fsFA, PPCA"
        f"{AGAIN}",
    ),
    "a field too many": (
        config("hook", "x"),
        f"{RUN}it has “hook”, which is not one of its settings{AGAIN}",
    ),
    "likelihood NaN": (
        info("log_likelihood", float("nan")),
        f"{RUN}it has nan for “log_likelihood”, where a finite number belongs{AGAIN}",
    ),
    "reason too long": (
        info("stop_reason", "x" * 2000),
        f"{RUN}it has '{'x' * 38}… for “stop_reason”, where a text of at most 1,000 characters "
        f"belongs{AGAIN}",
    ),
    "runs a number": (
        setting("runs", value=3),
        "“bad.appca” is damaged: it has 3 for “runs”, where a list belongs; save it again.",
    ),
    "too many runs": (
        lambda all_: all_.update(runs=all_["runs"] * 1001),
        "“bad.appca” is damaged: it has a list for “runs”, where a list of at most 1,000 items "
        "belongs; save it again.",
    ),
    "digest a path": (
        setting("dataset", "digest", value="../../x"),
        "“bad.appca” is damaged: it has '../../x' for “digest” of “dataset”, where a text of "
        "another form belongs; save it again.",
    ),
    "options that are code": (
        setting("dataset", "provenance", "options", value={"n": [[EVIL]]}),
        "“bad.appca” is damaged: a value of “options” is not a single number or text, or a list of "
        "those; save it again.",
    ),
    "a brain of 10^15 voxels": (
        setting("dataset", "provenance", "grid", value=[100_000] * 3),
        "“bad.appca” is damaged: it has 100000 for “grid” 1, where a whole number of at most 512 "
        "belongs; save it again.",
    ),
    "a version before the first": (
        setting("version", value=0),
        "“bad.appca” is not a session file that this version of appca reads; it says “appca "
        "session”, version 0.",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_forged_file_gets_its_sentence_and_nothing_is_stored(content, tmp_path, name):
    change, sentence = BAD[name]
    with pytest.raises(InputError) as told:
        unpack("bad.appca", altered(content, change), tmp_path)
    assert str(told.value) == sentence
    assert faults_of(sentence, "bad.appca") == ""
    assert list(tmp_path.iterdir()) == []


ARRAYS = {
    "scores of other rows": {"runs/0/scores.npy": npy(np.zeros((9, 3), np.float32))},
    "components without end": {"runs/0/components.npy": npy(np.full((3, 13), np.inf))},
    "choices that are numbers": {"runs/0/active.npy": npy(np.ones((45, 3)))},
    "a text for the mean": {"runs/0/mean.npy": npy(np.array(["x"] * 13))},
}


@pytest.mark.parametrize("name", ARRAYS)
def test_forged_arrays_are_refused_and_nothing_is_stored(content, tmp_path, name):
    with pytest.raises(InputError, match=r"^“bad\.appca” is damaged; save it again\.$"):
        unpack("bad.appca", altered(content, lambda _: None, **ARRAYS[name]), tmp_path)
    assert list(tmp_path.iterdir()) == []
