"""An .h5ad file with what a fit adds, in anndata's own layout; everything else stays as it was."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from appca.analysis.export.annotated import Additions, Supports
from appca.words.errors import InputError
from appca.words.refusal import refusing

if TYPE_CHECKING:
    import h5py

_ARRAY, _TEXTS, _DICT = ("array", "0.2.0"), ("string-array", "0.2.0"), ("dict", "0.1.0")


def with_additions(source: Path, added: Additions) -> bytes:
    """Return the bytes of a file with additions; parts of the same keys are replaced.

    Parameters
    ----------
    source : Path
        An .h5ad file that was read before; it is not changed.
    added : Additions
        Of all its observations.

    Raises
    ------
    InputError
        When the file cannot be read.
    """
    import h5py

    with refusing(f"“{source.name}” could not be opened", "check its place and its rights"):
        buffer = io.BytesIO(source.read_bytes())
    try:
        with h5py.File(buffer, "r+") as file:
            for place in ("obsm", "varm", "uns"):
                _put_all(_group(file, place), getattr(added, place))
            _put_all(file["obs"], added.obs)
            order = [str(name) for name in file["obs"].attrs.get("column-order", [])]
            order += [name for name in added.obs if name not in order]
            file["obs"].attrs["column-order"] = np.array(order, h5py.string_dtype())
    except (OSError, KeyError, ValueError, RuntimeError) as error:
        msg = f"“{source.name}” is no HDF5 file that can be added to; write it again by anndata."
        raise InputError(msg) from error
    return buffer.getvalue()


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
