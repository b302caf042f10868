"""Undo and redo: what a session has looked at, step by step, also by the browser's Back.

A step is a configuration, the selection in its data, and the names given on the way to it. Steps
are recorded once a rerun. The address carries the number of the step that is on screen; where the
browser went back or forward, that of the step to show. Any other request may have been sent before
the browser had the last address.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import streamlit as st

from appca.runs.configuration import RunConfig
from appca.ui.session import selection, state
from appca.ui.session.callbacks import guarded
from appca.ui.session.state import KEYS

MOST_STEPS = 100


class Change(NamedTuple):
    """What was changed in the stores, and how to take it back."""

    undo: Callable[[], object]
    redo: Callable[[], object]


class Step(NamedTuple):
    """What was on screen."""

    number: int
    config: RunConfig
    selected: bytes  # packed, of the configuration's data
    changes: tuple[Change, ...] = ()  # since the step before


@dataclass
class _History:
    steps: list[Step] = field(default_factory=list)
    at: int = -1
    number: int = 0  # of the newest step
    pending: list[Change] = field(default_factory=list)


def record() -> bool:
    """Take down what is on screen; whether it is another than that of the present step."""
    if not state.is_ready():
        return False
    kept = _kept()
    looks = (state.config(), selection.packed(state.current_dataset()))
    if kept.steps:
        if not kept.pending and looks == kept.steps[kept.at][1:3]:
            return False
        kept.number += 1
    now = Step(kept.number, *looks, tuple(kept.pending))
    kept.steps = [*kept.steps[: kept.at + 1], now][-MOST_STEPS:]
    kept.at, kept.pending = len(kept.steps) - 1, []
    return True


def note(undo: Callable[[], object], redo: Callable[[], object]) -> None:
    """Let a change of a store belong to the next step."""
    _kept().pending.append(Change(undo, redo))


def number() -> str:
    """Return the number of the step on screen, for the address."""
    kept = _kept()
    return str(kept.steps[kept.at].number if kept.steps else kept.number)


def begin_at(asked: str | None) -> None:
    """Go on with the number of the address: an earlier session has taken the steps before it."""
    if asked and asked.isdecimal() and len(asked) < 10:
        _kept().number = int(asked)


def can_undo() -> bool:
    """Whether there is a step before this one."""
    return _kept().at > 0


def can_redo() -> bool:
    """Whether a step was taken back."""
    return _kept().at < len(_kept().steps) - 1


@guarded
def undo() -> None:
    """Go back by one step."""
    record()
    if can_undo():
        _go(_kept().at - 1)


@guarded
def redo() -> None:
    """Take up again the step that was taken back last."""
    if can_redo():
        _go(_kept().at + 1)


@guarded
def follow(address: dict[str, str]) -> None:
    """Show the step of an address to which the browser went, or else what it says."""
    asked, kept = address.get("step"), _kept()
    if asked in (None, number()) or record():  # what was changed at the same time wins
        return
    numbers = {str(step.number): place for place, step in enumerate(kept.steps)}
    place = numbers.get(asked or "")
    if place is not None:
        _go(place)
    elif "data" in address or "run" in address:  # of an earlier session, before a reload
        state.resolve(address)
        selection.restore(state.current_dataset(), address.get("sel"))


def _go(place: int) -> None:
    kept = _kept()
    between = kept.steps[min(place, kept.at) + 1 : max(place, kept.at) + 1]
    wanted = kept.steps[place]
    state.open_config(wanted.config)  # refuses before anything has changed
    selection.show(state.current_dataset(), wanted.selected)
    for step in between if place > kept.at else ():
        for change in step.changes:
            change.redo()
    for step in reversed(between) if place < kept.at else ():
        for change in reversed(step.changes):
            change.undo()
    kept.at = place


def _kept() -> _History:
    history: _History = st.session_state.setdefault(KEYS.history, _History())
    return history
