"""A disk that fills while somebody moves a slider: the fit is shown, and said to be in memory."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from appca.data.sources.builtin import load
from appca.data.store import DatasetStore
from appca.jobs.folder import JobFolder
from appca.jobs.worker import work
from appca.runs.configuration import RunConfig
from appca.runs.fit import fit_run
from appca.runs.labels import Labels, labels, put
from appca.runs.store import MOST_HELD, RunStore
from appca.words.errors import InputError
from tests.faults.test_writing import fill
from tests.ui.conftest import go, healthy, html, sentences, slider, start  # noqa: F401

SPACE = "16m"


@pytest.fixture
def disk(tmp_path, monkeypatch) -> Iterator[Path]:
    """Keep the home on a small disk, and what is held in memory apart from other tests."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SPACE}", "appca-test", str(place)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("needs the command mount")
    if done.returncode:
        pytest.skip("needs the right to mount a small disk")
    monkeypatch.setenv("APPCA_HOME", str(place / "home"))
    monkeypatch.setattr("appca.runs.home.MEMORY", tmp_path)
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def config_of(seed: int = 0) -> RunConfig:
    parameters = {"n_components": 2, "n_active": 1, "max_iter": 2, "random_state": seed}
    return RunConfig(load("wine").digest, {}, "aPPCA", parameters)


def test_moves_of_the_slider_are_shown_from_memory_and_stored_once_there_is_room(disk, start):  # noqa: F811
    app = healthy(start())
    store = RunStore(disk / "home")
    before = {run.id for run in store.list()}
    fill(disk)
    for k in (5, 6):
        slider(app, "k").set_value(k).run()
        assert sentences(app) == []
        assert not app.exception
        assert f"K = {k}" in html(app)
        assert any("not stored" in badge.value for badge in app.markdown), "the badge"
        assert any("The disk is full" in badge.proto.help for badge in app.markdown)
    held = [run for run in store.list() if run.id not in before]
    assert [run.is_held for run in held] == [True, True]

    looked_at = store.get(next(run.id for run in held if run.config.k == 6))
    put(looked_at, Labels(("slope", *[""] * 5), (1,) * 6))
    assert labels(looked_at).names[0] == "slope"
    healthy(go(app, "export"))

    (disk / "ballast").unlink()
    go(app, "explore")
    healthy(app)
    assert not any("The disk is full" in badge.proto.help for badge in app.markdown)
    kept = store.get(looked_at.id)
    assert not kept.is_held
    assert labels(kept).names[0] == "slope"


def test_a_worker_hands_its_run_over_when_the_home_is_full(disk):
    home = disk / "home"
    DatasetStore(home).put(load("wine"))
    job = {"kind": "fit", "spec": {"config": config_of().to_dict()}, "key": "k", "server": "s"}
    folder = JobFolder.create(home / "jobs", job)
    fill(disk)
    state = work(folder, home)
    assert state.state == "done", state.message
    run = RunStore(home).get(state.result["run"])
    assert run.is_held
    assert run.fitted.scores.shape == (178, 2)


def test_what_was_to_be_stored_for_good_is_refused(disk):
    home = disk / "home"
    (home / "runs").mkdir(parents=True)
    fill(disk)
    with pytest.raises(InputError, match=r"The fit could not be stored in .*No space left"):
        RunStore(home).save(config_of(), fit_run(load("wine"), config_of()))


def test_memory_holds_the_newest_runs_only_and_they_can_be_renamed_and_deleted(disk):
    home = disk / "home"
    (home / "runs").mkdir(parents=True)
    fill(disk)
    store, result = RunStore(home), fit_run(load("wine"), config_of())
    runs = [store.save(config_of(i), result, hold=True) for i in range(MOST_HELD + 2)]
    assert {run.id for run in store.list()} == {run.id for run in runs[2:]}
    last = runs[-1]
    assert store.rename(last.id, "mine").name == "mine"
    K = len(last.fitted.components)
    put(last, Labels(("slope", *[""] * (K - 1)), (1,) * K))
    assert store.settle(last).is_held, "there is still no room"
    store.delete(last.id)
    assert store.get(last.id) is None


@pytest.mark.parametrize("what", ["link", "file", "open to all"])
def test_a_place_in_memory_that_is_another_s_is_not_used(disk, tmp_path, what):
    home = disk / "home"
    (home / "runs").mkdir(parents=True)
    store = RunStore(home)
    place = store.spare.parent
    if what == "link":
        (tmp_path / "other").mkdir()
        place.symlink_to(tmp_path / "other")
    elif what == "file":
        place.touch()
    else:
        place.mkdir()
        place.chmod(0o777)
    fill(disk)
    with pytest.raises(InputError, match=r"The fit could not be stored in .*No space left"):
        store.save(config_of(), fit_run(load("wine"), config_of()), hold=True)
    assert store.list() == []
