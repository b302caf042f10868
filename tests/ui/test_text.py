"""Words and small pieces of HTML: numbers read well, and data is only ever text."""

import ast
import logging
import re
from pathlib import Path

import numpy as np
import pytest
import streamlit as st
from streamlit.elements.lib import policies
from streamlit.testing.v1 import AppTest

from appca.analysis.components import in_data_space, patterns
from appca.analysis.fitted import FittedRun
from appca.data.dataset import Dataset
from appca.data.preprocessing import Preprocessing
from appca.jobs.worker import KINDS
from appca.plots.style import colour_by
from appca.ui import explore, frame, kit
from appca.ui.kit import JOB_TITLES, markdown
from appca.words import about, duration, size
from tests.fitted_runs import fitted_run, info_of
from tests.ui.conftest import go, healthy
from tests.ui.parts.test_pages import good_table, table_of, upload

NASTY = '<img src=x onerror="alert(1)">&"'


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.2, "under 1 s"), (8.4, "8 s"), (89, "89 s"), (100, "2 min"), (9000, "2.5 h")],
)
def test_durations_are_rough(seconds, said):
    assert duration(seconds) == said


def test_a_log_likelihood_has_a_true_minus_and_a_comma():
    assert kit.nats_per_row(info_of(log_likelihood=-2469.14, n_rows=2)) == "−1,234.57 nats per row"


def test_estimates_say_about_except_below_a_second():
    assert (about(0.1), about(12)) == ("under 1 s", "about 12 s")


@pytest.mark.parametrize(("n", "said"), [(12, "12 B"), (3100, "3.1 kB"), (2.5e9, "2.5 GB")])
def test_sizes_have_units(n, said):
    assert size(n) == said


def test_attributes_and_words_cannot_break_out_of_their_element():
    element = kit.tag("span", kit.words(NASTY), "css", title=NASTY)
    assert element.count("<") == 2
    assert element.count('"') == 4


def test_markdown_loses_its_meaning_but_not_its_words():
    protected = kit.markdown("*a* [b](c) :red[d] $e$")
    assert protected.replace("\\", "") == "*a* [b](c) :red[d] $e$"
    assert all(protected[i - 1] == "\\" for i, c in enumerate(protected) if c in "*[]():$")


def test_like_buttons_are_told_apart_by_words_that_are_not_seen():
    assert kit.apart("Open", "run a*b") == "Open *run a\\*b*"
    style = " ".join(frame.STYLE.read_text("utf-8").split())
    assert re.search(r"button em,? [^{}]*\{ position: absolute", style)


def table(names: tuple[str, ...]) -> Dataset:
    rng = np.random.default_rng(0)
    return Dataset(
        name="t",
        X=rng.normal(size=(30, len(names))) * np.array([1000.0] + [1.0] * (len(names) - 1)),
        ids=np.arange(30).astype(str),
        labels={"class": np.array([NASTY, "b"] * 15)},
        feature_names=names,
    )


def run_of(dataset: Dataset, component: list[float], active: np.ndarray | None = None) -> FittedRun:
    before = Preprocessing(centre=True, scale="feature").fit(dataset.X)
    return fitted_run(
        np.ones((30, 1), dtype=bool) if active is None else active,
        components=np.array([component]),
        preprocessing=before,
    )


def test_features_of_a_component_are_shown_literally_and_ranked_in_the_units_of_the_fit():
    dataset = table(("in thousands", NASTY, "third"))
    fitted = run_of(dataset, [0.1, 0.9, 0.2])
    html = kit.loadings(patterns(fitted, None)[0], dataset.feature_names)
    assert "<img" not in html
    assert html.index(kit.words(NASTY)) < html.index("third") < html.index("in thousands")
    assert np.abs(in_data_space(fitted)[0]).argmax() == 0


def test_bars_of_a_selection_show_labels_literally_and_count_right():
    dataset = table(("a", "b"))
    mask = np.isin(np.arange(30), [0, 2, 4, 5])
    html = explore.class_bars(colour_by("class", dataset.labels["class"]), mask)
    assert "<img" not in html
    assert ">3 · 20%<" in html
    assert ">1 · 7%<" in html


def choice() -> None:
    import streamlit as st

    from appca.ui.kit import one_of

    if st.button("Show the second"):
        st.session_state["which"] = 2
    if st.button("Show what is gone"):
        st.session_state["which"] = 9
    st.write(f"chosen: {one_of('Which', {1: 'One', 2: 'Two', 3: 'Three'}, 'which', default=3)}")


def test_a_choice_that_the_page_makes_is_no_second_default(monkeypatch, caplog):
    monkeypatch.setattr(policies, "_shown_default_value_warning", False)
    monkeypatch.setattr(logging.getLogger("streamlit"), "propagate", True)
    app = AppTest.from_function(choice).run()
    said = [app.markdown[0].value]
    said += [app.button[which].click().run().markdown[0].value for which in (0, 1)]
    said += [app.button_group(key="which").set_value(1).run().markdown[0].value]
    assert said == ["chosen: 3", "chosen: 2", "chosen: 3", "chosen: 1"]
    assert not app.exception
    assert "Session State API" not in caplog.text


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


def test_names_and_values_from_files_stay_text():
    html = kit.name("<b>x</b>", "rename", '1" onclick="alert(1)', '"><script>', "a & b")
    assert "<script>" not in html
    assert 'onclick="' not in html
    assert "&lt;b&gt;x&lt;/b&gt;" in html
    assert 'aria-pressed="true"' in kit.button("x", "show", 3, pressed=True)


def test_only_the_acts_of_a_part_are_done_with_short_texts(monkeypatch):
    done = []
    known = {"rename": lambda value, text: done.append((value, text))}
    for told in (None, "x", {"act": "other"}, {"act": "rename", "value": 3, "text": "n" * 9999}):
        monkeypatch.setattr(st, "session_state", {"part_acts": {"act": told}})
        kit._answer("part", known)
    assert done == [("3", "n" * 1000)]


def test_what_an_act_refuses_is_said(monkeypatch):
    monkeypatch.setattr(st, "session_state", {"p_acts": {"act": {"act": "go", "value": "x"}}})
    kit._answer("p", {"go": lambda value, _: int(value)})
    (notice,) = st.session_state["notices"]
    assert "invalid literal" in notice.text
