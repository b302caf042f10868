"""A job that is not over, and the windows that wait for it."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from appca.jobs.folder import WAITING, JobFolder, JobState, JobStatus
from appca.jobs.process import WorkerProcess
from appca.jobs.turns.needs import SHORT_SECONDS, Needs


@dataclass(eq=False)
class Job:
    """A job of this server that is not over: its folder, what it makes, needs and was told."""

    folder: JobFolder
    key: str
    needs: Needs
    kind: str = ""
    spec: dict[str, Any] = field(default_factory=dict)
    state: JobState = WAITING
    curve: list[tuple[int, float]] = field(default_factory=list)  # iterations and nats of a stage
    claims: dict[str, bool] = field(default_factory=dict)  # windows, and whether each has asked
    missed: set[str] = field(default_factory=set)  # windows that were gone at the last look
    worker: WorkerProcess | None = None  # that does it now
    cancelled: bool = False
    attempts: int = 0
    begins: float = 0.0  # not before this time of the monotonic clock
    began: float | None = None  # on that clock
    _stage: int = -1  # number of that stage

    def hear(self, news: Mapping[str, Any]) -> None:
        """Take in what a worker tells; see `appca.jobs.progress.Context`."""
        self.state = JobState(**news["state"])
        for stage, iteration, value in news["points"]:
            if stage != self._stage:
                self._stage, self.curve = stage, []
            self.curve.append((iteration, value))

    def status(self) -> JobStatus:
        """Say how far it is."""
        ending = self.cancelled and self.state.state == "running"
        more = {"stage": "ending"} if ending else {}
        curve = list(self.curve)
        return JobStatus.of(self.folder.id, self.kind, self.spec, self.state, curve=curve, **more)

    @property
    def is_asked(self) -> bool:
        """Whether a person has asked for it."""
        return any(self.claims.values())

    @property
    def people(self) -> set[str]:
        """Who waits for it, in however many windows."""
        return {person(owner) for owner in self.claims}

    @property
    def is_short(self) -> bool:
        """Whether it will be over soon; one that has taken longer is taken for a long one."""
        in_time = self.began is None or time.monotonic() - self.began < SHORT_SECONDS
        return self.needs.is_short and in_time

    def is_awaited(self, is_open: Callable[[str], bool]) -> bool:
        """Whether a window that waits for it is open."""
        return any(map(is_open, self.claims))

    def claim(self, owner: str, asked: bool) -> None:
        """Let a window wait for it; what it has asked for stays asked for."""
        self.claims[owner] = asked or self.claims.get(owner, False)

    def inherit(self, owner: str, is_open: Callable[[str], bool]) -> bool:
        """Let a window wait in place of one that is gone; whether that had asked for it."""
        gone = sorted((w for w in self.claims if not is_open(w)), key=self.claims.__getitem__)
        self.claim(owner, bool(gone) and self.claims.pop(gone[-1]))
        return self.claims[owner]

    def desert(self, is_open: Callable[[str], bool]) -> bool:
        """Forget windows gone for two looks that had not asked; whether nobody waits any more."""
        gone = {name for name, asked in self.claims.items() if not (asked or is_open(name))}
        for name in gone & self.missed:
            del self.claims[name]
        self.missed = gone
        return not self.claims


def person(owner: str) -> str:
    """Return whose window an owner is: the last word of its name."""
    return owner.rpartition(" ")[2]
