"""Write a fit into an annotated data file (AnnData), in a process with bounded memory."""

import io
import zipfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from appca.analysis.components import Supports, patterns, supports
from appca.analysis.fitted import DescribedRows, FittedModel, FittedRun
from appca.analysis.tables import npz_of
from appca.data.dataset import MISSING, Dataset, categories
from appca.data.files import File, Files, ReadLimits
from appca.data.readers import annotated
from appca.data.readers.process import work_apart
from appca.frames import distinct_names
from appca.words import InputError, refuse_if

PLAIN = (bool, int, float, str)  # types of settings that every version of anndata can write


class AnnotatedFit(NamedTuple):
    """A fit as stored in an annotated data file."""

    run: FittedRun
    params: Mapping[str, Any]  # settings; only plain values are stored
    ratio: np.ndarray | None  # (K,) share of variance that each component explains


def additions(
    key: str,
    model: FittedModel,
    rows: DescribedRows,
    ratio: np.ndarray | None,
    params: Mapping[str, Any],
    features: np.ndarray | None,
    names: np.ndarray,
) -> dict[str, dict[str, Any]]:
    """Return the entries of a fit for each part of annotated data, under a key ("appca").

    `ratio` (K,) is the share of variance that each component explains. Only plain values of
    `params` are stored. `features` (n_vars,) marks the variables that were fitted, or is None if
    all were. The model recognizes features by their `names` (D,).
    """
    varm = {}
    if features is not None:
        varm[key] = np.zeros((len(features), len(model.components)), np.float32)
        varm[key][features] = patterns(model, None).T
    uns = {
        "params": {name: value for name, value in params.items() if isinstance(value, PLAIN)},
        "variance": np.asarray(model.explained_variance),
        "features": np.asarray(names).astype(str).astype(object),
        "model": dict(model.model_arrays()),
    } | ({} if ratio is None else {"variance_ratio": np.asarray(ratio)})
    obs = {f"{key}_support": supports(rows.active), f"{key}_probability": rows.membership}
    return {"obsm": {f"X_{key}": rows.scores}, "varm": varm, "uns": {key: uns}, "obs": obs}


H5AD, STORE, KEY = ".h5ad", ".zarr", "appca"
TASK = "appca.annotated_file:add_fit"


def ending_of(name: str) -> str | None:
    """Return ".h5ad" for a file of annotated data, ".zarr" for a store, else None."""
    plain = name.lower().removesuffix(".zip")
    return next((end for end in (H5AD, STORE) if plain.endswith(end)), None)


def with_fit(name: str, source: File, dataset: Dataset, fit: AnnotatedFit) -> bytes:
    """Return annotated data with a fit of all rows added, as an .h5ad file or a zipped store.

    Raises InputError if `source` cannot be read or written, or has other rows or variables.
    """
    members = fit.run.model_arrays() | fit.run.row_arrays()
    members["names"] = np.array(list(dataset.column_names))
    members |= {} if fit.ratio is None else {"ratio": fit.ratio}
    kind, _, array = str(dataset.provenance["report"]["array"]).partition("/")
    keyword = {"layers": "layer", "obsm": "use_rep"}.get(kind)
    params = dict(fit.params) | ({} if keyword is None else {keyword: array})
    with ExitStack() as ends:
        if isinstance(source, (str, Path)) and Path(source).is_dir():
            source = ends.enter_context(annotated.packed(Path(source)))
        files = [(name, source), ("fit.npz", io.BytesIO(npz_of(members)))]
        # the copy to change must be the first file
        return work_apart(TASK, lambda at, _: (at / "0").read_bytes(), files, params=params)


