"""Few pages are computed at once, and none waits for ever."""

import sys
import threading
import time
from importlib import import_module
from pathlib import Path

import pytest

from appca.data.sources.builtin import load
from appca.ui.server import page_turn, warm_up
from appca.ui.session import fitting, services


def test_places_are_given_back_also_by_a_page_that_fails(monkeypatch):
    monkeypatch.setattr(page_turn, "LONGEST_SECONDS", 3600.0)
    for _ in range(page_turn.PLACES + 1):
        with pytest.raises(ValueError, match="page"), page_turn.turn():
            raise ValueError("page")


def test_a_page_that_takes_long_gives_its_place_up(monkeypatch):
    monkeypatch.setattr(page_turn, "LONGEST_SECONDS", 0.01)
    with page_turn.turn(), page_turn.turn(), page_turn.turn(), page_turn.turn():
        pass
    assert not page_turn._running
    assert not page_turn._waiting


def wait_until(is_so):
    for _ in range(6000):
        if is_so():
            return
        time.sleep(0.01)
    raise AssertionError("it has not come about within a minute")


def test_pages_beyond_the_places_begin_in_the_order_in_which_they_came(monkeypatch):
    monkeypatch.setattr(page_turn, "LONGEST_SECONDS", 3600.0)
    order, go = [], [threading.Event() for _ in range(6)]

    def page(number):
        with page_turn.turn():
            order.append(number)
            go[number].wait(60)

    pages = [threading.Thread(target=page, args=(number,)) for number in range(6)]
    for number, thread in enumerate(pages):
        thread.start()
        wait_until(lambda n=number: len(order) + len(page_turn._waiting) == n + 1)
    assert order == [0, 1], "no more at once, however many wait"
    for number in range(6):
        go[number].set()
        wait_until(lambda n=number: len(order) == min(n + 3, 6))
    for thread in pages:
        thread.join(60)
    assert order == [0, 1, 2, 3, 4, 5]


def test_what_is_made_ahead_waits_for_pages_and_they_for_it(monkeypatch):
    monkeypatch.setattr(page_turn, "LONGEST_SECONDS", 3600.0)
    order, inside, go = [], threading.Event(), threading.Event()

    def page():
        with page_turn.turn():
            order.append("page")

    def step():
        with page_turn.between(0.0):
            inside.set()
            go.wait(60)
            order.append("step")

    with page_turn.turn():
        ahead = threading.Thread(target=step)
        ahead.start()
        assert not inside.wait(0.2), "a page is being computed"
    assert inside.wait(60)
    second = threading.Thread(target=page)
    second.start()
    go.set()
    ahead.join(60)
    second.join(60)
    assert order == ["step", "page"]


@pytest.mark.thorough
def test_every_step_of_the_warm_up_can_be_taken():
    steps = list(warm_up._steps())
    for step in steps:
        step()
    assert len(steps) > len(warm_up.OTHERS)
    scripts = Path(__file__).parents[3].glob("pages/*/*.py")
    pages = {f"appca.ui.{script.parent.name}" for script in scripts}
    assert pages <= {module.rpartition(".")[0] for module in sys.modules}, "each page's parts"


def test_what_is_compiled_ahead_can_be():
    assert all(callable(import_module(name).compile_ahead) for name in warm_up.COMPILED)


def test_the_server_looks_ahead_at_data_whose_fit_takes_long(monkeypatch):
    digest = services.datasets().put(load("wine"))
    assert fitting.preview_ahead(digest) is None  # the fit itself is as quick
    monkeypatch.setattr(fitting, "LIVE_SECONDS", 0.0)
    warm_up._look_at(digest)
    found = fitting.preview_ahead(digest)
    assert found.is_preview
    assert found.fitted.scores.shape == (178, 4)
    assert not services.runs().list()
