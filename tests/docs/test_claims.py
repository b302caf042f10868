"""Tests of the documentation: output of snippets, names of tabs, counts."""

import ast
import contextlib
import io
import json
import math
import re
import warnings
from copy import deepcopy
from functools import cache
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from appca import AdaptivePPCA
from appca.data.sources import load

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
BLOCK = re.compile(
    r"^```(?:\{code-block\} )?python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```)?",
    re.M | re.S,
)
NUMBER, LEFT_OUT = re.compile(r"-?\d+(?:\.\d+)?"), {"_build", "api", "examples", "extend.md"}
ELSEWHERE = {  # pages that need what the default run has not: who runs them instead
    "anndata.md": "tests/test_tl.py, beside scanpy in .ci/installed"
}
NOT_INSTALLED = {"decoupler"}  # its snippets are not run
QUICK = {"get_started.md", "open_data.md", "notebook.md"}  # in the default run


def pages():
    for file in sorted({*DOCS.rglob("*.md"), ROOT / "README.md"}):
        if LEFT_OUT.isdisjoint(file.relative_to(ROOT).parts):
            yield file


def snippets(file):
    return [(one["code"], one["output"]) for one in BLOCK.finditer(file.read_text("utf-8"))]


RUN = [
    pytest.param(file, marks=() if file.name in QUICK else pytest.mark.thorough)
    for file in pages()
    if snippets(file) and file.name not in ELSEWHERE
]


@cache
def fitted():
    return AdaptivePPCA(n_components=6, n_active=2, random_state=0).fit(load_digits().data / 16)


def surroundings(folder):
    """What a reader of a guide has: rows, labels, a fit, and the files that it names."""
    import scipy.sparse

    digits, model = load_digits(), deepcopy(fitted())
    X, y = digits.data / 16, digits.target
    model.save(folder / "digits.npz")
    np.save(folder / "rows.npy", X.astype(np.float32))
    for part in range(10):
        np.save(folder / f"part-{part}.npy", X[part::10])
    scipy.sparse.save_npz(folder / "counts.npz", scipy.sparse.csr_array(digits.data))
    parts = {"train": X[:1400], "test": X[1400:], "rows": X[:20], "old_rows": X[20:60]}
    scores = model.transform(X)
    return parts | {"X": X, "y": y, "model": model, "scores": scores, "E": scores[:, :2]}


def differ(said, shown):
    """Whether an output differs from the one a page shows by more than rounding."""
    if NUMBER.sub("", said).split() != NUMBER.sub("", shown).split():
        return True
    pairs = zip_longest(NUMBER.findall(said), NUMBER.findall(shown), fillvalue="nan")
    return not all(math.isclose(float(a), float(b), rel_tol=0.02, abs_tol=0.021) for a, b in pairs)


@pytest.mark.parametrize("file", RUN, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_snippets_run_and_print_what_the_page_shows(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    space = surroundings(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a page need not converge
        for code, output in snippets(file):
            said = io.StringIO()
            if NOT_INSTALLED & set(code.split()):
                continue
            with contextlib.redirect_stdout(said):
                exec(compile(code, str(file), "exec"), space)
            assert not (output and differ(said.getvalue(), output)), said.getvalue()


def test_shares_of_scores_near_zero_are_what_the_guide_says():
    said, shares = (DOCS / "guides/read_the_picture.md").read_text("utf-8"), []
    for X, k in ((load_digits().data / 16, 4), (load("planes").X, 3)):
        model = AdaptivePPCA(k, 2, random_state=0).fit(X)
        scores, used = model.transform(X), model.allocate(X)
        rms = np.sqrt((scores**2).sum(axis=0) / used.sum(axis=0))
        shares.append(np.mean(np.abs(scores / rms)[used] < 0.5))
    assert [f"{share:.0%}" in said for share in shares] == [True, True]
    assert shares[0] < 0.25 < shares[1]


def test_every_tab_that_a_document_names_is_there_and_what_it_counts_is_so_many():
    page, found = re.compile(r'^    "(\w+)": \("([^"]+)", "\w+"\),$', re.M), {}
    for key, title in page.findall((ROOT / "app.py").read_text("utf-8")):
        tree = ast.parse((ROOT / "pages" / key / f"{key}.py").read_text("utf-8"))
        found[title] = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    named = [
        (file.name, *(" ".join(name.split()) for name in names))
        for file in pages()
        for names in re.findall(r"\*(\w+) → ([^*→]+?)(?: →[^*]*)?\*", file.read_text("utf-8"))
        if names[0] in found
    ]
    shown = {("Export", title) for title in ("AnnData", "Save HTML")}  # buttons
    absent = [one for one in named if one[2] not in found[one[1]] and one[1:] not in shown]
    assert len(named) > 10
    assert absent == []
    index = re.compile(r"pip install ['\"]?appca")  # no index has it
    assert [file.name for file in pages() if index.search(file.read_text("utf-8"))] == []
    notebook = json.loads((ROOT / "examples/first_steps.ipynb").read_text("utf-8"))
    cells = sum(cell["cell_type"] == "code" for cell in notebook["cells"])
    words = {5: "five", 6: "six", 7: "seven"}
    said = [(DOCS / "gallery.md").read_text("utf-8"), json.dumps(notebook["cells"][0])]
    assert all(f"{words[cells]} cells" in text for text in said)


def test_a_snippet_that_picks_k_does_not_pick_the_edge_of_its_grid():
    (code, output), *_ = snippets(DOCS / "guides/choose_k_and_l.md")
    first, end = map(int, re.search(r"range\((\d+), (\d+)\)", code).groups())
    assert first < int(NUMBER.findall(output)[0]) < end - 1
    assert not differ("a 1.00 b", "a  1.01\nb")
    assert all(differ("a 1.00", other) for other in ("a 1.10", "b 1.00", "a 1.00 2"))
