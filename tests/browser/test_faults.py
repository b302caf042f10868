"""What only a real server and a real browser can show: strangers refused, nothing told, nothing
lost by reloads and kills.
"""

import contextlib
import http.client
import io
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image

from appca.runs.store import RunStore
from tests.browser.conftest import ROOT, WAIT_MS, Server, _started
from tests.browser.test_app import APP, drawn, idle, start_a_long_fit
from tests.browser.test_every_page import address_of, sound
from tests.jobs.waiting import is_alive, until
from tests.ui.conftest import PAGES

LISTENING = "0A"
LOOPBACK = {"0100007F", "00000000000000000000000001000000"}
GUARD = """
import os, sys
def note(event, arguments):
    if event == "socket.connect":
        place = arguments[1]
        host = place[0] if isinstance(place, tuple) else "localhost"
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        host = arguments[0] if event != "socket.sendto" else arguments[1][0]
    else:
        return
    host = host.decode() if isinstance(host, bytes) else str(host)
    if not host.startswith("127.") and host not in ("localhost", "::1", "None", ""):
        with open(os.environ["APPCA_GUARD"], "a") as file:
            file.write(f"{event} {host}\\n")
sys.addaudithook(note)
"""
TEXTS = {
    "HTML": "<img src=x onerror=alert(1)>",
    "script": "<script>alert(2)</script>",
    "Markdown": "**bold** [link](javascript:alert(3)) `code` :red[x]",
    "LaTeX": "$\\frac{1}{2}$ $$x^2$$",
    "formula": "=HYPERLINK('x')+1",
    "emoji": "🙂 :smile: :material/home:",
    "addresses": "http://evil.example www.evil.example mailto:a@evil.example <https://evil.example>",
    "right to left": "שלום \u202eabc\u202c مرحبا",
}

pytestmark = pytest.mark.browser
BAR = 60  # pixels of the canvas below its own bar
FILE = "<b>$x$ **n** :red[y] =1+1 שלום 🙂"


