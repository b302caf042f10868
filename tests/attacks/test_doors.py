"""Pages of other origins, frames, and addresses that let strangers in."""

import json
import os
import shlex
import stat
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from appca.cli import main
from appca.commands import app
from appca.runs.home import home
from appca.storage import access_control
from appca.ui.server import Guard, place
from tests.browser.conftest import ROOT, Server, _free_port, _wait_until_healthy
from tests.ui.server.test_token import asked, headers, inside

HERE = "127.0.0.1:8501"
OWN = [
    (HERE, "http://127.0.0.1:8501"),
    ("lab-pc", "http://lab-pc"),
    ("lab-pc", "https://lab-pc"),
    ("lab-pc:443", "https://lab-pc"),
    ("lab-pc", "https://lab-pc:443"),
    ("lab-pc:80", "http://LAB-PC"),
    ("[::1]:8501", "http://[::1]:8501"),
    (HERE, "https://proxy.example"),  # that is configured
    (HERE, "https://proxy.example:443"),
]
FOREIGN = [
    (HERE, "http://127.0.0.1:3000"),  # another program of this machine
    (HERE, "http://localhost:8501"),
    (HERE, "http://127.0.0.1"),
    (HERE, "http://proxy.example"),
    (HERE, "https://proxy.example:8443"),
    ("lab-pc:80", "https://lab-pc"),
    (HERE, "http://me@127.0.0.1:8501"),
    (HERE, "http://127.0.0.1:8501/x"),
    (HERE, "http://127.0.0.1:99999"),
    (HERE, "http://["),
    (HERE, "null"),
    (HERE, " "),
    ("", "http://127.0.0.1:8501"),
]


@pytest.mark.parametrize("token", ["", "a-secret"])
@pytest.mark.parametrize("kind", ["websocket", "http"])
def test_a_page_of_another_origin_is_refused_with_and_without_a_token(token, kind):
    seen = []

    async def note(scope, receive, send):
        seen.append([name for name, _ in scope["headers"]])
        await inside(scope, receive, send)

    guard = Guard(note, token, {place("https://proxy.example")})
    kept = f"appca-8501={access_control.cookie('a-secret')}"

    def status(host, origin):
        sent = asked("/x", "", kept, kind, guard, host=host, origin=origin, method="POST")
        return sent[0]

    for host, origin in OWN:
        assert status(host, origin) == {"type": "passed"}, (host, origin)
    for host, origin in FOREIGN:
        refused = status(host, origin)
        assert refused.get("status") == 403 or refused["type"] == "websocket.close", (host, origin)
    assert len(seen) == len(OWN)
    assert all(b"origin" not in names for names in seen), "Streamlit would compare it otherwise"


def served(*options: str) -> tuple[subprocess.Popen, int]:
    """Start the app by Streamlit's own command, with few files at first; return it and its port."""
    port = _free_port()
    command = [sys.executable, "-m", "streamlit", "run", str(ROOT / "app.py")]
    command += ["--server.headless=1", f"--server.port={port}", *options]
    free = {name: value for name, value in os.environ.items() if name != access_control.TOKEN}
    process = subprocess.Popen(
        ["sh", "-c", f"ulimit -Sn 256; exec {shlex.join(command)}"],
        cwd=ROOT,
        env=free | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return process, port


def test_an_address_of_all_networks_is_refused_in_one_sentence():
    process, _ = served("--server.address=0.0.0.0")
    told, _ = process.communicate(timeout=120)
    assert process.returncode not in (0, None)
    assert told.count("lets others in") == 1
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("address", "hosts", "guarded", "refused"),
    [
        ("127.0.0.1", [], False, False),
        ("127.9.9.9", [], False, False),
        ("::1", [], False, False),
        ("localhost", [], False, False),
        ("0.0.0.0", [], False, True),
        ("", [], False, True),
        (None, ["localhost"], False, True),
        ("10.0.0.7", ["localhost", "127.0.0.1", "[::1]"], False, True),
        ("::", ["lab-pc"], False, False),
        ("0.0.0.0", ["localhost"], True, False),
        ("localhost.evil.example", [], False, True),
    ],
)
def test_who_may_listen_where(address, hosts, guarded, refused):
    sentence = access_control.refusal(address, hosts, guarded=guarded)
    assert (sentence is not None) == refused
    assert sentence is None or sentence.endswith("add --behind-proxy.")


def test_a_server_may_be_framed_by_those_alone_that_are_named():
    guard = Guard(inside_page, "", (), ["https://portal.example"])
    policy = headers(asked(guard=guard))["content-security-policy"]
    assert policy == "frame-ancestors 'self' https://portal.example"
    assert headers(asked(guard=Guard(inside_page, "")))["content-security-policy"].endswith(
        "'self'"
    )


async def inside_page(_scope, _receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


class Ended:
    """A server that ends at once."""

    stdin = None

    def wait(self, *_):
        """Say what the home holds while a browser may look."""

    terminate = poll = wait


def test_the_browser_s_command_line_has_no_token_and_its_file_is_private(monkeypatch, capsys):
    seen = {}

    def look(address):
        page = home() / app.PAGE
        seen["address"], seen["text"] = address, page.read_text()
        seen["rights"] = stat.S_IMODE(page.stat().st_mode)

    started = []
    monkeypatch.setattr(app, "_started", lambda _, token: started.append(token) or Ended())
    monkeypatch.setattr(app, "_wait", lambda *_: None)
    monkeypatch.setattr(app.webbrowser, "open", look)
    assert main(["wine", "--port", "8765"]) == 0
    (secret,) = started
    said = capsys.readouterr()
    opened = seen["text"].partition("token=")[2].partition('"')[0]
    assert "token" not in seen["address"]
    assert seen["address"].startswith("file://")
    assert seen["rights"] == 0o600
    assert opened == secret
    assert f"token={secret} " in said.out
    assert not (home() / app.PAGE).exists()


def test_no_page_around_this_one_may_steer_it_and_many_files_may_be_open():
    process, port = served("--server.address=127.0.0.1")
    try:
        address = f"http://127.0.0.1:{port}"
        _wait_until_healthy(Server(address, ROOT, process, ROOT / "README.md"))
        with urllib.request.urlopen(f"{address}/_stcore/host-config") as answer:
            assert answer.headers["content-security-policy"] == "frame-ancestors 'self'"
            assert json.load(answer)["allowedOrigins"] == []
        limits = Path(f"/proc/{process.pid}/limits")
        if limits.exists():
            lines = limits.read_text().splitlines()
            (line,) = [one for one in lines if one.startswith("Max open files")]
            soft, hard = line.split()[3:5]
            assert int(soft) >= min(int(hard), 1 << 16)
    finally:
        process.terminate()
        process.communicate(timeout=20)
