"""What a session is looking at: one data set and one configuration, mirrored in the address bar.

The configuration (data set, preprocessing, model, parameters) is the only truth; widgets show it
and change it. The address carries `data`, `run`, `k`, `l`, `job` and `sel`, so that a reload, which
starts a new session, and a link bring the same picture back.
"""

from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote

import streamlit as st

from appca.data.dataset import Dataset
from appca.data.preprocessing import Preprocessing, suggest
from appca.data.sources.builtin import load
from appca.runs.configuration import MODELS, MOST_COMPONENTS, RunConfig, defaults, suited
from appca.storage.schema import Count, Misfit, fitted
from appca.ui.session import services
from appca.words.errors import InputError

FIRST_DATA = "digits"  # bundled, small, and a picture that everybody can read
LAST_COOKIE = "appca_last"
LAST_NAMES = {"data", "run", "k", "l"}
LONGEST_COOKIE = 400  # characters; what is longer was not written here


class Keys(NamedTuple):
    """Names in `st.session_state`; no other file spells one out."""

    config: str = "config"
    configs: str = "configs"  # data set digest -> the configuration last used with it
    job: str = "job"  # the jobs in the address
    history: str = "history"  # the steps that can be undone
    tab: str = "tab"  # the tab of the page that is drawn, if it has tabs
    watched: str = "watched"  # the jobs this window waits for
    umap: str = "umap_settings"
    map_ready: str = "map_ready"  # whether a map was laid out that has not been offered yet
    upload: str = "upload"  # counts the files taken over
    arrival: str = "arrival"  # the files that can be read otherwise
    declined: str = "declined"  # runs whose refinement was cancelled or failed
    notices: str = "notices"  # sentences to show once
    selections: str = "selections"  # data set digest -> rows
    points: str = "points"  # data set digest -> the row on the page Point
    marked: str = "marked"  # what a run says of new rows, by its key -> those marked in the picture
    turn: str = "turn"  # the lock of the callback that runs
    drawn: str = "drawn"  # id of the run found last
    screen: str = "screen"  # the fit drawn last, to which the next is matched
    sizes: str = "sizes"  # the widgets of K and L
    compare: str = "compare"  # whether the tab Which model? is to begin by itself


KEYS = Keys()


class Notice(NamedTuple):
    """A sentence for the person."""

    kind: str  # "error", "info" or "success"
    text: str


def config() -> RunConfig:
    """Return the configuration on screen."""
    now: RunConfig = st.session_state[KEYS.config]
    return now


def current_dataset() -> Dataset:
    """Return the data set on screen."""
    return services.dataset(config().dataset)


def begin() -> bool:
    """Resolve the address once a session, and say whether it was now.

    It names a run or a data set; the bare one opens the last work of this browser, or the digits.
    """
    if KEYS.config in st.session_state:
        return False
    address = dict(st.query_params)
    st.session_state[KEYS.job] = address.get("job")
    last = {} if LAST_NAMES & set(address) else last_address()
    if not (resolve(address) or resolve(last)):
        if last:
            take_notices()  # nobody has asked for it
        open_first()
        _apply_k_and_l(address if "data" not in address else {})
    return True


def resolve(address: dict[str, str]) -> bool:
    """Look at the run or the data set that an address names; tell whether there was one."""
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
    """Look at the digits; where they cannot be stored, at the newest data set that is."""
    here = services.datasets()
    try:
        digest = services.put_again(load(FIRST_DATA))
    except InputError as error:
        stored = here.list()
        if not stored:
            raise
        notify("error", str(error))
        digest = stored[0].digest
    open_dataset(digest)


def is_ready() -> bool:
    """Whether there is anything to look at."""
    return KEYS.config in st.session_state


def _apply_k_and_l(address: dict[str, str]) -> None:
    now = config()
    names = {"k": now.name_of_k} | ({"l": "n_active"} if "n_active" in now.parameters else {})
    sizes = {name: _size(address[key]) for key, name in names.items() if key in address}
    set_parameters(**{name: size for name, size in sizes.items() if size is not None})


def _size(text: str) -> int | None:
    """Return a K or L from the address, as near as any run may have it; None if it is none."""
    try:
        size: int = fitted(Count, text, from_text=True)
    except Misfit:
        return None
    return min(max(1, size), MOST_COMPONENTS)


