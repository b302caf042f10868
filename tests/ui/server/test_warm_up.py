"""A server that loads nothing before it is asked, and waits with it for pages."""

import threading

import pytest

from appca.ui import warm_up


@pytest.fixture
def warming(monkeypatch):
    monkeypatch.delenv(warm_up.OPENS, raising=False)
    monkeypatch.setattr(warm_up, "page_was_asked", threading.Event())
    made = warm_up.WarmUp()
    yield made
    made.stop()
    made.join(20)
    assert not made.is_alive()


def test_nothing_is_loaded_before_a_page_is_asked_for(warming, monkeypatch):
    loading = threading.Event()
    monkeypatch.setattr(warm_up, "_load_first", loading.set)
    monkeypatch.setattr(warm_up, "PATIENCE", 0.0)
    monkeypatch.setattr(warm_up, "_steps", lambda: iter(()))
    monkeypatch.setattr("appca.processes.start_compiler", lambda _: Over())
    warming.start()
    assert not loading.wait(0.2)
    warm_up.page_was_asked.set()
    assert loading.wait(20)


class Over:
    """A compiler that has ended."""

    def poll(self):
        """Say so."""
        return 1

    wait = poll

    def kill(self):
        """Do nothing."""


def test_the_warm_up_waits_while_pages_are_computed():
    quiet = threading.Event()
    with warm_up.drawing(), warm_up.drawing():
        waiting = threading.Thread(target=lambda: (warm_up.wait_for_quiet(0.0), quiet.set()))
        waiting.start()
        assert not quiet.wait(0.2)
    assert quiet.wait(20)
    waiting.join()
