"""The tile of JupyterLab, and files that a notebook opens in the app."""

import pkgutil
import tomllib
from pathlib import Path

import numpy as np
import pytest

import appca
from appca.commands import jupyter
from appca.data.store import DatasetStore
from appca.runs.home import home
from appca.ui import server
from appca.ui.frame import icon
from appca.words import InputError

ROOT = Path(__file__).parents[2]


def test_jupyter_starts_it_at_a_socket_with_a_token_of_its_own():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = project["entry-points"]["jupyter_serverproxy_servers"]
    told, again = pkgutil.resolve_name(named[jupyter.NAME])(), jupyter.server()
    assert told["unix_socket"]
    assert "{unix_socket}" in told["command"]
    secret = told["environment"]["APPCA_TOKEN"]
    assert told["request_headers_override"] == {jupyter.HEADER: secret}
    assert secret != again["environment"]["APPCA_TOKEN"]
    assert all(secret not in word for word in told["command"]), "everybody can read these"
    assert jupyter.HEADER.lower() == server.HEADER
    assert Path(told["launcher_entry"]["icon_path"]).read_text().strip() == icon()


def test_a_notebook_gets_a_link_to_a_file(tmp_path, monkeypatch):
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(20, 3)))
    monkeypatch.setenv("JUPYTERHUB_SERVICE_PREFIX", "/user/ann/")
    link = appca.open_app(tmp_path / "rows.npy")
    ((digest, name, *_),) = DatasetStore(home()).list()
    assert name == "rows"
    assert link.url == f"/user/ann/appca/?data={digest}"
    assert f'href="{link.url}"' in link._repr_html_()
    with pytest.raises(InputError, match="not a file"):
        appca.open_app(tmp_path / "other.npy")


def test_outside_of_jupyter_it_says_what_to_do(monkeypatch):
    monkeypatch.delenv("JUPYTERHUB_SERVICE_PREFIX", raising=False)
    with pytest.raises(InputError, match="open them by `appca FILE`"):
        appca.open_app("rows.npy")
