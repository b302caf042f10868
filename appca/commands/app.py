"""``appca``, ``appca DATA``: open the app in the browser, on data that need no upload."""

import argparse
import html
import os
import secrets
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import webbrowser
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np

from appca.commands import parsing
from appca.commands.opening import opened, with_gaps
from appca.commands.terminal import say
from appca.data.dataset import Dataset
from appca.data.files import explained
from appca.data.folders import project_folder
from appca.data.store import DatasetStore
from appca.processes import python_path
from appca.runs.home import home, is_served
from appca.runs.session import SUFFIX, unpack
from appca.storage import access_control, files
from appca.words import EXTRAS, InputError, MissingExtraError, refuse_if, shortened

NAME, PORT = "open", 8501
EXAMPLES = (
    "appca",
    "appca measurements.csv --label kind",
    "appca images/",
    "appca X.npy --labels y.npy",
    "appca work.appca",
)
START_SECONDS, ENDED = 60.0, 143
PAGE = "open.html"  # file in the home
OPENS = "APPCA_OPENS"  # set if `appca.ui.warm_up` must read the name of the data from a pipe
_POLL = 0.05  # seconds between polls


def add(commands: parsing.Commands) -> None:
    """Add the command."""
    text = "open the app, with DATA if you name any; `appca DATA` does the same"
    parser = parsing.command(commands, NAME, text, EXAMPLES, run)
    parser.add_argument(
        "data", nargs="*", metavar="DATA", help=f"{parsing.DATA_HELP}; or a session ({SUFFIX})"
    )
    parser.add_argument(
        "--labels",
        type=Path,
        metavar="FILE",
        help="the class of each row: NPY, or text with one class a line (default: none)",
    )
    parsing.add_reading(parser, missing="model")
    group = parser.add_argument_group("how to serve it")
    group.add_argument("--port", type=int, default=PORT, help=f"port (default: {PORT})")
    group.add_argument(
        "--address", default="127.0.0.1", help="address to listen on (default: this machine only)"
    )
    parsing.add_flag(group, "--behind-proxy", "a proxy with a login protects the app")
    parsing.add_flag(group, "--no-token", "admit anyone who knows the address")
    parsing.add_flag(group, "--no-browser", "print the address and open nothing")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Start the server, store the data, open the app, and wait until the server ends."""
    _check(options)
    if sentence := is_served():
        raise InputError(sentence)
    token = "" if options.no_token else secrets.token_urlsafe(24)
    server = _started(options, token)  # before the data, because both load at the same time
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(ENDED))  # ends the server too
    try:
        opens = place(options)
        _tell(server, "" if "run" in opens else opens.get("data", ""))
        url = _url(options)
        _wait(server, url)
        query = urlencode(opens | ({"token": token} if token else {}))
        address = f"{url}/?{query}" if query else url
        say(f"appca is open at {address} (Ctrl-C ends it)")
        sys.stdout.flush()
        if not options.no_browser:
            _show(address)
        server.wait()
    finally:
        with suppress(OSError):
            (home() / PAGE).unlink(missing_ok=True)
        server.terminate()
        with suppress(OSError, subprocess.TimeoutExpired):
            if server.stdin is not None:
                server.stdin.close()
            server.wait(10)
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)
    return {"address": address}


def _url(options: argparse.Namespace) -> str:
    base = os.environ.get("STREAMLIT_SERVER_BASE_URL_PATH", "").strip("/")
    host = f"[{options.address}]" if ":" in options.address else options.address
    return f"http://{host}:{options.port}" + (f"/{base}" if base else "")


def _show(address: str) -> None:
    """Open the browser at a private file, because other users can see its command line."""
    text = f'<!doctype html><meta http-equiv="refresh" content="0; url={html.escape(address)}">'
    files.write(home() / PAGE, text)
    (home() / PAGE).chmod(0o600)  # it contains the token, and a home may be shared
    webbrowser.open((home() / PAGE).as_uri())


def _check(options: argparse.Namespace) -> None:
    if find_spec("streamlit") is None:
        msg = f"The app needs streamlit; run `pip install 'appca[{EXTRAS['streamlit']}]'`."
        raise MissingExtraError(msg)
    hosts = access_control.listed(os.environ.get("STREAMLIT_SERVER_ALLOWED_HOSTS", ""))
    guarded = options.behind_proxy or not options.no_token
    if sentence := access_control.refusal(shortened(options.address), hosts, guarded=guarded):
        raise parsing.UsageError(sentence)
    msg = "--labels needs DATA; name the data, too."
    parsing.wrong_if(options.labels is not None and not options.data, msg)


def _started(options: argparse.Namespace, token: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "streamlit", "run", str(project_folder() / "app.py")]
    command += ["--server.headless", "true", "--server.port", str(options.port)]
    command += ["--server.address", options.address]
    env = os.environ | {"PYTHONPATH": python_path(), access_control.TOKEN: token, OPENS: "1"}
    env |= {access_control.PROXY: "1"} if options.behind_proxy else {}
    # the server's standard output shows the address without the token
    return subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)


def _tell(server: "subprocess.Popen[bytes]", digest: str) -> None:
    if server.stdin is not None:
        with suppress(OSError), server.stdin as pipe:
            pipe.write(f"{digest}\n".encode())


def _wait(server: "subprocess.Popen[bytes]", url: str) -> None:
    last = time.monotonic() + START_SECONDS
    while server.poll() is None and time.monotonic() < last:
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(_POLL)
    msg = f"The app did not start at {url}; if the port is taken, choose another --port."
    raise InputError(msg)


def place(options: argparse.Namespace) -> dict[str, str]:
    """Store the data in the home, and return the URL query that opens them."""
    if not options.data:
        return {}
    if len(options.data) == 1 and options.data[0].endswith(SUFFIX):
        path = Path(options.data[0])
        with path.open("rb") as file:
            unpacked = unpack(path.name, file, home())
        run = unpacked.opened or next(iter(unpacked.runs), None)
        return {"data": unpacked.dataset} | ({"run": run} if run else {})
    dataset = with_gaps(options, opened)
    if "sample" in dataset.provenance:
        total = dataset.provenance["sample"]["of"]
        say(f"{options.data[0]} is large: {dataset.n_rows:,} of {total:,} rows, drawn at random")
    if options.labels is not None:
        dataset = with_labels(dataset, options.labels)
    store = DatasetStore(home())
    digest = store.put(dataset)
    if len(options.data) == 1 and Path(options.data[0]).exists():
        store.note_origin(digest, Path(options.data[0]))
    return {"data": digest}


def with_labels(dataset: Dataset, file: Path) -> Dataset:
    """Label each row with the class in a file.

    Raises InputError if the file is unreadable, or classes and rows differ in number.
    """
    msg = f"“{file.name}” cannot be read; give an NPY file, or text with a class on each line."
    with explained(msg, (ValueError, EOFError)):
        if file.suffix == ".npy":
            values = np.load(file, allow_pickle=False)
        else:
            values = np.array(file.read_text(encoding="utf-8").splitlines())
    msg = f"“{file.name}” has the shape {values.shape}, and the data have {dataset.n_rows:,} "
    msg += "rows; the file must have one class for each row."
    refuse_if(values.shape != (dataset.n_rows,), msg)
    return replace(dataset, labels={file.stem: values.astype(str), **dataset.labels})
