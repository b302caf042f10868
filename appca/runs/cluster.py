"""Fits on the workers of a Dask cluster, where ``APPCA_SCHEDULER`` names one.

The rows are preprocessed here and sent to the workers, a chunk at a time; sums over chunks come
back, pass after pass, and the rows are described here. Nothing of a run but a note of where it was
fitted depends on that, up to rounding. What a cluster cannot fit is fitted here.
"""

import importlib.util
import os
import pkgutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from appca.runs.configuration import MODELS, RunConfig
from appca.words.errors import InputError
from appca.words.wording import counted

if TYPE_CHECKING:
    from dask.array import Array
    from distributed import Client

R = TypeVar("R")
Report = Callable[[str, float], None]  # stage, fraction done; raising from it ends the work

SCHEDULER = "APPCA_SCHEDULER"
WAIT = 10  # seconds for a scheduler, or a worker in the place of a dead one, to answer
CHUNK_BYTES = 2**23  # the same whatever the workers: chunks decide the last bits of sums
ATTEMPTS = 3  # fits begun anew because a worker died with its rows


class SchedulerAddress(NamedTuple):
    """An address, and how a person can correct it."""

    address: str
    by: str  # "--scheduler"
    otherwise: str  # how to do without it


def scheduler() -> str:
    """Return the address in ``APPCA_SCHEDULER``; empty where fits run on this computer."""
    return os.environ.get(SCHEDULER, "").strip()


def suits(config: RunConfig, n_rows: int, n_features: int, *, gaps: bool) -> bool:
    """Whether a cluster can fit it.

    Samplers look at all rows at once, and with fewer rows than features the fit works in the span
    of the rows, which is small.
    """
    climbs = MODELS[config.model].can.dask and not config.is_sampled
    return climbs and not gaps and n_rows >= n_features


class FitPlace:
    """Where one fit runs: on the cluster that is named, if it suits it, else in this process.

    `gaps` says whether cells are missing. `tell` is told (stage, 0.0) before each chunk that is
    sent; an exception from it ends the work.
    """

    def __init__(self, config: RunConfig, *, gaps: bool, tell: Report) -> None:
        self.config, self.gaps, self.tell = config, gaps, tell
        self.place: str | None = None  # what to note beside the run

    def __call__(self, rows: np.ndarray, fit: Callable[[Any], R]) -> R:
        """Fit to preprocessed rows (N, D).

        Raises InputError where a cluster is named but cannot be used, or is lost on the way.
        """
        address = scheduler()
        if not address or not suits(self.config, *rows.shape, gaps=self.gaps):
            return fit(rows)
        server = SchedulerAddress(address, SCHEDULER, f"unset {SCHEDULER} to fit on this computer")
        self.tell("connecting to the cluster", 0.0)
        with connected(server) as client, losses(server):
            answer = self._fit(client, rows, fit)
            workers = counted(len(client.nthreads()), "worker")
        self.place = f"the Dask cluster at {address}, {workers}"
        return answer

    def _fit(self, client: "Client", rows: np.ndarray, fit: Callable[[Any], R]) -> R:
        """Send the rows and fit; once more when a worker took its rows with it."""
        for _ in range(ATTEMPTS - 1):
            try:
                return fit(self._sent(client, rows))
            except CancelledError:
                client.wait_for_workers(1, timeout=WAIT)
        return fit(self._sent(client, rows))

    def _sent(self, client: "Client", rows: np.ndarray) -> "Array":
        """Return a Dask array of rows that lie with the workers as long as it lives."""
        import dask.array as da

        size = max(1, CHUNK_BYTES // (rows.shape[1] * rows.itemsize))
        starts, name = range(0, len(rows), size), f"rows-{uuid.uuid4().hex}"
        workers = counted(len(client.nthreads()), "worker")
        there = {}
        for i, start in enumerate(starts):
            self.tell(f"sending the rows to {workers}", 0.0)
            there[name, i, 0] = client.scatter(rows[start : start + size], hash=False)
        sizes = tuple(min(size, len(rows) - start) for start in starts)
        empty = np.empty((0, 0), rows.dtype)
        return da.Array(there, name, (sizes, rows.shape[1:]), meta=empty)


@contextmanager
def connected(server: SchedulerAddress) -> Iterator["Client"]:
    """Connect to a cluster whose workers can fit; what Dask computes meanwhile is computed there.

    Raises InputError without the packages, or where no scheduler answers, or it has no workers, or
    those have another version of this package or none.
    """
    refuse_missing_packages(server.by, ("dask", "distributed"), server.otherwise)
    import dask
    from distributed import Client

    try:  # not as Dask's default: one that fails to connect stays that
        client = Client(server.address, timeout=WAIT, set_as_default=False)
    except (OSError, ValueError) as error:
        msg = (
            f"No scheduler answers at “{server.address}”, which {server.by} names; start one with "
            f"`dask scheduler`, correct the address, such as tcp://127.0.0.1:8786, or "
            f"{server.otherwise}."
        )
        raise InputError(msg) from error
    with client, dask.config.set(scheduler=client.get):
        _check_workers(client, server)
        yield client


def refuse_missing_packages(by: str, names: Sequence[str], otherwise: str) -> None:
    """Raise InputError where one of the packages that something needs is not installed."""
    if any(importlib.util.find_spec(name) is None for name in names):
        are = "packages " + " and ".join(names) if len(names) > 1 else f"package {names[0]}"
        msg = (
            f"{by} needs the {are}, missing here; install the extra “dask” of "
            f"appca, as in pip install 'appca[dask]', or {otherwise}."
        )
        raise InputError(msg)


def _check_workers(client: "Client", server: SchedulerAddress) -> None:
    import appca

    if not client.nthreads():
        msg = (
            f"The scheduler at “{server.address}” has no workers; start some with "
            f"`dask worker {server.address}`, or {server.otherwise}."
        )
        raise InputError(msg)
    try:
        versions = set(client.run(pkgutil.resolve_name, "appca:__version__").values())
    except ModuleNotFoundError:
        versions = {"none"}
    if versions != {appca.__version__}:
        others = ", ".join(sorted(versions - {appca.__version__}))
        msg = (
            f"The workers at “{server.address}” must have appca {appca.__version__}, as here; they "
            f"have {others}: install it there, or {server.otherwise}."
        )
        raise InputError(msg)


@contextmanager
def losses(server: SchedulerAddress) -> Iterator[None]:
    """Turn what Dask raises when a cluster goes away into one sentence."""
    from distributed import KilledWorker
    from distributed.client import ClosedClientError
    from distributed.comm.core import CommClosedError

    try:
        yield
    except (
        CancelledError,
        KilledWorker,
        ClosedClientError,
        CommClosedError,
        TimeoutError,
    ) as error:
        msg = (
            f"The cluster at “{server.address}” was lost during the fit ({type(error).__name__}); "
            f"see what its workers say, possibly out of memory, start it again, or "
            f"{server.otherwise}."
        )
        raise InputError(msg) from error
