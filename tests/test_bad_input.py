"""The fault list of the product, line by line: in the library, on the command line, on the page.

Each refusal is one sentence (see `tests.sentences`): an `InputError`; exit code 1 and one line; a
box on a page that lives on.
"""

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

import appca
from appca.cli import main
from appca.data.files import ReadLimits
from appca.data.readers import read
from appca.data.sources import load
from appca.words import InputError
from tests import bad_files as bad
from tests.data.file_makers import packed
from tests.sentences import faults_of
from tests.ui.conftest import APP, SECONDS, go, healthy, html, sentences, slider

MARK = Path("unpickled")  # comes into being beside the file if a pickle is loaded
LONG = "x" * 1000


class Bad(NamedTuple):
    """A line of the fault list that no table of a reader has."""

    fault: str  # as the product says it
    name: str  # of the file
    data: bytes | Callable[[], bytes]
    rule: str  # in the sentence
    named: str = ""  # what was given, in the sentence; by default the file

    def judge(self, sentence: str) -> None:
        assert faults_of(sentence, self.named or self.name) == ""
        assert re.search(self.rule, sentence), sentence


A_PNG, PNGS = bad.pictures("a.png"), bad.pictures("a.png", "b.png", "c.png")
BAD = [
    Bad("empty file", "e.csv", b"", "is empty"),
    Bad("inf", "i.csv", b"a,b\n1,2\n3,5\n4,4\n6,-inf", "“b” is infinite in row 4", "“b”"),
    Bad("zip with 10 GB inside", "b.zip", bad.claiming(3_400_000_000, packed(PNGS)),
        "unpacks to 10,200 MB"),
    Bad("zip that lies about its size", "l.zip", bad.lying, "“a.png”.*damaged"),
    Bad("zip packed by a method that unpacks without bounds", "m.zip",
        packed(PNGS, zipfile.ZIP_LZMA), "rare method"),
    Bad("nested zip", "n.zip", packed({"in.zip": b"", **A_PNG}), "another archive", "in.zip"),
    Bad("50,000 x 50,000 pixel image", "p.zip", packed({**PNGS, "a.png": bad.huge_png()}),
        "more than 50 million pixels", "a.png"),
    Bad("object arrays", "o.npy", bad.objects(MARK), "Python objects"),
    Bad("a file of no known kind", "letter.docx", b"PK\x03\x04", "no known kind"),
    Bad("a name of 1,000 characters", f"{LONG}.csv", b"", "is empty", "xxx"),
    Bad("a name with NUL and a turned direction", "a\0\u202eb.csv", b"", "is empty", "a�"),
    Bad("a name with markup and emoji", "<b>\N{ROCKET}</b>.csv", b"", "is empty", "<b>"),
]  # fmt: skip


def content(case: Bad) -> bytes:
    return case.data() if callable(case.data) else case.data


