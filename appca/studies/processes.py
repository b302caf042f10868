"""Many independent pieces of work, one after the other here or distributed over processes.

A piece is a function ``module:name`` of (spec, tick) that returns JSON-able rows. Further
processes are ``python -m appca.studies.processes``. A parent that is told to stop kills them at
once, in the middle of a fit if need be.
"""

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from importlib import import_module
from typing import Any, cast

from appca.processes import Child, Ended, Pool, Tell, environment, serve
from appca.studies.study import Report
from appca.words import InputError

Tick = Callable[[str, float], None]  # (stage, share of the piece); may raise
Spec = dict[str, Any]  # a piece of work, as in JSON
COMMAND = (sys.executable, "-m", "appca.studies.processes")
WAIT = 0.1  # seconds between two looks at whether to stop


def work(piece: str, specs: Sequence[Spec], report: Report, processes: int) -> list[Any]:
    """Do all pieces, in this process if `processes` is 1, and return their results in order.

    `report` gets (stage, share of all); an exception from it ends everything. Raises InputError
    when a piece refuses, or a process dies.
    """
    n = len(specs)
    if min(processes, n) > 1:
        return _in_processes(piece, specs, report, min(processes, n))

    def tick(done: int) -> Tick:
        return lambda stage, share: report(stage, (done + share) / n)

    function = _function(piece)
    return [function(spec, tick(done)) for done, spec in enumerate(specs)]


def _function(piece: str) -> Callable[[Spec, Tick], Any]:
    module, _, name = piece.partition(":")
    return cast("Callable[[Spec, Tick], Any]", getattr(import_module(module), name))


def _in_processes(piece: str, specs: Sequence[Spec], report: Report, n: int) -> list[Any]:
    pool = Pool(lambda: Child(COMMAND, environment(1)), n)
    stage, shares = "starting", [0.0] * len(specs)

    def do(place: int) -> Any:
        def on_news(news: tuple[str, float]) -> None:
            nonlocal stage
            stage, shares[place] = news

        with pool.lent() as member:
            try:
                answer = member.ask({"piece": piece, "spec": specs[place]}, on_news)
            except Ended:
                msg = "A process of the experiment ended before it was done; start it again."
                raise InputError(msg) from None
        if "refusal" in answer:
            raise InputError(answer["refusal"])
        shares[place] = 1.0
        return answer["result"]

    with ThreadPoolExecutor(n) as threads:
        try:
            pieces = [threads.submit(do, place) for place in range(len(specs))]
            pending = set(pieces)
            while pending:
                done, pending = wait(pending, WAIT, FIRST_EXCEPTION)
                for future in done:
                    future.result()  # raises what a piece raised
                report(stage, sum(shares) / len(specs))
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            pool.end()
    return [future.result() for future in pieces]


def _answer(task: Spec, tell: Tell) -> dict[str, Any]:
    try:
        return {"result": _function(task["piece"])(task["spec"], lambda *news: tell(news))}
    except ValueError as error:
        return {"refusal": " ".join(str(error).split())}


if __name__ == "__main__":
    serve(_answer)
