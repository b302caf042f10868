import os
import time
from pathlib import Path

import pytest

from appca.storage import files, lock

DAY = 86_400
HEX = "0123456789abcdef" * 2


def older(path: Path, seconds: float) -> Path:
    moment = time.time() - seconds
    os.utime(path, (moment, moment))
    return path


def test_text_and_bytes_come_into_their_place_and_nothing_beside_it(tmp_path):
    files.write(tmp_path / "a", "größe")
    files.write(tmp_path / "a", "anew")
    files.write(tmp_path / "b", b"\xff")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "a": b"anew",
        "b": b"\xff",
    }


def test_what_cannot_be_put_in_its_place_leaves_nothing_beside_it(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="directory"):
        files.write(tmp_path / "folder", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    with pytest.raises(OSError, match="No such file"):
        files.write(tmp_path / "nowhere" / "a", "text")


def test_an_owner_cannot_take_a_draft_while_it_is_swept(tmp_path, monkeypatch):
    draft = tmp_path / f".{'0' * 32}"
    draft.mkdir()
    taken, remove = [], files.remove
    monkeypatch.setattr(
        files, "remove", lambda path: (taken.append(lock.is_free(path)), remove(path))
    )
    files.sweep(tmp_path)
    assert taken == [False]
    assert not draft.exists()


def test_only_drafts_are_swept(tmp_path):
    names = [f".{HEX}", f".{HEX}-own.gz", ".profile", f".x{HEX}", HEX, ".DS_Store"]
    for name in names:
        (tmp_path / name).write_text("x")
        older(tmp_path / name, 2 * DAY)
    folder = tmp_path / f".{HEX[::-1]}"
    folder.mkdir()
    (folder / "half").write_text("x")
    older(folder, 2 * DAY)
    files.sweep(tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {".profile", f".x{HEX}", HEX, ".DS_Store"}
    files.sweep(tmp_path / "nowhere")


def test_a_link_is_removed_and_not_what_it_leads_to(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    files.remove(tmp_path / "link")
    assert [path.name for path in tmp_path.rglob("*")] == ["kept", "file"]
    files.remove(tmp_path / "kept")
    files.remove(tmp_path / "kept")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_takes_the_place_of_another_or_leaves_it(tmp_path, monkeypatch):
    for name, text in (("old", "old"), ("draft", "new")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(text)
    rename = Path.replace

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        files.replace_folder(tmp_path / "draft", tmp_path / "old")
    assert (tmp_path / "old" / "file").read_text() == "old"
    monkeypatch.setattr(Path, "replace", rename)
    files.replace_folder(tmp_path / "draft", tmp_path / "old")
    assert (tmp_path / "old" / "file").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


def test_what_a_kill_left_aside_is_put_in_order_by_the_next_replacement(tmp_path):
    target, before, draft = tmp_path / "a", files.aside(tmp_path / "a"), tmp_path / "draft"
    for left in ("old, nothing in its place", "rest of the old, beside the new"):
        for folder in (draft, target, before):
            folder.mkdir(exist_ok=True)
            (folder / "file").write_text(folder.name)
        if left.startswith("old"):
            files.remove(target)
        older(before, 2 * DAY)
        files.sweep(tmp_path)
        assert (before / "file").read_text() == "a.before"
        files.replace_folder(draft, target)
        assert (target / "file").read_text() == "draft", left
        assert [path.name for path in tmp_path.iterdir()] == ["a"], left


def test_a_refused_replacement_keeps_what_stood_aside(tmp_path, monkeypatch):
    for folder in (tmp_path / "draft", files.aside(tmp_path / "a")):
        folder.mkdir()
        (folder / "file").write_text(folder.name)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        files.replace_folder(tmp_path / "draft", tmp_path / "a")
    assert (tmp_path / "a" / "file").read_text() == "a.before"