@pytest.fixture(autouse=True)
def nothing_is_unpickled(tmp_path, monkeypatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    yield
    assert not MARK.exists()


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.fault)
def test_library_and_command_line_refuse_in_one_sentence(case, capsys):
    data = content(case)
    with pytest.raises(InputError) as caught:
        read(case.name, io.BytesIO(data))
    case.judge(str(caught.value))
    on_disk = "\0" not in case.name and len(case.name) < 250
    if on_disk:
        Path(case.name.replace("/", "_")).write_bytes(data)
    assert main(["fit", case.name.replace("/", "_"), "-K", "2", "-L", "1"]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert told.err.startswith("appca: ")
    if on_disk and "/" not in case.name:
        case.judge(told.err.removeprefix("appca: ").strip())


@pytest.fixture(scope="module")
def visit(tmp_path_factory) -> "Visit":
    """One session for all bad files: what one of them breaks, the next finds broken."""
    return Visit(tmp_path_factory.mktemp("visit"))


class Visit:
    """A session of the app with a home of its own."""

    def __init__(self, home: Path) -> None:
        self.home, self.app = home, None

    def __call__(self, monkeypatch: pytest.MonkeyPatch) -> AppTest:
        monkeypatch.setenv("APPCA_HOME", str(self.home))
        if self.app is None:
            self.app = AppTest.from_file(str(APP), default_timeout=SECONDS).run()
        return self.app

    def upload(self, files: list[tuple[str, bytes]]) -> AppTest:
        go(self.app, "data/open")
        given = [(name, data, "application/octet-stream") for name, data in files]
        place = next(one for one in self.app.get("file_uploader") if "anywhere" in one.label)
        place.set_value(given)
        return self.app.run()

    def is_alive(self) -> None:
        """The digits are still fitted and drawn."""
        go(self.app, "explore")
        assert "nats per row" in html(healthy(self.app))


def test_the_page_shows_a_box_and_lives_on(visit, monkeypatch):
    visit(monkeypatch)
    for case in BAD:
        app = visit.upload([(case.name, content(case))])
        assert [problem.message for problem in app.exception] == []
        assert len(sentences(app)) == 1
        case.judge(sentences(app)[0])
    visit.is_alive()


def test_a_file_over_the_limit_is_refused_everywhere(visit, monkeypatch, capsys):
    """A file of 2 GB (sparse: it takes no room); on the page one above a limit of 1 kB."""
    with Path("big.csv").open("wb") as file:
        file.truncate(2 << 30)
    case = Bad("2 GB file over the limit", "big.csv", b"", "2,147 MB, more than")
    with pytest.raises(InputError) as caught:
        read("big.csv", Path("big.csv"))
    case.judge(str(caught.value))
    assert main(["fit", "big.csv"]) == 1
    case.judge(capsys.readouterr().err.removeprefix("appca: ").strip())
    visit(monkeypatch)
    monkeypatch.setattr("appca.ui.arrivals.ReadLimits", partial(ReadLimits, n_bytes=1000))
    app = visit.upload([("big.csv", b"a,b\n3,5\n4,4\n" + b"1,2\n" * 1000)])
    case._replace(rule="0 MB, more than the 0 MB").judge(sentences(app)[0])
    monkeypatch.undo()
    visit(monkeypatch)
    visit.is_alive()


SETTINGS = {  # what the estimator is given, the address of the page, the rule
    "K > D": ({"n_components": 99}, {"k": "99"}, "n_components must be at most 13"),
    "L > K": ({"n_components": 2, "n_active": 3}, {"k": "2", "l": "3"}, "n_active must be at most"),
    "L = 0": ({"n_components": 2, "n_active": 0}, {"k": "2", "l": "0"}, "n_active must be"),
    "K = 0": ({"n_components": 0}, {"k": "0"}, "n_components must be"),
    "L below 0": ({"n_active": -1}, {"l": "-1"}, "n_active must be"),
}


@pytest.mark.parametrize(("given", "address", "rule"), SETTINGS.values(), ids=SETTINGS)
def test_sizes_that_cannot_be_are_refused_or_brought_into_range(given, address, rule, capsys):
    value = str(next(iter(reversed(given.values()))))
    with pytest.raises(ValueError, match=rule) as caught:
        appca.AdaptivePPCA(**given).fit(load("wine").X)
    assert faults_of(str(caught.value), value) == ""
    settings = [part for key, one in given.items() for part in ("--set", f"{key}={one}")]
    assert main(["fit", "wine", *settings]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert faults_of(told.removeprefix("appca: ").strip(), value) == ""
    app = AppTest.from_file(str(APP), default_timeout=SECONDS)
    for key, one in address.items():
        app.query_params[key] = one
    healthy(app.run())
    assert 1 <= slider(app, "l").value <= slider(app, "k").value <= 64


@pytest.mark.parametrize("start", ["<script>alert(1)</script>", "=HYPERLINK(1)"])
def test_strange_labels_are_kept_shown_as_text_and_harmless_in_a_csv(
    start, visit, monkeypatch, capsys
):
    label = f"{start} \N{ROCKET} שלום \u202eevil a\\\"b'$c$ **d** `e` {LONG}"
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 4)), columns=["a", "b", "c", f"{label} 2"])
    frame.insert(0, label, [label[:500], "other"] * 20)  # longer texts are no labels
    data = frame.to_csv(index=False).encode()
    dataset = read("own.csv", io.BytesIO(data))
    assert dataset.labels[label].tolist()[:2] == [label[:500], "other"]
    assert f"{label} 2" in dataset.feature_names

    Path("own.csv").write_bytes(data)
    assert main(["data", "own.csv", "--out", "out.csv"]) == 0
    assert capsys.readouterr().err == ""
    written = pd.read_csv("out.csv")
    mark = "'" if label[0] in "=+-@" else ""
    assert written[mark + label].tolist()[:2] == [mark + label[:500], "other"]
    assert not re.search(r'(^|[,\n])"?[=+@]', Path("out.csv").read_text("utf-8"))

    visit(monkeypatch)
    app = visit.upload([(f"{label[:40].replace('/', '')}.csv", data)])
    healthy(app)
    for page in ("explore", "components/gallery"):
        shown = html(healthy(go(app, page)))
        assert "<script>" not in shown
    go(app, "data/open")
    app.button(key="source-digits-open").click().run()
    visit.is_alive()


def test_the_checker_of_sentences_finds_what_is_none():
    good = "“x.csv” has 1 row of data; at least 2 are needed, add rows."
    assert faults_of(good, "x.csv") == ""
    for text, fault in (
        ("", "it is empty"),
        (good + "\nmore.", "more than one line"),
        (good[:-1], "without a period"),
        ("It failed. Try again; please.", "more than one period"),
        ("The file is bad.", "a rule or a remedy"),
        ("KeyError: 'x'; look there.", "reads like a trace"),
        ("Traceback of x; look there.", "reads like a trace"),
        ("A name, \u202eevil.", "do not print"),
        ("x, " * 300 + ".", "longer than"),
    ):
        assert fault in faults_of(text), text
    assert "names none of" in faults_of(good, "y.csv")
