"""Requests to the routes of the canvas that must get nothing, and nothing that tells them why."""

import asyncio
import hashlib
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.datastructures import Headers

from appca.canvas.blobs import Parcels
from appca.canvas.html import closed_bundle
from appca.ui.canvas import HOST, MOST_QUESTIONS, MOST_ROWS, SCRIPT, Delivery, RowQuestions

HERE = "http://127.0.0.1:8501"
SECRET = b"of this installation"
CONTENT = b"the rows of somebody"


class Answer(NamedTuple):
    """What comes back."""

    status_code: int
    headers: Headers
    content: bytes


class Place:
    """A server with one parcel, one data set to ask about, and two sessions, one of them gone."""

    def __init__(self) -> None:
        self.alive = {"mine", "closed"}
        alive, hosts = self.alive.__contains__, ("appca.example", "10.0.0.7")
        self.delivery = Delivery(Parcels(SECRET), alive, lambda: hosts)
        self.name = self.delivery.parcels.offer(CONTENT)
        self.texts = self.delivery.ask("data", RowQuestions(10, {"texts": self._texts}))
        self.key, self.closed = (self.delivery.key_of(name) for name in ("mine", "closed"))
        self.alive.remove("closed")
        self.asked: list[list[int]] = []
        self.app = Starlette(routes=self.delivery.routes())
        self.received = 0  # messages with parts of a body

    def _texts(self, rows: np.ndarray) -> dict[str, Any]:
        self.asked.append(rows.tolist())
        return {"ids": [str(row) for row in rows]}

    def get(self, name: str | None = None, method: str = "GET", **headers: str) -> Answer:
        return self._ask(method, f"/canvas/{self.name if name is None else name}", b"", headers)

    def post(self, content: bytes, what: str = "texts", **headers: str) -> Answer:
        return self._ask("POST", f"/canvas/{self.texts}/{what}", content, headers)

    def _ask(self, method: str, path: str, body: bytes, headers: dict[str, str | None]) -> Answer:
        """Ask the application itself: clients refuse to send half of these requests."""
        usual = {"Host": "127.0.0.1:8501", "X_Appca_Key": self.key}
        if method == "POST":
            usual["Content_Length"] = str(len(body))
        scope = {
            "type": "http",
            "method": method,
            "path": unquote(path),
            "query_string": b"",
            "headers": [
                (name.replace("_", "-").lower().encode(), value.encode("latin-1"))
                for name, value in (usual | headers).items()
                if value is not None
            ],
        }
        sent: list[dict[str, Any]] = []
        chunks = [body[at : at + 65_536] for at in range(0, len(body), 65_536)] or [b""]

        async def receive() -> dict[str, Any]:
            self.received += 1
            more = len(chunks) > 1
            return {"type": "http.request", "body": chunks.pop(0), "more_body": more}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        with ThreadPoolExecutor(1) as apart:  # Playwright's loop may run in this thread
            apart.submit(lambda: asyncio.run(self.app(scope, receive, send))).result()
        content = b"".join(bytes(one.get("body", b"")) for one in sent[1:])
        return Answer(sent[0]["status"], Headers(raw=sent[0]["headers"]), content)


@pytest.fixture(scope="module")
def place() -> Place:
    return Place()


def rows(*numbers: int) -> bytes:
    return np.array(numbers, "<u4").tobytes()


