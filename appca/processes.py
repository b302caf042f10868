"""Worker processes: started, kept warm, lent, and replaced when they die."""

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
STOP = "stop\n"  # a line between requests
stop_was_asked = threading.Event()  # set when the current request should end early


def serve(
    work: Callable[[Any, Tell], Any],
    prepare: Callable[[], object] = lambda: None,
    niceness: int = 0,
) -> None:
    """Answer requests from the standard input until it ends, or the asking process is gone.

    The process then ends at once, even within a request. `work` gets a request and a function that
    tells news of it, and returns the answer; all are JSON-able, numbers of NumPy among them.
    `prepare` runs once, before the first request. `niceness` says by how much others go first.
    """
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever prints must not be taken for an answer
    requests: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    with suppress(AttributeError, OSError):  # not on every system
        os.nice(niceness)
    prepare()

    def say(what: str, value: object) -> None:
        channel.write(f"{json.dumps({what: value}, default=_plain)}\n")
        channel.flush()

    while True:
        request = json.loads(requests.get())
        stop_was_asked.clear()
        answer = work(request, lambda news: say("news", news))
        say("answer", answer)


def _listen(requests: "queue.SimpleQueue[str]") -> None:
    for line in sys.stdin:
        if line == STOP:
            stop_was_asked.set()
        else:
            requests.put(line)
    os._exit(0)


def _plain(value: Any) -> Any:
    """Return a number of NumPy's as one of Python's, anything else as text."""
    return value.item() if hasattr(value, "item") else str(value)


class Ended(Exception):
    """A process ended before it had answered."""


def python_path() -> str:
    """Return a ``PYTHONPATH`` that includes an uninstalled package."""
    root = str(Path(__file__).resolve().parents[1])
    return os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))


def environment(threads: int, **more: str) -> dict[str, str]:
    """Return the environment of a child that computes with so many threads."""
    variables = {"PYTHONPATH": python_path(), "PYTHONUNBUFFERED": "1", **more}
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return dict(os.environ) | variables | dict.fromkeys(names, str(threads))


def start_compiler(modules: Sequence[str]) -> "subprocess.Popen[bytes]":
    """Compile modules in a process of the lowest priority; the code is kept on disk."""
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
        """Ask the child to end its current request early and return its result so far."""
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


PATIENCE = 1.0  # seconds for a process to end by itself
C = TypeVar("C", bound=Child)


class Pool(Generic[C]):
    """Processes that several threads share, at most so many at once; who needs another one waits.

    `make` starts one and may raise OSError. `kept` of them, by default all, stay while nobody needs
    them.
    """

    def __init__(self, make: Callable[[], C], most: int, kept: int | None = None) -> None:
        self._make, self._kept = make, most if kept is None else kept
        self._places, self._lock = Semaphore(most), Lock()
        self._idle: list[C] = []
        self._lent: list[C] = []
        self._is_over = False

    def warm(self) -> None:
        """Start a process, unless one waits. May raise OSError."""
        with self._lock:
            if not self._idle and not self._is_over:
                self._idle.append(self._make())

    @contextmanager
    def lent(self) -> Iterator[C]:
        """Lend a process; it is dropped if it has died.

        Raises OSError where none can be started, Ended after `end`.
        """
        with self._places:
            child = self._next()
            try:
                yield child
            finally:
                self._take_back(child)

    def end(self) -> None:
        """End all processes; lent ones are killed at once."""
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
