"""Names and texts of strangers: shown as they are, bounded in what is kept and what they cost."""

import asyncio
import io
import re
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from streamlit.testing.v1 import AppTest

from appca.analysis.selections import SelectionStore
from appca.analysis.tables import neutral
from appca.data.columns import NAME_LENGTH, tidy
from appca.data.dataset import Dataset
from appca.data.files import ReadLimits
from appca.data.readers import read_many
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.runs.fit import fit_run
from appca.runs.home import home
from appca.runs.numbering import ComponentNumbers
from appca.runs.run import RunConfig
from appca.runs.store import RunStore
from appca.storage.schema import fitted
from appca.ui.canvas import SelectionMessage, read_selection
from appca.ui.kit import apart, markdown, tag, words
from appca.ui.server import Guard
from appca.words import shortened
from tests.memory import needs_proc
from tests.pages import DIGITS, give, select, table
from tests.ui.conftest import address, go, healthy, html, press, start

__all__ = ["start"]  # the fixture
HOSTILE = (
    *("http://evil.example/x", "www.evil.example", "mailto:a@evil.example"),
    *("[evil](http://evil.example)", "![evil](http://evil.example/i.png)"),
    *("<a href='http://evil.example'>evil</a>", "<b>evil</b>", ":material/evil:"),
    *("$evil$", ":red[evil]", "**evil**", "`evil`"),
)
# what must not stand anywhere as it is where Streamlit reads Markdown
RAW = ("[evil", "<b>evil", "<a href", "$evil", "**evil", "`evil")
# what it looks for when the backslashes are gone
LOOKED_FOR = ("http://evil", "www.evil", "a@evil", ":material/evil")
PLAIN = {  # fields that the browser shows as they are
    "arrow_data_frame": {"*"},
    "arrow_vega_lite_chart": {"*"},
    "plotly_chart": {"*"},
    "bidi_component": {"*"},
    "code": {"code_text"},
    "text": {"body"},
    "text_input": {"default", "value", "placeholder"},
    "selectbox": {"options", "raw_value", "value"},
    "multiselect": {"options", "raw_values", "default"},
    "imgs": {"*"},
}
PAGES = (
    *("data/open", "explore", "explore/selection", "explore/point"),
    *("components/gallery", "components/meaning", "groups/differences", "groups/unusual"),
    *("check/trust", "check/choose", "export", "data/add"),
)


def everything(block: Any) -> Iterator[Any]:
    """Yield all elements of a page, and the blocks they stand in."""
    for child in block.children.values():
        yield child
        if hasattr(child, "children"):
            yield from everything(child)


