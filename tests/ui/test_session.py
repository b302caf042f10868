"""Tests of sessions: callbacks, caches, imported fits, addresses, and literal text."""

import ast
import re
import shutil
import threading
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from random import Random
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
import streamlit as st
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequests, ScriptRequestType

from appca.data.preprocessing import Preprocessing
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.jobs.worker import KINDS
from appca.runs.home import home
from appca.runs.run import FitResult, RunConfig
from appca.runs.store import RunStore
from appca.ui import frame, kit, state, streamlit_internals
from appca.ui.kit import JOB_TITLES
from appca.ui.rows import near_rows
from appca.ui.services import by_key, kept
from appca.ui.state import guarded
from appca.words import InputError, about, duration, size
from tests.fitted_runs import info_of
from tests.ui.conftest import address, healthy, html, sentences, slider, stored_run

FULL = OSError(28, "No space left on device", "x.npz")


def test_a_refusal_becomes_one_notice_and_a_mistake_of_ours_stays_one(monkeypatch):
    monkeypatch.setattr(st, "session_state", {})
    told = []
    guarded(lambda a, b: told.append(a + b))("1", b="2")
    assert told == ["12"]
    act = guarded(Mock(side_effect=[InputError("Give more rows.")] * 2 + [FULL, KeyError("x")]))
    act()
    act()  # what is said twice is shown once
    state.notify("info", "Give more rows.")
    act()
    first, second, third = state.take_notices()
    assert (first, second) == (("error", "Give more rows."), ("info", "Give more rows."))
    assert third.text.startswith("The disk refused (x.npz: No space left on device); ")
    assert state.take_notices() == []
    with pytest.raises(KeyError):
        act()


def test_a_change_on_data_that_are_gone_is_refused_in_one_sentence(start):
    for page, change in (
        ("data/this", lambda app: app.toggle(key="pre-centre").set_value(False)),
        ("explore", lambda app: slider(app, "k").set_value(3)),
    ):
        app = start(page, data=load("wine"))
        shutil.rmtree(DatasetStore(home()).folder / load("wine").digest)
        st.cache_resource.clear()  # as when other data sets have taken its place in memory
        change(app).run()
        assert [problem.message for problem in app.exception] == []
        (told,) = sentences(app)
        assert load("wine").digest[:8] in told
        assert address(app)["data"] == load("digits").digest
        assert "Handwritten digits" in html(app)


def test_a_later_run_waits_for_the_callback_of_an_earlier_one(monkeypatch):
    requests, done = ScriptRequests(), []
    context = SimpleNamespace(script_requests=requests)
    monkeypatch.setattr(streamlit_internals, "get_script_run_ctx", lambda: context)
    monkeypatch.setattr(st, "session_state", {})
    begun, asked = threading.Event(), threading.Event()
    inner = guarded(lambda: done.append(requests.on_scriptrunner_yield()))

    @guarded
    def act() -> None:
        begun.set()
        assert asked.wait(60)
        inner()
        done.extend([requests.on_scriptrunner_yield(), "callback"])

    earlier = threading.Thread(target=act)
    earlier.start()
    assert begun.wait(60)
    requests.request_stop()
    later = threading.Thread(target=lambda: [state.wait(), done.append("page")])
    later.start()
    later.join(0.2)
    assert done == []
    asked.set()
    later.join(60)
    earlier.join(60)
    assert done == [None, None, "callback", "page"]
    assert requests.on_scriptrunner_yield().type is ScriptRequestType.STOP


