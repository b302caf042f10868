"""One worker process as the server sees it: started, buried, and why it died."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from appca.runs.home import threads
from appca.storage import rights
from appca.storage.children import Child, environment

COMMAND = (sys.executable, "-m", "appca.jobs.worker")
COMPILED = (  # what pictures of many rows need, then what fits need
    "appca.analysis.explore.room",
    "appca.models.orthonormal.compiled_expectation",
    "appca.models.incomplete.missing_supports",
)


class WorkerProcess(Child):
    """A worker.

    Parameters
    ----------
    command : sequence of str
        Starts the worker.
    log : Path
        Receives what it prints outside of jobs.
    """

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self.log = log
        with open(log, "wb", opener=rights.opener) as errors:
            # Ctrl-C in the terminal is for the server. A session of its own would have a share of
            # the processor of its own, whatever its niceness.
            super().__init__(command, environment(threads()), stderr=errors, process_group=0)

    def bury(self) -> None:
        """Wait for its end and remove what it leaves."""
        self.process.wait()
        self.close()
        self.log.unlink(missing_ok=True)

    def cause_of_death(self) -> str:
        """Say in one sentence how it ended."""
        code = self.process.wait()
        cause = f"signal {-code}" if code < 0 else f"exit code {code}"
        hint = ", perhaps for lack of memory" if code == -9 else ""
        return f"The worker process ended before the job was over ({cause}{hint}); start it again."


def start_compiler(modules: Sequence[str], niceness: int = 19) -> "subprocess.Popen[bytes]":
    """Have modules compile ahead, in a process of the lowest priority if nobody waits for it.

    A compiler holds the interpreter's lock, and what it makes is kept on disk for the server and
    its workers. Where it is there already the process ends within two seconds.
    """
    code = (
        "import os, sys; from importlib import import_module\n"
        "getattr(os, 'nice', int)(int(sys.argv[1]))\n"
        "for name in sys.argv[2:]: import_module(name).compile_ahead()"
    )
    none = subprocess.DEVNULL
    command = (sys.executable, "-c", code, str(niceness), *modules)
    own = environment(threads())
    return subprocess.Popen(command, stdin=none, stdout=none, stderr=none, env=own)
