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
from appca.data.readers import read, read_many
from appca.data.sources import load
from appca.words import InputError
from tests import bad_files as bad
from tests.data.fuzz_targets import mutant, small
from tests.sentences import faults_of
from tests.ui.conftest import APP, SECONDS, go, healthy, html, sentences, slider

MARK = Path("unpickled")  # comes into being beside the file if a pickle is loaded
LONG = "x" * 1000
GOOD = ("a,b", "1,2", "3,5", "4,4")
ONE_COLUMN = bad.table("a", "1", "2", "3")


class Bad(NamedTuple):
    """A line of the fault list."""

    fault: str  # as the product says it
    name: str  # of the file
    data: bytes | Callable[[], bytes]
    rule: str  # in the sentence
    named: str  # what was given, in the sentence
    beside: tuple[str, Callable[[], bytes]] | None = None  # a mask


BAD = [
    Bad("empty file", "e.csv", b"", "is empty", "e.csv"),
    Bad("header only", "h.csv", b"a,b,c\n", "no rows", "h.csv"),
    Bad("ragged rows", "r.csv", bad.table("a,b", "1,2", "1,2,3"), "Line 3.*3 cells", "r.csv"),
    Bad(
        *(
            "text in numeric columns",
            "t.csv",
            bad.table(*GOOD, "6,oops"),
            "numbers and words",
            "oops",
        ),
    ),
    Bad("all-NaN column", "n.csv", bad.table("a,b", "1,", "3,"), "1 feature column of 2", "n.csv"),
    Bad("inf", "i.csv", bad.table(*GOOD, "6,-inf"), "“b” is infinite in row 4", "“b”"),
    Bad("one row", "o.csv", bad.table("a,b", "1,2"), "1 row of data; at least 2", "o.csv"),
    Bad("constant data", "c.csv", bad.table("a,b", *["1,2"] * 3), "are the same", "All 3 rows"),
    Bad("D = 1", "d.csv", ONE_COLUMN, "1 feature column of 1; at least 2", "d.csv"),
    Bad("wrong IDX length", "w.idx", bad.idx((3, 4, 5), 59), "3 x 4 x 5.*it holds 59", "w.idx"),
    Bad("truncated gzip", "t.csv.gz", bad.truncated_gzip, "breaks off", "t.csv.gz"),
    Bad(
        *("zip with 10 GB inside", "b.zip"),
        lambda: bad.claiming(3_400_000_000, bad.pictures("a.png", "b.png", "c.png")),
        *("unpacks to 10,200 MB", "b.zip"),
    ),
    Bad(
        *("zip that lies about its size", "l.zip"),
        lambda: bad.lying(zipfile.ZIP_DEFLATED),
        *("“a.png”.*damaged", "l.zip"),
    ),
    Bad(
        *("zip packed by a method that unpacks without bounds", "m.zip"),
        lambda: bad.packed(bad.pictures("a.png", "b.png"), zipfile.ZIP_LZMA),
        *("rare method", "m.zip"),
    ),
    Bad(
        *("nested zip", "n.zip"),
        lambda: bad.packed({"in.zip": bad.packed({}), **bad.pictures("a.png")}),
        *("holds another archive", "in.zip"),
    ),
    Bad(
        *("50,000 x 50,000 pixel image", "p.zip"),
        lambda: bad.packed({"a.png": bad.huge_png(), "b.png": bad.png()}),
        *("more than 50 million pixels", "a.png"),
    ),
    Bad(
        *("not an image", "f.zip", lambda: bad.packed({"a.png": b"text", "b.png": bad.png()})),
        *("is not an image", "a.png"),
    ),
    Bad("object arrays", "o.npy", lambda: bad.objects(MARK), "Python objects", "o.npy"),
    Bad("3-D NIfTI where 4-D is needed", "b.nii", lambda: bad.nifti(5, 6, 4), "3-dim", "b.nii"),
    Bad(
        *("mask of another shape", "run.nii", lambda: bad.nifti(5, 6, 4, 18)),
        *("is 4 x 6 x 4, the recording 5 x 6 x 4", "mask.nii"),
        beside=("mask.nii", lambda: bad.nifti(4, 6, 4)),
    ),
    Bad("wrong encoding", "e.csv", b"a,b\n1,\x02\xe9\n2,3", "not utf-8 text", "0xe9"),
    Bad("NUL bytes", "z.csv", b"a,b\n1,\x00\n3,4\n", "zero bytes", "z.csv"),
    Bad("a file of no known kind", "letter.docx", b"PK\x03\x04", "no known kind|known", "letter"),
    Bad("a name of 1,000 characters", f"{LONG}.csv", b"", "is empty", "xxx"),
    Bad("a name with NUL and a turned direction", "a\0\u202eb.csv", b"", "is empty", "a�"),
    Bad(
        "a name with markup and emoji",
        "<b>\N{ROCKET}</b>.csv",
        b"",
        "is empty",
        "<b>",
    ),
]


def contents(case: Bad) -> list[tuple[str, bytes]]:
    def made(data: bytes | Callable[[], bytes]) -> bytes:
        return data() if callable(data) else data

    beside = [] if case.beside is None else [(case.beside[0], made(case.beside[1]))]
    return [(case.name, made(case.data)), *beside]


def judge(case: Bad, sentence: str) -> None:
    assert faults_of(sentence, case.named) == ""
    assert re.search(case.rule, sentence), sentence


