"""Undo and redo of data, K, L, model, selection and names."""

import numpy as np
import pytest
import streamlit as st

from appca.data.dataset import Dataset
from appca.data.preprocessing import Preprocessing
from appca.data.sources import load
from appca.runs.home import home
from appca.runs.numbering import ComponentNumbers
from appca.runs.store import RunStore
from appca.ui import frame, services, state, streamlit_internals
from appca.words import InputError
from tests.ui.conftest import address, go, healthy, sentences, slider


def choose_rows() -> None:
    state.put(state.current_dataset(), np.arange(1797) < 25)


def give_name() -> None:
    state.rename(services.runs().get(state.config().id), 0, "round")


ACTS = {
    "undo": state.undo,
    "redo": state.redo,
    "k": lambda: state.set_parameters(n_components=5),
    "more": lambda: state.set_parameters(n_components=7),
    "l": lambda: state.set_parameters(n_active=3),
    "rows": choose_rows,
    "name": give_name,
    "flip": lambda: state.flip(services.runs().get(state.config().id), 1),
    "model": lambda: state.set_model("PPCA"),
    "scale": lambda: state.set_preprocessing(Preprocessing(divide=2.0)),
    "wine": lambda: state.open_dataset(services.datasets().put(load("wine"))),
}
STEPS = ("k", "l", "rows", "name", "flip", "model", "scale", "wine")


@pytest.fixture
def app(start, monkeypatch):
    def listen(**_: object) -> None:
        for name, act in ACTS.items():
            st.button(name, key=f"act-{name}", on_click=act)

    monkeypatch.setattr(frame, "_listener", listen)
    return start("data/add")  # which costs least


def press(app, *acts: str):
    for act in acts:
        app.button(key=f"act-{act}").click().run()
    return healthy(app)


def seen(app) -> tuple:
    """What a person sees of the state: the address without its step, and names and signs."""
    here = address(app)
    run = RunStore(home()).get(here["run"])
    known = None if run is None else ComponentNumbers(home()).of_run(run)[1:]
    return {name: here.get(name) for name in ("data", "run", "k", "l", "sel")}, known


def test_every_step_is_taken_back_in_order_and_taken_up_again(app, monkeypatch):
    press(app)
    pictures = [seen(app)]
    pictures += [seen(press(app, act)) for act in STEPS]
    assert len({str(one) for one in pictures}) == len(STEPS) + 1
    assert address(app)["step"] == str(len(STEPS))
    for picture in reversed(pictures[:-1]):
        assert seen(press(app, "undo")) == picture
    assert seen(press(app, "undo")) == pictures[0]
    for picture in pictures[1:]:
        assert seen(press(app, "redo")) == picture
    assert seen(press(app, "redo")) == pictures[-1]
    press(app, "undo", "undo", "more")  # a new step takes the place of those taken back
    last = seen(app)
    assert seen(press(app, "redo")) == last
    assert seen(press(app, "undo")) == pictures[-3], "the step before it, none of those taken back"
    assert seen(press(app, "redo")) == last
    monkeypatch.setattr(state, "MOST_STEPS", 3)
    press(app, "k", "l", "rows", "more")
    press(app, "undo", "undo", "undo")
    assert seen(press(app, "undo")) == seen(app), "the oldest of three"


@pytest.fixture
def back_to(monkeypatch):
    """Let the browser go to the address of a step."""

    def go_there(app, step: str):
        app.query_params["step"] = step
        with monkeypatch.context() as browsers:
            browsers.setattr(streamlit_internals, "went", lambda: True)
            return healthy(app.run())

    return go_there


def test_the_browser_goes_back_and_forward_and_widgets_do_not_win(app, back_to, monkeypatch):
    go(app, "explore")
    first = seen(app)
    slider(app, "k").set_value(6).run()
    slider(app, "l").set_value(3).run()
    last = seen(healthy(app))
    app.query_params["step"] = "0"  # sent before the browser had the last address
    assert (seen(healthy(app.run())), address(app)["step"]) == (last, "2")
    assert seen(back_to(app, "0")) == first
    assert (slider(app, "k").value, slider(app, "l").value) == (4, 2)
    assert seen(back_to(app, "2")) == last
    assert slider(app, "k").value == 6
    monkeypatch.setattr(streamlit_internals, "went", lambda: True)
    app.query_params["step"] = "0"
    slider(app, "k").set_value(7).run()  # on the way when the browser went back
    assert (address(healthy(app))["k"], address(app)["l"]) == ("7", "3")


def test_after_a_reload_back_leads_to_what_the_address_says(start, back_to):
    earlier = address(start("data/open", k="5"))
    app = start("data/open", **address(start("data/open", k="6")) | {"step": "7"})
    assert address(app)["step"] == "7"
    for name, value in (earlier | {"step": "6"}).items():
        app.query_params[name] = value
    assert seen(back_to(app, "6"))[0]["k"] == "5"


def test_a_step_to_data_that_are_gone_is_one_sentence(app, monkeypatch):
    digits = address(app)["data"]
    press(app, "wine")
    opened = services.dataset

    def dataset(digest: str) -> Dataset:
        if digest == digits:
            raise InputError("The digits are gone.")
        return opened(digest)

    monkeypatch.setattr(services, "dataset", dataset)
    app.button(key="act-undo").click().run()
    assert sentences(app) == ["The digits are gone."]
    assert address(app)["data"] != digits


def test_the_bare_address_opens_the_last_work_of_the_browser(start, monkeypatch):
    there = address(start("data/open", k="7", l="3"))
    monkeypatch.setattr(state, "last_address", lambda: {"data": there["data"], "k": "7", "l": "3"})
    assert address(healthy(start()))["run"] == there["run"]
    assert address(healthy(start(k="5")))["k"] == "5"  # an address wins
    monkeypatch.setattr(state, "last_address", lambda: {"data": "f" * 64, "run": "0" * 12})
    again = healthy(start())  # what is gone is no news
    assert (address(again)["data"], address(again)["k"]) == (there["data"], "4")
