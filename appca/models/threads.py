"""Threads for blocks of rows, each with a single BLAS thread.

Threads of a BLAS synchronize in every call, which takes long on a busy machine. These threads
synchronize once per iteration.
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")
R = TypeVar("R")


class _Holders:
    def __init__(self) -> None:
        self.lock, self.count = threading.Lock(), 0
        self.restore: Callable[[], Any] = lambda: None


_holders = _Holders()


def cores() -> int:
    """Return the number of cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on every system
    return len(affinity(0)) if affinity else os.cpu_count() or 1


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread until all such contexts, nested or in other threads, have ended."""
    with _holders.lock:
        if _holders.count == 0:
            with _in_control():
                limiter = _controller().limit(limits=1, user_api="blas")
            _holders.restore = limiter.restore_original_limits
        _holders.count += 1
    try:
        yield
    finally:
        with _holders.lock:
            _holders.count -= 1
            if _holders.count == 0:
                with _in_control():
                    _holders.restore()


def hold_blas(n: int) -> None:
    """Limit BLAS and OpenMP to n threads permanently, once no such context is active."""
    with _holders.lock:
        if _holders.count:
            _holders.restore = partial(_controller().limit, limits=n)
        else:
            with _in_control():
                _controller().limit(limits=n)


@contextmanager
def _in_control() -> Iterator[None]:
    """Let this thread control BLAS, because threadpoolctl 3.8 obeys only one thread."""
    name, libraries = "clear_controlling_thread", _controller().lib_controllers
    frees = [getattr(library, name) for library in libraries if hasattr(library, name)]
    for free in frees:
        free(force=True)
    try:
        yield
    finally:
        for free in frees:
            free(force=True)


def in_order(work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
    """Yield work(item) for all items in order, on all cores, storing few results."""
    width = cores()
    with single_threaded_blas():
        if len(items) < 2 or width < 2:
            yield from map(work, items)
            return
        for start in range(0, len(items), width):
            first, *others = items[start : start + width]
            calls = [(_pool().submit(work, item), item) for item in others]
            yield work(first)
            for call, item in calls:
                # Waking a thread takes as long as a short call, so pending calls are done here.
                yield work(item) if call.cancel() else call.result()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(cores(), thread_name_prefix="appca-rows")


def _begin_anew() -> None:
    _pool.cache_clear()
    _holders.__init__()  # type: ignore[misc]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
