"""How long from the end of a large fit to its picture: MNIST with 60,000 rows at K = 20, L = 5.

`APPCA_DATA=... python -m benchmarks.first_view`: opens the data on Explore of a new home, which
shows a preview and fits all rows in the background, three times. The time runs from when the fit is
stored until each row stands in the picture. Writes results/first_view.json.
"""

import tempfile
import time
from pathlib import Path
from typing import Any

from appca.data.store import DatasetStore
from benchmarks import results
from benchmarks.browser import FLAGS, served
from benchmarks.scenes import mnist

DIGITS, K, L = 60_000, 20, 5
FITS = 3
WAIT_S = 600.0
EXPLORER = ".appca-explorer[data-settled=yes][data-drawn=all]"
ANOTHER = """(preview) => {
  const { scene, settled, drawn } = document.querySelector('.appca-explorer').dataset;
  return scene !== preview && settled === 'yes' && drawn === 'all';
}"""
SAID = "() => ({ ...document.querySelector('.appca-explorer').dataset })"


def main() -> None:
    """Print a line a fit, and write all."""
    from playwright.sync_api import sync_playwright

    given = results.arguments(__doc__).parse_args()
    data = mnist(DIGITS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        rows = [viewed(browser, data, str(fit + 1)) for fit in range(FITS)]
        browser.close()
    results.write(given.out, "first_view", rows)


def viewed(browser: Any, data: Any, fit: str) -> results.Row:
    """Open the data, and wait for the fit and for its picture."""
    with tempfile.TemporaryDirectory() as home:
        digest = DatasetStore(Path(home)).put(data)
        with served(home) as server:
            page = browser.new_page(viewport={"width": 1440, "height": 950})
            page.set_default_timeout(1000 * WAIT_S)
            page.goto(f"{server.address}/?data={digest}&k={K}&l={L}")
            page.wait_for_selector(EXPLORER, state="attached")
            preview = page.evaluate(SAID)["scene"]
            stored = end_of_fit(Path(home) / "runs")
            page.wait_for_function(ANOTHER, arg=preview)
            seconds, said = time.perf_counter() - stored, page.evaluate(SAID)
            page.close()
    row = {"fit": fit, "digits": int(said["rows"]), "panels": int(said["panels"])}
    print(f"{row['digits']:,} digits in {row['panels']} panels {seconds:.2f} s after the fit")
    return row | {"points": int(said["points"]), "view_s": seconds}


def end_of_fit(runs: Path) -> float:
    """Wait until a run is stored; return when that was."""
    last = time.perf_counter() + WAIT_S
    while not any(runs.glob("[0-9a-f]*/")):
        if time.perf_counter() > last:
            message = f"No fit was stored in {WAIT_S:.0f} s."
            raise TimeoutError(message)
        time.sleep(0.01)
    return time.perf_counter()


if __name__ == "__main__":
    main()
