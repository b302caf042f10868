"""How long a file of sparse codes takes to open, and how its picture moves.

`python -m benchmarks.codes`: writes an HDF5 file of planted codes, each row using 32 of 4,096
components, and opens it with `appca codes` in new processes. The pages are then shown in new
windows of Chromium at 1400 x 900 without a graphics card (SwiftShader). Writes results/codes.json.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from benchmarks import app_readings, canvas_browser, results
from benchmarks.browser import FLAGS
from benchmarks.numbers import number

ROWS, COMPONENTS, USED = 100_000, 4096, 32
TIMES = 3
OPENED_S, FRAME_MS = 10.0, 1000 / 60
MOVES = ("pan_js_ms", "pan_gap_ms", "zoom_js_ms", "zoom_gap_ms")


def main() -> None:
    """Print a line a page and write all."""
    from playwright.sync_api import sync_playwright

    options = results.arguments(__doc__).parse_args()
    rows: list[results.Row] = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file, page = Path(folder) / "codes.h5", Path(folder) / "codes.html"
        planted(file)
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        for _ in range(TIMES):
            command = [sys.executable, "-m", "appca", "codes", str(file), "--out", str(page)]
            began = time.perf_counter()
            subprocess.run([*command, "--no-browser"], check=True, stdout=subprocess.DEVNULL)
            opened = time.perf_counter() - began
            shown = moved(browser, page.as_uri())
            rows.append({"opened_s": opened, "page_mb": page.stat().st_size / 1e6, **shown})
            print(rows[-1], flush=True)
    results.write(options.out, "codes", rows)


def planted(file: Path) -> None:
    """Write codes: rows of 64 topics, each with its frequent components, and some others."""
    rng = np.random.default_rng(0)
    popular = 1.0 / np.arange(1, COMPONENTS + 1)
    topics = np.log(np.stack([rng.permutation(popular) for _ in range(64)]))
    indices = np.empty((ROWS, USED), np.int32)
    for start in range(0, ROWS, 5000):  # the largest of logarithms with Gumbel noise: a draw of 32
        drawn = topics[rng.integers(64, size=5000)] + rng.gumbel(size=(5000, COMPONENTS))
        indices[start : start + 5000] = np.argpartition(-drawn, USED, axis=1)[:, :USED]
    with h5py.File(file, "w") as out:
        out["top_indices"] = indices
        out["top_acts"] = rng.gamma(2.0, 1.0, indices.shape).astype(np.float32)


def moved(browser: Any, address: str) -> results.Row:
    """Measure the page in a new window."""
    window = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
    window.wait_for_timeout(canvas_browser.STARTED_MS)
    window.goto(address)
    window.wait_for_function(canvas_browser.SETTLED, timeout=120_000)
    picture = window.evaluate("() => performance.now()")
    window.add_script_tag(path=str(canvas_browser.HANDS))
    return {"picture_ms": picture, **window.evaluate("measureMoves()")}


def lines(rows: Sequence[results.Row]) -> list[dict[str, str]]:
    """Write a line an opened page."""
    names = {"picture_ms": "navigation to picture, ms"}
    names |= {name: app_readings.CANVAS[name][0] for name in MOVES}
    return [
        {"the command, s": number(row["opened_s"]), "page, MB": number(row["page_mb"])}
        | {title: number(row[name]) for name, title in names.items()}
        for row in rows
    ]


def reading(rows: Sequence[results.Row]) -> list[str]:
    """Say whether what was asked is kept."""
    slowest = max(row["opened_s"] + row["picture_ms"] / 1000 for row in rows)
    script, gap = (max(row[name] for row in rows) for name in MOVES[:2])
    return [
        f"From the command to the picture: at most {number(slowest)} s ({number(OPENED_S)} asked). "
        f"In a pan JavaScript takes at most {number(script)} of the {number(FRAME_MS)} ms of a "
        f"frame; while the processor draws, frames follow each other after up to {number(gap)} ms."
    ]


if __name__ == "__main__":
    main()
