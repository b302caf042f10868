"""``appca backup``: one file of all that a home holds, while the app may be open."""

import argparse
import os
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from appca.commands import parsing
from appca.commands.terminal import say
from appca.runs.check import FOLDERS
from appca.runs.home import SECRET, home
from appca.storage import atomic
from appca.words.errors import InputError
from appca.words.wording import counted

EXAMPLES = ("python -m appca backup appca-backup.zip",)
KEPT = tuple(name for name in FOLDERS if name != "uploads")


def add(commands: parsing.Commands) -> None:
    """Add the command."""
    text = "write all that is stored to one file; the app may be open"
    parser = parsing.command(commands, "backup", text, EXAMPLES, run)
    parser.add_argument("file", type=Path, metavar="FILE", help="a zip to write")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Write the file, which is replaced when all of it is there."""
    here = home()
    if not any((here / name).is_dir() for name in KEPT):
        msg = f"Nothing is stored in {here}; name the home to back up by APPCA_HOME."
        raise InputError(msg)
    n_files = 0
    with (
        atomic.growing(options.file) as stream,
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
    ):
        os.fchmod(stream.fileno(), 0o600)  # as private as the home
        for entry in _entries(here):
            n_files += _add(archive, entry, here)
    say(f"{counted(n_files, 'file')} of {here} are in {options.file}")
    return {"home": str(here), "file": str(options.file), "files": n_files}


def _entries(here: Path) -> Iterator[Path]:
    """Yield what is stored: runs, data sets and others, each whole or not at all."""
    yield here / SECRET
    for name in KEPT:
        if (here / name).is_dir():
            yield from sorted((here / name).iterdir())


def _add(archive: zipfile.ZipFile, entry: Path, here: Path) -> int:
    """Add an entry; one that is deleted meanwhile is left out whole. Return the files added."""
    files = sorted(filter(_is_kept, [entry, *entry.rglob("*")]))
    if atomic.is_draft(entry):
        return 0
    with ExitStack() as opened:
        try:
            streams = [opened.enter_context(path.open("rb")) for path in files]
        except FileNotFoundError:
            return 0
        for path, stream in zip(files, streams, strict=True):
            name = path.relative_to(here).as_posix()
            with archive.open(zipfile.ZipInfo(name), "w", force_zip64=True) as member:
                shutil.copyfileobj(stream, member, 1 << 22)
    return len(files)


def _is_kept(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and not atomic.is_draft(path)
