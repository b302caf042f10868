"""Files dropped on a window: what the route must refuse, and that windows stay apart."""

import stat
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.applications import Starlette

from appca.ui.arrivals.drops import DropLimits, Drops
from tests.attacks.test_routes import HERE, Answer, Place

DROP = "0123456789ab"


class Window(Place):
    """A server with two windows, onto which files may be dropped."""

    def __init__(self, scratch: Path) -> None:
        super().__init__()
        self.scratch = scratch
        self.alive.add("other")
        self.other = self.delivery.keys.of("other")
        self.drops = Drops(
            self.delivery.session_of,
            self.alive.__contains__,
            lambda: scratch,
            lambda: DropLimits(file=1000, window=1500, all=2000),
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


def test_a_session_that_is_gone_drops_nothing_and_what_it_dropped_goes(window):
    assert window.give(b"a,b\n1,2\n").status_code == 204
    window.alive.remove("mine")
    assert window.give(b"a,b\n1,2\n").status_code == 403
    assert window.give(b"a,b\n1,2\n", X_Appca_Key=window.other).status_code == 204
    assert len(window.kept()) == 1


def test_a_name_is_never_a_path(window, tmp_path):
    for name in ("../../evil.csv", "/etc/evil.csv", "C:\\evil.csv", "a/b\0.csv", "a/../../b.csv"):
        assert window.give(b"1", name).status_code == 204
    assert not list(tmp_path.parent.rglob("*evil*"))
    found = window.drops.take("mine", DROP)
    assert [path.name for _, path in found.files] == ["0", "1", "2", "3", "4"]
    (folder,) = window.scratch.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    found.remove()
    assert not window.kept()


@pytest.mark.parametrize("drop", ["..", "0123456789aG", "0123", "0123456789ab0"])
def test_a_drop_has_the_name_of_a_drop(window, drop):
    assert window.give(b"1", drop=drop).status_code in (400, 404)
    assert window.give(b"1", name="").status_code == 400
    assert window.give(b"1", name="n" * 1001).status_code == 400
    assert not window.kept()


def test_too_much_is_refused_in_a_sentence_and_nothing_of_it_stays(window):
    answer = window.give(b"x" * 1001)
    assert answer.status_code == 413
    assert b"a file may have 1.0 kB; use a smaller one." in answer.content
    assert not window.kept()
    assert window.give(b"x" * 900).status_code == 204
    assert b"files of a window may have" in window.give(b"x" * 900).content
    assert not window.kept()
    assert window.give(b"x" * 900).status_code == 204
    assert window.give(b"x" * 999, X_Appca_Key=window.other).status_code == 204
    assert window.give(b"x" * 500, X_Appca_Key=window.other, drop="c" * 12).status_code == 413


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
