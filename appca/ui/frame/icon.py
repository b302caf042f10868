"""The app's mark: three planes through one point, drawn here so that no file or font is fetched."""

from functools import cache

import numpy as np
from PIL import Image

from appca.plots.palette import CATEGORICAL

SIDE = 96
PLANES = dict(zip((90, 30, -30), CATEGORICAL[:3], strict=True))  # angle, in degrees: colour


@cache
def icon() -> Image.Image:
    """Return the mark on a transparent ground."""
    y, x = np.mgrid[:SIDE, :SIDE] / (SIDE - 1) * 2 - 1
    picture = np.zeros((SIDE, SIDE, 4), np.uint8)
    for angle, hexcode in PLANES.items():
        turn = np.deg2rad(angle)
        along, across = x * np.cos(turn) - y * np.sin(turn), x * np.sin(turn) + y * np.cos(turn)
        inside = (np.abs(across) < 0.17) & (np.abs(along) < 0.95)
        picture[inside] = [*bytes.fromhex(hexcode[1:]), 255]
    return Image.fromarray(picture)


def logo() -> str:
    """Return the mark with the app's name as SVG; the grey reads on light and on dark."""
    lines = "".join(
        f'<line x1="-17" y1="0" x2="17" y2="0" stroke="{hexcode}" stroke-width="6.5" '
        f'transform="rotate({-angle})"/>'
        for angle, hexcode in PLANES.items()
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="132" height="40" viewBox="0 0 132 40">'
        f'<g transform="translate(20 20)">{lines}</g>'
        '<text x="48" y="28" font-family="Source Sans, Source Sans Pro, Helvetica, sans-serif" '
        'font-size="25" font-weight="600" fill="#7d8da0">appca</text></svg>'
    )
