"""Load, draw and compile in advance, so that pages appear sooner.

Warming up starts when a browser requests a page or `appca` opens data; unused servers stay small.
First the modules of the first picture are loaded. Whenever the server is idle, other pages and the
figures of Paper follow, and another process compiles the code for many rows.
"""

import gc
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from importlib import import_module
from pkgutil import walk_packages

from appca import ui
from appca.processes import return_freed_arrays, start_compiler

FIRST = ("appca.ui.frame", "appca.ui.explore", "appca.models.adaptive_ppca", "sklearn.datasets")
OTHERS = ("numba", "plotly.graph_objects", "scipy.cluster.hierarchy", "sklearn.cluster")
COMPILED = ("appca.canvas.image_placement", "appca.models.em", "appca.models.gaps")
OPENS = "APPCA_OPENS"  # set if a pipe brings the digest of the data to open
PATIENCE = 10.0  # maximum seconds until a page is drawn
QUIET_SECONDS = 1.0
DRAWING = 4.0  # seconds in which a browser may use all processors to draw many rows
page_was_asked = threading.Event()
_drawing: set[object] = set()
_drawn: list[float] = []


@asynccontextmanager
async def while_serving(_app: object) -> AsyncIterator[None]:
    """Warm up beside the server; end the jobs with it, because a signal skips `atexit`."""
    ended = threading.Event()
    threading.Thread(target=_warm_up, args=[ended], daemon=True, name="warm up").start()
    yield
    ended.set()
    from appca.ui import services

    services.close()


@contextmanager
def drawing() -> Iterator[None]:
    """Compute a page; warming up pauses meanwhile."""
    page = object()
    _drawing.add(page)
    try:
        yield
    finally:
        _drawing.remove(page)
        _drawn[:] = [time.monotonic()]


def wait_for_quiet(seconds: float = QUIET_SECONDS) -> None:
    """Wait until no page has been computed for this number of seconds."""
    while _drawing or (_drawn and time.monotonic() < _drawn[0] + seconds):
        time.sleep(0.05)


def _warm_up(ended: threading.Event) -> None:
    return_freed_arrays()
    if OPENS in os.environ:
        threading.Thread(target=_look_ahead, daemon=True, name="look ahead").start()
    else:
        while not page_was_asked.wait(0.5):
            if ended.is_set():
                return
    _load_first()
    last = time.monotonic() + PATIENCE
    while not (_drawn or ended.wait(0.05) or time.monotonic() > last):
        pass
    if OPENS in os.environ:
        ended.wait(DRAWING)
    for step in _steps():
        if ended.is_set():
            return
        wait_for_quiet()
        with suppress(Exception):
            step()
    compiler = start_compiler(COMPILED)
    while compiler.poll() is None and not ended.wait(0.2):
        pass
    compiler.kill()
    if compiler.wait() != 0:
        return
    for name in COMPILED:
        wait_for_quiet()
        if not ended.is_set():
            import_module(name).compile_ahead()


def _load_first() -> None:
    gc.disable()  # loaded modules contain no garbage
    try:
        for name in FIRST:
            import_module(name)
    finally:
        gc.enable()


def _look_ahead() -> None:
    with suppress(Exception):
        from appca.ui import services

        dataset = services.dataset(sys.stdin.readline().strip())
        from appca.canvas import image_placement
        from appca.ui import canvas, fits, state

        with ThreadPoolExecutor(1) as beside:
            beside.submit(canvas.principal_of, dataset, state.first_config(dataset))
            if dataset.image_shape is not None:
                beside.submit(image_placement.compile_ahead)
            fits.preview_ahead(dataset.digest)


def _steps() -> Iterator[Callable[[], object]]:
    for name in (*OTHERS, *(module.name for module in walk_packages(ui.__path__, "appca.ui."))):
        yield partial(import_module, name)
    from appca.plots import still
    from appca.ui import open, paper

    yield still.install
    yield from open.ahead()
    yield from paper.ahead()
    yield gc.freeze  # searching permanent objects for garbage would delay a page by 0.1 s