Attack = tuple[str, Callable[[Place], Any], int]
ATTACKS: list[Attack] = [
    ("no key", lambda at: at.get(X_Appca_Key=""), 403),
    ("a wrong key", lambda at: at.get(X_Appca_Key="x" * 32), 403),
    ("a key of other characters", lambda at: at.get(X_Appca_Key="ÿ¼"), 403),
    ("a very long key", lambda at: at.get(X_Appca_Key="x" * 50_000), 403),
    ("the key of a closed session", lambda at: at.get(X_Appca_Key=at.closed), 403),
    ("the session instead of its key", lambda at: at.get(X_Appca_Key="mine"), 403),
    ("the size alone, without a key", lambda at: at.get(method="HEAD", X_Appca_Key=""), 403),
    ("a foreign host", lambda at: at.get(Host="evil.example"), 403),
    ("a host that begins alike", lambda at: at.get(Host="127.0.0.1.evil.example"), 403),
    ("a host behind a name", lambda at: at.get(Host="127.0.0.1@evil.example"), 403),
    ("a host with a path", lambda at: at.get(Host="127.0.0.1/x"), 403),
    ("a host with a port that is none", lambda at: at.get(Host="127.0.0.1:99999999"), 403),
    ("no host", lambda at: at.get(Host=""), 403),
    ("a foreign origin", lambda at: at.get(Origin="http://evil.example"), 403),
    ("another port of this machine", lambda at: at.get(Origin="http://127.0.0.1:3000"), 403),
    ("an origin that is empty", lambda at: at.get(Origin=""), 403),
    ("an origin that is hidden", lambda at: at.get(Origin="null"), 403),
    ("an origin that is no address", lambda at: at.get(Origin="http://["), 403),
    ("another site, by its browser", lambda at: at.get(Sec_Fetch_Site="cross-site"), 403),
    ("another subdomain, by its browser", lambda at: at.get(Sec_Fetch_Site="same-site"), 403),
    ("a preflight", lambda at: at.get(method="OPTIONS", Origin="http://evil.example"), 405),
    ("a name that nobody offered", lambda at: at.get("0" * 32), 404),
    ("a plain hash of the content", lambda at: at.get(plain(CONTENT)), 404),
    ("a name in capitals", lambda at: at.get(at.name.upper()), 404),
    ("a name with an end", lambda at: at.get(at.name + "%00"), 404),
    ("a name of another alphabet", lambda at: at.get("٠" * 32), 404),
    ("a path out of the folder", lambda at: at.get("%2e%2e%2f%2e%2e%2fetc%2fpasswd"), 404),
    ("points alone", lambda at: at.get(".%2e"), 404),
    ("a path of Windows", lambda at: at.get("..%5c..%5csecret"), 404),
    ("a name of 100,000 letters", lambda at: at.get("a" * 100_000), 404),
    ("a name of a data set as that of a parcel", lambda at: at.get(at.texts), 404),
    ("putting", lambda at: at.get(method="PUT"), 405),
    ("deleting", lambda at: at.get(method="DELETE"), 405),
    ("posting to a parcel", lambda at: at.get(method="POST"), 405),
    ("an unknown method", lambda at: at.get(method="PROPFIND"), 405),
    ("asking without a key", lambda at: at.post(rows(1), X_Appca_Key=""), 403),
    ("asking from a foreign site", lambda at: at.post(rows(1), Origin="http://evil.example"), 403),
    ("asking for what there is not", lambda at: at.post(rows(1), "secrets"), 404),
    ("asking for images without any", lambda at: at.post(rows(1), "images"), 404),
    ("a row that is not there", lambda at: at.post(rows(1, 10)), 400),
    ("the greatest row", lambda at: at.post(rows(2**32 - 1)), 400),
    ("no rows", lambda at: at.post(b""), 400),
    ("half a row", lambda at: at.post(b"\0\0\0"), 400),
    ("too many rows", lambda at: at.post(rows(1) * (MOST_ROWS + 1)), 400),
    ("100 MB of rows", lambda at: at.post(bytes(100_000_000)), 400),
]


