"""Sparse codes of any model on the canvas: the components that each row uses, and their values.

Sparse autoencoders, dictionary learning, NMF, topic models and mixtures produce such codes.
"""

from typing import Any, NamedTuple

import numpy as np

from appca.analysis.components import principal_scores
from appca.canvas.from_model import GivenRows, rows_of
from appca.canvas.panels import Usage, row_by_row, usage_of_slots
from appca.canvas.scene import Map, Scene, heaviest, label_lines, scene_of_usage, sheet_of
from appca.data.dataset import Dataset
from appca.plots.components import component_image
from appca.plots.style import colour_by, label_colour
from appca.words import counted, refuse_if

MOST_USED = 128  # maximum number of components per row
MOST_COMPONENTS = 65_000
STRONGEST = 4  # number of rows that represent a component


class Codes(NamedTuple):
    """Codes of N rows over K components."""

    slots: np.ndarray  # (N, L) uint8 or uint16, ascending; the largest number pads
    values: np.ndarray  # (N, L) float32; 0 for padding
    n_components: int
    directions: np.ndarray | None = None  # (K, D) contribution of each component to a row

    def dense(self, rows: np.ndarray) -> np.ndarray:
        """Return the values (n, K) of rows on all components, 0 for unused components."""
        scores = np.zeros((len(rows), self.n_components + 1), np.float32)
        slots = np.minimum(self.slots[rows].astype(np.int64), self.n_components)  # K for padding
        np.put_along_axis(scores, slots, self.values[rows], axis=1)
        return scores[:, :-1]


def codes_of(codes: Any, components: Any = None) -> Codes:
    """Check codes and convert them to lists per row.

    Codes are two arrays (N, L), the components that each row uses, counted from 0, and their values
    (a negative index or a value of 0 means none); or a sparse or dense matrix (N, K). `components`
    are (K, D). InputError if parts are inconsistent, or a row uses more than 128 components.
    """
    if not isinstance(codes, tuple):
        from scipy.sparse import csr_matrix

        matrix = csr_matrix(codes)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        codes = row_by_row(rows, matrix.indices, matrix.data, matrix.shape[0])
    indices, values = np.asarray(codes[0]), np.asarray(codes[1], np.float32)
    msg = "codes must be two arrays (N, L), indices and values, or a matrix (N, K); got "
    msg += f"{indices.dtype} of shape {indices.shape} and values of shape {values.shape}."
    fits = indices.ndim == 2 and indices.shape == values.shape and indices.dtype.kind in "ui"
    refuse_if(not fits, msg)
    directions = None if components is None else np.asarray(components, np.float32)
    most = int(indices.max(initial=-1)) + 1
    K = most if directions is None else len(directions)
    none, dtype = (indices < 0) | (values == 0), np.uint8 if K < 256 else np.uint16
    full = np.iinfo(dtype).max
    filled = np.where(none, full, indices.astype(np.int64))
    order = np.argsort(filled, axis=1, kind="stable")
    slots = np.take_along_axis(filled, order, axis=1).astype(dtype)
    listed = np.take_along_axis(np.where(none, np.float32(0), values), order, axis=1)
    twice = ((slots[:, 1:] == slots[:, :-1]) & (slots[:, 1:] != full)).any(axis=1)
    msg = ""
    if indices.shape[1] > MOST_USED or not len(indices):
        msg = f"Got {counted(len(indices), 'row')} with up to {indices.shape[1]:,} components; "
        msg += f"pass 1 to {MOST_USED} per row, such as the strongest."
    elif not np.isfinite(values).all():
        msg = "The values of codes must be finite; correct or leave out other values."
    elif not 0 < most <= K <= MOST_COMPONENTS or (directions is not None and directions.ndim != 2):
        msg = f"Components are counted from 0 to at most {min(K, MOST_COMPONENTS) - 1:,}; got "
        msg += f"{most - 1:,}: leave out larger indices."
    elif twice.any():
        msg = f"A row uses each component once; row {twice.argmax():,} has one twice, so add up "
        msg += "its values."
    refuse_if(msg, msg)
    used = max(1, int((slots != full).sum(axis=1).max()))
    return Codes(slots[:, :used], listed[:, :used], K, directions)


