"""Tests of the tile in JupyterLab: pages, uploads, downloads and cookies under a server's path."""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from typing import NamedTuple

import numpy as np
import pytest

from tests.browser.conftest import ROOT, WAIT_MS, _free_port, wait_for

pytest.importorskip("jupyter_server_proxy", reason="`.ci/installed` brings the extra “jupyter”")
pytestmark, SECRET = pytest.mark.browser, "jupyter-secret"


class Jupyter(NamedTuple):
    """A running Jupyter server."""

    url: str
    work: object

    def page(self, browsers):
        context = browsers().new_context(accept_downloads=True)
        context.set_default_timeout(WAIT_MS)
        page = context.new_page()
        page.goto(f"{self.url}/appca/?token={SECRET}")
        page.locator(".appca-hit").first.wait_for()
        return page


@pytest.fixture(scope="module")
def jupyter(tmp_path_factory):
    work, port = tmp_path_factory.mktemp("work"), _free_port()
    command = [sys.executable, "-m", "jupyter_server", f"--ServerApp.port={port}", "--no-browser"]
    command += ["--ServerApp.base_url=/user/ann/", f"--IdentityProvider.token={SECRET}"]
    command += [f"--ServerApp.root_dir={work}", "--allow-root"]
    variables = os.environ | {"PYTHONPATH": str(ROOT), "APPCA_HOME": str(work / "home")}
    with (work / "log.txt").open("w") as log:
        process = subprocess.Popen(command, cwd=work, env=variables, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}/user/ann"
    wait_for(f"{url}/api", process, work / "log.txt")
    yield Jupyter(url, work)
    process.terminate()
    process.wait(20)


def test_all_of_the_app_works_below_the_path(jupyter, browsers, tmp_path):
    page, asked = jupyter.page(browsers), []
    page.on("request", lambda request: asked.append(request.url))
    values = np.random.default_rng(0).normal(size=(60, 5))
    np.savetxt(tmp_path / "made.csv", values, delimiter=",", header="a,b,c,d,e", comments="")
    page.goto(f"{jupyter.url}/appca/data?tab=open")
    upload = page.locator("[class*=st-key-upload-] input[type=file]").last
    upload.set_input_files(tmp_path / "made.csv")
    page.get_by_text("made · 60 rows").first.wait_for()
    page.locator(".appca-hit").first.wait_for()
    deep = page.url
    page.goto(f"{jupyter.url}/appca/export")
    with page.expect_download() as caught:
        page.locator("[class*=st-key-download-projection-csv] button").click()
    assert len(caught.value.path().read_text().splitlines()) == 61

    page.goto(deep)
    page.locator(".appca-hit").first.wait_for()
    sent = [url for url in asked if url.startswith("http")]
    assert [url for url in sent if not url.startswith(f"{jupyter.url}/appca")] == []
    assert any("/user/ann/appca/canvas/" in url for url in asked)
    cookies = {of["name"]: of["path"] for of in page.context.cookies() if "appca" in of["name"]}
    assert cookies == dict.fromkeys(["appca-0", "appca_last"], "/user/ann/appca")
    page.context.close()


def test_a_request_without_the_login_reaches_nothing(jupyter, browsers):
    for path in ("", "canvas/x", "_stcore/host-config"):
        request = urllib.request.Request(f"{jupyter.url}/appca/{path}")
        with urllib.request.urlopen(request) as answer:
            assert "/login" in answer.url
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    upgrade["Sec-WebSocket-Key"] = "AAAAAAAAAAAAAAAAAAAAAA=="
    request = urllib.request.Request(f"{jupyter.url}/appca/_stcore/stream", headers=upgrade)
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request)
    assert refused.value.code == 403
    refused.value.close()


def test_a_notebook_opens_a_file(jupyter, browsers):
    np.save(jupyter.work / "rows.npy", np.random.default_rng(1).normal(size=(70, 4)))
    code = "import appca, json; print(json.dumps(appca.open_app('rows.npy').url))"
    variables = os.environ | {
        "PYTHONPATH": str(ROOT),
        "APPCA_HOME": str(jupyter.work / "home"),
        "JUPYTERHUB_SERVICE_PREFIX": "/user/ann/",
    }
    command = [sys.executable, "-c", code]
    said = subprocess.check_output(command, cwd=jupyter.work, env=variables, text=True)
    page = jupyter.page(browsers)
    page.goto(jupyter.url.removesuffix("/user/ann") + json.loads(said))
    page.get_by_text("rows · 70 rows").first.wait_for()
    page.context.close()
