"""Files dropped or uploaded by a user: how they are read, opened, and read again."""

import hashlib
import json
import secrets
import shutil
import threading
import time
import weakref
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import unquote

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from streamlit.runtime.uploaded_file_manager import UploadedFile

from appca.data.dataset import Dataset
from appca.data.files import ReadLimits, in_one_line
from appca.data.pixels import KINDS, Judged, likely_shapes, with_shape
from appca.data.preprocessing import suggest
from appca.data.readers import kind_of
from appca.data.readers.process import read_apart
from appca.ordered import numbered
from appca.preparation import gaps_of_label, leaves_out, redundant, told
from appca.runs.home import home
from appca.runs.session import SUFFIX, Session, pack, unpack_apart
from appca.storage import files, lock
from appca.storage.identity import ID_DIGITS, is_id
from appca.ui import canvas, controls, fits, kit, services, settings, state, streamlit_internals
from appca.ui.downloads import card, save_button, stem_of
from appca.ui.streamlit_internals import base
from appca.words import InputError, counted, listed, size

Options = dict[str, Any]  # options of a reader
Report = dict[str, Any]
AUTO = "auto"  # the reader decides
MISSING = {"model": "Fill from the model", "mean": "Column mean", "drop": "Drop the rows"}
HEADER_LINES = 20  # maximum number of lines for a header
DOUBTS: dict[tuple[str, Any], str] = {  # meaning of an uncertain option, by option and value
    ("header", True): "The first line names the columns",
    ("header", False): "The first line is data",
    ("decimal", "."): "1.234 is a little more than one",
    ("decimal", ","): "1.234 is one thousand two hundred thirty-four",
}
SEPARATORS = "Comma", "Semicolon", "Tab", "Pipe |", "Spaces"
_CHOICES: dict[str, tuple[str, dict[Any, str]]] = {  # label for screen readers; words by value
    "encoding": ("Encoding", {"utf-8": "UTF-8", "cp1252": "Western European (cp1252)"}),
    "separator": ("Separator", dict(zip(",;\t| ", SEPARATORS, strict=True))),
    "decimal": ("Decimal sign", {".": "Decimal point", ",": "Decimal comma"}),
    "header": (
        "Header",
        {False: "No header"} | {n: f"Line {n} is the header" for n in range(1, HEADER_LINES + 1)},
    ),
    "transpose": ("Samples", {False: "Rows are samples", True: "Columns are samples"}),
    "lines": ("Lines", {AUTO: "Totals and notes left out", "all": "Every line is a row"}),
    "size": (
        "Size",
        {AUTO: "Sizes as they are"} | {(n, n): f"{n} × {n}" for n in (16, 28, 32, 64, 128, 256)},
    ),
    "colour": ("Colour", {"grey": "Grey", "keep": "Colour"}),
    "classes": ("Classes", {AUTO: "Classes detected", "none": "No classes"}),
    "broken": ("Other files", {"refuse": "Every file is an image", "skip": "Skip other files"}),
}
_CHOICES["encoding"][1].update({"latin-1": "Latin-1", "utf-16": "UTF-16"})
_REST = {"ids": "Row names", "label": "Labels", "sheet": "Sheet", "mask_var": "Variables"}
_REST |= {"array": "The array with the rows", "na_values": "Other gaps", "feature_type": "Features"}
_CHOICES |= {name: (label, {}) for name, label in (_REST | {"missing": "Missing values"}).items()}
_CHIPS = {
    "csv": "encoding separator decimal header transpose lines",
    "sheet": "sheet header transpose lines",
    "parquet": "transpose",
    "npz": "array transpose ids label",
    "mat": "array transpose ids label",
    "mtx": "transpose",
    "hdf5": "array transpose ids label",
    "h5ad": "array mask_var",
    "zarr": "array mask_var",
    "images": "size colour classes broken",
}
_REPORTED = ("encoding", "separator", "decimal", "sheet", "array", "feature_type", "ids")
_USUAL = {"size": AUTO, "colour": "grey", "classes": AUTO, "broken": "refuse", "mask_var": AUTO}
_USUAL |= {"lines": AUTO, "label": AUTO}
_GONE = {  # option -> options that become invalid when it changes
    **dict.fromkeys(("array", "transpose"), ("image_shape", "by_column", "ids", "label")),
    **dict.fromkeys(("encoding", "separator", "header", "sheet"), ("roles",)),
}


