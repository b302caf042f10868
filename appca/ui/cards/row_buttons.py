"""Rows as buttons: a picture of each with its id, its class and a word about it."""

from collections.abc import Iterable

import numpy as np

from appca.data.dataset import Dataset
from appca.storage.wording import shortened
from appca.ui.cards import acts, pictures
from appca.ui.parts.text import tag, words

LETTERS = 22  # of a text below a picture


def row_buttons(
    dataset: Dataset, rows: np.ndarray, said: Iterable[str], act: str, pressed: np.ndarray
) -> str:
    """Return rows as HTML for `acts.acting`, whose `act` is given a row number.

    Parameters
    ----------
    said : iterable of str
        About each row.
    pressed : ndarray of bool, shape (N,)
        Rows that are marked.
    """
    lines = zip(rows.tolist(), said, strict=True)
    every = (_button(dataset, row, text, act, bool(pressed[row])) for row, text in lines)
    return tag("div", "".join(every), "ca-rows" if dataset.image_shape else "ca-rows ca-texts")


def class_of(dataset: Dataset, row: int) -> str:
    """Return the class of a row; empty without one."""
    found = dataset.class_column
    return str(found[0][found[1][row]]) if found and found[1][row] >= 0 else ""


def _button(dataset: Dataset, row: int, text: str, act: str, pressed: bool) -> str:
    name = str(dataset.ids[row])
    picture = ""
    if dataset.image_shape is not None:
        picture = tag("img", "", src=pictures.strip(dataset, np.array([row])), alt="")
    about = " · ".join(filter(None, (class_of(dataset, row), text)))
    body = picture + tag("b", words(shortened(name, LETTERS)))
    body += tag("small", words(about), title=about)
    css = "ca-act ca-row-button"
    return acts.button(body, act, row, f"Select {name}", css, pressed=pressed)