def plain(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


@pytest.mark.parametrize(("name", "attack", "status"), ATTACKS, ids=[one[0] for one in ATTACKS])
def test_an_attack_gets_a_number_and_nothing_else(place, name, attack, status):
    answer = attack(place)
    assert answer.status_code == status
    assert CONTENT not in answer.content
    assert len(answer.content) < 30  # at most “Method Not Allowed”
    said = str(answer.headers).lower()
    assert "access-control" not in said
    assert "immutable" not in said
    assert "set-cookie" not in said
    assert not any(row >= 10 for asked in place.asked for row in asked)


def test_a_page_of_this_server_gets_what_it_asks_for(place):
    for headers in ({}, {"Origin": HERE, "Sec_Fetch_Site": "same-origin"}):
        answer = place.get(**headers)
        assert (answer.status_code, answer.content) == (200, CONTENT)
    for host in ("localhost:8501", "[::1]:8501", "appca.example", "10.0.0.7:80", "LOCALHOST"):
        assert place.get(Host=host, Origin=f"http://{host}").status_code == 200
    assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"
    assert answer.headers["content-encoding"] == "identity"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert answer.headers["x-content-type-options"] == "nosniff"
    said = place.post(rows(7, 0, 7))
    assert json.loads(said.content) == {"ids": ["7", "0", "7"]}
    assert said.headers["cache-control"] == "no-store"


def test_the_code_is_for_all_under_its_own_name_only(place):
    answer = place.get(SCRIPT, X_Appca_Key="")
    assert (answer.status_code, answer.content.decode()) == (200, closed_bundle(HOST))
    assert answer.headers["content-type"].startswith("text/javascript")
    assert "immutable" in answer.headers["cache-control"]
    other = f"{'0' * 16}.js"
    assert [place.get(other, X_Appca_Key=key).status_code for key in ("", place.key)] == [403, 404]


def test_a_window_s_texts_are_answered_after_any_number_of_other_pictures(place):
    place.alive.add("other")

    def ask(what: str, *canvas: str) -> str:
        return place.delivery.ask(what, RowQuestions(10, {"texts": place._texts}), canvas or None)

    place.texts = ask("my picture", "mine", "canvas")
    beside, ahead = ask("beside it", "mine", "second"), ask("one step away")
    for number in range(MOST_QUESTIONS + 4):
        ask(f"other {number}", "other", "canvas")
        ask(f"ahead {number}")
    assert place.post(rows(3)).status_code == 200
    for name, status in ((beside, 200), (ahead, 404)):
        place.texts = name
        assert place.post(rows(3)).status_code == status
    assert len(place.delivery._questions) == MOST_QUESTIONS + 3
    place.alive.remove("other")
    place.texts = ask("my next picture", "mine", "canvas")
    assert len(place.delivery._questions) <= MOST_QUESTIONS + 2, "windows that are gone keep none"
    assert place.post(rows(3)).status_code == 200


def test_a_range_of_any_size_gets_the_whole_once(place):
    for asked in ("bytes=0-99999999999999999999", "bytes=" + "0-,".join([""] * 5000), "bytes=-5"):
        answer = place.get(Range=asked)
        assert (answer.status_code, answer.content) == (200, CONTENT)


def test_a_key_is_of_one_session_and_is_gone_with_it(place):
    place.alive.add("other")
    other = place.delivery.key_of("other")
    assert other != place.key
    assert place.get(X_Appca_Key=other).status_code == 200
    place.alive.remove("other")
    assert place.get(X_Appca_Key=other).status_code == 403
    assert place.get().status_code == 200


def test_nobody_signs_a_key_without_the_secret_of_this_server(place):
    signed = place.key.rpartition(".")[2]
    place.alive |= {"other", ""}
    elsewhere = Delivery(Parcels(b"another secret"), place.alive.__contains__)
    forged = [
        *(f"other.{signed}", f".{signed}", signed, "mine.", "mine", f"{place.key}0", "ü.ü"),
        elsewhere.key_of("mine"),
        f"mine.{place.delivery.parcels.name(b'mine')}",  # the name of a parcel that says "mine"
    ]
    for key in forged:
        assert place.get(X_Appca_Key=key.encode().decode("latin-1")).status_code == 403, key
    place.alive -= {"other", ""}