def test_changes_of_a_step_are_undone_from_the_last_on_and_a_new_step_takes_their_place(
    monkeypatch,
):
    monkeypatch.setattr(st, "session_state", {})
    screen = {"is_ready": True, "config": RunConfig("d" * 64, {}, "PPCA", {}), "open_config": None}
    screen |= {"get": np.zeros(9, bool), "put": None, "current_dataset": None, "_unpacked": None}
    for name, value in screen.items():
        monkeypatch.setattr(state, name, lambda *_, value=value: value)

    def step(*changes: str) -> None:
        for one in changes:
            state.note(partial(done.append, f"-{one}"), partial(done.append, f"+{one}"))
        assert state.record()

    done: list[str] = []
    step()
    step("a", "b")
    state.undo()
    state.redo()
    assert done == ["-b", "-a", "+a", "+b"]
    state.undo()
    step("c")
    state.redo()  # there is nothing
    state.undo()
    assert done[4:] == ["-b", "-a", "-c"]
    assert (state.can_step(-1), state.can_step(1)) == (False, True)


ROOT = Path(state.__file__).parent
REACTIONS = ("on_click", "on_change", "on_select")
HARMLESS = {"'rerun'", "'ignore'", "lambda: None"}


def function_of(given: ast.expr) -> str:
    """Return the name of the function that a callback is, calls or wraps."""
    inner = given.body if isinstance(given, ast.Lambda) else given
    return ast.unparse(inner.func if isinstance(inner, ast.Call) else inner).split(".")[-1]


def test_every_callback_is_guarded():
    known, given = {"guarded", "act"}, []  # `act` is what was guarded in its module
    trees = (ast.parse(file.read_text()) for file in ROOT.rglob("*.py"))
    for node in chain.from_iterable(map(ast.walk, trees)):
        words: list = []
        if isinstance(node, ast.FunctionDef) and "guarded" in map(ast.unparse, node.decorator_list):
            known.add(node.name)
        elif isinstance(node, ast.Call) and not ast.unparse(node.func).startswith("canvas."):
            words = [(word.arg or "", word.value) for word in node.keywords]
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            words = [(key.value, one) for key, one in pairs if isinstance(key, ast.Constant)]
        given += [one for name, one in words if name in REACTIONS or str(name).endswith("_change")]
    texts = {ast.unparse(one): function_of(one) for one in given}
    bare = [text for text, name in texts.items() if text not in HARMLESS and name not in known]
    assert bare == []
    assert len(given) > 20


def test_each_function_makes_a_key_once_and_clicks_on_rows_leave_what_is_kept_of_fits():
    st.cache_resource.clear()
    made, unhashable = [], [lambda: None]

    @by_key(2)
    def first(one: object, *, told: object) -> int:
        made.append((one, told))
        return len(made)

    second = by_key(2)(lambda one, *, told: ("second", one, told))
    assert [first("a", unhashable, told=1), first("a", None, told=2)] == [1, 1]
    assert second("a", unhashable, told=3) == ("second", unhashable, 3)
    assert made == [(unhashable, 1)]
    of_two = by_key(2)((letters := []).append)
    for key in "abcac":
        of_two(key, key)
    assert letters == ["a", "b", "c", "a"]
    dataset, made = load("wine"), []
    fitted = Mock(preprocessing=Preprocessing().fit(dataset.X), completed=lambda X, _: X)
    shown = SimpleNamespace(fitted=fitted, key="fit")
    for _ in range(2):
        kept("patterns", lambda: made.append("patterns"))
        for row in range(60):
            near_rows(dataset, shown, row)
    assert made == ["patterns"]


@pytest.mark.usefixtures("jobs")
def test_more_components_allowed_than_features_are_shown_and_can_be_lowered(start):
    quick = stored_run(load("planes"), n_components=2, n_active=1)
    config = replace(quick.config, model="NPPCA", parameters={"max_components": 10})
    # Its numbers stand for those of the chains, which take long to compile.
    RunStore(home()).save(config, FitResult(quick.fitted, quick.info))
    app = healthy(start(run=config.id))
    assert (slider(app, "k").value, address(app)["run"]) == (10, config.id)
    slider(app, "k").set_value(2).run()
    assert (slider(app, "k").value, address(app)["k"]) == (2, "2")


