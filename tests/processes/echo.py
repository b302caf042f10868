"""A process that answers what it is told. Started as ``python -m tests.processes.echo``."""

import os
import sys
import time

import numpy as np

from appca.processes import serve


def work(request, tell):
    sys.stdout.write("no answer\n")
    for number in range(request.get("news", 0)):
        tell(np.int64(number))
    if "exit" in request:
        os._exit(request["exit"])
    while "hang" in request:
        time.sleep(0.01)
    return {"said": request["say"], "process": os.getpid(), "nice": os.nice(0)}


if __name__ == "__main__":
    serve(work, lambda: sys.stdout.write("ready\n"), niceness=3)
