"""What a hostile upload, address or text costs the server, and the page of another visitor.

`python -m benchmarks.uploads [FILE ...]`: starts the server on a new home folder, and uploads each
file of `tests.attacks.hostile_files` (or those named) on the page Data in one window of Chromium.
Another visitor opens the app's first page meanwhile, again and again, until the file is answered,
over the websocket: what a browser takes to draw is left out, since it would be the machine's. The
longest of these openings counts, and before the first upload there are some for comparison. Then
texts of 95 kB go into the parameters of an address and into the fields of pages. Memory
is the highest sum of the server's and its reading processes' in use, sampled, beyond what it was
before. Linux only; writes results/uploads.json.
"""

import asyncio
import re
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

from benchmarks import results
from benchmarks.browser import FLAGS, served
from benchmarks.window import Window

MINUTE = 60_000  # milliseconds
ALONE = 5  # openings without an upload
PAUSE = 0.02  # seconds between two looks at the memory
MOST_SECONDS = 120.0  # of an upload
FIELDS = (  # a page, its tab, and how the key of a field begins
    ("", "components", "name-"),
    ("data", "recent", "name-"),
    ("groups", "neighbours", "point_wanted"),
)


def main() -> None:
    """Print one line a file, and write all."""
    from playwright.sync_api import sync_playwright

    from tests.attacks.hostile_files import COSTLY, HOSTILE

    parser = results.arguments(__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE")
    given = parser.parse_args()
    chosen = [one for one in (*HOSTILE, *COSTLY) if not given.files or one.name in given.files]
    rows = []
    with (
        tempfile.TemporaryDirectory() as home,
        sync_playwright() as playwright,
        served(home) as (address, process),
    ):
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        uploader = browser.new_page()
        opened(address)
        alone = [opened(address) for _ in range(ALONE)]
        rows.append({"file": "none", "page_s": max(alone), "openings": ALONE})
        for one in chosen:
            rows.append(row_of(one, address, process.pid, uploader))
            print(rows[-1], flush=True)
        browser.close()
        for name, text, act in () if given.files else inputs(address):
            rows.append({"file": name, "bytes": len(text)} | cost(act, address, process.pid))
            print(rows[-1], flush=True)
    results.write(given.out, "uploads", rows)


def opened(address: str) -> float:
    """Open the first page; return the seconds until all of it has arrived."""

    async def look() -> None:
        async with Window(address):
            pass

    began = time.perf_counter()
    with ThreadPoolExecutor(1) as thread:  # Playwright has the event loop of this one
        thread.submit(asyncio.run, look()).result()
    return time.perf_counter() - began


def row_of(one, address: str, server: int, uploader) -> results.Row:
    """Upload a file and open pages until it is answered."""
    data = one.make()
    uploader.goto(f"{address}/data")
    box = uploader.locator('[class*="st-key-upload-"] input[type=file]')
    box.wait_for(state="attached", timeout=MINUTE)
    answer = uploader.locator("[data-testid=stAlert], .st-key-explore_bar").first

    def give() -> Callable[[], bool]:
        file = {"name": one.name, "mimeType": "application/octet-stream", "buffer": data}
        box.set_input_files([file])
        return answer.is_visible

    return {"file": one.name, "bytes": len(data)} | cost(give, address, server)


def inputs(address: str) -> list[tuple[str, str, Any]]:
    """Return names, texts and acts: each long text in each parameter and field."""
    from tests.attacks.small_inputs import PARAMETERS, TEXTS

    async def say(text: str, page: str = "", key: str = "", **query: str) -> None:
        async with Window(address, page, **query) as window:
            if key:
                runs = window.runs
                await window.write(key, text)
                await window.until(lambda: window.runs > runs)

    def begun(*given: str, **query: str) -> Callable[[], bool]:
        pool = ThreadPoolExecutor(1)
        work = pool.submit(asyncio.run, say(*given, **query))
        pool.shutdown(wait=False)
        return lambda: work.done() and work.result() is None

    found = []
    for name in ("digits", "signs of Markdown"):
        text = TEXTS[name]
        found += [
            (f"{one}={name}", text, partial(begun, text, **{one: text})) for one in PARAMETERS
        ]
        found += [
            (f"{name} in a field: {page} {tab}", text, partial(begun, text, page, key, tab=tab))
            for page, tab, key in FIELDS
        ]
    return found


def cost(begin: Callable[[], Callable[[], bool]], address: str, server: int) -> results.Row:
    """Begin something that tells whether it is over, and open pages until it is."""
    before, done, peak = memory(server), Event(), [0]

    def watch() -> None:
        while not done.is_set():
            peak[0] = max(peak[0], memory(server))
            time.sleep(PAUSE)

    watcher = Thread(target=watch)
    watcher.start()
    began, openings = time.perf_counter(), list[float]()
    is_over = begin()
    while not openings or not is_over():
        openings.append(opened(address))
        if time.perf_counter() - began > MOST_SECONDS:
            break
    done.set()
    watcher.join()
    grown = (peak[0] - before) / 1e6
    return {"grown_mb": grown, "page_s": max(openings), "openings": len(openings)}


def memory(server: int) -> int:
    """Return the bytes in use of the server and of the processes that read files for it."""
    found = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status = (folder / "status").read_text()
            command = (folder / "cmdline").read_bytes()
        except OSError:  # it has ended
            continue
        if int(folder.name) == server or (
            f"PPid:\t{server}\n" in status and b"appca.data.readers.worker" in command
        ):
            used = re.search(r"VmRSS:\s+(\d+)", status)
            found += int(used[1]) << 10 if used else 0
    return found


if __name__ == "__main__":
    main()
