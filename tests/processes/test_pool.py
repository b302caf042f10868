"""Processes that several threads share: kept, replaced, ended."""

import subprocess
import threading
from collections.abc import Callable, Iterator

import pytest

from appca.processes import Child, Ended, Pool, environment
from tests.processes.test_child import ECHO


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
