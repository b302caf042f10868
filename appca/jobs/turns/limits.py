"""How many jobs may wait, and how much memory there is for those that run.

``APPCA_JOBS`` is the number of jobs that may wait in all, ``APPCA_JOBS_PER_VISITOR`` that of one
person, ``APPCA_MEMORY`` the memory that jobs may take together, as ``8GB``; by default what the
machine, or the container, has left.
"""

import contextlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from appca.jobs.turns.job import Job, person
from appca.jobs.turns.needs import Needs
from appca.words.errors import InputError
from appca.words.wording import counted

WAITING, WAITING_PER_VISITOR = 100, 20
_SIZE = re.compile(r"(\d{1,6}(?:\.\d{1,3})?) ?(MB|GB)")
_BYTES = {"MB": 10**6, "GB": 10**9}
_GROUP = Path("/sys/fs/cgroup")


class Limits(NamedTuple):
    """Bounds of the queue."""

    waiting: int = WAITING
    waiting_per_visitor: int = WAITING_PER_VISITOR
    memory: int | None = None  # bytes for all jobs; None: what is there

    @classmethod
    def from_environment(cls) -> "Limits":
        """Read the bounds that somebody has set."""
        return cls(
            number("APPCA_JOBS", WAITING),
            number("APPCA_JOBS_PER_VISITOR", WAITING_PER_VISITOR),
            size("APPCA_MEMORY", None),
        )

    def check(self, owner: str, needs: Needs, waiting: Sequence[Job]) -> None:
        """Raise InputError when one more job of a person is too many, or can never run."""
        n = sum(person(owner) in job.people for job in waiting)
        if n >= self.waiting_per_visitor:
            raise _too_many(n, "of yours", "cancel one, or wait until one has begun")
        if len(waiting) >= self.waiting:
            remedy = "start this one again when some have finished"
            raise _too_many(len(waiting), "of all visitors", remedy)
        most = self.memory or total_memory()
        if most is not None and needs.memory > most:
            raise InputError(too_large(needs.memory, most))

    def fits(self, needs: Needs, running: Sequence[Job]) -> bool:
        """Whether there is memory for a job beside those that run.

        What running jobs may still take is counted in whole: their memory is not taken at once.
        """
        taken = sum(job.needs.memory for job in running)
        free = self.free()
        return free is None or needs.memory + taken <= free

    def free(self) -> int | None:
        """Return the bytes that jobs could take now; None where this cannot be known."""
        return _least(available_memory(), self.memory)


def _too_many(n: int, whose: str, remedy: str) -> InputError:
    are = "is" if n == 1 else "are"
    return InputError(f"{counted(n, 'job')} {whose} {are} waiting, the most allowed; {remedy}.")


def too_large(needed: int, free: int) -> str:
    """Say that a job needs more memory than there is."""
    return (
        f"This needs about {needed / 1e9:.1f} GB of memory, and jobs may use "
        f"{free / 1e9:.1f} GB; take fewer rows or fewer features."
    )


def number(name: str, default: int) -> int:
    """Return the whole number in a variable of the environment, if it is one above zero."""
    text = os.environ.get(name, "").strip()
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) and int(text) else default


def size(name: str, default: int | None) -> int | None:
    """Return the bytes that a variable of the environment names, as ``500MB`` or ``8GB``."""
    match = _SIZE.fullmatch(os.environ.get(name, "").strip())
    return int(float(match[1]) * _BYTES[match[2]]) or default if match else default


def total_memory() -> int | None:
    """Return the bytes of memory of the machine or the container; None where unknown."""
    return _least(_of_machine("MemTotal"), _of_group("memory.max"))


def available_memory() -> int | None:
    """Return the bytes of memory that programs could still take; None where unknown."""
    most, used = _of_group("memory.max"), _of_group("memory.current")
    left = None if most is None or used is None else max(0, most - used)
    return _least(_of_machine("MemAvailable"), left)


def _least(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)


def _of_machine(name: str) -> int | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    return None


def _of_group(name: str) -> int | None:
    """Return a number of the container's control group; "max" is none."""
    with contextlib.suppress(OSError, ValueError):
        return int((_GROUP / name).read_text(encoding="ascii"))
    return None