def test_values_beyond_the_widgets_ranges_are_shown_and_kept(start):
    before, wine = {"pca": 0.99995, "divide": 1e-10}, load("wine")
    app = healthy(start("data/this", run=stored_run(wine, "PPCA", before, n_components=2).id))
    assert app.number_input(key="pre-share").value == pytest.approx(99.995, abs=1e-9)
    assert app.number_input(key="pre-divide").value == 1e-10
    app = healthy(app.toggle(key="pre-centre").set_value(True).run())
    changed = app.session_state["config"].preprocessing
    assert (changed["pca"], changed["divide"], changed["centre"]) == (0.99995, 1e-10, True)
    many = {"n_components": 2, "n_active": 1, "max_iter": 200_000, "latent_variance": 2e9}
    config = stored_run(wine, "aPPCA", {"scale": "feature"}, **many).config
    app = healthy(start("explore", run=config.id))
    assert address(app)["run"] == config.id
    assert app.number_input(key="set-max_iter").value == 200_000
    assert app.number_input(key="set-latent_variance-value").value == 2e9
    app = healthy(app.number_input(key="set-max_iter").set_value(150_000).run())
    assert app.session_state["config"].parameters == config.parameters | {"max_iter": 150_000}
    # a number that no browser can count to
    run = stored_run(wine, n_components=2, n_active=1, max_iter=10**17)
    assert address(healthy(start("explore", run=run.id)))["run"] == run.id


PARAMETERS = ("data", "run", "k", "l", "sel", "job")
ODD = (
    *("", " ", "0", "-1", "1", "3", "64", "65", "1e3", "2.5", "nan", "inf", "-0", "+4", "٣", "½"),
    *("9" * 30, "9" * 5000, "0x10", "1_000", "None", "null", "true", "[]", "{}", '{"a":1}'),
    *("digits", "wine", "../../etc/passwd", "/etc/passwd", "..", ".", "~", "C:\\x", "%2e%2e"),
    *("f" * 64, "F" * 64, "0" * 12, "a" * 12, "g" * 12, "\0", "a\0b", "\n", "\ud7ff", "\u202ex"),
    *("<script>alert(1)</script>", "'; DROP TABLE runs; --", "${7*7}", "x" * 1000, "\N{ROCKET}"),
)


def opens(start, address: dict[str, str]) -> None:
    """Check that an address opens a picture, with at most one sentence, and goes on."""
    app = start(**address)
    assert [problem.message for problem in app.exception] == [], address
    assert len(sentences(app)) <= 1, address
    assert all(one.endswith(".") and "\n" not in one for one in sentences(app)), address
    assert 1 <= slider(app, "l").value <= slider(app, "k").value <= 64, address
    assert not app.run().exception, address


def rounds(seed: int) -> list[dict[str, str]]:
    """Addresses in which every parameter is each odd text once."""
    rng = Random(seed)
    columns = [rng.sample(ODD, len(ODD)) for _ in PARAMETERS]
    return [dict(zip(PARAMETERS, texts, strict=True)) for texts in zip(*columns, strict=True)]


def test_odd_texts_everywhere_in_the_address_still_open_a_picture(start, seed):
    for odd in ({"data": "\n", "k": "9" * 5000, "l": "9" * 5000}, *rounds(seed)[:4]):
        opens(start, odd)
    app = start(data="f" * 64, k="3")
    assert "no stored data set" in sentences(app)[0]
    assert "Handwritten digits" in html(app)
    assert healthy(app.run())


NASTY = '<img src=x onerror="alert(1)">&"'


def test_numbers_have_units_and_a_true_minus():
    for words, given, said in (
        *((duration, *pair) for pair in ((0.2, "under 1 s"), (8.4, "8 s"), (89, "89 s"))),
        *((duration, *pair) for pair in ((100, "2 min"), (9000, "2.5 h"))),
        *((about, *pair) for pair in ((0.1, "under 1 s"), (12, "about 12 s"))),
        *((size, *pair) for pair in ((12, "12 B"), (3100, "3.1 kB"), (1e9, "1.0 GB"))),
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


PROJECT = Path(__file__).parents[2]
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
    files = [file for place in ("appca/ui", "pages") for file in (PROJECT / place).rglob("*.py")]
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