@pytest.fixture(scope="module")
def guard(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("guard")
    (folder / "sitecustomize.py").write_text(GUARD)
    return folder


@pytest.fixture(scope="module")
def watched(serve, guard: Path) -> Server:
    """Serve the app; whom it and its workers ask for anything is noted."""
    return serve(
        APP,
        OMP_NUM_THREADS="1",
        PYTHONPATH=os.pathsep.join([str(guard), str(ROOT)]),
        APPCA_GUARD=str(guard / "asked.txt"),
    )


def asked(server: Server, path: str, method: str = "GET", **headers: str) -> int:
    """Return the status that a request with these headers gets."""
    parts = urlsplit(server.url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
    try:
        connection.putrequest(method, path, skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        return connection.getresponse().status
    finally:
        connection.close()


SOCKET = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec_WebSocket_Version": "13",
    "Sec_WebSocket_Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    "Sec_WebSocket_Protocol": "streamlit",
}
STREAM = "/_stcore/stream"


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs /proc")
def test_no_other_machine_site_or_name_gets_a_connection(watched):
    """All data goes over this one connection; what is served without it is the empty page."""
    own, evil = watched.url, "evil.example"
    path = "/_stcore/upload_file/11111111-2222-3333-4444-555555555555/1"
    for origin in (own, f"http://{evil}"):  # without a session
        assert asked(watched, path, "PUT", Origin=origin) in {400, 401, 403, 411}
    rebound = f"{evil}:{urlsplit(own).port}"  # a name that was made to lead here
    assert asked(watched, STREAM, Origin=own, **SOCKET) == 101
    assert asked(watched, STREAM, Origin=f"http://{evil}", **SOCKET) == 403
    assert asked(watched, STREAM, Origin=own, Host=evil, **SOCKET) == 403
    assert asked(watched, STREAM, Origin=f"http://{rebound}", Host=rebound, **SOCKET) == 403
    port = f"{urlsplit(own).port:04X}"
    listening = []
    for table in ("tcp", "tcp6"):
        file = Path(f"/proc/{watched.process.pid}/net/{table}")
        for line in file.read_text().splitlines()[1:] if file.exists() else []:
            place, _, state = line.split()[1:4]
            if state == LISTENING and place.endswith(f":{port}"):
                listening.append(place.partition(":")[0])
    assert listening
    assert set(listening) <= LOOPBACK


def hostile_table() -> bytes:
    """Return a table whose every text is one that wants to be more than text."""
    texts = list(TEXTS.values())
    quoted = ['"' + text.replace('"', '""') + '"' for text in texts]
    lines = [f'name,{quoted[0]},"{TEXTS["Markdown"]}2",x,y']
    for row in range(63):
        text = quoted[row % len(quoted)]
        lines.append(f'"{row} {texts[row % len(texts)]}",{text},{text},{row % 5},{row % 11 / 3}')
    return "\n".join(lines).encode()


def upload(page, name: str, content: bytes) -> None:
    """Give a table to the page Data, which opens it in Explore."""
    idle(page)
    file = {"name": name, "mimeType": "text/csv", "buffer": content}
    page.locator("[class*=st-key-upload-] input[type=file]").last.set_input_files(file)


def test_no_page_shows_a_text_as_more_or_asks_anybody_but_its_own_server(visit, watched, guard):
    page = visit(f"{watched.url}/data").page
    dialogs: list[str] = []
    requests: list[str] = []
    sockets: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: requests.append(request.url))
    page.on("websocket", lambda socket: sockets.append(socket.url))
    upload(page, f"{FILE}.csv", hostile_table())
    drawn(page, "explorer.dataset.rows == 63", 90)
    assert page.locator(".ca-side b").filter(has_text="$x$").inner_text() == FILE
    classes = page.locator(".appca-legend").first.locator(".appca-class b")
    assert sorted(classes.all_text_contents()) == sorted(TEXTS.values())
    hover(page)
    page.wait_for_function(
        "(texts) => texts.some((one) => document.querySelector('.appca-card b')"
        ".textContent.endsWith(` ${one}`))",
        arg=list(TEXTS.values()),
    )
    number, _, text = page.locator(".appca-card b").first.text_content().partition(" ")
    assert text == list(TEXTS.values())[int(number) % len(TEXTS)]
    data = page.url.partition("data=")[2][:64]
    for place, title in PAGES.items():
        page.goto(address_of(watched.url, place, f"data={data}"))
        sound(page, title)
        alien = page.locator("img[src=x], img[onerror], a[href^=javascript], .katex, b b")
        links = page.locator("a[href*=evil], [data-testid=stIconMaterial]:text-is('home')")
        found = alien.evaluate_all("(all) => all.map((one) => one.outerHTML.slice(0, 300))")
        assert (found, links.count()) == ([], 0), place
    assert dialogs == []
    own = urlsplit(watched.url).netloc
    web = [url for url in requests if urlsplit(url).scheme not in ("data", "blob")]
    assert len(web) > 20
    assert {urlsplit(url).netloc for url in [*web, *sockets]} == {own}
    assert sockets
    asked_for = guard / "asked.txt"
    assert (asked_for.read_text() if asked_for.exists() else "") == ""


def hover(page) -> None:
    """Rest the pointer on a row: on colour in the middle of the picture."""
    seen = np.asarray(Image.open(io.BytesIO(page.locator(".appca-hit").screenshot())), int)[..., :3]
    coloured = np.ptp(seen, axis=-1) > 60
    coloured[:BAR] = False
    y, x = np.argwhere(coloured)[coloured.sum() // 2]
    box = page.locator(".appca-hit").bounding_box()
    page.mouse.move(box["x"] + int(x), box["y"] + int(y))
    page.locator(".appca-card").wait_for()


def test_a_reload_in_the_middle_of_an_upload_loses_nothing_but_the_upload(visit, address):
    page = visit(f"{address}/data").page
    idle(page)
    data = page.url.partition("data=")[2][:64]
    held: list = []

    def hold(route) -> None:
        held.append(route)

    page.route("**/drop/**", hold)
    upload(page, "own.csv", hostile_table())
    until_held(page, held)
    page.unroute("**/drop/**")
    page.reload()
    page.locator(".ca-side b", has_text="Handwritten").wait_for()
    idle(page)
    assert page.url.partition("data=")[2][:64] == data
    upload(page, "own.csv", hostile_table())
    page.locator(".ca-side", has_text="63 rows").wait_for()


def until_held(page, held: list) -> None:
    """Let the browser work until its request has come to the test."""
    for _ in range(WAIT_MS // 16):
        if held:
            return
        page.evaluate("() => new Promise(requestAnimationFrame)")
    pytest.fail("the upload was not sent")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[], Server]]:
    """Return a function that starts a server; all have one home, and none outlives the test."""
    home = tmp_path / "shared"
    home.mkdir()
    servers: list[Server] = []

    def begin() -> Server:
        folder = tmp_path / f"server{len(servers)}"
        folder.mkdir()
        begun = _started(APP, folder, {"APPCA_HOME": str(home), "OMP_NUM_THREADS": "1"})
        servers.append(begun._replace(home=home))
        return servers[-1]

    yield begin
    for server in servers:
        server.process.kill()
        server.process.wait()


def worker_of(server: subprocess.Popen) -> int | None:
    """Return a worker process of a server."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            command = (folder / "cmdline").read_bytes()
            if parent == str(server.pid) and b"appca.jobs.worker" in command:
                return int(folder.name)
    return None


def test_links_outlive_the_server_and_workers_do_not(visit, start):
    first = start()
    page = visit(f"{first.url}/?k=3&l=1").page
    drawn(page)
    idle(page)
    page.wait_for_url("**run=**")
    link = urlsplit(page.url).query
    (run,) = RunStore(first.home).list()
    start_a_long_fit(page, seed=5)
    until(lambda: worker_of(first.process), "a worker")
    worker = worker_of(first.process)
    assert is_alive(worker)
    broken = urlsplit(page.url).query
    first.process.kill()
    first.process.wait()
    until(lambda: not is_alive(worker), "the worker to follow its server")

    second = start()
    page = visit(f"{second.url}/?{broken}").page
    page.get_by_text("The app was restarted").wait_for()
    idle(page)
    store = RunStore(second.home)
    assert store.damaged() == {}
    assert list(store.folder.glob(".*")) == []
    page.goto(f"{second.url}/?{link}")
    drawn(page, "explorer.dataset.panels == 3")
    page.wait_for_url("**run=**")
    assert urlsplit(page.url).query == link
    arrays = store.get(run.id).path / "arrays.npz"
    assert arrays.stat().st_mtime < run.created + 1, "shown from the disk, not fitted again"
    idle(page)
    second.process.send_signal(signal.SIGTERM)
    second.process.wait(60)
    assert list(second.home.glob("jobs/.*")) == [], "it has left nothing"
