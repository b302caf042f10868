"""What a person at a terminal sees: lines, and on one line of their own what a fit is at."""

import math
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from appca.models.algebra.loop import Progress

WIDTH = 79


def say(line: str) -> None:
    """Write a line of the answer."""
    sys.stdout.write(f"{line}\n")


def show_share(stage: str, share: float) -> None:
    """Show how far long work is, on a terminal only."""
    _show(f"{share:4.0%} {stage}")


class Meter:
    """Shows the iterations of a fit, on a terminal only."""

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows

    def __call__(self, progress: "Progress") -> None:
        """Show one iteration."""
        text = f"{progress.stage}, pass {progress.iteration}"
        if math.isfinite(progress.log_likelihood):
            text += f": {progress.log_likelihood / self.n_rows:.6g} nats per row"
        _show(text)


def clear() -> None:
    """Take away what is shown beside the answer."""
    _show("")


def _show(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{text:{WIDTH}.{WIDTH}}\r")
        sys.stderr.flush()