class Chip(NamedTuple):
    """One option of a reader, as shown."""

    name: str
    label: str  # for screen readers
    choices: dict[Any, str]
    now: Any  # if not among the choices, none is selected


def chips(kind: str | None, report: Report, options: Options) -> list[Chip]:
    """Return a reader's options for files; `report` results from reading with `options`."""
    now = _USUAL | {name: report[name] for name in _REPORTED if name in report}
    line = report.get("header_line")
    now |= {"header": line or False, "transpose": bool(report.get("turned"))} | options
    now["header"] = line if now["header"] is True else now["header"]
    now["size"] = now["size"] if now["size"] == AUTO else tuple(now["size"])
    choices = {name: dict(words) for name, (_, words) in _CHOICES.items()}
    for name in ("encoding", "separator", "decimal"):
        if sign := now.get(name):
            said = "UTF-8" if sign == "utf-8-sig" else str(sign).upper()
            choices[name] = {sign: said} | choices[name]
    if first := report.get("first_size"):
        choices["size"] = {tuple(first): "{} × {}".format(*first)} | choices["size"]
    choices["sheet"] = {name: f"Sheet {name}" for name in report.get("sheets", ())}
    if len(arrays := report.get("arrays", {})) > 1:
        for path, n in arrays.items():
            place, _, name = path.partition("/")
            part = f"{name}, of {place}" if place in ("layers", "obsm") else path
            choices["array"][path] = f"{part} ({n})"
    marked = report.get("marked")
    if marked or "mask_var" in options:
        only = f"Only variables marked {marked['column']}" if marked else "Only marked variables"
        choices["mask_var"] = {AUTO: only, None: "All variables"}
    if report.get("missing"):
        cells = counted(report["n_missing"], "cell")
        choices["missing"] = {k: f"{cells} missing: {v.lower()}" for k, v in MISSING.items()}
    if types := report.get("feature_types"):
        choices["feature_type"] = {name: f"Only {name}" for name in types} | {"all": "All features"}
    if gaps := tuple(options.get("na_values", ())):
        now["na_values"] = gaps
        choices["na_values"] = {gaps: f"{', '.join(gaps)} missing", AUTO: "No other gaps"}
    if entries := report.get("entries"):
        named = {key: f"Rows named by {key}" for key in entries}
        choices["ids"] = named | {"": "Rows are numbered"}
        alone = {key: f"Only label {key}" for key in entries}
        choices["label"] = {AUTO: "All labels"} | alone | {"": "No labels"}
    hidden = set() if report.get("lines") or "lines" in options else {"lines"}
    if kind == "hdf5" and "arrays" not in report:  # 10x counts have a fixed orientation
        hidden.add("transpose")
    return [
        Chip(name, _CHOICES[name][0], choices[name], now.get(name))
        for name in [*_CHIPS.get(kind or "", "").split(), "feature_type", "na_values", "missing"]
        if choices[name] and name not in hidden
    ]


def changed(options: Options, name: str, value: object) -> Options:
    """Return options with one changed; AUTO removes the option."""
    rest = {key: old for key, old in options.items() if key not in {name, *_GONE.get(name, ())}}
    return rest if value == AUTO else rest | {name: value}


