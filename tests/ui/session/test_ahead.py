"""Fits made ahead: in order, by one thread, for those who are there, held in memory only."""

import threading
from functools import partial

from appca.ui.server import warm_up
from appca.ui.session.ahead import MOST_HELD, FitAhead, FitsAhead

LONG = 30.0  # seconds, for what comes at once


def made(fits: FitsAhead, wanted: dict[str, str]) -> list[str]:
    """Let fits be made, id to window; return the ids in the order in which they were."""
    order, over = [], threading.Event()

    def fit(run_id: str, callback):
        order.append(run_id)
        if len(order) == len(wanted):
            over.set()
        return f"fit {run_id}"

    fits.begin([FitAhead(one, window, partial(fit, one)) for one, window in wanted.items()])
    over.wait(LONG if wanted else 0.1)
    while fits._thread is not None:
        threading.Event().wait(0.01)
    return order


def test_they_are_made_in_order_by_one_thread_after_another():
    fits = FitsAhead(lambda _: True, quiet=0.01)
    assert made(fits, {"k5": "ann", "k3": "bob"}) == ["k5", "k3"]
    assert (fits.result_of("k5"), fits.result_of("k4")) == ("fit k5", None)
    assert made(fits, {"k6": "bob"}) == ["k6"]  # a thread that has ended is begun anew


def test_none_is_made_while_the_processor_is_wanted_nor_one_twice():
    busy = FitsAhead(lambda _: False, quiet=0.01)
    busy.begin([FitAhead("k5", "ann", lambda callback: "never")])
    while busy._thread is not None:
        threading.Event().wait(0.01)
    assert busy.result_of("k5") is None
    fits = FitsAhead(lambda _: True, quiet=0.01)
    fits.keep("k5", "there")
    fits.begin([FitAhead("k5", "ann", lambda callback: "again")])
    assert fits._thread is None
    assert fits.result_of("k5") == "there"


def test_a_fit_that_is_refused_is_left_out_and_only_the_newest_are_held():
    def refused(callback):
        raise ValueError("no")

    fits = FitsAhead(lambda _: True, quiet=0.01)
    fits.begin([FitAhead("bad", "ann", refused), FitAhead("good", "ann", lambda callback: "fit")])
    while fits._thread is not None:
        threading.Event().wait(0.01)
    assert (fits.result_of("bad"), fits.result_of("good")) == (None, "fit")
    for number in range(MOST_HELD):
        fits.keep(str(number), "fit")
    assert fits.result_of("good") is None


def test_a_fit_that_is_being_made_waits_while_a_page_is_drawn():
    fits, begun, iterations = FitsAhead(lambda _: True, quiet=0.01), threading.Event(), []

    def fit(callback):
        begun.set()
        for iteration in range(3):
            callback(iteration)
            iterations.append(iteration)
        return "fit"

    with warm_up.drawing():
        fits.begin([FitAhead("k5", "ann", fit)])
        assert not begun.wait(0.2), "it does not even begin"
    assert begun.wait(LONG)
    held, go = threading.Event(), threading.Event()

    def halting(callback):
        callback(0)
        held.set()
        go.wait(LONG)
        callback(1)
        iterations.append("after")
        return "fit"

    fits.begin([FitAhead("k6", "ann", halting)])
    assert held.wait(LONG)
    with warm_up.drawing():
        go.set()
        threading.Event().wait(0.2)
        assert iterations == [0, 1, 2]
    while fits._thread is not None:
        threading.Event().wait(0.01)
    assert iterations == [0, 1, 2, "after"]
    assert fits.result_of("k6") == "fit"
