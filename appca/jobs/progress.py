"""What a worker tells about a job while it works, and the requests it obeys meanwhile."""

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from appca.data.dataset import Dataset
from appca.data.store import DatasetStore
from appca.jobs.folder import JobFolder, JobState

_LEAST_SHARE = 0.02  # done before the time left is guessed
INTERVAL = 0.1  # seconds between two news: enough for an eye, nothing beside a fit


class Cancelled(Exception):
    """Somebody asked to end the job."""


class Context:
    """The job a handler works on: where things are, how to report, when to stop.

    `home` has the stores. `tell` is told news: ``{"state": ..., "points": ...}``, the latter since
    the last news.
    """

    def __init__(
        self,
        folder: JobFolder,
        home: Path,
        clock: Callable[[], float] = time.time,
        tell: Callable[[dict[str, Any]], object] = lambda _: None,
    ) -> None:
        self.folder, self.home, self.clock, self._tell = folder, home, clock, tell
        self.state = JobState("running", stage="starting", started=clock())
        self._stage_number = -1
        self._last_news = -math.inf
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
        """Note progress, and tell it if the last news are a tenth of a second old.

        Raises `Cancelled` when the job is to end; looked for as often as progress is told.
        """
        new_stage = stage != self.state.stage
        self._stage_number += new_stage
        if iteration is not None and math.isfinite(log_likelihood):
            self._points.append((self._stage_number, iteration, float(log_likelihood)))
        self.state = self.state._replace(
            stage=stage,
            fraction=min(max(fraction, self.state.fraction), 1.0),  # a bar never runs backwards
            iteration=self.state.iteration if iteration is None else iteration,
            seconds_left=seconds_left,
        )
        if new_stage or self.clock() - self._last_news >= INTERVAL:
            self.tell()
            self.check()

    def check(self) -> None:
        """Raise `Cancelled` when the job is to end."""
        if self.folder.requested("cancel"):
            raise Cancelled

    def tell(self) -> None:
        """Tell state and curve now."""
        self._last_news = self.clock()
        self._tell({"state": self.state._asdict(), "points": self._points})
        self._points = []

    def ended(
        self, state: str, *, result: dict[str, Any] | None = None, message: str = ""
    ) -> JobState:
        """Return the last state of the job."""
        return self.state._replace(
            state=state,
            result=result,
            message=message,
            seconds_left=None,
            ended=self.clock(),
            fraction=1.0 if state == "done" else self.state.fraction,
        )


class Paced:
    """Reports the share done and guesses the time left from the pace so far.

    `end` is how far the work moves the bar; the pace is that of the stage if `by_stage`, else of
    all since the beginning.
    """

    def __init__(
        self,
        context: Context,
        *,
        end: float = 1.0,
        by_stage: bool = False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.context, self.end, self.by_stage, self.clock = context, end, by_stage, clock
        self._stage: str | None = None
        self._began = self._first = self._share = 0.0

    def at(self, stage: str, share: float) -> None:
        """Begin a piece of work."""
        if self._stage is None or (self.by_stage and stage != self._stage):
            self._began, self._first = self.clock(), share
        self._stage, self._share = stage, share
        self.again()

    def again(self, *_progress: object) -> None:
        """Say the same once more in the middle of a fit, which is where cancelling is seen."""
        gained, left = self._share - self._first, None
        if gained > _LEAST_SHARE:
            left = round((self.clock() - self._began) * (1 - self._share) / gained, 1)
        self.context.report(self._stage or "", self.end * self._share, seconds_left=left)
        self.context.check()
