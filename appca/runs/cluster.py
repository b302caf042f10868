"""The workers of a Dask cluster: connected, checked, and what is said when they are lost."""

import importlib.util
import pkgutil
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import TYPE_CHECKING

from appca.storage.errors import InputError

if TYPE_CHECKING:
    from distributed import Client

WAIT = 10  # seconds for a scheduler to answer
THREADS = "threads"  # in the place of an address
_OTHERWISE = f"name {THREADS} instead to fit on this computer"


@contextmanager
def connected(address: str) -> Iterator["Client"]:
    """Connect to a cluster whose workers can fit; what Dask computes meanwhile is computed there.

    Raises
    ------
    InputError
        Without the packages, or where no scheduler answers, or it has no workers, or those have
        another version of this package or none.
    """
    refuse_missing_packages("--scheduler", ("dask", "distributed"), _OTHERWISE)
    import dask
    from distributed import Client

    try:  # not as Dask's default: one that fails to connect stays that
        client = Client(address, timeout=WAIT, set_as_default=False)
    except (OSError, ValueError) as error:
        msg = (
            f"No scheduler answers at “{address}”, which --scheduler names; start one with "
            f"`dask scheduler`, correct the address, such as tcp://127.0.0.1:8786, or "
            f"{_OTHERWISE}."
        )
        raise InputError(msg) from error
    with client, dask.config.set(scheduler=client.get):
        _check_workers(client, address)
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


def _check_workers(client: "Client", address: str) -> None:
    import appca

    if not client.nthreads():
        msg = (
            f"The scheduler at “{address}” has no workers; start some with "
            f"`dask worker {address}`, or {_OTHERWISE}."
        )
        raise InputError(msg)
    try:
        versions = set(client.run(pkgutil.resolve_name, "appca:__version__").values())
    except ModuleNotFoundError:
        versions = {"none"}
    if versions != {appca.__version__}:
        others = ", ".join(sorted(versions - {appca.__version__}))
        msg = (
            f"The workers at “{address}” must have appca {appca.__version__}, as here; they "
            f"have {others}: install it there, or {_OTHERWISE}."
        )
        raise InputError(msg)


@contextmanager
def losses(address: str) -> Iterator[None]:
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
            f"The cluster at “{address}” was lost during the fit ({type(error).__name__}); "
            f"see what its workers say, perhaps for lack of memory, start it again, or "
            f"{_OTHERWISE}."
        )
        raise InputError(msg) from error
