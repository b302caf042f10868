"""The tab Choose K and L: the grid in use, how long one takes, and its settings."""

from contextlib import suppress
from typing import Any

import numpy as np
import streamlit as st

from appca.analysis.check import choose_advice
from appca.analysis.check.choose import FOLDER, MODELS, MOST_ROWS, Cell, GridConfig, steps, stored
from appca.analysis.check.choose_advice import GridTable, Suggestion
from appca.analysis.check.journal import JournalStore
from appca.data.dataset import Dataset
from appca.data.numbers import fixed, number, percent
from appca.jobs.choose import estimate
from appca.plots.check import choose as plots
from appca.runs.configuration import MODELS as ALL_MODELS
from appca.runs.configuration import RunConfig, suited
from appca.runs.fit import estimate_seconds
from appca.runs.home import home
from appca.storage.errors import InputError
from appca.storage.wording import counted
from appca.ui.parts import progress
from appca.ui.parts.answers import Number, answer, numbers
from appca.ui.parts.chart import chart
from appca.ui.parts.gaps_note import gaps_note
from appca.ui.parts.text import about, duration, markdown
from appca.ui.parts.widgets import one_of
from appca.ui.session import computation, state
from appca.ui.session.callbacks import guarded

Step = tuple[int, int, int]  # K, L and fold
Place = st.delta_generator.DeltaGenerator
ADDRESS = "grid"  # query parameter: a link and a reload bring the grid back
K_DEFAULT, L_DEFAULT = (2, 12), (1, 4)
MOST_K = 100
LONG = 120.0  # seconds a grid may take by default; else every second K is left out
SETTINGS = "choose_settings"  # in `st.session_state`: numbers asked for, by data and fit
HELP_FOLDS = "Each part of the rows is held back once. More folds tell smaller differences apart."
HELP_ROWS = "Of more rows a random sample is used."
LIKELIHOOD, ERROR = "Likelihood", "Error"
EXPLORE = "pages/explore/explore.py"
WHY = (
    "Each K and L is fitted to a part of the rows and judged by the log-likelihood of the others; "
    "preprocessing is learned from the fitted part alone. Cells are compared fold by fold. If the "
    "best cell lies inside the grid, the smallest choice within one standard error of it is "
    "suggested. Where the likelihood rises to the edge, as on most real data, L is yours to "
    "choose, and K is the elbow: before it a component gains more than on average, after it less."
)


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
    given = {}
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
                given[name] = _number(label, name, asked, limits, *told)
    gaps_note(dataset, "The fits of the grid")
    try:
        return GridConfig(
            dataset=dataset.digest,
            preprocessing=now.preprocessing,
            model=now.model,
            parameters=by_em(now),
            components=_range(given["k_from"], given["k_to"], given["k_step"]),
            actives=_range(given["l_from"], given["l_to"], 1),
            n_folds=given["n_folds"],
            max_rows=given["max_rows"],
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
        filling(choose_advice.table(config, stored(store, config)))

    told = "What is done is kept when you cancel."
    if progress.follow(config.id, "choose_cancel", told, heat_map):
        return
    measures = stored(store, config)
    found = choose_advice.table(config, measures)
    left = [step for step in steps(config) if step not in measures]
    if left:
        with place:
            _say(config, left)
        with buttons:
            _start(dataset, config, left)
    if np.isfinite(found.log_likelihood).any():
        draw(config, found, place, buttons)
    else:
        filling(found)
    _left_out(config)
    if not left:
        seconds = sum(one.seconds for one in measures.values())
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
    costs = estimate(config, dataset.n_rows, dataset.n_features)
    takes = about(sum(costs[step[:2]] for step in left))
    begun = len(left) < len(steps(config))
    label = f"{'Go on' if begun else f'Compare {len(config.order())} choices'}, {takes}"
    spec = config.to_dict() | {"key": config.id}
    computation.button(label, "choose_start", "grid", config.id, spec)


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
    known: dict[object, dict[str, int]] = st.session_state.setdefault(SETTINGS, {})
    same = (dataset.digest, now.model, str(sorted(now.preprocessing.items())))
    if same not in known:
        known[same] = _remembered(now) or _usual(dataset, now)
    numbers: dict[str, int] = known[same]
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
    found = {"k_from": ks[0], "k_to": ks[-1], "k_step": step, "l_from": ls[0], "l_to": ls[-1]}
    return found | {"n_folds": n_folds, "max_rows": max_rows, "seed": seed}


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

    def changed() -> None:
        asked[name] = int(st.session_state[key])

    wide, told = (118 if name in {"max_rows", "n_folds", "k_step"} else 98), help_text or None
    return st.number_input(label, *limits, key=key, help=told, width=wide, on_change=changed)


# What a grid over K and L shows: the answer, the heat map with its cells, and three numbers


def draw(config: GridConfig, found: GridTable, place: Place, buttons: Place) -> None:
    """Draw everything that is known; the answer, at its place, only of what has been measured."""
    advice = choose_advice.advise(found)
    best = choose_advice.suggest(found, advice, state.config().n_active or 2)
    if best is not None:
        with place:
            answer(f"Try K = {best.cell[0]} and L = {best.cell[1]}", best.reason)
        with buttons:
            _adopt(*best.cell)
    with st.container(key="beside"):
        left, right = st.columns([1.7, 1], gap="medium")
    with left, st.container(border=True):
        picture = _picture(found, _measure())
        heat_map(config, picture, best)
    with right, st.container(border=True):
        st.markdown("**What each component adds**")
        chart(plots.by_budget(picture, best and best.cell), "choose_curves")
    if best is not None:
        st.html(numbers(_numbers(found, best.cell)))


def _adopt(k: int, active: int) -> None:
    now = state.config()
    st.button(
        f"Adopt {k} and {active}",
        key="choose_adopt",
        type="primary",
        disabled=(now.k, now.n_active) == (k, active),
        on_click=guarded(state.set_parameters),
        kwargs={"n_components": k, "n_active": active},
    )
    with st.popover("Why?"):
        st.markdown(WHY)


def _measure() -> str:
    return one_of("Fit to unseen rows", {LIKELIHOOD: LIKELIHOOD, ERROR: ERROR}, "choose_measure")


def _picture(found: GridTable, measure: str) -> plots.Picture:
    is_error = measure == ERROR
    values = (found.error if is_error else found.log_likelihood).mean(axis=-1)
    unit = "squared error per feature" if is_error else "nats per row"
    return plots.Picture(values, found.components, found.actives, unit, is_error)


def filling(found: GridTable) -> None:
    """Draw the heat map of a grid that is being measured, or of one that would be."""
    k, active = state.config().k, state.config().n_active or 0
    now = (k, active) if k in found.components and active in found.actives else None
    chart(plots.heat_map(_picture(found, LIKELIHOOD), now), "choose_live")
    st.caption(f"{'Outlined: now. ' if now else ''}Each cell gets the likelihood of unseen rows.")


def heat_map(config: GridConfig, picture: plots.Picture, best: Suggestion | None) -> None:
    """Draw the heat map; a click on a cell opens Explore with its K and L."""
    figure = plots.heat_map(picture, best and best.cell)
    key = f"choose_map-{config.id}-{picture.smaller_is_better}"
    clicked = st.plotly_chart(
        figure,
        key=key,
        on_select="rerun",
        selection_mode="points",
        config={"displayModeBar": False},
    )
    st.caption("Outlined: suggested. Click a cell to see it in Explore.")
    points = clicked["selection"]["points"]
    if points:
        k, active = points[0]["customdata"][:2]
        state.set_parameters(n_components=int(k), n_active=int(active))
        st.switch_page(EXPLORE)


def _numbers(found: GridTable, cell: Cell) -> list[Number]:
    """Return the suggested cell's likelihood, its gain over fixed components, and its error."""
    i, j = found.components.index(cell[0]), found.actives.index(cell[1])
    own = float(found.log_likelihood[i, j].mean())
    told = [(fixed(own), f"nats per row at {cell[0]} and {cell[1]}")]
    more = choose_advice.over_folds(choose_advice.gain(found)[i, j])
    share = choose_advice.closed_on_average(found)[i, j]
    if np.isfinite(more.mean):
        told.append((f"+{fixed(float(more.mean))}", f"nats over PCA with {cell[1]}"))
    if np.isfinite(share):
        told.append((percent(share), f"of what PCA with all {cell[0]} gains"))
    else:
        told.append((number(found.error[i, j].mean()), "squared error per feature"))
    return told
