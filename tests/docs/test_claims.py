"""The documents are true: snippets print what is shown below them, tabs and counts exist."""

import ast
import contextlib
import io
import json
import math
import os
import re
import subprocess
import warnings
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
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
LEFT_OUT = {"_build", "api", "examples", "extend.md"}
ELSEWHERE = {  # pages that need what the default run has not: who runs them instead
    "anndata.md": "tests/test_tl.py, beside scanpy in .ci/anndata",
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


def surroundings(folder):
    """What a reader of a guide has: rows, labels, a fit, and the files that it names."""
    import scipy.sparse

    digits = load_digits()
    X, y = digits.data / 16, digits.target
    model = AdaptivePPCA(n_components=6, n_active=2, random_state=0).fit(X)
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


def test_another_number_or_word_of_an_output_is_seen():
    assert not differ("a 1.00 b", "a  1.01\nb")
    assert differ("a 1.00", "a 1.10")
    assert differ("a 1.00", "b 1.00")
    assert differ("a 1", "a 1 2")


def test_the_search_over_k_ends_inside_its_grid():
    """A snippet that picks the edge of its grid would do what its page warns of."""
    (code, output), *_ = snippets(DOCS / "guides/choose_k_and_l.md")
    first, end = map(int, re.search(r"range\((\d+), (\d+)\)", code).groups())
    assert first < int(NUMBER.findall(output)[0]) < end - 1


def test_shares_of_scores_near_zero_are_what_the_guide_says():
    said = (DOCS / "guides/read_the_picture.md").read_text("utf-8")
    shares = []
    for X, k in ((load_digits().data / 16, 4), (load("planes").X, 3)):
        model = AdaptivePPCA(k, 2, random_state=0).fit(X)
        scores, used = model.transform(X), model.allocate(X)
        rms = np.sqrt((scores**2).sum(axis=0) / used.sum(axis=0))
        shares.append(np.mean(np.abs(scores / rms)[used] < 0.5))
    assert [f"{share:.0%}" in said for share in shares] == [True, True]
    assert shares[0] < 0.25 < shares[1]


def tabs():
    """The titles of tabs, by page."""
    page = re.compile(r'^    "(\w+)": \("([^"]+)", "\w+"\),$', re.M)
    titles = dict(page.findall((ROOT / "app.py").read_text("utf-8")))
    found = {}
    for key, title in titles.items():
        tree = ast.parse((ROOT / "pages" / key / f"{key}.py").read_text("utf-8"))
        texts = (n.value for n in ast.walk(tree) if isinstance(n, ast.Constant))
        found[title] = {text for text in texts if isinstance(text, str)}
    return found


def test_every_tab_that_a_document_names_is_there():
    found = tabs()
    named = [
        (file.name, *names)
        for file in pages()
        for names in re.findall(r"\*(\w+) → ([^*→]+?)(?: →[^*]*)?\*", file.read_text("utf-8"))
        if names[0] in found
    ]
    shown = {("Export", title) for title in ("AnnData", "Save HTML")}  # buttons
    absent = [one for one in named if one[2] not in found[one[1]] and one[1:] not in shown]
    assert len(named) > 10
    assert absent == []


def test_the_first_notebook_has_as_many_cells_as_it_says():
    notebook = json.loads((ROOT / "examples/first_steps.ipynb").read_text("utf-8"))
    cells = sum(cell["cell_type"] == "code" for cell in notebook["cells"])
    words = {5: "five", 6: "six", 7: "seven"}
    said = [(DOCS / "gallery.md").read_text("utf-8"), json.dumps(notebook["cells"][0])]
    assert all(f"{words[cells]} cells" in text for text in said)


ANSWERS = {  # a stranger's question, by words of its row in the README: words of the answer
    "CSV with gaps": "isna().sum()",
    "What is {1,3}": "The support of a row that uses components 1 and 3 is {1,3}",
    "choose K and L": "Choose K by held-out log-likelihood",
    "PCA, UMAP, NMF": "aPPCA learns K orthogonal components",
    "good on my data": "94 of 178 rows are doubtful",
    "notebook": "appca.explore(model, digits.data",
    "new rows": "model.transform(rows)",
    "AnnData": "appca.tl.appca(adata",
    "nginx": "proxy_pass http://127.0.0.1:8501",
    "table 1": "python -m appca paper table1",
    "E step": "`appca.models.em:expect`",
    "add a model": "## Add a model A model is a scikit-learn estimator",
    "delete it": "rm -rf ~/.local/share/appca",
}


@pytest.mark.parametrize("question", ANSWERS)
def test_one_click_from_the_readme_answers_a_strangers_question(question):
    rows = (ROOT / "README.md").read_text("utf-8").splitlines()
    (row,) = (line for line in rows if line.startswith("| ") and question in line)
    links = re.findall(r"\]\((docs/[\w/.-]+)", row)
    text = " ".join(" ".join((ROOT / link).read_text("utf-8").split()) for link in links)
    assert ANSWERS[question] in text


def test_the_readme_says_when_to_take_something_else():
    text = (ROOT / "README.md").read_text("utf-8")
    others = ("PCA", "UMAP", "NMF", "A mixture of PPCA")
    assert [name for name in others if f"- **{name}**" not in text] == []


def test_no_document_installs_from_an_index_what_no_index_has():
    index = re.compile(r"pip install ['\"]?appca")
    assert [file.name for file in pages() if index.search(file.read_text("utf-8"))] == []


def test_the_site_is_built_by_the_python_that_contributing_names(tmp_path):
    """`PYTHON` is a path from the folder where the command is typed, not from docs/."""
    (tmp_path / "docs").mkdir()
    build = tmp_path / "docs/build"
    build.write_text((DOCS / "build").read_text("utf-8"), encoding="utf-8")
    (tmp_path / "bin").mkdir()
    for name, does in {"npm": "", "cp": "", "python": f'echo "$PWD $*" >> {tmp_path}/said'}.items():
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/sh\n{does}\n", encoding="utf-8")
        program.chmod(0o755)
    told = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    command = re.search(r"PYTHON=\.venv(/bin/python) docs/build", told)
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    environment = {"PATH": path, "PYTHON": command[1].lstrip("/")}
    subprocess.run(["bash", "docs/build"], cwd=tmp_path, env=environment, check=True)
    said = (tmp_path / "said").read_text().splitlines()
    assert said[-1].startswith(f"{tmp_path}/docs -m sphinx -W")
