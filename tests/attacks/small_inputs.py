"""What inputs under 100 kB cost: one line each, for the test beside it.

`python -m tests.attacks.small_inputs` does every act in this process and prints what each
took of the processor, in seconds, and of memory beyond what the process had before, in MB. An act
that takes more than `PATIENCE` seconds of the processor ends the process.
"""

import asyncio
import io
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from functools import partial
from pathlib import Path
from typing import Any

MOST = 95_000  # bytes of an input
PATIENCE = 10.0
Act = Callable[[], object]


def filled(text: str) -> str:
    """Repeat a text up to the greatest length."""
    return text * (MOST // len(text.encode()))


TEXTS = {
    "letters": filled("a"),
    "line ends": filled("\n"),
    "tabs and blanks": filled("\t "),
    "blanks": filled(" "),
    "quotes": filled('"'),
    "backslashes": filled("\\"),
    "digits": filled("9"),
    "commas": filled(","),
    "formulas": filled(";="),
    "brackets": filled("["),
    "addresses": filled("http://a.b@c "),
    "signs of Markdown": filled("*_[](`$:"),
    "combining marks": filled("a\u0301"),
    "percent signs": filled("%"),
    "ampersands": filled("a=&"),
}


def acts() -> Iterator[tuple[str, Act]]:
    """Yield the acts by name."""
    yield from texts()
    yield from requests()
    yield from messages()


def texts() -> Iterator[tuple[str, Act]]:
    """Names, labels and ids, in every place that a person's text goes through."""
    from appca.analysis.selections import tidy
    from appca.analysis.tables import neutral
    from appca.ui.kit import apart, markdown, tag, words
    from appca.words import shortened

    for act in (neutral, tidy, markdown, words, shortened):
        for name, text in TEXTS.items():
            yield f"{act.__name__} of {name}", partial(act, text)
    for name, text in TEXTS.items():
        yield f"HTML of {name}", lambda text=text: tag("div", words(text), "x")
        yield f"a label with {name}", partial(apart, text, text)


def requests() -> Iterator[tuple[str, Act]]:
    """Headers and addresses, up to Streamlit's own routes."""
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse

    from appca.ui.server import Guard

    async def inside(scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope)
        _ = request.cookies, dict(request.query_params)
        await PlainTextResponse("")(scope, receive, send)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(_: Any) -> None:
        pass

    def ask(header: str, value: str, query: str = "") -> None:
        scope = {
            "type": "http",
            "method": "GET",
            "path": "/",
            "server": ("127.0.0.1", 8501),
            "query_string": query.encode(),
            "headers": [(header.encode(), value.encode()), (b"accept", b"text/html")],
        }
        for token in ("", "secret"):
            app = Guard(inside, token)
            asyncio.run(app(scope | {"headers": list(scope["headers"])}, receive, send))

    yield "a query of tokens", lambda: ask("host", "x", filled("token=a&"))
    for name, text in TEXTS.items():
        yield f"a cookie of {name}", lambda text=text: ask("cookie", f'a="{text}"')
        yield f"an address of {name}", lambda text=text: ask("host", "x", text)
        yield f"a host of {name}", lambda text=text: ask("host", text)
    yield "a cookie of quoted quotes", lambda: ask("cookie", 'a="' + filled('\\"') + '"')
    yield "many cookies", lambda: ask("cookie", filled("a=b;"))


def messages() -> Iterator[tuple[str, Act]]:
    """What a page may send in place of a selection."""
    from appca.storage.schema import fitted
    from appca.ui.canvas import SelectionMessage, read_selection

    def take(told: Any) -> None:
        with suppress(TypeError, ValueError):
            message = fitted(SelectionMessage, told)
            read_selection(message.bits, 100)

    nested: Any = []
    for _ in range(20_000):
        nested = [nested]
    sent = {
        "nested lists": nested,
        "lists": [[]] * (MOST // 3),
        "numbers": [0] * (MOST // 2),
        "entries": {f"k{i}": i for i in range(MOST // 12)},
        **TEXTS,
    }
    for name, value in sent.items():
        for field in ("mount", "number", "bits"):
            told = {"mount": "a", "number": 1, "bits": None} | {field: value}
            yield f"a selection whose {field} is {name}", lambda told=told: take(told)


def main() -> None:
    """Do all of it."""
    for name, act in acts():
        Path("/proc/self/clear_refs").write_text("5")
        before, began = memory("RssAnon"), time.process_time()
        signal.setitimer(signal.ITIMER_VIRTUAL, PATIENCE)  # its signal ends a loop in C, too
        with redirect_stdout(io.StringIO()):
            act()
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        seconds, grown = time.process_time() - began, memory("VmHWM") - before
        row = {"act": name, "seconds": seconds, "mb": grown / 1e6}
        sys.stdout.write(f"{json.dumps(row)}\n")
        sys.stdout.flush()


def memory(field: str) -> int:
    """Return what the system says of this process, in bytes, without pages of files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    found = {line.split(":")[0]: line.split()[1] for line in lines if line.endswith("kB")}
    files = int(found["RssFile"]) if field == "VmHWM" else 0
    return (int(found[field]) - files) * 1024


if __name__ == "__main__":
    main()
