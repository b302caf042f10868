"""The canvas and plotly.js in a browser, with hands that move as the screen is refreshed."""

import functools
import http.server
import statistics
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from appca.canvas.html import closed_bundle
from benchmarks import results
from benchmarks.browser import ROOT

FLAGS = ["--enable-precise-memory-info", "--js-flags=--expose-gc"]
PANELS = 12  # of plotly.js: as many as the old explorer showed at a time
PAGE = "tests/browser/canvas.html"
SCRIPT = "/appca/canvas/js/mount.js"
STARTED_MS = 2000  # until a browser or a window that was opened has loaded its own pages
WINDOWS = 3
SETTLED = "() => document.querySelector('.appca-explorer')?.dataset.settled === 'yes'"
HANDS = ROOT / "benchmarks" / "canvas.js"


def drawing(browser: Any, address: str, scene: str) -> results.Row:
    """Measure a scene in the canvas; medians of some windows, none of which has kept anything."""
    found: list[results.Row] = []
    for _ in range(WINDOWS):
        context = browser.new_context(viewport={"width": 1400, "height": 900})
        page = context.new_page()
        page.wait_for_timeout(STARTED_MS)
        page.goto(f"{address}/{PAGE}?d={scene}")
        page.wait_for_function(SETTLED, timeout=120_000)
        picture = page.evaluate("() => performance.now()")
        page.add_script_tag(path=str(HANDS))
        found.append({"picture_ms": picture, **page.evaluate("measureCanvas()")})
        context.close()
    return {name: statistics.median(one[name] for one in found) for name in found[0]}


def plotly(browser: Any, n: int) -> results.Row:
    """Measure as many points in twelve panels of plotly.js."""
    import plotly as package

    script = Path(package.__file__).parent / "package_data" / "plotly.min.js"
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.set_content("<!doctype html><body></body>")
    page.add_script_tag(path=str(script))
    page.add_script_tag(path=str(HANDS))
    found: results.Row = page.evaluate("(given) => measurePlotly(given)", [n, PANELS])
    page.close()
    return found


@contextmanager
def files(scenes: Path) -> Iterator[str]:
    """Serve the project's files, scenes below /scenes, and the canvas as the app sends it."""
    (scenes / "mount.js").write_text(closed_bundle(ROOT / SCRIPT[1:]), encoding="utf-8")
    handler = functools.partial(_Files, scenes)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()


class _Files(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, scenes: Path, *given: Any) -> None:
        self._scenes = scenes
        super().__init__(*given, directory=str(ROOT))

    def translate_path(self, path: str) -> str:
        """Find a file of the project, or of a scene."""
        if path == SCRIPT:
            return str(self._scenes / "mount.js")
        if path.startswith("/scenes/"):
            name, file = path.removeprefix("/scenes/").split("/")
            return str(self._scenes / name / unquote(file))
        return super().translate_path(path)

    def copyfile(self, source: Any, outputfile: Any) -> None:
        """Let the system send a file: what is measured is the browser."""
        outputfile.flush()
        self.connection.sendfile(source)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""
