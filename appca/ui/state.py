"""The state of a session: configuration, address, selection, names, undo."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial, wraps
from typing import Any, NamedTuple, ParamSpec
from urllib.parse import parse_qsl, unquote

import msgspec
import numpy as np
import streamlit as st

from appca.analysis.selections import SavedSelection, SelectionStore, token_of
from appca.data.columns import tidy
from appca.data.dataset import Dataset, categories
from appca.data.preprocessing import Preprocessing, suggest
from appca.data.sources import load
from appca.runs.fit import most_components
from appca.runs.home import home
from appca.runs.numbering import ComponentNumbers
from appca.runs.run import MOST_COMPONENTS, RunConfig, defaults, suited
from appca.runs.store import Run
from appca.storage.schema import Count, Misfit, fitted
from appca.ui import services, streamlit_internals
from appca.words import TOO_MUCH, InputError

FIRST_DATA, LAST_COOKIE = "digits", "appca_last"
LAST_NAMES, LONGEST_COOKIE = {"data", "run", "k", "l"}, 400
REMEMBERED = 256  # number of selections by token, 9 kB each for 70,000 rows

# Names in `st.session_state`; other files must not spell them out.
KEYS = StrEnum(
    "KEYS",
    "config configs awaited history tab watched umap upload arrival declined notices selections "
    "points marked turn drawn screen findings coarse",
)


class Notice(NamedTuple):
    """A sentence for the user."""

    kind: str
    text: str


def config() -> RunConfig:
    """Return the configuration on screen."""
    now: RunConfig = st.session_state[KEYS.config]
    return now


def current_dataset() -> Dataset:
    """Return the data set on screen."""
    return services.dataset(config().dataset)


def begin() -> bool:
    """Open the data of the address, the last ones or the digits, once; return whether done."""
    if is_ready():
        return False
    address = dict(st.query_params)
    st.session_state[KEYS.awaited] = address.get("job")
    cookie = st.context.cookies.get(LAST_COOKIE)  # set by static/frame.js; AppTest has a mock
    text = unquote(cookie[:LONGEST_COOKIE]) if isinstance(cookie, str) else ""
    last = {name: value for name, value in parse_qsl(text) if name in LAST_NAMES}
    last = {} if LAST_NAMES & set(address) else last
    if not (_resolve(address) or _resolve(last)):
        if last:
            take_notices()  # the user did not ask for the last work
        open_first()
        _apply_k_and_l(address if "data" not in address else {})
    return True


def _resolve(address: dict[str, str]) -> bool:
    run = services.runs().get(address.get("run") or "")
    try:
        if run is not None:
            open_config(run.config)
            return True
    except InputError as error:
        notify("error", f"The fit {address['run']} cannot be shown: {error}")
    try:
        if "data" in address:
            open_dataset(address["data"])
            _apply_k_and_l(address)
            return True
    except InputError as error:
        notify("error", str(error))
    return False


def open_first() -> None:
    """Show the digits or, if they cannot be stored, the newest data set."""
    try:
        digest = services.put_again(load(FIRST_DATA))
    except InputError as error:
        if not (stored := services.datasets().list()):
            raise
        notify("error", str(error))
        digest = stored[0].digest
    open_dataset(digest)


def is_ready() -> bool:
    """Whether there is a configuration; here Streamlit stops a script that a newer one replaces."""
    return KEYS.config in st.session_state


def _apply_k_and_l(address: dict[str, str]) -> None:
    now = config()
    names = {"k": now.name_of_k} | ({"l": "n_active"} if "n_active" in now.parameters else {})
    sizes = {}
    for key in names.keys() & address.keys():
        with suppress(Misfit):
            size: int = fitted(Count, address[key], from_text=True)
            sizes[names[key]] = min(max(1, size), MOST_COMPONENTS)
    set_parameters(**sizes)


def open_dataset(digest: str) -> None:
    """Show a data set with its last configuration, or a suggested one."""
    dataset = services.dataset(digest)  # raises before anything has changed
    _set(st.session_state.get(KEYS.configs, {}).get(digest) or first_config(dataset))


def open_config(wanted: RunConfig) -> None:
    """Show a configuration and its data set."""
    services.dataset(wanted.dataset)  # raises before anything has changed
    _set(wanted)


def first_config(dataset: Dataset) -> RunConfig:
    """Return the first configuration of a data set: aPPCA with K = 4, L = 2."""
    before = suggest(dataset).to_dict()
    return fitting_limits(RunConfig(dataset.digest, before, "aPPCA", defaults("aPPCA")), dataset)


def set_parameters(**changes: object) -> None:
    """Change model parameters; see `with_parameters`."""
    _set(with_parameters(**changes))


def with_parameters(**changes: object) -> RunConfig:
    """Return the configuration with other parameters, within limits; an L above K raises K."""
    old = config()
    wanted = {**old.parameters, **changes}
    if isinstance(changes.get("n_active"), int):
        wanted["n_components"] = max(wanted["n_components"], wanted["n_active"])
    return fitting_limits(old.to_be_fitted(parameters=suited(old.model, wanted)), current_dataset())


def set_model(model: str) -> None:
    """Change the model; parameters keep the last values chosen for these data."""
    now, configs = config(), (step.config for step in reversed(_kept().steps))
    chosen = (each.parameters for each in configs if each.dataset == now.dataset)
    last = next((each for each in chosen if "n_components" in each), {})
    _change(model=model, parameters=suited(model, last | now.parameters))


def set_preprocessing(options: Preprocessing) -> None:
    """Change the preprocessing."""
    _change(preprocessing=options.to_dict())


def _change(**parts: Any) -> None:
    _set(fitting_limits(config().to_be_fitted(**parts), current_dataset()))


def fitting_limits(wanted: RunConfig, dataset: Dataset) -> RunConfig:
    """Return the configuration with L <= K <= `most_components`."""
    k = min(wanted.k, most_components(wanted, dataset))
    parameters = wanted.parameters | {wanted.name_of_k: k}
    return replace(wanted, parameters=suited(wanted.model, parameters))


def notify(kind: str, text: str) -> None:
    """Show a sentence when the frame is drawn next; equal sentences are shown once."""
    waiting, said = st.session_state.setdefault(KEYS.notices, []), Notice(kind, text)
    if said not in waiting:
        waiting.append(said)


def take_notices() -> list[Notice]:
    """Return the sentences to show, once, in the order of `notify`."""
    notices: list[Notice] = st.session_state.pop(KEYS.notices, [])
    return notices


def write_address(**more: str | None) -> None:
    """Update the address bar, which a page link clears."""
    now, size = config(), config().chosen_size
    wanted: dict[str, str | None] = {"data": now.dataset, "run": now.id, "k": str(now.k)}
    wanted["l"] = None if size is None else str(size)
    wanted |= {"job": st.session_state.get(KEYS.awaited)} | more
    there = {key: value for key, value in wanted.items() if value is not None}
    for key in set(wanted) - set(there):
        st.query_params.pop(key, None)
    if any(st.query_params.get(key) != value for key, value in there.items()):
        st.query_params.update(there)


def _set(wanted: RunConfig) -> None:
    st.session_state[KEYS.config] = wanted
    st.session_state.setdefault(KEYS.configs, {})[wanted.dataset] = wanted


def leave_out(dataset: Dataset, rows: np.ndarray, why: str) -> None:
    """Continue without some rows (indices or a mask (N,)) and with the same settings."""
    move_to(services.put_again(services.datasets().get(dataset.digest).without(rows, why)))


def fill_gaps(dataset: Dataset) -> None:
    """Continue with the column's mean in each missing cell."""
    options = dataset.provenance.get("options", {}) | {"missing": "mean"}
    made = dataset.provenance | {"options": options}
    move_to(services.put_again(replace(dataset, missing=None, provenance=made)))


