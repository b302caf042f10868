"""A data set: rows with ids, labels and, for images, a shape; checked once, then read-only."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, Struct

from appca.data.pixels import likely_shapes
from appca.frames import UNIT
from appca.ordered import numbered
from appca.storage.schema import Finite, Misfit, Text, fitted
from appca.words import InputError, counted, is_text, percent, refuse_if, shortened, size

DTYPES = (np.dtype(np.uint8), np.dtype(np.float32), np.dtype(np.float64))
MISSING, MISSING_TEXT = "missing", "“missing”"  # empty cells; cells with this word
MOST_LEFT_OUT, MOST_UNEVEN, FEW = 1_000, 3, 12  # ids listed; largest step / median step of an axis
LEAST_UNITS, MOST_IN_UNIT = 10, 50  # units; mean number of rows in one, else units are classes
ROWS_GONE = "Rows left out"


def follow_each_other(X: np.ndarray, names: Sequence[str] | None) -> bool:
    """Whether the columns of rows (N, D) are ordered, such as wavelengths or times.

    Names, if present, must contain ascending or descending numbers, such as “400 nm”. That is
    enough if the steps are similar and the numbers are not just 1, 2, 3. Otherwise neighbouring
    columns must differ less than half as much as random pairs, and rows must not look like images.
    """
    axis = numbered(names) if names is not None else None
    if (names is not None and axis is None) or X.shape[1] < 12:
        return False
    steps = np.abs(np.diff(axis[0])) if axis and not axis[1] and axis[0][0] not in {0, 1} else None
    if steps is not None and steps.max() <= MOST_UNEVEN * np.median(steps):
        return True
    some = np.asarray(X[:: max(1, len(X) // 48)], np.float64)
    mixed = some[:, np.random.default_rng(0).permutation(X.shape[1])]
    near, any_two = (float(np.abs(np.diff(rows, axis=1)).mean()) for rows in (some, mixed))
    return near < 0.5 * any_two and not any(shape.is_likely for shape in likely_shapes(X)[:1])


_Plain = bool | int | Finite | str | None
_Side = Annotated[int, Meta(ge=1, le=512)]  # voxels


class _Report(Struct):
    roles: dict[str, Text] = {}  # by column name


class _Event(Struct):
    onset: Finite
    duration: Finite
    trial_type: Text = ""


class _LeftOut(Struct):
    of: Text  # digest of the data set with all rows
    name: Text  # name of that data set
    n: Annotated[int, Meta(ge=2)]  # number of its rows
    why: Text = ""
    ids: list[Text] = []  # ids of the removed rows, if there are few


class Provenance(Struct):
    """Fields of a data set's provenance that pages and files read; others are allowed."""

    source: Text = ""
    options: dict[str, _Plain | list[_Plain] | dict[str, _Plain]] = {}
    files: list[str] | dict[str, str] = []  # with their digests, if known
    report: _Report = msgspec.field(default_factory=_Report)
    image_range: tuple[Finite, Finite] = (0.0, 1.0)
    citation: str = ""
    class_names: dict[str, dict[str, str]] = {}  # label -> class -> new name; see `columns.renamed`
    class_order: dict[str, list[str]] = {}  # label -> ordered class names; see `columns.renamed`
    left_out: _LeftOut | None = None  # rows removed by `Dataset.without`
    ordered: bool | None = None  # whether features are ordered, such as times; None detects it
    grid: tuple[_Side, _Side, _Side] = (1, 1, 1)  # from here on: brain recordings only
    affine: list[list[Finite]] = []
    repetition: Finite = 1.0
    events: list[_Event] = []


