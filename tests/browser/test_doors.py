"""The doors of a server as browsers meet them: behind nginx, in a frame, a second browser."""

import http.server
import os
import re
import shutil
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.browser.conftest import (
    ROOT,
    WAIT_MS,
    Server,
    _free_port,
    _wait_until_healthy,
)

pytestmark = pytest.mark.browser
SITE = ROOT / "deploy/nginx/appca.conf"
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


class Lab(NamedTuple):
    """An app under a path, behind nginx."""

    url: str
    port: int
    home: Path

    def link(self) -> str:
        """Return the link that `appca` printed, as a browser opens it."""
        log, until = self.home.parent / "log.txt", time.monotonic() + WAIT_MS / 1000
        while not (query := re.search(r"\?(\S*token=\S+)\s", log.read_text())):
            assert time.monotonic() < until  # the server answers before the link is printed
            time.sleep(0.1)
        return f"{self.url}/?{query[1]}"


def started(folder: Path, command: list[str], port: int, **environment: str) -> subprocess.Popen:
    variables = os.environ | {"PYTHONPATH": str(ROOT), "APPCA_HOME": str(folder / "home")}
    with (folder / "log.txt").open("w") as out:
        process = subprocess.Popen(
            command, cwd=ROOT, env=variables | environment, stdout=out, stderr=out
        )
    base = environment.get("STREAMLIT_SERVER_BASE_URL_PATH", "")
    url = f"http://127.0.0.1:{port}/{base}".rstrip("/")
    _wait_until_healthy(Server(url, folder, process, folder / "log.txt"))
    return process


@pytest.fixture(scope="module", params=["$http_host", "127.0.0.1:1"], ids=["host", "other-host"])
def lab(request, tmp_path_factory):
    """Serve the app under a path, with nginx and TLS before it.

    Once the proxy passes the host on; once it does not, and the origin is configured.
    """
    if shutil.which("nginx") is None or shutil.which("openssl") is None:
        if os.environ.get("APPCA_REQUIRE_BROWSER"):
            pytest.fail("nginx and openssl are needed")
        pytest.skip("there is no nginx")
    folder = tmp_path_factory.mktemp("lab")
    inner, port = _free_port(), _free_port()
    outside = f"https://127.0.0.1:{port}"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=127.0.0.1", "-keyout", "appca.key", "-out", "appca.pem"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder))
    site = SITE.read_text()
    for told, here in {
        "443 ssl": f"127.0.0.1:{port} ssl",
        "/etc/nginx": str(folder),
        "location /": "location /lab/",
        "127.0.0.1:8000;": f"127.0.0.1:{inner};",
        "$http_host": request.param,
    }.items():
        assert told in site
        site = site.replace(told, here)
    (folder / "appca.conf").write_text(site)
    configured = {} if request.param == "$http_host" else {"APPCA_ORIGINS": outside}
    command = [sys.executable, "-m", "appca", "open", "--port", str(inner), "--no-browser"]
    app = started(folder, command, inner, STREAMLIT_SERVER_BASE_URL_PATH="lab", **configured)
    proxy = subprocess.Popen(["nginx", "-c", str(folder / "nginx.conf"), "-p", str(folder)])
    yield Lab(f"{outside}/lab", inner, folder / "home")
    for process in (proxy, app):
        process.terminate()
        process.wait(20)


def page_of(browser, **how):
    return browser.new_context(ignore_https_errors=True, **how).new_page()


def test_behind_nginx_with_tls_and_a_path_only_the_link_opens_a_browser(lab, browsers):
    browser = browsers()
    link = lab.link()
    first = page_of(browser)
    first.goto(link)
    first.locator(".appca-hit").first.wait_for(timeout=WAIT_MS)
    assert "token" not in first.url
    (cookie,) = [one for one in first.context.cookies() if one["name"].startswith("appca-")]
    assert cookie["secure"]
    assert cookie["path"] == "/lab"
    first.reload()
    first.locator(".appca-hit").first.wait_for(timeout=WAIT_MS)

    second = page_of(browser)
    assert second.goto(f"{lab.url}/").status == 403
    second.goto(link)
    second.locator(".appca-hit").first.wait_for(timeout=WAIT_MS)

    for page in (first, second):
        page.context.close()


def test_the_stream_refuses_another_port_of_the_machine_through_the_proxy(lab):
    context = ssl._create_unverified_context()
    request = urllib.request.Request(f"{lab.url}/_stcore/stream")
    for name, value in {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
        "Origin": "https://127.0.0.1:3000",
    }.items():
        request.add_header(name, value)
    try:
        status = urllib.request.urlopen(request, context=context, timeout=30).status
    except urllib.error.HTTPError as refused:
        status = refused.code
        refused.close()
    assert status == 403


@pytest.fixture(scope="module")
def portal(tmp_path_factory):
    """Serve a page that frames the app, at a name that is configured and at one that is not."""
    folder = tmp_path_factory.mktemp("portal")
    handler = partial(Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = _free_port()
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless=1"]
    framed = {"APPCA_FRAME_ANCESTORS": f"http://127.0.0.1:{server.server_port}"}
    app = started(folder, [*command, f"--server.port={port}"], port, **framed)
    (folder / "index.html").write_text(
        f'<iframe src="http://127.0.0.1:{port}/" width=1200 height=800>'
    )
    yield server.server_port
    app.terminate()
    app.wait(20)
    server.shutdown()
    server.server_close()


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server of files that says nothing."""

    def log_message(self, *_):
        """Say nothing."""


def test_a_configured_page_may_frame_the_app_and_no_other(portal, browsers):
    page = page_of(browsers())
    page.goto(f"http://127.0.0.1:{portal}/")
    page.frame_locator("iframe").locator(".appca-hit").first.wait_for(timeout=WAIT_MS)
    with page.expect_console_message(lambda said: "frame-ancestors" in said.text, timeout=WAIT_MS):
        page.goto(f"http://localhost:{portal}/")
    page.context.close()
