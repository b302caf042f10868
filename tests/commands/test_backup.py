"""`appca backup` and `appca restore`: a home comes back as it was, or not at all."""

import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from appca.cli import main
from appca.commands.serving import backup
from appca.data.sources.builtin import load
from appca.data.store import DatasetStore
from appca.runs.configuration import RunConfig, defaults
from appca.runs.fit import fit_run
from appca.runs.home import home
from appca.runs.store import RunStore
from tests.fixtures.contents import FIXTURES


def contents(folder: Path) -> dict[str, bytes]:
    """Return what a home holds that is to be kept."""
    files = [file for name in backup.KEPT for file in (folder / name).rglob("*") if file.is_file()]
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def moved(tmp_path, monkeypatch, capsys) -> Path:
    """Back up the present home, restore it elsewhere, and check that; return the place."""
    assert main(["backup", str(tmp_path / "b.zip")]) == 0
    assert (tmp_path / "b.zip").stat().st_mode & 0o777 == 0o600
    monkeypatch.setenv("APPCA_HOME", str(tmp_path / "restored"))
    assert main(["restore", str(tmp_path / "b.zip")]) == 0
    assert main(["check"]) == 0, capsys.readouterr()
    return tmp_path / "restored"


def test_a_home_with_thirty_works_comes_back(tmp_path, monkeypatch, capsys):
    dataset = load("wine")
    digest = DatasetStore(home()).put(dataset)
    config = RunConfig(digest, {}, "PPCA", defaults("PPCA") | {"n_components": 2})
    result, store = fit_run(dataset, config), RunStore(home())
    for number in range(30):
        settings = config.parameters | {"random_state": number}
        store.save(replace(config, parameters=settings), result, f"work {number}")
    (home() / "runs" / f".{'a' * 32}").mkdir()
    (home() / "runs" / f".{'a' * 32}" / "config.json").write_text("half written")
    before, secret = contents(home()), (home() / "secret")
    secret.write_bytes(b"s" * 32)
    restored = moved(tmp_path, monkeypatch, capsys)
    assert {run.name for run in RunStore(restored).list()} == {f"work {i}" for i in range(30)}
    assert contents(restored) == {k: v for k, v in before.items() if "/.aaaa" not in k}
    assert (restored / "secret").read_bytes() == b"s" * 32
    assert restored.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("version", [1, 2])
def test_the_home_of_an_older_version_is_restored(version, tmp_path, monkeypatch, capsys):
    old = tmp_path / "old"
    shutil.copytree(FIXTURES / f"home_format_{version}", old, copy_function=shutil.copyfile)
    monkeypatch.setenv("APPCA_HOME", str(old))
    runs = {run.id: run.fitted.scores.tobytes() for run in RunStore(old).list()}
    restored = moved(tmp_path, monkeypatch, capsys)
    assert contents(restored) == contents(old)
    assert {run.id: run.fitted.scores.tobytes() for run in RunStore(restored).list()} == runs
    assert len(runs) > 1


def test_what_is_deleted_meanwhile_is_left_out_whole(tmp_path, monkeypatch):
    digests = [DatasetStore(home()).put(load(name)) for name in ("wine", "digits")]
    entries = backup._entries

    def racing(here):
        for entry in entries(here):
            if entry.name == digests[0]:
                monkeypatch.setattr(backup, "_is_kept", lambda path: path.name != digests[0])
                (entry / "ids.npy").rename(tmp_path / "ids.npy")
                (entry / "ids.npy").symlink_to("nowhere")
            yield entry

    monkeypatch.setattr(backup, "_entries", racing)
    monkeypatch.setattr(backup, "_is_kept", lambda path: path.is_file())
    assert main(["backup", str(tmp_path / "b.zip")]) == 0
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        assert not any(digests[0] in name for name in archive.namelist())


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["../evil"], "is no file of `appca backup`"),
        (["runs/../../evil"], "is no file of `appca backup`"),
        (["/etc/evil"], "is no file of `appca backup`"),
        (["open-8501.json"], "is no file of `appca backup`"),
        ([], "is no file of `appca backup`"),
        (["runs/0123456789ab/config.json"], "is damaged"),
        (None, "cannot be read as a backup"),
    ],
)
def test_another_file_changes_nothing(names, sentence, tmp_path, capsys):
    file = tmp_path / "b.zip"
    file.write_bytes(b"PK no zip")
    if names is not None:
        with zipfile.ZipFile(file, "w") as archive:
            for name in names:
                archive.writestr(name, "{half")
    assert main(["restore", str(file)]) == 1
    assert sentence in capsys.readouterr().err
    assert list(home().iterdir()) == []
    assert not (tmp_path / "evil").exists()


def test_a_home_with_work_is_not_written_over(tmp_path, capsys):
    assert main(["backup", str(tmp_path / "b.zip")]) == 1
    assert "Nothing is stored" in capsys.readouterr().err
    DatasetStore(home()).put(load("wine"))
    assert main(["backup", str(tmp_path / "b.zip")]) == 0
    assert main(["restore", str(tmp_path / "b.zip")]) == 1
    assert "holds work already" in capsys.readouterr().err
