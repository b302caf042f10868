"""HTML with buttons in it: one part of a page instead of a widget for each of many buttons."""

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from appca.ui.parts.text import tag, words
from appca.ui.parts.widgets import scripted
from appca.ui.session.callbacks import guarded

Act = Callable[[str, str], object]  # is given the button's value, and the text that was typed
_listener = scripted(__file__)


def acting(html: str, key: str, acts: Mapping[str, Act]) -> None:
    """Draw HTML, and answer its buttons; see `button` and `name`.

    Data in the HTML must be escaped, as everywhere. `key` differs from all others on the page;
    `acts` says what each kind of button does.
    """
    with st.container(key=key):
        st.html(html)
        _listener(key=f"{key}_acts", data={"of": key}, on_act_change=lambda: _answer(key, acts))


def button(
    body: str,
    act: str,
    value: object,
    label: str = "",
    css: str = "ca-act",
    pressed: bool | None = None,
) -> str:
    """Return a button as HTML; `body` must be HTML already.

    `act` is a key of `acting`'s acts, which is given `value` as text; `label` says what the button
    does where the body does not, and `pressed` is of one that stays pressed.
    """
    more = {"title": label} if label else {}
    if pressed is not None:
        more["aria-pressed"] = str(pressed).lower()
    shared = {"type": "button", "data-act": act, "data-value": str(value)}
    return tag("button", body, css, **shared, **more)


def choice(
    texts: Sequence[str], act: str, value: object, now: int, label: str, css: str = "ca-choice"
) -> str:
    """Return a list to choose from as HTML; its act is given the place of the chosen text.

    `now` is the place of the present one; -1 asks for one.
    """
    first = [tag("option", "choose one", value="", selected="")] if now < 0 else []
    rest = [
        tag("option", words(text), value=str(i), **({"selected": ""} if i == now else {}))
        for i, text in enumerate(texts)
    ]
    shared = {"data-act": act, "data-value": str(value), "aria-label": label}
    return tag("select", "".join(first + rest), css, **shared)


def name(body: str, act: str, value: object, now: str, label: str) -> str:
    """Return a name that can be clicked and typed over; it is `now` until then."""
    shared = {"type": "button", "data-act": act, "data-value": str(value), "data-name": now}
    return tag("button", words(body), "ca-act ca-named", title=label, **shared)


@guarded
def _answer(key: str, acts: Mapping[str, Act]) -> None:
    """Do what a button asks for; the browser's words are those of a stranger."""
    message = st.session_state[f"{key}_acts"].get("act")
    if isinstance(message, Mapping) and message.get("act") in acts:
        value, text = (str(message.get(part, ""))[:1000] for part in ("value", "text"))
        acts[message["act"]](value, text)
