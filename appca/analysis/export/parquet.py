"""A Parquet file that other explorers open: each row with a place on a map, neighbours and image.

Column forms, as those programs' own documentation and source give them: `x` and `y` are numbers;
`neighbors` is a struct of two lists, `ids` (positions in the file, counted from 0) and `distances`;
`image` is a struct of `bytes` (a PNG) and `path`, the form in which Hugging Face's `datasets` keeps
images and which the file's metadata declares.
"""

import io
import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from appca.analysis.explore.neighbours import Neighbours, nearest
from appca.analysis.explore.subspaces import Subspace
from appca.analysis.export.projections import USUAL, Columns, free_name, projection_table
from appca.analysis.fitted import FittedRun
from appca.analysis.groups.similar import projected

if TYPE_CHECKING:
    from appca.data.dataset import Dataset

NEAREST = 15  # rows beside itself
X, Y, NEIGHBOURS, IMAGE = "x", "y", "neighbors", "image"
_DECLARED = {"info": {"features": {IMAGE: {"_type": "Image"}}}}


def explorer_parquet(
    dataset: "Dataset",
    fitted: FittedRun,
    places: np.ndarray,
    rows: np.ndarray | None = None,
    columns: Columns = USUAL,
    picture: Callable[[np.ndarray], bytes] | None = None,
) -> bytes:
    """Return the table of projections with map, neighbours and images as a Parquet file.

    Every row is at its place (N, 2) on the map. Only `rows` are kept, in this order, and neighbours
    sought among these. `picture` makes a PNG of a uint8 image; without it there are none. A column
    of the data that has one of the four names keeps its values under ``label_<name>``.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = np.arange(dataset.n_rows) if rows is None else np.asarray(rows)
    frame = projection_table(dataset, fitted, rows, columns)
    ours = (X, Y, NEIGHBOURS, IMAGE)
    taken = {*frame.columns, *ours}
    frame = frame.rename(columns={name: free_name(name, taken) for name in ours if name in frame})
    frame[X], frame[Y] = places[rows].T.astype(np.float64)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    if len(rows) > 1:
        ids, distances = nearest_projections(fitted, rows)
        lists = [pa.array(list(values[:, 1:])) for values in (ids.astype(np.int64), distances)]
        both = pa.StructArray.from_arrays(lists, ["ids", "distances"])
        table = table.append_column(NEIGHBOURS, both)
    if picture is not None:
        pictures = pa.array([picture(dataset.image(row)) for row in rows.tolist()], pa.binary())
        names = pa.array([f"{name}.png" for name in dataset.ids[rows].tolist()], pa.string())
        images = pa.StructArray.from_arrays([pictures, names], ["bytes", "path"])
        declared = {b"huggingface": json.dumps(_DECLARED).encode()}
        table = table.append_column(IMAGE, images)
        table = table.replace_schema_metadata({**(table.schema.metadata or {}), **declared})
    buffer = io.BytesIO()
    pq.write_table(table, buffer, row_group_size=1000 if picture is not None else None)
    return buffer.getvalue()


def own_axes(fitted: FittedRun) -> np.ndarray:
    """Place every row (N, 2) by its scores on its first and second own component, else 0.

    Each subspace has axes of its own: rows are near one another only within a subspace.
    """
    active, scores = fitted.active, fitted.scores
    position = np.cumsum(active, axis=1)
    coordinates = [np.where(active & (position == j), scores, 0.0).sum(axis=1) for j in (1, 2)]
    return np.stack(coordinates, axis=1)


def nearest_projections(fitted: FittedRun, rows: np.ndarray) -> Neighbours:
    """Return the rows whose projections lie nearest to each of the rows (m,), the row itself first.

    They are positions in `rows`, at most `NEAREST` beside the row. The distance is that of the
    reconstructions, sqrt((s - t)' W W' (s - t)), in units of the fit: of the scores themselves
    where components are orthonormal.
    """
    every = Subspace(tuple(range(len(fitted.components))), rows)
    points = projected(fitted.scores, fitted.components, every)
    return nearest(points, min(NEAREST + 1, len(rows)))
