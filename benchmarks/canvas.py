"""Size, layout time and drawing time of the canvas, compared with plotly.js.

`python -m benchmarks.canvas [ROWS ...]` (default 10000 100000 1000000) writes results/canvas.json:
simulated rows with K = 10, L = 3, and one map. The first view consists of the buffers that a page
fetches before its first picture: components, scores, doubt, one colouring, two layouts, the map.
After a change of colours or selection, a random sample is drawn first, 0.03 points per pixel, then
all points; both are measured. The browser draws without a graphics card at 1400 x 900. Times are
medians of frames, in ms, over three new windows without a cache. As in the app, the canvas is a
single script.
"""

import functools
import http.server
import os
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from appca.canvas import layouts
from appca.canvas.html import closed_bundle
from appca.canvas.panels import of_components, usage_of
from benchmarks import results
from benchmarks.browser import ROOT, chromium, served
from benchmarks.scenes import planted, scene_from, write

TIMES, STARTED_MS = 3, 2000  # until a new window has loaded
PANELS = 12  # in plotly.js
SETTLED = "() => document.querySelector('.appca-explorer')?.dataset.settled === 'yes'"
FETCHED = ".fetched[data-names]"
SIZES = (10_000, 100_000, 1_000_000)
BOUNDS: dict[str, dict[int, float]] = {  # column of results -> number of rows -> upper bound
    "first_view_bytes_a_row": {100_000: 20, 1_000_000: 20},
    "layouts_s": {10_000: 0.15, 100_000: 1, 1_000_000: 6},
    "picture_ms": {10_000: 1000, 1_000_000: 1500},
    "pan_js_ms": dict.fromkeys(SIZES, 4),
    "zoom_js_ms": dict.fromkeys(SIZES, 10),
    "pan_gap_ms": dict.fromkeys(SIZES, 45),
    "zoom_gap_ms": dict.fromkeys(SIZES, 80),
    "recolour_ms": {100_000: 80, 1_000_000: 400},
    "lasso_js_ms": {100_000: 20},
    "lasso_ms": {100_000: 120},
    "tour_gap_ms": {10_000: 40, 100_000: 60},
    "heap_mb": {1_000_000: 120},
}


class _Files(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None: ...


@contextmanager
def page_of_scene(folder: Path) -> Iterator[str]:
    """Serve the scene in folder/scenes/one; yield the address of a page that shows it."""
    scripts = folder / "appca" / "canvas" / "js"
    shutil.copytree(ROOT / "appca" / "canvas" / "js", scripts)
    bundle = closed_bundle(ROOT / "appca" / "canvas" / "js" / "mount.js")
    (scripts / "mount.js").write_text(bundle, encoding="utf-8")
    for name in ("canvas.html", "canvas_checks.js"):
        shutil.copy(ROOT / "tests" / "browser" / name, folder)
    handler = functools.partial(_Files, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/canvas.html?d=one"
    finally:
        server.shutdown()
        server.server_close()


def packed(n: int, folder: Path) -> results.Row:
    """Write a scene; return the bytes per row of its first view, and the layout time."""
    fitted, dataset = planted(n)
    scene, usage, seconds = scene_from(fitted, dataset), usage_of(fitted, pictured=True), []
    for _ in range(TIMES):
        began = time.perf_counter()
        layouts.layouts_of(usage, of_components(usage))
        seconds.append(time.perf_counter() - began)
    write(scene, folder)
    colouring = next(iter(scene.meta["colourings"]))
    names = ["components", "scores", "doubt", f"codes.{colouring}"]
    names += ["order.subspaces", "order.pairs", "order.pca", "map.pca"]
    size = sum(scene.buffers[name].nbytes for name in names)
    return {"first_view_bytes_a_row": size / n, "layouts_s": statistics.median(seconds)}


def drawn(browser: Any, address: str) -> results.Row:
    """Measure a scene in the canvas in new windows."""
    windows: list[results.Row] = []
    for _ in range(TIMES):
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.wait_for_timeout(STARTED_MS)
        page.goto(address)
        page.wait_for_function(SETTLED, timeout=120_000)
        picture = page.evaluate("() => performance.now()")
        page.add_script_tag(path=Path(__file__).with_suffix(".js"))
        windows.append({"picture_ms": picture, **page.evaluate("measureCanvas()")})
        page.close()
    return {name: statistics.median(row[name] for row in windows) for name in windows[0]}


def drawn_by_plotly(browser: Any, n: int) -> results.Row:
    """Measure the same number of points in panels of plotly.js."""
    import plotly

    script = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.set_content("<!doctype html><body></body>")
    for path in (script, Path(__file__).with_suffix(".js")):
        page.add_script_tag(path=path)
    row: results.Row = page.evaluate("(sizes) => measurePlotly(sizes)", [n, PANELS])
    page.close()
    return row


def fetched(browser: Any, address: str) -> results.Row:
    """Measure the transfer of all parts of a scene to the browser, and of a reload."""
    page, visits = browser.new_page(), []
    page.goto(address)
    for _ in range(2):
        page.wait_for_selector(FETCHED, state="attached", timeout=120_000)
        visits.append(page.evaluate(f"() => ({{...document.querySelector('{FETCHED}').dataset}})"))
        page.reload()
    page.close()
    first, again = visits
    return {"fetched_ms": float(first["ms"]), "transferred_again": int(again["transferred"])}


def main() -> None:
    """Print each measurement with its bound, and write all."""
    parser = results.arguments(__doc__)
    parser.add_argument("rows", nargs="*", type=int, default=SIZES)
    options = parser.parse_args()
    rows: list[results.Row] = []
    for n in options.rows:
        flags = ["--enable-precise-memory-info", "--js-flags=--expose-gc"]
        with tempfile.TemporaryDirectory() as name, chromium(*flags) as browser:
            folder = Path(name)
            row = {"rows": n, **packed(n, folder / "scenes" / "one")}
            with page_of_scene(folder) as address:
                row |= drawn(browser, address) | drawn_by_plotly(browser, n)
            with served(folder / "home", script="benchmarks/canvas_page.py") as address:
                row |= fetched(browser, f"{address}/?n={n}")
        rows.append(row)
        print(f"{n:,} rows; load {os.getloadavg()[0]:.1f}")
        for name, value in row.items():
            bound = BOUNDS.get(name, {}).get(n)
            limit = "" if bound is None else f" ({'missed' if value > bound else 'met'}: {bound})"
            print(f"  {name}: {value:,.4g}{limit}")
    results.write(options.out, "canvas", rows)


if __name__ == "__main__":
    main()
