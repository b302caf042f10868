"""Every store under a kill, a refusal or a full disk at every step of writing: old or new, whole.

A forked child does the writing; what goes wrong there is counted by the changes it is about to
make to the disk, so that no step is left out.
"""

import gzip
import io
import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from appca.analysis.selections import SelectionStore
from appca.cli import main
from appca.data.files import ReadLimits
from appca.data.readers import read_many
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.jobs.queue import ENDED, Jobs
from appca.jobs.tasks import Context
from appca.jobs.worker import work
from appca.runs.fit import fit_run
from appca.runs.numbering import ComponentNumbers
from appca.runs.run import RunConfig
from appca.runs.store import RunStore
from appca.storage.files import ASIDE
from appca.words import InputError
from tests.faults.child import at_step, die, fate_of, refuse, small_files
from tests.faults.writers import WRITERS, Writer, sources, tree
from tests.jobs.waiting import ended, runs, until, workers
from tests.ui.conftest import go, healthy, html, sentences, slider, start

if os.name != "posix":
    pytest.skip("needs fork and limits of a POSIX system", allow_module_level=True)

__all__ = ["start"]  # the fixture
MOST_STEPS = 60
SENTENCE = re.compile(r"[^\n]+ [^\n]+\.")


@pytest.fixture(params=WRITERS)
def writer(request: pytest.FixtureRequest, tmp_path: Path) -> Writer:
    sources(tmp_path)
    return WRITERS[request.param]


def drafts(home: Path) -> list[Path]:
    return [path for sign in (".*", f"*{ASIDE}") for path in home.rglob(sign) if path.exists()]


def age(home: Path) -> None:
    """Let a day and more pass over all that lies there."""
    long_ago = time.time() - 2 * 86_400
    for path in [*home.rglob("*")]:
        os.utime(path, (long_ago, long_ago))


@pytest.mark.default_cases(7)
@pytest.mark.parametrize("act", [die, refuse], ids=["killed", "refused"])
@pytest.mark.parametrize("before", [1, None], ids=["in place of another", "anew"])
def test_at_any_step_there_is_the_old_or_the_new_and_in_the_end_no_draft(
    writer, before, act, tmp_path
):
    refusals = 0
    for step in range(1, MOST_STEPS):
        home = tmp_path / f"home{step}"
        home.mkdir()
        if before:
            writer.write(home, before)
        fate = fate_of(lambda home=home: writer.write(home, 2), at_step(step, home, act))
        found = writer.read(home)
        assert found in {before, 2}
        assert RunStore(home).damaged() == {}
        if act is refuse:
            assert not fate.killed
            assert drafts(home) == []
        if fate.sentence is not None:
            refusals += 1
            assert SENTENCE.fullmatch(fate.sentence), fate.sentence
            assert "No space left on device" in fate.sentence
            assert found == before
        age(home)
        writer.write(home, 2)
        assert writer.read(home) == 2
        assert drafts(home) == []
        if not fate.struck:
            break
    assert not fate.struck, "the writing was followed to its end"
    assert (found, step > 1) == (2, True), "there was a step at which it could be struck"
    assert act is die or refusals > 0 or writer.waits


