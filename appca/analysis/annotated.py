"""Annotated data (AnnData) with a fit.

Nothing else in the file that was read (.h5ad, or a Zarr store) is changed. It may come from a
stranger, so a process with bounded memory adds to it.
"""

import io
import zipfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from appca.analysis.components import in_units_of_the_fit
from appca.analysis.fitted import DescribedRows, FittedModel, FittedRun
from appca.analysis.subspaces import Supports, supports
from appca.analysis.tables import npz_of
from appca.data.annotated import distinct_names
from appca.data.dataset import Dataset, categories
from appca.data.files import File, Files, ReadLimits
from appca.data.readers import annotated
from appca.data.readers.process import work_apart
from appca.words import InputError

PLAIN = (bool, int, float, str)  # settings that every version of anndata can write


class AnnotatedFit(NamedTuple):
    """A fit, as a file of annotated data keeps it."""

    run: FittedRun
    params: Mapping[str, Any]  # settings; those with plain values are kept
    ratio: np.ndarray | None  # (K,) share of variance of the components


def additions(
    key: str,
    model: FittedModel,
    rows: DescribedRows,
    ratio: np.ndarray | None,
    params: Mapping[str, Any],
    features: np.ndarray | None,
    names: np.ndarray,
) -> dict[str, dict[str, Any]]:
    """Return what a fit adds under a key, as "appca", to each part of annotated data.

    That is ``obsm["X_appca"]``, ``varm["appca"]``, ``uns["appca"]``, ``obs["appca_support"]`` and
    ``obs["appca_probability"]``. `ratio` (K,) is the share of the variance that each component
    explains; of `params`, settings of the fit, only plain values are kept. `features` (n_vars,)
    says which variables the D features are, None where they are none; `names` (D,) are stored so
    that the model finds them again.
    """
    varm = {}
    if features is not None:
        varm[key] = np.zeros((len(features), len(model.components)), np.float32)
        varm[key][features] = in_units_of_the_fit(model).T
    uns = {
        "params": {name: value for name, value in params.items() if isinstance(value, PLAIN)},
        "variance": np.asarray(model.explained_variance),
        "features": np.asarray(names).astype(str).astype(object),
        "model": dict(model.model_arrays()),
    } | ({} if ratio is None else {"variance_ratio": np.asarray(ratio)})
    obs = {f"{key}_support": supports(rows.active), f"{key}_probability": rows.membership}
    return {"obsm": {f"X_{key}": rows.scores}, "varm": varm, "uns": {key: uns}, "obs": obs}


H5AD, STORE, KEY = ".h5ad", ".zarr", "appca"
TASK = "appca.analysis.annotated:add_fit"
_ENCODINGS = {  # of texts or numbers, one or many
    (True, True): ("string", "0.2.0"),
    (True, False): ("string-array", "0.2.0"),
    (False, True): ("numeric-scalar", "0.2.0"),
    (False, False): ("array", "0.2.0"),
}
_PARTS = ("layers", "obsm", "obsp", "varm", "varp", "uns")


def ending_of(name: str) -> str | None:
    """Return ".h5ad" for a file of annotated data, ".zarr" for a store; None for other files."""
    plain = name.lower().removesuffix(".zip")
    return next((end for end in (H5AD, STORE) if plain.endswith(end)), None)


def with_fit(name: str, source: File, dataset: Dataset, fit: AnnotatedFit) -> bytes:
    """Return annotated data with a fit added; parts of the same keys are replaced.

    `source` is a file or a Zarr store that was read as `dataset`; it is not changed. The fit is of
    all rows. Returns an .h5ad file, or a zip of the store. Raises InputError when it cannot be read
    or written, or has other rows or variables.
    """
    members = {**fit.run.model_arrays(), **fit.run.row_arrays()}
    members["names"] = np.array(list(dataset.column_names))
    if fit.ratio is not None:
        members["ratio"] = np.asarray(fit.ratio)
    array = str(dataset.provenance["report"]["array"])
    with ExitStack() as ends:
        if isinstance(source, (str, Path)) and Path(source).is_dir():
            source = ends.enter_context(annotated.packed(Path(source)))
        files = [(name, source), ("fit.npz", io.BytesIO(npz_of(members)))]
        return work_apart(TASK, _changed, files, array=array, params=dict(fit.params))


def add_fit(
    files: Files, place: Path, limits: ReadLimits, *, array: str, params: dict[str, Any]
) -> dict[str, Any]:
    """Add the fit in the second file to the first, in place; the task `TASK`."""
    (name, source), (_, packed) = files
    with np.load(str(packed), allow_pickle=False) as archive:
        members = dict(archive)
    run, wanted = FittedRun.from_arrays(members), members["names"]
    n, genes = _rows_and_variables(name, source, limits)
    of_variables = not array.startswith("obsm/")
    features = np.isin(genes, wanted) if of_variables else None
    if n != len(run.scores):
        msg = (
            f"“{name}” has {n:,} observations and {len(run.scores):,} were fitted; "
            "fit all of them (--missing model), or write another kind of file."
        )
        raise InputError(msg)
    if features is not None and features.sum() != len(wanted):
        msg = f"“{name}” has other variables than were fitted; fit it again."
        raise InputError(msg)
    import h5py

    kind, _, place_in = array.partition("/")
    keyword = {"layers": "layer", "obsm": "use_rep"}.get(kind)
    params |= {} if keyword is None else {keyword: place_in}
    added = additions(KEY, run, run, members.get("ratio"), params, features, wanted)
    path = Path(str(source))
    try:
        if ending_of(name) == STORE:
            _add_to_store(path, place / "store", added)
        else:
            with h5py.File(path, "r+") as file:
                _add_to(file, added)
    except (OSError, KeyError, ValueError, RuntimeError, TypeError) as error:
        msg = f"“{name}” is not a file that can be extended; save it again with anndata."
        raise InputError(msg) from error
    return {}