PREFIX, NAME_HEADER = "/drop", "x-appca-name"
MOST_FILES, LONGEST_NAME = 5000, 1000
STALE_SECONDS = 180.0  # Streamlit waits two minutes for a disconnected window
_FOLDER, _ALWAYS = "drop-", {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class DroppedFiles:
    """Files in a temporary folder, which is removed together with the object."""

    def __init__(self, scratch: Path) -> None:
        self._folder = scratch / f"{_FOLDER}{secrets.token_hex(8)}"
        self._folder.mkdir(parents=True)
        held = ExitStack()
        if (file := held.enter_context(lock.opened(self._folder))) is not None:
            lock.take(file)
        held.callback(shutil.rmtree, self._folder, ignore_errors=True)  # before the lock is free
        self.remove = weakref.finalize(self, held.close)
        self.begun = time.monotonic()
        self.files: list[tuple[str, Path]] = []

    @property
    def is_there(self) -> bool:
        """Whether the files still exist."""
        return self.remove.alive

    def became(self, digest: str) -> None:
        """Record the data set of these files, so that both are deleted together."""
        (self._folder / digest).touch()

    def pack_store(self) -> None:
        """Zip the files of a Zarr store, as its reader requires."""
        stores = {name.partition(".zarr/")[0] for name, _ in self.files}
        if len(stores) != 1 or not all(".zarr/" in name for name, _ in self.files):
            return
        path = self._folder / "store"
        with zipfile.ZipFile(path, "w") as archive:
            for name, file in self.files:
                archive.write(file, name)
        self.files = [(f"{stores.pop()}.zarr.zip", path)]

    def place(self, name: str) -> Path:
        """Return the path for the next file."""
        path = self._folder / str(len(self.files))
        self.files.append((name, path))
        return path


class Drops:
    """Files dropped on windows and not yet taken by their pages."""

    def __init__(
        self,
        session_of: Callable[[Request], str | None],
        is_alive: Callable[[str], bool],
        scratch: Callable[[], Path],
        largest: Callable[[], int],
    ) -> None:
        self._session_of, self._is_alive = session_of, is_alive
        self._scratch, self._largest = scratch, largest
        self._waiting: dict[tuple[str, str], DroppedFiles] = {}  # by session and drop
        self._change = threading.RLock()

    def routes(self, base: str = "") -> list[Route]:
        """Return the route, below the base path of the server."""
        return [Route(f"{base}{PREFIX}/{{drop}}", self._receive, methods=["POST"])]

    def take(self, session: str, drop: str) -> DroppedFiles | None:
        """Return the files of a drop, once, and only to the session it belongs to."""
        with self._change:
            mine = [key for key in self._waiting if key[0] == session]
            drops = {key: self._waiting.pop(key) for key in mine}
        wanted = drops.pop((session, drop), None)
        for other in drops.values():
            other.remove()
        return wanted

    def tidy(self) -> None:
        """Delete files of closed windows and dead servers; too slow for the event loop."""
        with self._change:
            for (session, drop), arrival in list(self._waiting.items()):
                if time.monotonic() > arrival.begun + STALE_SECONDS and not self._is_alive(session):
                    self._discard(session, drop)
        for folder in self._scratch().glob(f"{_FOLDER}*"):
            with suppress(OSError):
                if time.time() - folder.stat().st_mtime > STALE_SECONDS and lock.is_free(folder):
                    files.remove(folder)

    async def _receive(self, request: Request) -> Response:
        session, drop = self._session_of(request), request.path_params["drop"]
        name = unquote(request.headers.get(NAME_HEADER, ""))
        if session is None:
            return Response(status_code=403, headers=_ALWAYS)
        if not is_id(drop) or not 0 < len(name) <= LONGEST_NAME:
            return Response(status_code=400, headers=_ALWAYS)
        status, text = 413, request.headers.get("content-length", "")
        is_announced = text.isascii() and text.isdecimal() and len(text) < 20
        refusal: str | None
        try:
            if not is_announced or "transfer-encoding" in request.headers:
                status, refusal = 411, "its length was not announced; send a Content-Length"
            else:
                refusal = await run_in_threadpool(self._admit, session, drop, int(text))
                refusal = refusal or await self._write(request, session, drop, name, int(text))
        except ClientDisconnect:
            refusal = "the upload was interrupted"
        except OSError as error:
            refusal = f"the disk refused it ({error.strerror or error})"
        if refusal is None:
            return Response(status_code=204, headers=_ALWAYS)
        await run_in_threadpool(self._discard, session, drop)
        text = f"“{name}” was not stored, because {refusal}."
        return JSONResponse({"refused": text}, status_code=status, headers=_ALWAYS)

    def _admit(self, session: str, drop: str, length: int) -> str | None:
        if length > (most := self._largest()):
            return f"the limit is {size(most)}; use a smaller file"
        with self._change:
            if (arrival := self._waiting.get((session, drop))) is None:
                self.tidy()
                self._waiting[session, drop] = DroppedFiles(self._scratch())
            elif len(arrival.files) >= MOST_FILES:
                return f"the limit is {MOST_FILES:,} files; drop a ZIP file of them"
        return None

    async def _write(
        self, request: Request, session: str, drop: str, name: str, length: int
    ) -> str | None:
        if (arrival := self._waiting.get((session, drop))) is None:
            return "another file of this drop was refused"
        written = 0
        with arrival.place(name).open("wb") as file:
            async for chunk in request.stream():
                written += len(chunk)
                if written > length:
                    return "it is longer than announced; drop it again"
                await run_in_threadpool(file.write, chunk)
        return None

    def _discard(self, session: str, drop: str) -> None:
        with self._change:
            arrival = self._waiting.pop((session, drop), None)
        if arrival is not None:
            arrival.remove()


_drop_target = kit.scripted("dropping", '<div class="ca-drop" role="status"></div>')


@cache
def drops() -> Drops:
    """Return the files dropped on the windows of this server."""
    made = Drops(canvas.delivery().session_of, streamlit_internals.is_connected, scratch, largest)
    made.tidy()
    return made


def scratch() -> Path:
    """Return the folder for uploads."""
    return home() / "uploads"


def largest() -> int:
    """Return the maximum size of a file in bytes."""
    return int(st.get_option("server.maxUploadSize")) << 20


def anywhere() -> DroppedFiles | None:
    """Accept files dropped anywhere on the page; return dropped files, once."""
    session = streamlit_internals.session()
    data: Any = {"at": f"{base()}{PREFIX}/", "key": canvas.delivery().key_of(session)}
    data |= {"digits": ID_DIGITS, "most": MOST_FILES, "largest": largest()}
    # Streamlit returns only state with a callback
    acts: Any = dict.fromkeys(("on_dropped_change", "on_refused_change"), lambda: None)
    result = _drop_target(key="dropping", data=data, **acts)
    if result.refused:
        state.notify("error", str(result.refused)[:1000])
    dropped = result.dropped
    return drops().take(session, dropped) if isinstance(dropped, str) else None


def judged(kind: str | None, data: Dataset) -> list[Judged]:
    """Return image shapes that suit the rows, most plausible first; none for text."""
    if not all(any(map(str.isdigit, name)) for name in data.feature_names or ()):
        return []
    key = f"shapes-{data.digest} {kind}"
    return services.kept(key, lambda: likely_shapes(data.X, kind == "mat"))


SESSION = "One file with the data, the chosen fits, numbers, names and signs of components, "
SESSION += "selections, colours and the map. Drop it on any page, here or on another machine."


def save(dataset: Dataset, shown: fits.Shown) -> None:
    """Draw the card for saving a session."""
    runs = {run.id: run for run in services.runs().list() if run.config.dataset == dataset.digest}
    if shown.run is not None:
        runs.setdefault(shown.run.id, shown.run)
    with card("Session", SESSION):
        chosen = st.multiselect(
            "Fits",
            runs,
            default=[run_id for run_id in [shown.config.id] if run_id in runs],
            format_func=lambda run_id: f"{runs[run_id].name} · {run_id[:6]}",
            key=f"session_runs-{shown.config.id}",
        )
        label = f"With the data ({size(dataset.X.nbytes)} before packing)"
        why = "Without them the file is small, but the reader must have the same data set."
        with_data = st.toggle(label, True, key="session_data", persist_state="session", help=why)
        looks = {name: chosen for name, chosen in look().items() if chosen is not None}
        map_of = settings.config_of(dataset, shown.config)
        laid_out = settings.stored_map(dataset, shown.config)
        session = Session(
            services.datasets().get(dataset.digest),
            [runs[run_id] for run_id in chosen],
            state.named(dataset),
            state.get(dataset),
            shown.config.id,
            looks | st.session_state.get(state.KEYS.umap, {}),
            [(map_of, laid_out)] if map_of is not None and laid_out is not None else [],
        )
        made = partial(pack, session, home(), with_data=with_data)
        save_button("Save session", made, f"{stem_of(dataset.name)}{SUFFIX}", key="session")


def _open_session(name: str, file: Path) -> None:
    with st.spinner("Opening the session"):
        unpacked = unpack_apart(name, file, home(), scratch())
    state.open_dataset(unpacked.dataset)
    run = services.runs().get(unpacked.opened or next(iter(unpacked.runs), ""))
    if run is not None:
        state.open_config(run.config)
    dataset, saved_look = state.current_dataset(), unpacked.look
    allowed = {  # not everything in the file exists for this data set
        "colour": [str(saved_look.get("colour"))],  # see `controls.chosen`
        "view": canvas.VIEWS,
        "start": settings.STARTS,
        "n_neighbors": range(2, settings.MOST_NEIGHBOURS + 1),
    }
    sound = {key: saved_look[key] for key in allowed if saved_look.get(key) in allowed[key]}
    distance = saved_look.get("min_dist")
    if isinstance(distance, int | float) and 0 <= distance <= 1:
        sound["min_dist"] = float(distance)
    take_look({name: str(sound.pop(name)) for name in look() if name in sound})
    st.session_state[state.KEYS.umap] = sound
    if unpacked.selected is not None:
        state.put(dataset, unpacked.selected)
    n = len(unpacked.selections)
    kept = f" and {counted(n, 'kept selection')}" if n else ""
    runs = counted(len(unpacked.runs), "fit")
    state.notify("success", f"“{dataset.name}” is open, with {runs}{kept}.")


def look() -> dict[str, str | None]:
    """Return the selected colouring and view, or None if none is selected."""
    return {name: st.session_state.get(key) for name, key in _keys().items()}


def take_look(wanted: Mapping[str, str]) -> None:
    """Select a colouring and a view, if they are possible."""
    keys = _keys()
    st.session_state.update({keys[name]: wanted[name] for name in keys.keys() & wanted.keys()})


def _keys() -> dict[str, str]:
    now = state.config()
    return {"colour": controls.colour_key(now.dataset), "view": controls.view_key(now.n_active)}


EXPLORE, DATA = "pages/explore/explore.py", "pages/data/data.py"
THIS = {"tab": "this"}
# formats whose files may have missing cells
WITH_GAPS = {"csv", "sheet", "parquet", "arff", "json", "npy", "npz", "mat", "hdf5", "idx"}
WITH_GAPS |= {"h5ad", "mtx", "zarr"}
HEAD_ROWS = 9


class Reading(NamedTuple):
    """The result of reading files, or an error sentence, with the report."""

    dataset: Dataset | None
    sentence: str
    report: Report
    head: Mapping[str, list[str | None]] = MappingProxyType({})


@dataclass
class Opened:
    """Opened files, which can be read again with other options."""

    arrival: DroppedFiles
    key: str
    kind: str | None  # reader of the first file that has one
    options: Options = field(default_factory=dict)
    draft: Options = field(default_factory=dict)
    digest: str | None = None  # of the resulting data set
    choices: dict[str, Options] = field(default_factory=dict)
    said: str = ""  # assumptions about the files, until dismissed

    def change(self, name: str, value: object) -> None:
        """Change an option for the next reading."""
        self.draft = changed(self.draft, name, value)

    def read(self, options: Options) -> Reading:
        """Read the files with options; results are cached."""
        return _read(self.key, json.dumps(options, sort_keys=True), self.arrival, options)


def of(digest: str) -> Opened | None:
    """Return the files of a data set or, if they could not be read, the files opened last."""
    opened: Opened | None = st.session_state.get(state.KEYS.arrival)
    if opened is None or opened.digest in (digest, None):
        return opened
    if digest not in opened.choices:
        return None
    opened.digest, opened.options = digest, opened.choices[digest]
    opened.draft, opened.said = opened.options, ""  # which told of the other reading
    return opened


def source_of(dataset: Dataset) -> tuple[str, Path] | None:
    """Return the single file of a data set, if it still exists unchanged."""
    opened: Opened | None = st.session_state.get(state.KEYS.arrival)
    if opened is not None and dataset.digest in opened.choices and opened.arrival.is_there:
        files = opened.arrival.files
        return files[0] if len(files) == 1 else None
    path = services.datasets().origin(dataset.digest)
    return None if path is None else (path.name, path)


_redundant, _gaps = services.by_key(16)(redundant), services.by_key(16)(gaps_of_label)


def doubtful_features(reading: "Reading") -> dict[str, str]:
    """Map columns that should not be features to the reason."""
    roles, data = reading.report.get("roles", {}), reading.dataset
    if data is None or not roles:
        return {}
    reasons = _redundant(data.digest, data) | _gaps(data.digest, data)
    return {name: why for name, why in reasons.items() if roles.get(name) == "feature"}


def uploaded(files: Sequence[UploadedFile]) -> DroppedFiles:
    """Return the files of an uploader, moved to a temporary folder."""
    arrival = DroppedFiles(scratch())
    for file in files:
        arrival.place(file.name).write_bytes(file.getbuffer())
    return arrival


def arrive(arrival: DroppedFiles) -> None:
    """Open files and go to Explore, or to Data if the user must answer a question first."""
    arrival.pack_store()
    before: Opened | None = st.session_state.pop(state.KEYS.arrival, None)
    if before is not None:
        before.arrival.remove()
    names = [name for name, _ in arrival.files]
    if len(names) == 1 and names[0].lower().endswith(SUFFIX):
        _open_session(*arrival.files[0])
        arrival.remove()
        st.switch_page(EXPLORE)
    kinds = [kind for named in arrival.files if (kind := kind_of(*named)) is not None]
    kind = "nifti" if "nifti" in kinds else next(iter(kinds), None)
    key = hashlib.sha256(" ".join(map(str, arrival.files)).encode()).hexdigest()[:16]
    opened = st.session_state[state.KEYS.arrival] = Opened(arrival, key, kind)
    opened.options = opened.draft = {"missing": "model"} if kind in WITH_GAPS else {}
    guess = opened.read(opened.options)
    named = guess.report.get("header") is not False  # numbered columns resemble any others
    if roles := _remembered(guess.report.get("roles", {}) if named else {}):
        again = opened.options | {"roles": roles}
        reading = opened.read(again)
        guess, opened.draft = (guess, opened.draft) if reading.dataset is None else (reading, again)
    if guess.dataset is None:
        st.switch_page(DATA, query_params=THIS)
    use(opened, opened.draft, guess.dataset)


def _remembered(roles: Mapping[str, str]) -> Options:
    """Return the roles chosen for the last table with the same columns."""
    for summary in services.datasets().list()[:50] if roles else ():
        with suppress(InputError):
            before = services.datasets().get(summary.digest).provenance
            if [*before.get("report", {}).get("roles", {})] == [*roles]:
                return dict(before.get("options", {}).get("roles") or {})
    return {}


def use(opened: Opened, options: Options, dataset: Dataset) -> None:
    """Show in Explore a data set read from files with these options."""
    last, fewer = state.config(), leaves_out(opened.options, options)
    before = services.dataset(last.dataset) if opened.digest == last.dataset else None
    if before is not None and fewer and numbered(before.column_names):  # judged by its values
        dataset = replace(dataset, provenance=dataset.provenance | {"ordered": before.is_ordered})
    digest = services.put_again(dataset)
    opened.digest, opened.options, opened.draft = digest, options, options
    opened.choices[digest] = options  # for undo
    opened.arrival.became(digest)
    if before is not None and fewer and before.is_ordered == dataset.is_ordered:
        state.move_to(digest)
    else:
        state.open_dataset(digest)
        if before is not None and (prepare := last.preprocessing.get("prepare")):  # still wanted
            state.set_preprocessing(suggest(dataset, str(prepare)))
    report = dataset.provenance.get("report", {})
    opened.said = f"{told(dataset)} {in_one_line(report, dataset)}".strip()
    opened.said += " Columns have the roles last chosen for them." * bool(options.get("roles"))
    st.switch_page(EXPLORE)


def assumed() -> None:
    """Draw the assumptions about opened files, or changes not yet used, with what to do."""
    opened: Opened | None = st.session_state.get(state.KEYS.arrival)
    waiting = opened is not None and opened.draft != opened.options
    if opened is None or not (opened.said or waiting) or opened.digest != state.config().dataset:
        return
    kind, options, data = opened.kind, opened.options, state.current_dataset()
    report, offers = opened.read(options).report, [("Use them", "draft", opened.draft)] * waiting
    if names := list(report.get("likely_labels", {})):
        label = f"Use {kit.markdown(listed(names))} as label{'s' * (len(names) > 1)}"
        roles = options.get("roles", {}) | dict.fromkeys(names, "label")
        offers.append((label, "label", options | {"roles": roles}))
    if doubtful := doubtful_features(opened.read(options)):
        roles = options.get("roles", {}) | dict.fromkeys(doubtful, "ignored")
        why = f", {next(iter(doubtful.values()))}{', …' * (len(doubtful) > 1)}"
        label = f"Leave out {kit.markdown(listed(list(doubtful)) + why)}"
        offers.append((label, "redundant", options | {"roles": roles}))
    if options.get("colour", "grey") == "grey" and "Colours" in report.get("notes", {}):
        offers.append(("Keep colours", "colours", changed(options, "colour", "keep")))
    if doubt := report.get("doubt"):
        option, other = doubt["option"], doubt["other"]
        offers.append((DOUBTS[option, other], "otherwise", changed(options, option, other)))
    if kind == "mat" and not options.get("transpose"):
        offers.append(("Columns are samples", "columns", changed(options, "transpose", True)))
    shapes = judged(kind, data)[:1] if kind in KINDS and data.image_shape is None else []
    for shape in [each.shape for each in shapes if each.is_likely]:
        label = f"{shape.height} × {shape.width}: show as images"
        offers.append((label, "images", with_shape(kind, options, shape)))

    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="assumed"):
        scale, is_alike = state.config().preprocessing.get("scale"), data.is_ordered
        said = opened.said + " Each feature is scaled to variance 1." * (scale == "feature")
        said += " Features keep their scales." * (scale == "global" and not is_alike)
        said = "Your changes in This data are not used yet." if waiting else said
        st.markdown(kit.markdown(said), width="content")
        for label, key, others in offers[: 1 if waiting else None]:
            if st.button(label, key=f"assumed_{key}"):
                reading = opened.read(others)
                if reading.dataset is None:
                    state.notify("error", reading.sentence)
                else:
                    use(opened, others, reading.dataset)
        if not waiting:
            settings.propose(data, "assumed_prepare")
        st.page_link(DATA, label="Change", query_params=THIS, width="content")
        icon: Any = {"icon": ":material/close:", "type": "tertiary"}
        gone = ("draft", opened.options) if waiting else ("said", "")
        kit.press("Cancel" if waiting else "Close", "assumed_close", setattr, opened, *gone, **icon)


@st.cache_resource(show_spinner="Reading the file", max_entries=4, ttl=3600)
def _read(key: str, options_text: str, _arrival: DroppedFiles, _options: Options) -> Reading:
    del key, options_text
    limits = ReadLimits(scratch=scratch(), head_rows=HEAD_ROWS)
    try:
        dataset = read_apart(_arrival.files, limits=limits, **_options)
    except InputError as error:
        report = error.report or {}
        return Reading(None, str(error), report, report.pop("head", {}))
    report = dataset.provenance.get("report", {})
    return Reading(dataset, "", report, report.pop("head", {}))
