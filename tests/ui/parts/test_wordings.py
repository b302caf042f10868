"""Sentences that count have the right number, and names from data stay as they were written."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest

from appca.jobs.worker import KINDS
from appca.runs.run import RunConfig
from appca.ui.fits import Shown
from appca.ui.kit import JOB_TITLES, markdown
from tests.fitted_runs import fitted_run, info_of
from tests.ui.conftest import go, healthy
from tests.ui.parts.test_pages import good_table, table_of, upload

ROOT = Path(__file__).parents[3]
NEVER = re.compile(
    r"\b(runs?|jobs?|refine\w*|previews?|passes|pass over|foretell|seeds?|present settings)\b",
    re.IGNORECASE,
)


def run_of(k: int, model: str, **parameters) -> Shown:
    fitted = fitted_run(np.ones((3, k), dtype=bool))
    return Shown(RunConfig("0" * 64, {}, model, parameters), fitted, info_of(), None)


def literals(file: Path) -> list[str]:
    """The words a page of this file may say: its strings, without docstrings, keys and names."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    scopes = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docs = {
        id(one.body[0].value)
        for one in ast.walk(tree)
        if isinstance(one, scopes) and isinstance(one.body[0], ast.Expr)
    }
    found = (one for one in ast.walk(tree) if isinstance(one, ast.Constant) and id(one) not in docs)
    texts = [one.value for one in found if isinstance(one.value, str)]
    return [text for text in texts if " " in text.strip() or text[:1].isupper()]


def test_no_page_says_run_job_refine_preview_or_seed():
    files = [file for place in ("appca/ui", "pages") for file in (ROOT / place).rglob("*.py")]
    said = [
        (file.name, text)
        for file in files
        for text in literals(file)
        if NEVER.search(text) and not (file.name == "settings.py" and "eed" in text)
    ]
    assert len(files) > 30
    assert said == []


def test_every_kind_of_job_has_a_name_in_the_status_line():
    assert set(KINDS) <= set(JOB_TITLES)
    assert all(name[:1].isupper() for name in JOB_TITLES.values())


@pytest.mark.parametrize(("label", "shown"), [("*p*", "*p*"), ("pH", "pH"), ("kind", "Kind")])
def test_a_colouring_is_called_as_the_column_is(start, label, shown):
    app = upload(start("data/open"), table_of(good_table(label)))
    go(app, "explore")
    colours = next(box for box in healthy(app).radio if box.label == "Colour by")
    assert markdown(shown) in colours.options
