"""The typeface of figures: of the same widths as the font that the app's pages have."""

from pathlib import Path

import matplotlib
import numpy as np
import pytest
import streamlit
from fontTools.ttLib import TTFont
from matplotlib import font_manager, rcParams
from matplotlib.font_manager import FontProperties
from matplotlib.ft2font import LoadFlags
from matplotlib.textpath import TextPath

from appca.plots import still
from appca.plots.still import styled

pytestmark = pytest.mark.thorough
TEXT = "Größe (cm) 15% − λ Тест"


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """A machine on which no figure has been drawn, and Source Sans is not installed."""
    manager = font_manager.fontManager
    others = [font for font in manager.ttflist if font.name != still.NAME]
    monkeypatch.setattr(manager, "ttflist", others)
    monkeypatch.setattr(matplotlib, "get_cachedir", lambda: str(tmp_path))
    still.install.cache_clear()
    yield tmp_path
    still.install.cache_clear()


def test_figures_are_set_in_the_typeface_of_the_pages(nowhere):
    with styled():
        assert rcParams["font.family"][0] == still.NAME
    (shipped,) = (Path(streamlit.__file__).parent / "static").rglob("SourceSansVF-Upright*")
    variable = TTFont(shipped)
    names, em = variable.getBestCmap(), variable["head"].unitsPerEm
    for weight in (400, 700):
        glyphs = variable.getGlyphSet(location={"wght": weight})
        path = font_manager.findfont(FontProperties(family=still.NAME, weight=weight))
        assert Path(path).parent == nowhere
        font = font_manager.get_font(path)
        for letter in TEXT:
            width = font.load_char(ord(letter), LoadFlags.NO_SCALE).horiAdvance
            expected = glyphs[names[ord(letter)]].width
            assert abs(width - expected) <= 1, (letter, weight)
        assert font.units_per_EM == em
    widths = [
        TextPath((0, 0), TEXT, 12, FontProperties(family=still.NAME, weight=w)) for w in (400, 700)
    ]
    assert np.ptp([path.get_extents().width for path in widths]) > 1, "bold is wider"


@pytest.mark.parametrize("gone", ["streamlit", "brotli", "room"])
def test_without_what_it_needs_figures_have_another_typeface(nowhere, monkeypatch, gone):
    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    if gone == "streamlit":
        monkeypatch.setattr(still, "find_spec", lambda name: None)
    elif gone == "brotli":
        monkeypatch.setattr("fontTools.ttLib.woff2.haveBrotli", False)
    else:
        monkeypatch.setattr(still.files, "write", refuse)
    with styled():
        assert still.NAME not in rcParams["font.family"]
    assert list(nowhere.iterdir()) == []
