"""The limits by which the server gives memory back."""

import sys

import pytest

from appca.ui import frame
from tests.ui.conftest import healthy


class Recorder:
    """A C library that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple] = []

    def mallopt(self, option: int, value: int) -> int:
        self.told.append((option, value))
        return 1

    def malloc_trim(self, pad: int) -> int:
        self.told.append(("trim", pad))
        return 1


def test_every_session_tidies_up_once(start, monkeypatch):
    system = Recorder()
    monkeypatch.setattr(frame, "_c_library", lambda: system)
    app = healthy(start())
    once = [(-3, frame.LARGE_BYTES), (-1, frame.KEPT_BYTES), ("trim", 0)]
    assert system.told == once
    healthy(app.run())
    assert system.told == once
    healthy(start())
    assert system.told == once * 2


@pytest.mark.parametrize("error", [AttributeError, OSError, TypeError])
def test_a_system_without_such_limits_is_left_alone(monkeypatch, error):
    def none():
        raise error

    monkeypatch.setattr(frame, "_c_library", none)
    monkeypatch.setattr(frame.st, "session_state", {})
    frame.tidy()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc alone has them")
def test_glibc_takes_the_limits(monkeypatch):
    system = frame._c_library()
    if not hasattr(system, "gnu_get_libc_version"):
        pytest.skip("another C library")
    taken = []

    class Asked(Recorder):
        def mallopt(self, option: int, value: int) -> int:
            taken.append(system.mallopt(option, value))
            return taken[-1]

    monkeypatch.setattr(frame, "_c_library", Asked)
    monkeypatch.setattr(frame.st, "session_state", {})
    frame.tidy()
    assert taken == [1, 1]
