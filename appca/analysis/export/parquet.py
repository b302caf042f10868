"""A Parquet file that other explorers open: each row with a place on a map, neighbours and image.

Column forms, as those programs' own documentation and source give them: `x` and `y` are numbers;
`neighbors` is a struct of two lists, `ids` (positions in the file, counted from 0) and `distances`;
`image` is a struct of `bytes` (a PNG) and `path`, the form in which Hugging Face's `datasets` keeps
images and which the file's metadata declares.
"""

import io
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from appca.analysis.export.projections import USUAL, Columns, free_name, projection_table
from appca.analysis.fitted import FittedRun

if TYPE_CHECKING:
    import pyarrow as pa

    from appca.data.dataset import Dataset

NEAREST = 15  # rows beside itself
FEW_AXES = 12  # up to which a tree is faster: 70,000 rows in 0.4 s with 4 axes, 12 s with 10
X, Y, NEIGHBOURS, IMAGE = "x", "y", "neighbors", "image"


class RowPlaces(NamedTuple):
    """Where every row of the data set lies on the map."""

    x: np.ndarray  # (N,)
    y: np.ndarray  # (N,)


def explorer_parquet(
    dataset: "Dataset",
    fitted: FittedRun,
    place: RowPlaces,
    rows: np.ndarray | None = None,
    columns: Columns = USUAL,
    picture: Callable[[np.ndarray], bytes] | None = None,
) -> bytes:
    """Return the table of projections with map, neighbours and images as a Parquet file.

    Parameters
    ----------
    dataset : Dataset
    fitted : FittedRun
    place : RowPlaces
    rows : ndarray of int, optional
        Rows to keep, in this order; neighbours are then sought among these. All by default.
    columns : Columns, optional
    picture : callable, optional
        Makes a PNG of a uint8 image; without it there is no column of images.

    Notes
    -----
    A column of the data that has one of the four names keeps its values under ``label_<name>``.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = np.arange(dataset.n_rows) if rows is None else np.asarray(rows)
    frame = projection_table(dataset, fitted, rows, columns)
    taken = {*frame.columns, X, Y, NEIGHBOURS, IMAGE}
    theirs = [name for name in (X, Y, NEIGHBOURS, IMAGE) if name in frame.columns]
    frame = frame.rename(columns={name: free_name(name, taken) for name in theirs})
    table = pa.Table.from_pandas(frame, preserve_index=False)
    table = table.append_column(X, pa.array(place.x[rows].astype(np.float64)))
    table = table.append_column(Y, pa.array(place.y[rows].astype(np.float64)))
    if len(rows) > 1:
        ids, distances = nearest_projections(fitted, rows)
        table = table.append_column(NEIGHBOURS, _structs(ids, distances))
    if picture is not None:
        table = table.append_column(IMAGE, _images(dataset, rows, picture))
        table = table.replace_schema_metadata(_declared(table.schema))
    buffer = io.BytesIO()
    pq.write_table(table, buffer, row_group_size=1000 if picture is not None else None)
    return buffer.getvalue()


def own_axes(fitted: FittedRun) -> RowPlaces:
    """Place every row by its scores on its first and second own component, 0 where there is none.

    Each subspace has axes of its own: rows are near one another only within a subspace.
    """
    active, scores = fitted.active, fitted.scores
    position = np.cumsum(active, axis=1)
    x, y = (np.where(active & (position == j), scores, 0.0).sum(axis=1) for j in (1, 2))
    return RowPlaces(x, y)


def nearest_projections(fitted: FittedRun, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows whose projections lie nearest, the row itself left out.

    The distance is that of the reconstructions, sqrt((s - t)' W W' (s - t)), in units of the fit:
    of the scores themselves where components are orthonormal.

    Parameters
    ----------
    fitted : FittedRun
    rows : ndarray of int, shape (m,)
        At least two.

    Returns
    -------
    ids : ndarray of int64, shape (m, k)
        Positions in `rows`, nearest first; k is `NEAREST`, or all there are.
    distances : ndarray of float32, shape (m, k)
    """
    W = fitted.components.astype(np.float64)
    values, vectors = np.linalg.eigh(W @ W.T)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    points = fitted.scores[rows].astype(np.float64) @ root
    indices, distances = _nearest(points, min(NEAREST + 1, len(rows)))
    others = indices != np.arange(len(rows))[:, None]
    others[others.all(axis=1), -1] = False  # more equal rows than that: the row itself is not there
    shape = (len(rows), -1)
    ids = indices[others].reshape(shape).astype(np.int64)
    return ids, distances[others].reshape(shape).astype(np.float32)


def _nearest(points: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k nearest points of every point, itself among them, and their distances."""
    if points.shape[1] <= FEW_AXES:
        from scipy.spatial import cKDTree

        distances, indices = cKDTree(points).query(points, k)
        return indices, distances
    from appca.analysis.explore.neighbours import nearest

    return nearest(points, k)


def _structs(ids: np.ndarray, distances: np.ndarray) -> "pa.Array":
    import pyarrow as pa

    m, k = ids.shape
    ends = np.arange(m + 1, dtype=np.int32) * k
    lists = [pa.ListArray.from_arrays(ends, values.ravel()) for values in (ids, distances)]
    return pa.StructArray.from_arrays(lists, names=["ids", "distances"])


def _images(
    dataset: "Dataset", rows: np.ndarray, picture: Callable[[np.ndarray], bytes]
) -> "pa.Array":
    import pyarrow as pa

    pictures = pa.array([picture(dataset.image(row)) for row in rows.tolist()], pa.binary())
    names = pa.array([f"{name}.png" for name in dataset.ids[rows].tolist()], pa.string())
    return pa.StructArray.from_arrays([pictures, names], names=["bytes", "path"])


def _declared(schema: "pa.Schema") -> dict[bytes, bytes]:
    """Return the metadata with the declaration that `image` holds images."""
    features = {"info": {"features": {IMAGE: {"_type": "Image"}}}}
    return {**(schema.metadata or {}), b"huggingface": json.dumps(features).encode()}
