"""Tests of access control at every entry point: origins, hosts, keys, paths and sizes."""

import asyncio
import gc
import hashlib
import io
import json
import os
import resource
import runpy
import signal
import stat
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import MagicMock, Mock
from urllib.parse import quote, unquote

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.datastructures import Headers

from appca.canvas.blobs import Parcels
from appca.canvas.html import closed_bundle
from appca.cli import main
from appca.commands import app
from appca.runs.home import home
from appca.storage import access_control, lock
from appca.ui import arrivals, canvas, server
from appca.ui.arrivals import MOST_FILES, DroppedFiles, Drops
from appca.ui.canvas import HOST, MOST_QUESTIONS, MOST_ROWS, SCRIPT, Delivery, RowQuestions
from appca.ui.server import Guard, place
from tests.conftest import ROOT

HERE = "127.0.0.1:8501"


class Answer(NamedTuple):
    """What comes back of a request."""

    status: int | str  # a word for what is no answer to HTTP
    headers: Headers
    content: bytes
    received: int  # messages with parts of the body that were asked for


def ask(door: Any, path: str, method: str = "GET", body: bytes = b"", **headers: Any) -> Answer:
    """Ask an application itself: clients refuse to send half of these requests."""
    usual = {"Host": HERE} | ({"Content_Length": str(len(body))} if method == "POST" else {})
    path, _, query = path.partition("?")
    scope = {
        "type": method.lower() if method in ("WEBSOCKET", "LIFESPAN") else "http",
        "method": method,
        "path": unquote(path),
        "query_string": query.encode(),
        "server": ("127.0.0.1", 8501),
        "headers": [
            (name.replace("_", "-").lower().encode(), value.encode("latin-1"))
            for name, value in (usual | headers).items()
            if value is not None
        ],
    }
    sent: list[dict[str, Any]] = []
    chunks, received = [body[at : at + 65_536] for at in range(0, len(body), 65_536)] or [b""], []

    async def receive() -> dict[str, Any]:
        received.append(1)
        return {"type": "http.request", "body": chunks.pop(0), "more_body": len(chunks) > 1}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    with ThreadPoolExecutor(1) as apart:  # Playwright's loop may run in this thread
        apart.submit(lambda: asyncio.run(door(scope, receive, send))).result()
    content = b"".join(bytes(one.get("body", b"")) for one in sent[1:])
    status = sent[0].get("status", sent[0]["type"])
    return Answer(status, Headers(raw=sent[0].get("headers", [])), content, len(received))


# pages of other origins, and addresses for others

OWN = [
    (HERE, "http://127.0.0.1:8501"),
    ("lab-pc", "https://lab-pc:443"),
    ("lab-pc:80", "http://LAB-PC"),
    ("[::1]:8501", "http://[::1]:8501"),
    (HERE, "https://proxy.example"),  # that is configured
]
FOREIGN = [
    (HERE, "http://127.0.0.1:3000"),  # another program of this machine
    *((HERE, f"http://{place}") for place in ("localhost:8501", "proxy.example", "[")),
    (HERE, "https://proxy.example.evil.example"),
    ("lab-pc:80", "https://lab-pc"),
    *((HERE, f"http://{own}") for own in (f"me@{HERE}", f"{HERE}/x", "127.0.0.1:99999")),
    (HERE, "null"),
    ("", "http://127.0.0.1:8501"),
]


@pytest.mark.parametrize("token", ["", "a-secret"])
@pytest.mark.parametrize("method", ["WEBSOCKET", "POST"])
def test_a_page_of_another_origin_is_refused_with_and_without_a_token(token, method):
    seen = []

    async def inside(scope: Any, _: Any, send: Any) -> None:
        seen.append([name for name, _ in scope["headers"]])
        await send({"type": "passed"})

    guard = Guard(inside, token, {place("https://proxy.example")})
    kept = f"appca-8501={access_control.cookie('a-secret')}"
    for pairs, expected in ((OWN, {"passed"}), (FOREIGN, {403, "websocket.close"})):
        for host, origin in pairs:
            answer = ask(guard, "/x", method, Host=host, Origin=origin, Cookie=kept)
            assert answer.status in expected, (host, origin)
    assert len(seen) == len(OWN)
    assert all(b"origin" not in names for names in seen), "Streamlit would compare it otherwise"


