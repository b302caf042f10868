"""Output at a terminal: lines of text, and one line with the progress of a fit."""

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
    """How the lines of an answer are written."""

    quiet: bool = False  # not at all
    aside: bool = False  # to standard error, because standard output carries data


_PLAIN = Manner()
_manner: ContextVar[Manner] = ContextVar("manner", default=_PLAIN)


@contextmanager
def speaking(manner: Manner) -> Iterator[None]:
    """Let `say` and all that shows progress keep to a manner."""
    before = _manner.set(manner)
    try:
        yield
    finally:
        _manner.reset(before)


def say(line: str) -> None:
    """Write a line of the answer."""
    manner = _manner.get()
    if not manner.quiet:
        (sys.stderr if manner.aside else sys.stdout).write(f"{printable(line)}\n")


def say_facts(facts: Mapping[str, str]) -> None:
    """Write a line for each fact, below one another."""
    width = max(map(len, facts), default=0)
    for about, text in facts.items():
        say(f"  {about[:1].lower() + about[1:]:{width}}  {text}".rstrip())


def show_share(stage: str, share: float) -> None:
    """Show how far long work is, on a terminal only."""
    _show(f"{share:4.0%} {stage}")


class Meter:
    """Shows the iterations of a fit, on a terminal only.

    Before the first, when the fit was not refused, it says the `plan`.
    """

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
