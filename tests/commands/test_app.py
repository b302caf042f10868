"""`appca DATA`: what is opened, and what is refused; the server itself is tried by `.ci/run`."""

from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from appca.cli import main
from appca.commands import app
from appca.data.store import DatasetStore
from appca.runs.home import home
from appca.runs.session import Session, pack


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


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["wine", "--address", "0.0.0.0", "--no-token"], 2, "add --behind-proxy"),
        (["open", "--labels", "y.npy"], 2, "--labels needs DATA"),
        (["cook"], 1, "not a file, a folder or a built-in data set"),
        (["wine", "--labels", "y.npy"], 1, "No such file"),
    ],
)
def test_what_is_refused_is_one_sentence(tmp_path, monkeypatch, capsys, arguments, code, words):
    monkeypatch.setattr(app, "_started", lambda *_: Nobody())
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == code
    told = capsys.readouterr().err
    assert words in told
    assert told.count("\n") == 1


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
