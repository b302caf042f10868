"""The side of a process that is asked; see `child`."""

import json
import os
import queue
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

Tell = Callable[[Any], None]
STOP = "stop\n"  # a line between requests
stop_was_asked = threading.Event()  # of the present request: to end early with what there is


def serve(
    work: Callable[[Any, Tell], Any],
    prepare: Callable[[], object] = lambda: None,
    niceness: int = 0,
) -> None:
    """Answer requests from the standard input until it ends, or the asking process is gone.

    The process ends then at once, in the middle of a request if need be: nothing outlives a parent
    that was killed. `work` gets a request and what tells news of it, and returns the answer; all
    are JSON-able, numbers of NumPy among them. `prepare` runs once, before the first request.
    `niceness` says by how much others go first.
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
