"""A server of the app, and a Chromium without a graphics card."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
FLAGS += ["--enable-unsafe-swiftshader"]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
START_S = 60.0


@contextmanager
def chromium(*flags: str) -> Iterator[Any]:
    """Start a browser."""
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, BROWSERS)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*FLAGS, *flags])
        yield browser
        browser.close()


@contextmanager
def served(
    home: Path | str, root: Path = ROOT, script: str = "app.py", **environment: str
) -> Iterator[str]:
    """Serve a script of a checkout with a home folder; yield its address when it responds."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{probe.getsockname()[1]}"
    command = [sys.executable, "-m", "streamlit", "run", script, "--server.headless", "true"]
    variables = {"APPCA_HOME": str(home), "PYTHONPATH": str(root)}
    process = subprocess.Popen(
        [*command, "--server.port", address.rpartition(":")[2]],
        cwd=root,
        env={**os.environ, **variables, **environment},
        stdout=subprocess.DEVNULL,
    )
    try:
        last = time.monotonic() + START_S
        while True:
            try:
                urllib.request.urlopen(f"{address}/_stcore/health", timeout=2).close()
                break
            except OSError:
                if time.monotonic() > last or process.poll() is not None:
                    raise
                time.sleep(0.05)
        yield address
    finally:
        process.terminate()
        process.wait()
