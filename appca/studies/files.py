"""An experiment's tables and figures as files that anybody can open."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from appca.data.errors import InputError
from appca.studies.store import csv_text
from appca.studies.study import Outcome, Study

if TYPE_CHECKING:
    import plotly.graph_objects as go

WIDTH = 1100  # pixels of a picture whose figure has no width of its own
NO_PICTURES = (
    "Figures are written as HTML only: PNG and SVG need the package kaleido and a Chrome or "
    "Chromium that it can find."
)


def write(study: Study, outcome: Outcome, folder: Path) -> tuple[list[Path], str]:
    """
    Write CSV tables, the paragraph and standalone HTML figures, and pictures where possible.

    Returns
    -------
    The files, and a sentence about what could not be written, which may be empty.

    Raises
    ------
    InputError
        When the folder cannot be made or written to.
    """
    figures = study.figures(outcome)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = []
        for name, rows in outcome.tables.items():
            path = folder / f"{_stem(study.name, name)}.csv"
            path.write_text(csv_text(rows), encoding="utf-8", newline="")
            written.append(path)
        text = folder / f"{study.name}.txt"
        text.write_text(f"{study.title}\n\n{study.paper}\n\n{outcome.text}\n", encoding="utf-8")
        written.append(text)
        for name, figure in figures.items():
            page = folder / f"{_stem(study.name, name)}.html"
            page.write_text(figure.to_html(include_plotlyjs=True), encoding="utf-8")
            written.append(page)
    except OSError as error:
        msg = f"{error.filename or folder} could not be written: {error.strerror or error}."
        raise InputError(msg) from error
    pictures = [
        (folder / f"{_stem(study.name, name)}.{kind}", figure)
        for name, figure in figures.items()
        for kind in ("png", "svg")
    ]
    drawn = _draw(pictures)
    return written + drawn, "" if len(drawn) == len(pictures) else NO_PICTURES


def _stem(study: str, name: str) -> str:
    return study if name == study else f"{study}-{name}"


def _draw(pictures: "list[tuple[Path, go.Figure]]") -> list[Path]:
    """Draw pictures by kaleido; nothing where it or its browser is missing."""
    try:
        import kaleido  # noqa: F401
    except ImportError:
        return []
    for name in ("kaleido", "choreographer"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what they lack is said below
    drawn = []
    for path, figure in pictures:
        try:
            figure.write_image(path, width=figure.layout.width or WIDTH)
        except Exception:  # whatever a browser may lack, the HTML is there
            return drawn
        drawn.append(path)
    return drawn
