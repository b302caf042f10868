"""What the canvas costs: bytes, packing, the way to the browser, and the picture, beside plotly.js.

`python -m benchmarks.canvas [ROWS ...]` (default 10000 100000 1000000): planted rows with K = 10,
L = 3 and one map. Packing is warm: compiled code is loaded first. A first view is what a page
fetches before its first picture: components, scores, doubt, one colouring, the layout that opens
and the map. Of new colours or another selection a fair sample is drawn first, 0.03 points a pixel,
then all; both are measured. The browser draws without a graphics card (SwiftShader) at 1400 x 900;
milliseconds are medians, of frames and of three new windows that have kept nothing; the canvas is
one script, as the app sends it. Writes results/canvas.json.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from appca.canvas import layouts
from appca.canvas.blobs import Parcels, publish
from appca.canvas.panels import of_components, usage_of
from appca.canvas.scene import Scene
from benchmarks import canvas_browser, results
from benchmarks.browser import FLAGS, served
from benchmarks.scenes import planted, scene_from, write

TIMES = 3

BOUNDS: dict[str, dict[int, float]] = {  # column of results -> the most at a number of rows
    "first_view_bytes_a_row": {100_000: 20, 1_000_000: 20},
    "layouts_s": {10_000: 0.15, 100_000: 1, 1_000_000: 6},
    "picture_ms": {10_000: 1000, 1_000_000: 1500},
    "pan_js_ms": dict.fromkeys((10_000, 100_000, 1_000_000), 4),
    "zoom_js_ms": dict.fromkeys((10_000, 100_000, 1_000_000), 10),
    "pan_gap_ms": dict.fromkeys((10_000, 100_000, 1_000_000), 45),
    "zoom_gap_ms": dict.fromkeys((10_000, 100_000, 1_000_000), 80),
    "recolour_ms": {100_000: 80, 1_000_000: 400},
    "lasso_js_ms": {100_000: 20},
    "lasso_ms": {100_000: 120},
    "tour_gap_ms": {10_000: 40, 100_000: 60},
    "heap_mb": {1_000_000: 120},
}


def main() -> None:
    """Print a line a measurement and write all."""
    from playwright.sync_api import sync_playwright

    parser = results.arguments(__doc__)
    parser.add_argument("rows", nargs="*", type=int, default=[10_000, 100_000, 1_000_000])
    given = parser.parse_args()
    rows: list[results.Row] = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        for n in given.rows:
            found = packing(n, Path(folder))
            browser = playwright.chromium.launch(
                executable_path="/usr/bin/chromium", args=[*FLAGS, *canvas_browser.FLAGS]
            )
            with canvas_browser.files(Path(folder)) as address:
                found |= canvas_browser.drawing(browser, address, str(n))
                found |= canvas_browser.plotly(browser, n)
            with served(Path(folder) / "home", script="benchmarks/canvas_page.py") as server:
                found |= fetching(browser, f"{server.address}/?n={n}")
            browser.close()
            rows.append({"rows": n, **found})
            print(f"{n:,} rows; the machine's load is {os.getloadavg()[0]:.1f}")
            for name, value in found.items():
                bound = BOUNDS.get(name, {}).get(n)
                said = (
                    "" if bound is None else f" ({'held' if value <= bound else 'missed'}: {bound})"
                )
                print(f"  {name}: {value:,.4g}{said}", flush=True)
    results.write(given.out, "canvas", rows)


def packing(n: int, folder: Path) -> results.Row:
    """Measure a scene's size and what it takes to make it; leave it in the folder."""
    fitted, dataset = planted(n)
    scene = scene_from(fitted, dataset)
    usage = usage_of(fitted, pictured=True)
    parcels = Parcels(b"benchmark")
    found = {
        "first_view_bytes_a_row": first_view(scene) / n,
        "layouts_s": median(lambda: layouts.layouts_of(usage, of_components(usage))),
        "map_layout_s": median(lambda: layouts.map_layout(usage, "PCA", fitted.scores[:, :2])),
        "scene_s": median(lambda: scene_from(fitted, dataset)),
        "publish_s": median(lambda: publish(scene, dataset.digest, parcels)),
    }
    write(scene, folder / str(n))
    return found


def first_view(scene: Scene) -> int:
    """Count the bytes that a page fetches before its first picture."""
    colouring = next(iter(scene.meta["colourings"]))
    names = ["components", "scores", "doubt", f"codes.{colouring}"]
    names += [f"order.{scene.meta['first']}", "order.pca", "map.pca"]
    return sum(scene.buffers[name].nbytes for name in names)


def fetching(browser: Any, address: str) -> results.Row:
    """Measure how long all parts of a scene take to the browser, and again after a reload."""
    page = browser.new_context().new_page()
    page.goto(address)
    box = ".fetched[data-names]"
    found = []
    for _ in range(2):
        page.wait_for_selector(box, state="attached", timeout=120_000)
        found.append(page.evaluate(f"() => ({{...document.querySelector('{box}').dataset}})"))
        page.reload()
    page.close()
    first, again = found
    return {
        "all_bytes": int(first["bytes"]),
        "fetched_ms": float(first["ms"]),
        "fetched_again_ms": float(again["ms"]),
        "transferred_again": int(again["transferred"]),
    }


def median(work: Callable[[], object]) -> float:
    """Return the median of the seconds that some work takes."""
    taken = []
    for _ in range(TIMES):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


if __name__ == "__main__":
    main()
