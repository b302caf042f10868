"""Folders of public data sets, samples, and the project."""

import os
from pathlib import Path

from appca.words import refuse_if

_PACKAGE = Path(__file__).resolve().parents[1]


def folder_of_files(chosen: Path | str | None = None) -> Path:
    """Return `chosen`, else ``APPCA_DATA``, else ``data`` in ``APPCA_HOME`` or the user folder."""
    if chosen is not None:
        return Path(chosen)
    if os.environ.get("APPCA_DATA"):
        return Path(os.environ["APPCA_DATA"])
    if os.environ.get("APPCA_HOME"):
        return Path(os.environ["APPCA_HOME"]) / "data"
    from platformdirs import user_data_path

    return user_data_path("appca", appauthor=False) / "data"


def sample_file(name: str) -> Path:
    """Return a file in ``sample_data``; raises InputError if it is missing."""
    path = project_folder() / "sample_data" / name
    msg = f"{name} is missing in {path.parent}; run python sample_data/make.py to recreate it."
    refuse_if(not path.is_file(), msg)
    return path


def project_folder() -> Path:
    """Return the folder of ``app.py`` and ``pages``: the checkout, or a part of the wheel."""
    installed = _PACKAGE / "_app"
    return installed if installed.is_dir() else _PACKAGE.parent
