"""Pieces of work for the tests of the processes; found by name in another process."""

import os
import time


def square(spec, tick):
    tick(f"squaring {spec['x']}", 0.5)
    return [{"square": spec["x"] ** 2, "process": os.getpid()}]


def refuse(spec, tick):
    del tick
    msg = f"x must be small; got {spec['x']}."
    raise ValueError(msg)


def die(spec, tick):
    del spec, tick
    os._exit(3)


def hang(spec, tick):
    tick(f"process {os.getpid()}", 0.1)
    time.sleep(600)  # ended by the test, never waited for
    return spec
