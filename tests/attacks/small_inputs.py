"""What inputs under 100 kB cost: one line each, for the test beside it and for a benchmark.

`python -m tests.attacks.small_inputs [quick]` does every act in this process and prints what each
took of the processor, in seconds, and of memory beyond what the process had before, in MB. An act
that takes more than `PATIENCE` seconds of the processor ends the process.
"""

import asyncio
import io
import json
import os
import signal
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

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
PARAMETERS = ("data", "run", "k", "l", "job", "sel", "step", "tab", "row", "with", "unknown")


def acts(home: Path | None) -> Iterator[tuple[str, Act]]:
    """Yield the acts by name; those of files and pages, which take longer, if there is a home."""
    yield from texts()
    yield from requests()
    yield from messages()
    if home is not None:
        yield from files(home)
        yield from pages()


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


def files(home: Path) -> Iterator[tuple[str, Act]]:
    """A home with files that say much: what lists and `appca check` make of them."""
    from appca.cli import main
    from appca.data.store import DatasetStore
    from appca.runs.store import RunStore

    written = hostile_home(home)
    for name in written:
        assert (home / name).stat().st_size < 100_000, name
    yield "appca check", partial(main, ["check", "--json", "--home", str(home)])
    yield "lists of runs", lambda: (RunStore(home).list(), RunStore(home).damaged())
    yield "lists of data sets", lambda: DatasetStore(home).list()


def hostile_home(home: Path) -> list[str]:
    """Write files under 100 kB that unpack to much, or nest deep; return their places."""
    bomb, written = io.BytesIO(), {}
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            header, {"descr": "<f8", "fortran_order": False, "shape": (11_000_000,)}
        )
        archive.writestr("a.npy", header.getvalue() + bytes(88_000_000))
    claims = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        claims, {"descr": "<f8", "fortran_order": False, "shape": (1 << 40,)}
    )
    deep = b'{"a": ' + b"[" * 45_000 + b"]" * 45_000 + b"}"
    wide = json.dumps({"format": 2, "note": [[]] * 23_000}).encode()
    for folder in (
        "datasets",
        "runs",
        "jobs",
        "grids",
        "studies",
        "stability",
        "masked",
        "quality",
    ):
        for name, content in (("deep", deep), ("wide", wide), ("digits", TEXTS["digits"].encode())):
            place = f"{folder}/{name.encode().hex().ljust(12, '0')[:12]}"
            for file in ("meta.json", "config.json", "job.json", "status.json"):
                written[f"{place}/{file}"] = content
            written[f"{place}/arrays.npz"] = bomb.getvalue()
            written[f"{place}/matrix.npy"] = claims.getvalue()
            written[f"{place}/records.txt"] = TEXTS["line ends"].encode()
    for folder in ("selections", "embeddings", "projections", "numbers"):
        written[f"{folder}/{'a' * 64}.npz"] = bomb.getvalue()
        written[f"{folder}/{'b' * 64}/{'c' * 16}.npz"] = bomb.getvalue()
        written[f"{folder}/deep.json"] = deep
    for name, content in written.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(content)
    return list(written)


def pages() -> Iterator[tuple[str, Act]]:
    """Addresses that open the app, each with one parameter that is long."""
    from streamlit.testing.v1 import AppTest

    def opened(**parameters: str) -> None:
        app = AppTest.from_file(str(Path(__file__).parents[2] / "app.py"), default_timeout=120)
        for name, value in parameters.items():
            app.query_params[name] = value
        app.run()
        assert not app.exception

    yield "the first page", opened
    yield "many parameters", lambda: opened(**{f"p{i}": "" for i in range(MOST // 8)})
    for parameter in PARAMETERS:
        for name in ("digits", "signs of Markdown"):
            yield f"{parameter} of {name}", partial(opened, **{parameter: TEXTS[name]})


def main() -> None:
    """Do all of it."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["APPCA_HOME"] = str(Path(folder) / "own")
        hostile = Path(folder) / "hostile"
        for name, act in acts(None if "quick" in sys.argv else hostile):
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
