"""Tabs of the page Check: Choose K and L, stability, and Which model."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from appca.analysis import choose
from appca.analysis.choose import (
    FOLDER,
    MODELS,
    MOST_ROWS,
    STABILITY_FOLDER,
    Cell,
    GridConfig,
    GridTable,
    Stability,
    StabilityConfig,
    Suggestion,
    steps,
    stored,
    stored_stability,
)
from appca.analysis.compare import (
    CLEAR,
    MODELS_FOLDER,
    PAPER,
    SWITCHES,
    VARIANTS,
    HeldOutFit,
    ModelAdvice,
    ModelsConfig,
    Ranked,
    advise,
    methods,
    ranked_models,
    stored_models,
    variant_settings,
)
from appca.analysis.components import IDENTIFIED, ROUGHLY, identification
from appca.analysis.fitted import FittedRun
from appca.analysis.journal import JournalStore
from appca.analysis.subspaces import ranked, title
from appca.data.dataset import Dataset
from appca.jobs.tasks import estimate_grid, estimate_models
from appca.plots import check as plots
from appca.runs.fit import estimate_seconds
from appca.runs.home import home
from appca.runs.run import LEARNED, RunConfig, defaults, suited
from appca.runs.run import MODELS as ALL_MODELS
from appca.ui import kit, state
from appca.ui.fits import Shown
from appca.ui.kit import (
    Level,
    Number,
    acting,
    answer,
    button,
    chart,
    chip,
    gaps_note,
    markdown,
    numbers,
    one_of,
    tag,
    words,
)
from appca.ui.state import KEYS, guarded
from appca.words import InputError, about, counted, duration, fixed, number, percent

Place = st.delta_generator.DeltaGenerator
LIKELIHOOD, ERROR = "Likelihood", "Error"
EXPLORE = "pages/explore/explore.py"
WHY_HELD_OUT = (
    "Each K and L is fitted to a part of the rows and judged by the log-likelihood of the others; "
    "preprocessing is learned from the fitted part alone. Cells are compared fold by fold. If the "
    "best cell lies inside the grid, the smallest choice within one standard error of it is "
    "suggested. Where the likelihood rises to the edge, as on most real data, L is yours to "
    "choose, and K is the elbow: before it a component gains more than on average, after it less."
)


def draw(config: GridConfig, grid: GridTable, place: Place, buttons: Place) -> None:
    """Draw everything that is known; the answer, at its place, only of what has been measured."""
    advice = choose.advise(grid)
    best = choose.suggest(grid, advice, state.config().n_active or 2)
    if best is not None:
        with place:
            answer(f"Try K = {best.cell[0]} and L = {best.cell[1]}", best.reason)
        with buttons:
            _adopt(*best.cell)
    with st.container(key="beside"):
        left, right = st.columns([1.7, 1], gap="medium")
    with left, st.container(border=True):
        measures = {LIKELIHOOD: LIKELIHOOD, ERROR: ERROR}
        picture = _picture(grid, one_of("Fit to unseen rows", measures, "choose_measure"))
        heat_map(config, picture, best)
    with right, st.container(border=True):
        st.markdown("**What each component adds**")
        chart(plots.by_budget(picture, best and best.cell), "choose_curves")
    if best is not None:
        st.html(numbers(_numbers(grid, best.cell)))


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
        st.markdown(WHY_HELD_OUT)


def _picture(grid: GridTable, measure: str) -> plots.Picture:
    is_error = measure == ERROR
    values = (grid.error if is_error else grid.log_likelihood).mean(axis=-1)
    unit = "squared error per feature" if is_error else "nats per row"
    return plots.Picture(values, grid.components, grid.actives, unit, is_error)


def filling(grid: GridTable) -> None:
    """Draw the heat map of a grid that is being measured, or of one that would be."""
    k, active = state.config().k, state.config().n_active or 0
    now = (k, active) if k in grid.components and active in grid.actives else None
    chart(plots.heat_map(_picture(grid, LIKELIHOOD), now), "choose_live")
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


def _numbers(grid: GridTable, cell: Cell) -> list[Number]:
    """Return the suggested cell's likelihood, its gain over fixed components, and its error."""
    i, j = grid.components.index(cell[0]), grid.actives.index(cell[1])
    likelihood = float(grid.log_likelihood[i, j].mean())
    told = [(fixed(likelihood), f"nats per row at {cell[0]} and {cell[1]}")]
    more = choose.over_folds(choose.gain(grid)[i, j])
    share = choose.closed_on_average(grid)[i, j]
    if np.isfinite(more.mean):
        told.append((f"+{fixed(float(more.mean))}", f"nats over PCA with {cell[1]}"))
    if np.isfinite(share):
        told.append((percent(share), f"of what PCA with all {cell[0]} gains"))
    else:
        told.append((number(grid.error[i, j].mean()), "squared error per feature"))
    return told


