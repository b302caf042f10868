"""Few pages are computed at once, and none waits for ever."""

import threading

import pytest

from appca.ui.frame import page_turn


def test_places_are_given_back_also_by_a_page_that_fails(monkeypatch):
    monkeypatch.setattr(page_turn, "_places", threading.BoundedSemaphore(1))
    monkeypatch.setattr(page_turn, "LONGEST_SECONDS", 3600.0)
    for _ in range(3):
        with pytest.raises(ValueError, match="page"), page_turn.turn():
            raise ValueError("page")


def test_a_page_does_not_wait_longer_than_it_may(monkeypatch):
    monkeypatch.setattr(page_turn, "_places", threading.BoundedSemaphore(1))
    monkeypatch.setattr(page_turn, "LONGEST_SECONDS", 0.01)
    with page_turn.turn(), page_turn.turn(), page_turn.turn():
        pass
    assert page_turn._places.acquire(blocking=False), "what was not taken is not given back"
