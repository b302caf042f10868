"""Stores damaged by hand: the app says what is damaged, offers what helps, and the rest works."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from appca.analysis.umap import Embedding, EmbeddingConfig, EmbeddingStore
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.runs import store as store_module
from appca.runs.fit import fit_run
from appca.runs.run import RunConfig
from appca.runs.store import RunStore
from appca.studies.catalogue import STUDIES
from appca.studies.store import StudyStore
from appca.studies.study import Outcome
from appca.ui import services
from appca.words import InputError
from tests import forged
from tests.faults.writers import MAP, ROWS
from tests.ui.conftest import address, go, healthy, html, sentences, start

__all__ = ["start"]  # the fixture
NESTED = "[" * 100_000
DIGITS = "Handwritten digits"


def rewrite(folder: Path, **changes: object) -> None:
    forged.rewrite(folder / "config.json", **changes)


def replace_by_file(folder: Path) -> None:
    empty(folder)
    folder.rmdir()
    folder.write_text("a file")


def empty(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


RUN_DAMAGES: dict[str, Callable[[Path], object]] = {
    "arrays cut": lambda folder: cut(folder / "arrays.npz"),
    "arrays gone": lambda folder: (folder / "arrays.npz").unlink(),
    "settings gone": lambda folder: (folder / "config.json").unlink(),
    "settings empty": lambda folder: (folder / "config.json").write_text(""),
    "settings nested": lambda folder: (folder / "config.json").write_text(NESTED),
    "a list": lambda folder: (folder / "config.json").write_text("[1]"),
    "null": lambda folder: (folder / "config.json").write_text("null"),
    "facts a list": lambda folder: rewrite(folder, info=[1, 2]),
    "facts too few": lambda folder: rewrite(folder, info={"n_iter": 3}),
    "a fact a text": lambda folder: rewrite(folder, info={"n_iter": "3", "seconds": 1}),
    "a name of numbers": lambda folder: rewrite(folder, name=[1]),
    "a time of letters": lambda folder: rewrite(folder, created="<b>noon</b>"),
    "another run's": lambda folder: rewrite(folder, id="0" * 12),
    "an empty folder": empty,
    "a file": replace_by_file,
}


def damaged_runs(home: Path, damages: dict[str, Callable]) -> dict[str, str]:
    """Make one run for each damage; return their ids."""
    wine = load("wine")
    DatasetStore(home).put(wine)
    ids = {}
    for seed, (how, damage) in enumerate(damages.items()):
        parameters = {"n_components": 2, "n_active": 1, "random_state": seed}
        config = RunConfig(wine.digest, {"scale": "feature"}, "aPPCA", parameters)
        run = RunStore(home).save(config, fit_run(wine, config))
        damage(run.path)
        ids[how] = run.id
    return ids


def keys(app) -> list[str]:
    return [button.key for button in app.button if button.key]


@pytest.mark.thorough
def test_every_damaged_run_is_named_and_can_be_deleted_and_the_others_work(start, appca_home):
    ids = damaged_runs(appca_home, RUN_DAMAGES)
    app = healthy(start("data/open"))
    told = [box.value.replace("\\", "") for box in app.warning]
    for how, run in ids.items():
        assert len([text for text in told if f"Fit {run} is damaged" in text]) == 1, how
        assert f"drop-{run}" in keys(app), how
    assert all(text.endswith("delete it or fit it again.") for text in told)
    assert "<b>" not in "".join(told).replace("<b>noon</b>", "")
    (good,) = RunStore(appca_home).list()
    assert f"open-{good.id}" in keys(app)
    for run in ids.values():
        app.button(key=f"drop-{run}").click()
        healthy(app.run())
        assert not os.path.lexists(appca_home / "runs" / run)
    assert list(app.warning) == []
    assert [path.name for path in (appca_home / "runs").iterdir()] == [good.id]


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("how", ["arrays cut", "a list", "facts a list", "a file"])
def test_a_link_to_a_damaged_run_gives_a_sentence_and_the_page_lives(start, appca_home, how):
    first = address(start(k="3", l="1"))
    RUN_DAMAGES[how](appca_home / "runs" / first["run"])
    app = start(**first)
    assert [problem.message for problem in app.exception] == []
    (told,) = sentences(app)
    assert told.startswith(f"Fit {first['run']} is damaged")
    assert html(app).count('class="ca-piece"') == 3, "K of the link, fitted again"
    assert address(healthy(app.run()))["run"] == first["run"]
    assert RunStore(appca_home).damaged() == {}


def test_a_link_to_a_run_that_is_gone_says_so_and_shows_what_else_it_knows(start, appca_home):
    app = start("explore")
    app.number_input(key="set-random_state").set_value(5).run()
    linked = address(healthy(app))
    RunStore(appca_home).delete(linked["run"])
    app = healthy(start(**linked))
    assert any(f"The fit {linked['run']} of this link" in box.value for box in app.info)
    assert address(app)["run"] != linked["run"]
    assert not any("of this link" in box.value for box in healthy(app.run()).info), "said once"


PASSING = [
    OSError(errno.EMFILE, "Too many open files"),
    PermissionError(errno.EACCES, "Permission denied"),
    MemoryError(),
]


def test_a_run_that_cannot_be_read_for_a_while_is_kept_as_it_was(start, appca_home, monkeypatch):
    app = start()
    run = address(healthy(app))["run"]
    RunStore(appca_home).rename(run, "hours of work")
    before = {path: path.stat().st_mtime_ns for path in (appca_home / "runs").rglob("*")}
    for reason in PASSING:
        with monkeypatch.context() as patch:
            patch.setattr(store_module, "_load", lambda *_, why=reason: _raise(why))
            app.run()
        assert [problem.message for problem in app.exception] == []
        (told,) = sentences(app)
        assert f"fit {run} cannot be read now" in told, reason
        assert address(app)["run"] == run
    after = {path: path.stat().st_mtime_ns for path in (appca_home / "runs").rglob("*")}
    assert after == before, "neither deleted nor fitted again"
    healthy(app.run())
    assert RunStore(appca_home).get(run).name == "hours of work"


def _raise(error: Exception) -> None:
    raise error


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_run_that_may_not_be_read_is_named(start, appca_home):
    ids = damaged_runs(appca_home, {"rights": lambda folder: (folder / "config.json").chmod(0)})
    app = healthy(start("data/open"))
    assert f"Fit {ids['rights']} is damaged (Permission denied)" in app.warning[0].value


def of_meta(**changes: object) -> Callable[[Path], object]:
    return lambda folder: forged.rewrite(folder / "meta.json", **changes)


DATA_DAMAGES: dict[str, Callable[[Path], object]] = {
    "matrix cut": lambda folder: cut(folder / "matrix.npy"),
    "matrix gone": lambda folder: (folder / "matrix.npy").unlink(),
    "labels gone": lambda folder: (folder / "label_0.npy").unlink(),
    "ids cut": lambda folder: cut(folder / "ids.npy"),
    "no JSON": lambda folder: (folder / "meta.json").write_text("{"),
    "JSON nested": lambda folder: (folder / "meta.json").write_text(NESTED),
    "a list": lambda folder: (folder / "meta.json").write_text("[]"),
    "another digest": of_meta(digest="0" * 64),
    "a name of numbers": of_meta(name=[1]),
    "labels a number": of_meta(labels=7),
    "an empty folder": empty,
    "a file": replace_by_file,
}


@pytest.mark.parametrize("how", DATA_DAMAGES)
def test_a_damaged_data_set_is_refused_left_out_and_replaced(appca_home, how):
    store, wine = DatasetStore(appca_home), load("wine")
    DATA_DAMAGES[how](store.folder / store.put(wine))
    store.list()
    with pytest.raises(InputError, match=r"^(The|There)[^\n]*(damaged|no stored)[^\n]*again.*\.$"):
        store.get(wine.digest)
    assert store.put(wine) == wine.digest
    assert np.array_equal(store.get(wine.digest).X, wine.X)
    assert [path.name for path in store.folder.iterdir()] == [wine.digest]


def test_a_link_to_damaged_data_gives_a_sentence_and_the_digits(start, appca_home):
    store, wine = DatasetStore(appca_home), load("wine")
    DATA_DAMAGES["matrix cut"](store.folder / store.put(wine))
    app = start(data=wine.digest)
    assert [problem.message for problem in app.exception] == []
    assert f"data set {wine.digest[:12]} is damaged" in sentences(app)[0]
    assert DIGITS in html(app)
    go(app, "data/open")
    app.button(key="source-wine-open").click().run()
    assert "Wine" in html(healthy(app))


def test_data_deleted_while_they_are_on_screen_are_left_with_a_sentence(start, appca_home):
    app = start("data/open")
    app.button(key="source-wine-open").click().run()
    DatasetStore(appca_home).delete(address(healthy(app))["data"])
    services._opened.clear()  # as after many other data sets
    app.run()
    assert [problem.message for problem in app.exception] == []
    assert "no stored data set" in sentences(app)[0]
    assert DIGITS in html(app)
    healthy(app.run())
    go(app, "data/open")
    healthy(app)


def packed(**arrays: np.ndarray) -> Callable[[Path], object]:
    return lambda file: np.savez(file, **arrays)


def facts(**changes: object) -> np.ndarray:
    told = {"config": MAP.to_dict(), "n_rows": ROWS} | changes
    return np.array(json.dumps(told))


PLACES = np.zeros((ROWS, 2), np.float32)
MAP_DAMAGES: dict[str, Callable[[Path], object]] = {
    "cut": cut,
    "empty": lambda file: file.write_bytes(b""),
    "a folder": lambda file: (file.unlink(), file.mkdir()),
    "no facts": packed(coordinates=PLACES),
    "facts no JSON": packed(coordinates=PLACES, facts=np.array("{")),
    "facts nested": packed(coordinates=PLACES, facts=np.array(NESTED)),
    "facts a list": packed(coordinates=PLACES, facts=np.array("[]")),
    "too few rows": packed(coordinates=PLACES[1:], facts=facts()),
    "one column": packed(coordinates=PLACES[:, :1], facts=facts()),
    "texts": packed(coordinates=PLACES.astype("U4"), facts=facts()),
    "another map's": packed(
        coordinates=PLACES, facts=facts(config=EmbeddingConfig("e" * 64, {}).to_dict())
    ),
}


@pytest.mark.parametrize("how", MAP_DAMAGES)
def test_a_damaged_map_counts_as_none_and_is_made_again(tmp_path, how):
    store, found = EmbeddingStore(tmp_path), Embedding(PLACES)
    store.save(MAP, found)
    assert store.get(MAP.id) is not None
    MAP_DAMAGES[how](store.folder / f"{MAP.id}.npz")
    assert store.get(MAP.id) is None
    if how != "a folder":
        store.save(MAP, found)
        assert np.array_equal(store.get(MAP.id).coordinates, PLACES)


STUDY_DAMAGES: dict[str, Callable[[Path], object]] = {
    "a list": lambda folder: (folder / "config.json").write_text("[]"),
    "JSON nested": lambda folder: (folder / "config.json").write_text(NESTED),
    "tables a list": lambda folder: rewrite(folder, tables=["mixed"]),
    "options a number": lambda folder: rewrite(folder, options=7),
    "a time of letters": lambda folder: rewrite(folder, created="noon"),
    "versions a text": lambda folder: rewrite(folder, versions="1.0"),
    "an empty folder": empty,
    "a file": replace_by_file,
}


@pytest.mark.parametrize("how", STUDY_DAMAGES)
def test_a_damaged_study_is_left_out_and_can_be_stored_again(tmp_path, how):
    study, store = STUDIES["z-priors"], StudyStore(tmp_path)
    outcome = Outcome({"mixed": [{"a": 1}]}, {"x": np.arange(3)}, [], "text")
    name, other = (store.save(study, study.options("quick", seed=s), outcome, 1.0) for s in (0, 1))
    STUDY_DAMAGES[how](store.folder / name)
    assert store.get(name) is None
    assert [stored.id for stored in store.list()] == [other]
    assert store.save(study, study.options("quick", seed=0), outcome, 1.0) == name
    assert store.get(name).outcome.text == "text"
    assert {path.name for path in store.folder.iterdir()} == {name, other}


def test_a_home_that_is_no_folder_is_a_sentence_on_every_page_until_it_is_one(
    start, tmp_path, monkeypatch
):
    place = tmp_path / "home"
    place.write_text("a file")
    monkeypatch.setenv("APPCA_HOME", str(place))
    app = start()
    assert [problem.message for problem in app.exception] == []
    (told,) = sentences(app)
    assert told.endswith("APPCA_HOME.")
    place.unlink()
    assert DIGITS in html(healthy(app.run()))