Step = tuple[int, int, int]  # K, L and fold

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


def choose_tab(dataset: Dataset) -> None:
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
        filling(choose.table(config, stored(store, config)))

    told = "What is done is kept when you cancel."
    if kit.follow(config.id, "choose_cancel", told, heat_map):
        return
    measures = stored(store, config)
    table = choose.table(config, measures)
    left = [step for step in steps(config) if step not in measures]
    if left:
        with place:
            _say(config, left)
        with buttons:
            _start_grid(dataset, config, left)
    if np.isfinite(table.log_likelihood).any():
        draw(config, table, place, buttons)
    else:
        filling(table)
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


def _start_grid(dataset: Dataset, config: GridConfig, left: list[Step]) -> None:
    costs = estimate_grid(config, dataset.n_rows, dataset.n_features)
    takes = about(sum(costs[step[:2]] for step in left))
    begun = len(left) < len(steps(config))
    label = f"{'Go on' if begun else f'Compare {len(config.order())} choices'}, {takes}"
    spec = config.to_dict() | {"key": config.id}
    kit.job_button(label, "choose_start", "grid", config.id, spec)


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


WAYS = {"starts": "other random starts", "halves": "random halves of the rows"}
REPEATS = 8
MOST_PANELS = 6  # the fullest, that are told of
NEWS = 0.01  # nats per row; smaller gains over the fit in use are rounding and early stops


def is_stability_offered() -> bool:
    """Whether the model can be fitted again for this."""
    return state.config().model in MODELS


def section(dataset: Dataset, shown: Shown) -> None:
    """Draw the settings, the progress and the outcome for the K and L in use."""
    now = state.config()
    st.caption("The model in use, fitted again: components that return belong to the data.")
    gaps_note(dataset, "These fits, the reference among them,")
    config = _settings(now)
    if kit.follow(config.id, cancel="stability_cancel"):
        return
    stability = stored_stability(JournalStore(home(), STABILITY_FOLDER), config)
    if stability is None or len(stability.log_likelihoods) < config.repeats:
        _offer(dataset, config, now)
    if stability is None:
        return
    same = shown.config.parameters == config.parameters and dataset.n_rows <= config.max_rows
    if same:  # the reference is the fit on screen, so its components can be numbered as there
        numbered = stability.cosines[:, list(shown.numbering.order)]
        stability = stability._replace(cosines=numbered)
    _outcome(config, stability)
    if same and config.way == "halves":
        st.caption(panels(shown.fitted, stability))


def _settings(now: RunConfig) -> StabilityConfig:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        way = st.selectbox(
            "Fit again with",
            list(WAYS),
            format_func=WAYS.__getitem__,
            key="stability_way",
            width=250,
            persist_state="session",
        )
        repeats = st.number_input(
            "Times", 2, 100, REPEATS, key="stability_repeats", width=118, persist_state="session"
        )
    return StabilityConfig(
        dataset=now.dataset,
        preprocessing=now.preprocessing,
        model=now.model,
        parameters=by_em(now),
        way=way,
        repeats=int(repeats),
    )


def _offer(dataset: Dataset, config: StabilityConfig, now: RunConfig) -> None:
    rows = min(dataset.n_rows, config.max_rows)
    config_of_fit = RunConfig(now.dataset, now.preprocessing, now.model, config.parameters)
    seconds = (config.repeats + 1) * estimate_seconds(rows, dataset.n_features, config_of_fit)
    spec = config.to_dict() | {"key": config.id}
    label = f"Fit {config.repeats} times again, {about(seconds)}"
    kit.job_button(label, "stability_start", "stability", config.id, spec, primary=False)


