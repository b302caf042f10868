"""One worker process as the server sees it: started, buried, and why it died."""

import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack

from appca.processes.child import Child, environment
from appca.runs.home import threads

COMMAND = (sys.executable, "-m", "appca.jobs.worker")


class WorkerProcess(Child):
    """A worker; what it prints outside of jobs is kept for the case that it dies."""

    def __init__(self, command: Sequence[str]) -> None:
        with ExitStack() as opened:
            self._printed = opened.enter_context(tempfile.TemporaryFile())
            # Ctrl-C in the terminal is for the server. A session of its own would have a share of
            # the processor of its own, whatever its niceness.
            how = {"stderr": self._printed, "process_group": 0}
            super().__init__(command, environment(threads()), **how)
            self._opened = opened.pop_all()

    def end(self, patience: float = 0.0) -> int:
        """End it; what it printed is gone then."""
        self._opened.close()
        return super().end(patience)

    def last_words(self) -> bytes:
        """Return what it printed outside of jobs."""
        self._printed.seek(0)
        return self._printed.read()

    def cause_of_death(self) -> str:
        """Say in one sentence how it ended."""
        code = self.process.wait()
        cause = f"signal {-code}" if code < 0 else f"exit code {code}"
        hint = ", possibly out of memory" if code == -9 else ""
        return f"The worker process ended before the job finished ({cause}{hint}); start it again."
