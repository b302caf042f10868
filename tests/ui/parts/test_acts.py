"""Buttons within HTML: what they are made of, and what a stranger's message may do."""

import streamlit as st

from appca.ui import kit


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
