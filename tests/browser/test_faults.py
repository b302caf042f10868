"""Tests with a real server and browser: refused requests without details; behind nginx."""

import http.client
import io
import os
import re
import shutil
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image

from tests.browser.conftest import ROOT, WAIT_MS, Server, _free_port, wait_for
from tests.browser.test_app import APP, drawn, idle
from tests.browser.test_every_page import address_of, sound
from tests.ui.conftest import PAGES

LISTENING, LOOPBACK = "0A", {"0100007F", "00000000000000000000000001000000"}
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
    port, listening = f"{urlsplit(own).port:04X}", []
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
    page = visit(f"{watched.url}/data", still=True).page
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


NGINX = """
pid {folder}/nginx.pid; error_log {folder}/error.log; daemon off; worker_processes 1;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  include {folder}/appca.conf;
}}
"""
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    "Origin": "https://127.0.0.1:3000",  # another port of the machine
}


@pytest.fixture
def lab(tmp_path):
    """Serve the app under a path, with nginx and TLS before it; yield its address and log."""
    if shutil.which("nginx") is None or shutil.which("openssl") is None:
        if os.environ.get("APPCA_REQUIRE_BROWSER"):
            pytest.fail("nginx and openssl are needed")
        pytest.skip("there is no nginx")
    inner, port = _free_port(), _free_port()
    outside = f"https://127.0.0.1:{port}"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=127.0.0.1", "-keyout", "appca.key", "-out", "appca.pem"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "nginx.conf").write_text(NGINX.format(folder=tmp_path))
    site = (ROOT / "deploy/nginx/appca.conf").read_text()
    for told, here in {
        "443 ssl": f"127.0.0.1:{port} ssl",
        "/etc/nginx": str(tmp_path),
        "location /": "location /lab/",
        "127.0.0.1:8000;": f"127.0.0.1:{inner};",
    }.items():
        assert told in site
        site = site.replace(told, here)
    (tmp_path / "appca.conf").write_text(site)
    variables = os.environ | {"PYTHONPATH": str(ROOT), "APPCA_HOME": str(tmp_path / "home")}
    variables |= {"STREAMLIT_SERVER_BASE_URL_PATH": "lab"}
    command = [sys.executable, "-m", "appca", "open", "--port", str(inner), "--no-browser"]
    log = tmp_path / "log.txt"
    with log.open("w") as out:
        app = subprocess.Popen(command, cwd=ROOT, env=variables, stdout=out, stderr=out)
    wait_for(f"http://127.0.0.1:{inner}/lab/_stcore/health", app, log)
    proxy = subprocess.Popen(["nginx", "-c", str(tmp_path / "nginx.conf"), "-p", str(tmp_path)])
    yield f"{outside}/lab", log
    for process in (proxy, app):
        process.terminate()
        process.wait(20)


def test_behind_nginx_with_tls_and_a_path_only_the_link_opens_a_browser(lab, browsers):
    url, log = lab
    first, second = (browsers().new_context(ignore_https_errors=True).new_page() for _ in "ab")
    until = time.monotonic() + WAIT_MS / 1000
    while not (query := re.search(r"\?(\S*token=\S+)\s", log.read_text())):
        assert time.monotonic() < until  # the server answers before the link is printed
        time.sleep(0.1)
    link = f"{url}/?{query[1]}"
    first.goto(link)
    first.locator(".appca-hit").first.wait_for(timeout=WAIT_MS)
    assert "token" not in first.url
    (cookie,) = [one for one in first.context.cookies() if one["name"].startswith("appca-")]
    assert (cookie["secure"], cookie["path"]) == (True, "/lab")
    first.reload()
    first.locator(".appca-hit").first.wait_for(timeout=WAIT_MS)
    assert second.goto(f"{url}/").status == 403
    second.goto(link)
    second.locator(".appca-hit").first.wait_for(timeout=WAIT_MS)
    for page in (first, second):
        page.context.close()
    request = urllib.request.Request(f"{url}/_stcore/stream", headers=UPGRADE)
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=30)
    assert refused.value.code == 403
    refused.value.close()
