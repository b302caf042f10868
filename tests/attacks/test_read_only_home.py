"""A home that can be read and not written to: what is stored is shown, and saving says why not."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from appca.analysis.selections import SelectionStore
from appca.cli import main
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.runs.fit import fit_run
from appca.runs.numbering import ComponentNumbers
from appca.runs.run import RunConfig
from appca.runs.store import RunStore
from appca.words import InputError
from tests.ui.conftest import go, healthy, html, sentences, slider, start  # noqa: F401

NOBODY = 65534
PAGES = (
    *("data/open", "data/this", "data/add"),
    *("components/gallery", "components/meaning", "groups/differences", "groups/unusual"),
    *("check/trust", "check/choose", "paper", "export", "explore"),
)


def config_of(**parameters: int) -> RunConfig:
    sizes = {"n_components": 3, "n_active": 2, "random_state": 0} | parameters
    return RunConfig(load("wine").digest, {"scale": "feature"}, "aPPCA", sizes)


def stored_work(home: Path) -> str:
    """Store data, a fit with a named component, and a selection; return the fit's id."""
    wine = load("wine")
    DatasetStore(home).put(wine)
    run = RunStore(home).save(config_of(), fit_run(wine, config_of()), "my fit")
    ComponentNumbers(home).rename(run, 0, "slope")
    SelectionStore(home).save(wine.digest, "few", np.arange(wine.n_rows) < 20)
    return run.id


@pytest.fixture
def home(tmp_path, monkeypatch) -> Iterator[Path]:
    """Return a home on a disk that takes nothing, with work that was stored before."""
    writable, place = tmp_path / "writable", tmp_path / "place"
    for folder in (writable, place):
        folder.mkdir()
    stored_work(writable)
    mount = ["mount", "--bind", "-o", "ro", str(writable), str(place)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("needs the command mount")
    if done.returncode:
        pytest.skip("needs the right to mount a folder")
    monkeypatch.setenv("APPCA_HOME", str(place))
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def refused(app) -> str:
    """Return the one sentence that a page says of a disk that takes nothing."""
    (sentence,) = sentences(app)
    assert not app.exception
    assert "Read-only file system; " in sentence
    assert sentence.count(". ") == 0
    return sentence


def test_every_page_shows_what_is_stored(home, start):  # noqa: F811
    (run,) = RunStore(home).list()
    app = healthy(start(run=run.id))
    assert "178 rows × 13" in html(app)
    for page in PAGES:
        healthy(go(app, page))
        if page == "data/open":
            assert "my fit" in html(app)
        if page == "components/gallery":
            assert "slope" in html(app)
        if page == "groups/differences":
            named = next(box for box in app.selectbox if box.label == "Named selection")
            assert named.value == "few"
    slider(app, "k").set_value(5).run()
    healthy(app)
    assert "K = 5" in html(app), "it is fitted, and in memory"
    assert any("read-only" in badge.proto.help for badge in app.markdown)
    assert [one.id for one in RunStore(home).list()] == [run.id]


def test_the_bare_address_shows_a_stored_data_set_and_says_what_was_not_stored(home, start):  # noqa: F811
    app = start()
    assert refused(app).startswith("“Handwritten digits, 8 × 8” could not be stored in")
    assert "178 rows × 13" in html(app)
    healthy(app.run())


def test_saving_says_in_a_sentence_why_not(home, start):  # noqa: F811
    (run,) = RunStore(home).list()
    app = healthy(start("data/open", run=run.id))
    app.button(key="source-breast_cancer-open").click().run()
    assert "could not be stored in" in refused(app)
    wine, less = load("wine"), config_of(n_active=1)
    named = SelectionStore(home)
    acts = {
        "The names of fit": lambda: ComponentNumbers(home).rename(run, 0, "other"),
        "The name of the fit": lambda: RunStore(home).rename(run.id, "other"),
        "The fit": lambda: RunStore(home).save(less, fit_run(wine, less)),
        "Fit": lambda: RunStore(home).delete(run.id),
        "The selection could not be deleted": lambda: SelectionStore(home).delete(
            wine.digest, "few"
        ),
        "The selection": lambda: named.save(wine.digest, "new", np.ones(178, bool)),
    }
    for beginning, act in acts.items():
        with pytest.raises(InputError, match="Read-only file system; ") as told:
            act()
        assert str(told.value).startswith(beginning)
    assert RunStore(home).get(run.id).name == "my fit"


def test_the_command_line_reads_a_home_that_is_read_only(home, capsys):
    assert main(["check"]) == 0
    assert main(["runs"]) == 0
    assert "my fit" in capsys.readouterr().out
    assert main(["fit", "wine", "--store"]) != 0
    assert "Read-only file system; " in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # where another test loaded JAX
@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs to become nobody"
)
def test_somebody_without_the_right_to_write_sees_what_is_stored(tmp_path, monkeypatch, start):  # noqa: F811
    home = tmp_path / "home"
    home.mkdir()
    run = stored_work(home)
    monkeypatch.setenv("APPCA_HOME", str(home))
    healthy(start(run=run))  # everything is loaded, for whom nothing else may be readable
    given = tmp_path / "given"
    shutil.copytree(home, given)
    for folder, _, files in os.walk(given):
        for name in files:
            Path(folder, name).chmod(0o444)
        Path(folder).chmod(0o555)
    monkeypatch.setenv("APPCA_HOME", str(given))
    for folder in (tmp_path, *tmp_path.parents):
        if folder.name.startswith(("pytest", "popen", "test_")):  # what pytest made for root alone
            folder.chmod(0o755)
    said = as_nobody(lambda: look(start, run))
    assert said == {"errors": [], "exceptions": [], "rows": True}


def look(start, run: str) -> dict:  # noqa: F811
    app = start(run=run)
    exceptions = [one.message for one in app.exception]
    return {"errors": sentences(app), "exceptions": exceptions, "rows": "178 rows" in html(app)}


def as_nobody(act) -> dict:
    """Return what a function says in a process that may write nowhere."""
    source, target = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            said = act()
        except BaseException as error:
            said = {"error": repr(error)}
        os.write(target, json.dumps(said).encode())
        os._exit(0)
    os.close(target)
    with os.fdopen(source) as pipe:
        said = json.loads(pipe.read())
    os.waitpid(child, 0)
    return said
