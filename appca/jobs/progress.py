"""What a worker tells about a job while it works, and what it is asked meanwhile."""

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from appca.data.dataset import Dataset
from appca.data.store import DatasetStore
from appca.runs.fit import DESCRIBING

if TYPE_CHECKING:
    from appca.models.algebra.loop import Progress

INTERVAL = 0.1  # seconds between two news: enough for an eye, nothing beside a fit
_LEAST_SHARE = 0.02  # done before the time left is guessed
_WINDOW = 10  # iterations over which EM judges its gain
_SAMPLING = ("burn-in", "draws")
_REFINED, _FIT = 0.1, 0.45  # where on the bar the stages of EM after the screening begin
_START = 0.15  # how far EM moves the bar when it only starts the chains
_FITTED = 0.9  # what is left is describing and storing the rows


class Context:
    """The job a handler works on: where things are, how to report, when to stop early.

    `home` has the stores. `tell` is told news: stage, fraction, iteration, seconds_left, and the
    points of the curve since the last news. `stops` says whether a fit is to end with what it has.
    """

    def __init__(
        self,
        home: Path,
        tell: Callable[[dict[str, Any]], object] = lambda _: None,
        stops: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.home, self.stops, self.clock, self._tell = home, stops, clock, tell
        self.stage, self.fraction = "starting", 0.0
        self.iteration: int | None = None
        self.seconds_left: float | None = None
        self._stage_number, self._last_news = -1, -math.inf
        self._points: list[tuple[int, int, float]] = []

    def dataset(self, digest: str) -> Dataset:
        """Read a stored data set, and say so."""
        self.report("reading the data", 0.0)
        return DatasetStore(self.home).get(digest)

    def report(
        self,
        stage: str,
        fraction: float,
        *,
        iteration: int | None = None,
        log_likelihood: float = math.nan,
        seconds_left: float | None = None,
    ) -> None:
        """Note progress, and tell it if the last news are a tenth of a second old."""
        new_stage = stage != self.stage
        self._stage_number += new_stage
        if iteration is not None:
            self.iteration = iteration
            if math.isfinite(log_likelihood):
                self._points.append((self._stage_number, iteration, float(log_likelihood)))
        self.stage, self.seconds_left = stage, seconds_left
        self.fraction = min(max(fraction, self.fraction), 1.0)  # a bar never runs backwards
        if new_stage or self.clock() - self._last_news >= INTERVAL:
            self.tell()

    def tell(self) -> None:
        """Tell how far it is now."""
        self._last_news = self.clock()
        names = ("stage", "fraction", "iteration", "seconds_left")
        self._tell({name: getattr(self, name) for name in names} | {"points": self._points})
        self._points = []


class Paced:
    """Reports the share done and guesses the time left from the pace so far.

    `end` is how far the work moves the bar; the pace is that of the stage if `by_stage`, else of
    all since the beginning.
    """

    def __init__(self, context: Context, *, end: float = 1.0, by_stage: bool = False) -> None:
        self.context, self.end, self.by_stage = context, end, by_stage
        self._stage: str | None = None
        self._began = self._first = 0.0

    def at(self, stage: str, share: float) -> None:
        """Begin a piece of work."""
        now, left = self.context.clock(), None
        if self._stage is None or (self.by_stage and stage != self._stage):
            self._began, self._first = now, share
        self._stage = stage
        gained = share - self._first
        if gained > _LEAST_SHARE:
            left = round((now - self._began) * (1 - share) / gained, 1)
        self.context.report(stage, self.end * share, seconds_left=left)


class FitProgress:
    """Callback of a fit: reports each iteration, guesses the time left, obeys "stop here and keep".

    `tol` is the gain over ten iterations, in nats, below which EM stops; `sampled` says whether EM
    only makes the start of chains.
    """

    def __init__(self, context: Context, tol: float, sampled: bool = False) -> None:
        self.context, self.tol, self.sampled = context, tol, sampled
        self._values: list[float] = []
        self._began = 0.0

    def __call__(self, progress: "Progress") -> None:
        """Take note of one iteration."""
        stage, iteration, most = progress.stage, progress.iteration, progress.max_iter
        if stage == DESCRIBING:
            self.context.report(stage, _FITTED + (1.0 - _FITTED) * iteration / most)
            return
        if iteration == 1:
            self._values, self._began = [], self.context.clock()
        self._values.append(progress.log_likelihood)
        drawing, seconds_left = stage in _SAMPLING, None
        left = most - iteration if drawing else passes_left(self._values, self.tol, most)
        final = drawing or (stage == "fit" and not self.sampled)
        if final and left is not None and iteration > 1:
            pace = (self.context.clock() - self._began) / (iteration - 1)
            seconds_left = round(left * pace, 1)
        self.context.report(
            stage,
            self._fraction(progress, left),
            iteration=iteration,
            log_likelihood=progress.log_likelihood,
            seconds_left=seconds_left,
        )
        if self.context.stops():
            raise StopIteration

    def _fraction(self, progress: "Progress", left: int | None) -> float:
        share = progress.iteration / max(progress.max_iter, 1)
        if self.sampled:
            drawing = progress.stage in _SAMPLING
            return _START + (_FITTED - _START) * share if drawing else _START * share
        begin, end = (0.0, _REFINED) if "screening" in progress.stage else (_REFINED, _FIT)
        if progress.stage == "fit":
            begin, end = _FIT, _FITTED
            if left is not None:
                share = progress.iteration / (progress.iteration + left)
        return begin + (end - begin) * min(share, 1.0)


def passes_left(values: list[float], tol: float, max_iter: int) -> int | None:
    """Guess the iterations EM still needs, as if gains over ten of them fell geometrically.

    None while there are too few iterations to tell.
    """
    most = max_iter - len(values)
    if len(values) <= 2 * _WINDOW:
        return None
    late = values[-1] - values[-1 - _WINDOW]
    early = values[-1 - _WINDOW] - values[-1 - 2 * _WINDOW]
    if late <= tol:
        return 0
    if tol <= 0 or late >= early:
        return most
    return min(most, math.ceil(_WINDOW * math.log(tol / late) / math.log(late / early)))
