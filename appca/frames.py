"""Tables and rows of any library as arrays: pandas, polars, pyarrow, AnnData, masked, sparse."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from appca.words import InputError, refuse_if, refuse_unknown, shortened

if TYPE_CHECKING:
    import pandas as pd
    from anndata import AnnData

FEW_INTEGERS, MOST_CODES = 20, 5  # distinct integers in a column of classes; of ages and the like
MOST_CLASSES = 200  # maximum number of classes of a column in tests
FEW = 8  # maximum number of columns joined to a wider table
HIGHLY_VARIABLE = "highly_variable"
MOST_CATEGORIES = 1000  # maximum number of classes of a column that colours rows
EXACT = 1 << 53  # larger integers become texts, which keep all digits
UNIT = re.compile(  # names of columns whose rows are related
    r"(?i)(^|_| )(subject|patient|participant|donor|animal|site|plot|station|household|hospital|"
    r"school|speaker|writer|respondent|rater|reader)s?([_ ]?(id|no|nr|number))?$"
)
_MEASURED = re.compile(r"(?i)(^|[^a-z])(age|exper(ience)?|tenure|years|count)([^a-z]|$)")
_NO_DATE = np.datetime64("NaT", "us")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?")
_WHOLE = re.compile(r"([-+]?(?:0|[1-9]\d*))(?:\.0*)?")
_NUMBER = re.compile(r"[-+]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")


class TableColumn(NamedTuple):
    """A column of N rows."""

    name: str
    kind: str  # "number", "date" or "class"
    values: np.ndarray  # (N,) float64: numbers, days since 1970, or codes; NaN is missing
    names: tuple[str, ...] = ()  # class names, by first appearance

    @property
    def there(self) -> np.ndarray:
        """Rows with a value, (N,) bool."""
        return np.asarray(~np.isnan(self.values))

    def varies(self, rows: np.ndarray) -> bool:
        """Whether the given rows (N,) bool have at least two distinct values."""
        values = self.values[rows]
        return len(values) > 1 and bool((values != values[0]).any())


def number_column(name: str, values: Any) -> TableColumn:
    """Return a column as numbers (N,), even if it looks like classes; inf is missing."""
    x = np.asarray(values, dtype=np.float64)
    return TableColumn(name, "number", np.where(np.isfinite(x), x, np.nan))


def unique(names: Sequence[str]) -> list[str]:
    """Make names unique: the second "name" becomes "name (2)"."""
    taken, numbers, result = set(names), Counter[str](), list[str]()
    for name in names:
        numbers[name] += 1
        new = name
        while numbers[name] > 1 and (new := f"{name} ({numbers[name]})") in taken:
            numbers[name] += 1
        taken.add(new)
        result.append(new)
    return result


def with_classes(
    table: "pd.DataFrame", few: "pd.DataFrame"
) -> "tuple[pd.DataFrame, list[str], str]":
    """Append a few columns to a table of the same rows.

    Returns the table, the names of appended labels that contain numbers, and how rows were matched.

    Rows are matched by a column with the same name and the same distinct values, which is stored
    only once, or else by position. The text is empty if the columns do not belong to the table: at
    least one of them must contain texts or repeated values.
    """
    import pandas as pd

    are_classes = [x.dtype.kind not in "iuf" or not x.is_unique for _, x in few.items()]
    most = min(FEW, len(table.columns) - 1)
    if len(few) != len(table) or len(few.columns) > most or not any(are_classes):
        return table, [], ""
    how = "line by line"
    for key in few.columns.intersection(table.columns):
        names, wanted = few[key].astype(str), table[key].astype(str)
        if names.is_unique and set(names) == set(wanted):
            few = few.drop(columns=key).set_axis(names).reindex(wanted).reset_index(drop=True)
            how = f"by “{shortened(key)}”"
            break
    frame = pd.concat([table, few], axis=1)
    frame = frame.set_axis(unique([*map(str, frame.columns)]), axis=1)
    added = zip(frame.columns[len(table.columns) :], few.items(), strict=True)
    labels = [
        str(name)
        for name, (_, x) in added
        if x.dtype.kind == "f" or (x.dtype.kind in "iu" and not x.is_unique)
    ]
    return frame, labels, how


def named_columns(table: Any, unnamed: str = "column") -> dict[str, Any]:
    """Return the columns of a table by name, as text.

    `table` is a data frame, a mapping of names to columns, one column (with its own name or
    `unnamed`), a matrix with numbered columns, or None. Raises InputError if two columns have the
    same name.
    """
    pairs: Any = _columns_of_frame(table)
    if table is None:
        pairs = []
    elif isinstance(table, Mapping):
        pairs = table.items()
    elif pairs is None and np.ndim(table) == 2:
        pairs = enumerate(np.asanyarray(table).T)
    elif pairs is None:
        pairs = [(getattr(table, "name", None) or unnamed, table)]
    return _by_name(pairs)


def _by_name(pairs: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for key, values in pairs:
        name = ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)
        msg = f"Two columns of the table are called “{shortened(name)}”; rename one of them."
        refuse_if(name in columns, msg)
        columns[name] = values
    return columns


def columns_of(table: Any, n_rows: int) -> tuple[list[TableColumn], list[str]]:
    """Return the informative columns of a table, and the names of the others.

    Columns with a single value and columns with more than `MOST_CLASSES` classes are uninformative.
    Raises InputError if a column does not have one value per row.
    """
    columns = [column_of(name, values) for name, values in named_columns(table).items()]
    for name, _, values, _ in columns:
        if len(values) != n_rows:
            msg = f"Column “{shortened(name)}” has {len(values):,} values for {n_rows:,} rows; "
            raise InputError(msg + "give one value per row.")
    kept = [x for x in columns if x.varies(x.there) and len(x.names) <= MOST_CLASSES]
    names = {column.name for column in kept}
    return kept, [column.name for column in columns if column.name not in names]


def column_of(name: str, values: Any) -> TableColumn:
    """Return a column (N,), whose kind depends on its values, not its dtype.

    Texts, booleans, categoricals, and integers with at most `FEW_INTEGERS` distinct values (or a
    `UNIT`), some of them repeated, are classes. Texts are numbers if all are numeric and some have
    decimals (1E5 and 007 are names). None, NaN, NaT, NA, masked and empty texts are missing.
    """
    if isinstance(values, TableColumn):
        return values._replace(name=name)
    x, is_class = _plain(values)
    if x.dtype.kind == "M":
        days = (x - np.datetime64(0, "us")) / np.timedelta64(1, "D")
        return TableColumn(name, "date", days.astype(np.float64))
    is_number = x.dtype.kind == "f"
    there = np.isfinite(x) if is_number else np.array([v is not None for v in x], dtype=bool)
    keys = x[there] if is_number else x[there].astype(str)
    levels, first, codes = np.unique(keys, return_index=True, return_inverse=True)
    if is_number and not is_class:
        most = MOST_CODES if _MEASURED.search(name) else FEW_INTEGERS
        most = MOST_CLASSES if UNIT.search(name) else most
        few = len(levels) <= most and len(levels) < len(keys)
        if not few or not (levels == np.rint(levels)).all():
            return number_column(name, x)
    elif len(levels) > MOST_CLASSES and not is_class and all(map(_WHOLE.fullmatch, levels)):
        return number_column(name, [np.nan if text is None else float(text) for text in x])
    order, coded = np.argsort(first), np.full(len(x), np.nan)
    coded[there] = np.argsort(order)[codes]
    names = levels[order].tolist()
    return TableColumn(name, "class", coded, tuple(map(_name, names) if is_number else names))


def class_names(values: Any) -> np.ndarray:
    """Return the class (N,) of each value as text, None if it is missing; 3.0 gives "3"."""
    import pandas as pd

    x, _ = _plain(values)
    if x.dtype.kind == "O":
        return x
    codes, levels = pd.factorize(x)  # -1 is missing
    return np.array([*map(_name, levels), None], dtype=object)[codes]


def numbers_of(values: Any) -> np.ndarray:
    """Return a column (N,) as float64; values that are missing or not numbers become NaN."""
    x: Any = _plain(values)[0]
    if x.dtype.kind == "O":
        x = [float(text) if text and _NUMBER.fullmatch(text) else np.nan for text in x]
    return np.asarray(x, dtype=np.float64)


def joined(first: Any, second: Any) -> Any:
    """Concatenate two columns and convert them to one kind."""
    x, y = (_plain(values)[0] for values in (first, second))
    if x.dtype.kind != y.dtype.kind:
        x, y = class_names(first), class_names(second)
    both = np.concatenate([x, y])
    is_number = isinstance(first, TableColumn) and both.dtype.kind == "f"
    return number_column(first.name, both) if is_number else both


class Matrix(NamedTuple):
    """Rows as an array or a CSR matrix, (N, D)."""

    values: Any  # NaN is missing
    names: tuple[str, ...] | None  # feature names, if any

    def for_model(self, model: Any) -> Any:
        """Return the input for a model: a data frame if it was fitted with feature names."""
        if self.names is None or not hasattr(model, "feature_names_in_"):
            return self.values
        import pandas as pd

        frame: Any = pd.DataFrame  # Any, because the stubs lack from_spmatrix
        if hasattr(self.values, "tocsr"):
            frame = frame.sparse.from_spmatrix
        return frame(self.values, columns=list(self.names))


def matrix_of(X: Any) -> Matrix:
    """Return rows (N, D) of an array, a list, a data frame, a sparse matrix or a Dask collection.

    Integers and float32 are not converted if no value is missing. Raises InputError if X is not
    two-dimensional, columns share a name, or values are not numbers.
    """
    X = X.compute() if hasattr(X, "compute") else X
    if hasattr(X, "tocsr"):
        return Matrix(X.tocsr(), None)
    kinds = list(getattr(X, "dtypes", ()))
    if kinds and all(isinstance(kind, np.dtype) and kind.kind in "iuf" for kind in kinds):
        named = _by_name((name, None) for name in X.columns)
        return matrix_of(X.to_numpy())._replace(names=tuple(named))
    is_frame = not isinstance(X, np.ndarray | list) and _columns_of_frame(X) is not None
    columns = named_columns(X) if is_frame else {}
    names = tuple(columns) if is_frame else None
    if is_frame and hasattr(X, "sparse"):  # a pandas frame whose columns are all sparse
        return Matrix(X.sparse.to_coo().tocsr(), names)
    if not is_frame:
        values = X if isinstance(X, np.ndarray) else np.asanyarray(X)
        if values.ndim != 2:
            msg = f"X is a table of rows and features; got an array of shape {values.shape}."
            raise InputError(msg)
        if not np.ma.isMaskedArray(values) and values.dtype.kind in "biuf":
            is_kept = values.dtype not in (np.bool_, np.float16, np.longdouble)
            dtype = values.dtype.newbyteorder("=") if is_kept else np.float64
            return Matrix(np.asarray(values, dtype=dtype), None)
        columns = {f"column {j + 1}": column for j, column in enumerate(values.T)}
    parts = []
    for name, column in columns.items():
        x, _ = _plain(column, as_numbers=True)
        msg = f"Column “{shortened(name)}” of X has values that are not numbers; drop it."
        refuse_if(x.dtype.kind not in "biuf", msg)
        parts.append(x if x.dtype.kind in "iu" else x.astype(np.float64))
    return Matrix(np.column_stack(parts or [np.empty((len(X), 0))]), names)


def _columns_of_frame(table: Any) -> list[tuple[Any, Any]] | None:
    """Return names and columns of a data frame, or None for other types."""
    import narwhals as nw

    if hasattr(table, "iloc") and hasattr(table, "columns"):  # pandas allows repeated names
        return [(name, table.iloc[:, j]) for j, name in enumerate(table.columns)]
    native = nw.from_native(table, eager_only=True, pass_through=True)
    is_frame = isinstance(native, nw.DataFrame)
    return [(name, native[name]) for name in native.columns] if is_frame else None


def _plain(values: Any, *, as_numbers: bool = False) -> tuple[np.ndarray, bool]:
    """Return values (N,): float64, UTC datetime64, or texts and None; whether they are classes."""
    import narwhals as nw

    if isinstance(values, TableColumn):
        names = np.array([*values.names, None], dtype=object)
        codes = np.nan_to_num(values.values, nan=-1).astype(np.int64) if values.names else ()
        return (names[codes], True) if values.names else (values.values, False)
    is_class = hasattr(values, "categories")
    column = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(column, nw.Series):
        is_class = column.dtype in (nw.Categorical, nw.Enum)
        if column.dtype.is_float():
            values = column.cast(nw.Float64).to_numpy()
        else:
            is_whole = not is_class and not column.is_null().any()
            values = column.to_numpy() if is_whole else column.to_list()
    if np.ma.isMaskedArray(values):
        missing, values = np.ma.getmaskarray(values), values.data.astype(object)
        values[missing] = None
    elif isinstance(values, list | tuple):
        values = np.fromiter(values, dtype=object, count=len(values))
    x = np.asarray(values)
    refuse_if(x.ndim != 1, f"A column has one value per row; got an array of shape {x.shape}.")
    if x.dtype.kind == "M":
        return x.astype("datetime64[us]"), is_class
    if x.dtype.kind == "m":
        x = np.where(np.isnat(x), np.nan, x / np.timedelta64(1, "s"))
    is_exact = x.dtype.kind == "f" or as_numbers
    if x.dtype.kind in "iu":
        is_exact |= x.min(initial=0) >= -EXACT and x.max(initial=0) <= EXACT
    if x.dtype.kind in "iuf" and is_exact:
        return x if as_numbers else x.astype(np.float64), is_class
    # each distinct text is converted once
    each, codes = np.unique(x, return_inverse=True) if x.dtype.kind == "U" else (x, slice(None))
    return _of_objects(each.astype(object), as_numbers=as_numbers)[codes], is_class


def _of_objects(x: np.ndarray, *, as_numbers: bool) -> np.ndarray:
    """Convert objects (N,) to numbers, dates or texts, depending on their nonmissing values."""
    there = np.array([not _is_missing(value) for value in x], dtype=bool)
    present = x[there].tolist()

    def all_are(*kinds: type) -> bool:
        return all(isinstance(value, kinds) for value in present)

    converted: Any = list(map(_name, present))
    gap: Any = None
    if all_are(bool, np.bool_):
        converted, gap = (present, np.nan) if as_numbers or not present else (converted, None)
    elif all_are(Real, Decimal, np.bool_):
        whole = (abs(int(v)) for v in present if isinstance(v, int | np.integer))
        if as_numbers or max(whole, default=0) <= EXACT:
            converted, gap = present, np.nan
    elif all_are(date, np.datetime64):
        converted, gap = list(map(_in_utc, present)), _NO_DATE
    elif all_are(timedelta):
        converted, gap = [value.total_seconds() for value in present], np.nan
    elif all_are(str):
        texts = [value.strip() for value in present]
        broken = any("." in text and not _WHOLE.fullmatch(text) for text in texts)
        if (broken or as_numbers) and all(map(_NUMBER.fullmatch, texts)):
            converted, gap = list(map(float, texts)), np.nan
        elif all(map(_DATE.fullmatch, texts)):
            with suppress(ValueError):  # 2026-99-99 is a name, not a date
                converted = [_in_utc(datetime.fromisoformat(text)) for text in texts]
                gap = _NO_DATE
    result = np.full(len(x), gap)
    result[there] = np.array(converted, dtype=result.dtype)
    return result


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, str):
        return not value.strip()
    return isinstance(value, Real | Decimal | np.datetime64) and bool(value != value)  # noqa: PLR0124


def _in_utc(value: Any) -> np.datetime64:
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = (value - value.utcoffset()).replace(tzinfo=None)  # type: ignore[operator]
    return np.datetime64(value, "us")


def _name(value: Any) -> str:
    """Return the name of a class: "3" for 3, 3.0, "3.0" and " 3", "0.5" for 0.5."""
    if isinstance(value, float | np.floating | Decimal) and value == value // 1:
        return str(int(value))
    if isinstance(value, float | np.floating):
        return f"{value:.15g}"
    text = str(value).strip()
    whole = _WHOLE.fullmatch(text)
    return str(int(whole[1])) if whole else text


def values_of(
    adata: "AnnData",
    layer: str | None,
    use_rep: str | None,
    features: np.ndarray | None,
    *,
    sparse: bool = False,
) -> Any:
    """Return the values (n_obs, D) to fit, in memory.

    `features` is a mask or indices of the variables; None means all. With `sparse`, a sparse matrix
    is not converted. Raises InputError if the layer or key does not exist.
    """
    refuse_if(
        None not in (layer, use_rep),
        f"Give layer or use_rep, not both; got {layer!r} and {use_rep!r}.",
    )
    if use_rep is not None:
        values = _named("key", use_rep, adata.obsm, "obsm")
    else:
        values = adata.X if layer is None else _named("layer", layer, adata.layers, "layers")
    no_values = "This AnnData has no X; name a layer by layer=, or a key of obsm by use_rep=."
    refuse_if(values is None, no_values)
    values = values.to_memory() if hasattr(values, "to_memory") else values  # from disk
    part = values if features is None else values[:, features]
    return part.tocsr() if sparse and hasattr(part, "tocsr") else dense(part)


def dense(values: Any) -> np.ndarray:
    """Return a matrix as a dense array of float32 or float64."""
    array = values.toarray() if hasattr(values, "toarray") else np.asarray(values)
    is_number = array.dtype.kind in "buif"
    refuse_if(not is_number, f"The values must be numbers; got an array of type {array.dtype}.")
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def _named(kind: str, wanted: str, parts: Any, place: str) -> Any:
    refuse_unknown(kind, wanted, parts.keys(), f" in {place}")
    return parts[wanted]


def features_of(adata: "AnnData", mask_var: "str | np.ndarray | None") -> np.ndarray:
    """Return a mask (n_vars,) of the variables to fit."""
    if isinstance(mask_var, str) and (mask_var != HIGHLY_VARIABLE or mask_var in adata.var):
        mask_var = _named("column", mask_var, adata.var, "var").to_numpy()
    if mask_var is None or isinstance(mask_var, str):
        return np.ones(adata.n_vars, bool)
    mask = np.asarray(mask_var)
    msg = f"mask_var is a column of var, or True or False for each of the {adata.n_vars:,} "
    msg += f"variables; got {shortened(mask.dtype)} of shape {mask.shape}."
    refuse_if(mask.shape != (adata.n_vars,) or mask.dtype != bool, msg)
    return mask


def distinct_names(names: Any) -> np.ndarray:
    """Return unique names (n,); repeated names get a number: "MATR3", "MATR3-1"."""
    taken: dict[str, int] = {}
    distinct = []
    for name in map(str, names):
        free = name
        while free in taken:
            taken[name] += 1
            free = f"{name}-{taken[name]}"
        taken[free] = 0
        distinct.append(free)
    return np.array(distinct, dtype=object)


def labels_of(obs: "pd.DataFrame") -> dict[str, np.ndarray]:
    """Return the columns (N,) for colouring rows, categories before numbers.

    Text columns with more than 1,000 distinct values, such as barcodes, are omitted.
    """
    import pandas as pd

    words, numbers = {}, {}
    for name, column in obs.items():
        kind = column.dtype
        if pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind):
            values = column.to_numpy(np.float64, na_value=np.nan)
            numbers[str(name)] = np.where(np.isfinite(values), values, np.nan)
        elif column.nunique() <= MOST_CATEGORIES:
            words[str(name)] = column.astype(object).where(column.notna(), "").to_numpy(str)
    return words | numbers


def counts_between(values: np.ndarray, n: int, most: int) -> np.ndarray:
    """Count finite numbers in `n` intervals of equal width, from about `most` of them."""
    some = values[:: max(1, len(values) // most)].astype(np.float64)
    some = some[np.isfinite(some)] / 4  # the largest difference of numbers is finite
    return np.asarray(np.histogram(some - some.min(initial=np.inf), n)[0])
