"""Jobs that a stranger may have written, floods of them, and what is another window's."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from appca.jobs.folder import JobFolder
from appca.jobs.queue import Jobs
from appca.jobs.turns.limits import Limits
from appca.jobs.turns.needs import Needs
from appca.jobs.worker import work
from appca.runs.configuration import defaults
from appca.ui.session import fitting, services
from appca.words.errors import InputError
from tests.ui.conftest import address, healthy, start  # noqa: F401 - a fixture

IDLE = (sys.executable, "-c", "import sys; sys.stdin.read()")
FIT = {"dataset": "0" * 64, "preprocessing": {}, "model": "aPPCA", "parameters": defaults("aPPCA")}
NO_DATA = "There is no stored data set “{}”; choose one from the list or load it again."


def broken(error: str) -> str:
    return f"The job failed unexpectedly ({error}); see LOG."


WRITTEN: list[tuple[str, object, str]] = [  # kind, spec, sentence
    (
        "cook",
        {},
        "There is no job of the kind “cook”; choose fit, umap, download, study, quality, grid, "
        "stability, models, masked, project.",
    ),
    ("fit", {}, broken("KeyError: 'config'")),
    ("fit", {"config": "aPPCA"}, broken("AttributeError: 'str' object has no attribute 'get'")),
    ("fit", {"config": FIT | {"dataset": "../../etc"}}, NO_DATA.format("../../etc")),
    ("fit", {"config": FIT}, NO_DATA.format("000000000000…")),
    (
        "fit",
        {"config": FIT | {"model": "Oracle"}},
        "There is no model “Oracle”; choose one of aPPCA, aFA, NPPCA, isFA, fsFA, PPCA.",
    ),
    ("umap", {"dataset": 7}, "it has 7 for “dataset”, where a text belongs"),
    (
        "download",
        {"key": "../etc"},
        "There is no built-in data set '../etc'; choose one of digits, mnist, coil20, turntable, "
        "planes, brain, wine, breast_cancer.",
    ),
    (
        "download",
        {"key": "mnist", "options": {"n": -4}},
        "MNIST has 70,000 digits, so n must be a whole number from 2 to 70,000; got -4.",
    ),
    (
        "project",
        {"key": "../..", "run": "../.."},
        "The fit or the new rows are not there any more; open both again.",
    ),
    ("study", {"options": {}}, broken("KeyError: 'study'")),
    ("grid", {"dataset": 0}, broken("KeyError: 'parameters'")),
]


@pytest.mark.parametrize(("kind", "spec", "sentence"), WRITTEN)
def test_a_forged_job_ends_with_a_sentence(tmp_path, kind, spec, sentence):
    told = {"kind": kind, "spec": spec, "server": "", "key": ""}
    folder = JobFolder.create(tmp_path / "jobs", told)
    before = sorted(tmp_path.iterdir())
    last = work(folder, tmp_path)
    said = last.message.replace(str(folder.log_file), "LOG")
    assert (last.state, said) == ("failed", sentence)
    assert sorted(tmp_path.iterdir()) == before, "nothing was stored"


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Callable[..., Jobs]]:
    """Return a function that makes a queue whose jobs never end, with its limits."""
    made: list[Jobs] = []

    def make(**limits: int) -> Jobs:
        made.append(Jobs(tmp_path, command=IDLE, limits=Limits(**limits)))
        return made[-1]

    yield make
    for jobs in made:
        jobs.close()


def flooded(jobs: Jobs, windows: int) -> tuple[int, str]:
    """How many of 300 jobs are accepted, and what the next is told."""
    for i in range(300):
        try:
            jobs.submit("wait", {"i": i}, owner=f"window {i % windows}")
        except InputError as error:
            return i, str(error)
    return 300, ""


def test_floods_are_refused_and_leave_a_place_for_others(queue):
    jobs = queue(waiting=12, waiting_per_visitor=5)
    accepted, told = flooded(jobs, windows=1)
    assert accepted == 7, "two run"
    assert told == (
        "5 jobs of yours are waiting, the most allowed; cancel one, or wait until one has begun."
    )
    jobs.submit("wait", {"i": "mine"}, owner="somebody else")
    accepted, told = flooded(jobs, windows=300)
    assert told == (
        "12 jobs of all visitors are waiting, the most allowed; start this one again when some "
        "have finished."
    )
    assert len(jobs.active()) == 14


def test_a_job_that_wants_all_memory_is_refused(queue, monkeypatch):
    monkeypatch.setattr("appca.jobs.queue.needs_of", lambda *_: Needs(None, 10**13))
    with pytest.raises(InputError) as refused:
        queue().submit("wait", {})
    assert "This needs about 10000.0 GB of memory, and jobs may use" in str(refused.value)


def test_what_cannot_be_written_is_refused(queue):
    with pytest.raises(InputError, match="settings of this job cannot be stored"):
        queue().submit("wait", {"x": float("nan")})


@pytest.mark.parametrize("owner", ["", "mallory", "ann ", "\0", "ann" * 1000])
def test_nobody_else_ends_a_job(queue, owner):
    jobs = queue()
    job = jobs.submit("fit", {"config": {}}, owner="ann")
    assert not jobs.cancel(job, owner)
    assert not jobs.keep(job, owner)
    assert [one.id for one in jobs.active("ann")] == [job]


def test_an_address_with_the_job_of_another_does_not_end_it(queue, start, monkeypatch):  # noqa: F811
    jobs = queue()
    monkeypatch.setattr(services, "jobs", lambda: jobs)
    monkeypatch.setattr(fitting, "LIVE_SECONDS", -1.0)
    ann = start("explore")
    ann.button(key="start_fit").click().run() if "start_fit" in keys(ann) else None
    (job,) = jobs.active()
    bob = healthy(start(job=job.id))
    for key in keys(bob):
        if key == f"cancel-{job.id}":
            bob.button(key=key).click().run()
    assert f"cancel-{job.id}" in keys(healthy(ann.run()))
    assert not jobs._find(job.id).cancelled


def keys(app: object) -> set[str]:
    return {button.key for button in app.button}


@pytest.mark.parametrize(
    "text",
    ["../../etc/passwd", "0" * 12, ",", ",".join(["a" * 12] * 5000), "\0", "<b>", "0" * 12 + ",x"],
)
def test_an_address_of_jobs_that_are_none_is_forgotten(start, text):  # noqa: F811
    assert "job" not in address(healthy(start(job=text)))
