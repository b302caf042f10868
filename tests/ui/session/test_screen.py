"""What components were in the fit before: two windows on one run, and chips in the picture."""

import numpy as np

from appca.runs.home import home
from appca.runs.numbering import ComponentNumbers, directions
from appca.runs.store import RunStore
from appca.ui import canvas
from appca.ui.canvas import delivery
from tests.ui.conftest import address, go, healthy, slider


def test_chips_say_what_a_component_was_and_two_windows_show_one_numbering(start, monkeypatch):
    told: dict = {}
    monkeypatch.setattr(canvas, "_canvas", lambda key, data, **_: told.update({key: data}))
    app = start("explore")
    assert "came" not in told["canvas"]["options"], "there was nothing before"
    slider(app, "k").set_value(7).run()
    run = RunStore(home()).get(address(healthy(app))["run"])
    numbering = ComponentNumbers(home()).of_run(run)
    came = told["canvas"]["options"]["came"]
    assert len(came) == 7
    assert came.count("new") >= 3
    assert all(text in ("", "new") for text in came[:4])
    assert sorted(numbering.order) == list(range(7))
    scene = told["canvas"]["scene"]["meta"]
    healthy(go(app, "explore"))
    assert told["canvas"]["options"]["came"] == came, "until the next fit"

    other = start("explore", k="6")  # another window, with another fit on its screen
    slider(other, "k").set_value(7).run()
    assert address(healthy(other))["run"] == run.id
    assert ComponentNumbers(home()).of_run(run, directions(run.fitted)[::-1]) == numbering
    assert told["canvas"]["scene"]["meta"] == scene


def test_numbers_are_decided_when_a_fit_is_shown_and_not_before(start):
    app = start("explore", k="5")
    slider(app, "k").set_value(6).run()
    run = RunStore(home()).get(address(healthy(app))["run"])
    numbers = run.path / "numbers.json"
    assert numbers.exists()
    slider(app, "k").set_value(8).run()
    numbers.unlink()  # as of a fit of the command line, which nobody has seen
    slider(app, "k").set_value(7).run()
    for questions in list(delivery()._questions.values()):
        for what in questions.answers:  # all that an idle browser can ask
            questions.answer(what, np.zeros(1, int))
    assert not numbers.exists()
    slider(app, "k").set_value(6).run()
    assert numbers.exists()
