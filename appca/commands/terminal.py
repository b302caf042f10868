"""Output to a terminal: lines of text, and a progress line of a fit."""

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

from appca.words import printable

if TYPE_CHECKING:
    from appca.models.loop import Progress

WIDTH = 79


class Manner(NamedTuple):
    """How a command prints its output."""

    quiet: bool = False  # print nothing
    aside: bool = False  # print to standard error, because standard output receives data


_PLAIN = Manner()
_manner: ContextVar[Manner] = ContextVar("manner", default=_PLAIN)


@contextmanager
def speaking(manner: Manner) -> Iterator[None]:
    """Apply a manner to `say` and to progress lines."""
    before = _manner.set(manner)
    try:
        yield
    finally:
        _manner.reset(before)


def say(line: str) -> None:
    """Print a line of output."""
    manner = _manner.get()
    if not manner.quiet:
        (sys.stderr if manner.aside else sys.stdout).write(f"{printable(line)}\n")


def say_facts(facts: Mapping[str, str]) -> None:
    """Print one line per fact, aligned."""
    width = max(map(len, facts), default=0)
    for about, text in facts.items():
        say(f"  {about[:1].lower() + about[1:]:{width}}  {text}".rstrip())


def show_share(stage: str, share: float) -> None:
    """Show the progress of long work, on a terminal only."""
    _show(f"{share:4.0%} {stage}")


class Meter:
    """Shows a fit's plan before its first iteration, and its iterations, on a terminal only."""

    def __init__(self, n_rows: int, plan: Callable[[], None] = lambda: None) -> None:
        self.n_rows, self.plan = n_rows, plan

    def begin(self) -> None:
        """Print the plan once."""
        plan, self.plan = self.plan, lambda: None
        plan()

    def __call__(self, progress: "Progress") -> None:
        """Show one iteration."""
        self.begin()
        text = f"{progress.stage}, pass {progress.iteration}"
        if math.isfinite(progress.log_likelihood):
            text += f": {progress.log_likelihood / self.n_rows:.6g} nats per row"
        _show(text)


def clear() -> None:
    """Remove the progress lines."""
    _show("")


def _show(text: str) -> None:
    if sys.stderr.isatty() and not _manner.get().quiet:
        sys.stderr.write(f"\r{text:{WIDTH}.{WIDTH}}\r")
        sys.stderr.flush()
