"""How long a person waits for the first picture, and for each page.

`APPCA_DATA=... python -m benchmarks.pages [ROWS]` (default 10000): copies the sources, so that
nothing of them is compiled, starts the server twice on a new home and waits for the digits with
their images, from the start of its process. Then it opens so many rows of MNIST at K = 10, L = 3
and goes through the pages twice by clicks in the navigation: until all charts, pictures and images
are drawn. Writes results/pages.json.
"""

import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from appca.data.store import DatasetStore
from benchmarks import results
from benchmarks.browser import FLAGS, ROOT, served
from benchmarks.scenes import mnist

MINUTE = 60_000  # milliseconds
WARM = 40_000  # after the start: what is made ahead is there
READ = 3_000  # from page to page
SOURCES = ("app.py", "appca", "pages", "sample_data", ".streamlit")
PAGES = ("Components", "Groups", "Check", "Export", "Data", "Paper", "Explore")
FIRST = """() => {
  const { points, thumbnails } = document.querySelector('.appca-explorer')?.dataset ?? {};
  return Number(points) === 1797 && Number(thumbnails) > 20;
}"""
COMPLETE = """(page) => {
  const all = (some) => [...document.querySelectorAll(some)];
  const path = location.pathname.split('/').pop();
  return (path || 'explore') === page
    && all('[data-test-script-state=notRunning]').length
    && !all('[data-stale=true], [data-testid=stSkeleton]').length
    && all('[data-testid=stPlotlyChart]').every((one) => one.querySelector('.main-svg'))
    && !all('.appca-canvas-box:not([data-settled=yes])').length
    && all('img:not([loading=lazy])').every((one) => one.complete);
}"""


def main() -> None:
    """Print a line a wait, and write all."""
    from playwright.sync_api import sync_playwright

    parser = results.arguments(__doc__)
    parser.add_argument("rows", nargs="?", type=int, default=10_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        root, home = Path(folder) / "clone", Path(folder) / "home"
        copy(root)
        rows = [said("first picture", [first_picture(browser, root, home) for _ in range(2)])]
        digest = DatasetStore(home).put(mnist(given.rows))
        with served(home, root) as server:
            rows += changes(browser, f"{server.address}/?data={digest}&k=10&l=3")
        browser.close()
    results.write(given.out, "pages", rows)


def copy(root: Path) -> None:
    """Copy the sources without what is compiled."""
    root.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            compiled = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, root / name, ignore=compiled)
        elif (ROOT / name).exists():
            shutil.copy(ROOT / name, root / name)


def first_picture(browser: Any, root: Path, home: Path) -> float:
    """Return the seconds from the server's start to the finished picture."""
    began = time.perf_counter()
    with served(home, root) as server:
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(server.address)
        page.wait_for_function(FIRST, timeout=2 * MINUTE)
        seconds = time.perf_counter() - began
        page.close()
    return seconds


def changes(browser: Any, address: str) -> list[results.Row]:
    """Go through the pages twice."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.set_default_timeout(2 * MINUTE)
    page.goto(address)
    page.wait_for_function(COMPLETE, arg="explore")
    page.wait_for_timeout(WARM)
    taken: dict[str, list[float]] = {name: [] for name in PAGES}
    for _ in range(2):
        for name in PAGES:
            link = page.locator("[data-testid=stSidebarNav] a", has_text=name)
            began = time.perf_counter()
            link.click()
            page.wait_for_function(COMPLETE, arg=name.lower())
            taken[name].append(time.perf_counter() - began)
            page.wait_for_timeout(READ)
    page.close()
    return [said(name, seconds) for name, seconds in taken.items()]


def said(what: str, seconds: list[float]) -> results.Row:
    """Print what the first and the second time took."""
    first, second = seconds
    load = os.getloadavg()[0]
    print(f"{what}: {first:.2f} s, then {second:.2f} s; load {load:.1f}", flush=True)
    return {"what": what, "first_s": first, "second_s": second}


if __name__ == "__main__":
    main()
