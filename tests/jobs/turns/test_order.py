"""People take turns, short jobs do not wait for long ones, and memory is not given away twice."""

import itertools
import time
from pathlib import Path

from appca.jobs.folder import JobFolder
from appca.jobs.turns.job import Job
from appca.jobs.turns.needs import SHORT_SECONDS, Needs
from appca.jobs.turns.order import following

LONG, SHORT = Needs(60.0), Needs(1.0)


def job(name: str, owner: str, needs: Needs = LONG, asked: bool = True) -> Job:
    made = Job(JobFolder(Path(name)), name, needs)
    made.claim(owner, asked)
    return made


def begun(
    waiting: list[Job],
    running: list[Job],
    workers: int = 2,
    fits=lambda _: True,
    is_open=lambda _: True,
) -> str:
    following_job = following(waiting, running, {}, workers, fits, is_open)
    return "" if following_job is None else following_job.key


def drained(waiting: list[Job], workers: int = 1) -> list[str]:
    """Order in which jobs begin where each ends before the next."""
    served: dict[str, int] = {}
    names = []
    for turn in itertools.count(1):
        found = following(waiting, [], served, workers, lambda _: True)
        if found is None:
            return names
        served |= dict.fromkeys(found.people, turn)
        waiting = [one for one in waiting if one is not found]
        names.append(found.key)
    raise AssertionError


def test_people_take_turns_whatever_the_number_of_their_jobs():
    many = [job(f"a{i}", "ann") for i in range(4)]
    assert drained([*many, job("b0", "bob"), job("c0", "cy"), job("b1", "bob")]) == [
        *("a0", "b0", "c0"),
        *("a1", "b1"),
        *("a2", "a3"),
    ]


def test_six_windows_of_one_person_have_one_turn():
    many = [job(f"a{i}", f"window-{i} ann") for i in range(6)]
    assert drained([*many, job("b0", "window-6 bob"), job("b1", "window-7 bob")])[:4] == [
        *("a0", "b0", "a1", "b1")
    ]
    running = [job("x", "window-8 ann")]
    assert begun([*many, job("b0", "window-6 bob")], running) == "b0"


def test_what_an_open_window_waits_for_comes_before_the_work_of_closed_ones():
    waiting = [job("gone", "window-0 ann"), job("here", "window-1 bob")]
    waiting[1].claim("window-2 cy", asked=True)
    assert begun(waiting, [job("x", "bob")], is_open=lambda name: name == "window-2 cy") == "here"


def test_a_short_job_comes_before_the_older_long_ones_of_the_same_person():
    waiting = [job("long", "ann"), job("unknown", "ann", Needs()), job("short", "ann", SHORT)]
    assert drained(waiting) == ["short", "long", "unknown"]


def test_a_short_job_that_takes_long_does_not_hold_up_other_short_ones():
    running = [job("a0", "ann"), job("a1", "ann"), job("a2", "ann", SHORT)]
    waiting = [job("long", "bob"), job("short", "bob", SHORT)]
    running[2].began = time.monotonic()
    assert begun(waiting, running) == ""
    running[2].began -= SHORT_SECONDS
    assert begun(waiting, running) == "short"
    overdue = job("a3", "ann", SHORT)
    overdue.began = running[2].began
    assert begun(waiting, [*running, overdue]) == "", "four processes for two workers at most"


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
