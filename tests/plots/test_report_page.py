"""Figures, pages and thumbnails as files: complete in themselves, texts literal, nothing asked."""

import re
from html.parser import HTMLParser

import numpy as np
import plotly.graph_objects as go

from appca.plots import files

EVIL = '<img src="https://example.org/x" onerror=alert(1)>'


class References(HTMLParser):
    """Everything a page would load, and its texts outside of scripts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.tags: list[str] = []
        self.inside: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag in ("script", "style"):
            self.inside.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "srcset", "data", "poster", "action", "background"):
                self.loaded.append(value)
            if name == "style":
                self.loaded += re.findall(r"url\(([^)]*)\)", value)

    def handle_endtag(self, tag):
        if self.inside and self.inside[-1] == tag:
            self.inside.pop()

    def handle_data(self, data):
        if self.inside and self.inside[-1] == "style":
            self.loaded += re.findall(r"url\(([^)]*)\)|@import", data)


def test_a_page_of_a_figure_is_complete_and_titled():
    html = files.fragment(go.Figure(go.Scatter(y=[1, 2])), "A <b>")
    found = References(html)
    assert found.loaded == []
    assert "<title>A &lt;b&gt;</title>" in html
    assert '"showSendToCloud": false' in html
    assert html.count('class="plotly-graph-div"') == 1


def test_a_report_loads_nothing_and_shows_texts_literally():
    picture = np.zeros((4, 4), np.uint8)
    body = "".join(
        [
            files.section(EVIL, files.paragraph(EVIL), files.paragraph(EVIL, "pre")),
            files.table([EVIL], [[EVIL], [0.123456], [None], [picture]]),
            files.facts({EVIL: EVIL}),
            files.fold(EVIL, files.image(picture, EVIL)),
            files.fragment(go.Figure(go.Scatter(y=[1, 2]))),
        ]
    )
    html = files.framed(EVIL, body, "/* plotly.js v */")
    found = References(html)
    assert {source[:22] for source in found.loaded} == {"data:image/png;base64,"}
    assert len(found.loaded) == 2
    assert found.tags.count("img") == 2
    assert "onerror=alert(1)>" not in html.replace("&gt;", "")
    assert "<td>0.1235</td>" in html
    assert "<td>–</td>" in html
    assert html.count("plotly.js v") == 1


def test_a_markdown_table_has_a_line_a_row_and_no_cell_ends_it():
    assert files.markdown_table(["a", "b"], [[1, "p | q\\"], ["one\n\ntwo", None]]) == (
        "| a | b |\n| --- | --- |\n| 1 | p \\| q\\\\ |\n| one two | None |"
    )
