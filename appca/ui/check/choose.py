"""The tab Choose K and L: the grid in use, how long one takes, and its settings."""

from contextlib import suppress
from typing import Any

import numpy as np
import streamlit as st

from appca.analysis.check import choose_advice
from appca.analysis.check.choose import FOLDER, MODELS, MOST_ROWS, GridConfig, steps, stored
from appca.analysis.check.journal import JournalStore
from appca.data.dataset import Dataset
from appca.jobs.kinds import estimate_grid
from appca.runs.configuration import MODELS as ALL_MODELS
from appca.runs.configuration import RunConfig, suited
from appca.runs.fit import estimate_seconds
from appca.runs.home import home
from appca.ui.check import choose_pictures
from appca.ui.parts import progress
from appca.ui.parts.answers import answer
from appca.ui.parts.notes import gaps_note
from appca.ui.parts.text import markdown
from appca.ui.session import state
from appca.ui.session.callbacks import guarded
from appca.words.errors import InputError
from appca.words.numbers import about, duration
from appca.words.wording import counted

Step = tuple[int, int, int]  # K, L and fold
Place = st.delta_generator.DeltaGenerator
ADDRESS = "grid"  # query parameter: a link and a reload bring the grid back
K_DEFAULT, L_DEFAULT = (2, 12), (1, 4)
MOST_K = 100
LONG = 120.0  # seconds a grid may take by default; else every second K is left out
SETTINGS = "choose_settings"  # in `st.session_state`: numbers asked for, by data and fit
HELP_FOLDS = "Each part of the rows is held back once. More folds tell smaller differences apart."
HELP_ROWS = "Of more rows a random sample is used."


def is_offered() -> bool:
    """Whether the model has a grid; if not, say so and offer to switch."""
    model = state.config().model
    if model in MODELS:
        return True
    answer("Choosing L needs adaptive PPCA or adaptive factor analysis", level="unknown")
    with st.container(horizontal=True):
        for other in MODELS:
            st.button(
                f"Switch to {ALL_MODELS[other].title.lower().replace('ppca', 'PPCA')}",
                key=f"choose_model_{other}",
                on_click=guarded(state.set_model),
                args=[other],
            )
    return False


def body(dataset: Dataset) -> None:
    """Draw the answer of the grid in use, or how long one takes, and below it the grid."""
    place = st.container()
    with st.container(horizontal=True, gap="small"):
        buttons = st.container(horizontal=True, gap="small", width="content")
        with st.popover("Change grid", icon=":material/tune:"):
            config = settings(dataset)
    if config is not None:
        grid(dataset, config, place, buttons)


def by_em(now: RunConfig) -> dict[str, Any]:
    """Return the parameters with which a grid fits: those of the page Fit, sampling by EM."""
    em = {"inference": "em"} if now.parameters.get("inference") == "gibbs" else {}
    wanted = suited(now.model, {**now.parameters, **em})
    return RunConfig(now.dataset, now.preprocessing, now.model, wanted).parameters


def settings(dataset: Dataset) -> GridConfig | None:
    """Draw the settings and return the grid they describe; None where they describe none."""
    now = state.config()
    asked = _asked(dataset, now)
    most = min(state.most_components(now, dataset), MOST_K, _train_rows(dataset, asked) - 1)
    if dataset.n_rows < 4:
        st.info(f"A grid needs at least 4 rows; these data have {dataset.n_rows}.")
        return None
    numbers = {}
    for line in (
        {"k_from": ("K from", (1, most)), "k_to": ("to", (1, most)), "k_step": ("step", (1, most))},
        {"l_from": ("L from", (1, most)), "l_to": ("to", (1, most))},
        {
            "n_folds": ("Folds", (2, min(20, dataset.n_rows)), HELP_FOLDS),
            "max_rows": ("Most rows", (4, 10_000_000), HELP_ROWS),
        },
    ):
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
            for name, (label, limits, *told) in line.items():
                numbers[name] = _number(label, name, asked, limits, *told)
    gaps_note(dataset, "The fits of the grid")
    try:
        return GridConfig(
            dataset=dataset.digest,
            preprocessing=now.preprocessing,
            model=now.model,
            parameters=by_em(now),
            components=_range(numbers["k_from"], numbers["k_to"], numbers["k_step"]),
            actives=_range(numbers["l_from"], numbers["l_to"], 1),
            n_folds=numbers["n_folds"],
            max_rows=numbers["max_rows"],
            random_state=asked["seed"],
        )
    except InputError as error:
        st.error(markdown(str(error)))
        return None


def grid(dataset: Dataset, config: GridConfig, place: Place, buttons: Place) -> None:
    """Draw the grid: on its way, finished, or what starts it; its answer stands at `place`."""
    st.query_params[ADDRESS] = config.id
    store = JournalStore(home(), FOLDER)

    def heat_map() -> None:
        choose_pictures.filling(choose_advice.table(config, stored(store, config)))

    told = "What is done is kept when you cancel."
    if progress.follow(config.id, "choose_cancel", told, heat_map):
        return
    measures = stored(store, config)
    table = choose_advice.table(config, measures)
    left = [step for step in steps(config) if step not in measures]
    if left:
        with place:
            _say(config, left)
        with buttons:
            _start(dataset, config, left)
    if np.isfinite(table.log_likelihood).any():
        choose_pictures.draw(config, table, place, buttons)
    else:
        choose_pictures.filling(table)
    _left_out(config)
    if not left:
        seconds = sum(measure.seconds for measure in measures.values())
        rows = min(dataset.n_rows, config.max_rows)
        fits = counted(len(measures), "fit")
        st.caption(f"{fits} in {duration(seconds)} on {rows:,} rows, {config.n_folds} folds")


