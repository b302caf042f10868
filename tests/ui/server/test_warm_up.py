"""A server that loads nothing before it is asked, and gives back what nobody looks at any more."""

import threading

import pytest

from appca.ui.frame import memory
from appca.ui.server import warm_up, watch
from appca.ui.session import caching


@pytest.fixture
def warming(monkeypatch):
    monkeypatch.delenv(warm_up.OPENS, raising=False)
    monkeypatch.setattr(watch, "page_was_asked", threading.Event())
    made = warm_up.WarmUp()
    yield made
    made.stop()
    made.join(20)
    assert not made.is_alive()


def test_nothing_is_loaded_before_a_page_is_asked_for(warming, monkeypatch):
    loading = threading.Event()
    monkeypatch.setattr(warm_up, "_load_first", loading.set)
    monkeypatch.setattr(warm_up.page_turn, "wait_for_the_first", lambda _: warming.stop())
    monkeypatch.setattr(warm_up, "_steps", lambda: iter(()))
    monkeypatch.setattr("appca.processes.child.start_compiler", lambda _: Over())
    warming.start()
    assert not loading.wait(0.2)
    watch.page_was_asked.set()
    assert loading.wait(20)


class Over:
    """A compiler that has ended."""

    def poll(self):
        """Say so."""
        return 1

    wait = poll

    def kill(self):
        """Do nothing."""


def test_caches_are_emptied_once_no_window_has_been_open_for_a_while(warming, monkeypatch):
    emptied, windows = [], iter([0, 0, 1, 0, 0, 0, 0, 0])

    def n_windows():
        window = next(windows, None)
        if window is None:
            warming.stop()
        return window or 0

    monkeypatch.setattr(warm_up, "LOOK_SECONDS", 0.001)
    monkeypatch.setattr(warm_up, "SLEEPS_AFTER", 3)
    monkeypatch.setattr(watch, "n_windows", n_windows)
    monkeypatch.setattr(memory, "give_back", lambda: emptied.append(True))
    monkeypatch.setattr(warming, "_work", lambda: None)
    warming.start()
    warming.join(20)
    assert emptied == [True], "once, and not again until a window has come and gone"


def test_what_is_forgotten_is_made_again():
    made = []

    @caching.by_key(4)
    def square(x: int) -> int:
        made.append(x)
        return x * x

    assert (square("two", 2), square("two", 2), made) == (4, 4, [2])
    memory.give_back()
    assert (square("two", 2), made) == (4, [2, 2])
