"""Words and numbers as people read them, and small pieces of HTML in which data is only text."""

import re
from collections.abc import Iterable
from html import escape

from appca.runs.run import RunInfo
from appca.words.numbers import nats

# places within what Streamlit makes a link, an icon, an arrow or another sign of
_MADE_INTO_OTHERS = re.compile(
    r"(?<=http:|ttps:)(?=//)|(?<=:)(?=material/|streamlit:)|(?<=www)(?=\.)|(?<=\S)(?=@\S)"
    r"|(?<=-)(?=[->])|(?<=<)(?=-)|(?<=[<>~])(?==)",
    re.IGNORECASE,
)


def nats_per_row(info: RunInfo) -> str:
    """Return a run's log-likelihood a row in words."""
    return f"{nats(info.log_likelihood / info.n_rows)} per row"


def markdown(text: str) -> str:
    """Return text whose every character stands for itself where Streamlit reads Markdown.

    Addresses, icons and arrows are looked for when backslashes are gone: a sign that nobody sees
    stands within them.
    """
    apart = _MADE_INTO_OTHERS.sub("\u2060", text)
    return "".join(f"\\{c}" if c in r"\`*_{}[]<>()#+-.!|~$:^&=@" else c for c in apart)


def apart(label: str, of: str) -> str:
    """Return the label of one of several like buttons, as Markdown: "Open" with "of run 3".

    What follows the label is hidden by the style sheet; those who hear the page tell the buttons
    apart by it.
    """
    return f"{label} *{markdown(of)}*"


def tag(name: str, body: str, css: str = "", **attributes: str) -> str:
    """Return an HTML element; `body` must be HTML already, attributes are escaped here."""
    parts = {"class": css, **attributes} if css else attributes
    written = "".join(f' {key}="{escape(value)}"' for key, value in parts.items())
    return f"<{name}{written}>{body}</{name}>"


def words(text: object) -> str:
    """Return data as the body of an HTML element: shown literally, never run."""
    return escape(str(text))


def fact_list(lines: dict[str, str]) -> str:
    """Return names and values as an HTML list; both are data and shown literally."""
    body = "".join(tag("dt", words(key)) + tag("dd", words(value)) for key, value in lines.items())
    return tag("dl", body, "ca-facts")


def table_line(name: object, cells: Iterable[object], **attributes: str) -> str:
    """Return a line of a table as HTML: its name and its cells, all data and shown literally."""
    first = tag("th", words(name), scope="row", **attributes)
    return tag("tr", first + "".join(tag("td", words(cell)) for cell in cells))


def table(heads: Iterable[str], lines: Iterable[str]) -> str:
    """Return a table as HTML; the heads of its columns and its lines must be HTML already."""
    head = tag("tr", "".join(tag("th", text, scope="col") for text in heads))
    inner = tag("thead", head) + tag("tbody", "".join(lines))
    return tag("div", tag("table", inner), "ca-table")