def texts(message: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield all texts of a protocol message with the names of their fields."""
    for field, value in message.ListFields():
        several = value if field.is_repeated else [value]
        for one in several:
            if hasattr(one, "ListFields"):
                yield from texts(one, f"{path}.{field.name}")
            elif isinstance(one, str):
                yield f"{path}.{field.name}".strip("."), one


def raw_markup(app: AppTest) -> list[str]:
    """Return where a hostile text stands as it is, though Markdown or HTML are read there."""
    found = []
    for child in everything(app._tree):
        kind, plain = child.type, PLAIN.get(child.type, set())
        for path, text in texts(child.proto) if getattr(child, "proto", None) else ():
            if plain & {"*", path.rpartition(".")[2]} or path.endswith(("id", "key", "form_id")):
                continue
            marks = ("<b>evil", "<a href", "<img src='") if kind == "html" else RAW
            bare = "" if kind == "html" else text.replace("\\", "")
            stands = any(re.search(rf"(?<!\\){re.escape(mark)}", text) for mark in marks)
            if stands or any(one in bare for one in LOOKED_FOR):
                found.append(f"{kind} {path}: {text[:200]!r}")
    return found


def hostile_home() -> str:
    """Store data, a run, names of components and a selection with hostile names; return the run."""
    part = load("wine").take(np.arange(0, 178, 2))
    n, d = part.X.shape
    ids = np.array([f"{HOSTILE[i % len(HOSTILE)]} {i}" for i in range(n)])
    classes = np.array([HOSTILE[i % 5] for i in range(n)])
    names = tuple(f"{HOSTILE[j % len(HOSTILE)]} {j}" for j in range(d))
    labels = {HOSTILE[0]: classes, HOSTILE[3]: classes[::-1].copy()}
    source = {"source": "file", "files": [HOSTILE[1]], "citation": HOSTILE[2]}
    data = Dataset(HOSTILE[0], part.X, ids, labels, None, names, source)
    DatasetStore(home()).put(data)
    for number, title in enumerate((HOSTILE[5], HOSTILE[7])):
        sizes = {"n_components": 3, "n_active": 2, "random_state": number}
        config = RunConfig(data.digest, {"scale": "feature"}, "aPPCA", sizes)
        run = RunStore(home()).save(config, fit_run(data, config), title)
    for k, name in enumerate((HOSTILE[1], HOSTILE[3][:40], HOSTILE[7])):
        ComponentNumbers(home()).rename(run, k, name)
    SelectionStore(home()).save(data.digest, HOSTILE[0], np.arange(n) < 20)
    return run.id


def test_no_name_of_anything_is_read_as_markup_on_any_page(start):
    app = healthy(start(run=hostile_home()))
    found = {"start": raw_markup(app)}
    found |= {page: raw_markup(healthy(go(app, page))) for page in PAGES}
    assert {page: told for page, told in found.items() if told} == {}


# a browser lets nobody type more than a field takes; a message to the server can say anything

MOST = 95_000  # bytes of an input
SIGNS = (
    *("a", "\n", "\t ", " ", '"', "\\", "9", ",", ";=", "["),
    *("http://a.b@c ", "a\u0301", "%", "a=&"),
    "*_[](`$:",  # signs of Markdown, each of which a page must protect
)
TEXTS = {text: text * (MOST // len(text.encode())) for text in SIGNS}


def test_long_names_in_the_fields_of_the_pages_are_kept_short_and_break_no_page(start):
    text = TEXTS[SIGNS[-1]]

    def is_alive(app: AppTest) -> None:
        """Check that a page has no exception, and has not grown by what was typed."""
        assert [problem.message for problem in app.exception] == []
        boxes = (*app.markdown, *app.caption, *app.error, *app.warning, *app.info)
        assert len(html(app)) + sum(len(one.value) for one in boxes) < 5 * MOST

    app = start("explore")
    run = RunStore(home()).get(address(app)["run"])
    is_alive(press(app, "drawer_components", "rename", 0, text))
    (name,) = filter(None, ComponentNumbers(home()).of_run(run).names)
    assert 0 < len(name) < 200
    select(app, np.array([3, 5, 800]))
    go(app, "groups/differences")
    app.text_input(key="named-new").set_value(text)
    is_alive(app.button(key="named-keep").click().run())
    kept = SelectionStore(home()).list(run.config.dataset, DIGITS)
    assert max(len(one.name) for one in kept) <= NAME_LENGTH
    for place in ("components/gallery", "components/meaning", "export"):
        is_alive(go(app, place))
    go(app, "data/open")
    is_alive(app.text_input(key=f"name-{run.id}").set_value(text).run())
    assert 0 < len(RunStore(home()).get(run.id).custom_name) < 300
    for page, label in (("explore/point", "Find a row"), ("data/this", "Find a column")):
        if page == "data/this":
            give(app, ("wide.csv", table(columns=300)))
        go(app, page)
        (box,) = (one for one in app.text_input if one.label == label)
        is_alive(box.set_value(text).run())


# what texts cost in every place that they go through: below 10 s and 500 MB


def ask(header: str, value: str, query: str = "") -> None:
    """Send a header and an address up to Streamlit's own routes."""

    async def inside(scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope)
        _ = request.cookies, dict(request.query_params)
        await PlainTextResponse("")(scope, receive, send)

    async def nothing(*_: Any) -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    pairs = [(header.encode(), value.encode()), (b"accept", b"text/html")]
    scope = {"type": "http", "method": "GET", "path": "/", "server": ("127.0.0.1", 8501)}
    scope |= {"query_string": query.encode(), "headers": pairs}
    with ThreadPoolExecutor(1) as apart:  # Playwright's loop may run in this thread
        for token in ("", "secret"):
            guarded = Guard(inside, token)(dict(scope), nothing, nothing)
            apart.submit(asyncio.run, guarded).result()


def take(told: Any) -> None:
    """Take what a page may send in place of a selection."""
    with suppress(TypeError, ValueError):
        read_selection(fitted(SelectionMessage, told).bits, 100)


def acts() -> Iterator[tuple[str, Callable[[], object]]]:
    nested: Any = []
    for _ in range(20_000):
        nested = [nested]
    sent = {"nested": nested, "lists": [[]] * (MOST // 3), "numbers": [0] * (MOST // 2), **TEXTS}
    for name, value in (sent | {"entries": {f"k{i}": i for i in range(MOST // 12)}}).items():
        for field in ("mount", "number", "bits"):
            told = {"mount": "a", "number": 1, "bits": None} | {field: value}
            yield f"a selection whose {field} is {name!r}", partial(take, told)
    for name, text in TEXTS.items():
        for act in (neutral, tidy, markdown, words, shortened):
            yield f"{act.__name__} of {name!r}", partial(act, text)
        yield f"HTML of {name!r}", lambda text=text: tag("div", words(text), "x")
        yield f"a label with {name!r}", partial(apart, text, text)
        for given in (("cookie", f'a="{text}"'), ("host", "x", text), ("host", text)):
            yield f"a request with {name!r}", partial(ask, *given)
    for given in (
        ("host", "x", "token=a&" * (MOST // 8)),
        ("cookie", 'a="' + '\\"' * (MOST // 2) + '"'),
        ("cookie", "a=b;" * (MOST // 4)),
    ):
        yield f"a request with {given[-1][:20]}", partial(ask, *given)


@needs_proc
def test_no_small_input_takes_long_or_much():
    def memory(field: str) -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) // 1000 for line in lines if line.startswith(field))

    for name, act in acts():
        Path("/proc/self/clear_refs").write_text("5")
        before, began = memory("VmRSS"), time.process_time()
        signal.setitimer(signal.ITIMER_VIRTUAL, 10.0)  # its signal ends a loop in C, and this run
        act()
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        assert time.process_time() - began < 10.0, name
        assert memory("VmHWM") - before < 500, name


NAMES = (
    *("../../evil.csv", "/evil.csv", "..\\..\\evil.csv", "C:\\evil.csv", "a\0b.csv", "~/evil.csv"),
    *(f"{'x' * 5000}.csv", "$(touch evil).csv", "../mnist/../../train-images.csv"),
)


def test_the_name_of_a_file_never_becomes_a_path(tmp_path, monkeypatch):
    table = b"a,b\n" + b"".join(b"%d,%d\n" % (row, row * row) for row in range(9))
    home, here = tmp_path / "deep" / "home", tmp_path / "deep" / "here"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    limits = ReadLimits(scratch=home / "uploads")
    for name in NAMES:
        dataset = read_many([(name, io.BytesIO(table))], limits=limits)
        digest = DatasetStore(home).put(dataset)
        SelectionStore(home).save(digest, name, np.ones(dataset.n_rows, dtype=bool))
        kept = SelectionStore(home).list(digest, dataset.n_rows)
        assert max(len(one.name) for one in kept) <= NAME_LENGTH
        made = {path.relative_to(home).parts[0] for path in tmp_path.rglob("*") if path.is_file()}
        assert made == {"datasets", "selections"}, name
        assert DatasetStore(home).get(digest).n_rows == 9
