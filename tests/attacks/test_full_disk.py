"""A disk that fills while somebody moves a slider: the fit is shown, and said to be in memory."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.jobs.tasks import Context
from appca.jobs.worker import work
from appca.runs.run import RunConfig
from appca.runs.store import RunStore
from tests.faults.test_writing import fill, mounted
from tests.ui.conftest import go, healthy, html, sentences, slider, start  # noqa: F401


@pytest.fixture
def disk(tmp_path, monkeypatch) -> Iterator[Path]:
    """Keep the home on a small disk."""
    with mounted(tmp_path / "disk", 16_000_000) as place:
        monkeypatch.setenv("APPCA_HOME", str(place / "home"))
        yield place


def config_of(seed: int = 0) -> RunConfig:
    parameters = {"n_components": 2, "n_active": 1, "max_iter": 2, "random_state": seed}
    return RunConfig(load("wine").digest, {}, "aPPCA", parameters)


@pytest.mark.thorough
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
    assert {run.id for run in store.list()} == before
    healthy(go(app, "export"))
    healthy(go(app, "check/trust"))

    (disk / "ballast").unlink()
    go(app, "explore")
    healthy(app)
    assert not any("The disk is full" in badge.proto.help for badge in app.markdown)
    assert [run.config.k for run in store.list() if run.id not in before] == [6]


def test_a_worker_says_that_the_home_is_full(disk):
    home = disk / "home"
    DatasetStore(home).put(load("wine"))
    fill(disk)
    last = work("fit", {"config": config_of().to_dict()}, Context(home))
    assert last["state"] == "failed"
    assert last["message"].startswith("The fit could not be stored in ")
    assert last["message"].count(". ") == 0
    assert RunStore(home).list() == []