def put_back(dataset: Dataset) -> None:
    """Restore the rows that were left out."""
    move_to(left_out(dataset)["of"])


def left_out(dataset: Dataset) -> dict[str, Any]:
    """Return the note of `Dataset.without`; empty if no row is left out, or the data are gone."""
    noted: dict[str, Any] = dataset.provenance.get("left_out") or {}
    return noted if noted and (services.datasets().folder / noted["of"]).is_dir() else {}


def whole(digest: str) -> str:
    """Return the digest of the data set with the rows that were left out."""
    return str(left_out(services.dataset(digest)).get("of", digest))


def move_to(digest: str) -> None:
    """Show a data set with the settings on screen, within its limits."""
    other = services.dataset(digest)  # raises before anything has changed
    _set(fitting_limits(config().to_be_fitted(dataset=digest), other))


def get(dataset: Dataset) -> np.ndarray:
    """Return the selection as a mask (N,)."""
    mask: np.ndarray | None = st.session_state.setdefault(KEYS.selections, {}).get(dataset.digest)
    return np.zeros(dataset.n_rows, dtype=bool) if mask is None else mask


def put(dataset: Dataset, rows: np.ndarray) -> None:
    """Select rows, given as a mask (N,) or indices, on every page."""
    mask = rows if rows.dtype == bool else np.isin(np.arange(dataset.n_rows), rows)
    if not np.array_equal(get(dataset), mask):
        _keep(dataset, mask.copy())