async def page(_scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})


def test_a_server_may_be_framed_by_those_alone_that_are_named():
    for frames in ([], ["https://portal.example"]):
        answer = ask(Guard(page, "", (), frames), "/")
        policy = " ".join(["frame-ancestors 'self'", *frames])
        assert answer.headers["content-security-policy"] == policy


def test_the_browser_s_command_line_has_no_token_and_its_file_is_private(monkeypatch, capsys):
    seen, started = {}, []

    class Ended:
        """A server that ends at once."""

        stdin = None

        def wait(self, *_):
            """Say what the home holds while a browser may look."""

        terminate = poll = wait

    def look(address):
        page = home() / app.PAGE
        seen["address"], seen["text"] = address, page.read_text()
        seen["rights"] = stat.S_IMODE(page.stat().st_mode)

    monkeypatch.setattr(app, "_started", lambda _, token: started.append(token) or Ended())
    monkeypatch.setattr(app, "_wait", lambda *_: None)
    monkeypatch.setattr(app.webbrowser, "open", look)
    assert main(["wine", "--port", "8765"]) == 0
    (secret,) = started
    assert "token" not in seen["address"]
    assert seen["address"].startswith("file://")
    assert seen["rights"] == 0o600
    assert seen["text"].partition("token=")[2].partition('"')[0] == secret
    assert f"token={secret} " in capsys.readouterr().out
    assert not (home() / app.PAGE).exists()


LISTENS = [  # address, hosts, guarded, refused
    *((address, [], False, False) for address in ("127.9.9.9", "::1", "localhost")),
    *((address, [], False, True) for address in ("0.0.0.0", "", "localhost.evil.example")),
    (None, ["localhost"], False, True),
    ("10.0.0.7", ["localhost", "127.0.0.1", "[::1]"], False, True),
    ("::", ["lab-pc"], False, False),
    ("0.0.0.0", ["localhost"], True, False),
]