@contextmanager
def mounted(place: Path, *how: str) -> Iterator[Path]:
    """Mount a disk, or skip the test."""
    place.mkdir(exist_ok=True)
    try:
        done = subprocess.run(["mount", *how, str(place)], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("needs the command mount")
    if done.returncode:
        pytest.skip("needs the right to mount a disk")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def small_disk(place: Path, n_bytes: int) -> tuple[Path, ...]:
    return (place, "-t", "tmpfs", "-o", f"size={n_bytes}", "appca-test")


def fill(disk: Path) -> None:
    """Take all the space there is."""
    with (disk / "ballast").open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            return


@pytest.mark.default_cases(14)
@pytest.mark.parametrize("n_bytes", [0, 100, 1000, None])
def test_on_a_full_disk_nothing_is_lost_and_with_space_again_all_works(writer, n_bytes, tmp_path):
    """No file grows beyond so many bytes, or (None) the disk itself is full."""
    with mounted(*small_disk(tmp_path / "disk", 1_000_000)) as disk:
        sources(disk)
        home = disk / "home"
        home.mkdir()
        writer.write(home, 1)
        before = tree(home)
        if n_bytes is None:
            fill(disk)
        trouble = small_files(n_bytes) if n_bytes is not None else lambda: None
        fate = fate_of(lambda: writer.write(home, 2), trouble)
        if fate.sentence is None:  # it was smaller than that, or a mere renewal that can wait
            assert writer.read(home) == 2 or writer.waits
        else:
            assert SENTENCE.fullmatch(fate.sentence), fate.sentence
            why = "No space left on device" if n_bytes is None else "File too large"
            assert why in fate.sentence
            assert tree(home) == before
            assert writer.read(home) == 1
        assert drafts(home) == []
        (disk / "ballast").unlink(missing_ok=True)
        writer.write(home, 2)
        assert writer.read(home) == 2


def test_an_upload_onto_a_full_disk_or_that_is_killed_leaves_nothing(tmp_path):
    """A file that has to be unpacked onto the disk before it can be read."""
    np.save(buffer := io.BytesIO(), np.arange(7000, dtype=np.float64).reshape(1000, 7))
    packed = gzip.compress(buffer.getvalue())

    def look() -> None:
        limits = ReadLimits(scratch=tmp_path / "uploads")
        read_many([("own.npy", io.BytesIO(packed))], limits=limits)

    for n_bytes in (0, 10_000):
        fate = fate_of(look, small_files(n_bytes))
        assert SENTENCE.fullmatch(fate.sentence), fate.sentence
        assert "File too large" in fate.sentence
        assert tree(tmp_path) == {}
    for step in range(1, MOST_STEPS):
        fate = fate_of(look, at_step(step, tmp_path, die))
        if not fate.killed:
            break
    assert step > 1
    assert not fate.killed
    age(tmp_path)
    assert fate_of(look, lambda: None).killed is False
    assert tree(tmp_path) == {}


# workers and pages


def config_of(**parameters: int) -> RunConfig:
    sizes = {"n_components": 3, "n_active": 2, "random_state": 0} | parameters
    return RunConfig(load("wine").digest, {"scale": "feature"}, "aPPCA", sizes)


@pytest.mark.thorough  # a process is killed at every step above
@pytest.mark.parametrize(
    "times", [2, pytest.param(100, marks=pytest.mark.slow)], ids=["each way once", "100 times"]
)
def test_a_worker_killed_at_any_moment_leaves_a_whole_run_or_none(tmp_path, times, seed):
    DatasetStore(tmp_path).put(load("wine"))
    jobs, store = Jobs(tmp_path, workers=1), RunStore(tmp_path)

    def begun(number: int) -> tuple[str, RunConfig]:
        config = config_of(n_components=4, random_state=number)
        job = jobs.submit("fit", {"config": config.to_dict(), "name": f"fit {number}"})
        runs(jobs, job)
        return job, config

    def moment(seconds: float) -> None:
        later = time.monotonic() + seconds
        until(lambda: time.monotonic() >= later, "a random moment")

    def whole(config: RunConfig) -> bool:
        run = store.get(config.id)
        return run is not None and run.fitted.scores.shape == (run.info.n_rows, 4)

    try:
        job, began = begun(0)[0], time.monotonic()
        assert ended(jobs, job).state == "done"
        taken, rng = time.monotonic() - began, random.Random(seed)
        for number in range(1, times + 1):
            job, config = begun(number)
            worker = workers(jobs)[0].pid
            share = (number - 1 + rng.random()) / times
            if number % 2:  # while it writes: a draft lies there, or the fit has ended
                until(
                    lambda job=job: any(store.folder.glob(".*")) or jobs.status(job).state in ENDED,
                    "a draft",
                )
            moment(share * taken / (20 if number % 2 else 1))
            os.kill(worker, signal.SIGKILL)
            # Not by /proc, where a process is a zombie while its further threads still end.
            until(lambda pid=worker: pid not in [one.pid for one in workers(jobs)], "its end")
            status = ended(jobs, job)
            if status.state == "failed":
                assert "(signal 9, possibly out of memory); start it again." in status.message
            else:
                assert (status.state, whole(config)) == ("done", True), "shown, so it is there"
            assert store.damaged() == {}
            listed = {run.id for run in store.list()}
            assert {path.name for path in store.folder.glob("*")} == listed
            until(lambda: not [*store.folder.glob(".*")], "its drafts to go with the worker")
        job, config = begun(times)  # the last one killed, again
        assert ended(jobs, job).state == "done"
        assert whole(config)
    finally:
        jobs.close()


def test_a_fit_on_a_full_disk_is_shown_and_stored_once_there_is_room(start, tmp_path, monkeypatch):
    with mounted(*small_disk(tmp_path / "disk", 16_000_000)) as disk:
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
        healthy(app)
        assert "K = 5" in html(app)
        assert any("not stored" in badge.value for badge in app.markdown), "the badge"
        assert any("The disk is full" in badge.proto.help for badge in app.markdown)
        assert {run.id for run in store.list()} == before
        healthy(go(app, "export"))
        (disk / "ballast").unlink()
        go(app, "explore")
        healthy(app)
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


def test_pages_of_a_read_only_home_show_what_is_stored_and_say_what_is_not(read_only, start):
    (run,) = RunStore(read_only).list()
    app = start()
    (told,) = sentences(app)
    assert told.startswith("“Handwritten digits, 8 × 8” could not be stored in")
    assert "Read-only file system; " in told
    app = healthy(start(run=run.id))
    said = {
        "data/open": "my fit",
        "components/gallery": "slope",
        "groups/differences": "",
        "export": "",
        "explore": "",
    }
    for page, words in said.items():
        assert words in html(healthy(go(app, page)))
        if page == "groups/differences":
            named = next(box for box in app.selectbox if box.label == "Named selection")
            assert named.value == "few"
    slider(app, "k").set_value(5).run()
    assert "K = 5" in html(healthy(app)), "it is fitted, and in memory"
    assert any("read-only" in badge.proto.help for badge in app.markdown)
    assert [one.id for one in RunStore(read_only).list()] == [run.id]
    app = healthy(go(app, "data/open"))
    app.button(key="source-breast_cancer-open").click().run()
    (told,) = sentences(app)
    assert re.search("could not be stored in.*Read-only file system; ", told)


def test_saving_in_a_read_only_home_says_in_a_sentence_why_not(read_only, capsys):
    store, named, wine = RunStore(read_only), SelectionStore(read_only), load("wine")
    (run,), less = store.list(), config_of(n_active=1)
    acts = {
        "The names of fit": lambda: ComponentNumbers(read_only).rename(run, 0, "other"),
        "The name of the fit": lambda: store.rename(run.id, "other"),
        "The fit": lambda: store.save(less, fit_run(wine, less)),
        "Fit": lambda: store.delete(run.id),
        "The selection could not be deleted": lambda: named.delete(wine.digest, "few"),
        "The selection": lambda: named.save(wine.digest, "new", np.ones(178, bool)),
    }
    for beginning, act in acts.items():
        with pytest.raises(InputError, match="Read-only file system; ") as told:
            act()
        assert str(told.value).startswith(beginning)
    assert store.get(run.id).name == "my fit"
    assert main(["check"]) == main(["runs"]) == 0
    assert "my fit" in capsys.readouterr().out
    assert main(["fit", "wine", "--store"]) != 0
    assert "Read-only file system; " in capsys.readouterr().err
