"""What a server loads, draws and compiles before anybody asks for it.

Nothing before a browser has asked for a page or `appca` has opened data: a server that nobody uses
is small. First what the first picture needs, while the browser loads the code of the frame; where
`appca` opens data, that is the first look at all of them, too. The rest when the picture is there,
step by step, whenever nobody has asked for anything for a moment: other pages, the figures of
Paper, and what many rows need compiled, which a process of its own does.
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

FIRST = ("appca.ui.frame", "appca.ui.explore", "appca.models.adaptive_ppca", "sklearn.datasets")
OTHERS = ("numba", "plotly.graph_objects", "scipy.cluster.hierarchy", "sklearn.cluster")
COMPILED = (  # what pictures of many rows need, then what fits need
    "appca.canvas.image_placement",
    "appca.models.em",
    "appca.models.gaps",
)
OPENS = "APPCA_OPENS"  # set where the digest of the data that will be asked for comes by a pipe
PATIENCE = 10.0  # seconds for somebody to come
QUIET_SECONDS = 1.0  # in which the browser draws a page
DRAWING = 4.0  # seconds in which a browser draws very many rows, on all processors
page_was_asked = threading.Event()  # by a browser, for the first time
_drawing: set[object] = set()  # pages that are computed
_drawn: list[float] = []  # when the last one had been


@asynccontextmanager
async def while_serving(_app: object) -> AsyncIterator[None]:
    """Warm up beside the server; end the jobs with it: a signal ends it without `atexit`."""
    warming = WarmUp()
    warming.start()
    yield
    warming.stop()
    from appca.ui import services

    services.close()


@contextmanager
def drawing() -> Iterator[None]:
    """Compute a page; the warm-up waits meanwhile."""
    page = object()
    _drawing.add(page)
    try:
        yield
    finally:
        _drawing.remove(page)
        _drawn[:] = [time.monotonic()]


def wait_for_quiet(seconds: float = QUIET_SECONDS) -> None:
    """Wait until no page is computed, nor was so many seconds before."""
    while _drawing or (_drawn and time.monotonic() < _drawn[0] + seconds):
        time.sleep(0.05)


class WarmUp(threading.Thread):
    """A thread that warms a server up."""

    def __init__(self) -> None:
        super().__init__(daemon=True, name="warm up")
        self._ended = threading.Event()

    def stop(self) -> None:
        """End after the present step."""
        self._ended.set()

    def run(self) -> None:
        """Warm up."""
        if OPENS in os.environ:
            threading.Thread(target=_look_ahead, daemon=True, name="look ahead").start()
        else:
            while not page_was_asked.wait(0.5):  # a server that nobody uses stays small
                if self._ended.is_set():
                    return
        _load_first()
        last = time.monotonic() + PATIENCE
        while not (_drawn or self._ended.wait(0.05) or time.monotonic() > last):
            pass
        if OPENS in os.environ:
            self._ended.wait(DRAWING)
        for step in _steps():
            if self._ended.is_set():
                return
            wait_for_quiet()
            with suppress(Exception):  # the page that needs it says why
                step()
        from appca.processes import start_compiler

        compiler = start_compiler(COMPILED)
        while compiler.poll() is None and not self._ended.wait(0.2):
            pass
        compiler.kill()
        if compiler.wait() != 0:
            return
        for name in COMPILED:
            wait_for_quiet()
            if not self._ended.is_set():
                import_module(name).compile_ahead()


def _load_first() -> None:
    gc.disable()  # nothing of what is loaded is garbage
    try:
        for name in FIRST:
            import_module(name)
    finally:
        gc.enable()


def _look_ahead() -> None:
    """Compute what the picture of many rows needs, which all windows share."""
    with suppress(Exception):  # the page says why
        from appca.ui import services

        dataset = services.dataset(sys.stdin.readline().strip())  # is read while all is loaded
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
