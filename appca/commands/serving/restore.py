"""``appca restore``: a home as it was when `appca backup` wrote it, also by an older version."""

import argparse
import shutil
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

from appca.commands import parsing
from appca.commands.check import checked
from appca.commands.serving.backup import KEPT
from appca.commands.terminal import say
from appca.runs.home import SECRET, home, private
from appca.storage import atomic
from appca.words.errors import InputError
from appca.words.wording import counted

EXAMPLES = ("python -m appca restore appca-backup.zip --home restored",)


def add(commands: parsing.Commands) -> None:
    """Add the command."""
    text = "fill an empty home from a file that `backup` wrote"
    parser = parsing.command(commands, "restore", text, EXAMPLES, run)
    parser.add_argument("file", type=Path, metavar="FILE", help="a zip that `backup` wrote")
    parser.add_argument(
        "--home", type=Path, help="the folder to fill (default: APPCA_HOME, else the user's own)"
    )


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Unpack and check the file, and only then move its folders to the home."""
    here = home() if options.home is None else private(options.home)
    if any((here / name).exists() for name in KEPT):
        msg = f"{here} holds work already; name an empty folder by --home."
        raise InputError(msg)
    with atomic.draft_folder(here) as draft:
        n_files = _unpack(options.file, draft)
        damaged = list(checked(draft))
        if damaged:
            msg = (
                f"{options.file} is damaged: {damaged[0].what}: {damaged[0].problem}; "
                "restore another backup."
            )
            raise InputError(msg)
        for path in sorted(draft.iterdir()):
            atomic.take_place(path, here / path.name)
    say(f"{counted(n_files, 'file')} of {options.file} are in {here}")
    return {"home": str(here), "file": str(options.file), "files": n_files}


def _unpack(file: Path, draft: Path) -> int:
    try:
        with zipfile.ZipFile(file) as archive:
            names = [PurePosixPath(name) for name in archive.namelist()]
            if not names or not all(map(_belongs, names)):
                msg = f"{file} is no file of `appca backup`; name one that is."
                raise InputError(msg)
            for name in names:
                place = draft / name
                place.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(str(name)) as member, place.open("wb") as copy:
                    shutil.copyfileobj(member, copy, 1 << 22)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        msg = f"{file} cannot be read as a backup ({error}); restore another one."
        raise InputError(msg) from error
    return len(names)


def _belongs(name: PurePosixPath) -> bool:
    """Whether a name is one that `backup` writes, so that nothing else is written."""
    in_folder = len(name.parts) > 1 and name.parts[0] in KEPT and ".." not in name.parts
    return name == PurePosixPath(SECRET) or in_folder