def test_an_address_of_all_networks_is_refused_in_one_sentence(tmp_path):
    """By Streamlit's own command, too. What a server does that has started: tests/browser."""
    for address, hosts, guarded, refused in LISTENS:
        sentence = access_control.refusal(address, hosts, guarded=guarded)
        assert (sentence is not None) == refused, address
        assert sentence is None or sentence.endswith("add --behind-proxy.")
    usual = {key: text for key, text in os.environ.items() if key != access_control.TOKEN}
    started = subprocess.run(
        [sys.executable, "-m", "streamlit", "run", "app.py", "--server.address=0.0.0.0"],
        cwd=ROOT,
        env=usual | {"APPCA_HOME": str(tmp_path), "STREAMLIT_SERVER_HEADLESS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    told = started.stdout + started.stderr
    assert started.returncode not in (0, None)
    assert told.count("is open to others") == 1
    assert "Traceback" not in told


def test_proxies_are_named_by_an_option_or_a_variable_and_many_files_may_be_open(monkeypatch):
    named = {"server.corsAllowedOrigins": ["https://proxy.example"]}
    monkeypatch.setattr("streamlit.get_option", named.get)
    monkeypatch.setenv("APPCA_ORIGINS", "https://other.example, null")
    (middleware,) = server.middleware()
    wanted = {place("https://proxy.example"), place("https://other.example")}
    assert middleware.kwargs["origins"] == wanted
    _, hard = before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        server.allow_many_files()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= min(hard, 1 << 16)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("users", ["ann,bob", ""])
def test_a_hub_takes_the_names_of_its_accounts_from_the_provider_of_logins(users, monkeypatch):
    asked, c = [], MagicMock()
    ends = {f"{end}_endpoint": end for end in ("authorization", "token", "userinfo")}
    monkeypatch.setattr(
        "urllib.request.urlopen",
        lambda place, **_: asked.append(place) or io.BytesIO(json.dumps(ends).encode()),
    )
    monkeypatch.setenv("APPCA_HUB_USERS", users)
    for name in ("ISSUER", "CLIENT_ID", "CLIENT_SECRET", "CALLBACK"):
        monkeypatch.setenv(f"OIDC_{name}", f"https://{name}.example/")
    file = ROOT / "deploy" / "jupyterhub" / "jupyterhub_config.py"
    runpy.run_path(str(file), {"get_config": lambda: c})
    assert asked == ["https://ISSUER.example/.well-known/openid-configuration"]
    login, who = c.GenericOAuthenticator, c.Authenticator
    assert (login.authorize_url, login.token_url, login.userdata_url) == tuple(ends.values())
    assert (login.username_claim, login.enable_pkce) == ("preferred_username", True)
    assert who.allowed_users == {*filter(None, users.split(","))}
    assert who.allow_all == (users == "")


# the token of a link, and the cookie that it is exchanged for

KEY = "a-secret"
COOKIE = f"appca-8501={access_control.cookie(KEY)}"


async def inside(scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "passed"})


def test_the_routes_answer_no_stranger_and_health_says_whether_the_home_can_be_written(monkeypatch):
    assert {f"/{one}" for one in server.LATE} == {canvas.PREFIX, arrivals.PREFIX}
    door = Starlette(routes=server.routes())
    for method, path, status in (
        ("GET", f"/canvas/{'0' * 32}", 403),  # without a key
        ("POST", "/drop/0123456789ab", 403),
        ("DELETE", f"/canvas/{'0' * 32}", 405),
        ("GET", "/canvas/a/b/c", 404),
    ):
        assert ask(door, path, method).status == status
    assert ask(door, "/healthz").content == b'{"status":"ok","writable":true}'
    refuse = Mock(side_effect=OSError(30, "Read-only file system"))
    monkeypatch.setattr(server.files, "check_place", refuse)
    answer = ask(door, "/healthz")
    assert answer.status == 503
    assert b"the home cannot be written: Read-only file system" in answer.content


def test_a_link_is_exchanged_for_a_cookie_that_opens_all():
    guard, link = Guard(inside, KEY), f"/?data=abc&token={KEY}&k=3"
    assert ask(guard, link, "HEAD").status == 403
    answer = ask(guard, link)
    assert (answer.status, answer.headers["location"]) == (303, "/?data=abc&k=3")
    cookie = answer.headers["set-cookie"]
    assert all(words in cookie for words in ("HttpOnly", "SameSite=lax"))
    assert not any(words in cookie for words in ("Secure", KEY))
    name = cookie.partition(";")[0]
    for method in ("GET", "WEBSOCKET"):
        assert ask(guard, "/_stcore/stream", method, cookie=name).status == "passed"
    assert ask(guard, link).status == 303
    assert ask(guard, f"/?token={name.partition('=')[2]}").status == 403
    assert "Secure" in ask(guard, link, X_Forwarded_Proto="https").headers["set-cookie"]
    away = ask(guard, f"//evil.example?token={KEY}")
    assert away.headers["location"] == "/evil.example", "a path leads to no other host"
    for path, method in (("/_stcore/health", "GET"), ("", "LIFESPAN")):
        assert ask(guard, path, method).status == "passed"
    assert ask(Guard(inside, ""), "/").status == "passed"


@pytest.mark.parametrize(
    ("query", "cookie"),
    [
        *((query, "") for query in ("", "token=", "token=a-secre", "token=.", "token=%FF")),
        (f"TOKEN={KEY}", ""),
        *(("", cookie) for cookie in ("appca-8501=x", f"appca-8501={KEY}")),
        ("", COOKIE.replace("8501", "8502")),
    ],
)
def test_nobody_else_is_let_in(query, cookie):
    guard = Guard(inside, KEY)
    assert ask(guard, f"/?{query}", cookie=cookie).status == 403
    refused = ask(guard, f"/_stcore/stream?{query}", "WEBSOCKET", cookie=cookie)
    assert refused.status == "websocket.close"


def test_a_proxy_with_the_token_passes_pages_on_but_no_websocket_without_the_cookie():
    """jupyter-server-proxy adds the header to websockets that nobody has logged in for, too."""
    guard, header = Guard(page, KEY), {"X_Appca_Token": KEY}
    answer = ask(guard, "/", **header)
    assert answer.status == 200
    assert answer.headers["set-cookie"].partition(";")[0] == COOKIE
    assert "set-cookie" not in ask(guard, "/", cookie=COOKIE, **header).headers
    assert ask(guard, "/", X_Appca_Token="other").status == 403
    assert ask(Guard(page, ""), "/", X_Appca_Token="").status == 200
    assert ask(guard, "/_stcore/stream", "WEBSOCKET", **header).status == "websocket.close"
    passed = ask(Guard(inside, KEY), "/", "WEBSOCKET", cookie=COOKIE, **header)
    assert passed.status == "passed"


# the routes of the canvas

CONTENT = b"the rows of somebody"


class Place:
    """A server with one parcel, one data set to ask about, and two sessions, one of them gone."""

    def __init__(self) -> None:
        self.alive = {"mine", "closed", "other"}
        hosts = ("appca.example", "10.0.0.7")
        parcels = Parcels(b"of this installation")
        self.delivery = Delivery(parcels, self.alive.__contains__, lambda: hosts)
        self.name = parcels.offer(CONTENT)
        self.asked: list[list[int]] = []
        self.texts = self.delivery.ask("data", RowQuestions(10, {"texts": self.told}))
        names = ("mine", "closed", "other")
        self.key, self.closed, self.other = map(self.delivery.key_of, names)
        self.alive.remove("closed")
        self.app = Starlette(routes=self.delivery.routes())

    def told(self, rows: np.ndarray) -> dict[str, Any]:
        self.asked.append(rows.tolist())
        return {"ids": [str(row) for row in rows]}

    def get(self, name: str | None = None, method: str = "GET", **headers: str) -> Answer:
        path = f"/canvas/{self.name if name is None else name}"
        return ask(self.app, path, method, **{"X_Appca_Key": self.key} | headers)

    def post(self, content: bytes, what: str = "texts", **headers: str) -> Answer:
        path = f"/canvas/{self.texts}/{what}"
        return ask(self.app, path, "POST", content, **{"X_Appca_Key": self.key} | headers)


@pytest.fixture
def at() -> Place:
    return Place()


def rows(*numbers: int) -> bytes:
    return np.array(numbers, "<u4").tobytes()


ATTACKS: dict[int, list[dict[str, Any] | str | bytes]] = {  # by status: headers, name or body
    403: [
        *({"X_Appca_Key": key} for key in ("", "x" * 50_000, "ÿ¼")),
        {"X_Appca_Key": "mine"},  # the session instead of its key
        {"method": "HEAD", "X_Appca_Key": ""},
        *({"Host": f"127.0.0.1{end}"} for end in (".evil.example", "@evil.example", "/x")),
        *({"Host": host} for host in ("127.0.0.1:99999999", "")),
        {"Origin": "http://127.0.0.1:3000"},  # another program of this machine
        *({"Origin": origin} for origin in ("", "null", "http://[")),
        *({"Sec_Fetch_Site": f"{how}-site"} for how in ("cross", "same")),
    ],
    405: [{"method": "OPTIONS", "Origin": "http://evil.example"}, {"method": "POST"}],
    404: [
        "0" * 32,
        hashlib.blake2b(CONTENT, digest_size=16).hexdigest(),  # of the content, without the secret
        "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "٠" * 32,
        "a" * 100_000,
    ],
    400: [rows(1, 10), rows(2**32 - 1), b"", b"\0\0\0", rows(1) * (MOST_ROWS + 1), bytes(10**8)],
}


def test_an_attack_on_the_canvas_gets_a_number_and_nothing_else(at):
    def refused(answer: Answer, status: int, attack: object) -> None:
        assert answer.status == status, attack
        assert CONTENT not in answer.content
        assert len(answer.content) < 30  # at most “Method Not Allowed”
        said = str(answer.headers).lower()
        assert not any(word in said for word in ("access-control", "immutable", "set-cookie"))

    for status, attacks in ATTACKS.items():
        for attack in attacks:
            if isinstance(attack, dict):
                answer = at.get(**attack)
            else:
                answer = at.get(attack) if isinstance(attack, str) else at.post(attack)
            refused(answer, status, str(attack)[:80])
    refused(at.get(X_Appca_Key=at.closed), 403, "the key of a window that is gone")
    for name in (at.name.upper(), at.name + "%00", at.texts):
        refused(at.get(name), 404, name)
    for headers in ({"X_Appca_Key": ""}, {"Origin": "http://evil.example"}):
        refused(at.post(rows(1), **headers), 403, headers)
    for what in ("secrets", "images"):  # it has no images
        refused(at.post(rows(1), what), 404, what)
    assert at.asked == []


def test_a_page_of_this_server_gets_what_it_asks_for(at):
    own = {"Origin": f"http://{HERE}", "Sec_Fetch_Site": "same-origin"}
    for headers in ({}, own, {"Range": "bytes=" + "0-," * 5000}, {"Range": "bytes=-5"}):
        answer = at.get(**headers)
        assert (answer.status, answer.content) == (200, CONTENT)
    for host in ("[::1]:8501", "appca.example", "10.0.0.7:80", "LOCALHOST"):
        assert at.get(Host=host, Origin=f"http://{host}").status == 200
    assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"
    assert answer.headers["content-encoding"] == "identity"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert answer.headers["x-content-type-options"] == "nosniff"
    said = at.post(rows(7, 0, 7))
    assert json.loads(said.content) == {"ids": ["7", "0", "7"]}
    assert said.headers["cache-control"] == "no-store"
    code = at.get(SCRIPT, X_Appca_Key="")
    assert (code.status, code.content.decode()) == (200, closed_bundle(HOST))
    assert code.headers["content-type"].startswith("text/javascript")
    assert "immutable" in code.headers["cache-control"]
    other = f"{'0' * 16}.js"
    assert [at.get(other, X_Appca_Key=key).status for key in ("", at.key)] == [403, 404]


def test_a_window_s_texts_are_answered_after_any_number_of_other_pictures(at):
    def question(what: str, *canvas: str) -> str:
        return at.delivery.ask(what, RowQuestions(10, {"texts": at.told}), canvas or None)

    at.texts = question("my picture", "mine", "canvas")
    beside, ahead = question("beside it", "mine", "second"), question("one step away")
    for number in range(MOST_QUESTIONS + 4):
        question(f"other {number}", "other", "canvas")
        question(f"ahead {number}")
    assert at.post(rows(3)).status == 200
    for at.texts, status in ((beside, 200), (ahead, 404)):
        assert at.post(rows(3)).status == status
    assert len(at.delivery._questions) == MOST_QUESTIONS + 3
    at.alive.remove("other")
    at.texts = question("my next picture", "mine", "canvas")
    assert len(at.delivery._questions) <= MOST_QUESTIONS + 2, "windows that are gone keep none"
    assert at.post(rows(3)).status == 200


def test_a_key_is_of_one_session_and_nobody_signs_one_without_the_secret(at):
    at.alive.add("")
    signed = at.key.rpartition(".")[2]
    assert at.other != at.key
    assert at.get(X_Appca_Key=at.other).status == 200
    elsewhere = Delivery(Parcels(b"another secret"), at.alive.__contains__)
    forged = [
        *(f"other.{signed}", f".{signed}", signed, "mine.", f"{at.key}0", "ü.ü"),
        elsewhere.key_of("mine"),
        f"mine.{at.delivery.parcels.name(b'mine')}",  # the name of a parcel that says "mine"
    ]
    for key in forged:
        assert at.get(X_Appca_Key=key.encode().decode("latin-1")).status == 403, key


# files dropped on a window

DROP = "0123456789ab"


class Window(Place):
    """A server with two windows, onto which files may be dropped."""

    def __init__(self, scratch: Path) -> None:
        super().__init__()
        self.scratch = scratch
        session_of, is_alive = self.delivery.session_of, self.alive.__contains__
        self.drops = Drops(session_of, is_alive, lambda: scratch, lambda: 10_000)
        self.app = Starlette(routes=self.drops.routes())

    def give(self, content: bytes, name: str = "x.csv", drop: str = DROP, **headers: Any) -> Answer:
        usual = {"X_Appca_Key": self.key, "X_Appca_Name": quote(name)}
        return ask(self.app, f"/drop/{drop}", "POST", content, **usual | headers)

    def kept(self) -> list[str]:
        return sorted(path.read_text() for path in self.scratch.rglob("*") if path.is_file())


@pytest.fixture
def window(tmp_path) -> Window:
    return Window(tmp_path / "uploads")


def test_what_a_session_dropped_goes_with_it_and_not_while_it_may_come_back(window, monkeypatch):
    assert window.give(b"mine").status == 204
    window.alive.remove("mine")
    assert window.give(b"mine").status == 403
    assert window.give(b"other", X_Appca_Key=window.other).status == 204
    window.drops.tidy()
    assert len(window.kept()) == 2, "the network may be lost for a moment only"
    monkeypatch.setattr(arrivals, "STALE_SECONDS", -1.0)
    window.alive.add("mine")
    window.drops.tidy()
    assert len(window.kept()) == 2
    window.alive.remove("mine")
    assert window.give(b"1", drop="f" * 12, X_Appca_Key=window.other).status == 204
    assert window.kept() == ["1", "other"]
    assert window.drops.take("other", DROP) is not None


def test_strangers_drop_nothing_and_a_name_is_never_a_path(window, tmp_path):
    for headers in ({"X_Appca_Key": "guessed"}, {"Origin": "https://evil.example"}):
        answer = window.give(b"a,b\n1,2\n", **headers)
        assert (answer.status, answer.content) == (403, b""), headers
    assert not window.scratch.exists()
    for name in ("../../evil.csv", "/etc/evil.csv", "C:\\evil.csv", "a/b\0.csv"):
        assert window.give(b"1", name).status == 204
    assert not list(tmp_path.parent.rglob("*evil*"))
    found = window.drops.take("mine", DROP)
    assert [path.name for _, path in found.files] == ["0", "1", "2", "3"]
    (folder,) = window.scratch.iterdir()
    assert sorted(path.name for path in folder.iterdir()) == ["0", "1", "2", "3"]
    found.remove()
    for drop in ("..", "0123456789aG", "0123", "0123456789ab0"):
        assert window.give(b"1", drop=drop).status in (400, 404)
    assert [window.give(b"1", name=name).status for name in ("", "n" * 1001)] == [400, 400]
    assert not window.kept()


def test_a_file_is_admitted_by_its_length_before_any_of_it_is_received(window, monkeypatch):
    for status, headers in (
        *((411, {"Content_Length": n}) for n in (None, "-1", "1e3", "²", "9" * 5000)),
        (411, {"Content_Length": "3", "Transfer_Encoding": "chunked"}),
        (413, {"Content_Length": "10001"}),
    ):
        answer = window.give(b"1,2", **headers)
        assert (answer.status, answer.received) == (status, 0), headers
        assert answer.content.startswith('{"refused":"“x.csv” was not stored, because '.encode())
        assert answer.content.count(b". ") == 0
    assert b"the limit is 10.0 kB; use a smaller file." in window.give(b"x" * 10_001).content
    answer = window.give(b"x" * 9000, Content_Length="10")
    assert answer.status == 413
    assert "longer than announced" in answer.content.decode()
    assert window.kept() == []
    assert MOST_FILES == 5000
    monkeypatch.setattr(arrivals, "MOST_FILES", 2)
    assert [window.give(b"1").status for _ in range(3)] == [204, 204, 413]


def test_two_windows_see_their_own_files_only_and_what_nobody_refers_to_goes(window):
    window.give(b"mine")
    window.give(b"other", X_Appca_Key=window.other)
    assert window.drops.take("other", "f" * 12) is None
    assert window.drops.take("other", DROP) is None, "another drop has taken its place"
    mine = window.drops.take("mine", DROP)
    assert [path.read_bytes() for _, path in mine.files] == [b"mine"]
    assert window.drops.take("mine", DROP) is None
    del mine
    gc.collect()
    assert "mine" not in window.kept()


def test_a_window_s_files_stay_however_old_and_those_of_a_killed_server_go(window):
    """Servers that share a home would otherwise remove each other's files."""

    inlet, outlet = os.pipe()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*fork")
        server = os.fork()
    if server == 0:
        dead = DroppedFiles(window.scratch)
        dead.place("x").write_text("1")
        os.write(outlet, b"there")
        signal.pause()
    os.read(inlet, 5)
    mine = DroppedFiles(window.scratch)
    mine.place("y").write_text("2")
    for folder in window.scratch.iterdir():
        os.utime(folder, (0, 0))
    window.drops.tidy()
    assert len(window.kept()) == 2
    os.kill(server, signal.SIGKILL)
    os.waitpid(server, 0)
    window.drops.tidy()
    assert window.kept() == ["2"]
    assert lock.is_free(mine.files[0][1].parent) is False
    mine.remove()
    assert not mine.is_there
