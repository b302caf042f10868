"""Session files: data, runs, selections and names in one file that other machines can open.

A session file (``NAME.appca``) is a zip of

    session.json              description: the data set, the runs with their settings and names,
                              and the view of the page
    data/matrix.npy ids.npy label_<i>.npy missing.npy      the data set, unless omitted
    runs/<i>/<array>.npy      the arrays of each run
    selections/<i>.npy        (N,) bool, the rows of each selection
    maps/<i>.npy              (N, 2 or 3) float32, the coordinates of each map

There is no pickle, and names never become paths. The file is checked before anything is stored.
Arrays do not prove settings, so a run that was not fitted here is stored as imported: its id
depends on its arrays, and it cannot replace a fit.
"""

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, NamedTuple

import numpy as np
from msgspec import Meta, Struct
from msgspec.structs import asdict

from appca.analysis import umap
from appca.analysis.fitted import FittedRun
from appca.analysis.selections import SavedSelection, SelectionStore
from appca.analysis.umap import AboutMap, KeptMap
from appca.data.columns import tidy
from appca.data.dataset import Dataset, Provenance
from appca.data.files import ReadLimits
from appca.data.readers.process import work_apart
from appca.data.sources import SOURCES, load
from appca.data.store import DatasetStore
from appca.runs.fit import versions
from appca.runs.home import home as usual_home
from appca.runs.model_file import fits_together
from appca.runs.numbering import ComponentNumbers, Numbering, numbered
from appca.runs.run import FitResult, RunConfig, RunInfo
from appca.runs.store import Run, RunStore
from appca.storage.files import OtherFormat, or_none, refuse_other_format
from appca.storage.packed import Packed, write
from appca.storage.schema import Count, Digest, Facts, FromOne, Misfit, Text, weight
from appca.storage.schema import fitted as validated
from appca.words import InputError, refuse_if, shortened

SUFFIX = ".appca"
FORMAT, VERSION = "appca session", 1
CONTENTS, MISSING = "session.json", "data/missing.npy"
SELECTED = "selections/selected.npy"
_WIDE = ("scores", "active", "inclusion")  # one column per component; others: one value per row
MOST_RUNS, MOST_SELECTIONS = 1000, 10_000  # maximum numbers per file
MOST_SAID = 200_000  # maximum size of the provenance, plus eight values per column
TASK, NOW = "appca.runs.session:unpack_here", "selected.npy"


class _AboutData(Struct):
    digest: Digest
    name: Text
    labels: list[str]
    image_shape: list[FromOne] | None
    feature_names: list[str] | None
    provenance: Facts
    included: bool


class _Components(Struct):
    """The numbers, names and signs of components, in the order of the arrays."""

    names: list[Text]
    rows: list[Count]  # indices in the estimator, counted from 0
    turned: list[Literal[1, -1]]  # signs applied to the arrays


class _AboutRun(Struct):
    config: Facts
    info: Facts
    name: Text | None
    components: _Components


class _Contents(Struct):
    """The description in a session file."""

    dataset: _AboutData
    runs: Annotated[list[_AboutRun], Meta(max_length=MOST_RUNS)]
    selections: Annotated[list[Text], Meta(max_length=MOST_SELECTIONS)]
    opened: Text | None = None
    look: dict[Text, Text | float] = {}
    maps: Annotated[list[AboutMap], Meta(max_length=MOST_RUNS)] = []


class Session(NamedTuple):
    """The contents to write to a session file."""

    dataset: Dataset
    runs: Sequence[Run]  # runs of this data set
    selections: Sequence[SavedSelection] = ()
    selected: np.ndarray | None = None  # (N,) bool, current selection
    opened: str | None = None  # id of the run on screen
    look: Mapping[str, str | float] = {}  # colours, view and map settings of the page
    maps: Sequence[KeptMap] = ()  # maps of the data set's rows


class Unpacked(NamedTuple):
    """The stored contents of a session file."""

    dataset: str  # digest
    runs: tuple[str, ...]  # ids
    selections: tuple[str, ...]  # names
    selected: np.ndarray | None
    opened: str | None
    look: Mapping[str, str | float]


