"""Convert a notebook's model, rows, labels and images to parts of a picture."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from appca.analysis.fitted import DescribedRows, FittedModel, FittedRun
from appca.canvas.image_placement import spread_order
from appca.canvas.scene import Map, Scene, principal_map, scene_shown
from appca.canvas.sheets import sheets_of
from appca.data.dataset import Dataset
from appca.data.preprocessing import Fitted
from appca.frames import class_names, column_of, matrix_of, named_columns
from appca.plots.components import picture_shape
from appca.words import InputError, refuse_if

LABEL = "label"  # name of unnamed labels


class GivenRows(NamedTuple):
    """Rows from a notebook."""

    dataset: Dataset
    pictures: Dataset | None  # images of the rows, if they are not in X


def rows_of(X: Any, labels: Any = None, images: Any = None) -> GivenRows:
    """Combine rows X (N, D), an array or a table, with labels and images; NaN is missing.

    `labels` are an array (N,), or several in a table, whose first column is the class. `images` is
    the shape (h, w) or (h, w, 3) of rows that are images, or an image for each row, (N, h, w) or
    (N, h, w, 3). Raises InputError if the parts are inconsistent.
    """
    values, names = matrix_of(X)
    values = values.toarray() if hasattr(values, "toarray") else values
    missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, bool)
    if missing.any() and not missing.all(axis=0).any():
        values = np.where(missing, np.nanmean(values, axis=0), values)
    index: Any = getattr(X, "index", None)
    ids = np.arange(len(values)).astype(str)
    if getattr(index, "is_unique", False) and index.dtype.kind not in "iufM":  # names in a frame
        ids = np.array([str(name) for name in index])
    drawn = None if images is None or isinstance(images, (tuple, list)) else np.asarray(images)
    if drawn is not None and (drawn.ndim not in (3, 4) or len(drawn) != len(values)):
        msg = f"images is the shape (h, w) of each row, or {len(values):,} images (N, h, w); "
        msg += f"got an array of shape {drawn.shape}."
        raise InputError(msg)
    shape = images if drawn is None else drawn.shape[1:]
    if drawn is not None and int(np.prod(shape)) != values.shape[1]:
        shape = None  # so the components are not images
    classes = {name: _label(name, column) for name, column in named_columns(labels, LABEL).items()}
    drawing: Any = {"image_shape": None if shape is None else tuple(shape), "feature_names": names}
    dataset = Dataset("X", values, ids, classes, missing=missing, **drawing)
    if drawn is None:
        return GivenRows(dataset, None)
    flat = drawn.reshape(len(drawn), -1)
    return GivenRows(dataset, Dataset(name="images", X=flat, ids=ids, image_shape=drawn.shape[1:]))


def run_of(model: Any, dataset: Dataset) -> FittedRun:
    """Describe rows by a fitted estimator of appca, or a result of `appca.load_model`.

    Raises InputError for any other model.
    """
    msg = "A picture needs a fitted estimator of appca, or a result of appca.load_model; got "
    msg += f"{type(model).__name__}."
    refuse_if(not hasattr(model, "describe"), msg)
    rows: Any = dataset.with_gaps()
    if dataset.feature_names is not None and hasattr(model, "feature_names_in_"):
        import pandas as pd

        rows = pd.DataFrame(rows, columns=list(dataset.feature_names))
    described = DescribedRows.from_description(model.describe(rows))
    D = dataset.n_features
    before = getattr(model, "preprocessing_", Fitted(1.0, np.zeros(D), np.ones(D), None))
    fitted = FittedModel.from_estimator(getattr(model, "estimator_", model), before)
    return fitted.with_rows(described)


def scene_of_rows(rows: GivenRows, run: FittedRun, maps: Mapping[str, Map]) -> Scene:
    """Lay out the results of a model, with a map of the first two principal components."""
    dataset, pictures = rows
    prepared = run.preprocessing.transform(dataset.X)
    pca = principal_map(prepared, None if picture_shape(dataset) else dataset.feature_names)
    scene = scene_shown(dataset, run, {"pca": pca} | dict(maps))
    if pictures is None:
        return scene
    sheets = sheets_of(pictures, spread_order(dataset.n_rows))
    assert sheets is not None  # pictures have an image shape
    words = {"row": "image", "rows": "images"}
    return scene._replace(
        meta=scene.meta | {"sheets": sheets.header, "words": words}, sheets=sheets
    )


def map_of(title: str, xy: Any, dataset: Dataset) -> Map:
    """Return coordinates (N, 2) of all rows; InputError if the shape is wrong."""
    places = np.asarray(xy, float)
    msg = f"The map “{title}” needs two coordinates for each of the {dataset.n_rows:,} rows; "
    msg += f"got shape {places.shape}."
    refuse_if(places.shape != (dataset.n_rows, 2), msg)
    return Map(title, places)


def _label(name: str, values: Any) -> np.ndarray:
    is_plain = isinstance(values, np.ndarray) and not np.ma.isMaskedArray(values)
    if is_plain and values.dtype.kind in "iuU":
        return np.asarray(values)
    column = column_of(name, values)
    if column.kind == "class":
        return np.array([text or "" for text in class_names(column)], dtype=str)
    return column.values if column.kind == "number" else 1970 + column.values / 365.2425
