"""appca in Jupyter: its tile in JupyterLab, and a function that opens files in it."""

import argparse
import os
import secrets
import sys
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from appca.commands import app, parsing
from appca.processes import python_path
from appca.storage import access_control
from appca.words import InputError

NAME = "appca"  # name of the tile and of its path
HEADER = "X-Appca-Token"


def server(path: str = f"{{base_url}}{NAME}") -> dict[str, Any]:
    """Return the settings by which jupyter-server-proxy starts appca on a Unix socket.

    Every server has its own token. Jupyter authenticates users, so appca accepts any host name.
    """
    token = secrets.token_urlsafe(24)
    return {
        "command": [sys.executable, "-m", "appca.ui.at_socket", "{unix_socket}"],
        "unix_socket": True,
        "absolute_url": True,
        "timeout": app.START_SECONDS,
        "environment": {
            access_control.TOKEN: token,
            "PYTHONPATH": python_path(),
            "STREAMLIT_SERVER_ALLOWED_HOSTS": os.environ.get("STREAMLIT_SERVER_ALLOWED_HOSTS", "*"),
            "STREAMLIT_SERVER_BASE_URL_PATH": path,
        },
        "request_headers_override": {HEADER: token},
        "launcher_entry": {
            "title": "appca",
            "icon_path": str(Path(__file__).parents[1] / "ui/static/icon.svg"),
            "category": "Notebook",
        },
    }


class AppLink(NamedTuple):
    """The address at which the app shows data; a notebook renders it as a link."""

    url: str

    def _repr_html_(self) -> str:
        return f'<a href="{escape(self.url)}" target="_blank">Open in appca</a>'


def open_app(path: str | os.PathLike[str]) -> AppLink:
    """Return a link that opens a file in the app of this notebook's Jupyter server.

    The file is read as `appca FILE` reads it, and stored in your appca home.

    Parameters
    ----------
    path : str or path
        A file or a folder of images that the app can open, or a session (``.appca``).

    Returns
    -------
    AppLink
        ``url`` is the address; a notebook renders a link.

    Raises
    ------
    InputError
        If the file cannot be read, or the notebook has no Jupyter server.
    """
    base, parser = _base_url(), argparse.ArgumentParser()
    app.add(parser.add_subparsers(parser_class=parsing.Parser))
    options = parser.parse_args([app.NAME, os.fspath(path)])
    return AppLink(f"{base}{NAME}/?{urlencode(app.place(options))}")


def _base_url() -> str:
    if "JUPYTERHUB_SERVICE_PREFIX" in os.environ:
        return os.environ["JUPYTERHUB_SERVICE_PREFIX"]
    started_by = int(os.environ.get("JPY_PARENT_PID", os.getppid()))
    with suppress(ImportError):
        from jupyter_server.serverapp import list_running_servers

        for running in list_running_servers():
            if running["pid"] == started_by:
                return str(running["base_url"])
    msg = "open_app works only in a notebook of JupyterLab; elsewhere, use `appca FILE`."
    raise InputError(msg)