def pack(session: Session, home: Path | None = None, *, with_data: bool = True) -> bytes:
    """Return a session file, with the components of all runs in the order on screen.

    A file without data can only be opened where the data set is stored or built in. Raises
    InputError if a run belongs to other data, or its arrays cannot be read.
    """
    dataset = session.dataset
    for run in session.runs:
        msg = f"Fit {run.id} is not of “{dataset.name}”; pack fits with their own data."
        refuse_if(run.config.dataset != dataset.digest, msg)
    arrays = dataset.arrays() if with_data else {}
    members = {f"data/{name}.npy": values for name, values in arrays.items()}
    numbers = ComponentNumbers(usual_home() if home is None else home)
    numberings, about_runs = [numbers.of_run(run) for run in session.runs], []
    for i, (run, numbering) in enumerate(zip(session.runs, numberings, strict=True)):
        arrays = numbered(run.fitted, numbering).to_arrays()
        members |= {f"runs/{i}/{name}.npy": values for name, values in arrays.items()}
        order, signs, names = numbering
        about = {"config": run.config.of_import(None).to_dict(), "info": run.info.to_dict()}
        shown = {"names": names, "rows": order, "turned": signs}
        about_runs.append({**about, "name": run.custom_name, "components": shown})
    members |= {f"selections/{i}.npy": kept.mask for i, kept in enumerate(session.selections)}
    if session.selected is not None and session.selected.any():
        members[SELECTED] = session.selected
    members |= {f"maps/{i}.npy": map_.coordinates for i, (_, map_) in enumerate(session.maps)}
    # ids of fits, because a file cannot prove whether a run was imported
    ids = {run.id: run.config.of_import(None).id for run in session.runs}
    contents = {
        "format": FORMAT,
        "version": VERSION,
        "versions": versions(),
        "dataset": dataset.about() | {"digest": dataset.digest, "included": with_data},
        "runs": about_runs,
        "selections": [kept.name for kept in session.selections],
        "opened": ids.get(session.opened or ""),
        "look": dict(session.look),
        "maps": [
            {"config": replace(of, run=ids.get(of.run or "", of.run)).to_dict()}
            for of, _ in session.maps
        ],
    }
    buffer = io.BytesIO()
    write(buffer, {CONTENTS: contents}, members)
    return buffer.getvalue()


def unpack(name: str, stream: BinaryIO, home: Path) -> Unpacked:
    """Check a whole session file, then store its contents in a home.

    Existing data sets, runs and component names are kept; a selection whose name is taken gets a
    new one. Raises InputError if the file is damaged, or its data are missing or do not match their
    digest; then nothing is stored. Also if writing fails; open the file again to store the rest.
    """
    packed = Packed(name, stream)
    try:
        contents = _contents(packed)
        dataset = _read_data(packed, contents.dataset, home)
        runs = [_read_run(packed, i, part, dataset) for i, part in enumerate(contents.runs)]
        mask = partial(_mask, packed, dataset)
        masks = [mask(f"selections/{i}.npy") for i in range(len(contents.selections))]
        selected = mask(SELECTED) if SELECTED in packed else None
        maps = [umap.read(packed, i, part, dataset) for i, part in enumerate(contents.maps)]
    except InputError:
        raise
    except Exception as error:
        why = f": {error}" if isinstance(error, Misfit) else ""
        msg = f"“{shortened(name)}” is damaged{why}; save it again."
        raise InputError(msg) from error
    store, stored_as = RunStore(home), dict[str, str]()
    here = or_none(partial(DatasetStore(home).get, dataset.digest))  # with its name and source
    digest = DatasetStore(home).put(dataset) if here is None else here.digest
    for about, (config, result, numbering) in zip(contents.runs, runs, strict=True):
        # a run is stored as imported unless the same fit exists here
        fit = config.of_import(None)
        is_here = _is_fit(store.get(fit.id), result.fitted)
        place = fit if is_here else fit.of_import(result.fitted.digest())
        stored = store.get(place.id)
        title = None if stored is not None and stored.custom_name else about.name
        run = store.save(place, result, title)
        ComponentNumbers(home).adopt(run, numbering)
        stored_as[fit.id] = run.id
    named = zip(contents.selections, masks, strict=False)
    kept = _keep_selections(SelectionStore(home), dataset, named)
    umap.keep(maps, stored_as, home)
    opened = stored_as.get(contents.opened or "")
    return Unpacked(digest, tuple(stored_as.values()), kept, selected, opened, contents.look)


def unpack_apart(name: str, file: Path, home: Path, scratch: Path) -> Unpacked:
    """Unpack a session file like `unpack`, in another process with bounded memory and time.

    Also raises InputError if the file needs more memory or time than its size allows.
    """

    def received(place: Path, facts: dict[str, Any]) -> Unpacked:
        stored = place / NOW
        selected = np.load(stored, allow_pickle=False) if stored.exists() else None
        lists = {"runs": tuple(facts["runs"]), "selections": tuple(facts["selections"])}
        return Unpacked(**{**facts, **lists, "selected": selected})

    limits = ReadLimits(scratch=scratch)
    return work_apart(TASK, received, [(name, file)], limits=limits, home=str(home))


def unpack_here(
    files: Sequence[tuple[str, str]], place: Path, _limits: ReadLimits, home: str
) -> dict[str, Any]:
    """Unpack a session file for `unpack_apart`; the selection is written to `place`."""
    ((name, path),) = files
    with Path(path).open("rb") as stream:
        result = unpack(name, stream, Path(home))
    if result.selected is not None:
        np.save(place / NOW, result.selected)
    return result._replace(selected=None)._asdict()


