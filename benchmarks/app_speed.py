"""Waiting times of the app, in Chromium with software WebGL.

`APPCA_DATA=... python -m benchmarks.app_speed WHAT [--rows N]` writes results/WHAT.json.

pages: from the start of the server, with uncompiled sources and a new home, until the digits are
drawn with their images; then the same for a second start. With MNIST at K = 10, L = 3: from a
click in the navigation until all charts, pictures and images of a page are drawn, twice.

slider: MNIST, starting at K = 10, L = 3, from a key press in the number field of K to the first
points of a new K, to those of its fit, and to the picture with all points drawn and at rest; twice,
each with a new home. Points move for 0.3 s, or not at all if motion is reduced.

opening: alternately, the digits drawn with their images in a new browser profile, and the title of
an empty Streamlit page; both servers have drawn these pages before.

million: from `appca FILE` with a new home to the picture in an open tab, for rows of 50 numbers,
three times; and the memory of all processes until the fit has replaced the preview.
"""

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np

from appca.data.sources import load
from appca.data.store import DatasetStore
from benchmarks import results
from benchmarks.browser import ROOT, chromium, served

SOURCES = ("app.py", "appca", "pages", "sample_data", ".streamlit")
PAGES = ("Components", "Groups", "Check", "Export", "Data", "Paper", "Explore")
WARM_UP_MS, READING_MS, SETTLING_MS = 40_000, 3_000, 8_000  # pages; between pages; sliders
FINAL_MS = 2_500  # if no picture follows within this time, the last one was final
MOVES = 13, 7, 11, 6, 9, 12, 8, 5, 14, 4  # to other K
VISITS = 10
STARTS, FIT_S = 3, 60.0  # until the fit has replaced the preview

