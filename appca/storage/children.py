"""Further processes of Python that are spoken to in lines.

Never made with multiprocessing, whose children would run the page's script again.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

import appca


def python_path() -> str:
    """Return a ``PYTHONPATH`` by which an uninstalled package is found, too."""
    root = str(Path(appca.__file__).resolve().parents[1])
    return os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))


def environment(threads: int, **more: str) -> dict[str, str]:
    """Return the environment of a child that computes with so many threads."""
    own = {"PYTHONPATH": python_path(), "PYTHONUNBUFFERED": "1", **more}
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return dict(os.environ) | own | dict.fromkeys(names, str(threads))


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
    """A process and its two pipes; `how` are further options of `subprocess.Popen`."""

    def __init__(self, command: Sequence[str], env: dict[str, str], **how: Any) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, env=env, text=True, encoding="utf-8", **how
        )
        self.stdin = cast("IO[str]", self.process.stdin)
        self.stdout = cast("IO[str]", self.process.stdout)
        self.pid = self.process.pid

    def send(self, line: str) -> None:
        """Give it a line; if it is dead, `answers` will end."""
        with suppress(OSError):
            self.stdin.write(f"{line}\n")
            self.stdin.flush()

    def answers(self) -> Iterator[str]:
        """Yield its lines until it is dead."""
        for line in self.stdout:
            yield line.strip()
        self.process.wait()

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()

    def close(self) -> None:
        """Let go of its pipes."""
        for stream in (self.stdin, self.stdout):
            with suppress(OSError):
                stream.close()