def _contents(packed: Packed) -> _Contents:
    name = shortened(packed.name)
    msg = f"“{name}” is not a session file; save one on the page Export."
    refuse_if(CONTENTS not in packed, msg)
    described = packed.json(CONTENTS)
    number = described.get("version")
    msg = f"“{name}” is not a session file for this version of appca; its format is "
    msg += f"“{shortened(described.get('format'))}”, version {shortened(number)}."
    refuse_if(described.get("format") != FORMAT or type(number) is not int or number < 1, msg)
    refuse_other_format(f"“{name}”", number, VERSION)
    contents: _Contents = validated(_Contents, described)
    return contents


def _read_data(packed: Packed, about: _AboutData, home: Path) -> Dataset:
    """Return the data set with this digest from the file, the store, or a built-in source."""
    if weight(about.provenance) > MOST_SAID + 8 * len(about.feature_names or ()):
        msg = f"it has more than {MOST_SAID:,} values for “provenance” of “dataset”"
        raise Misfit(msg)
    came: Provenance = validated(Provenance, about.provenance)
    if not about.included:
        return _data_at_hand(packed.name, about, came, home)
    dataset = Dataset.rebuilt(
        asdict(about), lambda key: packed.array(f"data/{key}.npy"), gaps=MISSING in packed
    )
    msg = f"The data in “{shortened(packed.name)}” are not the data of its fits "
    msg += "(the digest differs); save the file again."
    refuse_if(dataset.digest != about.digest, msg)
    return dataset


def _data_at_hand(file: str, about: _AboutData, came: Provenance, home: Path) -> Dataset:
    if (DatasetStore(home).folder / about.digest).is_dir():
        return DatasetStore(home).get(about.digest)
    source = SOURCES.get(came.source)
    if source is not None and source.offline and not came.options:
        dataset = load(came.source)
        if dataset.digest == about.digest:
            return dataset
    options = ", ".join(f"{key} = {value}" for key, value in came.options.items())
    title = "your own files" if source is None else source.title
    where = f"{title}{f' with {options}' if options else ''}"
    msg = f"“{shortened(file)}” was saved without its data, and “{shortened(about.name)}” is not "
    msg += f"here; open it first from {shortened(where, 120)}, then this file again."
    raise InputError(msg)


def _read_run(
    packed: Packed, number: int, about: _AboutRun, dataset: Dataset
) -> tuple[RunConfig, FitResult, Numbering]:
    try:
        config, info = RunConfig.from_record(about.config), RunInfo.from_dict(about.info)
    except OtherFormat:
        raise
    except ValueError as error:
        where = f"Fit {number + 1} in “{shortened(packed.name)}” cannot be opened"
        msg = f"{where}: {str(error).removesuffix('.')}; save the file again."
        raise InputError(msg) from error
    shown = FittedRun.from_arrays(packed.arrays(f"runs/{number}/"))
    N, (K, D) = dataset.n_rows, shown.components.shape
    fits = fits_together(shown, config) and len(shown.preprocessing.offset) == dataset.n_features
    for name, values in shown.row_arrays().items():
        fits &= values.shape == ((N, K) if name in _WIDE else (N,)) and np.isfinite(values).all()
    fits &= info.n_rows == N and info.n_features == D
    fits &= config.dataset == dataset.digest and shown.active.dtype == bool
    order, signs, names = about.components.rows, about.components.turned, about.components.names
    if not fits or sorted(order) != list(range(K)) or not len(signs) == len(names) == K:
        msg = "a run does not match the data"
        raise ValueError(msg)
    back = np.argsort(order)  # order of the estimator, to recognize a fit
    raw = shown.arranged(back.tolist(), np.array(signs)[back].tolist())
    return config, FitResult(raw, info), Numbering(tuple(order), tuple(signs), tuple(names))


def _mask(packed: Packed, dataset: Dataset, member: str) -> np.ndarray:
    mask = packed.array(member)
    if mask.shape != (dataset.n_rows,) or mask.dtype != bool:
        msg = "a selection of other rows"
        raise ValueError(msg)
    return mask


def _is_fit(run: Run | None, fitted: FittedRun) -> bool:
    """Whether a run has these arrays, regardless of the sign of zero, which flips change."""
    arrays = fitted.to_arrays()
    try:
        stored = run.fitted.to_arrays() if run is not None else {}
    except InputError:  # damaged arrays
        return False
    return stored.keys() == arrays.keys() and all(
        values.dtype == arrays[name].dtype and np.array_equal(values, arrays[name])
        for name, values in stored.items()
    )


def _keep_selections(
    store: SelectionStore, dataset: Dataset, named: Iterable[tuple[str, np.ndarray]]
) -> tuple[str, ...]:
    here = {kept.name: kept.mask for kept in store.list(dataset.digest, dataset.n_rows)}
    stored = []
    for wanted, mask in named:
        name = tidy(wanted)
        same = name not in here or np.array_equal(here[name], mask)
        others = (f"{name[:50]} ({i})" for i in count(2))
        free = name if same else next(other for other in others if other not in here)
        if mask.any() and free:
            here[free] = mask
            stored.append(store.save(dataset.digest, free, mask))
    return tuple(stored)