class NumberedNames(Sequence[str]):
    """Lazy names such as “feature 3” for unnamed columns."""

    def __init__(self, word: str, n: int) -> None:
        self.word, self._places = word, range(1, n + 1)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: Any) -> Any:
        places = self._places[index]
        if isinstance(places, int):
            return f"{self.word} {places}"
        return [f"{self.word} {place}" for place in places]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A matrix (N, D) with row ids, labels and column names.

    ``X`` is uint8, float32 or float64, kept read-only; other numeric types become float64. ``ids``
    (N,) are unique texts. ``labels`` are columns (N,) of texts or numbers by name; the first is
    "the class". ``image_shape`` is (h, w) or (h, w, 3) when a row is an image in row-major order.
    ``feature_names``, if present, are unique. The digest does not depend on ``name``.

    ``provenance`` is JSON-able, see `Provenance`. ``missing`` (N, D) is True where a cell of X is a
    placeholder (its column's mean) for a missing value, as in masked arrays. Models that support
    missing values ignore placeholders; all other code reads them. ``least_rows`` is 1 for rows that
    are only described by an existing fit.

    Raises InputError if the parts are inconsistent, or values are missing or infinite.
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
        """Normalize and check all fields."""
        X, missing = self.X, self.missing
        is_stored = isinstance(X, np.memmap)  # checked before it was stored
        if isinstance(X, np.ma.MaskedArray):  # masked means missing
            masked = np.ma.getmaskarray(X)
            missing = masked if missing is None else masked | np.asarray(missing)
            X = np.where(masked, np.ma.filled(X.astype(np.float64).mean(axis=0), 0.0), X.data)
        X = np.asarray(X)
        is_table, is_number = X.ndim == 2, X.dtype.kind in "buif"
        (n, d), least = X.shape if is_table else (0, 0), counted(self.least_rows, "row")
        no_table = f"A data set is a table of rows and columns; got an array of {X.shape}."
        other = f"A data set contains numbers; got values of type {X.dtype}, so convert them first."
        few = f"A data set needs at least {least}; got {n}, so add rows or choose more of them."
        thin = f"A data set needs at least 2 feature columns; got {d}, so add columns."
        refuse_if(not is_table, no_table)
        refuse_if(not is_number, other)
        refuse_if(n < self.least_rows, few)
        refuse_if(d < 2, thin)
        X = np.ascontiguousarray(X, None if X.dtype in DTYPES else np.float64)
        if not is_stored and X.dtype.kind == "f" and not (is_finite := np.isfinite(X)).all():
            row, column = np.unravel_index(is_finite.argmin(), X.shape)
            kind = "missing" if np.isnan(X[row, column]) else "infinite"
            msg = (
                f"Every value must be a finite number; the value in row {row + 1}, column "
                f"{column + 1} is {kind}, so fill or remove such cells first."
            )
            raise InputError(msg)
        if missing is not None:
            missing = np.asarray(missing)
            refuse_if(
                missing.dtype != bool or missing.shape != X.shape,
                f"missing must be True or False for each of the {n} x {d} cells; got "
                f"{missing.dtype} of shape {missing.shape}.",
            )
            missing = read_only(missing) if missing.any() else None
        ids = np.asarray(self.ids)
        ids = _column("The row ids", ids if ids.dtype.kind == "U" else ids.astype(str), n)
        if len(set(ids.tolist())) < n:
            values, counts = np.unique(ids, return_counts=True)
            msg = (
                f"Row ids must be unique; “{shortened(values[counts > 1][0])}” appears more than "
                "once, so choose another id column, or none."
            )
            raise InputError(msg)
        labels = {
            str(key): _column(f"The values of label column “{shortened(key)}”", column, n)
            for key, column in self.labels.items()
        }
        shape = None if self.image_shape is None else tuple(int(side) for side in self.image_shape)
        fits = shape is None or (len(shape) >= 2 and shape[2:] in ((), (3,)) and min(shape) >= 1)
        msg = f"An image shape is (h, w) or (h, w, 3) with {d} values in all; got {shape}."
        refuse_if(not fits or int(np.prod(shape or d)) != d, msg)
        names = None if self.feature_names is None else tuple(map(str, self.feature_names))
        n_names = len(set(names or ()))
        refuse_if(
            names is not None and not len(names) == n_names == d,
            f"There must be {d} different feature names; got {n_names} different ones.",
        )
        try:
            fitted(Provenance, self.provenance)
        except Misfit as error:
            msg = f"The provenance is not valid: {error}; load the data again."
            raise InputError(msg) from error
        parts = {"X": read_only(X), "missing": missing, "ids": ids, "labels": labels}
        for key, value in (parts | {"image_shape": shape, "feature_names": names}).items():
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
        """Names of the D columns, by default “feature 1” and so on."""
        return self.feature_names or NumberedNames("feature", self.n_features)

    @property
    def is_recording(self) -> bool:
        """Whether the features are one quantity at different times, as in a brain recording."""
        return "repetition" in self.provenance

    @cached_property
    def is_ordered(self) -> bool:
        """Whether features are ordered, such as times: declared, or else detected."""
        stated = self.is_recording or self.provenance.get("ordered")
        if self.image_shape is not None or stated is not None:
            return self.image_shape is None and bool(stated)
        return follow_each_other(self.X, self.feature_names)

    @property
    def axis(self) -> tuple[np.ndarray, str] | None:
        """Positions (D,) of ordered features, and their unit: seconds, as in names, or indices."""
        if self.is_recording:
            return np.arange(self.n_features) * float(self.provenance["repetition"]), "seconds"
        counted_up = np.arange(1.0, self.n_features + 1), "feature"
        return (numbered(self.column_names) or counted_up) if self.is_ordered else None

    @cached_property
    def n_missing(self) -> int:
        """Number of missing cells."""
        return 0 if self.missing is None else int(self.missing.sum())

    @cached_property
    def repeated_rows(self) -> dict[int, int]:
        """The earliest row with the same features (and labels, unless images), if there is one."""
        return self._earlier(self.labels.values() if self.image_shape is None else ())

    @cached_property
    def equal_rows(self) -> dict[int, int]:
        """The earliest row with the same features, of each row that has one."""
        return self._earlier(())

    def _earlier(self, labels: Iterable[np.ndarray]) -> dict[int, int]:
        rows = zip(self.X, *(column.astype(str).tolist() for column in labels), strict=True)
        hashed = np.array([hash((row.tobytes(), *texts)) for row, *texts in rows])
        _, first, inverse = np.unique(hashed, return_index=True, return_inverse=True)
        return {row: of for row, of in enumerate(first[inverse].tolist()) if of < row}

    @cached_property
    def has_few_values(self) -> bool:
        """Whether the features of a table and their values are so few that equal rows are usual."""
        few = self.image_shape is None and self.n_features <= FEW
        return few and all(len(np.unique(x)) <= FEW + 1 for x in self.X.T)  # 1 for the mean

    @cached_property
    def related(self) -> str:
        """The label whose rows are related: a unit such as a patient, or with a time each."""
        for name, of in self.labels.items():
            n, is_in = len(np.unique(of)), str(self.ids[0]).startswith(f"{of[0]}, ")
            if is_in:
                is_in = bool(np.char.startswith(self.ids, np.char.add(of.astype(str), ", ")).all())
            is_named = UNIT.search(name) or (name == "name" and self.image_shape is not None)
            is_unit = n >= LEAST_UNITS and self.n_rows <= MOST_IN_UNIT * n and is_named
            if n <= self.n_rows // 2 and (is_in or is_unit):
                return name
        return ""

    @cached_property
    def units(self) -> np.ndarray:
        """The unit (N,) of related rows, or of copies where units are fewer than `LEAST_UNITS`."""
        codes = np.unique(self.labels.get(self.related, self.ids), return_inverse=True)[1]
        return codes if self.related and codes.max() >= LEAST_UNITS - 1 else self.copies

    @cached_property
    def copies(self) -> np.ndarray:
        """A number (N,) for each set of rows with equal features and labels, except names."""
        kept = [of for name, of in self.labels.items() if name != "name"]
        first = {} if self.has_few_values else self._earlier(kept)
        earliest = [first.get(row, row) for row in range(self.n_rows)]
        return np.unique(earliest, return_inverse=True)[1]

    @cached_property
    def incomplete_rows(self) -> np.ndarray:
        """Indices (n,) of the rows with missing cells."""
        return np.flatnonzero([] if self.missing is None else self.missing.any(axis=1))

    @cached_property
    def sparse_rows(self) -> np.ndarray:
        """Mask (N,) of the rows of which more than half is missing."""
        few = np.zeros(self.n_rows, int) if self.missing is None else self.missing.sum(axis=1)
        return np.asarray(2 * few > self.n_features)

    def with_gaps(self, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Return X (N, D), or some of its rows, with NaN in missing cells."""
        if self.missing is None:
            return self.X[rows]
        X = self.X[rows].astype(self.X.dtype if self.X.dtype.kind == "f" else np.float64)
        X[self.missing[rows]] = np.nan
        return X

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays by their names in files."""
        columns = {f"label_{i}": column for i, column in enumerate(self.labels.values())}
        gaps = {} if self.missing is None else {"missing": self.missing}
        return {"matrix": self.X, "ids": self.ids, **columns, **gaps}

    def about(self) -> dict[str, Any]:
        """Return all fields except the arrays as a JSON-able dict."""
        facts = {key: getattr(self, key) for key in ("name", "image_shape", "feature_names")}
        return facts | {"labels": list(self.labels), "provenance": self.provenance}

    @classmethod
    def rebuilt(
        cls, about: Mapping[str, Any], array: Callable[[str], np.ndarray], *, gaps: bool
    ) -> "Dataset":
        """Rebuild a data set from `about()` and a function that returns `arrays()` by name."""
        facts = {key: about[key] for key in ("image_shape", "feature_names", "provenance")}
        labels = {key: array(f"label_{i}") for i, key in enumerate(about["labels"])}
        facts |= {"labels": labels, "missing": array("missing") if gaps else None}
        least = about.get("least_rows", 2)
        return cls(about["name"], array("matrix"), array("ids"), least_rows=least, **facts)

    @cached_property
    def digest(self) -> str:
        """SHA-256 (64 hex digits) of all fields but name, provenance and least_rows."""
        header: dict[str, Any] = {"shape": self.X.shape, "dtype": self.X.dtype.str}
        header |= {key: getattr(self, key) for key in ("image_shape", "feature_names")}
        sha = hashlib.sha256(json.dumps(header | {"labels": list(self.labels)}).encode())
        sha.update(self.X.data)
        for column in (self.ids, *self.labels.values()):
            if column.dtype.kind == "U":  # the digest must not depend on the array's text width
                sha.update(json.dumps(column.tolist()).encode())
            else:
                sha.update(column.dtype.str.encode() + column.tobytes())
        if self.missing is not None:  # otherwise, the digest is as in older versions
            sha.update(b"missing" + np.packbits(self.missing).tobytes())
        return sha.hexdigest()

    @cached_property
    def image_range(self) -> tuple[float, float]:
        """Values shown as black and white: as recorded, else 0-255 for uint8, else min-max."""
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
        """Names and codes (N,) of a label's classes, in `class_order`; see `categories`."""
        return categories(self.labels[label], self.class_order(label))

    def class_order(self, label: str) -> list[str]:
        """Names of a label's classes in a declared order; empty for the default order."""
        return list(self.provenance.get("class_order", {}).get(label, ()))

    def take(self, rows: np.ndarray) -> "Dataset":
        """Return a data set of `rows`, given as distinct indices or a mask (N,)."""
        index = np.arange(self.n_rows)[np.asarray(rows)]
        parts: dict[str, Any] = {"X": self.X[index], "ids": self.ids[index]}
        if self.image_shape is not None:
            parts["provenance"] = self.provenance | {"image_range": list(self.image_range)}
        parts["labels"] = {key: column[index] for key, column in self.labels.items()}
        parts["missing"] = None if self.missing is None else self.missing[index]
        return replace(self, **parts)

    def without(self, rows: np.ndarray, why: str) -> "Dataset":
        """Return the data set without some rows, which its provenance lists.

        `rows` are indices or a boolean mask (N,); `why` describes them: "4 selected rows". All
        removals are recorded. Raises InputError if fewer than two rows remain.
        """
        gone = np.zeros(self.n_rows, dtype=bool)
        gone[np.asarray(rows)] = True
        whole = {"of": self.digest, "name": self.name, "n": self.n_rows}
        before = {"why": "", "ids": [], **(self.provenance.get("left_out") or whole)}
        ids = [*before["ids"], *self.ids[gone].tolist()]
        is_listed = before["n"] - self.n_rows == len(before["ids"]) and len(ids) <= MOST_LEFT_OUT
        why = ", ".join(filter(None, (before["why"], why)))
        noted = {"left_out": before | {"why": why, "ids": ids if is_listed else []}}
        kept = self.take(~gone)
        name = f"{before['name']}, {kept.n_rows:,} of {before['n']:,} rows"
        return replace(kept, name=name, provenance=kept.provenance | noted)

    def images(self, rows: np.ndarray) -> np.ndarray:
        """Return rows as uint8 images of shape (n, h, w) or (n, h, w, 3), for display."""
        return self.as_images(self.X[np.asarray(rows)])

    def as_images(self, values: np.ndarray) -> np.ndarray:
        """Return values (n, D) in data units, such as reconstructions, as images on this scale."""
        if self.image_shape is None:
            msg = f"“{self.name}” has no images; its rows are values of {self.n_features} features."
            raise InputError(msg)
        pixels: np.ndarray = values.reshape(len(values), *self.image_shape)
        low, high = self.image_range
        if pixels.dtype == np.uint8 and (low, high) == (0.0, 255.0):
            return pixels
        # halved because the range may overflow; constant images are black
        half = max(high / 2 - low / 2, 0.0) or np.inf
        with np.errstate(over="ignore"):  # values outside the range become white or black
            levels: np.ndarray = (pixels.astype(np.float64) / 2 - low / 2) / half * 255
        return np.asarray(np.rint(np.clip(levels, 0, 255)), np.uint8)

    @property
    def facts(self) -> dict[str, str]:
        """Facts to show about the data, by name."""
        made, features = self.provenance, f"{self.n_features:,} columns"
        if self.image_shape is not None:
            h, w, *colour = self.image_shape
            features = f"{self.n_features:,} ({h} × {w} pixels{', colour' if colour else ''})"
        lines = {
            "Rows": f"{self.n_rows:,}",
            "Features": features,
            "Labels": ", ".join(self.labels) or "none",
            "Values": f"{self.X.dtype}, {size(self.X.nbytes)}",
        }
        if self.missing is not None:
            n, share = counted(self.n_missing, "cell"), percent(self.n_missing / self.X.size, 1)
            rows = counted(len(self.incomplete_rows), "row")
            lines["Missing"] = f"{n} ({share}) in {rows}, for the model to fill"
        if unit := self.related:
            lines["Related rows"] = f"those of one {unit}"
            if self.units.max() + 1 < self.n_rows:
                lines["Related rows"] += "; folds and halves keep them together"
        notes = (made.get("report") or {}).get("notes") or {}
        lines |= {ROWS_GONE: notes[ROWS_GONE]} if ROWS_GONE in notes else {}
        source = str(made.get("citation") or made.get("source") or "")
        if made.get("source") == "file":
            files = list(made.get("files", []))
            source = shortened(files[0]) if len(files) == 1 else counted(len(files), "file")
        return lines | ({"Source": source} if source else {})


def categories(column: np.ndarray, order: Sequence[str] = ()) -> tuple[list[str], np.ndarray]:
    """Convert a label column (N,) to category names and codes (N,): row n has ``names[codes[n]]``.

    Numbers are sorted. Texts of `order` come first, others in natural order (obj2 before obj10).
    Empty texts and NaN become the last category, "missing".
    """
    values, codes = np.unique(column, return_inverse=True)
    names = [_category_name(value) for value in values.tolist()]
    if len(set(names)) < len(names):
        names = [_category_name(value, short=False) for value in values.tolist()]
    places = list(range(len(names)))  # np.unique has sorted the numbers, NaN last
    if values.dtype.kind == "U":
        first = {name: place for place, name in enumerate(order)}
        at = [(name == MISSING, first.get(name, len(first)), natural(name)) for name in names]
        places = sorted(places, key=at.__getitem__)
    return [names[i] for i in places], np.argsort(places)[codes.ravel()]


def natural(text: str) -> list[tuple[int, int, str]]:
    """Sort key that compares numbers inside strings as numbers: obj2 before obj10."""
    parts = re.findall(r"0*([0-9]+)|([^0-9]+)", text)
    # kept as strings, because int() refuses thousands of digits
    return [(0, len(digits), digits) if digits else (1, 0, other) for digits, other in parts]


def _category_name(value: object, *, short: bool = True) -> str:
    if isinstance(value, float):
        if value != value:  # noqa: PLR0124 (true for NaN alone)
            return MISSING
        return f"{value:g}" if short else repr(value).removesuffix(".0")
    return MISSING_TEXT if value == MISSING and not short else str(value) or MISSING


def _column(what: str, column: np.ndarray, n: int) -> np.ndarray:
    column = np.asarray(column)
    column = column if column.dtype.kind in "buifU" else column.astype(str)
    refuse_if(not is_text(column), f"{what} contain invalid Unicode; save the text again.")
    msg = f"{what} must be one for each of the {n} rows; got an array of shape {column.shape}."
    refuse_if(column.shape != (n,), msg)
    return read_only(np.ascontiguousarray(column))


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a read-only view; the array itself stays writable."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def are_bytes(X: np.ndarray) -> bool:
    """Whether all values are whole numbers from 0 to 255."""
    return bool(X.min() >= 0 and X.max() <= 255 and (np.floor(X) == X).all())
