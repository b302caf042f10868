"""Processes of Python, seen by the process that asks: one request at a time, news, and an answer.

Never made with multiprocessing, whose children would run the page's script again.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

from appca.processes.served import STOP


class Ended(Exception):
    """A process ended before it had answered."""


def python_path() -> str:
    """Return a ``PYTHONPATH`` by which an uninstalled package is found, too."""
    root = str(Path(__file__).resolve().parents[2])
    return os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))


def environment(threads: int, **more: str) -> dict[str, str]:
    """Return the environment of a child that computes with so many threads."""
    variables = {"PYTHONPATH": python_path(), "PYTHONUNBUFFERED": "1", **more}
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return dict(os.environ) | variables | dict.fromkeys(names, str(threads))


def start_compiler(modules: Sequence[str]) -> "subprocess.Popen[bytes]":
    """Have modules compile ahead, in a process of the lowest priority: nobody waits for it.

    A compiler holds the interpreter's lock, and what it makes is kept on disk for the server and
    its workers. Where it is there already the process ends within two seconds.
    """
    code = (
        "import gc, os, sys; from importlib import import_module\n"
        "gc.disable()\n"  # a tenth of the time
        "getattr(os, 'nice', int)(19)\n"
        "for name in sys.argv[1:]: import_module(name).compile_ahead()"
    )
    none = subprocess.DEVNULL
    command = (sys.executable, "-c", code, *modules)
    return subprocess.Popen(command, stdin=none, stdout=none, stderr=none, env=environment(1))


class Child:
    """A process that `served.serve` runs in; `how` are further options of `subprocess.Popen`."""

    def __init__(self, command: Sequence[str], env: dict[str, str], **how: Any) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, env=env, text=True, encoding="utf-8", **how
        )
        self._requests = cast("IO[str]", self.process.stdin)
        self._answers = cast("IO[str]", self.process.stdout)
        self.pid = self.process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked."""
        return self.process.poll() is None

    def ask(self, request: Any, hear: Callable[[Any], object] = lambda _: None) -> Any:
        """Let it do something and return its answer; `hear` gets the news of it meanwhile.

        Raises Ended where it is dead, or dies before it has answered.
        """
        with suppress(OSError):  # it is dead, and says nothing
            self._requests.write(f"{json.dumps(request)}\n")
            self._requests.flush()
        for line in self._answers:
            if not line.endswith("\n"):  # it died over it
                break
            said = json.loads(line)
            if "answer" in said:
                return said["answer"]
            hear(said["news"])
        self.kill()
        raise Ended

    def stop(self) -> None:
        """Ask it to end its present work early, with what it has."""
        with suppress(OSError):
            self._requests.write(STOP)
            self._requests.flush()

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait()

    def end(self, patience: float = 0.0) -> int:
        """Ask it nothing any more and return its exit code; it is killed if it takes longer."""
        for stream in (self._requests, self._answers):
            with suppress(OSError):
                stream.close()
        try:
            return self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
