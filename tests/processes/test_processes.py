"""Processes that are asked, those that several threads share, and the one that compiles."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from appca.processes import Child, Ended, Pool, environment, start_compiler

ECHO = (sys.executable, "-m", "tests.processes.echo")


@pytest.fixture
def child() -> Iterator[Child]:
    child = Child(ECHO, environment(1), stderr=subprocess.DEVNULL)
    yield child
    child.end()


def test_one_process_answers_one_request_after_the_other_and_tells_news(child):
    heard: list[int] = []
    first = child.ask({"say": "a\nb ü", "news": 3}, heard.append)
    assert heard == [0, 1, 2]
    assert first == {"said": "a\nb ü", "process": child.pid, "nice": os.nice(0) + 3}
    assert child.ask({"say": 2})["said"] == 2
    assert child.is_alive


def test_a_process_that_dies_over_a_request_has_ended(child):
    with pytest.raises(Ended):
        child.ask({"exit": 5})
    assert child.process.wait() == 5
    assert not child.is_alive
    with pytest.raises(Ended):
        child.ask({"say": 1})


def test_a_process_that_is_killed_answers_nothing_and_ends_at_once(child):
    threading.Timer(0.3, child.kill).start()
    with pytest.raises(Ended):
        child.ask({"hang": 1})
    assert child.end() == -9


def test_a_process_ends_with_its_input_in_the_middle_of_its_work():
    child = Child(ECHO, environment(1), stderr=subprocess.DEVNULL)
    begun = threading.Event()

    def ask() -> None:
        with pytest.raises(Ended):
            child.ask({"hang": 1, "news": 1}, lambda _: begun.set())

    asked = threading.Thread(target=ask)
    asked.start()
    assert begun.wait(60)
    child.process.stdin.close()
    assert child.process.wait(60) == 0
    asked.join()
    child.end()


def test_modules_compile_in_a_process_of_their_own():
    assert start_compiler(["appca.canvas.image_placement"]).wait(60) == 0
    assert start_compiler(["appca.no_such_module"]).wait(60) != 0


@pytest.fixture
def pool() -> Iterator[Callable[..., Pool]]:
    """Return a function that makes a pool."""
    made: list[Pool] = []

    def make(*bounds: int) -> Pool:
        start = lambda: Child(ECHO, environment(1), stderr=subprocess.DEVNULL)  # noqa: E731
        made.append(Pool(start, *bounds))
        return made[-1]

    yield make
    for one in made:
        one.end()


def asked(pool: Pool) -> int:
    with pool.lent() as child:
        return child.ask({"say": 1})["process"]


def test_one_process_serves_one_after_the_other_and_a_dead_one_is_replaced(pool):
    pool = pool(2)
    pool.warm()
    (first,) = [child.pid for child in pool._idle]
    assert [asked(pool) for _ in range(3)] == [first] * 3
    with pytest.raises(Ended), pool.lent() as child:
        child.ask({"exit": 1})
    assert pool._idle == [], "the dead are not kept"
    second = asked(pool)
    assert second != first
    pool._idle[0].kill()
    pool._idle[0].process.wait()
    assert asked(pool) != second


def test_no_more_run_at_once_than_may_and_no_more_stay_than_are_kept(pool):
    pool, together = pool(2, 1), threading.Barrier(2)
    most: list[int] = []

    def ask() -> None:
        with pool.lent() as child:
            together.wait(60)  # two at a time, or never
            most.append(len(pool._lent))
            assert child.ask({"say": 1})["said"] == 1

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 4
    assert max(most) == 2
    assert len(pool._idle) == 1


def test_the_end_kills_those_at_work_and_no_other_is_started(pool):
    pool, begun, seen = pool(2), threading.Event(), []

    def ask() -> None:
        try:
            with pool.lent() as child:
                child.ask({"hang": 1, "news": 1}, lambda _: begun.set())
        except Ended:
            seen.append("ended")

    thread = threading.Thread(target=ask)
    thread.start()
    assert begun.wait(60)
    pool.end()
    thread.join(60)
    assert seen == ["ended"]
    pool.warm()
    with pytest.raises(Ended):
        asked(pool)
    assert pool._idle == []
