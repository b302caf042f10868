"""How long from a number typed beside the slider of K or L to the complete picture, on MNIST.

`APPCA_DATA=... python -m benchmarks.slider [ROWS ...]` (default 10000): starts the app on a new
home with so many digits at K = 10, L = 3 and moves K and L on Explore. Points arrive when those of
another fit set out, and the picture is complete when every point of the final fit is drawn and
stands still: the travel takes 0.42 s, and none where a person has asked for less motion, which is
measured, too. Writes results/slider.json.
"""

import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

from appca.data.store import DatasetStore
from benchmarks import results
from benchmarks.browser import FLAGS, served
from benchmarks.scenes import mnist

MOTIONS = ("no-preference", "reduce")
MINUTE = 60_000  # milliseconds
STILL = 2_500  # without another picture: the last one was final
REST = 8_000  # until the server has warmed up
MOVES = [("k", number) for number in (13, 7, 11, 6, 10)]  # slider, and the number typed
MOVES += [("l", number) for number in (5, 2, 4, 3)]
WATCH = """() => {
  const move = { pressed: 0, first: 0, last: 0, shown: '' };
  window.sliderMove = move;
  const root = () => document.querySelector('.appca-explorer');
  document.addEventListener('keydown', () => {
    const shown = root().dataset.scene;
    Object.assign(move, { pressed: performance.now(), first: 0, last: 0, shown });
  }, true);
  const look = () => {
    const { scene, settled, drawn } = root()?.dataset ?? {};
    if (move.pressed && scene !== move.shown) {
      move.first ||= performance.now();
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


def main() -> None:
    """Print a line a move and the medians, and write the moves."""
    from playwright.sync_api import sync_playwright

    parser = results.arguments(__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=[10_000], metavar="ROWS")
    given = parser.parse_args()
    rows: list[results.Row] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        for n in given.sizes:
            with tempfile.TemporaryDirectory() as home:
                digest = DatasetStore(Path(home)).put(mnist(n))
                for motion in MOTIONS:
                    with served(home) as server:
                        address = f"{server.address}/?data={digest}&k=10&l=3"
                        rows += moves(browser, address, n, motion)
        browser.close()
    for n in given.sizes:
        for motion in MOTIONS:
            some = [one for one in rows if (one["digits"], one["motion"]) == (n, motion)]
            arrived = statistics.median(one["server_s"] for one in some)
            complete = statistics.median(one["server_s"] + one["browser_s"] for one in some)
            print(
                f"{n:,} digits, motion {motion}: the points arrive after {arrived:.2f} s, "
                f"the picture is complete after {complete:.2f} s; load {os.getloadavg()[0]:.1f}"
            )
    results.write(given.out, "slider", rows)


def moves(browser: Any, address: str, n: int, motion: str) -> list[results.Row]:
    """Move the sliders of an open app."""
    page = browser.new_page(viewport={"width": 1440, "height": 950}, reduced_motion=motion)
    page.set_default_timeout(2 * MINUTE)
    page.goto(address)
    page.wait_for_selector(".appca-explorer[data-settled=yes][data-drawn=all]", state="attached")
    page.wait_for_timeout(REST)
    page.evaluate(WATCH)
    rows: list[results.Row] = []
    for slider, given in MOVES:
        found = moved(page, slider, given)
        row = {"digits": n, "motion": motion, "moved": slider.upper(), "to": str(given)}
        rows.append(row | {"order": "first" if len(rows) == 0 else "later", **found})
        print(
            f"{n:,} digits, {slider.upper()} {given}: {found['server_s']:.2f} s until the points "
            f"arrived, {found['browser_s']:.2f} s until the picture was complete",
            flush=True,
        )
    page.close()
    return rows


def moved(page: Any, slider: str, given: int) -> dict[str, float]:
    """Type a size beside its slider; return the server's and the browser's seconds."""
    box = page.locator(f"[class*=st-key-{slider}_typed-] input").first
    box.fill(str(given))
    box.press("Enter")
    page.wait_for_function(FINAL, arg=STILL)
    found = page.evaluate("() => window.sliderMove")
    arrived, drawn = found["first"] - found["pressed"], found["last"] - found["first"]
    return {"server_s": arrived / 1000, "browser_s": drawn / 1000}


if __name__ == "__main__":
    main()
