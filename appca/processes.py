"""Worker processes that are started, kept, shared, and replaced when they die."""

import ctypes
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock, Semaphore
from typing import IO, Any, Generic, TypeVar, cast

Tell = Callable[[Any], None]
STOP = "stop\n"  # sent between requests
stop_was_asked = threading.Event()  # set if the current request should end early


def serve(
    work: Callable[[Any, Tell], Any],
    prepare: Callable[[], object] = lambda: None,
    niceness: int = 0,
) -> None:
    """Answer requests from standard input until it is closed, or the parent process has ended.

    Then the process ends at once, even during a request. `work` receives a request and a function
    that reports progress, and returns the answer; all are JSON-able and may contain NumPy numbers.
    `prepare` runs once, before the first request. `niceness` lowers the process's priority.
    """
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # printed output must not be mistaken for an answer
    requests: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    with suppress(AttributeError, OSError):  # not available on every system
        os.nice(niceness)
    prepare()

    def say(what: str, value: object) -> None:
        channel.write(f"{json.dumps({what: value}, default=_plain)}\n")
        channel.flush()

    while True:
        request = json.loads(requests.get())
        stop_was_asked.clear()
        say("answer", work(request, lambda news: say("news", news)))


def _listen(requests: "queue.SimpleQueue[str]") -> None:
    for line in sys.stdin:
        if line == STOP:
            stop_was_asked.set()
        else:
            requests.put(line)
    os._exit(0)


def _plain(value: Any) -> Any:
    """Convert a NumPy number to a Python number, anything else to text."""
    return value.item() if hasattr(value, "item") else str(value)


class Ended(Exception):
    """A process has ended without an answer."""


def python_path() -> str:
    """Return a ``PYTHONPATH`` that includes an uninstalled package."""
    root = str(Path(__file__).resolve().parents[1])
    return os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))


def environment(threads: int, **more: str) -> dict[str, str]:
    """Return the environment for a child process with this number of threads."""
    variables = {"PYTHONPATH": python_path(), "PYTHONUNBUFFERED": "1", **more}
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return dict(os.environ) | variables | dict.fromkeys(names, str(threads))


def return_freed_arrays() -> None:
    """Make glibc return arrays over 1 MB when freed; otherwise it keeps up to 64 MB per thread."""
    with suppress(AttributeError, OSError, TypeError):  # another C library
        for option, most in ((-3, 1 << 20), (-1, 8 << 20)):  # M_MMAP_THRESHOLD, M_TRIM_THRESHOLD
            ctypes.CDLL(None).mallopt(option, most)


def start_compiler(modules: Sequence[str]) -> "subprocess.Popen[bytes]":
    """Compile modules in a process of lowest priority; the code is cached on disk."""
    code = (
        "import gc, os, sys; from importlib import import_module\n"
        "gc.disable()\n"  # saves a tenth of the time
        "getattr(os, 'nice', int)(19)\n"
        "for name in sys.argv[1:]: import_module(name).compile_ahead()"
    )
    none = subprocess.DEVNULL
    command = (sys.executable, "-c", code, *modules)
    return subprocess.Popen(command, stdin=none, stdout=none, stderr=none, env=environment(1))


class Child:
    """A process that runs `serve`; `how` are additional options of `subprocess.Popen`."""

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
        """Whether it can take requests."""
        return self.process.poll() is None

    def ask(self, request: Any, hear: Callable[[Any], object] = lambda _: None) -> Any:
        """Send a request and return its answer; `hear` receives progress reports.

        Raises Ended if the process is dead, or dies before it answers.
        """
        with suppress(OSError):  # a dead process; reading fails below
            self._requests.write(f"{json.dumps(request)}\n")
            self._requests.flush()
        for line in self._answers:
            if not line.endswith("\n"):  # died while answering
                break
            said = json.loads(line)
            if "answer" in said:
                return said["answer"]
            hear(said["news"])
        self.kill()
        raise Ended

    def stop(self) -> None:
        """Ask the child to end its current request early and return its result so far."""
        with suppress(OSError):
            self._requests.write(STOP)
            self._requests.flush()

    def kill(self) -> None:
        """End the process at once."""
        self.process.kill()
        self.process.wait()

    def end(self, patience: float = 0.0) -> int:
        """Close its input and return its exit code; kill it after `patience` seconds."""
        for stream in (self._requests, self._answers):
            with suppress(OSError):
                stream.close()
        try:
            return self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


PATIENCE = 1.0  # seconds for a process to end by itself
C = TypeVar("C", bound=Child)


class Pool(Generic[C]):
    """A limited number of processes shared by threads; a thread waits for a free process.

    `make` starts a process and may raise OSError. `kept` is the number of idle processes that are
    kept, by default all.
    """

    def __init__(self, make: Callable[[], C], most: int, kept: int | None = None) -> None:
        self._make, self._kept = make, most if kept is None else kept
        self._places, self._lock = Semaphore(most), Lock()
        self._idle: list[C] = []
        self._lent: list[C] = []
        self._is_over = False

    def warm(self) -> None:
        """Start a process in advance, unless one is idle. May raise OSError."""
        with self._lock:
            if not self._idle and not self._is_over:
                self._idle.append(self._make())

    @contextmanager
    def lent(self) -> Iterator[C]:
        """Yield a process for exclusive use; drop it if it has died.

        Raises OSError if no process can be started, Ended after `end`.
        """
        with self._places:
            child = self._next()
            try:
                yield child
            finally:
                self._take_back(child)

    def end(self) -> None:
        """End all processes; kill busy ones at once."""
        with self._lock:
            self._is_over = True
            idle, self._idle = self._idle, []
            for child in self._lent:
                child.kill()
        for child in idle:
            child.end(PATIENCE)

    def _next(self) -> C:
        with self._lock:
            while self._idle and not self._idle[-1].is_alive:
                self._idle.pop().end()
            if self._is_over:
                raise Ended
            child = self._idle.pop() if self._idle else self._make()
            self._lent.append(child)
            return child

    def _take_back(self, child: C) -> None:
        with self._lock:
            self._lent.remove(child)
            if child.is_alive and len(self._idle) < self._kept and not self._is_over:
                self._idle.append(child)
                return
        child.end(PATIENCE)
