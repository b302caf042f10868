"""Many independent pieces of work, one after the other here or shared out over processes.

A piece is a function ``module:name`` of (spec, tick) that returns JSON-able rows. Further
processes are ``python -m appca.studies.processes``: they take one piece at a time as a line of
JSON and answer with lines of JSON. They end with their standard input, so that nothing outlives a
parent that was killed; and a parent that is told to stop kills them at once, in the middle of a
fit if need be.
"""

import contextlib
import json
import os
import queue
import sys
import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import IO, Any, cast

from appca.storage.children import Child, environment
from appca.studies.study import Report
from appca.words.errors import InputError

Tick = Callable[[str, float], None]  # (what is being done, share of the piece); may raise
Spec = dict[str, Any]  # a piece of work, as in JSON
WAIT = 0.1  # seconds between two looks at whether to stop


def work(piece: str, specs: Sequence[Spec], report: Report, processes: int) -> list[Any]:
    """Do all pieces and return their results in order.

    Parameters
    ----------
    piece : str
        "module:name" of a function (spec, tick) -> JSON-able result.
    specs : sequence of Spec
        One for each piece.
    report : callable
        Told (stage, share of all); an exception from it ends everything.
    processes : int
        1 works in this process.

    Raises
    ------
    InputError
        When a piece refuses, or a process dies.
    """
    if processes <= 1 or len(specs) < 2:
        return _here(_function(piece), specs, report)
    return _Crew(piece, specs, min(processes, len(specs))).run(report)


def _function(piece: str) -> Callable[[Spec, Tick], Any]:
    module, _, name = piece.partition(":")
    return cast("Callable[[Spec, Tick], Any]", getattr(import_module(module), name))


def _here(
    function: Callable[[Spec, Tick], Any], specs: Sequence[Spec], report: Report
) -> list[Any]:
    def tick(done: int) -> Tick:
        return lambda stage, share: report(stage, (done + share) / len(specs))

    return [function(spec, tick(done)) for done, spec in enumerate(specs)]


class _Crew:
    """The processes of one experiment."""

    def __init__(self, piece: str, specs: Sequence[Spec], n: int) -> None:
        self.piece, self.specs, self.n = piece, specs, n
        self.waiting = list(range(len(specs)))[::-1]
        self.shares = [0.0] * len(specs)
        self.results: dict[int, Any] = {}
        self.news: queue.SimpleQueue[tuple[int, dict[str, Any] | None]] = queue.SimpleQueue()
        self.stage = "starting"

    def run(self, report: Report) -> list[Any]:
        command = (sys.executable, "-m", "appca.studies.processes")
        members = [Child(command, environment(1)) for _ in range(self.n)]
        try:
            for number, member in enumerate(members):
                threading.Thread(target=self._listen, args=(number, member), daemon=True).start()
                self._give(member)
            while len(self.results) < len(self.specs):
                report(self.stage, sum(self.shares) / len(self.specs))
                self._hear(members)
        finally:
            for member in members:
                member.kill()
            for member in members:
                member.process.wait()
                with contextlib.suppress(OSError):
                    member.stdin.close()
        return [self.results[place] for place in range(len(self.specs))]

    def _give(self, member: Child) -> None:
        if self.waiting:
            place = self.waiting.pop()
            task = {"piece": self.piece, "place": place, "spec": self.specs[place]}
            member.send(json.dumps(task))

    def _hear(self, members: list[Child]) -> None:
        """Take in what there is, waiting a moment if there is nothing."""
        timeout = WAIT
        with contextlib.suppress(queue.Empty):
            while True:
                number, message = self.news.get(timeout=timeout)
                timeout = 0.0
                self._take(members[number], message)

    def _take(self, member: Child, message: dict[str, Any] | None) -> None:
        if message is None:
            msg = "A process of the experiment ended before it was done; start it again."
            raise InputError(msg)
        place = message["place"]
        if "refusal" in message:
            raise InputError(message["refusal"])
        if "result" in message:
            self.results[place], self.shares[place] = message["result"], 1.0
            self._give(member)
        else:
            self.stage, self.shares[place] = message["stage"], message["share"]

    def _listen(self, number: int, member: Child) -> None:
        with member.stdout:
            for line in member.answers():
                self.news.put((number, json.loads(line)))
        self.news.put((number, None))


def serve() -> None:
    """Take pieces from the standard input until it ends."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever prints must not be taken for an answer
    inbox: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_inbox, args=(inbox,), daemon=True).start()
    while True:
        _answer(json.loads(inbox.get()), channel)


def _answer(task: dict[str, Any], channel: IO[str]) -> None:
    """Do one piece and say how it goes and what came out."""

    def say(**message: object) -> None:
        channel.write(f"{json.dumps({'place': task['place'], **message})}\n")
        channel.flush()

    try:
        found = _function(task["piece"])(
            task["spec"], lambda stage, share: say(stage=stage, share=share)
        )
    except ValueError as error:
        say(refusal=" ".join(str(error).split()))
    else:
        say(result=found)


def _inbox(inbox: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        inbox.put(line)
    os._exit(0)


if __name__ == "__main__":
    serve()