def _say(config: GridConfig, left: list[Step]) -> None:
    done = len(steps(config)) - len(left)
    if done:
        answer(f"{done:,} of {len(steps(config)):,} fits are done")
    else:
        answer("Which K and L?", "Each choice is judged by rows that the fit has not seen.")


def _start(dataset: Dataset, config: GridConfig, left: list[Step]) -> None:
    costs = estimate_grid(config, dataset.n_rows, dataset.n_features)
    takes = about(sum(costs[step[:2]] for step in left))
    begun = len(left) < len(steps(config))
    label = f"{'Go on' if begun else f'Compare {len(config.order())} choices'}, {takes}"
    spec = config.to_dict() | {"key": config.id}
    progress.button(label, "choose_start", "grid", config.id, spec)


def _left_out(config: GridConfig) -> None:
    out = [
        f"K = {k}, L = {active}"
        for k in config.components
        for active in config.actives
        if active <= k and not config.is_exact(k, active)
    ]
    if out:
        st.caption(
            "Left out, too many choices of factors to be exact: "
            + "; ".join(out[:6])
            + (f" and {len(out) - 6:,} more." if len(out) > 6 else ".")
        )


def _asked(dataset: Dataset, now: RunConfig) -> dict[str, int]:
    """Return the numbers last asked for; else those of the address, of the last grid, or usual."""
    settings_asked: dict[object, dict[str, int]] = st.session_state.setdefault(SETTINGS, {})
    same = (dataset.digest, now.model, str(sorted(now.preprocessing.items())))
    if same not in settings_asked:
        settings_asked[same] = _remembered(now) or _usual(dataset, now)
    numbers: dict[str, int] = settings_asked[same]
    return numbers


def _remembered(now: RunConfig) -> dict[str, int] | None:
    """Return the numbers of the grid the address names, else of the last one with this fit."""
    store = JournalStore(home(), FOLDER)
    mine = (now.dataset, now.model, now.preprocessing)
    for name in filter(None, [st.query_params.get(ADDRESS), *store.names()]):
        with suppress(InputError, TypeError, KeyError):
            config = GridConfig.from_dict(store.config(name) or {})
            if (config.dataset, config.model, config.preprocessing) == mine:
                ks, ls, seed = config.components, config.actives, config.random_state
                step = ks[1] - ks[0] if len(ks) > 1 else 1  # of unequal ones the first
                return _asked_for(ks, step, ls, config.n_folds, config.max_rows, seed)
    return None


def _usual(dataset: Dataset, now: RunConfig) -> dict[str, int]:
    """Return a first grid: K to 12 and L to 4 as far as the data allow, coarser where slow."""
    folds = min(3, dataset.n_rows)
    rows = min(dataset.n_rows, MOST_ROWS)
    most = max(1, min(state.most_components(now, dataset), rows - rows // folds - 1))
    k_from, k_to = min(K_DEFAULT[0], most), min(K_DEFAULT[1], most)
    parameters = by_em(now) | {"n_components": (k_from + k_to + 1) // 2, "n_active": 1}
    middle = RunConfig(now.dataset, now.preprocessing, now.model, parameters)
    cells = (k_to - k_from + 1) * L_DEFAULT[1] * folds
    slow = cells * estimate_seconds(rows, dataset.n_features, middle) > LONG
    step = 2 if slow and k_to - k_from > 4 else 1
    return _asked_for((k_from, k_to), step, (1, min(L_DEFAULT[1], most)), folds, MOST_ROWS, 0)


def _asked_for(
    ks: tuple[int, ...], step: int, ls: tuple[int, ...], n_folds: int, max_rows: int, seed: int
) -> dict[str, int]:
    """Return what the widgets show."""
    asked = {"k_from": ks[0], "k_to": ks[-1], "k_step": step, "l_from": ls[0], "l_to": ls[-1]}
    return asked | {"n_folds": n_folds, "max_rows": max_rows, "seed": seed}


def _train_rows(dataset: Dataset, asked: dict[str, int]) -> int:
    rows = min(dataset.n_rows, asked["max_rows"])
    return rows - -(-rows // asked["n_folds"])


def _range(first: int, last: int, step: int) -> tuple[int, ...]:
    """Return first, first + step, ... to last, also when they were given the other way round."""
    low, high = min(first, last), max(first, last)
    return tuple(range(low, high + 1, step))


def _number(
    label: str, name: str, asked: dict[str, int], limits: tuple[int, int], help_text: str = ""
) -> int:
    asked[name] = min(max(asked[name], limits[0]), limits[1])
    key = f"choose_{name}"
    st.session_state[key] = asked[name]

    @guarded
    def changed() -> None:
        asked[name] = int(st.session_state[key])

    wide, told = (118 if name in {"max_rows", "n_folds", "k_step"} else 98), help_text or None
    return st.number_input(label, *limits, key=key, help=told, width=wide, on_change=changed)