def open_dataset(digest: str) -> None:
    """Look at a data set, with the configuration last used for it or the suggested one."""
    dataset = services.dataset(digest)  # raises before anything has changed
    config = st.session_state.get(KEYS.configs, {}).get(digest)
    _set(config or first_config(dataset))


def open_config(wanted: RunConfig) -> None:
    """Look at a run's data set with the run's configuration."""
    services.dataset(wanted.dataset)
    _set(wanted)


def first_config(dataset: Dataset) -> RunConfig:
    """Return the configuration with which a data set is first shown: aPPCA with K = 4, L = 2."""
    start = RunConfig(
        dataset=dataset.digest,
        preprocessing=suggest(dataset).to_dict(),
        model="aPPCA",
        parameters=defaults("aPPCA"),
    )
    return fitting_limits(start, dataset)


def set_parameters(**changes: object) -> None:
    """Change model parameters; see `with_parameters`."""
    _set(with_parameters(**changes))


def with_parameters(**changes: object) -> RunConfig:
    """Return the configuration on screen with other parameters, to be fitted.

    K and L are kept within what the data and each other allow; asking for more active components
    than there are asks for more components.
    """
    old = config()
    wanted = {**old.parameters, **changes}
    if isinstance(changes.get("n_active"), int):
        wanted["n_components"] = max(wanted["n_components"], wanted["n_active"])
    changed = old.to_be_fitted(parameters=suited(old.model, wanted))
    return fitting_limits(changed, current_dataset())


def set_model(model: str) -> None:
    """Change the model; parameters that both models have keep their values."""
    _change(model=model, parameters=suited(model, config().parameters))


def set_preprocessing(options: Preprocessing) -> None:
    """Change what is done to the data before the fit."""
    _change(preprocessing=options.to_dict())


def _change(**parts: Any) -> None:
    _set(fitting_limits(config().to_be_fitted(**parts), current_dataset()))


def most_components(wanted: RunConfig, dataset: Dataset) -> int:
    """Return the largest K that the data allow: K <= min(N - 1, D), D only for orthogonal ones."""
    if MODELS[wanted.model].can.beyond_features:
        return max(1, dataset.n_rows - 1)
    features = Preprocessing.from_dict(wanted.preprocessing).most_features(dataset.n_features)
    return max(1, min(dataset.n_rows - 1, features))


def fitting_limits(wanted: RunConfig, dataset: Dataset) -> RunConfig:
    """Return the configuration with L <= K <= what the data allow."""
    k = min(wanted.k, most_components(wanted, dataset))
    parameters = wanted.parameters | {wanted.name_of_k: k}
    return replace(wanted, parameters=suited(wanted.model, parameters))


def notify(kind: str, text: str) -> None:
    """Keep a sentence for the next time the frame is drawn; the same one twice is said once."""
    waiting, said = st.session_state.setdefault(KEYS.notices, []), Notice(kind, text)
    if said not in waiting:
        waiting.append(said)


def take_notices() -> list[Notice]:
    """Return the sentences to show, once, in the order in which they came."""
    notices: list[Notice] = st.session_state.pop(KEYS.notices, [])
    return notices


def address(**more: str | None) -> dict[str, str]:
    """Return the query parameters of what is on screen; `more` adds to them where not None."""
    now = config()
    wanted = {
        "data": now.dataset,
        "run": now.id,
        "k": str(now.k),
        "l": None if now.chosen_size is None else str(now.chosen_size),
        "job": st.session_state.get(KEYS.job),
        **more,
    }
    return {key: value for key, value in wanted.items() if value is not None}


def write_address(**more: str | None) -> None:
    """Bring the address bar up to date; a page link has cleared it."""
    wanted = address(**more)
    for key in {"data", "run", "k", "l", "job", *more} - set(wanted):
        if key in st.query_params:
            del st.query_params[key]
    if any(st.query_params.get(key) != value for key, value in wanted.items()):
        st.query_params.update(wanted)


def _set(wanted: RunConfig) -> None:
    st.session_state[KEYS.config] = wanted
    st.session_state.setdefault(KEYS.configs, {})[wanted.dataset] = wanted


def last_address() -> dict[str, str]:
    """Return the query parameters of what this browser looked at last; empty without.

    The page keeps it as a cookie (see `frame/frame.js`): the server learns it when a window opens,
    and another person's browser does not. What it names is looked up like an address, and may be
    gone.
    """
    text = unquote(services.cookie(LAST_COOKIE)[:LONGEST_COOKIE])
    return {name: value for name, value in parse_qsl(text) if name in LAST_NAMES}