def store() -> SelectionStore:
    """Return the named selections of all data sets."""
    return SelectionStore(home())


def named(dataset: Dataset) -> list[SavedSelection]:
    """Return the named selections of a data set."""
    return store().list(dataset.digest, dataset.n_rows)


def delete_named(dataset: Dataset, name: str) -> None:
    """Delete a named selection; undo restores it."""
    (old,) = (kept for kept in named(dataset) if kept.name == name)
    act = partial(store().delete, dataset.digest, name)
    act()
    note(partial(store().save, dataset.digest, name, old.mask), act)


def save_rule(dataset: Dataset, mask: np.ndarray, conditions: str) -> None:
    """Store the rows (N,) bool of a rule as a named selection."""
    name = store().save(dataset.digest, conditions, mask)
    notify("info", f"“{name}” is saved as a named selection.")


def token(dataset: Dataset) -> str | None:
    """Return the selection's token for the address; None without a selection."""
    mask = get(dataset)
    return token_of(mask) if mask.any() else None


def restore(dataset: Dataset, wanted: str | None) -> None:
    """Select the rows of a token, if the server or a named selection knows it."""
    bits = _server_wide().get(wanted or "")
    if bits is not None and len(bits) == -(-dataset.n_rows // 8):
        _keep(dataset, _unpacked(bits, dataset))
    elif wanted:
        masks = {token_of(saved.mask): saved.mask for saved in named(dataset)}
        if wanted in masks:
            _keep(dataset, masks[wanted])


def _keep(dataset: Dataset, mask: np.ndarray) -> None:
    st.session_state.setdefault(KEYS.selections, {})[dataset.digest] = mask
    if mask.any():
        remembered = _server_wide()
        remembered[token_of(mask)] = np.packbits(mask).tobytes()
        while len(remembered) > REMEMBERED:
            remembered.popitem(last=False)


def _unpacked(packed: bytes, dataset: Dataset) -> np.ndarray:
    return np.unpackbits(np.frombuffer(packed, np.uint8), count=dataset.n_rows).astype(bool)


@st.cache_resource(show_spinner=False)
def _server_wide() -> OrderedDict[str, bytes]:
    return OrderedDict()


TOLD = (ValueError, OSError, MemoryError)  # shown as a sentence; other errors are bugs

_Given = ParamSpec("_Given")


def guarded(act: Callable[_Given, object]) -> Callable[_Given, None]:
    """Return a callback that is not interrupted, and whose errors become notices."""

    @wraps(act)
    def guard(*args: _Given.args, **named: _Given.kwargs) -> None:
        with _uninterrupted():
            try:
                act(*args, **named)
            except TOLD as error:
                notify("error", sentence(error))

    return guard


@guarded
def pass_value(key: str, act: Callable[[Any], object]) -> None:
    """Call `act` with the new value of a widget."""
    act(st.session_state[key])


def wait() -> None:
    """Wait for callbacks of an earlier run."""
    with _turn():
        pass


def sentence(error: Exception) -> str:
    """Return an error as one sentence, not yet escaped for Markdown."""
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return (
            f"The disk refused ({where}{error.strerror or error}); free some space, check the "
            "permissions, or set APPCA_HOME to another folder."
        )
    if isinstance(error, MemoryError):
        return TOO_MUCH
    return str(error) or type(error).__name__


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Prevent newer requests from ending this run; later runs of the session wait."""
    with streamlit_internals.uninterrupted() as asked, _turn() if asked else nullcontext():
        yield


def _turn() -> AbstractContextManager[bool]:
    lock: AbstractContextManager[bool] = st.session_state.setdefault(KEYS.turn, threading.RLock())
    return lock


MOST_STEPS = 100
Change = tuple[Callable[[], object], Callable[[], object]]


class Step(NamedTuple):
    """A step of the history."""

    number: int
    config: RunConfig
    selected: bytes  # packed mask for the configuration's data
    changes: tuple[Change, ...] = ()


@dataclass
class _History:
    steps: list[Step] = field(default_factory=list)
    at: int = -1
    number: int = 0
    pending: list[Change] = field(default_factory=list)


def record() -> bool:
    """Add the screen to the history; return whether it differs from the current step."""
    if not is_ready():
        return False
    kept = _kept()
    looks = (config(), np.packbits(get(current_dataset())).tobytes())
    if kept.steps:
        if not kept.pending and looks == kept.steps[kept.at][1:3]:
            return False
        kept.number += 1
    now = Step(kept.number, *looks, tuple(kept.pending))
    kept.steps = [*kept.steps[: kept.at + 1], now][-MOST_STEPS:]
    kept.at, kept.pending = len(kept.steps) - 1, []
    return True


def note(undo: Callable[[], object], redo: Callable[[], object]) -> None:
    """Add a change of a store to the next step."""
    _kept().pending.append((undo, redo))


def number() -> str:
    """Return the number of the current step, for the address."""
    kept = _kept()
    return str(kept.steps[kept.at].number if kept.steps else kept.number)


def begin_at(asked: str | None) -> None:
    """Continue at the step number in the address, after a reload."""
    if asked and asked.isdecimal() and len(asked) < 10:
        _kept().number = int(asked)


def can_step(by: int) -> bool:
    """Whether there is a previous (-1) or next (1) step."""
    return 0 <= _kept().at + by < len(_kept().steps)


@guarded
def undo() -> None:
    """Undo the last step."""
    record()
    _go(_kept().at - 1)


@guarded
def redo() -> None:
    """Redo the last undone step."""
    _go(_kept().at + 1)


@guarded
def follow(address: dict[str, str]) -> None:
    """Show the step of an address reached by the browser's back or forward button."""
    asked, kept = address.get("step"), _kept()
    if asked in (None, number()) or record():  # a simultaneous change has priority
        return
    place = {str(step.number): place for place, step in enumerate(kept.steps)}.get(asked or "")
    if place is not None:
        _go(place)
    elif "data" in address or "run" in address:  # a reload: the address is from an earlier session
        _resolve(address)
        restore(current_dataset(), address.get("sel"))


def _go(place: int) -> None:
    kept = _kept()
    if not can_step(place - kept.at):
        return
    between = kept.steps[min(place, kept.at) + 1 : max(place, kept.at) + 1]
    wanted = kept.steps[place]
    open_config(wanted.config)  # raises before anything has changed
    put(current_dataset(), _unpacked(wanted.selected, current_dataset()))
    changes = [change for step in between for change in step.changes]
    for back, again in changes if place > kept.at else reversed(changes):
        (again if place > kept.at else back)()
    kept.at = place


def _kept() -> _History:
    history: _History = st.session_state.setdefault(KEYS.history, _History())
    return history


def rename(run: Run | None, component: int, name: str) -> None:
    """Name a component, counted from 0; an empty text removes its name."""
    if run is not None:
        numbers = ComponentNumbers(home())
        old = numbers.of_run(run).names[component]
        numbers.rename(run, component, name)
        note(*(partial(numbers.rename, run, component, text) for text in (old, name)))


def flip(run: Run | None, component: int) -> None:
    """Flip the sign of a component, counted from 0, and of its scores."""
    if run is not None:
        turn = partial(ComponentNumbers(home()).flip, run, component)
        turn()
        note(turn, turn)


def rename_class(digest: str, said: str) -> None:
    """Rename a class by JSON of label, old and new name; an empty one restores the original."""
    try:
        label, before, now = msgspec.json.decode(said, type=tuple[str, str, str])
    except msgspec.DecodeError:  # not from appca's script
        return
    stored = services.datasets().get(digest)
    if label not in stored.labels:
        return
    every = dict(stored.provenance.get("class_names", {}))
    names, (classes, _) = every.get(label, {}), categories(stored.labels[label])
    shown = [each for each in classes if names.get(each, each) == before]
    renamed = names | {each: tidy(now) or each for each in shown}
    kept = {old: new for old, new in renamed.items() if new != old}
    undo, redo = (
        partial(services.note, digest, class_names=each) for each in (every, every | {label: kept})
    )
    redo()
    note(undo, redo)
