"""Tests of deploy/jupyterhub: three system accounts, each with its own server."""

import os
import pwd
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from tests.browser.conftest import WAIT_MS, _free_port, wait_for

PREFIX = Path(os.environ.get("APPCA_HUB_PREFIX", "/nowhere"))
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not PREFIX.is_dir() or os.getuid() != 0,
        reason="`.ci/installed` brings the hub where all accounts can read it, as root",
    ),
]
PEOPLE = ("appca-ann", "appca-bob", "appca-eve")
PASSWORD = "of-the-test"
SOCKET = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"


class Hub(NamedTuple):
    """A running hub."""

    url: str
    proxy_port: int
    log: Path

    def login(self, browsers, name, **how):
        """Return a page on which somebody has just asked to log in."""
        context = browsers().new_context(accept_downloads=True, **how)
        context.set_default_timeout(WAIT_MS)
        page = context.new_page()
        page.goto(f"{self.url}/hub/login?next=%2Fuser%2F{name}%2Fappca%2F")
        page.locator("#username_input").fill(name)
        page.locator("#password_input").fill(PASSWORD)
        page.locator("#login_submit").click()
        return page


@contextmanager
def running(folder):
    """Start the hub as the guide says."""
    ports = [_free_port() for _ in range(3)]
    url = f"http://127.0.0.1:{ports[0]}"
    variables = {
        "PATH": f"{PREFIX}/bin:/usr/bin:/bin",
        "APPCA_HUB_URL": url,
        "APPCA_HUB_PORT": str(ports[1]),
        "APPCA_HUB_PROXY_PORT": str(ports[2]),
        "APPCA_HUB_PROXY": f"{PREFIX}/proxy/node_modules/.bin/configurable-http-proxy",
        "APPCA_HUB_LOGIN": "dummy",
        "APPCA_HUB_PASSWORD": PASSWORD,
        "APPCA_HUB_SPAWNER": "local",
        "APPCA_HUB_USERS": ",".join(PEOPLE),
    }
    command = [PREFIX / "bin/jupyterhub", "-f", PREFIX / "deploy/jupyterhub/jupyterhub_config.py"]
    log = folder / "hub.log"
    with log.open("w") as out:
        process = subprocess.Popen(command, cwd=folder, env=variables, stdout=out, stderr=out)
    try:
        wait_for(f"{url}/hub/login", process, log)
        yield Hub(url, ports[2], log)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


@pytest.fixture(scope="module")
def accounts():
    """Make three accounts, and take them away."""
    for name in PEOPLE:
        subprocess.run(["userdel", "-rf", name], check=False, capture_output=True)
        subprocess.run(["useradd", "-m", "-K", "HOME_MODE=0700", name], check=True)
    yield {name: pwd.getpwnam(name) for name in PEOPLE}
    for name in PEOPLE:
        subprocess.run(["userdel", "-rf", name], check=False, capture_output=True)


@pytest.fixture(scope="module")
def hub(accounts, tmp_path_factory):
    with running(tmp_path_factory.mktemp("hub")) as started:
        yield started


@pytest.fixture(scope="module")
def pages(hub, browsers):
    """Let all log in at once, and wait for their first pictures."""
    opened = {name: hub.login(browsers, name) for name in PEOPLE}
    for page in opened.values():
        page.locator(".appca-hit").first.wait_for()
    yield opened
    for page in opened.values():
        page.context.close()


