"""Tests of texts: banned words, formatted numbers, names and error messages."""

import ast
import errno
import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from appca.data.dataset import Dataset
from appca.data.files import few
from appca.words import (
    InputError,
    capital,
    counted,
    fixed,
    is_text,
    nats,
    number,
    of_column,
    percent,
    reason,
    refused,
    shortened,
    signed,
    storing,
    unknown,
)
from tests.sentences import faults_of

ROOT = Path(__file__).resolve().parents[2]
GONE = {  # what was said: what the field says
    r"foretells?": "predict",
    r"stand-ins?": "initial imputation, or preview",
    r"gappy": "incomplete",
    r"active sets?|(best|MAP) subsets?|subsets? (of|that) (a|each|the) rows?": "support",
    r"concentration": "mass parameter, or parameter matrix",
    r"latent variances?": "factor variance",
    r"own columns": "singletons",
    r"(?<!two )(passes|a pass)(?!\s(over|through|on|Geweke|=|:))": "iterations",
    r"swinging": "accelerated EM",
    r"race[ds]?|racing": "screening",
    r"settled": "converged",
    r"next to nothing": "improvement below tol",
    r"circle kernels?|lean(s|ed)? on": "Poisson-binomial by DFT; depend on",
    r"first so many": "the first n",
    r"\d+(\.\d+)? %": "12%",
    r"per cent": "percent, or %",
    r"anew|started? afresh": "again",
    r"held against": "compared with",
    r"found again": "recovered",
    r"by turns": "alternately",
    r"made ahead": "precomputed",
    r"(in whatever|on its) company": "other rows",
    r"turn(s|ed)? (them |it )?round": "flip the sign",
    r"hangs? together": "relate to",
    r"told apart|tells? apart": "distinguish",
    r"what (was given|they put)": "the input",
    r"(is|are) no (advice|yardstick|news)": "do not, cannot",
    r"whoever": "everyone who, anyone who",
    r"colors?|colored|grays?|centers?|centered|neighbor(s?|ing|hood)|behaviors?": "colour ...",
}
WORDS = re.compile(r"(?<![\w`.\"=:-])(" + "|".join(GONE) + r")(?![\w(=`\"{:-])", re.I)
FENCED = re.compile(r"^(```|~~~).*?^\1|^(?:    [^\n]*\n)+", re.M | re.S)
CODE = re.compile(r"``.+?``|`[^`\n]+`|\$\$.+?\$\$|\$[^$\n]+\$|\(https?://[^)]+\)", re.S)
SHOWN_BY_JS = re.compile(r"'([^'\n]* [^'\n]*)'|`([^`\n]* [^`\n]*)`")
NOT_OURS = ("appca/data/sources.py", "color"), ("appca/ui/export.py", "neighbors")  # by others
WRITTEN = ("benchmarks.md", "measurements.md", "paper.md")  # by their commands, from results
DOCUMENTS = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "sample_data/README.md")


def prose(markdown: str) -> str:
    """Take code, formulas and addresses out of a document."""
    return CODE.sub(" ", FENCED.sub("\n", markdown))


def documents() -> Iterator[tuple[str, str]]:
    """Every document by its path."""
    files = [*(ROOT / name for name in DOCUMENTS), *(ROOT / "docs").rglob("*.md")]
    for file in files:
        built = {"_build", "api", "examples"} & set(file.relative_to(ROOT).parts)
        if not built and file.name not in WRITTEN:
            yield file.relative_to(ROOT).as_posix(), prose(file.read_text("utf-8"))
    for file in (ROOT / "examples").glob("*.ipynb"):
        cells = json.loads(file.read_text("utf-8"))["cells"]
        told = ["".join(one["source"]) for one in cells if one["cell_type"] == "markdown"]
        yield file.relative_to(ROOT).as_posix(), prose("\n\n".join(told))


