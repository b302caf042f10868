"""Files of Streamlit's uploaders: admitted by their length, those of all windows together."""

import asyncio
import json
import socket
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from streamlit import config, runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from appca.ui.parts.text import markdown
from appca.ui.server import admission, inside
from appca.ui.server.admission import AROUND, UPLOAD, Admission
from tests.attacks.test_doors import served
from tests.browser.conftest import ROOT, Server, _wait_until_healthy
from tests.ui.conftest import sentences, start  # noqa: F401

MB = 10**6


class Door:
    """Streamlit's route, which keeps what it is sent, behind the admission."""

    def __init__(self, manager: MemoryUploadedFileManager) -> None:
        self.manager, self.door = manager, Admission(self._keep)
        self.while_coming = lambda: None
        self.received = 0

    async def _keep(self, scope, receive, send) -> None:
        self.received += 1
        self.while_coming()
        _, _, rest = scope["path"].partition(UPLOAD)
        session, _, file = rest.partition("/")
        length = int(dict(scope["headers"])[b"content-length"])
        record = UploadedFileRec(file, file, "text/csv", bytes(length))
        self.manager.add_file(session_id=session, file=record)
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    def put(self, session: str, file: str, mb: float | str | None, **more: str) -> tuple[int, str]:
        """Announce a file of so many MB; return the status and what is said."""
        length = mb if isinstance(mb, str) or mb is None else str(int(mb * MB))
        headers = {"content-length": length} | more
        there = {name: value for name, value in headers.items() if value is not None}
        raw = [(name.encode(), value.encode()) for name, value in there.items()]
        path = f"{UPLOAD}{session}/{file}"
        scope = {"type": "http", "method": "PUT", "path": path, "query_string": b"", "headers": raw}
        sent = []

        async def receive():
            raise AssertionError("it is refused before it is received")

        async def send(message) -> None:
            sent.append(message)

        with ThreadPoolExecutor(1) as apart:
            apart.submit(asyncio.run, self.door(scope, receive, send)).result()
        return sent[0]["status"], sent[1]["body"].decode()


@pytest.fixture
def door(monkeypatch) -> Door:
    """Return the door of a server that runs; files of all windows may have 40 MB."""
    manager = MemoryUploadedFileManager("/upload")
    here = SimpleNamespace(
        uploaded_file_mgr=manager, is_active_session=lambda one: one != "made up"
    )
    monkeypatch.setattr(runtime, "exists", lambda: True)
    monkeypatch.setattr(runtime, "get_instance", lambda: here)
    monkeypatch.setenv("APPCA_UPLOADS", "40MB")
    monkeypatch.setattr(admission, "_refused", admission.defaultdict(list))
    return Door(manager)


def told(monkeypatch, session: str) -> list[str]:
    monkeypatch.setattr(inside, "session", lambda: session)
    return admission.refusals()


def test_one_window_holds_half_and_all_together_the_whole(door, monkeypatch):
    assert door.put("ann", "a.csv", 12) == (204, "")
    status, said = door.put("ann", "b.csv", 10)
    assert (status, said) == (
        413,
        "A file of 10 MB was not kept, since files in the uploaders of this window may take "
        "20 MB; take some out, or use a smaller one.",
    )
    assert told(monkeypatch, "ann") == [said]
    assert told(monkeypatch, "ann") == [], "once"
    assert door.put("bob", "c.csv", 19)[0] == 204
    status, of_all = door.put("cy", "d.csv", 10)
    assert status == 413
    assert "of all windows may take 40 MB" in of_all
    door.manager.remove_session_files("bob")
    assert door.put("cy", "d.csv", 10)[0] == 204, "a window that is gone makes room"


def test_fifty_windows_do_not_fill_the_memory(door):
    kept = [door.put(f"window {i}", "bomb.npy", 4)[0] for i in range(50)]
    assert kept.count(204) == 10
    assert door.received == 10


def test_what_is_on_its_way_counts(door):
    others = []
    door.while_coming = lambda: others.append(door.put("ann", "b.csv", 12)[0])
    assert door.put("ann", "a.csv", 12)[0] == 204
    assert others == [413]
    door.while_coming = lambda: None
    assert door.put("ann", "c.csv", 1)[0] == 204
    assert not door.door._coming, "nothing is on its way"


@pytest.mark.parametrize(
    ("length", "more"),
    [(None, {}), ("", {}), ("-1", {}), ("1e3", {}), ("5", {"transfer-encoding": "chunked"})],
)
def test_a_file_without_a_length_is_refused(door, length, more):
    status, said = door.put("ann", "a.csv", length, **more)
    assert status == 411
    assert said == (
        "The file was not kept, since its length was not announced; send Content-Length."
    )
    assert door.received == 0


@pytest.fixture
def _settings_of_the_project(monkeypatch) -> None:
    """Read the app's settings: Streamlit keeps those of the folder where a test asked first."""
    monkeypatch.chdir(ROOT)
    config.get_config_options(force_reparse=True)


@pytest.mark.usefixtures("_settings_of_the_project")
def test_a_file_beyond_the_greatest_is_refused_and_a_made_up_session_is_told_nothing(door):
    status, said = door.put("made up", "a.csv", f"{(1000 << 20) + AROUND + 1}")
    assert status == 413
    assert said.startswith("A file of 1,050 MB was not kept, since files may take 1,049 MB")
    assert not admission._refused


def test_a_page_says_what_was_not_kept(start, monkeypatch):  # noqa: F811
    app = start("data/open")
    monkeypatch.setattr(admission, "refusals", lambda: ["“a*b*.csv” was not kept."])
    assert sentences(app.run()) == ["“a*b*.csv” was not kept."]
    assert app.error[0].value == markdown("“a*b*.csv” was not kept.")


def test_the_bound_is_a_quarter_of_the_memory_unless_one_is_set(monkeypatch):
    limits = "appca.jobs.turns.limits.total_memory"
    monkeypatch.delenv("APPCA_UPLOADS", raising=False)
    monkeypatch.setattr(limits, lambda: 8 * 10**9)
    assert admission.most_bytes() == 2 * 10**9
    monkeypatch.setattr(limits, lambda: None)
    assert admission.most_bytes() == admission.MOST_BYTES
    monkeypatch.setenv("APPCA_UPLOADS", "300MB")
    assert admission.most_bytes() == 3 * 10**8


def answer(port: int, *lines: str) -> tuple[int, str]:
    """Return status and body that a server answers to the head of a request alone."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        with connection.makefile("rb") as stream:
            status = int(stream.readline().split()[1])
            head = iter(stream.readline, b"\r\n")
            length = next(
                int(one.split()[1]) for one in head if one.lower().startswith(b"content-l")
            )
            list(head)
            return status, stream.read(length).decode()


def test_a_server_answers_before_a_byte_of_the_file_is_sent():
    process, port = served("--server.address=127.0.0.1")
    try:
        server = Server(f"http://127.0.0.1:{port}", ROOT, process, ROOT / "README.md")
        _wait_until_healthy(server)
        head = (f"PUT {UPLOAD}a/b HTTP/1.1", f"Host: 127.0.0.1:{port}")
        status, said = answer(port, *head, "Transfer-Encoding: chunked")
        assert (status, said.split(", since ")[0]) == (411, "The file was not kept")
        status, said = answer(port, *head, "Content-Length: 99999999999")
        assert (status, said.split(", since ")[0]) == (413, "A file of 100,000 MB was not kept")
        assert json.loads(answer(port, "GET /_stcore/host-config HTTP/1.1", head[1])[1])
    finally:
        process.terminate()
        process.communicate(timeout=20)
