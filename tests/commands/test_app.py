"""`appca DATA`, the tile of JupyterLab, and files that a notebook opens in the app."""

import pkgutil
import tomllib
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

import appca
from appca.cli import main
from appca.commands import app, jupyter
from appca.data.store import DatasetStore
from appca.runs.home import home
from appca.runs.session import Session, pack
from appca.ui import server
from appca.ui.frame import icon
from appca.words import InputError


@pytest.fixture
def places(monkeypatch) -> list[dict[str, str]]:
    """What the browser would be sent to."""
    found: list[dict[str, str]] = []

    def instead(options: Namespace) -> dict:
        found.append(app.place(options))
        return {}

    monkeypatch.setattr(app, "run", instead)
    return found


def test_data_are_opened_without_an_upload(tmp_path, places):
    X = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "kind.npy", np.arange(30) % 3)
    assert main([str(tmp_path / "X.npy"), "--labels", str(tmp_path / "kind.npy")]) == 0
    stored = DatasetStore(home()).get(places[0]["data"])
    np.testing.assert_array_equal(stored.X, X)
    assert list(stored.labels["kind"][:4]) == ["0", "1", "2", "0"]
    assert main([]) == 0
    assert places[1] == {}


def test_a_table_with_gaps_and_a_session_are_opened(tmp_path, places):
    (tmp_path / "t.csv").write_text("a,b,c\n1,2,3\n4,,6\n7,8,1\n2,2,2\n")
    assert main([str(tmp_path / "t.csv")]) == 0
    stored = DatasetStore(home()).get(places[0]["data"])
    assert stored.n_missing == 1
    file = tmp_path / "work.appca"
    file.write_bytes(pack(Session(stored, [])))
    assert main([str(file)]) == 0
    assert places[1] == places[0]


class Nobody:
    """A server that is not there."""

    stdin = None

    def terminate(self) -> None:
        """Do nothing."""

    def wait(self, _seconds: float) -> None:
        """Do nothing."""


@pytest.mark.parametrize("content", [b"", b"a\nb\n", b"\x93NUMPY\x01\x00"])
def test_labels_that_do_not_fit_are_refused(tmp_path, monkeypatch, capsys, content):
    monkeypatch.setattr(app, "_started", lambda *_: Nobody())
    for name in ("y.npy", "y.txt"):
        Path(tmp_path / name).write_bytes(content)
        assert main(["wine", "--labels", str(tmp_path / name)]) == 1
        assert "y." in capsys.readouterr().err


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
