"""Figures, pages and thumbnails as files: complete in themselves, texts literal, nothing asked."""

import base64
import io
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import plotly.graph_objects as go
import pytest
from PIL import Image

from appca.plots.explore.atlas import figure
from appca.plots.explore.panel import Panel
from appca.plots.explore.sprites import sprites_of
from appca.plots.explore.thumbnails import apart, thumbnails
from appca.plots.export import figure_files, report_page
from appca.plots.palette import colour_by, levels
from appca.storage.errors import InputError

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
    html = figure_files.page(go.Figure(go.Scatter(y=[1, 2])), "A <b>")
    found = References(html)
    assert found.loaded == []
    assert "<title>A &lt;b&gt;</title>" in html
    assert '"showSendToCloud": false' in html
    assert html.count('class="plotly-graph-div"') == 1


def test_a_report_loads_nothing_and_shows_texts_literally():
    picture = np.zeros((4, 4), np.uint8)
    body = "".join(
        [
            report_page.section(EVIL, report_page.paragraph(EVIL), report_page.code(EVIL)),
            report_page.table([EVIL], [[EVIL], [0.123456], [None], [picture]]),
            report_page.facts({EVIL: EVIL}),
            report_page.fold(EVIL, report_page.image(picture, EVIL)),
            figure_files.fragment(go.Figure(go.Scatter(y=[1, 2]))),
        ]
    )
    html = report_page.framed(EVIL, body)
    found = References(html)
    assert {source[:22] for source in found.loaded} == {"data:image/png;base64,"}
    assert len(found.loaded) == 2
    assert found.tags.count("img") == 2
    assert "onerror=alert(1)>" not in html.replace("&gt;", "")
    assert "<td>0.1235</td>" in html
    assert "<td>–</td>" in html
    assert html.count("plotly.js v") == 1


def test_pictures_are_drawn_without_asking_for_mathjax(monkeypatch):
    asked = {}

    def draw(drawn, opts, kopts):
        asked.update(opts=opts, kopts=kopts, data=drawn["data"])
        return b"picture"

    kaleido = pytest.importorskip("kaleido")
    monkeypatch.setattr(kaleido, "calc_fig_sync", draw)
    assert figure_files.picture(go.Figure(go.Scatter(y=[1])), "svg") == b"picture"
    assert asked["kopts"] == {"mathjax": False}
    assert asked["opts"] == {"format": "svg", "width": 1100, "height": 500, "scale": 1.0}


def test_without_a_browser_one_sentence_says_what_is_missing(monkeypatch):
    def fail(*_given, **_options):
        raise RuntimeError

    kaleido = pytest.importorskip("kaleido")
    monkeypatch.setattr(kaleido, "calc_fig_sync", fail)
    with pytest.raises(InputError, match="HTML only: PNG, SVG and PDF need the package kaleido"):
        figure_files.picture(go.Figure(), "png")


def test_without_kaleido_the_module_still_works():
    script = (
        "import sys; sys.modules['kaleido'] = None\n"
        "from appca.plots.export import figure_files as f; import plotly.graph_objects as go\n"
        "assert not f.can_draw()\n"
        "try: f.picture(go.Figure(), 'png')\n"
        "except ValueError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == figure_files.NO_PICTURES


@pytest.mark.browser
@pytest.mark.parametrize(
    ("kind", "start"),
    [
        ("svg", b"<svg"),
        pytest.param("png", b"\x89PNG", marks=pytest.mark.slow),
        pytest.param("pdf", b"%PDF", marks=pytest.mark.slow),
    ],
)
def test_a_picture_has_its_format(kind, start):
    if not figure_files.can_draw():
        pytest.skip("needs the package kaleido and a Chromium that it finds")
    drawn = go.Figure(go.Scatter(y=[1, 2, 3]), layout={"width": 300, "height": 200})
    assert figure_files.picture(drawn, kind)[: len(start)] == start


class Images:
    """Twenty images of one grey each."""

    digest, n_rows, image_shape = "d", 20, (8, 6)

    def images(self, rows):
        return np.repeat(np.asarray(rows, np.uint8) * 10, 48).reshape(-1, 8, 6)


def test_of_points_too_near_the_first_stays():
    x, y = np.array([0.0, 0.5, 1.0, np.nan, 0.9]), np.array([0.0, 0.0, 0.0, 0.0, 2.0])
    assert apart(x, y, np.arange(5)).tolist() == [0, 2, 4]
    assert apart(x, y, np.array([1, 0, 2, 3, 4])).tolist() == [1, 4]


def pixels(image: dict) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(image["source"].split(",")[1]))))


def test_photographs_are_framed_and_strokes_inked_in_the_colour_of_the_row():
    panel = Panel("one", "", np.array([12], np.int32), np.zeros(1), np.zeros(1))
    shades = levels(colour_by("class", np.arange(20) % 3), 20)
    colour = [int(shades.table[0][i : i + 2], 16) for i in (1, 3, 5)]
    framed = pixels(thumbnails([panel], sprites_of(Images(), "photo"), shades)[0])
    assert framed[0, 0].tolist() == framed[-1, -1].tolist() == colour
    assert framed[5, 5].tolist() == [120, 120, 120]
    inked = pixels(thumbnails([panel], sprites_of(Images(), "ink"), shades)[0])
    assert inked[5, 5].tolist() == [*colour, 120]


def test_thumbnails_lie_on_their_points_apart_and_in_their_colour(seed):
    rng = np.random.default_rng(seed)
    rows = rng.permutation(20)[:12].astype(np.int32)
    x, y = rng.normal(size=(2, 12)).astype(np.float32)
    panels = [Panel("all", "", rows, x, y), Panel("few", "", rows[:1], x[:1], y[:1])]
    colour = colour_by("class", np.arange(20) % 3)
    found = thumbnails(panels, sprites_of(Images(), "photo"), levels(colour, 20), cells=3)
    first = [one for one in found if one["xref"] == "x"]
    assert len(first) > 1
    assert len({(one["sizex"], one["sizey"]) for one in first}) == 1
    for i, one in enumerate(first):
        for other in first[:i]:
            beside = abs(one["x"] - other["x"]) >= one["sizex"]
            assert beside or abs(one["y"] - other["y"]) >= one["sizey"]
    assert [one["xref"] for one in found[len(first) :]] == ["x2"]
    places = {(float(a), float(b)) for a, b in zip(x, y, strict=True)}
    assert {(one["x"], one["y"]) for one in found} <= places
    drawn = figure(panels, colour).update_layout(images=found)
    assert len(drawn.layout.images) == len(found)
    assert all(one.source.startswith("data:image/png;base64,") for one in drawn.layout.images)
