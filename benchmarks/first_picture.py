"""How long a person waits for the first picture.

`python -m benchmarks.first_picture [STARTS]`: starts the server on a new home folder, opens the
landing page in Chromium and waits until the atlas of the digits is drawn with its images; prints
the seconds from the start of the server's process. The very first start after an installation also
compiles Python files; delete the `__pycache__` folders of the environment to see that again.
Writes results/first_picture.json.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import results

ROOT = Path(__file__).parents[1]
DRAWN = (
    "() => Number(document.querySelector('.appca-explorer')?.dataset.points) === 1797 && "
    "Number(document.querySelector('.appca-explorer').dataset.thumbnails) > 20"
)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
FLAGS += ["--enable-unsafe-swiftshader"]


def main() -> None:
    """Print one line a start, and write all."""
    from playwright.sync_api import sync_playwright

    parser = results.arguments(__doc__)
    parser.add_argument("starts", nargs="?", type=int, default=3)
    given = parser.parse_args()
    rows = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        for number in range(given.starts):
            rows.append({"start": number + 1, "clock_s": first_picture(browser)})
            print(f"{rows[-1]['clock_s']:.1f} s", flush=True)
        browser.close()
    results.write(given.out, "first_picture", rows)


def first_picture(browser) -> float:
    """Return the seconds from the server's start to the finished picture."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless", "true"]
    with tempfile.TemporaryDirectory() as home:
        began = time.perf_counter()
        server = subprocess.Popen(
            [*command, "--server.port", str(port)],
            cwd=ROOT,
            env={**os.environ, "APPCA_HOME": home},
            stdout=subprocess.DEVNULL,
        )
        try:
            return _seconds_to_picture(browser, f"http://127.0.0.1:{port}", began)
        finally:
            server.terminate()
            server.wait()


def _seconds_to_picture(browser, address: str, began: float) -> float:
    page = browser.new_page(viewport={"width": 1440, "height": 950})
    while True:
        try:
            page.goto(address)
            break
        except Exception:  # the port is not open yet
            if time.perf_counter() - began > 60:
                raise
            time.sleep(0.1)
    page.wait_for_function(DRAWN, timeout=120_000)
    seconds = time.perf_counter() - began
    page.close()
    return seconds


if __name__ == "__main__":
    main()
