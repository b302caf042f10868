"""Uploaded files of all windows together do not take the server's memory."""

from types import SimpleNamespace

import pytest
from streamlit import runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from appca.ui.frame import upload_limit
from appca.ui.parts.text import markdown
from tests.ui.conftest import sentences


@pytest.fixture
def manager(monkeypatch) -> MemoryUploadedFileManager:
    """Return the manager of a server that runs."""
    found = MemoryUploadedFileManager("/upload")
    monkeypatch.setattr(runtime, "exists", lambda: True)
    monkeypatch.setattr(runtime, "get_instance", lambda: SimpleNamespace(uploaded_file_mgr=found))
    monkeypatch.setenv("APPCA_UPLOADS", "10MB")
    upload_limit.bound()
    upload_limit.bound()  # at every run of a page
    return found


def put(manager: MemoryUploadedFileManager, session: str, name: str, mb: float) -> bool:
    """Whether the file is kept."""
    file = UploadedFileRec(name, name, "text/csv", bytes(int(mb * 10**6)))
    manager.add_file(session_id=session, file=file)  # as Streamlit's route does
    return bool(manager.get_files(session, [name]))


def told(monkeypatch, session: str) -> list[str]:
    context = SimpleNamespace(session_id=session)
    monkeypatch.setattr(upload_limit, "get_script_run_ctx", lambda: context)
    return upload_limit.refusals()


def test_one_window_holds_half_and_all_together_the_whole(manager, monkeypatch):
    assert put(manager, "ann", "a.csv", 3)
    assert not put(manager, "ann", "b.csv", 2.5)
    assert put(manager, "bob", "c.csv", 4.5)
    assert not put(manager, "cy", "d.csv", 2.6)
    assert told(monkeypatch, "ann") == [
        "“b.csv” of 2 MB was not kept, since files in the uploaders of this window may take "
        "5 MB; take some out, or use a smaller file."
    ]
    assert told(monkeypatch, "ann") == [], "once"
    (of_all,) = told(monkeypatch, "cy")
    assert "of all windows may take 10 MB" in of_all
    manager.remove_session_files("bob")
    assert put(manager, "cy", "d.csv", 2.6), "a window that is gone makes room"


def test_a_page_says_what_was_not_kept(start, monkeypatch):
    app = start("data/open")
    monkeypatch.setattr(upload_limit, "refusals", lambda: ["“a*b*.csv” was not kept."])
    assert sentences(app.run()) == ["“a*b*.csv” was not kept."]
    assert app.error[0].value == markdown("“a*b*.csv” was not kept.")


def test_the_bound_is_a_quarter_of_the_memory_unless_one_is_set(monkeypatch):
    monkeypatch.setattr(upload_limit, "total_memory", lambda: 8 * 10**9)
    assert upload_limit.most_bytes() == 2 * 10**9
    monkeypatch.setattr(upload_limit, "total_memory", lambda: None)
    assert upload_limit.most_bytes() == upload_limit.MOST_BYTES
    monkeypatch.setenv("APPCA_UPLOADS", "300MB")
    assert upload_limit.most_bytes() == 3 * 10**8
