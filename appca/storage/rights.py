"""What is stored is its owner's alone: folders 0700, files 0600, whatever the umask allows."""

import os
import stat
from contextlib import suppress
from pathlib import Path

FOLDER, FILE = 0o700, 0o600


def opener(path: str, flags: int) -> int:
    """Create a file for its owner alone; one that is there keeps its rights. For `open`."""
    return os.open(path, flags, FILE)


def make_folder(folder: Path) -> Path:
    """Make a folder, and those above it that are missing, for the owner alone; return it.

    May raise OSError.
    """
    for missing in reversed([one for one in (folder, *folder.parents) if not one.exists()]):
        missing.mkdir(FOLDER, exist_ok=True)
    return folder


def tighten(folder: Path) -> None:
    """Take everybody else's rights to a folder that was made before, where that is possible.

    What belongs to somebody else, or lies on a volume without rights, stays as it is; so do links.
    The folder itself comes last, so that one that has its rights is done with all in it.
    """
    with suppress(OSError):
        if stat.S_IMODE(folder.lstat().st_mode) == FOLDER:
            return
    for place, _, files in os.walk(folder, topdown=False):
        for name in files:
            restrict(Path(place, name), FILE)
        restrict(Path(place), FOLDER)


def restrict(path: Path, mode: int) -> None:
    """Give the rights to one file or folder of one's own; a link, or a refusal, is passed over."""
    with suppress(OSError):
        facts = path.lstat()
        if not stat.S_ISLNK(facts.st_mode) and facts.st_uid == _me() and facts.st_mode & 0o077:
            path.chmod(mode)


def _me() -> int:
    return os.geteuid() if hasattr(os, "geteuid") else 0
