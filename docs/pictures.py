"""Screenshots of the running app for the documentation: `python docs/pictures.py`.

Starts the app on the built-in data with an empty home, waits for the finished picture and writes
``docs/subspaces.png``. Needs the extra ``test`` and a Chromium.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

DOCS = Path(__file__).resolve().parent
WIDTH, HEIGHT = 1440, 900
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--no-sandbox", "--disable-background-networking", "--no-first-run"]


def main() -> None:
    """Write every picture of the documentation."""
    with tempfile.TemporaryDirectory() as home, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        command = [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={port}"]
        environment = os.environ | {"APPCA_HOME": home}
        server = subprocess.Popen(
            [*command, "--server.headless=true"], cwd=DOCS.parent, env=environment
        )
        try:
            shoot(f"http://127.0.0.1:{port}", DOCS / "subspaces.png")
        finally:
            server.terminate()
            server.wait()


def shoot(address: str, file: Path) -> None:
    """Open a page, wait until its points and images are drawn, and save what is seen."""
    browser_path = next(filter(None, map(shutil.which, BROWSERS)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=FLAGS)
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        for _ in range(60):  # until the server listens
            try:
                page.goto(address)
                break
            except Exception:  # Playwright has an error of its own for each way to be refused
                page.wait_for_timeout(500)
        page.wait_for_selector(".appca-explorer[data-thumbnails]", timeout=60_000)
        page.wait_for_selector("[data-test-script-state='notRunning']")
        page.wait_for_timeout(3000)  # images fade in
        page.screenshot(path=file)
        browser.close()


if __name__ == "__main__":
    main()
