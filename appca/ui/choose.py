"""Tabs of the page Check: Choose K and L, stability, Which model, and hidden cells."""

from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from appca.analysis import choose, compare, tables
from appca.analysis.campaign import CLEAR, Campaign
from appca.analysis.choose import MODELS, GridConfig, GridTable
from appca.analysis.compare import MEANS, METHODS, MaskedConfig, ModelAdvice, ModelsConfig, Ranked
from appca.analysis.compare import MOST_ROWS as MOST_COMPARED
from appca.data.dataset import Dataset
from appca.jobs.tasks import estimate
from appca.plots import check as plots
from appca.runs.fit import grid_of, models_of, most_components, scales_over, scope_of, usual_grid
from appca.runs.home import home
from appca.runs.run import MODELS as ALL_MODELS
from appca.runs.run import defaults
from appca.ui import kit, state
from appca.ui.downloads import save_button, stem_of
from appca.ui.fits import Shown
from appca.words import InputError, about, counted, duration, fixed, percent

Place = st.delta_generator.DeltaGenerator
Look = dict[str, Any]
ADDRESS = "grid"  # address parameter with the id of the grid
MOST_K = 100
LINE: Look = {"horizontal": True, "vertical_alignment": "bottom", "gap": "small"}
HELP = {
    "n_folds": "Each fold of the rows is held out once. More folds detect smaller differences.",
    "max_rows": "If there are more rows, a random sample is used.",
}
SCALED = "A scale per row describes held-out rows clearly better. Without scales:"
WHY_HELD_OUT = (
    "Each K and L is fitted to a part of the rows and judged by the log-likelihood of the others. "
    "L is the smallest to which a larger one adds at most a tenth of the gain over no components. "
    "K is the smallest within one standard error of the best; at the edge, with 90% of its gain. "
    "If these have over six panels, or components that change with the rows, the best choice "
    "without these flaws comes first. It needs half of the gain, and a clear one over PCA."
)


def start_button(dataset: Dataset, config: Campaign, kind: str, label: str, done: int = 0) -> None:
    """Draw the button that starts or resumes a campaign, with the estimated time."""
    seconds = sum(estimate(config, dataset)[done:])
    spec, label = config.to_dict() | {"key": config.id}, f"{label}, {about(seconds)}"
    kit.job_button(label, f"{kind}_start", kind, config.id, spec)


def is_offered() -> bool:
    """Whether the model has a grid; if not, explain this and offer another model."""
    if state.config().model in MODELS:
        return True
    kit.answer("Choosing L needs adaptive PPCA or adaptive factor analysis", level="unknown")
    with st.container(horizontal=True):
        for other in MODELS:
            title = ALL_MODELS[other].title.lower().replace("ppca", "PPCA")
            kit.press(f"Switch to {title}", f"choose_model_{other}", state.set_model, other)
    return False


def choose_tab(dataset: Dataset) -> None:
    """Draw the answer, and the grid of K and L below it."""
    place = st.container()
    with st.container(horizontal=True, gap="small"):
        buttons = st.container(horizontal=True, gap="small", width="content")
        with st.popover("Change grid", icon=":material/tune:"):
            config = _settings(dataset)
    if config is not None:
        _grid(dataset, config, place, buttons)


