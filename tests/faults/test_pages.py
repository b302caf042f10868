"""Tests of pages with damaged, missing, full and read-only stores, in one or several sessions."""

import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from appca.analysis.selections import SelectionStore
from appca.cli import main
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.jobs.tasks import Context
from appca.jobs.worker import work
from appca.runs import store
from appca.runs.fit import fit_run
from appca.runs.numbering import ComponentNumbers
from appca.runs.run import RunConfig
from appca.runs.store import RunStore
from appca.ui import services
from appca.words import InputError
from tests.faults.disks import fill, mounted, small_disk
from tests.faults.test_stores import CHANGED, DAMAGES, bomb, data, edit, run, selection
from tests.forged import rewrite
from tests.homes import copied
from tests.pages import give, select, table
from tests.ui.conftest import address, go, healthy, html, sentences, slider, start

__all__ = ["start"]  # the fixture


def unbroken(app):
    assert [problem.message for problem in app.exception] == []
    return app


def warnings(app) -> list[str]:
    return [box.value.replace("\\", "") for box in app.warning]


def test_the_pages_name_what_is_damaged_and_show_the_rest(appca_home, start):
    home = copied(appca_home)
    edit(run(home) / "labels.json", "größe", "große")
    bomb(home)
    app = start("components/gallery", run=run(home).name)
    assert any(f"are damaged (labels.json {CHANGED})" in text for text in warnings(app))
    go(app, "groups/differences")
    assert any(f"delete {selection(home)}, then" in text for text in warnings(app))
    assert sentences(app) == []
    kept, *doomed = [one for one in RunStore(home).list() if one.config.dataset == data(home).name]
    for one, how in zip(doomed, ("gone", "nested"), strict=False):
        DAMAGES[how](one.path / "config.json")
    app = go(app, "data/open")
    for one in doomed[:2]:
        (told,) = [text for text in warnings(app) if f"Fit {one.id} is damaged" in text]
        assert told.endswith("delete it or fit it again.")
        healthy(app.button(key=f"drop-{one.id}").click().run())
        assert not os.path.lexists(one.path)
    assert kept.id in {one.id for one in RunStore(home).list()}


def test_a_link_to_a_damaged_or_absent_run_gives_a_sentence_and_the_page_lives(start, appca_home):
    first = address(start(k="3", l="1"))
    rewrite(appca_home / "runs" / first["run"] / "config.json", info=[1])
    app = unbroken(start(**first))
    (told,) = sentences(app)
    assert told.startswith(f"Fit {first['run']} is damaged")
    assert html(app).count('class="ca-piece"') == 3, "K of the link, fitted again"
    assert address(healthy(app.run()))["run"] == first["run"]
    assert RunStore(appca_home).damaged() == {}
    app.number_input(key="set-random_state").set_value(5).run()
    linked = address(healthy(app))
    RunStore(appca_home).delete(linked["run"])
    app = healthy(start(**linked))
    assert any(f"The fit {linked['run']} of this link" in box.value for box in app.info)
    assert address(app)["run"] != linked["run"]
    assert not any("of this link" in box.value for box in healthy(app.run()).info), "said once"


def test_a_run_that_cannot_be_read_for_a_while_is_kept_as_it_was(start, appca_home, monkeypatch):
    app = start()
    run = address(healthy(app))["run"]
    RunStore(appca_home).rename(run, "hours of work")

    def times() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in (appca_home / "runs").rglob("*")}

    before = times()
    for reason in (OSError(errno.EMFILE, "Too many open files"), MemoryError()):

        def fail(*_: object, why: Exception = reason) -> None:
            raise why

        with monkeypatch.context() as patch:
            patch.setattr(store, "_load", fail)
            app.run()
        (told,) = sentences(unbroken(app))
        assert f"fit {run} cannot be read now" in told, reason
        assert address(app)["run"] == run
    assert times() == before, "neither deleted nor fitted again"
    healthy(app.run())
    assert RunStore(appca_home).get(run).name == "hours of work"


def test_data_that_are_damaged_or_gone_are_left_with_a_sentence(start, appca_home):
    data, wine = DatasetStore(appca_home), load("wine")
    DAMAGES["cut"](data.folder / data.put(wine) / "matrix.npy")
    one = unbroken(start(data=wine.digest))
    assert f"data set {wine.digest[:12]} is damaged" in sentences(one)[0]
    assert "Handwritten digits" in html(one)
    two = start("data/open")
    for app in (go(one, "data/open"), two):
        app.button(key="source-wine-open").click().run()
        assert "Wine" in html(healthy(app))
    data.delete(address(one)["data"])
    healthy(go(one, "explore"))
    assert "Wine" in html(healthy(two.run())), "as long as they are open"
    services._opened.clear()  # as after many other data sets
    two.run()
    assert "no stored data set" in sentences(unbroken(two))[0]
    assert "Handwritten digits" in html(two)
    healthy(go(two, "data/open"))
    two.button(key="source-wine-open").click().run()
    assert "Wine" in html(healthy(two))
    assert "Wine" in html(healthy(one.run())), "what the one has loaded again is there for both"


def test_a_home_that_is_no_folder_is_a_sentence_until_it_is_one(start, tmp_path, monkeypatch):
    place = tmp_path / "home"
    place.write_text("a file")
    monkeypatch.setenv("APPCA_HOME", str(place))
    app = unbroken(start())
    (told,) = sentences(app)
    assert told.endswith("APPCA_HOME to another folder.")
    place.unlink()
    assert "Handwritten digits" in html(healthy(app.run()))


