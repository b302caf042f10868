"""Annotated data (.h5ad) with a fit, in anndata's layout: the file that was read, or a new one.

Nothing else in the file that was read is changed. It may come from a stranger, so a process with
bounded memory adds to it.
"""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from appca.analysis.export.annotated import Additions, AnnotatedFit, Supports, additions
from appca.analysis.export.projections import npz_of
from appca.analysis.fitted import FittedRun
from appca.data.dataset import Dataset, categories
from appca.data.readers.process import work_apart
from appca.data.readers.source import File, Files, ReadLimits
from appca.data.readers.sparse.filling import unique
from appca.data.readers.sparse.h5ad import names_of
from appca.words.errors import InputError

if TYPE_CHECKING:
    import h5py

ENDING, KEY = ".h5ad", "appca"
TASK = "appca.analysis.export.annotated_file:add_fit"
_ARRAY, _TEXTS, _DICT = ("array", "0.2.0"), ("string-array", "0.2.0"), ("dict", "0.1.0")
_PARTS = ("layers", "obsm", "obsp", "varm", "varp", "uns")


def with_fit(name: str, source: File, dataset: Dataset, fit: AnnotatedFit) -> bytes:
    """Return the bytes of an .h5ad file with a fit added; parts of the same keys are replaced.

    `source` was read as `dataset` and is not changed; the fit is of all its rows. Raises InputError
    when the file cannot be read or written, or has other rows or variables.
    """
    members = {**fit.run.model_arrays(), **fit.run.row_arrays()}
    members["names"] = np.array(list(dataset.column_names))
    if fit.ratio is not None:
        members["ratio"] = np.asarray(fit.ratio)
    files = [(name, source), ("fit.npz", io.BytesIO(npz_of(members)))]
    array = str(dataset.provenance["report"]["array"])
    return work_apart(TASK, _changed, files, array=array, params=dict(fit.params))


def add_fit(
    files: Files, place: Path, limits: ReadLimits, *, array: str, params: dict[str, Any]
) -> dict[str, Any]:
    """Add the fit in the second file to the first, in place; the task `TASK`."""
    del place, limits
    (name, source), (_, packed) = files
    with np.load(str(packed), allow_pickle=False) as archive:
        members = dict(archive)
    run, wanted = FittedRun.from_arrays(members), members["names"]
    cells, genes = names_of(name, source)
    of_variables = not array.startswith("obsm/")
    features = np.isin(genes, wanted) if of_variables else None
    if len(cells) != len(run.scores):
        msg = (
            f"“{name}” has {len(cells):,} observations and {len(run.scores):,} were fitted; "
            "fit all of them (--missing model), or write another kind of file."
        )
        raise InputError(msg)
    if features is not None and features.sum() != len(wanted):
        msg = f"“{name}” has other variables than were fitted; fit it again."
        raise InputError(msg)
    params |= _place(array)
    added = additions(KEY, run, run, members.get("ratio"), params, features, wanted)
    _add(name, Path(str(source)), added)
    return {}


def new_file(dataset: Dataset, fit: AnnotatedFit) -> bytes:
    """Return the bytes of a new .h5ad file: values as X, labels as obs, and a fit of all rows."""
    import h5py

    names = np.array(list(dataset.column_names))
    everything = np.ones(len(names), bool)
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        _marked(file, ("anndata", "0.1.0"))
        _put(file, "X", dataset.with_gaps())
        for table, index in (("obs", dataset.ids), ("var", names)):
            _marked(file.create_group(table), ("dataframe", "0.2.0"))
            file[table].attrs["_index"] = "_index"
            file[table].attrs["column-order"] = np.array([], h5py.string_dtype())
            _put(file[table], "_index", index.astype(object))
        for part in _PARTS:
            _group(file, part)
        columns = unique([name.replace("/", "_") for name in dataset.labels])
        values = [_column(values) for values in dataset.labels.values()]
        _put_columns(file["obs"], dict(zip(columns, values, strict=True)))
        added = additions(KEY, fit.run, fit.run, fit.ratio, fit.params, everything, names)
        _add_to(file, added)
    return buffer.getvalue()


def _column(values: np.ndarray) -> np.ndarray | Supports:
    """Return a label column: texts as categories, empty ones as missing."""
    if values.dtype.kind != "U":
        return values
    names, codes = categories(values)
    codes[values == ""] = -1
    return Supports(codes, [name for i, name in enumerate(names) if (codes == i).any()])


def _place(array: str) -> dict[str, str]:
    kind, _, name = array.partition("/")
    return {"layers": {"layer": name}, "obsm": {"use_rep": name}}.get(kind, {})


def _changed(place: Path, _: dict[str, Any]) -> bytes:
    return (place / "0").read_bytes()  # the copy that was laid down first


def _add(name: str, path: Path, added: Additions) -> None:
    import h5py

    try:
        with h5py.File(path, "r+") as file:
            _add_to(file, added)
    except (OSError, KeyError, ValueError, RuntimeError) as error:
        msg = f"“{name}” is not an HDF5 file that can be extended; save it again with anndata."
        raise InputError(msg) from error


def _add_to(file: "h5py.File", added: Additions) -> None:
    for place in ("obsm", "varm", "uns"):
        _put_all(_group(file, place), getattr(added, place))
    _put_columns(file["obs"], added.obs)


def _put_columns(table: "h5py.Group", columns: Mapping[str, Any]) -> None:
    import h5py

    _put_all(table, columns)
    order = [str(name) for name in table.attrs.get("column-order", [])]
    order += [name for name in columns if name not in order]
    table.attrs["column-order"] = np.array(order, h5py.string_dtype())


def _group(above: "h5py.Group", name: str) -> "h5py.Group":
    if name not in above:
        _marked(above.create_group(name), _DICT)
    return above[name]


def _put_all(group: "h5py.Group", parts: Mapping[str, Any]) -> None:
    for name, value in parts.items():
        if name in group:
            del group[name]
        _put(group, name, value)


def _put(group: "h5py.Group", name: str, value: Any) -> None:
    """Write a value as anndata does."""
    import h5py

    if isinstance(value, dict):
        _put_all(_group(group, name), value)
    elif isinstance(value, Supports):
        column = group.create_group(name)
        _marked(column, ("categorical", "0.2.0"))
        column.attrs["ordered"] = False
        _put(column, "codes", value.codes.astype(np.int32))
        _put(column, "categories", np.array(value.names, object))
    elif isinstance(value, str):
        group.create_dataset(name, data=value, dtype=h5py.string_dtype())
        _marked(group[name], ("string", "0.2.0"))
    elif np.ndim(value) == 0:
        group[name] = value
        _marked(group[name], ("numeric-scalar", "0.2.0"))
    else:
        texts = np.asarray(value).dtype.kind in "OU"
        group.create_dataset(name, data=value, dtype=h5py.string_dtype() if texts else None)
        _marked(group[name], _TEXTS if texts else _ARRAY)


def _marked(item: Any, encoding: tuple[str, str]) -> None:
    item.attrs["encoding-type"], item.attrs["encoding-version"] = encoding
