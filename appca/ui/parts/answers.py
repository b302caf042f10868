"""How Check and Paper answer: a sentence, chips of a sign and a word, at most three numbers."""

from collections.abc import Sequence
from typing import Literal

import streamlit as st

from appca.ui.parts.text import tag, words

Level = Literal["good", "doubtful", "bad", "unknown"]
SIGNS: dict[Level, str] = {"good": "✓", "doubtful": "◐", "bad": "✕", "unknown": "–"}
MOST_NUMBERS = 3

Number = tuple[str, str]  # the number, and what it is


def chip(level: Level, text: str) -> str:
    """Return a chip as HTML; its sign says what its colour says."""
    sign = tag("span", SIGNS[level], **{"aria-hidden": "true"})
    return tag("span", sign + words(text), f"ca-chip ca-{level}")


def answer(title: str, text: str = "", level: Level | None = None) -> None:
    """Draw the sentence that a tab opens with."""
    body = tag("div", words(title), "ca-answer-title") + tag("div", words(text)) * bool(text)
    css = "ca-answer" if level is None else f"ca-answer ca-{level}"
    st.html(tag("div", body, css, role="status"))


def numbers(pairs: Sequence[Number]) -> str:
    """Return at most three numbers with what they are as HTML."""
    cells = (
        tag("div", tag("b", words(value)) + tag("span", words(what)))
        for value, what in pairs[:MOST_NUMBERS]
    )
    return tag("div", "".join(cells), "ca-figures")