def rows_of_codes(codes: Codes, X: Any, labels: Any, images: Any) -> GivenRows:
    """Combine rows with labels and images; without X, the codes are the rows' values."""
    by_image, values = images is not None and not isinstance(images, (tuple, list)), X
    if X is None:
        values = np.asarray(images).reshape(len(images), -1) if by_image else codes.values
    shape = None if X is None and not by_image else images
    rows = rows_of(values, labels, shape)
    both = f"{counted(len(codes.slots), 'row')} and {counted(rows.dataset.n_rows, 'row')}"
    msg = f"Codes and X (or images) have {both}; the numbers must be equal."
    refuse_if(rows.dataset.n_rows != len(codes.slots), msg)
    return rows


def scene_of_codes(
    codes: Codes, rows: GivenRows, maps: dict[str, Map], shape: tuple[int, ...] | None = None
) -> Scene:
    """Lay out codes of images of a shape: panels of supports and pairs of components, and maps."""
    shown = rows.pictures or rows.dataset
    pictured = shown.image_shape is not None
    usage = usage_of_slots(codes.slots, codes.values, codes.n_components, pictured=pictured)
    colourings = {f"label:{name}": label_colour(rows.dataset, name) for name in rows.dataset.labels}
    colourings["size"] = colour_by("Size of code", np.linalg.norm(codes.values, axis=1))
    pca = Map("PCA of codes", _principal(codes))
    strongest, values = _strongest(usage)
    entries: list[dict[str, Any]] = [
        {"number": k, "name": "", "columns": columns}
        for k, columns in enumerate(_columns(codes, rows.dataset, strongest, values))
    ]
    sheet, weights = None, codes.directions
    if shape is not None and weights is not None and weights.shape[1] == int(np.prod(shape)):
        both = [[component_image(w, shape, dark=dark) for w in weights] for dark in (False, True)]
        sheet = sheet_of(np.concatenate(both), shape)
    elif shown.image_shape is not None:  # show the image of the strongest row
        first = strongest[:, :1].max(axis=1, initial=-1)
        images = shown.images(np.maximum(first, 0))
        if images.ndim == 3:
            images = np.repeat(images[..., None], 3, axis=-1)
        images[first < 0] = 128
        sheet = sheet_of(np.concatenate([images, images]), shown.image_shape)
    marks = {"doubt": np.full(len(codes.slots), 255, np.uint8)}
    of_a_row = (colourings, {"pca": pca} | maps, label_lines(rows.dataset))
    n_active = None if usage.varies else usage.most_used
    scene = scene_of_usage(usage, shown, of_a_row, (entries, n_active, sheet, marks))
    return scene._replace(meta=scene.meta | {"centred": False})


def _principal(codes: Codes) -> np.ndarray:
    from scipy.sparse import csr_matrix
    from sklearn.utils.extmath import randomized_svd

    taken = codes.slots != np.iinfo(codes.slots.dtype).max
    indptr = np.concatenate([[0], np.cumsum(taken.sum(axis=1))])
    parts = (codes.values[taken], codes.slots[taken].astype(np.int32), indptr)
    matrix = csr_matrix(parts, shape=(len(taken), codes.n_components))
    if min(matrix.shape) < 3:
        return principal_scores(matrix.toarray())[0]
    left, lengths, _ = randomized_svd(matrix, 2, random_state=0)
    return np.asarray(left * lengths)


def _strongest(usage: Usage) -> tuple[np.ndarray, np.ndarray]:
    rows, places = np.nonzero(usage.taken)
    components, values = usage.slots[rows, places], usage.values[rows, places]
    order = np.lexsort((-np.abs(values), components))
    counts = np.bincount(components, minlength=usage.n_components)
    rank = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    order = order[rank < STRONGEST]
    return row_by_row(components[order], rows[order], values[order], usage.n_components)


def _columns(
    codes: Codes, dataset: Dataset, rows: np.ndarray, values: np.ndarray
) -> list[list[tuple[str, float]]]:
    names = dataset.feature_names
    if codes.directions is not None and names and len(names) == codes.directions.shape[1]:
        return heaviest(codes.directions, names)
    largest = np.abs(values).max(axis=1, initial=0, keepdims=True)
    shares = np.round(values.astype(float) / np.where(largest > 0, largest, 1), 3).tolist()
    return [
        [(f"row {dataset.ids[row]}", share) for row, share in zip(*entry, strict=True) if row >= 0]
        for entry in zip(rows.tolist(), shares, strict=True)
    ]
