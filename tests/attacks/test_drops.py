"""Files dropped on a window: what the route must refuse, and that windows stay apart."""

import gc
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.applications import Starlette

from appca.storage import lock
from appca.ui import arrivals
from appca.ui.arrivals import MOST_FILES, DroppedFiles, Drops
from tests.attacks.test_routes import HERE, Answer, Place

DROP = "0123456789ab"


class Window(Place):
    """A server with two windows, onto which files may be dropped."""

    def __init__(self, scratch: Path) -> None:
        super().__init__()
        self.scratch = scratch
        self.alive.add("other")
        self.other = self.delivery.key_of("other")
        self.drops = Drops(
            self.delivery.session_of,
            self.alive.__contains__,
            lambda: scratch,
            lambda: 10_000,
        )
        self.app = Starlette(routes=self.drops.routes())

    def give(self, content: bytes, name: str = "x.csv", drop: str = DROP, **headers: str) -> Answer:
        return self._ask("POST", f"/drop/{drop}", content, {"X_Appca_Name": quote(name)} | headers)

    def kept(self) -> list[Path]:
        return [path for path in self.scratch.rglob("*") if path.is_file()]


@pytest.fixture
def window(tmp_path) -> Window:
    return Window(tmp_path / "uploads")


@pytest.mark.parametrize(
    "headers",
    [
        {"X_Appca_Key": ""},
        {"X_Appca_Key": "guessed"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Host": "evil.example"},
        {"Sec_Fetch_Site": "cross-site"},
    ],
)
def test_other_sites_and_strangers_drop_nothing(window, headers):
    answer = window.give(b"a,b\n1,2\n", **headers)
    assert (answer.status_code, answer.content) == (403, b"")
    assert not window.scratch.exists()


def test_what_a_session_dropped_goes_with_it_and_not_while_it_may_come_back(window, monkeypatch):
    assert window.give(b"a,b\n1,2\n").status_code == 204
    window.alive.remove("mine")
    assert window.give(b"a,b\n1,2\n").status_code == 403
    assert window.give(b"a,b\n1,2\n", X_Appca_Key=window.other).status_code == 204
    window.drops.tidy()
    assert len(window.kept()) == 2, "the network may be lost for a moment only"
    monkeypatch.setattr(arrivals, "STALE_SECONDS", -1.0)
    window.alive.add("mine")
    window.drops.tidy()
    assert len(window.kept()) == 2
    window.alive.remove("mine")
    assert window.give(b"1", drop="f" * 12, X_Appca_Key=window.other).status_code == 204
    assert sorted(path.read_bytes() for path in window.kept()) == [b"1", b"a,b\n1,2\n"]
    assert window.drops.take("other", DROP) is not None


def test_a_name_is_never_a_path(window, tmp_path):
    for name in ("../../evil.csv", "/etc/evil.csv", "C:\\evil.csv", "a/b\0.csv", "a/../../b.csv"):
        assert window.give(b"1", name).status_code == 204
    assert not list(tmp_path.parent.rglob("*evil*"))
    found = window.drops.take("mine", DROP)
    assert [path.name for _, path in found.files] == ["0", "1", "2", "3", "4"]
    (folder,) = window.scratch.iterdir()
    assert sorted(path.name for path in folder.iterdir()) == ["0", "1", "2", "3", "4"]
    found.remove()
    assert not window.kept()


@pytest.mark.parametrize("drop", ["..", "0123456789aG", "0123", "0123456789ab0"])
def test_a_drop_has_the_name_of_a_drop(window, drop):
    assert window.give(b"1", drop=drop).status_code in (400, 404)
    assert window.give(b"1", name="").status_code == 400
    assert window.give(b"1", name="n" * 1001).status_code == 400
    assert not window.kept()


def test_too_much_is_refused_in_a_sentence_and_nothing_of_it_stays(window):
    answer = window.give(b"x" * 10_001)
    assert answer.status_code == 413
    assert b"a file may have 10.0 kB; use a smaller one." in answer.content
    assert not window.kept()


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (411, {"Content_Length": None}),
        (411, {"Content_Length": ""}),
        (411, {"Content_Length": "-1"}),
        (411, {"Content_Length": "1e3"}),
        (411, {"Content_Length": "²"}),
        (411, {"Content_Length": "9" * 5000}),
        (411, {"Content_Length": "3", "Transfer_Encoding": "chunked"}),
        (413, {"Content_Length": "10001"}),
        (413, {"Content_Length": "9" * 19}),
    ],
)
def test_a_file_is_admitted_by_its_length_before_any_of_it_is_received(window, status, headers):
    answer = window.give(b"1,2", **headers)
    assert answer.status_code == status
    assert answer.content.startswith('{"refused":"“x.csv” was not kept, since '.encode())
    assert answer.content.count(b". ") == 0
    assert window.received == 0
    assert not window.kept()


def test_a_file_that_is_longer_than_it_said_is_not_kept(window):
    answer = window.give(b"x" * 9000, Content_Length="10")
    assert (answer.status_code, window.kept()) == (413, [])
    assert "longer than was announced" in answer.content.decode()


def test_a_drop_has_so_many_files(window, monkeypatch):
    monkeypatch.setattr(arrivals, "MOST_FILES", 2)
    assert [window.give(b"1").status_code for _ in range(3)] == [204, 204, 413]
    assert MOST_FILES == 5000


def test_files_that_nobody_refers_to_any_more_are_removed(window):
    window.give(b"1")
    window.drops.take("mine", DROP)
    gc.collect()
    assert not window.kept()


def test_a_window_s_files_stay_however_old_and_those_of_a_killed_server_go(window, tmp_path):
    """Servers that share a home would otherwise remove each other's files."""
    program = (
        "import sys, time; from pathlib import Path; "
        "from appca.ui.arrivals import DroppedFiles; "
        f"drop = DroppedFiles(Path({str(window.scratch)!r})); "
        "drop.place('x').write_text('1'); print('there', flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", program]
    other = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline() == "there\n"
    mine = DroppedFiles(window.scratch)
    mine.place("y").write_text("2")
    for folder in window.scratch.iterdir():
        os.utime(folder, (0, 0))
    window.drops.tidy()
    assert len(window.kept()) == 2
    other.kill()
    other.communicate()
    window.drops.tidy()
    assert [path.read_text() for path in window.kept()] == ["2"]
    assert lock.is_free(mine.files[0][1].parent) is False
    mine.remove()
    assert not mine.is_there


def test_two_windows_see_their_own_files_only(window):
    window.give(b"mine")
    window.give(b"other", X_Appca_Key=window.other)
    assert window.drops.take("other", "f" * 12) is None
    assert window.drops.take("other", DROP) is None, "another drop has taken its place"
    mine = window.drops.take("mine", DROP)
    assert [path.read_bytes() for _, path in mine.files] == [b"mine"]
    assert window.drops.take("mine", DROP) is None


def test_a_page_of_this_server_may(window):
    assert window.give(b"1", Origin=HERE, Sec_Fetch_Site="same-origin").status_code == 204
