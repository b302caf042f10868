"""Fixtures of browser tests: a Streamlit server and a Chromium.

Use ``serve`` to start an app and ``visit`` to open a page; both close automatically. Mark tests
with ``browser``, so that tests/conftest.py skips them without a Chromium.
"""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

ROOT, START_SECONDS = Path(__file__).parents[2], 120
WAIT_MS = 90_000  # three times as long as on a slow machine
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--enable-unsafe-swiftshader",
)
LOOPBACK = {"127.0.0.1", "localhost", "", None}


class Server(NamedTuple):
    """A running Streamlit app."""

    url: str  # without a trailing slash
    home: Path  # its APPCA_HOME
    process: subprocess.Popen
    log: Path


class Visit(NamedTuple):
    """An open page with its requests and errors."""

    page: Any  # playwright.sync_api.Page
    outside: list[str]  # requests to other machines
    errors: list[str]  # exceptions in the page's scripts


@pytest.fixture(scope="session")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """Return ``serve(script, **environment)``, which reuses a server for equal arguments."""
    servers: dict[tuple, Server] = {}

    def start(script: str | Path, **environment: str) -> Server:
        key = (str(script), *sorted(environment.items()))
        if key not in servers:
            servers[key] = _started(Path(script), tmp_path_factory.mktemp("served"), environment)
        return servers[key]

    yield start
    for server in servers.values():
        server.process.terminate()
    for server in servers.values():
        try:
            server.process.wait(10)
        except subprocess.TimeoutExpired:
            server.process.kill()
            server.process.wait()


def _started(script: Path, folder: Path, environment: dict[str, str]) -> Server:
    home = folder / "home"
    home.mkdir()
    log, port = folder / "server.log", _free_port()
    command = [sys.executable, "-m", "streamlit", "run", str(script)]
    command += ["--server.port", str(port), "--server.headless", "true"]
    variables = {**os.environ, "APPCA_HOME": str(home), "PYTHONPATH": str(ROOT), **environment}
    with log.open("w") as out:
        process = subprocess.Popen(
            command, cwd=ROOT, env=variables, stdout=out, stderr=subprocess.STDOUT
        )
    server = Server(f"http://127.0.0.1:{port}", home, process, log)
    wait_for(f"{server.url}/_stcore/health", process, log)
    return server


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(address: str, process: subprocess.Popen, log: Path) -> None:
    """Wait until a server answers."""
    last = time.monotonic() + START_SECONDS
    while time.monotonic() < last and process.poll() is None:
        try:
            return urllib.request.urlopen(address, timeout=5).close()
        except OSError:
            time.sleep(0.05)  # only while the server starts
    process.kill()
    pytest.fail(f"the server did not start:\n{log.read_text()[-3000:]}")


@pytest.fixture(scope="session")
def server(serve: Callable[..., Server]) -> Server:
    """Serve the app for all tests that can share a server."""
    return serve(ROOT / "app.py", OMP_NUM_THREADS="1")


@pytest.fixture(scope="session")
def address(server: Server) -> str:
    """Return the address of the app."""
    return server.url


@pytest.fixture(scope="session")
def playwright_driver() -> Iterator[Any]:
    """Run Playwright."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="session")
def browsers(playwright_driver: Any, chromium: str) -> Iterator[Callable[..., Any]]:
    """Return a function that returns the Chromium of this process."""
    browser = playwright_driver.chromium.launch(executable_path=chromium, args=FLAGS)
    yield lambda: browser
    browser.close()


@pytest.fixture(scope="module")
def visit(browsers: Callable[..., Any]) -> Iterator[Callable[..., Visit]]:
    """Return a function ``visit(url, width=1440, height=1000, dark=False)``.

    `still` requests reduced motion, which saves the processor from drawing sixty pictures a
    second; use it for tests of the final picture. Every visit has its own browser profile, because
    a browser does not draw pages in the background; it is closed at the end of the module. The
    module fails if a page has called another machine, or a script of the page has failed.
    """
    visits: list[Visit] = []
    contexts: list[Any] = []

    def open_page(
        url: str, width: int = 1440, height: int = 1000, dark: bool = False, still: bool = False
    ) -> Visit:
        context = browsers().new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce" if still else "no-preference",
        )
        context.set_default_timeout(WAIT_MS)
        contexts.append(context)
        opened = Visit(context.new_page(), [], [])
        visits.append(opened)
        opened.page.on("request", lambda request: _note_outside(request.url, opened.outside))
        opened.page.on("pageerror", lambda error: opened.errors.append(str(error)))
        opened.page.goto(url)
        return opened

    yield open_page
    for context in contexts:
        context.close()
    assert [url for opened in visits for url in opened.outside] == []
    assert [error for opened in visits for error in opened.errors] == []


def _note_outside(url: str, outside: list[str]) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("data", "blob") and parts.hostname not in LOOPBACK:
        outside.append(url)