def new_file(dataset: Dataset, fit: AnnotatedFit) -> bytes:
    """Return the bytes of a new .h5ad file: values as X, labels as obs, and a fit of all rows."""
    import h5py

    names = np.array(list(dataset.column_names))
    everything = np.ones(len(names), bool)
    columns = distinct_names([name.replace("/", "_") for name in dataset.labels])
    labels = dict(zip(columns, map(_column, dataset.labels.values()), strict=True))
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        _marked(file, ("anndata", "0.1.0"))
        _put(file, "X", dataset.with_gaps())
        for table, index in (("obs", dataset.ids), ("var", names)):
            _marked(file.create_group(table), ("dataframe", "0.2.0"))
            file[table].attrs["_index"] = "_index"
            file[table].attrs["column-order"] = np.array([], h5py.string_dtype())
            _put(file[table], "_index", index.astype(object))
        _add_to(file, {part: {} for part in _PARTS} | {"obs": labels})
        _add_to(file, additions(KEY, fit.run, fit.run, fit.ratio, fit.params, everything, names))
    return buffer.getvalue()


def _column(values: np.ndarray) -> np.ndarray | Supports:
    """Return a label column: texts as categories, empty ones as missing."""
    if values.dtype.kind != "U":
        return values
    names, codes = categories(values)
    codes[values == ""] = -1
    return Supports(codes, [name for i, name in enumerate(names) if (codes == i).any()])


def _changed(place: Path, _: dict[str, Any]) -> bytes:
    return (place / "0").read_bytes()  # the copy that was laid down first


def _rows_and_variables(name: str, source: File, limits: ReadLimits) -> tuple[int, list[str]]:
    """Return the number of observations and the names of the variables."""
    if ending_of(name) == H5AD:
        with annotated.opened_h5ad(name, source, limits) as contents:
            return len(contents.names("obs")), contents.names("var")
    with annotated.opened_zarr(name, source, limits) as store:
        contents = annotated.annotated_in(store)
        return len(contents.names("obs")), contents.names("var")


def _add_to_store(path: Path, folder: Path, added: Mapping[str, Mapping[str, Any]]) -> None:
    """Replace a zip, which was checked, by one of the same store with the additions."""
    import zarr

    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
        inside = annotated.root_of(archive.namelist())
    store = str(folder / inside)
    listed = zarr.open_group(store, mode="r").metadata.consolidated_metadata is not None
    root = zarr.open_group(store, mode="r+", use_consolidated=False)
    _add_to(root, added)
    if listed:  # else readers do not see what is new
        zarr.consolidate_metadata(root.store, zarr_format=root.metadata.zarr_format)
    with annotated.packed(folder) as changed:
        changed.seek(0)
        path.write_bytes(changed.read())


def _add_to(file: Any, added: Mapping[str, Mapping[str, Any]]) -> None:
    """Write values into the parts of annotated data, in place of those of the same names."""
    for part, values in added.items():
        group = _group(file, part)
        for name, value in values.items():
            if name in group:
                del group[name]
            _put(group, name, value)
        if part == "obs":
            order = list(map(str, group.attrs.get("column-order", [])))
            group.attrs["column-order"] = [*order, *(x for x in values if x not in order)]


def _group(above: Any, name: str) -> Any:
    if name not in above:
        _marked(above.create_group(name), ("dict", "0.1.0"))
    return above[name]


def _put(group: Any, name: str, value: Any) -> None:
    """Write a value into a group of HDF5 or Zarr, as anndata does."""
    if isinstance(value, dict):
        inside = _group(group, name)
        for key, part in value.items():
            _put(inside, key, part)
        return
    if isinstance(value, Supports):
        column = group.create_group(name)
        _marked(column, ("categorical", "0.2.0"))
        column.attrs["ordered"] = False
        _put(column, "codes", value.codes.astype(np.int32))
        _put(column, "categories", np.array(value.names, object))
        return
    values = np.asarray(value)
    texts = values.dtype.kind in "OU"
    if hasattr(group, "create_array"):  # of Zarr
        kind = np.dtypes.StringDType() if texts else values.dtype
        item = group.create_array(name, data=values.astype(kind))
    else:
        import h5py

        kind = h5py.string_dtype() if texts else values.dtype
        item = group.create_dataset(name, data=values.astype(object if texts else kind), dtype=kind)
    _marked(item, _ENCODINGS[texts, values.ndim == 0])


def _marked(item: Any, encoding: tuple[str, str]) -> None:
    item.attrs["encoding-type"], item.attrs["encoding-version"] = encoding
