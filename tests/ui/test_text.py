"""Words and small pieces of HTML: numbers read well, and data is only ever text."""

import ast
import re
from pathlib import Path

import streamlit as st

from appca.jobs.worker import KINDS
from appca.ui import frame, kit
from appca.ui.kit import JOB_TITLES
from appca.words import about, duration, size
from tests.fitted_runs import info_of

NASTY = '<img src=x onerror="alert(1)">&"'


def test_numbers_have_units_and_a_true_minus():
    for words, given, said in (
        *((duration, *pair) for pair in ((0.2, "under 1 s"), (8.4, "8 s"), (89, "89 s"))),
        *((duration, *pair) for pair in ((100, "2 min"), (9000, "2.5 h"))),
        *((about, *pair) for pair in ((0.1, "under 1 s"), (12, "about 12 s"))),
        *((size, *pair) for pair in ((12, "12 B"), (3100, "3.1 kB"), (2.5e9, "2.5 GB"))),
        (kit.nats_per_row, info_of(log_likelihood=-2469.14, n_rows=2), "−1,234.57 nats per row"),
    ):
        assert words(given) == said


def test_words_cannot_break_out_of_their_element_and_like_buttons_are_told_apart():
    element = kit.tag("span", kit.words(NASTY), "css", title=NASTY)
    assert (element.count("<"), element.count('"')) == (2, 4)
    html = kit.name("<b>x</b>", "rename", '1" onclick="alert(1)', '"><script>', "a & b")
    assert not any(words in html for words in ("<script>", 'onclick="'))
    assert "&lt;b&gt;x&lt;/b&gt;" in html
    assert 'aria-pressed="true"' in kit.button("x", "show", 3, pressed=True)
    protected = kit.markdown("*a* [b](c) :red[d] $e$")
    assert protected.replace("\\", "") == "*a* [b](c) :red[d] $e$"
    assert all(protected[i - 1] == "\\" for i, c in enumerate(protected) if c in "*[]():$")
    assert kit.apart("Open", "run a*b") == "Open *run a\\*b*"
    style = " ".join(frame.STYLE.read_text("utf-8").split())
    assert re.search(r"button em,? [^{}]*\{ position: absolute", style)


def test_pages_follow_one_another_without_gap_or_overlap(monkeypatch):
    shown = []
    for page in (1, 2, 3):
        monkeypatch.setattr(kit.st, "pagination", lambda pages, page=page, **_: min(page, pages))
        first = kit.first_of_page(25, 12, "key")
        shown += range(25)[first : first + 12]
    assert shown == list(range(25))
    assert kit.first_of_page(12, 12, "key") == 0


ROOT = Path(__file__).parents[2]
NEVER = re.compile(
    r"\b(runs?|jobs?|refine\w*|previews?|passes|pass over|foretell|seeds?|present settings)\b",
    re.IGNORECASE,
)


def literals(file: Path) -> list[str]:
    """The words a page of this file may say: its strings, without docstrings, keys and names."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    docs = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
    found = (one for one in ast.walk(tree) if isinstance(one, ast.Constant) and id(one) not in docs)
    texts = [one.value for one in found if isinstance(one.value, str)]
    return [text for text in texts if " " in text.strip() or text[:1].isupper()]


def test_no_page_says_run_job_refine_preview_or_seed_and_every_kind_of_job_has_a_name():
    files = [file for place in ("appca/ui", "pages") for file in (ROOT / place).rglob("*.py")]
    said = [
        (file.name, text)
        for file in files
        for text in literals(file)
        if NEVER.search(text) and not (file.name == "settings.py" and "eed" in text)
    ]
    assert len(files) > 30
    assert said == []
    assert set(KINDS) <= set(JOB_TITLES)
    assert all(name[:1].isupper() for name in JOB_TITLES.values())


def test_only_the_acts_of_a_part_are_done_with_short_texts_and_refusals_are_said(monkeypatch):
    done = []
    known = {"rename": lambda value, text: done.append((value, text)), "go": lambda v, _: int(v)}
    asked = {"act": "rename", "value": 3, "text": "n" * 9999}
    for told in (None, "x", {"act": "other"}, asked, {"act": "go", "value": "x"}):
        monkeypatch.setattr(st, "session_state", {"part_acts": {"act": told}})
        kit._answer("part", known)
    assert done == [("3", "n" * 1000)]
    (notice,) = st.session_state["notices"]
    assert "invalid literal" in notice.text
