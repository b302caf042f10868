"""A worker in whose jobs the disk becomes full. Started as ``python -m tests.faults.full_worker``.

A process whose files may not grow stands for the disk: it needs no rights, and ends with it.
"""

import sys
from pathlib import Path

from appca.jobs.tasks import Context
from appca.jobs.worker import serve
from tests.faults.child import small_files


def finish(_: dict, context: Context) -> dict:
    context.report("nearly done", 0.9)
    small_files(0)()
    return {"answer": 42}


def refuse(_: dict, __: Context) -> dict:
    small_files(0)()
    msg = "K must be smaller."
    raise ValueError(msg)


def report(_: dict, context: Context) -> dict:
    small_files(0)()
    context.report("another stage", 0.5)
    return {}


def chatter(_: dict, context: Context) -> dict:
    """Say so much that the log cannot take it."""
    small_files(0)()
    sys.stdout.write("x" * 100_000)
    sys.stdout.flush()
    return {}


HANDLERS = {"finish": finish, "refuse": refuse, "report": report, "chatter": chatter}

if __name__ == "__main__":
    serve(Path(sys.argv[1]), HANDLERS, prepare=lambda: None)