def _settings(dataset: Dataset) -> GridConfig | None:
    now = state.config()
    if dataset.n_rows < 4:
        st.info(f"A grid needs at least 4 rows; these data have {dataset.n_rows}.")
        return None
    scope = scope_of(now)
    if f"choose_k_to-{scope}" not in st.session_state:
        for name, value in usual_grid(dataset, now, st.query_params.get(ADDRESS)).items():
            st.session_state[f"choose_{name}-{scope}"] = value

    numbers = dict[str, int]()

    def ask(label: str, name: str, least: int, most: int) -> None:
        key = f"choose_{name}-{scope}"
        st.session_state[key] = min(max(int(st.session_state[key]), least), most)
        look: Look = {"width": 118, "help": HELP.get(name), "persist_state": "session"}
        numbers[name] = int(st.number_input(label, least, most, key=key, **look))

    rows = min(dataset.n_rows, int(st.session_state[f"choose_max_rows-{scope}"]))
    train = rows - -(-rows // int(st.session_state[f"choose_n_folds-{scope}"]))
    most = min(most_components(now, dataset), MOST_K, train - 1)
    with st.container(**LINE):
        ask("K from", "k_from", 1, most)
        ask("to", "k_to", 1, most)
        ask("step", "k_step", 1, most)
    with st.container(**LINE):
        ask("L from", "l_from", 1, most)
        ask("to", "l_to", 1, most)
    with st.container(**LINE):
        ask("Folds", "n_folds", 2, min(20, dataset.n_rows))
        ask("Maximum rows", "max_rows", 4, 10_000_000)
    try:
        return grid_of(now, numbers)
    except InputError as error:
        st.error(kit.markdown(str(error)))
        return None


def _grid(dataset: Dataset, config: GridConfig, place: Place, buttons: Place) -> None:
    st.query_params[ADDRESS] = config.id
    told, live = "Finished fits are kept if you cancel.", partial(_draw_live, config)
    if kit.follow(config.id, "choose_cancel", told, live):
        return
    measured, steps = config.records(home()), config.steps()
    table, done = choose.table(config, measured), len(measured)
    compared = int(np.isfinite(table.log_likelihood).all(axis=-1).sum())
    if done < len(steps):
        with place:
            if not compared:
                kit.answer("Which K and L?", "Each choice is judged by held-out rows.")
        with buttons:
            n = counted(len(steps) - done, "fit")
            label = f"Continue, {n} left" if done else f"Compare {len(config.cells)} choices by {n}"
            start_button(dataset, config, "grid", label, done)
    if compared:
        others = len(config.cells) - compared if done < len(steps) else 0
        _draw(config, table, place, buttons, others, len(scales_over(dataset, state.config())) > 1)
    else:
        live()
    out = sum(k >= L for k in config.components for L in config.actives) - len(config.cells)
    if out:
        st.caption(f"{counted(out, 'choice')} left out: an exact fit would need too many supports.")
    if done == len(steps):
        seconds = duration(sum(record[-1] for record in measured.values()))
        of = f"{min(dataset.n_rows, config.max_rows):,} rows, {config.n_folds} folds"
        st.caption(f"{counted(done, 'fit')} in {seconds} on {of}")


def _draw(
    config: GridConfig, grid: GridTable, place: Place, buttons: Place, others: int, scaled: bool
) -> None:
    advised = choose.checked(config, home())
    assert advised is not None  # at least one cell is measured
    cell, best, text = advised
    (k, active), (more, error) = cell, choose.gain(grid, cell)
    title, doubt = f"Try K = {k} and L = {active}", "no choice here" in text
    text += " L = K is PCA." * (k == active)
    title = "Use row scales, then compare again" if scaled else title
    title = f"No choice is free of flaws: try K = {k}, L = {active} with care" if doubt else title
    title = "No choice has components that return in other rows" if "that return" in text else title
    text = f"{SCALED} K = {k} and L = {active}. {text}" if scaled else text
    if k > active and more <= CLEAR * error:
        how = "may do as well" + " or better" * (more < 0)
        how = "does better" if more < -CLEAR * error else how
        text += f" But PCA with {active} {how} on unseen rows."
    if others:
        title = f"So far K = {k} and L = {active}, of {len(config.cells) - others} choices compared"
        text = f"{others} other choices, some of them larger, are not fitted yet: go on first."
    with place:
        kit.answer(title, text, "doubtful" if doubt and not others else None)
    with buttons:
        if scaled and st.button("Use row scales", "choose_scales", type="primary"):
            _explore(**compare.variant_settings(compare.ROW_SCALES, state.config().n_active or k))
        if not others:
            _adopt(cell, "adopt", "secondary" if scaled or doubt else "primary")
        if cell != best and not others:
            _adopt(best, "largest", "secondary")
        with st.popover("Why?"):
            st.markdown(WHY_HELD_OUT)
    with st.container(key="beside"):
        left, right = st.columns([1.7, 1], gap="medium")
    with left, st.container(border=True):
        st.markdown("**Fit to unseen rows**")
        picture = _picture(grid)
        look: Look = {"on_select": "rerun", "selection_mode": "points"}
        look |= {"config": {"displayModeBar": False}, "key": f"choose_map-{config.id}"}
        clicked: Any = st.plotly_chart(plots.heat_map(picture, cell), **look)
        st.caption("Outlined: suggested. Click a cell to see it in Explore.")
    with right, st.container(border=True):
        st.markdown("**What each component adds**")
        kit.chart(plots.by_budget(picture, cell), "choose_curves")
    st.html(kit.numbers(_facts(grid, cell, config)))
    for point in clicked["selection"]["points"]:
        k, active = map(int, point["customdata"][:2])
        _explore(n_components=k, n_active=active)


def _facts(grid: GridTable, cell: choose.Cell, config: GridConfig) -> list[tuple[str, str]]:
    (k, active), at = cell, (grid.components.index(cell[0]), grid.actives.index(cell[1]))
    nats = fixed(grid.log_likelihood[at].mean())
    too = " and row scales" * (config.parameters.get("row_scale") == "learned")
    told = [(nats, f"nats per row at {k} and {active}, fitted to other folds")]
    for other, of_k in ((f"{active}{too}", 0), (f"{k}{too}", 1)):
        mean, its_error = choose.gain(grid, cell, of_k)
        if np.isfinite(mean) and k > active:
            told.append((f"{_signed(mean)} ± {fixed(its_error)}", f"nats over PCA with {other}"))
    return told


def _adopt(cell: choose.Cell, key: str, kind: str) -> None:
    (k, active), now = cell, state.config()
    look: Look = {"type": kind, "disabled": (now.k, now.n_active) == cell}
    if st.button(f"Adopt {k} and {active}", f"choose_{key}", **look):
        _explore(**choose.sizes_of(cell, now.model))


def _explore(**parameters: Any) -> None:
    state.set_parameters(**parameters)
    st.switch_page("pages/explore/explore.py")


def _picture(grid: GridTable) -> plots.Picture:
    values, behind = grid.log_likelihood.mean(axis=-1), choose.behind(grid.log_likelihood)
    return plots.Picture(values, grid.components, grid.actives, "nats per row", behind)


def _draw_live(config: GridConfig) -> None:
    grid = choose.table(config, config.records(home()))
    k, active = state.config().k, state.config().n_active or 0
    now = (k, active) if k in grid.components and active in grid.actives else None
    kit.chart(plots.heat_map(_picture(grid), now), "choose_live")
    st.caption(f"{'Outlined: now. ' if now else ''}Each cell gets the likelihood of held-out rows.")


PHRASES = {"noise": "noise per feature", "scale": "a scale per row"}
PHRASES |= {"number": "a learned number of components", "variance": "a variance per component"}
SHORT = {"noise": "noise", "scale": "scale", "number": "learned number"}
RIVALS = {
    "ppca": "Probabilistic PCA, {K}",
    "fa": "Factor analysis, {K}",
    "mixture": "Mixture of PPCA, {K} of {L}",
    "mixture_diagonal": "Mixture of factor analyzers, {K} of {L}",
    "common": "Mixture with shared loadings, {K}",
    "common_diagonal": "Shared loadings, noise per feature, {K}",
    "gaussian": "Gaussian mixture, diagonal",
    "gaussian_full": "Gaussian mixture, full covariances",
}
WHY = (
    "Every model is fitted to the same seven tenths of the rows and scored on the rest, without "
    "features that hardly vary. The best variant is proposed if it leads by two standard errors, "
    "not by a single row or by noise at its floor; else the first of its equals: the paper's "
    "model, a scale per row, the fewest parameters."
)


def which_model_tab(dataset: Dataset) -> None:
    """Draw the comparison of models, or the button that starts it."""
    config, kept = models_of(state.config()), "Finished models are kept if you cancel."

    def so_far() -> None:
        lines = compare.ranked_models(config.measured(home()))
        if lines:
            _models_chart(config, lines, None)

    if kit.follow(config.id, "models_cancel", kept, so_far):
        return
    fits = config.measured(home())
    lines = compare.ranked_models(fits)
    advice = compare.advise(lines) if len(fits) == len(METHODS) else None
    if advice is None:
        rivals = "Nine variants of adaptive PPCA and eight rivals, on rows held out."
        kit.answer("Which model?", rivals)
        label = "Continue" if fits else f"Compare {len(METHODS)} models"
        start_button(dataset, config, "models", label)
        so_far()
    else:
        _answered(dataset, config, fits, lines, advice)
    kit.gaps_note(dataset, "All models here")


def _said(config: ModelsConfig, advice: ModelAdvice) -> tuple[str, str]:
    chosen, rival = advice.chosen, advice.rival
    switches = [PHRASES[name] for name in chosen.key.split("+") if name in PHRASES]
    listed = " and ".join([", ".join(switches[:-1])] * (len(switches) > 1) + switches[-1:])
    title = f"Use {listed}" if switches else "Keep the paper's model"
    if chosen.key == compare.PAPER:
        text = "No extension describes new rows clearly better."
    else:
        text = f"{_signed(chosen.nats)} nats per row over the paper's model"
        text += "." if advice.is_best else ", and as good as the best of the variants."
    if rival is not None:
        name, gap = _name_of(rival.key, config), f"{fixed(abs(advice.lead), 1)} nats"
        if abs(advice.lead) <= CLEAR * advice.lead_error:
            text += f" Level with the best rival, {name}."
        elif advice.lead > 0:
            text += f" Above all rivals: {gap} over {name}."
        else:
            rest = "has no shared components to look at"
            rest = "each row uses all its components" if rival.key in ("ppca", "fa") else rest
            text += f" {name} is {gap} above it, but {rest}."
        if rival.flaws:
            text += f" The result of {name} is unreliable: {', '.join(rival.flaws)}."
    if "number" in chosen.key:
        text += f" Rows then use 0 to {config.n_components} components, not {config.n_active}."
    if chosen.flaws:
        text += f" Its result is unreliable: {', '.join(chosen.flaws)}."
    return title, text


def _name_of(key: str, config: ModelsConfig) -> str:
    if key in RIVALS:
        return RIVALS[key].format(K=config.n_components, L=config.n_active)
    if key in PHRASES:
        return PHRASES[key].removeprefix("a ").capitalize()
    names = [SHORT[name] for name in key.split("+") if name in SHORT]
    return ", ".join(names).capitalize() or "The paper's model"


def _models_chart(config: ModelsConfig, lines: list[Ranked], advice: ModelAdvice | None) -> None:
    names = {line.key: _name_of(line.key, config) for line in lines}
    labels = {line.key: f"{names[line.key]} {_signed(line.nats)}" for line in lines}
    if advice is not None:
        labels[advice.chosen.key] = f"<b>{labels[advice.chosen.key]}</b>"
    nats = {labels[line.key]: (line.nats, line.error) for line in lines}
    texts = [f"{line.fit.n_parameters:,} parameters" for line in lines]
    ours = [line.key in compare.VARIANTS for line in lines]
    kit.chart(plots.nats_of(nats, texts, ours), "models_chart")
    sizes = f"K = {config.n_components}, L = {config.n_active}"
    told = f"Blue: variants of adaptive PPCA, {sizes}. Grey: rivals. Whisker: one standard error."
    doubts = [f"{names[line.key]}, {'; '.join(line.flaws)}" for line in lines if line.flaws]
    told += f" Doubtful: {'. '.join(doubts)}." if doubts else ""
    st.caption(kit.markdown(told))


def _signed(nats: float, digits: int = 1) -> str:
    text = fixed(nats, digits)
    return f"+{text}" if nats >= 0.5 * 10.0**-digits else text


def _answered(
    dataset: Dataset,
    config: ModelsConfig,
    fits: dict[str, compare.RivalProjection],
    lines: list[Ranked],
    advice: ModelAdvice,
) -> None:
    kit.answer(*_said(config, advice))
    chosen, rival, now = advice.chosen, advice.rival, state.config()
    keys = [line.key for line in lines if line.key in compare.VARIANTS]
    settings = {key: compare.variant_settings(key, config.n_active) for key in keys}

    def in_use(key: str) -> bool:
        return now.model == "aPPCA" and settings[key].items() <= now.parameters.items()

    def use(key: str) -> None:
        if now.model != "aPPCA":
            state.set_model("aPPCA")
        state.set_parameters(inference="em", **settings[key])

    names = {key: _name_of(key, config) + ", in use" * in_use(key) for key in keys}
    with st.container(horizontal=True, gap="small"):
        look: Look = {"key": f"models_variant-{config.id}", "label_visibility": "collapsed"}
        look |= {"index": keys.index(chosen.key), "format_func": names.__getitem__, "width": 330}
        key = st.selectbox("Variant", keys, **look)
        kit.press("Use this", "models_use", use, key, type="primary", disabled=in_use(key))
        with st.popover("Why?"):
            st.markdown(WHY)
    _models_chart(config, lines, advice)
    lead = f"± {fixed(chosen.error, 1)} nats per row over the paper's model"
    facts = [(_signed(chosen.nats), lead)]
    if rival is not None:
        lead = f"± {fixed(advice.lead_error, 1)}, to the best rival"
        facts.append((_signed(advice.lead), lead))
    st.html(kit.numbers(facts))
    seconds = duration(sum(fit.seconds for fit in fits.values()))
    judged = len(np.asarray(chosen.fit.log_likelihood))
    learned = min(dataset.n_rows, MOST_COMPARED) - judged
    text = f"{counted(len(fits), 'model')} in {seconds}, fitted to {learned:,} rows and "
    st.caption(f"{text}scored on {judged:,}.")
    missing = [(key, fit.note) for key, fit in fits.items() if fit.log_likelihood is None]
    if missing:
        notes = "; ".join(f"{_name_of(key, config)}, {note}" for key, note in missing)
        st.caption(kit.markdown(f"Without a density: {notes}."))


WHY_HIDDEN = "Some known cells are hidden and predicted by each method: root mean squared error, "
WHY_HIDDEN += "in units after preprocessing. Nearest rows takes the mean of 15 similar rows."


def hidden_cells(dataset: Dataset, shown: Shown) -> None:
    """Draw the comparison of methods on hidden cells."""
    now = shown.config
    if not shown.fitted.preprocessing.takes_gaps or not now.fits_around_gaps:
        text = "Choose PPCA or adaptive PPCA by EM, unextended, and preprocessing that allows gaps."
        kit.answer("This fit cannot leave out cells", text, "unknown")
        return
    parameters = now.parameters
    if now.model == "PPCA":
        parameters = defaults("aPPCA") | {"n_components": now.k, "n_active": now.k}
    config = MaskedConfig(now.dataset, now.preprocessing, "aPPCA", parameters)
    if not kit.follow(config.id, cancel="masked_cancel"):
        _hidden(dataset, config)
    if dataset.missing is None:
        return
    share = percent(dataset.n_missing / dataset.X.size, 1)
    st.markdown(f"**{counted(dataset.n_missing, 'missing cell')}** in the data, {share}.")
    if shown.fitted.imputed is not None:
        of, file = (dataset, shown.fitted.imputed), stem_of(dataset.name)
        if n := tables.far_fills(*of):
            st.caption(f"Filled with values outside of all observed ones of the column: {n:,}.")
        made = partial(tables.filled_csv, *of)
        save_button("Save the data, filled by the model", made, f"{file}-filled.csv", key="filled")


def _hidden(dataset: Dataset, config: MaskedConfig) -> None:
    errors, names = config.errors(home()), config.methods
    if errors:
        said, level = verdict(config, errors)
        kit.answer(said, level=level)
        means = {key: float(values.mean()) for key, values in errors.items()}
        ranked = sorted(errors, key=means.__getitem__)
        kit.chart(plots.hidden_errors({names[key]: errors[key] for key in ranked}), "hidden_errors")
        with st.popover("Why?"):
            st.markdown(WHY_HIDDEN)
    else:
        told = f"{percent(compare.SHARE)} of the cells are hidden and predicted, "
        kit.answer("Can it predict hidden cells?", f"{told}{counted(compare.REPEATS, 'time')}.")
    done = sum(map(len, errors.values()))
    if done < len(config.steps()):
        start_button(dataset, config, "masked", f"Compare {len(names)} methods", done)


def verdict(config: MaskedConfig, errors: dict[str, np.ndarray]) -> tuple[str, kit.Level]:
    """Name the method that is best by two standard errors; "good" if it is the model's own."""
    means = {method: float(values.mean()) for method, values in errors.items()}
    first, *others = sorted(errors, key=means.__getitem__)
    ours = compare.OWN if compare.OWN in errors else compare.EVERY
    level: kit.Level = "doubtful" if means[ours] < means.get(MEANS, np.inf) else "bad"
    tied, names = [first], config.methods
    for other in others:
        n = min(len(errors[first]), len(errors[other]))
        left = errors[other][:n] - errors[first][:n]
        if n < 2 or left.mean() <= CLEAR * left.std(ddof=1) / np.sqrt(n):
            tied.append(other)
    level = "good" if ours in tied else level
    if tied[1:]:
        return f"Equally good at hidden cells: {', '.join(map(names.__getitem__, tied))}", level
    if first == next(iter(names)):
        return "The model predicts hidden cells best", level
    if first == MEANS:
        return "Nothing predicts hidden cells better than the column means", level
    return f"Better at hidden cells than the model: {names[first].lower()}", level
