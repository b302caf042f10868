"""What is computed of data sets and runs once for all sessions, recovered by a key."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import streamlit as st

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


def by_key(
    most: int,
) -> Callable[[Callable[_Given, _Made]], Callable[Concatenate[str, _Given], _Made]]:
    """Return what caches the last results of a function by a key in front of its arguments."""

    def decorate(make: Callable[_Given, _Made]) -> Callable[Concatenate[str, _Given], _Made]:
        @st.cache_resource(show_spinner=False, max_entries=most)
        @wraps(make)  # Streamlit tells functions apart by their names, and hashes no name with a _
        def kept(*, key: str, _given: tuple[Any, ...], _named: dict[str, Any]) -> _Made:
            del key
            return make(*_given, **_named)

        def cached(key: str, /, *args: _Given.args, **named: _Given.kwargs) -> _Made:
            return kept(key=key, _given=args, _named=named)

        return cached

    return decorate


def kept(key: str, make: Callable[[], _Made]) -> _Made:
    """Return what `make` returns, called once as long as `key` is among the last ones asked for."""
    value: _Made = _kept(key, make)
    return value


def kept_of_row(key: str, make: Callable[[], _Made]) -> _Made:
    """Return what `make` says of one row, as `kept`; clicks on rows leave all else in place."""
    value: _Made = _kept_of_row(key, make)
    return value


@st.cache_resource(show_spinner=False, max_entries=48)
def _kept_of_row(key: str, _make: Callable[[], Any]) -> Any:
    del key
    return _make()


@st.cache_resource(show_spinner=False, max_entries=48)
def _kept(key: str, _make: Callable[[], Any]) -> Any:
    del key
    return _make()
