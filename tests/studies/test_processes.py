"""Work shared out over processes: order, progress, refusals, deaths, and being stopped."""

import contextlib
import os
import time

import pytest

from appca.studies.fitting import work
from appca.words import InputError

PIECES = "tests.studies.pieces"
SPECS = [{"x": x} for x in range(5)]


def silent(_stage: str, _share: float) -> None:
    pass


@pytest.mark.parametrize("processes", [1, 2])
def test_results_come_in_order_and_progress_grows(processes):
    told = []
    rows = work(f"{PIECES}:square", SPECS, lambda *what: told.append(what), processes)
    assert [row["square"] for row in rows] == [0, 1, 4, 9, 16]
    assert (os.getpid() in {row["process"] for row in rows}) == (processes == 1)
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    assert 0 <= shares[0] <= shares[-1] <= 1
    assert any(stage.startswith("squaring") for stage, _ in told)
    with pytest.raises(ValueError, match="x must be small; got"):
        work(f"{PIECES}:refuse", SPECS, silent, processes)


def test_a_dead_process_is_one_sentence():
    with pytest.raises(InputError, match="ended before it was done; start it again"):
        work(f"{PIECES}:die", SPECS, silent, 2)


def test_stopping_ends_the_processes_at_once_in_the_middle_of_their_work():
    class Stopped(Exception):
        pass

    seen: set[int] = set()
    stopped = []

    def report(stage: str, _share: float) -> None:
        if stage.startswith("process"):
            seen.add(int(stage.split()[1]))
            stopped.append(time.monotonic())
            raise Stopped

    with contextlib.suppress(Stopped):
        work(f"{PIECES}:hang", SPECS[:2], report, 2)
    assert len(stopped) == 1
    assert time.monotonic() - stopped[0] < 2.0
    for process in seen:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