def add_fit(
    files: Files, place: Path, limits: ReadLimits, *, params: dict[str, Any]
) -> dict[str, Any]:
    """Add the fit in the second file to the first, in place; runs as task `TASK`."""
    import h5py

    (name, source), (_, packed) = files
    with np.load(str(packed), allow_pickle=False) as archive:
        members = dict(archive)
    run, wanted = FittedRun.from_arrays(members), members["names"]
    path, is_store = Path(str(source)), ending_of(name) == STORE
    opened: Any = annotated.opened_zarr if is_store else annotated.opened_h5ad
    with opened(name, source, limits) as contents:
        n, genes = len(contents.names("obs")), contents.names("var")
    features = None if "use_rep" in params else np.isin(genes, wanted)
    msg = f"“{name}” has {n:,} observations, but {len(run.scores):,} were fitted; "
    msg += "fit all of them (--missing model), or choose another output format."
    refuse_if(n != len(run.scores), msg)
    msg = f"“{name}” does not have the fitted variables; fit it again."
    refuse_if(features is not None and features.sum() != len(wanted), msg)
    added = additions(KEY, run, run, members.get("ratio"), params, features, wanted)
    try:
        if not is_store:
            with h5py.File(path, "r+") as file:
                _add_to(file, added)
            return {}
        import zarr

        folder = place / "store"
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
            store = str(folder / annotated.root_of(archive.namelist()))
        listed = zarr.open_group(store, mode="r").metadata.consolidated_metadata is not None
        root = zarr.open_group(store, mode="r+", use_consolidated=False)
        _add_to(root, added)
        if listed:
            zarr.consolidate_metadata(root.store, zarr_format=root.metadata.zarr_format)
        with annotated.packed(folder) as changed:
            changed.seek(0)
            path.write_bytes(changed.read())
    except (OSError, LookupError, ValueError, RuntimeError, TypeError, AttributeError) as error:
        msg = f"“{name}” cannot be extended; save it again with anndata."
        raise InputError(msg) from error
    return {}


def new_file(dataset: Dataset, fit: AnnotatedFit) -> bytes:
    """Return the bytes of a new .h5ad file: values as X, labels as obs, and a fit of all rows."""
    import h5py

    names = np.array(list(dataset.column_names))
    columns = distinct_names([name.replace("/", "_") for name in dataset.labels])
    labels: dict[str, Any] = dict(zip(columns, dataset.labels.values(), strict=True))
    for name, values in labels.items():
        if values.dtype.kind == "U":
            classes, codes = categories(values)
            codes[values == ""] = -1
            labels[name] = Supports(codes, [name for name in classes if name != MISSING])
    buffer, every = io.BytesIO(), np.ones(len(names), bool)
    with h5py.File(buffer, "w") as file:
        _mark(file, "anndata", "0.1.0")
        _put(file, "X", dataset.with_gaps())
        for table, index in (("obs", dataset.ids), ("var", names)):
            _mark(group := file.create_group(table), "dataframe")
            group.attrs["_index"] = "_index"
            group.attrs["column-order"] = np.array([], h5py.string_dtype())
            _put(group, "_index", index)
        parts = ("layers", "obsm", "obsp", "varm", "varp", "uns")
        _add_to(file, {part: {} for part in parts} | {"obs": labels})
        _add_to(file, additions(KEY, fit.run, fit.run, fit.ratio, fit.params, every, names))
    return buffer.getvalue()


def _add_to(file: Any, added: Mapping[str, Mapping[str, Any]]) -> None:
    for part, values in added.items():
        if part not in file:
            _put(file, part, {})
        group = file[part]
        for name, value in values.items():
            if name in group:
                del group[name]
            _put(group, name, value)
        if part == "obs":
            order = list(map(str, group.attrs.get("column-order", [])))
            group.attrs["column-order"] = [*order, *(x for x in values if x not in order)]


def _put(above: Any, name: str, value: Any) -> None:
    import h5py

    if isinstance(value, Supports):
        texts = np.array(value.names, object)
        _put(above, name, {"codes": value.codes.astype(np.int32), "categories": texts})
        _mark(above[name], "categorical")
        above[name].attrs["ordered"] = False
    elif isinstance(value, dict):
        _mark(group := above.create_group(name), "dict", "0.1.0")
        for key, part in value.items():
            _put(group, key, part)
    else:
        values = np.asarray(value)
        is_text, encoding = values.dtype.kind in "OU", ["array", "numeric-scalar"]
        if is_text:
            encoding = ["string-array", "string"]
            of_zarr = hasattr(above, "create_array")
            values = values.astype(np.dtypes.StringDType() if of_zarr else h5py.string_dtype())
        create = getattr(above, "create_array", None) or above.create_dataset
        _mark(create(name, data=values), encoding[values.ndim == 0])


def _mark(item: Any, encoding: str, version: str = "0.2.0") -> None:
    item.attrs["encoding-type"], item.attrs["encoding-version"] = encoding, version
