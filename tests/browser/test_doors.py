"""The doors of a server as browsers meet them: behind nginx, with TLS, a second browser."""

import os
import re
import shutil
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from tests.browser.conftest import ROOT, WAIT_MS, _free_port, wait_for

pytestmark = pytest.mark.browser
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
    """Serve the app under a path, with nginx and TLS before it; yield its address and log.

    Other hosts and configured origins are in tests/attacks/test_guards.py.
    """
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
