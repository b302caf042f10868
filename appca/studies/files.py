"""An experiment's tables and figures as files that anybody can open."""

from pathlib import Path
from typing import TYPE_CHECKING

from appca.plots.export.figure_files import NO_PICTURES, page, picture
from appca.storage.errors import InputError
from appca.studies.store import csv_text
from appca.studies.study import Outcome, Study

if TYPE_CHECKING:
    import plotly.graph_objects as go


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
            file = folder / f"{_stem(study.name, name)}.html"
            file.write_text(page(figure, study.title), encoding="utf-8")
            written.append(file)
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
    """Draw pictures; none from the first on that cannot be drawn."""
    drawn = []
    for path, figure in pictures:
        try:
            path.write_bytes(picture(figure, path.suffix[1:]))
        except (InputError, OSError):
            return drawn
        drawn.append(path)
    return drawn