@pytest.fixture(autouse=True)
def nothing_is_unpickled(tmp_path, monkeypatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    yield
    assert not MARK.exists()


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.fault)
def test_the_library_refuses_in_one_sentence(case):
    files = [(name, io.BytesIO(data)) for name, data in contents(case)]
    with pytest.raises(InputError) as caught:
        read_many(files)
    judge(case, str(caught.value))


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.fault)
def test_the_command_line_refuses_with_code_1_and_one_line(case, capsys):
    files = contents(case)
    on_disk = all("\0" not in name and len(name.encode()) < 250 for name, _ in files)
    for name, data in files if on_disk else []:
        Path(name.replace("/", "_")).write_bytes(data)
    options = ["--option", f"mask={case.beside[0]}"] if case.beside else []
    names = ["--option", f"mask_name={case.beside[0]}"] if case.beside else []
    assert main(["fit", case.name.replace("/", "_"), "-K", "2", "-L", "1", *options, *names]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert told.err.startswith("appca: ")
    if on_disk and "/" not in case.name:
        judge(case, told.err.removeprefix("appca: ").strip())


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


@pytest.mark.default_cases(9)
@pytest.mark.parametrize("case", BAD, ids=lambda case: case.fault)
def test_the_page_shows_a_box_and_lives_on(case, visit, monkeypatch):
    visit(monkeypatch)
    app = visit.upload(contents(case))
    assert [problem.message for problem in app.exception] == []
    assert len(sentences(app)) == 1
    judge(case, sentences(app)[0])
    visit.is_alive()


def test_a_file_over_the_limit_is_refused_everywhere(visit, monkeypatch, capsys):
    """A file of 2 GB (sparse: it takes no room); on the page one above a limit of 1 kB."""
    with Path("big.csv").open("wb") as file:
        file.truncate(2 << 30)
    case = Bad("2 GB file over the limit", "big.csv", b"", "2,147 MB, more than", "big.csv")
    with pytest.raises(InputError) as caught:
        read("big.csv", Path("big.csv"))
    judge(case, str(caught.value))
    assert main(["fit", "big.csv"]) == 1
    judge(case, capsys.readouterr().err.removeprefix("appca: ").strip())
    visit(monkeypatch)
    monkeypatch.setattr("appca.ui.arrivals.ReadLimits", partial(ReadLimits, n_bytes=1000))
    app = visit.upload([("big.csv", bad.table(*GOOD, *["1,2"] * 1000))])
    judge(case._replace(rule="0 MB, more than the 0 MB"), sentences(app)[0])
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


STRANGE = {
    "labels that look like HTML": "<script>alert(1)</script>",
    "labels that look like formulas": "=HYPERLINK(1)",
    "labels with emoji": "\N{GRINNING FACE}\u200d\N{ROCKET}",
    "labels from right to left": "שלום \u202eevil",
    "labels of 1,000 characters": LONG,
    "labels with quotes and backslashes": "a\\\"b'$c$ **d** `e`",
}


def strange_table(label: str) -> bytes:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 4)), columns=["a", "b", "c", f"{label} 2"])
    frame.insert(0, label, [label[:500], "other"] * 20)  # longer texts are no labels
    return frame.to_csv(index=False).encode()


@pytest.mark.parametrize(
    "label",
    [
        pytest.param(label, id=name, marks=[pytest.mark.thorough] * ("HTML" not in name))
        for name, label in STRANGE.items()
    ],
)
def test_strange_labels_are_kept_shown_as_text_and_harmless_in_a_csv(
    label, visit, monkeypatch, capsys
):
    data = strange_table(label)
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


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_paths_in_a_zip_lead_nowhere(visit, monkeypatch, capsys):
    names = ("../../evil.png", "/etc/evil2.png", "C:\\evil3.png", "a/../../evil4.png")
    data = bad.packed(bad.pictures(*names))
    before = set(Path.cwd().parent.rglob("*evil*"))
    dataset = read("p.zip", io.BytesIO(data))
    found = sorted(name.rsplit("/", 1)[-1] for name in dataset.ids)
    assert found == ["evil", "evil2", "evil3", "evil4"]
    assert not any(".." in name or name.startswith("/") for name in dataset.ids)
    Path("p.zip").write_bytes(data)
    assert main(["data", "p.zip"]) == 0
    assert "4 rows" in capsys.readouterr().out
    visit(monkeypatch)
    assert not visit.upload([("p.zip", data)]).exception
    assert set(Path.cwd().parent.rglob("*evil*")) == before
    assert not list(visit.home.rglob("*evil*"))
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


def test_broken_models_are_used_or_refused_by_the_command_line(seed, capsys):
    """Model files broken in a hundred ways (`tests.data.readers.test_fuzz` reads more)."""
    rows = small().X
    Path("rows.csv").write_text("\n".join(",".join(map(str, row)) for row in rows), "utf-8")
    codes = []
    for case in range(100):
        Path("model.npz").write_bytes(mutant("model", seed, case)[0])
        with np.errstate(all="ignore"):  # numbers of any size may stand in a model
            codes.append(main(["project", "model.npz", "rows.csv", "--out", "out.csv"]))
        told = capsys.readouterr().err
        assert told.count("\n") == (codes[-1] == 1), f"case {case}: {told}"
        assert not told or faults_of(told.removeprefix("appca: ").strip()) == "", f"case {case}"
    assert set(codes) == {0, 1}
