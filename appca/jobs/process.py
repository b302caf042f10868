"""One worker process as the server sees it: started, buried, and why it died."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from appca.runs.home import threads
from appca.storage import rights
from appca.storage.children import Child, environment

COMMAND = (sys.executable, "-m", "appca.jobs.worker")


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


def start_compiler() -> "subprocess.Popen[bytes]":
    """Compile what fits and pictures of many rows need, in a process of the lowest priority.

    A compiler holds the interpreter's lock, and what it makes is kept on disk for the server and
    its workers. Where it is there already the process ends within two seconds.
    """
    code = (
        "import os; getattr(os, 'nice', int)(19)\n"
        "from appca.analysis.explore import room\n"
        "from appca.models.orthonormal import compiled_expectation\n"
        "from appca.models.incomplete import missing_supports\n"
        "room.compile_ahead()\n"
        "compiled_expectation.compile_ahead()\n"
        "missing_supports.compile_ahead()"
    )
    none = subprocess.DEVNULL
    command = (sys.executable, "-c", code)
    own = environment(threads())
    return subprocess.Popen(command, stdin=none, stdout=none, stderr=none, env=own)
