"""A process that echoes requests, and functions that other processes call by name.

Started as ``python -m tests.jobs.echo``.
"""

import os
import sys
import time

import numpy as np

from appca.processes import serve


def answer(request, tell):
    sys.stdout.write("no answer\n")
    for number in range(request.get("news", 0)):
        tell(np.int64(number))
    if "exit" in request:
        os._exit(request["exit"])
    while "hang" in request:
        time.sleep(0.01)
    return {"said": request["say"], "process": os.getpid(), "nice": os.nice(0)}


def square(spec, tick):
    tick(f"squaring {spec['x']}", 0.5)
    return [{"square": spec["x"] ** 2, "process": os.getpid()}]


def refuse(spec, _tick):
    msg = f"x must be small; got {spec['x']}."
    raise ValueError(msg)


def die(_spec, _tick):
    os._exit(3)


def hang(spec, tick):
    tick(f"process {os.getpid()}", 0.1)
    time.sleep(600)  # ended by the test, never waited for
    return spec


if __name__ == "__main__":
    serve(answer, lambda: sys.stdout.write("ready\n"), niceness=3)
