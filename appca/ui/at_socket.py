"""``python -m appca.ui.at_socket SOCKET``: run the app on a Unix socket, behind a proxy.

Other accounts of the machine cannot reach a socket in a private folder. They could, however, take
a port after it is chosen and before it is used.
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

    with suppress(OSError, AttributeError):  # Linux: end with the parent server
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)
    streamlit_internals.bind(path)
    cli.main(["run", str(project_folder() / "app.py"), "--server.headless=true"])


if __name__ == "__main__":
    main(sys.argv[1])