def test_nothing_of_one_session_shows_in_another_and_what_one_deletes_the_other_fits_again(
    start, appca_home
):
    one, two = start(), start("data/open")
    (run,) = RunStore(appca_home).list()
    stored = (appca_home / "runs" / run.id).rename(appca_home / "elsewhere")
    two.text_input(key=f"name-{run.id}").set_value("late").run()
    assert f"no fit “{run.id}” to rename" in sentences(unbroken(two))[0]
    stored.rename(run.path)
    healthy(two.run())
    RunStore(appca_home).delete(run.id)
    two.button(key=f"open-{run.id}").click().run()
    assert address(healthy(two))["k"] == "4", "its settings are opened, to be fitted again"
    RunStore(appca_home).delete(run.id)
    select(healthy(go(one, "explore")), [3, 5, 800])
    assert address(one)["run"] == run.id
    assert RunStore(appca_home).get(run.id).fitted.scores.shape == (1797, 4)
    assert "sel" not in address(healthy(two.run()))
    select(two, [4])
    assert address(healthy(one.run()))["sel"] != address(two)["sel"]
    give(two, ("two-secret.csv", table()))
    assert "two-secret" in html(healthy(two.run()))
    assert "two-secret" not in html(healthy(go(one, "explore")))
    assert address(one)["data"] != address(two)["data"]


def config_of(**parameters: int) -> RunConfig:
    sizes = {"n_components": 3, "n_active": 2, "random_state": 0} | parameters
    return RunConfig(load("wine").digest, {"scale": "feature"}, "aPPCA", sizes)


def test_a_fit_on_a_full_disk_is_shown_and_stored_once_there_is_room(start, tmp_path, monkeypatch):
    with small_disk(tmp_path / "disk", 16_000_000) as disk:
        home = disk / "home"
        monkeypatch.setenv("APPCA_HOME", str(home))
        app, store = healthy(start()), RunStore(home)
        DatasetStore(home).put(load("wine"))
        before = {run.id for run in store.list()}
        fill(disk)
        last = work("fit", {"config": config_of().to_dict()}, Context(home))
        assert last["state"] == "failed"
        assert last["message"].startswith("The fit could not be stored in ")
        assert last["message"].count(". ") == 0
        slider(app, "k").set_value(5).run()
        assert "K = 5" in html(healthy(app))
        assert any("not stored" in badge.value for badge in app.markdown), "the badge"
        assert any("The disk is full" in badge.proto.help for badge in app.markdown)
        assert {run.id for run in store.list()} == before
        (disk / "ballast").unlink()
        healthy(go(app, "explore"))
        assert not any("The disk is full" in badge.proto.help for badge in app.markdown)
        assert [run.config.k for run in store.list() if run.id not in before] == [5]


@pytest.fixture
def read_only(tmp_path, monkeypatch) -> Iterator[Path]:
    """Return a home on a disk that takes nothing, with work that was stored before."""
    writable, wine = tmp_path / "writable", load("wine")
    DatasetStore(writable).put(wine)
    run = RunStore(writable).save(config_of(), fit_run(wine, config_of()), "my fit")
    ComponentNumbers(writable).rename(run, 0, "slope")
    SelectionStore(writable).save(wine.digest, "few", np.arange(wine.n_rows) < 20)
    with mounted(tmp_path / "place", "--bind", "-o", "ro", str(writable)) as place:
        monkeypatch.setenv("APPCA_HOME", str(place))
        yield place


def test_a_read_only_home_is_shown_and_what_cannot_be_saved_is_said(read_only, start, capsys):
    store, named, wine = RunStore(read_only), SelectionStore(read_only), load("wine")
    (run,), less = store.list(), config_of(n_active=1)
    app = healthy(start(run=run.id))
    said = {"data/open": "my fit", "components/gallery": "slope", "explore": ""}
    for page, words in said.items():
        assert words in html(healthy(go(app, page)))
    slider(app, "k").set_value(5).run()
    assert "K = 5" in html(healthy(app)), "it is fitted, and in memory"
    assert any("read-only" in badge.proto.help for badge in app.markdown)
    assert [one.id for one in store.list()] == [run.id]
    app = healthy(go(app, "data/open"))
    app.button(key="source-breast_cancer-open").click().run()
    (told,) = sentences(app)
    assert re.search("could not be stored in.*Read-only file system; ", told)
    acts = {
        "The names of fit": lambda: ComponentNumbers(read_only).rename(run, 0, "other"),
        "The name of the fit": lambda: store.rename(run.id, "other"),
        "The fit": lambda: store.save(less, fit_run(wine, less)),
        "Fit": lambda: store.delete(run.id),
        "The selection could not be deleted": lambda: named.delete(wine.digest, "few"),
        "The selection": lambda: named.save(wine.digest, "new", np.ones(178, bool)),
    }
    for beginning, act in acts.items():
        with pytest.raises(InputError, match="Read-only file system; ") as refused:
            act()
        assert str(refused.value).startswith(beginning)
    assert main(["check"]) == main(["runs"]) == 0
    assert "my fit" in capsys.readouterr().out
    assert main(["fit", "wine", "--store"]) != 0
    assert "Read-only file system; " in capsys.readouterr().err
