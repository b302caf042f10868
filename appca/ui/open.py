"""The tab Open: files, recent work, built-in data sets."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import streamlit as st

from appca.analysis.fitted import FittedRun
from appca.canvas.sheets import is_ink
from appca.data.dataset import Dataset
from appca.data.readers.process import warm
from appca.data.sources import SOURCES, Option, Source, are_here, load
from appca.data.store import DatasetStore
from appca.plots.components import montage
from appca.plots.data import in_the_dark, thumbnail
from appca.runs.home import home
from appca.runs.run import MODELS
from appca.runs.session import SUFFIX
from appca.runs.store import FOLDERS, Run, RunStore
from appca.storage import files
from appca.storage.identity import digest_of
from appca.ui import STATIC, arrivals, fits, kit, services, state
from appca.ui.kit import apart, first_of_page, markdown, nats_per_row, one_of, press, tag, words
from appca.ui.rows import is_dark
from appca.ui.state import KEYS
from appca.words import InputError, counted, refusing

PICTURES = STATIC / "pictures"  # pictures of the built-in data sets
PHOTOGRAPHS = {"turntable", "coil20"}  # not inverted on dark pages
ACROSS, DOWN = 9, 5
SAMPLE, PAGE = 1440, 4
_NAMED = {"datasets", "selections", "numbers"}  # folders with entries named after their data


def _source_card(source: Source) -> None:
    picture = _picture_of(source.key, are_here(source.key))
    if picture is not None:
        picture = in_the_dark(picture) if is_dark() and source.key not in PHOTOGRAPHS else picture
        st.image(picture, width="stretch", alt=f"Some of {source.title}")
    else:
        st.html(tag("div", words(source.tile), "ca-tile"))
    text = f"{source.description}. {source.rows:,} rows"
    st.html(tag("div", words(source.title), "ca-name") + tag("div", words(text), "ca-quiet"))
    busy = fits.running(source.key) is not None
    label = apart("Loading…" if busy else "Open", source.title)
    pressed = st.button(label, key=f"source-{source.key}-open", disabled=busy)
    values: dict[str, Any] = {}
    if source.options:
        label = apart("Options", f"of {source.title}")
        with st.popover(label, type="tertiary", key=f"more-{source.key}"):
            for option in source.options:
                value = _option(f"source-{source.key}-{option.name}", option)
                values |= {} if value in (option.default, [], None) else {option.name: value}
    if pressed and source.offline:
        state.open_dataset(services.datasets().put(load(source.key)))
    elif pressed:
        key = f"{source.key} {json.dumps(values, sort_keys=True)}"
        spec = {"key": source.key, "options": values}
        fits.start_job("download", spec, fits.Watched("download", source.key), key=key)
    if pressed:
        st.switch_page(arrivals.EXPLORE)


@st.cache_resource(show_spinner=False)
def _picture_of(key: str, is_here: bool) -> np.ndarray | None:
    from PIL import Image

    if SOURCES[key].offline:
        with Image.open(PICTURES / f"{key}.png") as file:
            return np.asarray(file.convert("RGB"))
    try:
        dataset = load(key, n=SAMPLE) if is_here else None
    except InputError:  # reported when it is opened
        dataset = None
    if dataset is None:
        return None
    rows = np.random.default_rng(0).permutation(dataset.n_rows)[: ACROSS * DOWN]
    sheet = montage(dataset.images(np.sort(rows)), ACROSS, gap=0)
    return 255 - sheet if is_ink(dataset) else sheet


def ahead() -> Iterator[Callable[[], object]]:
    """Yield functions that draw the pictures of downloaded data sets in advance."""
    published = (key for key, source in SOURCES.items() if not source.offline)
    return (partial(_picture_of, key, are_here(key)) for key in published)


def _option(key: str, option: Option) -> Any:
    look: Any = {"key": key, "persist_state": "session"}
    if option.choices is None:
        box: Any = {"value": option.default, "placeholder": "no"}
        return st.number_input(option.help, option.least, option.most, **look, **box)
    if option.default is None:
        return st.pills(option.help, option.choices, selection_mode="multi", **look)
    names = {choice: str(choice) for choice in option.choices}
    return one_of(option.help, names, default=option.default, key=key)


class Deletion(NamedTuple):
    """Fits to delete, and their data if no other fit uses them."""

    runs: frozenset[str]
    data: frozenset[str]
    shared: tuple[tuple[str, int], ...]  # data sets that are kept: name, number of other fits


def planned(home: Path, run_ids: Collection[str]) -> Deletion:
    """Return the data to delete with fits, including other readings of the same file."""
    runs, stored = RunStore(home).list(), DatasetStore(home).list()
    chosen = {run.config.dataset for run in runs if run.id in run_ids}
    others = Counter(run.config.dataset for run in runs if run.kept and run.id not in run_ids)
    names = {item.name for item in stored if item.source == "file" and item.digest in chosen}
    again = {item.digest for item in stored if item.source == "file" and item.name in names}
    data = frozenset(digest for digest in chosen | again if not others[digest])
    gone = frozenset(run.id for run in runs if run.config.dataset in data)
    shared = ((of.name, others[of.digest]) for of in stored if of.digest in chosen - data)
    return Deletion(gone | frozenset(run_ids), data, tuple(shared))


def erase(home: Path, deletion: Deletion | None = None) -> None:
    """Delete fits and data with their results, or everything; InputError if some remain."""
    runs, data, _ = deletion or Deletion(frozenset(), frozenset(), ())
    whole = {item.digest: item.whole for item in DatasetStore(home).list()}
    named = {*data, *(whole.get(each, each) for each in data)}
    named -= {whole[each] for each in whole.keys() - data}  # other rows keep the names
    marks = {digest_of({"dataset": of, "model": model}) for of in named for model in MODELS}
    marks |= runs | data
    with refusing("Not everything could be deleted", "check the permissions of the files"):
        for run_id in runs:
            RunStore(home).delete(run_id)
        for name in FOLDERS:
            for path in (home / name).glob("[!.]*"):
                text = path.name if name in _NAMED else _text(path)
                is_unknown = not text and path.suffix == ".npz"
                if deletion is None or is_unknown or any(mark in text for mark in marks):
                    files.discard(path)
            files.sweep(home / name)


def _text(path: Path) -> str:
    if path.is_dir():
        inside = sorted(path.iterdir())
        return " ".join([*(file.name for file in inside), path.name, *map(_text, inside)])
    with suppress(OSError):
        if path.suffix == ".json":
            return path.read_text("utf-8", errors="replace")
    return files.made_of(path) if path.suffix == ".npz" else ""


def _recent_work() -> None:
    for run_id, sentence in services.runs().damaged().items():
        with st.container(horizontal=True, vertical_alignment="center", key=f"damaged-{run_id}"):
            st.warning(markdown(sentence))
            press("Delete", f"drop-{run_id}", _delete, [run_id])
    if works := _works(services.runs()):
        st.subheader("Recent work", anchor=False)
        first = first_of_page(len(works), PAGE, "recent_page")
        _work_cards(works[first : first + PAGE], "cards-recent")
    here = services.runs().folder
    for number, folder in enumerate(files.homes()):  # homes of APPCA_SHARED are read-only
        runs = [run for run in _works(RunStore(folder)) if not (here / run.id).is_dir()]
        fitted = {run.config.dataset for run in runs}
        data = [item for item in DatasetStore(folder).list() if item.digest not in fitted]
        if runs or data:
            st.subheader(f"Shared by {folder.name}", anchor=False)
        _work_cards(runs, f"cards-recent-{number}")
        for item in data:
            label = f"{item.name} · {counted(item.n_rows, 'row')}"
            if st.button(words(label), f"shared-{number}-{item.digest}", type="tertiary"):
                state.open_dataset(item.digest)
                st.switch_page(arrivals.EXPLORE)


def _works(store: RunStore) -> list[Run]:
    runs = store.list()
    kept = [run for run in runs if run.kept]
    fitted = {run.config.dataset for run in kept}
    newest: dict[str, Run] = {}
    for run in sorted(runs, key=lambda run: run.config.model == "PPCA"):  # Compare adds PPCA
        if run.config.dataset not in fitted:
            dataset = _dataset(run)
            is_file = dataset is not None and dataset.provenance.get("source") == "file"
            newest.setdefault(dataset.name if dataset and is_file else run.config.dataset, run)
    return sorted([*kept, *newest.values()], key=lambda run: -run.created)


def _work_cards(runs: Sequence[Run], key: str) -> None:
    with st.container(key=key):
        for run in runs:
            with st.container(border=True, key=f"work-{run.id}"):
                _work_card(run)


def _work_card(run: Run) -> None:
    dataset, dark = _dataset(run), is_dark()
    name, rows = "Data no longer here", ""
    if dataset is not None:
        name, rows = dataset.name, f"{counted(dataset.n_rows, 'row')} × {dataset.n_features:,} · "
        if (picture := _picture(f"{run.id} {dark}", run, dataset, dark)) is not None:
            st.image(picture, width="stretch", alt="The fullest panels")
    stopped = " (stopped)" if run.config.stopped_at is not None else ""
    mark = " (imported)" if run.config.imported is not None else stopped
    name = run.custom_name or f"{name} · {', '.join(run.config.sizes)}{mark}"
    when = f"{datetime.fromtimestamp(run.created):%d %b %Y, %H:%M}"
    lines = (f"{rows}{nats_per_row(run.info)}", when)
    quiet = "".join(tag("div", words(line), "ca-quiet") for line in lines)
    st.html(tag("div", words(name), "ca-name") + quiet)
    if dataset is not None and st.button(apart("Open", f"of {name}"), f"open-{run.id}"):
        try:
            state.open_config(run.config)
        except InputError as error:
            st.error(markdown(f"{run.name} cannot be shown: {error}"))
        else:
            st.switch_page(arrivals.EXPLORE)
    if run.is_shared:
        return
    key = f"name-{run.id}"
    rename = partial(services.runs().rename, run.id)
    with st.popover(apart("More", f"of {name}"), type="tertiary", key=f"rename-{run.id}"):
        look: Any = {"max_chars": 120, "placeholder": name, "on_change": state.pass_value}
        st.text_input("Name", run.custom_name or "", key=key, args=[key, rename], **look)
        label = "Delete for good, with data, maps and selections"
        press(label, f"delete-{run.id}", _delete, [run.id])


def _dataset(run: Run) -> Dataset | None:
    with suppress(InputError):
        return services.dataset(run.config.dataset)
    return None


@services.by_key(64)
def _picture(run: Run, dataset: Dataset, dark: bool) -> np.ndarray | None:
    try:
        fitted: FittedRun = run.fitted
    except InputError:
        return None
    classes = kit.every(dataset)
    return thumbnail(fitted, classes[0].codes if classes else None, dark)


def _delete(runs: Sequence[str] | None = None) -> None:
    deletion = None if runs is None else planned(home(), runs)
    services.jobs().end([""] if deletion is None else deletion.data)
    erase(home(), deletion)
    if deletion is None or state.config().dataset in deletion.data:
        state.open_first()
    if deletion is not None and deletion.shared:
        stay = (
            f"The data “{name}” are kept for {counted(n, 'other fit')}."
            for name, n in deletion.shared
        )
        state.notify("info", " ".join(stay))


KINDS = (
    "CSV, TSV, Parquet · NPY, NPZ, MAT, HDF5, IDX · H5AD, Zarr, MTX · images, ZIP · NIfTI · session"
)


def open_tab() -> None:
    """Draw the files to open, and recent work."""
    _files()
    _recent_work()
    st.subheader("Built in", anchor=False)
    with st.container(key="cards-built-in"):
        for source in sorted(SOURCES.values(), key=lambda source: source.offline):
            with st.container(border=True, key=f"source-{source.key}"):
                _source_card(source)
    if services.datasets().list() or services.runs().list():
        with st.popover("Delete all my data", type="tertiary", key="recent_delete_all"):
            st.text("Delete all data, fits, maps, selections and uploads of this computer's appca?")
            press("Delete everything", "recent_all_really", _delete, type="primary")


def _files() -> None:
    folder = st.session_state.get("upload_folder", False)
    uploaded = st.file_uploader(
        "Drop a file, a folder or images anywhere",
        accept_multiple_files="directory" if folder else True,
        key=f"upload-{'folder-' * folder}{st.session_state.setdefault(KEYS.upload, 0)}",
        help="Several files make one data set: images, IDX with labels, a recording with its mask.",
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"{KINDS} ({SUFFIX}). Files stay on this computer.")
        st.toggle("Choose a folder", key="upload_folder")
    if not uploaded:
        warm()
        return
    st.session_state[KEYS.upload] += 1
    arrivals.arrive(arrivals.uploaded(uploaded))
