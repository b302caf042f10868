"""``appca link``: another browser for an app that is open."""

import argparse
import os
from typing import Any, NamedTuple

from appca.commands import parsing
from appca.commands.terminal import say
from appca.runs.home import home
from appca.storage.files import read_json, write_json
from appca.storage.serving import doors
from appca.words.errors import InputError

EXAMPLES = ("appca link", "appca link --port 8600")
PORT = 8501


class OpenApp(NamedTuple):
    """An app that is open: where, and its secret."""

    url: str
    token: str

    def link(self, query: str = "") -> str:
        """Return an address that lets one browser in."""
        token = f"token={doors.new_link(self.token)}" if self.token else ""
        return f"{self.url}/?{'&'.join(filter(None, [query, token]))}".removesuffix("/?")

    def note(self, port: int) -> None:
        """Let `appca link` find it, for this user alone; `forget` ends that."""
        write_json(home() / _name(port), self._asdict(), "The address of the app")


def forget(port: int) -> None:
    """Take the note of an app away."""
    (home() / _name(port)).unlink(missing_ok=True)


def add(commands: parsing.Commands) -> None:
    """Add the command."""
    text = "print a link that lets another browser into the app that is open"
    parser = parsing.command(commands, "link", text, EXAMPLES, run)
    parser.add_argument("--port", type=int, default=PORT, help=f"port of the app (default: {PORT})")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Print the link; InputError when no app is open there."""
    try:
        kept = read_json(home() / _name(options.port), "The address of the app")
        served = OpenApp(str(kept["url"]), str(kept["token"]))
    except (OSError, ValueError, KeyError) as error:
        token = os.environ.get(doors.TOKEN)
        if not token:
            msg = (
                f"No app with the home {home()} is open at port {options.port}; open it with "
                "`appca`, or name its --port."
            )
            raise InputError(msg) from error
        served = OpenApp(f"http://127.0.0.1:{options.port}", token)
    address = served.link()
    say(address)
    return {"address": address}


def _name(port: int) -> str:
    return f"open-{port}.json"
