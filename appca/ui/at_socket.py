"""``python -m appca.ui.at_socket SOCKET``: the app at a Unix socket, for a proxy before it.

Other accounts of the machine cannot reach a socket in a private folder, nor take its place as they
could take a port's between its choice and its use.
"""

import ctypes
import signal
import sys
from contextlib import suppress

from appca.data.folders import project_folder
from appca.ui import streamlit_internals


def main(path: str) -> None:
    """Serve until a signal ends the process."""
    from streamlit.web import cli

    with suppress(OSError, AttributeError):  # of Linux: end with the server that began this one
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)
    streamlit_internals.bind(path)
    cli.main(["run", str(project_folder() / "app.py"), "--server.headless=true"])


if __name__ == "__main__":
    main(sys.argv[1])
