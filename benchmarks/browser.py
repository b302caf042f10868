"""The app on a port of its own, and how Chromium is started, for the benchmarks in a browser."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
FLAGS += ["--enable-unsafe-swiftshader"]


@contextmanager
def served(home: Path | str, root: Path = ROOT) -> Iterator[str]:
    """Run the app of a checkout on a home folder; give its address when it answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless", "true"]
    server = subprocess.Popen(
        [*command, "--server.port", str(port)],
        cwd=root,
        env={**os.environ, "APPCA_HOME": str(home), "PYTHONPATH": str(root)},
        stdout=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(1200):
            try:
                urllib.request.urlopen(f"{address}/_stcore/health", timeout=2).close()
                break
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        yield address
    finally:
        server.terminate()
        server.wait()
