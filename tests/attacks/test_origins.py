"""Websockets of other sites, before anybody has opened a page: refused, and nobody is asked why.

Streamlit 1.67 compares a foreign origin with the address that a machine on the Internet sees of
this one, and asks one for it, while every visitor waits.
"""

import http.client
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.browser.conftest import ROOT, Server, _free_port, _wait_until_healthy

OPENED = 101
REFUSED = {403, 500}  # 500: Streamlit cannot read the origin
NOTE = """
import os, sys
def note(event, arguments):
    if event in ("socket.getaddrinfo", "socket.gethostbyname"):
        host = arguments[0]
    elif event == "socket.connect" and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    else:
        return
    host = host.decode() if isinstance(host, bytes) else str(host)
    if not host.startswith("127.") and host not in ("localhost", "::1", "None", ""):
        with open(os.environ["APPCA_NOTE"], "a") as file:
            file.write(f"{event} {host}\\n")
sys.addaudithook(note)
"""


class Door(NamedTuple):
    """A server that nobody has visited, and the note of whom it asked."""

    port: int
    asked: Path

    def answer(self, **headers: str) -> int:
        """Return the status that a websocket with these headers gets."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.putrequest("GET", "/_stcore/stream", skip_host="Host" in headers)
            socket = {"Connection": "Upgrade", "Upgrade": "websocket"}
            socket |= {"Sec-WebSocket-Version": "13", "Sec-WebSocket-Protocol": "streamlit"}
            socket |= {"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
            for name, value in (socket | headers).items():
                connection.putheader(name, value)
            connection.endheaders()
            return connection.getresponse().status
        finally:
            connection.close()


@pytest.fixture(scope="module")
def door(tmp_path_factory) -> Iterator[Door]:
    """Serve the app as a laboratory would: under a name of its own, and behind a proxy."""
    folder = tmp_path_factory.mktemp("door")
    (folder / "sitecustomize.py").write_text(NOTE)
    port, note, log = _free_port(), folder / "asked.txt", folder / "log.txt"
    note.touch()
    command = [sys.executable, "-m", "streamlit", "run", str(ROOT / "app.py")]
    command += ["--server.port", str(port), "--server.headless", "true"]
    command += [f"--server.allowedHosts={host}" for host in ("localhost", "127.0.0.1", "lab-pc")]
    command += ["--server.corsAllowedOrigins=https://proxy.example"]
    variables = os.environ | {
        "APPCA_HOME": str(folder / "home"),
        "APPCA_NOTE": str(note),
        "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]),
    }
    with log.open("w") as out:
        process = subprocess.Popen(command, cwd=ROOT, env=variables, stdout=out, stderr=out)
    try:
        _wait_until_healthy(Server(f"http://127.0.0.1:{port}", folder, process, log))
        yield Door(port, note)
    finally:
        process.terminate()
        process.wait(20)


FOREIGN = {
    "another site": "http://evil.example",
    "another site, encrypted": "https://evil.example",
    "a name that begins like ours": "http://localhost.evil.example",
    "a name that begins like our address": "http://127.0.0.1.evil.example",
    "our name before an @": "http://localhost@evil.example",
    "a page from a file": "null",
    "a file": "file:///home/me/evil.html",
    "an extension": "chrome-extension://aaaaaaaaaaaaaaaa",
    "no address at all": "a\tb",
    "half of an address": "http://[::1",
    "an address of the network": "http://192.168.0.7:8501",
    "another program of this machine": "http://127.0.0.1:3000",
    "another program, by name": "http://localhost:3000",
    "the proxy, unencrypted": "http://proxy.example",
    "the proxy's neighbour": "https://proxy.example.evil.example",
}


@pytest.mark.parametrize("origin", FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_origin_is_refused_and_nobody_is_asked(door, origin):
    assert door.answer(Origin=origin) in REFUSED
    assert door.asked.read_text() == ""


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "lab-pc.evil.example"])
def test_a_foreign_host_is_refused_even_with_an_origin_to_match(door, host):
    assert door.answer(Origin=f"http://{host}", Host=host) in REFUSED
    assert door.asked.read_text() == ""


def test_the_machine_s_own_names_a_configured_one_and_a_proxy_get_a_connection(door):
    for host in ("localhost", "127.0.0.1", "lab-pc"):
        own = f"{host}:{door.port}"
        assert door.answer(Origin=f"http://{own}", Host=own) == OPENED, host
    behind = f"127.0.0.1:{door.port}"
    assert door.answer(Origin="https://proxy.example", Host=behind) == OPENED
    assert door.answer() == OPENED  # a client that is no browser
    assert door.asked.read_text() == ""
