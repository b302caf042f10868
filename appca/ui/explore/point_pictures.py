"""One image as a line of pictures: average + its components = reconstruction, and the rest."""

import numpy as np

from appca.analysis.components.components import name_of
from appca.analysis.explore.point import RowParts
from appca.analysis.fitted import FittedRun
from appca.data.dataset import Dataset
from appca.data.numbers import signed
from appca.plots.components.components import component_image, data_uri, pixels_of
from appca.ui.parts.text import tag, words


def pictured(dataset: Dataset, fitted: FittedRun, found: RowParts, *, dark_ink: bool) -> str:
    """Return the sum as HTML: grey pictures on the scale of the data, signed ones on their own.

    Parameters
    ----------
    dataset : Dataset
        Of images.
    fitted : FittedRun
        A run's, for the names of the components.
    found : RowParts
    dark_ink : bool
        Draw high values of the data dark.
    """
    shape = dataset.image_shape or ()
    drawn = [*found.terms, found.residual]
    limit = max(float(np.abs(pixels_of(values, shape)).max()) for values in drawn)
    grey = dataset.as_images(
        np.stack([found.original, found.average, found.reconstruction]).astype(np.float32)
    )
    grey = 255 - grey if dark_ink else grey

    def coloured(values: np.ndarray) -> np.ndarray:
        return component_image(values, shape, limit)

    pieces = [_figure(grey[0], "this row"), _sign("≈"), _figure(grey[1], "average")]
    for k, score, term in zip(found.components, found.scores, found.terms, strict=True):
        name = f"{signed(score)} × {name_of(fitted, k)}"
        pieces += [_sign("+"), _figure(coloured(term), name)]
    pieces += [_sign("="), _figure(grey[2], "reconstruction")]
    pieces += [_sign(""), _figure(coloured(found.residual), "residual")]
    ends = "".join(tag("span", text) for text in (signed(-limit), "0", signed(limit)))
    scale = tag("div", "", "ca-scale") + tag("div", ends, "ca-ends")
    return tag("div", "".join(pieces), "ca-sum") + tag("div", scale, "ca-sum-scale")


def _figure(image: np.ndarray, name: str) -> str:
    picture = tag("img", "", src=data_uri(image), alt=name)
    return tag("figure", picture + tag("figcaption", words(name)))


def _sign(text: str) -> str:
    return tag("div", words(text), "ca-sign")
