"""A data set: rows with identity, labels and, for images, a shape; checked once, then read-only."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, overload

import msgspec
import numpy as np
from msgspec import Meta, Struct

from appca.data.pixels import likely_shapes
from appca.storage.schema import Finite, Misfit, Text, fitted
from appca.words import InputError, counted, is_text, shortened

LEAST_FEATURES = 12
_JUDGED = 48  # rows
_SMOOTH = 0.5  # mean difference of neighbours against that of any two features
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def in_order(X: np.ndarray, names: Sequence[str] | None, stated: bool | None) -> bool:
    """Whether the columns of rows (N, D) follow each other; what was `stated` is believed."""
    if stated is not None:
        return bool(stated)
    return places_of(names, X.shape[1]) is not None and is_smooth(X)


def places_of(names: Sequence[str] | None, n_features: int) -> np.ndarray | None:
    """Return the numbers (D,) in names such as “400 nm”; None where they are not in order."""
    if names is None:
        return np.arange(n_features, dtype=float)
    rests = {_NUMBER.sub("", name, count=1) for name in names}
    numbers = [_NUMBER.search(name) for name in names]
    if len(rests) > 1 or not all(numbers):
        return None
    places = np.array([float(number[0]) for number in numbers if number])
    steps = np.diff(places)
    return places if (steps > 0).all() or (steps < 0).all() else None


def is_smooth(X: np.ndarray) -> bool:
    """Whether neighbouring columns of rows (N, D) differ little, as along a curve.

    Rows that are likely to be images have neighbours in two directions and are none.
    """
    n_features = X.shape[1]
    if n_features < LEAST_FEATURES:
        return False
    some = np.asarray(X[:: max(1, len(X) // _JUDGED)], np.float64)
    mixed = some[:, np.random.default_rng(0).permutation(n_features)]
    near, any_two = (float(np.abs(np.diff(rows, axis=1)).mean()) for rows in (some, mixed))
    shapes = likely_shapes(X) if near < _SMOOTH * any_two else []
    return near < _SMOOTH * any_two and not (shapes and shapes[0].is_likely)


_SEED = 0
_COMPARED_BYTES = 1 << 22


def distinct(X: np.ndarray) -> int:
    """Count the rows (N, D) that differ in a byte: by hashes, and exactly where those are equal."""
    bare = np.ascontiguousarray(X).view(np.uint8)
    words = bare.view(np.uint32) if bare.shape[1] % 4 == 0 else bare
    factors = np.random.default_rng(_SEED).integers(1, 1 << 63, words.shape[1], np.uint64)
    hashes = np.empty(len(X), np.uint64)
    step = max(1, _COMPARED_BYTES // max(1, bare.shape[1]))
    for start in range(0, len(X), step):
        block = words[start : start + step]
        # The low bits of round numbers are zero; a product modulo 2^64 must not be.
        hashes[start : start + step] = (block ^ (block >> 16)).astype(np.uint64) @ factors
    ordered = np.sort(hashes)
    shared = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    tied = np.flatnonzero(np.isin(hashes, shared)) if len(shared) else shared
    return len(X) - len(tied) + len({bare[row].tobytes() for row in tied})


_Plain = bool | int | Finite | str | None  # in a script, too
_Side = Annotated[int, Meta(ge=1, le=512)]  # voxels


class _Report(Struct):
    roles: dict[str, Text] = {}  # names of columns, as long as the file has them


class _Event(Struct):
    onset: Finite
    duration: Finite
    trial_type: Text = ""


class Provenance(Struct):
    """What pages and files read of where data came from; there may be more."""

    source: Text = ""
    options: dict[str, _Plain | list[_Plain] | dict[str, _Plain]] = {}
    files: list[str] | dict[str, str] = []  # with their digests, if known
    report: _Report = msgspec.field(default_factory=_Report)
    image_range: tuple[Finite, Finite] = (0.0, 1.0)
    citation: str = ""
    sample: dict[str, int] = {}  # "of" how many rows these were drawn
    class_names: dict[str, dict[str, str]] = {}  # label to class to its name: `class_names.renamed`
    class_order: dict[str, list[str]] = {}  # label to names of classes, as `renamed` leaves them
    ordered: bool | None = None  # features follow each other, as times do; None lets it be detected
    grid: tuple[_Side, _Side, _Side] = (1, 1, 1)  # of a brain recording, as all that follows
    affine: list[list[Finite]] = []
    repetition: Finite = 1.0
    events: list[_Event] = []


DTYPES = (np.dtype(np.uint8), np.dtype(np.float32), np.dtype(np.float64))
_PLAIN = (1e-30, 1e30)  # grey values whose range and ends lie between go through float32
_BLOCK_BYTES = 1 << 24  # finite checks walk over the matrix 16 MB at a time


class NumberedNames(Sequence[str]):
    """Names such as “feature 3” of columns without their own, made when they are asked for."""

    def __init__(self, word: str, n: int) -> None:
        self.word, self._places = word, range(1, n + 1)

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [f"{self.word} {place}" for place in self._places[index]]
        return f"{self.word} {self._places[index]}"


@dataclass(frozen=True, eq=False)
class Dataset:
    """A matrix (N, D) with the identity of its rows and the meaning of its columns.

    ``X`` is uint8, float32 or float64, kept read-only; other numeric types become float64. ``ids``
    (N,) are unique texts. ``labels`` are columns (N,) of texts or numbers by name; the first is
    "the class". ``image_shape`` is (h, w) or (h, w, 3) when a row is an image in row-major order.
    ``feature_names`` are unique, if the columns have some; see `column_names`. The ``name`` is for
    people, and no part of the digest.

    ``provenance`` is JSON-able: source, options, files, checksums, citation. ``image_range``
    (lowest and highest grey value) in it is read by `images`, ``ordered`` by `is_ordered`.
    ``missing`` (N, D) is True where a cell of X is a placeholder (its column's mean), because its
    value is missing. Models that can are fitted around such cells; everything else reads the
    placeholder. ``least_rows`` is 1 for rows that a model fitted already describes; nothing can be
    fitted to a single one.

    Raises InputError when the parts do not fit together, or values are missing or infinite.
    """

    name: str
    X: np.ndarray
    ids: np.ndarray
    labels: dict[str, np.ndarray] = field(default_factory=dict)
    image_shape: tuple[int, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    provenance: dict[str, Any] = field(default_factory=dict)
    missing: np.ndarray | None = None
    least_rows: int = 2

    def __post_init__(self) -> None:
        """Bring the parts into their one form and check that they fit together."""
        X = _checked_matrix(self.X, self.least_rows)
        n, d = X.shape
        ids = _checked_ids(self.ids, n)
        labels = {str(key): _checked_label(key, value, n) for key, value in self.labels.items()}
        shape = None if self.image_shape is None else tuple(int(side) for side in self.image_shape)
        _check_image_shape(shape, d)
        names = None if self.feature_names is None else tuple(map(str, self.feature_names))
        _check_feature_names(names, d)
        parts = {"X": X, "ids": ids, "labels": labels, "image_shape": shape, "feature_names": names}
        parts["missing"] = _checked_missing(self.missing, X.shape)
        try:
            fitted(Provenance, self.provenance)
        except Misfit as error:
            msg = f"The provenance is not valid: {error}; load the data again."
            raise InputError(msg) from error
        for key, value in parts.items():
            object.__setattr__(self, key, value)

    @property
    def n_rows(self) -> int:
        """Number of rows N."""
        return len(self.X)

    @property
    def n_features(self) -> int:
        """Number of columns D."""
        return int(self.X.shape[1])

    @property
    def column_names(self) -> Sequence[str]:
        """Names of the D columns: their own, else “feature 1” and so on."""
        return self.feature_names or NumberedNames("feature", self.n_features)

    @property
    def is_recording(self) -> bool:
        """Whether the features are one quantity over time, as in a brain recording."""
        return "repetition" in self.provenance

    @cached_property
    def is_ordered(self) -> bool:
        """Whether features follow each other, as times and wavelengths do: stated, or detected."""
        stated = self.is_recording or self.provenance.get("ordered")
        return self.image_shape is None and in_order(self.X, self.feature_names, stated)

    @property
    def times(self) -> np.ndarray | None:
        """Seconds of the features (D,) of a recording; None of other data."""
        step = self.provenance.get("repetition")
        return None if step is None else np.arange(self.n_features) * float(step)

    @cached_property
    def n_missing(self) -> int:
        """Number of missing cells."""
        return 0 if self.missing is None else int(self.missing.sum())

    @cached_property
    def incomplete_rows(self) -> np.ndarray:
        """Row numbers (n,) of the rows with missing cells."""
        return np.flatnonzero([] if self.missing is None else self.missing.any(axis=1))

    def with_gaps(self, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Return X (N, D), or rows of it, with NaN in the missing cells, if there are any."""
        if self.missing is None:
            return self.X[rows]
        dtype = self.X.dtype if self.X.dtype.kind == "f" else np.float64
        X = self.X[rows].astype(dtype)
        X[self.missing[rows]] = np.nan
        return X

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays by the names that files give them."""
        columns = {f"label_{i}": column for i, column in enumerate(self.labels.values())}
        gaps = {} if self.missing is None else {"missing": self.missing}
        return {"matrix": self.X, "ids": self.ids, **columns, **gaps}

    def about(self) -> dict[str, Any]:
        """Return all but the arrays, JSON-able."""
        facts = {key: getattr(self, key) for key in ("name", "image_shape", "feature_names")}
        return facts | {"labels": list(self.labels), "provenance": self.provenance}

    @classmethod
    def rebuilt(
        cls, about: Mapping[str, Any], array: Callable[[str], np.ndarray], *, gaps: bool
    ) -> "Dataset":
        """Rebuild a data set of `about` and of `arrays`, each asked for by its name."""
        return cls(
            name=about["name"],
            X=array("matrix"),
            ids=array("ids"),
            labels={key: array(f"label_{i}") for i, key in enumerate(about["labels"])},
            image_shape=about["image_shape"],
            feature_names=about["feature_names"],
            provenance=about["provenance"],
            missing=array("missing") if gaps else None,
            least_rows=about.get("least_rows", 2),
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 (64 hex digits) of all that matters to numbers and identity; not of the name."""
        sha = hashlib.sha256()
        header = {
            "shape": self.X.shape,
            "dtype": self.X.dtype.str,
            "image_shape": self.image_shape,
            "feature_names": self.feature_names,
            "labels": list(self.labels),
        }
        sha.update(json.dumps(header).encode())
        sha.update(self.X.data)
        for column in (self.ids, *self.labels.values()):
            sha.update(_column_bytes(column))
        if self.missing is not None:  # data sets without missing cells keep their digests
            sha.update(b"missing" + np.packbits(self.missing).tobytes())
        return sha.hexdigest()

    @cached_property
    def image_range(self) -> tuple[float, float]:
        """Values drawn as black and as white: as recorded, else 0-255 for uint8, else min-max."""
        if "image_range" in self.provenance:
            low, high = self.provenance["image_range"]
            return float(low), float(high)
        if self.X.dtype == np.uint8:
            return 0.0, 255.0
        return float(self.X.min()), float(self.X.max())

    @property
    def class_column(self) -> tuple[list[str], np.ndarray] | None:
        """Names and codes (N,) of the first label column, or None without labels."""
        return self.classes(next(iter(self.labels))) if self.labels else None

    def classes(self, label: str) -> tuple[list[str], np.ndarray]:
        """Names and codes (N,) of a label, see `categories`; renamed ones keep their place."""
        return categories(self.labels[label], self.class_order(label))

    def class_order(self, label: str) -> Sequence[str]:
        """Names of a label's classes in their order, where it is not that of `categories`."""
        order: Sequence[str] = self.provenance.get("class_order", {}).get(label, ())
        return order

    def take(self, rows: np.ndarray) -> "Dataset":
        """Return the data set of some rows, in their order.

        `rows` are their numbers, each at most once, or a boolean mask (N,).
        """
        index = np.arange(self.n_rows)[np.asarray(rows)]
        kept = dict(self.provenance)
        if self.image_shape is not None:
            kept["image_range"] = list(self.image_range)  # the scale of the whole
        return replace(
            self,
            X=self.X[index],
            ids=self.ids[index],
            labels={key: column[index] for key, column in self.labels.items()},
            provenance=kept,
            missing=None if self.missing is None else self.missing[index],
        )

    def images(self, rows: np.ndarray) -> np.ndarray:
        """Return rows as uint8 images of shape (n, h, w) or (n, h, w, 3), for display."""
        return self.as_images(self.X[np.asarray(rows)])

    def as_images(self, values: np.ndarray) -> np.ndarray:
        """Draw values (n, D) in data units, such as reconstructions, on this data set's scale."""
        if self.image_shape is None:
            msg = f"“{self.name}” has no images; its rows are values of {self.n_features} features."
            raise InputError(msg)
        pixels: np.ndarray = values.reshape(len(values), *self.image_shape)
        low, high = self.image_range
        if pixels.dtype == np.uint8 and (low, high) == (0.0, 255.0):
            return pixels
        if not _PLAIN[0] < high - low < _PLAIN[1] or max(abs(low), abs(high)) > _PLAIN[1]:
            return _bytes_of_extremes(pixels, low, high)
        factor = 255.0 / (high - low)
        scaled = (pixels.astype(np.float32) - np.float32(low)) * np.float32(factor)
        levels: np.ndarray = np.rint(np.clip(scaled, 0, 255))
        return levels.astype(np.uint8)

    def image(self, row: int) -> np.ndarray:
        """Return one row as a uint8 image of shape (h, w) or (h, w, 3), for display."""
        return np.asarray(self.images(np.array([row]))[0])


def _bytes_of_extremes(pixels: np.ndarray, low: float, high: float) -> np.ndarray:
    """Grey values where float32 or a difference would overflow; black where nothing differs."""
    half = high / 2 - low / 2
    if not half > 0:
        return np.zeros(pixels.shape, np.uint8)
    with np.errstate(over="ignore"):  # beyond the range is white or black, as infinity is
        scaled = (pixels.astype(np.float64) / 2 - low / 2) / half * 255
    return np.rint(np.clip(scaled, 0, 255)).astype(np.uint8)


def categories(column: np.ndarray, order: Sequence[str] = ()) -> tuple[list[str], np.ndarray]:
    """Turn a label column (N,) into category names and codes (N,): row n has ``names[codes[n]]``.

    Numbers are in numeric order, texts first as in `order`, then in natural order (obj2 before
    obj10); empty texts and NaN become the last category, "missing".
    """
    values, codes = np.unique(column, return_inverse=True)
    names = [_category_name(value) for value in values.tolist()]
    if len(set(names)) < len(names):  # such as 1000001 and 1000002, or a gap and “missing”
        names = [_category_name(value, short=False) for value in values.tolist()]
    if values.dtype.kind == "U":
        first = {name: place for place, name in enumerate(order)}
        at = [(name == MISSING, first.get(name, len(first)), natural(name)) for name in names]
        places = sorted(range(len(names)), key=at.__getitem__)
    else:
        places = list(range(len(names)))  # np.unique has sorted the numbers, NaN last
    rank = np.empty(len(places), dtype=np.int64)
    rank[places] = np.arange(len(places))
    return [names[i] for i in places], rank[codes.ravel()]


MISSING, MISSING_TEXT = "missing", "“missing”"  # cells without a value, and that word beside them


def natural(text: str) -> list[tuple[int, int, str]]:
    """Sort key under which numbers inside texts count as numbers: obj2 before obj10."""
    parts = re.findall(r"[0-9]+|[^0-9]+", text)
    # Python's own numbers refuse thousands of digits.
    bare = [part.lstrip("0") if part[0] in "0123456789" else None for part in parts]
    return [
        (1, 0, part) if digits is None else (0, len(digits), digits)
        for part, digits in zip(parts, bare, strict=True)
    ]


def _category_name(value: object, *, short: bool = True) -> str:
    if isinstance(value, float):
        if value != value:  # noqa: PLR0124 (true for NaN alone)
            return MISSING
        return f"{value:g}" if short else repr(value).removesuffix(".0")
    return MISSING_TEXT if value == MISSING and not short else str(value) or MISSING


def _checked_matrix(X: np.ndarray, least_rows: int) -> np.ndarray:
    stored = isinstance(X, np.memmap)  # from the store: it was checked when it was put there
    X = np.asarray(X)
    if X.ndim != 2:
        msg = f"A data set is a table of rows and columns; got an array of shape {X.shape}."
        raise InputError(msg)
    if X.dtype.kind not in "buif":
        msg = f"A data set holds numbers; got values of type {X.dtype}, so convert them first."
        raise InputError(msg)
    if X.dtype not in DTYPES:
        X = X.astype(np.float64)
    n, d = X.shape
    if n < least_rows:
        least = counted(least_rows, "row")
        msg = f"A data set needs at least {least}; got {n}, so add rows or choose more of them."
        raise InputError(msg)
    if d < 2:
        msg = f"A data set needs at least 2 feature columns; got {d}, so add columns."
        raise InputError(msg)
    X = np.ascontiguousarray(X)
    if not stored and X.dtype.kind == "f":
        _check_finite(X)
    return read_only(X)


def _check_finite(X: np.ndarray) -> None:
    step = max(1, _BLOCK_BYTES // max(1, X[:1].nbytes))
    for start in range(0, len(X), step):
        bad = ~np.isfinite(X[start : start + step])
        if bad.any():
            row, column = np.argwhere(bad)[0]
            kind = "missing" if np.isnan(X[start + row, column]) else "infinite"
            msg = (
                f"Every value must be a finite number; the value in row {start + row + 1}, "
                f"column {column + 1} is {kind}, so fill or remove such cells first."
            )
            raise InputError(msg)


def _checked_missing(missing: np.ndarray | None, shape: tuple[int, int]) -> np.ndarray | None:
    if missing is None:
        return None
    missing = np.asarray(missing)
    if missing.dtype != bool or missing.shape != shape:
        msg = (
            f"missing must tell of each of the {shape[0]} x {shape[1]} cells whether it is missing "
            f"(True or False); got {missing.dtype} of shape {missing.shape}."
        )
        raise InputError(msg)
    return read_only(missing) if missing.any() else None


def _checked_ids(ids: np.ndarray, n: int) -> np.ndarray:
    ids = np.asarray(ids)
    ids = ids if ids.dtype.kind == "U" else ids.astype(str)
    _check_text("Row ids", ids)
    if ids.shape != (n,):
        msg = f"There must be one id for each of the {n} rows; got ids of shape {ids.shape}."
        raise InputError(msg)
    if distinct(ids[:, None]) < n:
        values, counts = np.unique(ids, return_counts=True)
        twice = str(values[counts > 1][0])
        msg = (
            f"Row ids must be unique; “{shortened(twice)}” appears more than once, so choose "
            "another id column or none."
        )
        raise InputError(msg)
    return read_only(ids)


def _check_text(what: str, column: np.ndarray) -> None:
    if not is_text(column):
        msg = f"{what} contain invalid Unicode; save the texts again."
        raise InputError(msg)


def _checked_label(key: str, column: np.ndarray, n: int) -> np.ndarray:
    column = np.asarray(column)
    if column.dtype.kind not in "buifU":
        column = column.astype(str)
    _check_text(f"The values of label column “{shortened(key)}”", column)
    if column.shape != (n,):
        msg = f"Label column “{shortened(key)}” must have {n} values; got shape {column.shape}."
        raise InputError(msg)
    return read_only(np.ascontiguousarray(column))


def _check_image_shape(shape: tuple[int, ...] | None, d: int) -> None:
    if shape is None:
        return
    fits = len(shape) == 2 or (len(shape) == 3 and shape[2] == 3)
    if not fits or min(shape) < 1 or int(np.prod(shape)) != d:
        msg = f"An image shape is (h, w) or (h, w, 3) with {d} values in all; got {shape}."
        raise InputError(msg)


def _check_feature_names(names: tuple[str, ...] | None, d: int) -> None:
    if names is not None and (len(names) != d or len(set(names)) != d):
        msg = f"There must be {d} different feature names; got {len(set(names))} different ones."
        raise InputError(msg)


def _column_bytes(column: np.ndarray) -> bytes:
    if column.dtype.kind == "U":  # the width of the array's text type must not matter
        return json.dumps(column.tolist()).encode()
    return column.dtype.str.encode() + column.tobytes()


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a read-only view; the caller's own array stays as writable as it was."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def are_bytes(X: np.ndarray) -> bool:
    """Tell whether all values are whole numbers from 0 to 255."""
    return bool(X.min() >= 0 and X.max() <= 255 and (np.floor(X) == X).all())
