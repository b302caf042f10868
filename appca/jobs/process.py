"""One worker process as the server sees it: started, buried, and why it died."""

import sys
from collections.abc import Sequence
from pathlib import Path

from appca.runs.home import threads
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
        with log.open("wb") as errors:
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