def panels(fitted: FittedRun, stability: Stability) -> str:
    """Say of the fullest panels how well all their components return, on average over the fits."""
    fullest = [panel for panel in ranked(fitted.active) if panel.components][:MOST_PANELS]
    told = []
    for panel in fullest:
        least = float(stability.cosines[:, list(panel.components)].min(axis=1).mean())
        told.append(f"{title(panel.components)} {identification(least)} ({fixed(least)})")
    said = f"Panels in a half of the rows, by their least similar component: {', '.join(told)}."
    return f"{said} Interpret only identified panels."


def _outcome(config: StabilityConfig, stability: Stability) -> None:
    means = stability.cosines.mean(axis=0)
    kept = int((means >= IDENTIFIED).sum())
    ahead = float(stability.log_likelihoods.max() - stability.reference)
    level: Level = "good" if kept == len(means) else "doubtful"
    text = f"{kept} of {counted(len(means), 'component')} come back with {WAYS[config.way]}"
    st.html(chip(level, text))
    if config.way == "starts" and ahead > NEWS:
        st.caption(f"Another start ends {fixed(ahead)} nats per row higher: use more starts.")
    chart(plots.stability(stability.cosines, (ROUGHLY, IDENTIFIED)), "choose_stability")


PHRASES = {
    "noise": "noise per feature",
    "scale": "a scale per row",
    "number": "a learned number of components",
}
SHORT = {"noise": "noise", "scale": "scale", "number": "learned number"}
MOST_TICKS = 6
RIVALS = {
    "ppca": "Probabilistic PCA, {K}",
    "fa": "Factor analysis, {K}",
    "mixture": "Mixture of PPCA, {K} of {L}",
    "mixture_diagonal": "Mixture of factor analyzers, {K} of {L}",
    "common": "Mixture with shared loadings, {K}",
    "common_diagonal": "Shared loadings, noise per feature, {K}",
}
WHY = (
    "Every model is fitted to the same seven tenths of the rows and scored on the rest by its "
    "log-likelihood. Differences are taken row by row; a bar is one standard error. Features with "
    "less than 5% of the mean variance are left out for all models; a fit keeps them. "
    "The best variant is proposed where it "
    "leads all others by two standard errors; otherwise the one with the fewest parameters among "
    "those that are as good."
)


def which_model_tab(dataset: Dataset) -> None:
    """Draw the answer, its button, and all models; without them what starts the comparison."""
    config = config_of(state.config())
    store = JournalStore(home(), MODELS_FOLDER)
    asked = st.session_state.pop(KEYS.compare, False)  # by Explore
    if asked and len(stored_models(store, config)) < len(methods(config)):
        kit.begin("models", config.id, _spec(config))
    kept = "Models that have been measured are kept when you cancel."

    def so_far() -> None:
        lines = ranked_models(stored_models(store, config))
        if lines:
            st.html(models_chart(config, lines, None))

    if kit.follow(config.id, "models_cancel", kept, so_far):
        return
    fits = stored_models(store, config)
    lines = ranked_models(fits)
    advice = advise(lines) if len(fits) == len(methods(config)) else None
    if advice is None:
        answer("Which model?", "Eight variants of adaptive PPCA and six rivals, on rows held out.")
        _start_models(dataset, config, "Go on" if fits else "Compare 14 models")
        if lines:
            st.html(models_chart(config, lines, None))
    else:
        _answered(config, lines, advice)
        _closing(dataset, config, fits, lines, advice)
    gaps_note(dataset, "All models here")


def _spec(config: ModelsConfig) -> dict[str, Any]:
    return config.to_dict() | {"key": config.id}


def config_of(now: RunConfig) -> ModelsConfig:
    """Return the comparison at the K and L on screen, with its settings where they are aPPCA's."""
    chosen = now.parameters if now.model == "aPPCA" else {"n_components": now.k}
    wanted = suited("aPPCA", {**defaults("aPPCA"), **chosen, "inference": "em"})
    L, K = wanted["n_active"], int(wanted["n_components"])
    active = (K + 1) // 2 if L == LEARNED else int(L)
    config = ModelsConfig(now.dataset, now.preprocessing, wanted, K, active)
    return _last(config) if L == LEARNED else config