def strings(source: str) -> Iterator[tuple[int, str]]:
    """Docstrings and all strings of several words of a Python file, with their lines."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, CODE.sub(" ", node.value)


def shown() -> Iterator[tuple[str, str]]:
    """What the code says to people, by file and line."""
    for folder in ("appca", "pages"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            path = file.relative_to(ROOT).as_posix()
            for line, text in strings(file.read_text("utf-8")):
                yield f"{path}:{line}", text
    for file in sorted((ROOT / "appca").rglob("*.js")):
        text = " · ".join("".join(two) for two in SHOWN_BY_JS.findall(file.read_text("utf-8")))
        yield file.relative_to(ROOT).as_posix(), text


def gone(texts: Iterator[tuple[str, str]]) -> list[str]:
    found = ((place, one[0]) for place, text in texts for one in WORDS.finditer(text))
    found = (pair for pair in found if (pair[0].partition(":")[0], pair[1]) not in NOT_OURS)
    return [f"{place}: “{word}”" for place, word in found]


def test_nothing_that_people_read_has_a_word_that_is_gone():
    assert gone(documents()) == []
    assert gone(shown()) == []
    source = 'x = f"{n} took 12 % of them" # and would foretell `passes`\ny = "passes"'
    assert [one[0] for _, text in strings(source) for one in WORDS.finditer(text)] == ["12 %"]


@given(st.floats(0, 1), st.integers(0, 3))
def test_a_share_is_near_what_is_written_and_only_none_and_all_look_so(share, digits):
    text = percent(share, digits)
    shown = float(re.search(r"[\d.]+", text)[0])
    assert abs(shown - 100 * share) <= 10.0**-digits * (1 + 1e-9)
    assert (text == "0%") == (share == 0)
    assert (text == "100%") == (share == 1)


def test_texts_from_files_with_characters_that_do_not_exist_are_refused():
    fine = (["", "\U0010ffff", "\ud7ff\ue000"], ["", ""], np.array([], dtype=str), np.arange(3))
    assert all(is_text(np.array(text)) for text in fine)
    for code in (0x110000, 0xFFFFFFFF, 0xD800, 0xDFFF):
        codes = np.array([[97, 98], [99, code]], np.uint32)
        for order in "<>":
            texts = codes.astype(f"{order}u4").view(f"{order}U2").ravel()
            assert not is_text(texts)
            assert is_text(texts[:1])
            with pytest.raises(InputError, match="row ids contain invalid Unicode"):
                Dataset("x", np.eye(2), texts)
            with pytest.raises(InputError, match="label column “y” contain invalid Unicode"):
                Dataset("x", np.eye(2), np.array(["a", "b"]), {"y": texts})


def test_what_the_disk_refuses_is_one_sentence_with_what_where_why_and_the_remedy():
    with pytest.raises(InputError) as told, storing("The fit", Path("/home/runs")):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert str(told.value) == (
        "The fit could not be stored in /home/runs: No space left on device; free some space, or "
        "set APPCA_HOME to another folder."
    )
    assert isinstance(told.value.__cause__, OSError)
    denied = pytest.raises(InputError, match=r": Permission denied; ask its owner\.$")
    with denied, storing("The file", Path("/data"), "ask its owner"):
        raise PermissionError(errno.EACCES, "Permission denied", ".draft")
    assert str(refused("It", OSError("parsed"), "look again")) == "It: parsed; look again."


def test_the_checker_of_sentences_finds_what_is_none():
    good = "“x.csv” has 1 row of data; at least 2 are needed, add rows."
    assert faults_of(good, "x.csv") == ""
    assert "without a period" in faults_of(good[:-1])
    assert "reads like a trace" in faults_of("KeyError: 'x'; look there.")
    assert "names none of" in faults_of(good, "y.csv")
    assert (few([*"abcde"]), few([*"abcdef"])[-6:]) == ("a, b, c, d, e", "1 more")


SHARES = {  # by the number of digits: shares, and how they are written
    0: {0.2851: "29%", 0.9996: "over 99%", 0.9949: "99%", 12.5: "1,250%"},
    1: {0.285: "28.5%", 0.0: "0%", 1.0: "100%", 0.0004: "under 0.1%", 0.0005001: "0.1%"}
    | {0.9996: "over 99.9%", -0.0321: "−3.2%", float("nan"): "–", np.float32(0.5): "50.0%"},
    3: {0.0000001: "under 0.001%"},
}
NUMBERS = {
    fixed: {-1234.567: "−1,234.57", -0.001: "0.00", np.nan: "–"},
    nats: {-1234.567: "−1,234.57 nats", 2: "2.00 nats"},
    number: {0.0123456: "0.0123", 12345.6: "12,346", -1.2345: "−1.23", 0: "0"}
    | {1e-7: "1e−07", 3e9: "3e+09"},
    signed: {0.12345: "+0.123", -3.456: "−3.46", 0.0: "+0"},
}


def test_shares_and_numbers_have_their_digits_their_comma_and_a_true_minus():
    for digits, shares in SHARES.items():
        assert {share: percent(share, digits) for share in shares} == shares
    for write, texts in NUMBERS.items():
        assert {value: write(value) for value in texts} == texts
    assert percent(-0.0) == "0%"
    assert fixed(-1.23456, 4) == "−1.2346"
    assert [counted(n, "row") for n in (0, 1, 2000)] == ["0 rows", "1 row", "2,000 rows"]
    names = ("digit", "pH", "DNA", "*p*", "", "élan")
    assert [capital(name) for name in names] == ["Digit", "pH", "DNA", "*p*", "", "Élan"]
    short = {  # texts become one line of signs that are seen
        "a\n b\t c": "a b c",
        "x" * 35 + "y" * 15: "x" * 26 + "…" + "y" * 13,
        "a\x00b\x1b[31m": "a�b�[31m",
        "\u202egnp.exe": "�gnp.exe",
        "שלום 👩\u200d🔬": "שלום 👩\u200d🔬",
    }
    assert {text: shortened(text) for text in short} == short
    assert shortened("x" * 50, 60) == "x" * 50
    assert [of_column("class", x) for x in ("a", "Class 1")] == ["class a", "Class 1"]


def test_reasons_are_a_few_words_and_other_errors_pass():
    for error, words in (
        (FileNotFoundError(2, "No such file", "/a/b/arrays.npz"), "arrays.npz is missing"),
        (FileNotFoundError(), "a file is missing"),
        (KeyError("config"), "“config” is missing"),
        (MemoryError(), "there is too little memory"),
        (PermissionError(13, "Permission denied"), "Permission denied"),
        (ValueError("a\nb."), "a b"),
        (ValueError("Objects inside. If you trust it, load it."), "Objects inside"),
        (ValueError(), "it cannot be read"),
    ):
        assert reason(error) == words
    with pytest.raises(KeyError), storing("The fit", Path("/home")):
        raise KeyError("x")


def test_a_name_that_is_not_there_is_told_with_those_near_it():
    for name, known, said in (
        ("hight", ["height", "a"], "“hight”; the nearest is “height”, and there are “heig"),
        ("HEIGHT", ["height"], "“HEIGHT”; the nearest is “height”."),
        ("zz", list("abcdefgh"), "“zz”; there are “a”, “b”, “c”, “d”, “e”, “f” and 2 more."),
        ("zz", [], "“zz”; there are none to choose from."),
        ("ab1", ["ab2", "ab3"], "“ab1”; the nearest are “ab3”, “ab2”."),
    ):
        refusal = str(unknown("column", name, known))
        assert refusal.startswith(f"There is no column {said}")
        assert faults_of(refusal, name) == ""
