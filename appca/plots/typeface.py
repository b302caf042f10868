"""The app's typeface for figures: Streamlit ships it in a form that matplotlib cannot read."""

import io
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import matplotlib
from matplotlib import font_manager

from appca.storage import atomic

NAME = "Source Sans 3"
WEIGHTS = {"Regular": 400, "Bold": 700}
SHIPPED = "static/static/media/SourceSansVF-Upright*.woff2"  # in Streamlit's folder
LAYOUT = ["GPOS", "GSUB", "GDEF", "BASE", "HVAR", "MVAR"]  # nine tenths of the work; not read
CHARACTERS = (*range(0x20, 0x530), *range(0x2000, 0x2300))  # Latin, Greek, Cyrillic, signs


@cache
def install() -> None:
    """Make the typeface known to matplotlib, from files that are written once.

    Without Streamlit, Brotli or room on the disk nothing happens: figures have another typeface.
    """
    streamlit = find_spec("streamlit")
    if NAME in font_manager.get_font_names() or streamlit is None or streamlit.origin is None:
        return
    for shipped in Path(streamlit.origin).parent.glob(SHIPPED):  # named after its content
        for style in WEIGHTS:
            path = Path(matplotlib.get_cachedir()) / f"appca-{shipped.stem}-{style}.ttf"
            try:
                if not path.exists():
                    atomic.write(path, _in_style(shipped, style), durable=False)
            except (ImportError, OSError):
                return
            font_manager.fontManager.addfont(path)


def _in_style(shipped: Path, style: str) -> bytes:
    from fontTools.subset import Options, Subsetter
    from fontTools.ttLib import TTFont
    from fontTools.varLib.instancer import instantiateVariableFont

    font = TTFont(shipped)
    subset = Subsetter(Options(drop_tables=LAYOUT, name_IDs=["*"]))
    subset.populate(unicodes=CHARACTERS)
    subset.subset(font)
    instantiateVariableFont(font, {"wght": WEIGHTS[style]}, inplace=True)
    font["OS/2"].usWeightClass = WEIGHTS[style]
    for number, text in ((1, NAME), (2, style), (4, f"{NAME} {style}"), (16, NAME)):
        font["name"].setName(text, number, 3, 1, 0x409)
    font.flavor = None  # as TrueType
    file = io.BytesIO()
    font.save(file)
    return file.getvalue()
