"""One worker process as the server sees it: started, spoken to, listened to, killed."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, cast

import appca
from appca.runs.home import threads
from appca.storage import rights

COMMAND = (sys.executable, "-m", "appca.jobs.worker")


class WorkerProcess:
    """A worker; never made with multiprocessing, whose children would run the page's script again.

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
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment(),
                text=True,
                encoding="utf-8",
                # Ctrl-C in the terminal is for the server. A session of its own would have a share
                # of the processor of its own, whatever its niceness.
                process_group=0,
            )
        self._stdin = cast("IO[str]", self._process.stdin)
        self._stdout = cast("IO[str]", self._process.stdout)
        self.pid = self._process.pid

    def send(self, line: str) -> None:
        """Give it a line; if it is dead, `answers` will end."""
        with contextlib.suppress(OSError):
            self._stdin.write(f"{line}\n")
            self._stdin.flush()

    def answers(self) -> Iterator[str]:
        """Yield its lines until it is dead."""
        for line in self._stdout:
            yield line.strip()
        self._process.wait()

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()

    def bury(self) -> None:
        """Wait for its end and remove what it leaves."""
        self._process.wait()
        for stream in (self._stdin, self._stdout):
            with contextlib.suppress(OSError):
                stream.close()
        self.log.unlink(missing_ok=True)

    def cause_of_death(self) -> str:
        """Say in one sentence how it ended."""
        code = self._process.wait()
        cause = f"signal {-code}" if code < 0 else f"exit code {code}"
        hint = ", perhaps for lack of memory" if code == -9 else ""
        return f"The worker process ended before the job was over ({cause}{hint}); start it again."


def environment() -> dict[str, str]:
    """Environment of a worker: finds an uninstalled package, and uses its share of the cores."""
    root = str(Path(appca.__file__).resolve().parents[1])
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    own = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}
    return dict(os.environ) | own | dict.fromkeys(names, str(threads()))


def start_compiler() -> "subprocess.Popen[bytes]":
    """Compile what fits and pictures of many rows need, in a process of the lowest priority.

    A compiler holds the interpreter's lock, and what it makes is kept on disk for the server and
    its workers. Where it is there already the process ends within two seconds.
    """
    code = (
        "import os; getattr(os, 'nice', int)(19)\n"
        "from appca.analysis.explore import room\n"
        "from appca.models.orthonormal import em\n"
        "from appca.models.incomplete import missing_supports\n"
        "room.compile_ahead(); em.compile_ahead(); missing_supports.compile_ahead()"
    )
    none = subprocess.DEVNULL
    command = (sys.executable, "-c", code)
    return subprocess.Popen(command, stdin=none, stdout=none, stderr=none, env=environment())
