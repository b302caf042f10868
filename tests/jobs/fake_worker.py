"""A worker whose jobs wait for files instead of computing, so that tests control the order.

Started as ``python -m tests.jobs.fake_worker HOME``.
"""

import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import IO

import numpy as np

from appca.jobs.tasks import Context
from appca.jobs.worker import serve
from appca.runs.run import FitResult, RunConfig
from appca.runs.store import RunStore
from tests.fitted_runs import fitted_run, info_of


def wait(spec: dict, context: Context) -> dict:
    while not any(Path(gate).exists() for gate in spec["gates"]):
        context.report("waiting for the gate", 0.5)
        time.sleep(0.01)
    return {"worker": os.getpid()}


def climb(spec: dict, context: Context) -> dict:
    last = spec["passes"]
    for stage in ("screening", "fit"):
        for i in range(1, last + 1):
            told = {"iteration": i, "log_likelihood": -100.0 / i, "seconds_left": 1.5}
            context.report(stage, i / last, **told)
    return wait(spec, context)


def fit(_: dict, context: Context) -> dict:
    while not context.stops():
        context.report("fit", 0.5)
        time.sleep(0.01)
    return {"kept": True}


def deaf(spec: dict, context: Context) -> dict:
    context.report("deaf", 0.5)
    Path(spec["pid_file"]).write_text(str(os.getpid()))
    while True:
        time.sleep(0.01)


def die(_: dict, context: Context) -> None:
    context.report("dying", 0.5)
    os.write(2, b"last words")
    os.kill(os.getpid(), signal.SIGKILL)


def refuse(spec: dict, context: Context) -> dict:
    sys.stdout.write("refusing\n")
    raise {"value": ValueError, "key": KeyError, "memory": MemoryError}[spec["error"]](spec["text"])


def die_saving(spec: dict, context: Context) -> None:
    """Die in the middle of writing the arrays of a run."""

    def half(file: IO[bytes], **_arrays: np.ndarray) -> None:
        file.write(b"PK half an archive")
        file.flush()
        os.kill(os.getpid(), signal.SIGKILL)

    np.savez = half
    result = FitResult(fitted_run(np.ones((1, 1), dtype=bool)), info_of())
    RunStore(context.home).save(RunConfig.from_dict(spec["config"]), result)


def full(spec: dict, context: Context) -> dict:
    """Go on when no file of the process can grow any more, as on a full disk."""
    context.report("nearly done", 0.9)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    if spec["then"] == "refuse":
        raise ValueError("K must be smaller.")
    if spec["then"] == "chatter":  # so much that the log cannot take it
        sys.stdout.write("x" * 100_000)
        sys.stdout.flush()
    context.report("another stage", 0.95)
    return {"answer": 42}


HANDLERS = {one.__name__: one for one in (wait, climb, fit, deaf, die, die_saving, refuse, full)}

if __name__ == "__main__":
    serve(Path(sys.argv[1]), HANDLERS, prepare=lambda: None)
