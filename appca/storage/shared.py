"""Homes of others, which ``APPCA_SHARED`` names: they are read here and never written."""

import os
from pathlib import Path

SHARED = "APPCA_SHARED"


def homes() -> tuple[Path, ...]:
    """Return the folders that the variable names, separated as those of PATH."""
    names = filter(None, os.environ.get(SHARED, "").split(os.pathsep))
    return tuple(Path(name).expanduser().absolute() for name in names)


def place(kind: str, name: str) -> Path | None:
    """Return the folder of a data set or a run in the first of these homes that has it."""
    places = (home / kind / name for home in homes())
    return next((folder for folder in places if folder.is_dir()), None)
