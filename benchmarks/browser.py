"""The app on a port of its own, and how Chromium is started, for the benchmarks in a browser."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
FLAGS += ["--enable-unsafe-swiftshader"]
START_S = 60.0


class Server(NamedTuple):
    """A running server."""

    address: str
    process: subprocess.Popen[bytes]


@contextmanager
def served(
    home: Path | str, root: Path = ROOT, script: str = "app.py", **environment: str
) -> Iterator[Server]:
    """Serve a script of a checkout, with a home folder, from when it answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", script, "--server.headless", "true"]
    variables = {"APPCA_HOME": str(home), "PYTHONPATH": str(root)}
    process = subprocess.Popen(
        [*command, "--server.port", str(port)],
        cwd=root,
        env={**os.environ, **variables, **environment},
        stdout=subprocess.DEVNULL,
    )
    server = Server(f"http://127.0.0.1:{port}", process)
    try:
        wait_for(server)
        yield server
    finally:
        process.terminate()
        process.wait()


def wait_for(server: Server) -> None:
    """Wait until a server answers; OSError when it does not within a minute."""
    last = time.monotonic() + START_S
    while True:
        try:
            with urllib.request.urlopen(f"{server.address}/_stcore/health", timeout=2):
                return
        except OSError:
            if time.monotonic() > last or server.process.poll() is not None:
                raise
            time.sleep(0.05)