FIRST_PICTURE = """() => {
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
WATCH_MOVES = """() => {
  const move = { pressed: 0, first: 0, fit: 0, last: 0, shown: '', scene: '' };
  window.sliderMove = move;
  const root = () => document.querySelector('.appca-explorer');
  document.addEventListener('keydown', () => {
    const shown = root().dataset.scene;
    Object.assign(move, { pressed: performance.now(), first: 0, last: 0, shown, scene: shown });
  }, true);
  const look = () => {
    const { scene, settled, drawn } = root()?.dataset ?? {};
    if (move.pressed && scene !== move.shown) {
      move.first ||= performance.now();
      if (scene !== move.scene) Object.assign(move, { scene, fit: performance.now() });
      if (settled === 'yes' && drawn === 'all') {
        move.shown = scene;
        requestAnimationFrame(() => { move.last = performance.now(); }); // after it was drawn
      }
    }
    requestAnimationFrame(look);
  };
  look();
}"""
FINAL = """(still) => window.sliderMove.last && performance.now() - window.sliderMove.last > still
  && document.querySelector('[data-test-script-state]')?.dataset.testScriptState === 'notRunning'"""
SETTLED = """(rows) => Number(document.querySelector('.appca-explorer')?.dataset.rows) === rows
  && document.querySelector('.appca-canvas-box')?.dataset.settled === 'yes'"""


def main() -> None:
    """Run a benchmark and write its results."""
    measures: dict[str, Callable[[Any, Path, int], list[results.Row]]] = {
        "pages": pages,
        "slider": slider,
        "opening": opening,
        "million": million,
    }
    parser = results.arguments(__doc__)
    parser.add_argument("what", choices=measures)
    parser.add_argument("--rows", type=int)
    options = parser.parse_args()
    n = options.rows or (1_000_000 if options.what == "million" else 10_000)
    with (
        tempfile.TemporaryDirectory() as folder,
        chromium("--enable-precise-memory-info") as browser,
    ):
        rows = measures[options.what](browser, Path(folder), n)
    results.write(options.out, options.what, rows)


def opened(browser: Any, address: str, **context: Any) -> Any:
    """Open an address in a new page."""
    page = browser.new_page(viewport={"width": 1440, "height": 900}, **context)
    page.set_default_timeout(120_000)
    page.goto(address)
    return page


def pages(browser: Any, folder: Path, n: int) -> list[results.Row]:
    """Time the first picture, and two tours of the pages."""
    root, home = folder / "clone", folder / "home"
    for path in (ROOT / name for name in SOURCES):
        if path.is_dir():
            shutil.copytree(path, root / path.name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            root.mkdir(exist_ok=True)
            shutil.copy(path, root)
    seconds: dict[str, list[float]] = {name: [] for name in ("first picture", *PAGES)}
    for _ in range(2):
        began = time.perf_counter()
        with served(home, root) as address:
            page = opened(browser, address)
            page.wait_for_function(FIRST_PICTURE)
            seconds["first picture"].append(time.perf_counter() - began)
            page.close()
    digest = DatasetStore(home).put(load("mnist", n=n))
    with served(home, root) as address:
        page = opened(browser, f"{address}/?data={digest}&k=10&l=3")
        page.wait_for_function(COMPLETE, arg="explore")
        page.wait_for_timeout(WARM_UP_MS)
        for name in PAGES * 2:
            link = page.locator("[data-testid=stSidebarNav] a", has_text=name)
            began = time.perf_counter()
            link.click()
            page.wait_for_function(COMPLETE, arg=name.lower())
            seconds[name].append(time.perf_counter() - began)
            page.wait_for_timeout(READING_MS)
        page.close()
    rows: list[results.Row] = []
    for what, (first, second) in seconds.items():
        rows.append({"what": what, "first_s": first, "second_s": second})
        print(f"{what}: {first:.2f} s, then {second:.2f} s", flush=True)
    return rows


def slider(browser: Any, folder: Path, n: int) -> list[results.Row]:
    """Time moves of K, with full and with reduced motion."""
    rows: list[results.Row] = []
    taken: dict[str, list[tuple[float, ...]]] = {"no-preference": [], "reduce": []}
    for i, motion in enumerate([*taken] * 2):
        digest = DatasetStore(home := folder / str(i)).put(load("mnist", n=n))
        with served(home) as address:
            page = opened(browser, f"{address}/?data={digest}&k=10&l=3", reduced_motion=motion)
            drawn = ".appca-explorer[data-settled=yes][data-drawn=all]"
            page.wait_for_selector(drawn, state="attached")
            page.wait_for_timeout(SETTLING_MS)
            page.evaluate(WATCH_MOVES)
            for to in MOVES:
                box = page.locator(".appca-sizes [type=number]").first
                box.fill(str(to))
                box.press("Enter")
                page.wait_for_function(FINAL, arg=FINAL_MS)
                move = page.evaluate("() => window.sliderMove")
                first, fit, last = (
                    (move[when] - move["pressed"]) / 1000 for when in ("first", "fit", "last")
                )
                row = {"digits": n, "motion": motion, "to": str(to)}
                rows.append(row | {"preview_s": first, "fit_s": fit, "complete_s": last})
                taken[motion].append((first, fit, last))
            page.close()
    for motion, seconds in taken.items():
        first, fit, last = map(statistics.median, zip(*seconds, strict=True))
        print(
            f"{n:,} digits, motion {motion}: a picture arrives after {first:.2f} s, the fit after "
            f"{fit:.2f} s, complete after {last:.2f} s; load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
    return rows


def opening(browser: Any, folder: Path, n: int) -> list[results.Row]:
    """Time the first picture and an empty page."""
    script = folder / "empty.py"
    script.write_text('import streamlit as st\n\nst.title("Empty")\n')
    drawn = {"empty": "() => document.querySelector('h1')?.innerText === 'Empty'"}
    drawn["picture"] = FIRST_PICTURE
    rows: list[results.Row] = []
    with served(folder / "home") as app, served(folder / "home", script=str(script)) as empty:
        for visit in range(VISITS + 1):
            row: results.Row = {"visit": visit}
            for what, address in (("empty", empty), ("picture", app)):
                page = opened(browser, "about:blank")
                began = time.perf_counter()
                page.goto(address, wait_until="commit")
                page.wait_for_function(drawn[what])
                row[f"{what}_s"] = time.perf_counter() - began
                page.close()
            time.sleep((READING_MS if visit else WARM_UP_MS) / 1000)
            rows += [row] if visit else []
    seconds = {what: [float(row[f"{what}_s"]) for row in rows] for what in drawn}
    for of in (statistics.median, min):
        a, b = of(seconds["empty"]), of(seconds["picture"])
        print(f"{of.__name__}: {a:.2f} s empty, {b:.2f} s picture, {b / a:.2f} times", flush=True)
    return rows


def million(browser: Any, folder: Path, n: int) -> list[results.Row]:
    """Time the command that opens a file of rows, each of which uses about three of six axes."""
    rng, path = np.random.default_rng(0), folder / "rows.npy"
    scores = rng.standard_normal((n, 6), np.float32) * (rng.random((n, 6)) < 0.5)
    noise = np.float32(0.3) * rng.standard_normal((n, 50), np.float32)
    np.save(path, scores @ rng.standard_normal((6, 50), np.float32) + noise)
    rows: list[results.Row] = []
    for start in range(STARTS):
        page = opened(browser, "about:blank")
        began = time.perf_counter()
        command = subprocess.Popen(
            [sys.executable, "-m", "appca", str(path), "--no-browser"],
            cwd=folder,
            env={**os.environ, "APPCA_HOME": str(folder / f"{start}"), "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        )
        memory, ended = [0.0], Event()
        watch = Thread(target=watch_memory, args=(command.pid, memory, ended), daemon=True)
        watch.start()
        assert command.stdout is not None
        lines = (re.search(r"http://\S+", line) for line in command.stdout)
        page.goto(next(filter(None, lines))[0])
        page.wait_for_function(SETTLED, arg=n)
        row: results.Row = {"start": str(start + 1), "picture_s": time.perf_counter() - began}
        row |= {"picture_mb": max(memory)}
        time.sleep(FIT_S)
        ended.set()
        watch.join()
        heap = page.evaluate("performance.memory.usedJSHeapSize / 1e6")
        rows.append(row | {"fit_mb": max(memory), "heap_mb": heap})
        print(rows[-1], flush=True)
        page.close()
        command.terminate()
        command.wait()
    return rows


def watch_memory(process: int, memory: list[float], ended: Event) -> None:
    """Append the memory of a process and its descendants, in MB, twice a second until `ended`.

    Pages of mapped files do not count, because the system can reclaim them.
    """
    while not ended.wait(0.5):
        parents, megabytes = {}, 0.0
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # the process has ended
                after_name = (folder / "stat").read_text().rpartition(")")[2].split()
                parents[int(folder.name)] = int(after_name[1])
        family = [process]
        for member in family:
            family += [child for child, parent in parents.items() if parent == member]
            with suppress(OSError, IndexError):
                text = Path(f"/proc/{member}/smaps_rollup").read_text()
                megabytes += int(text.partition("Anonymous:")[2].split()[0]) * 1024 / 1e6
        memory.append(megabytes)


if __name__ == "__main__":
    main()
