"""The app's mark: three planes through one point, drawn here so that no file or font is fetched."""

from appca.plots.palette import CATEGORICAL

PLANES = dict(zip((90, 30, -30), CATEGORICAL[:3], strict=True))  # angle, in degrees: colour
LINES = "".join(
    f'<line x1="-17" y1="0" x2="17" y2="0" stroke="{hexcode}" stroke-width="6.5" '
    f'transform="rotate({-angle})"/>'
    for angle, hexcode in PLANES.items()
)
SVG = '<svg xmlns="http://www.w3.org/2000/svg"'


def icon() -> str:
    """Return the mark on a transparent ground as SVG."""
    return f'{SVG} width="40" height="40" viewBox="-20 -20 40 40">{LINES}</svg>'


def logo() -> str:
    """Return the mark with the app's name as SVG; the grey reads on light and on dark."""
    return (
        f'{SVG} width="132" height="40" viewBox="0 0 132 40">'
        f'<g transform="translate(20 20)">{LINES}</g>'
        '<text x="48" y="28" font-family="Source Sans, Source Sans Pro, Helvetica, sans-serif" '
        'font-size="25" font-weight="600" fill="#7d8da0">appca</text></svg>'
    )