def _last(config: ModelsConfig) -> ModelsConfig:
    """Return the last comparison that differs in L alone, where there is one."""
    store = JournalStore(home(), MODELS_FOLDER)
    for name in store.names():
        with suppress(InputError, TypeError, KeyError, AttributeError):
            other = ModelsConfig.from_dict(store.config(name) or {})
            if replace(other, n_active=config.n_active).id == config.id:
                return other
    return config


def said(config: ModelsConfig, lines: list[Ranked], advice: ModelAdvice) -> tuple[str, str]:
    """Return the answer in a sentence, and what it rests on."""
    switches = [PHRASES[name] for name in advice.key.split("+") if name in PHRASES]
    listed = " and ".join([", ".join(switches[:-1])] * (len(switches) > 1) + switches[-1:])
    title = f"Use {listed}" if switches else "Keep the paper's model"
    chosen = next(line for line in lines if line.key == advice.key)
    if advice.key == PAPER:
        text = "No extension describes new rows clearly better."
    else:
        text = f"{_signed(chosen.nats)} nats a row over the paper's model"
        text += "." if advice.is_best else ", and as good as the best with fewer parameters."
    if advice.best_rival is not None:
        rival = name_of(advice.best_rival.key, config)
        gap = f"{fixed(abs(advice.lead), 1)} nats"
        if abs(advice.lead) <= CLEAR * advice.lead_error:
            text += f" Level with the best rival, {rival}."
        elif advice.lead > 0:
            text += f" Above all rivals: {gap} over {rival}."
        else:
            text += f" {rival} is {gap} above it, but has no shared components to look at."
    if "number" in advice.key:
        text += f" Rows then use 0 to {config.n_components} components, not {config.n_active}."
    return title, text


def name_of(key: str, config: ModelsConfig) -> str:
    """Return the name of a method."""
    if key in RIVALS:
        return RIVALS[key].format(K=config.n_components, L=config.n_active)
    if key in PHRASES:
        return PHRASES[key].removeprefix("a ").capitalize()
    names = [SHORT[name] for name in key.split("+") if name in SHORT]
    return ", ".join(names).capitalize() or "The paper's model"


def models_chart(config: ModelsConfig, lines: list[Ranked], advice: ModelAdvice | None) -> str:
    """Return all models as HTML: nats a row with standard errors, and numbers of parameters."""
    low = min(0.0, *(line.nats - line.error for line in lines))
    high = max(0.0, *(line.nats + line.error for line in lines)) or 1.0
    most = max(line.fit.n_parameters for line in lines)
    rows = []
    for heading, ours in (("Variants of adaptive PPCA", True), ("Rivals", False)):
        part = [line for line in lines if (line.key in VARIANTS) == ours]
        if part:
            sizes = f", K = {config.n_components}, L = {config.n_active}" if ours else ""
            heads = tag("span", words(heading + sizes))
            if ours:
                heads += _ticks(low, high) + tag("span", "nats a row") + tag("span", "parameters")
            rows.append(tag("div", heads, "ca-head"))
            rows += [_line(config, line, advice, (low, high - low), most) for line in part]
    return tag("div", "".join(rows), "ca-models")


def _ticks(low: float, high: float) -> str:
    """Return the numbers of the axis, at most six, as HTML."""
    unit = 10.0 ** np.floor(np.log10((high - low) / MOST_TICKS))
    step = next(unit * n for n in (1.0, 2.0, 2.5, 5.0, 10.0) if (high - low) / (unit * n) < 6.0)
    places = step * np.arange(np.ceil(low / step), np.floor(high / step) + 1)
    digits = max(0, -int(np.floor(np.log10(step) + 1e-9))) + (step / unit == 2.5)
    marks = "".join(
        tag("i", words(_signed(nats, digits)), style=f"left:{(nats - low) / (high - low):.2%}")
        for nats in places.tolist()
    )
    return tag("span", marks, "ca-ticks", **{"aria-hidden": "true"})


