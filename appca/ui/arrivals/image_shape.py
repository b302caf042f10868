"""Which images the rows of a file are read as, among a reader's options."""

from appca.data.dataset import Dataset
from appca.data.pixels import Judged, PixelShape, likely_shapes
from appca.ui.arrivals.chips import AUTO, Options, changed
from appca.ui.session.caching import by_key

KINDS = ("csv", "parquet", "npy", "npz", "mat", "hdf5", "idx")
_judged = by_key(8)(likely_shapes)


def shape_of(kind: str | None, options: Options) -> PixelShape | None:
    """Return the shape that was chosen for rows as images."""
    sides = options.get("image_shape")
    if not sides or kind not in KINDS:
        return None
    by_column = bool(options.get("by_column", kind == "mat"))
    return PixelShape(sides[0], sides[1], 3 if len(sides) == 3 else 1, by_column)


def with_shape(kind: str | None, options: Options, shape: PixelShape | None) -> Options:
    """Return the options with which rows become images, or values again."""
    options = changed(options, "by_column", AUTO)
    if shape is None:
        return changed(options, "image_shape", None if kind == "csv" else AUTO)
    if shape.by_column or kind == "mat":
        options |= {"by_column": shape.by_column}
    return options | {"image_shape": shape.sides}


def judged(kind: str | None, data: Dataset) -> list[Judged]:
    """Return the shapes that rows of values can have, the most plausible first."""
    return _judged(f"{data.digest} {kind}", data.X, kind == "mat")


def likely(kind: str | None, data: Dataset) -> PixelShape | None:
    """Return the shape to propose for rows that are not shown as images."""
    if kind not in KINDS or data.image_shape is not None:
        return None
    shapes = judged(kind, data)
    return shapes[0].shape if shapes and shapes[0].is_likely else None
