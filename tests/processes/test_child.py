"""Processes that are asked, and the one that compiles."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from appca.processes import Child, Ended, environment, start_compiler

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
