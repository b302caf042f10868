"""How long `appca FILE` takes until a million rows are a picture, and what its processes hold.

`python -m benchmarks.million [ROWS]` (default 1000000): writes so many rows of 50 numbers, opens
them three times by the command, each time with a new home, and waits from the start of the command
until Explore stands still in a tab of Chromium that was open before. Then it leaves the page open
until the fit that replaces the preview is drawn, too. Writes results/million.json.
"""

import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import results
from benchmarks.browser import FLAGS, ROOT

STARTS = 3
AFTER = 60.0  # seconds: the fit has taken the place of the preview
MINUTE = 60_000  # milliseconds
PRECISE = "--enable-precise-memory-info"
STANDS = """(rows) => Number(document.querySelector('.appca-explorer')?.dataset.rows) === rows
  && document.querySelector('.appca-canvas-box')?.dataset.settled === 'yes'"""
HEAP = "performance.memory.usedJSHeapSize / 1e6"


def main() -> None:
    """Print a line a start, and write all."""
    from playwright.sync_api import sync_playwright

    parser = results.arguments(__doc__)
    parser.add_argument("rows", nargs="?", type=int, default=1_000_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "rows.npy"
        np.save(path, planted(given.rows))
        flags = [*FLAGS, PRECISE]
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=flags)
        rows = [opened(browser, path, given.rows, str(start + 1)) for start in range(STARTS)]
        browser.close()
    results.write(given.out, "million", rows)


def planted(rows: int) -> np.ndarray:
    """Return rows (n, 50) of which each uses about half of six components."""
    rng = np.random.default_rng(0)
    uses = rng.random((rows, 6)) < 0.5
    scores = rng.standard_normal((rows, 6), np.float32) * uses
    noise = rng.standard_normal((rows, 50), np.float32)
    found: np.ndarray = scores @ rng.standard_normal((6, 50), np.float32) + np.float32(0.3) * noise
    return found


def opened(browser: Any, path: Path, rows: int, start: str) -> results.Row:
    """Open the file by the command; return what it took."""
    home = path.with_name(f"home{start}")
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto("about:blank")
    began = time.perf_counter()
    command = subprocess.Popen(
        [sys.executable, "-m", "appca", str(path), "--no-browser"],
        cwd=path.parent,
        env={**os.environ, "APPCA_HOME": str(home), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    peak = Peak(command.pid)
    assert command.stdout is not None
    address = next(filter(None, (re.search(r"http://\S+", line) for line in command.stdout)))[0]
    page.goto(address)
    page.wait_for_function(STANDS, arg=rows, timeout=2 * MINUTE)
    seconds = time.perf_counter() - began
    row = {"start": start, "picture_s": seconds, "picture_mb": peak.most}
    time.sleep(AFTER)
    row |= {"fit_mb": peak.end(), "heap_mb": page.evaluate(HEAP)}
    page.close()
    command.terminate()
    command.wait()
    print(row, flush=True)
    return row


class Peak:
    """The most that a process and its children have held together: their own memory, in MB.

    Pages of a mapped file are left out, which the system takes back whenever it wants them.
    """

    def __init__(self, process: int) -> None:
        self.most = 0.0
        self._process = process
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def end(self) -> float:
        """Stop watching; return the most."""
        self._ended.set()
        self._thread.join()
        return self.most

    def _watch(self) -> None:
        while not self._ended.wait(0.5):
            self.most = max(self.most, sum(map(own, family(self._process))))


def family(process: int) -> list[int]:
    """Return a process and all that it and its children have started."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            after_name = (folder / "stat").read_text().rpartition(")")[2].split()
            parents[int(folder.name)] = int(after_name[1])
    found = [process]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


def own(process: int) -> float:
    """Return what a process holds for itself, in MB; 0 when it has ended."""
    try:
        said = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    return int(said.partition("Anonymous:")[2].split()[0]) * 1024 / 1e6


if __name__ == "__main__":
    main()
