"""Words that are gone stay gone: in documents, docstrings, help and all strings shown to people."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

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
