"""The picture of a fitted model as one HTML file, for any browser and without a network."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from appca.analysis.fitted import FittedRun
from appca.notebook.given import GivenRows, map_of, rows_of, run_of, scene_of_rows
from appca.plots.explore.scene.scene import Map
from appca.runs.numbering import numbered_after
from appca.storage import atomic
from appca.storage.refusal import OTHER, storing
from appca.ui.export.picture import picture_page


def save_html(
    path: Path | str,
    model: Any,
    X: Any,
    labels: Any = None,
    images: Any = None,
    *,
    maps: Mapping[str, Any] | None = None,
    title: str = "appca",
) -> None:
    """Save the picture of the rows that a fitted model describes as one HTML file.

    Parameters
    ----------
    path : Path or str
        The file; one that is there is replaced.
    model, X, labels, images, maps
        As for `appca.explore`.
    title : str
        What stands above the picture.

    Raises
    ------
    InputError
        When the parts do not fit together, or the file cannot be written.

    Examples
    --------
    >>> appca.save_html("digits.html", model, X, labels=y, images=(28, 28))  # doctest: +SKIP
    """
    rows = rows_of(X, labels, images)
    views = {name: map_of(name, xy, rows.dataset) for name, xy in (maps or {}).items()}
    write_page(Path(path), rows, run_of(model, rows.dataset), views, title)


def write_page(
    path: Path, rows: GivenRows, run: FittedRun, maps: Mapping[str, Map], title: str
) -> None:
    """Write the page of rows and what a model says of them."""
    scene = scene_of_rows(rows, numbered_after(run, None), maps)
    content = picture_page(scene, title, next(iter(scene.meta["colourings"]), ""))
    with storing(f"“{path.name}”", path.parent, OTHER):
        atomic.write(path, content, private=False)