def processes(uid, word=""):
    """Return the processes of an account with a word in their command line."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if folder.stat().st_uid == uid:
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if word in line:
                    found[int(folder.name)] = line.strip()
        except OSError:
            continue
    return found


def tried_by(account, *command):
    """Do something as an account; return how it ended and what it said."""
    who = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": [], "cwd": "/"}
    who |= {"env": {"PATH": "/usr/bin:/bin", "HOME": account.pw_dir}}
    return subprocess.run(command, **who, capture_output=True, text=True, check=False)


def test_three_people_upload_fit_and_export_at_the_same_time(accounts, pages, hub, tmp_path):
    for i, (name, page) in enumerate(pages.items()):  # each has another table
        rows, file = np.random.default_rng(i).normal(size=(60 + i, 5)), tmp_path / f"{name}.csv"
        np.savetxt(file, rows, "%.4f", ",", header="a,b,c,d,e", comments="")
        page.goto(f"{hub.url}/user/{name}/appca/data?tab=open")
        page.locator("[class*=st-key-upload-] input[type=file]").last.set_input_files(file)
    for i, (name, page) in enumerate(pages.items()):
        page.get_by_text(f"{name} · {60 + i} rows").first.wait_for()
    for page in pages.values():
        page.goto(page.url.replace("k=4", "k=3").replace("run=", "was="))
    for page in pages.values():
        page.get_by_text("K = 3, L = 2").first.wait_for()
    for name, page in pages.items():
        page.goto(f"{hub.url}/user/{name}/appca/export")
    saved = {}
    for i, (name, page) in enumerate(pages.items()):
        with page.expect_download() as caught:
            page.locator("[class*=st-key-download-projection-csv] button").click()
        assert len(caught.value.path().read_text().splitlines()) == 61 + i
        saved[name] = caught.value.url
    answers = {name: pages["appca-eve"].context.request.get(url) for name, url in saved.items()}
    refused = {name for name, answer in answers.items() if answer.status in (403, 404)}
    assert refused >= {"appca-ann", "appca-bob"}
    owners = {name: processes(accounts[name].pw_uid, "at_socket") for name in PEOPLE}
    assert all(len(of) == 1 for of in owners.values()), owners
    for account in map(accounts.get, PEOPLE):
        home = Path(account.pw_dir) / ".local/share/appca"
        assert home.stat().st_uid == account.pw_uid
        assert home.stat().st_mode & 0o077 == 0
        assert len(list((home / "datasets").glob("[0-9a-f]*"))) == 2


def test_no_address_token_or_websocket_of_one_opens_the_server_of_another(accounts, pages, hub):
    ann, eve = pages["appca-ann"], pages["appca-eve"]
    asked = []
    ann.on("request", lambda request: asked.extend([request]))
    ann.goto(f"{hub.url}/user/appca-ann/appca/")
    ann.locator(".appca-hit").first.wait_for()
    parcels = [one for one in asked if "/canvas/" in one.url and "x-appca-key" in one.headers]
    assert parcels
    (pid,) = processes(accounts["appca-ann"].pw_uid, "appca.ui.at_socket")
    variables = dict(
        pair.partition("=")[::2] for pair in Path(f"/proc/{pid}/environ").read_text().split("\0")
    )
    token = variables["APPCA_TOKEN"]  # which only she and root can read
    stolen = {"x-appca-key": parcels[0].headers["x-appca-key"], "x-appca-token": token}
    addresses = [ann.url, parcels[0].url, f"{hub.url}/user/appca-ann/api/contents"]
    addresses += [f"{hub.url}/user/appca-ann/appca/_stcore/host-config"]
    kept = next(one["value"] for one in ann.context.cookies() if one["name"] == "appca-0")
    stolen_cookie = {"name": "appca-0", "value": kept, "url": f"{hub.url}/user/appca-ann/appca"}
    eve.context.add_cookies([stolen_cookie])
    for address in addresses:
        answer = eve.context.request.get(address, headers=stolen)
        told = answer.text()
        assert answer.status in (403, 404), (address, answer.status)
        assert '<div id="root"' not in told
    own = parcels[0].url.replace("appca-ann", "appca-eve")
    assert eve.context.request.get(own, headers=stolen).status == 403, "another server's key"
    opened = """(address) => new Promise((done) => {
      const socket = new WebSocket(address.replace('http', 'ws'));
      socket.onopen = () => done('open'); socket.onerror = () => done('refused');
    })"""
    stream = "{}/user/appca-{}/appca/_stcore/stream"
    assert eve.evaluate(opened, stream.format(hub.url, "ann")) == "refused"
    assert eve.evaluate(opened, stream.format(hub.url, "eve")) == "open", "the attack is one"


def test_no_file_socket_or_process_of_one_is_in_reach_of_another(accounts, pages, hub):
    ann, eve = accounts["appca-ann"], accounts["appca-eve"]
    (pid,) = processes(ann.pw_uid, "at_socket")
    (server,) = (
        pid for pid, line in processes(ann.pw_uid).items() if "jupyterhub-singleuser" in line
    )
    lines = {name: processes(accounts[name].pw_uid, "at_socket") for name in PEOPLE}
    sockets = {name: line.split()[-1] for name, of in lines.items() for line in of.values()}
    attempts = [
        ("ls", f"{ann.pw_dir}/.local/share/appca"),
        ("cat", f"{ann.pw_dir}/.local/share/appca/secret"),
        ("/usr/bin/python3", "-c", SOCKET, sockets["appca-ann"]),
        ("cat", f"/proc/{pid}/environ"),
        ("kill", str(pid)),
        ("kill", "-9", str(server)),
    ]
    for attempt in attempts:
        done = tried_by(eve, *attempt)
        assert done.returncode != 0, attempt
        words = ("Permission denied", "Operation not permitted", "PermissionError")
        assert any(word in done.stderr for word in words), done.stderr
    own = tried_by(eve, "/usr/bin/python3", "-c", SOCKET, sockets["appca-eve"])
    assert own.returncode == 0, "the attempts would do something"
    opened = tried_by(eve, PREFIX / "bin/appca", "data", f"{ann.pw_dir}/appca-ann.csv")
    assert opened.returncode != 0
    ports = subprocess.check_output(["ss", "-ltnpH"], text=True).splitlines()
    (port,) = {line.split()[3].rpartition(":")[2] for line in ports if f"pid={server}," in line}
    ask = (
        "import http.client, sys; c = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1])); "
        "c.request('GET', sys.argv[2]); r = c.getresponse(); print(r.status, r.headers['location'])"
    )
    for asked in ((port, "/user/appca-ann/appca/"), (str(hub.proxy_port), "/api/routes")):
        status, place = tried_by(eve, "/usr/bin/python3", "-c", ask, *asked).stdout.split()
        assert status == "403" or (status == "302" and "/oauth2/authorize" in place), (asked, place)


def test_killing_one_server_leaves_the_others_and_its_fits(accounts, pages, hub):
    ann, bob = accounts["appca-ann"], pages["appca-bob"]
    before = processes(accounts["appca-bob"].pw_uid, "appca.ui.at_socket")
    assert before
    for pid, line in processes(ann.pw_uid).items():
        if "jupyterhub-singleuser" in line:
            os.kill(pid, signal.SIGKILL)
    end = time.monotonic() + 30
    while processes(ann.pw_uid, "at_socket"):
        assert time.monotonic() < end, "the app outlived the server that began it"
        time.sleep(0.2)
    bob.goto(f"{hub.url}/user/appca-bob/appca/?k=5&l=2")
    bob.get_by_text("K = 5, L = 2").first.wait_for()
    assert processes(accounts["appca-bob"].pw_uid, "appca.ui.at_socket") == before
    done = tried_by(ann, PREFIX / "bin/appca", "check")
    assert done.returncode == 0, done.stdout + done.stderr
