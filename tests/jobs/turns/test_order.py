"""Windows take turns, short jobs do not wait for long ones, and memory is not given away twice."""

import itertools
from pathlib import Path

from appca.jobs.folder import JobFolder
from appca.jobs.turns.job import Job
from appca.jobs.turns.needs import Needs
from appca.jobs.turns.order import following

LONG, SHORT = Needs(60.0), Needs(1.0)


def job(name: str, owner: str, needs: Needs = LONG, asked: bool = True) -> Job:
    made = Job(JobFolder(Path(name)), name, needs)
    made.claim(owner, asked)
    return made


def begun(waiting: list[Job], running: list[Job], workers: int = 2, fits=lambda _: True) -> str:
    found = following(waiting, running, {}, workers, fits)
    return "" if found is None else found.key


def drained(waiting: list[Job], workers: int = 1) -> list[str]:
    """Order in which jobs begin where each ends before the next."""
    served: dict[str, int] = {}
    names = []
    for turn in itertools.count(1):
        found = following(waiting, [], served, workers, lambda _: True)
        if found is None:
            return names
        served |= dict.fromkeys(found.claims, turn)
        waiting = [one for one in waiting if one is not found]
        names.append(found.key)
    raise AssertionError


def test_windows_take_turns_whatever_the_number_of_their_jobs():
    many = [job(f"a{i}", "ann") for i in range(4)]
    assert drained([*many, job("b0", "bob"), job("c0", "cy"), job("b1", "bob")]) == [
        *("a0", "b0", "c0"),
        *("a1", "b1"),
        *("a2", "a3"),
    ]


def test_the_window_with_fewer_jobs_running_comes_first():
    assert begun([job("a1", "ann"), job("b0", "bob")], [job("a0", "ann")]) == "b0"


def test_what_was_asked_for_comes_before_refinements_of_the_same_window():
    waiting = [job("refinement", "ann", asked=False), job("asked", "ann")]
    assert drained(waiting) == ["asked", "refinement"]


def test_a_short_job_has_a_worker_beside_those_that_long_ones_hold():
    running = [job("a0", "ann"), job("a1", "ann")]
    waiting = [job("b0", "bob"), job("a2", "ann", SHORT)]
    assert begun(waiting, running) == "a2"
    assert begun(waiting, [*running, job("a3", "ann", SHORT)]) == "", "one beside the two"
    assert begun([job("x", "bob", Needs())], running) == "", "what is unknown may be long"


def test_a_job_that_must_wait_for_memory_lets_short_ones_pass_and_no_others():
    waiting = [job("large", "ann"), job("long", "bob"), job("short", "bob", SHORT)]
    fits = {"long", "short"}
    assert begun(waiting, [job("b", "cy")], fits=lambda one: one.key in fits) == "short"
    assert begun(waiting[:2], [job("b", "cy")], fits=lambda one: one.key in fits) == ""