def _line(
    config: ModelsConfig,
    line: Ranked,
    advice: ModelAdvice | None,
    scale: tuple[float, float],
    most: int,
) -> str:
    def place(nats: float) -> str:
        return f"{(nats - scale[0]) / scale[1]:.2%}"

    ours = line.key in VARIANTS
    squares = "".join(tag("i", "", "ca-on" * (name in line.key)) for name in SWITCHES)
    name = tag("span", squares, "ca-switches", **{"aria-hidden": "true"}) + words(
        name_of(line.key, config)
    )
    if advice is not None and ours:
        name = button(name, "use", line.key, f"Use this model; {_facts(line)}")
        if line.key == advice.key:
            name += tag("b", "Best" if advice.is_best else "As good as the best", "ca-best")
        if _in_use(line.key, config.n_active):
            name += tag("b", "In use", "ca-best ca-used")
    else:
        name = tag("span", name, title=_facts(line))
    left, right = place(line.nats - line.error), place(line.nats + line.error)
    track = (
        tag("i", "", "ca-zero", style=f"left:{place(0.0)}")
        + tag("i", "", "ca-bar", style=f"left:{left};right:calc(100% - {right})")
        + tag("i", "", "ca-dot", style=f"left:{place(line.nats)}")
    )
    bar = tag("i", "", style=f"width:{line.fit.n_parameters / most:.0%}")
    cells = [
        tag("div", name),
        tag("div", track, "ca-axis"),
        tag("div", _signed(line.nats)),
        tag("div", tag("div", bar, "ca-share") + f"{line.fit.n_parameters:,}"),
    ]
    chosen = advice is not None and line.key == advice.key
    return tag("div", "".join(cells), " ".join(["ca-rival"] * (not ours) + ["ca-chosen"] * chosen))


def _facts(line: Ranked) -> str:
    parts = [f"{_signed(line.nats)} ± {fixed(line.error, 2)} nats", duration(line.fit.seconds)]
    return ", ".join([*parts, line.fit.note] if "stopped" in line.fit.note else parts)


def _signed(nats: float, digits: int = 1) -> str:
    text = fixed(nats, digits)
    return f"+{text}" if nats >= 0.5 * 10.0**-digits else text


def _answered(config: ModelsConfig, lines: list[Ranked], advice: ModelAdvice) -> None:
    answer(*said(config, lines, advice))
    with st.container(horizontal=True, gap="small"):
        st.button(
            "Use this",
            type="primary",
            key="models_use",
            on_click=guarded(_use),
            args=[advice.key, config.n_active],
            disabled=_in_use(advice.key, config.n_active),
        )
        with st.popover("Why?"):
            st.markdown(WHY)
    used = {"use": lambda key, _text: _use(key, config.n_active) if key in VARIANTS else None}
    acting(models_chart(config, lines, advice), "models_chart", used)


def _in_use(key: str, n_active: int) -> bool:
    now = state.config()
    wanted = variant_settings(key, n_active).items()
    return now.model == "aPPCA" and all(now.parameters.get(name) == value for name, value in wanted)


def _use(key: str, n_active: int) -> None:
    """Fit this variant with the K on screen."""
    if state.config().model != "aPPCA":
        state.set_model("aPPCA")
    state.set_parameters(inference="em", **variant_settings(key, n_active))


def _closing(
    dataset: Dataset,
    config: ModelsConfig,
    fits: dict[str, HeldOutFit],
    lines: list[Ranked],
    advice: ModelAdvice,
) -> None:
    chosen = next(line for line in lines if line.key == advice.key)
    facts = [(_signed(chosen.nats), f"± {fixed(chosen.error, 1)} nats a row, to the paper's model")]
    if advice.best_rival is not None:
        rival = advice.best_rival
        ratio = rival.fit.n_parameters / chosen.fit.n_parameters
        facts += [
            (_signed(advice.lead), f"± {fixed(advice.lead_error, 1)}, to the best rival"),
            (f"{fixed(ratio, 1)} ×", "as many parameters has that rival"),
        ]
    st.html(numbers(facts))
    seconds = sum(fit.seconds for fit in fits.values())
    judged = next(
        len(fit.log_likelihood) for fit in fits.values() if fit.log_likelihood is not None
    )
    learned = min(dataset.n_rows, config.max_rows) - judged
    st.caption(
        f"{counted(len(fits), 'model')} in {duration(seconds)}, fitted to {learned:,} rows and "
        f"scored on {judged:,}."
    )


def _start_models(dataset: Dataset, config: ModelsConfig, label: str) -> None:
    takes = about(estimate_models(config, dataset.n_rows, dataset.n_features))
    kit.job_button(f"{label}, {takes}", "models_start", "models", config.id, _spec(config))
