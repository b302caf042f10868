"""The page Explore: bar, canvas and drawer."""

from dataclasses import replace
from functools import partial
from itertools import chain
from math import comb
from typing import Any

import numpy as np
import streamlit as st

from appca import class_overlap
from appca.analysis.campaign import FitCampaign
from appca.analysis.choose import checked, sizes_of
from appca.analysis.compare import variant_settings
from appca.analysis.components import farthest
from appca.analysis.diagnostics import of_halves, worst
from appca.analysis.groups import COLOURS, MAP, TYPE, compare, sentence
from appca.canvas.panels import colour_choices
from appca.canvas.sheets import sample
from appca.data.dataset import Dataset
from appca.plots.style import Colour, label_colour, levels
from appca.runs import fit as fitting
from appca.runs.home import home
from appca.runs.run import MODELS, RunConfig
from appca.ui import STATIC, canvas, components, controls, fits, frame, kit, rows, settings, state
from appca.ui.controls import as_rule, leave_out_button, tools
from appca.ui.downloads import rows_popover
from appca.ui.kit import markdown, onward, press, preview_note, tabs, tag, words
from appca.ui.rows import sheet_of
from appca.ui.services import kept
from appca.words import counted, fixed, percent, shortened

Place = st.delta_generator.DeltaGenerator
IMAGES, A_LINE, MOST_BARS = 28, 7, 12


def _selection(dataset: Dataset, shown: fits.Shown, colouring: str) -> None:
    mask = state.get(dataset)
    rows = np.flatnonzero(mask)
    if not len(rows):
        st.markdown("**Nothing selected**")
        st.caption("Draw around points with the lasso, click a panel’s count, or use a rule.")
        if not shown.fitted.active.all():
            st.caption("Rows near 0 on a component use others: an empty middle is no gap.")
        tools(dataset, shown)
        return
    of_all = f"of {dataset.n_rows:,} rows, {percent(mask.mean())}"
    st.markdown(f"### {len(rows):,} :small[:gray[{of_all}]]")
    if dataset.image_shape is not None:
        chosen_images = rows[sample(len(rows), IMAGES)]
        with st.container(key="pictures"):
            alt = f"{len(chosen_images)} of the selected images"
            st.image(sheet_of(dataset, chosen_images, A_LINE), width="stretch", alt=alt)
    else:
        names = ", ".join(shortened(name, 24) for name in dataset.ids[rows[:IMAGES]])
        st.caption(markdown(f"{names}{', …' * (len(rows) > IMAGES)}"))
    choices = colour_choices(dataset)
    if colouring not in choices and not colouring.startswith(("feature:", TYPE)):
        colouring = next(iter(choices))
    chosen = canvas.coloured(f"{shown.key}-{colouring}", dataset, shown.fitted, colouring)
    labels = (label_colour(dataset, name) for name in dataset.labels)
    categories = (colour for colour in chain([chosen], labels) if colour.kind == "category")
    if (classes := next(categories, None)) is not None:
        st.caption(f"By {markdown(classes.name)}")
        st.html(class_bars(classes, mask))
    name = f"apart-{shown.key}-{state.token(dataset)}"
    comparison = kit.tried(name, lambda: compare(dataset, shown.fitted, mask))
    if comparison is not None:
        st.caption("Differences from the rest")
        st.markdown(markdown(sentence(comparison)))
    as_rule(dataset, shown, mask)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        rows_popover(dataset, shown, rows, key="rows")
        chosen_rows = counted(len(rows), "selected row")
        leave_out_button("Leave out", dataset, mask, chosen_rows, "leave_out")
        others = counted(dataset.n_rows - len(rows), "unselected row")
        leave_out_button("Fit only these", dataset, ~mask, others, "fit_only_these")
        onward("groups/differences", "Compare with the rest", ":material/compare_arrows:")
    tools(dataset, shown)


def class_bars(classes: Colour, mask: np.ndarray) -> str:
    """Return HTML bars with each class's number of selected rows, and its selected share."""
    codes, lines = np.asarray(classes.values), ""
    every = np.bincount(codes[codes >= 0], minlength=len(classes.names))
    counts = np.bincount(codes[(codes >= 0) & mask], minlength=len(classes.names))
    order = np.argsort(-counts, kind="stable")
    there, table = order[counts[order] > 0], levels(classes).table
    for code in there[:MOST_BARS]:
        width = f"width:{counts[code] / counts.max():.0%};background:{table[code]}"
        bar = tag("div", tag("div", "", style=width), "ca-track")
        said = f"{counts[code]:,} · {percent(counts[code] / every[code])}"
        lines += tag("b", words(classes.names[code])) + bar + tag("span", said)
    more = len(there) - MOST_BARS
    tail = tag("p", f"and {more} more", "ca-quiet") if more > 0 else ""
    return tag("div", lines, "ca-mix", title="count · share of the class") + tail


def _drawer(dataset: Dataset, shown: fits.Shown, colouring: str, trust: Any) -> None:
    count = int(state.get(dataset).sum())
    selection = f"Selection {count:,}" if count else "Selection"
    with st.container(key="drawer"):
        with st.container(key="drawer_tab"):
            tab = tabs({"components": "Components", "selection": selection, "point": "Point"})
        with st.container(key="drawer_body"):
            if colouring in COLOURS:
                st.caption(COLOURS[colouring].about)
            if colouring == MAP:
                st.caption(settings.trust_sentence(trust))
            if tab == "components":
                components.listing(dataset, shown)
            elif tab == "selection":
                _selection(dataset, shown, colouring)
            else:
                rows.body(dataset, shown)
                if st.toggle("Steer this row", key="steer_row", persist_state="session"):
                    components.steer(dataset, shown, rows.chosen(dataset))


def _resized(size: canvas.SizeMessage) -> None:
    now = state.config()
    changes = {now.name_of_k: size.k}
    st.session_state.pop(MOVED, None)  # a drag's last move, if its run was interrupted
    if size.active is not None and now.chosen_size is not None:
        changes["n_active"] = size.active
    if changes.items() <= now.parameters.items():
        return  # sizes are unchanged, so an imported or stopped fit stays
    if size.moving:
        st.session_state[MOVED] = state.with_parameters(**changes)
    else:
        state.set_parameters(**changes)


def _meaning(dataset: Dataset, k: int, active: int | None) -> str:
    row = "image" if dataset.image_shape else "row"
    if active is None:
        return f"Each {row} uses any number of the K = {k} components."
    if active >= k:
        return f"Each {row} uses all K = {k} components, as in PCA."
    alike, panels = "the same one" if active == 1 else f"the same {active}", comb(k, active)
    rough = f"{panels:,}" if panels < 10**6 else "more than a million"
    text = f"K = {k} components in all; each {row} uses the L = {active} that fit it best. "
    text += f"{row.capitalize()}s with {alike} share one of {rough} panels."
    return text if panels <= dataset.n_rows else f"{text} Most stay empty: try a smaller L."


def _bar(dataset: Dataset) -> tuple[Place, ...]:
    name = label = f"**{markdown(dataset.name)}**"
    if f"{dataset.n_rows:,}" not in dataset.name:
        label += f" :gray[{counted(dataset.n_rows, 'row')}]"
    with st.container(key="explore_bar", **kit.LINE):
        with st.popover(label, icon=":material/database:", key="bar_data", width="content"):
            st.markdown(f"{name}  \n{dataset.n_rows:,} rows × {dataset.n_features:,}")
            if gone := state.left_out(dataset):
                st.caption(markdown(f"Without {gone['why']}"))
                press("Put all rows back", "put_back", state.put_back, dataset)
            st.page_link("pages/data/data.py", label="Other data", icon=":material/add:")
        title = MODELS[state.config().model].title
        model = st.popover(title, icon=":material/tune:", key="bar_model", width="content")
        return model, st.container(width="content"), st.container(key="bar_controls")


def _controls(
    place: Place,
    dataset: Dataset,
    now: RunConfig,
    more: dict[str, Any],
    acts: canvas.Acts | None = None,
) -> None:
    most = max(fitting.most_components(now, dataset), now.k)  # the command line allows larger K
    hint, listed = _meaning(dataset, now.k, now.chosen_size), controls.is_listed(dataset)
    there: dict[str, Any] = {"colours": [], "colour": "", "views": [], "view": ""}
    there["sizes"] = {"k": now.k, "l": now.parameters.get("n_active"), "most_k": most, "hint": hint}
    there["columns"] = 0 if listed else dataset.n_features
    there["steps"] = [state.can_step(-1), state.can_step(1)]
    with place:
        canvas.draw_bar(there | more, acts or _acts(dataset, now.n_active), _resized)


def _views(scene: canvas.PageScene, active: int | None) -> tuple[dict[str, str], str, str]:
    there = scene.meta["layouts"]
    places = {"slices": "Map", "umap": "UMAP"} if "slices" in there else {"umap": "Map"}
    names = {canvas.BOTH: "Both"} if "pairs" in there else {}
    names |= {key: there[key]["title"] for key in canvas.VIEWS if key in there} | places
    wanted = st.session_state.get(controls.view_key(active))
    view = wanted if wanted in names else next(iter(names))
    maps = [name for name in ("slices", "umap", "pca") if name in there]
    if view == canvas.BOTH:
        return names, view, "pairs"
    beside = scene.meta["first"] if view in maps else next(iter(maps), "")
    return names, view, beside if st.session_state.get(SPLIT) else ""


SPLIT, MOVED = "split", "sizes_moved"
LEAST_CHECKED, FEW_GAPS = 100, 0.01  # rows and share of gaps to check when idle
MOST_PRODUCTS = 5e9  # in distances of all rows: about 0.5 s
SHORT = {"models": 30.0, "stability": 30.0, "grid": 120.0}  # seconds of a check, if estimated high
HELD_OUT = "On 30% of at most 3,000 rows, by features that vary: other nats than of the whole fit."
HEIGHT = "calc(100vh - var(--bar) - var(--status) - var(--below) - var(--note))"
STYLE = STATIC / "explore.css"


def draw() -> None:
    """Draw the page."""
    dataset = state.current_dataset()
    st.html(STYLE)
    with st.container(key="explore_title"):
        st.title("Explore", anchor=False)
    model, tune, place = _bar(dataset)
    try:
        _fit(dataset, tune, place)
    except state.TOLD:
        settings.of_model(dataset, model)
        raise
    settings.of_model(dataset, model)  # last, because it is half of the page


def _fit(dataset: Dataset, tune: Place, place: Place) -> None:
    before = fits.drawn_before()
    moved: RunConfig | None = st.session_state.pop(MOVED, None)
    now = moved or state.config()
    try:
        with st.container(key="fit_wait"):
            coarse = None if moved else fits.coarse()
            shown = coarse or (moved and fits.while_moving(moved)) or kit.shown() or before
    except state.TOLD:
        _controls(place, dataset, now, {})
        raise
    if shown is None:
        _controls(place, dataset, now, {})
        return
    embedding = settings.stored_map(dataset, shown.config)
    trust = None if embedding is None else embedding.trust
    colours = controls.offers(dataset, shown.fitted, trust)
    colouring = controls.chosen(dataset, [key for key, *_ in colours], len(shown.fitted.components))
    scene = canvas.scene_of(dataset, shown, colouring, embedding)
    names, view, beside = _views(scene, shown.config.n_active)
    views: dict[str, Any] = {"views": list(names.items()), "view": view}
    views |= {} if view == canvas.BOTH else {"beside": bool(beside)}
    acts = _acts(dataset, shown.config.n_active)
    _controls(place, dataset, now, views | {"colours": colours, "colour": colouring}, acts)
    if view in ("umap", "features"):
        with tune.popover("", icon=":material/map:", key="bar_map", help="Settings of the map"):
            settings.map_settings(dataset, shown.fitted, view)
    layouts, first = scene.meta["layouts"], scene.meta["first"]
    layout = "subspaces" if view == canvas.BOTH else view if view in layouts else first
    came, held = fits.came(shown), rows.held(dataset)
    named = [(kept.name, int(kept.mask.sum())) for kept in state.named(dataset)]
    near = [] if held is None else rows.near_rows(dataset, shown, held).tolist()
    options: dict[str, Any] = {"coarse": coarse is not None, "beside": beside, "near": near}
    options |= {"held": -1 if held is None else held, "selections": named}
    with st.container(key="explore_canvas"):
        canvas.draw(
            *(dataset, scene, layout, colouring),
            height=HEIGHT,
            options=options | ({"came": came} if came else {}),
            on_point=partial(rows.hold, dataset),
            acts=acts,
        )
    if coarse is not None:
        st.rerun()  # the rest of the page waits for the fit
    if view == "umap" and layout != view:
        with st.container(key="map_offer"):
            settings.offer(dataset, shown)
    if not shown.fitted.active.any():
        st.caption("No row uses any component: the model treats all but the centre as noise.")
    if moved is not None:
        st.session_state[frame.SHOWN] = shown
    with st.session_state[kit.NOTE]:
        is_latest = moved is None and shown.config == state.config()
        if is_latest and not preview_note(shown) and not _far_row(dataset, shown):
            _offer(dataset, shown)
    _drawer(dataset, shown, colouring, trust)


def _far_row(dataset: Dataset, shown: fits.Shown) -> bool:
    row, share, dominates = kept(f"far-{shown.key}", lambda: farthest(shown.fitted))
    if not dominates:
        return False
    name = shortened(dataset.ids[row], 30)
    st.markdown(f"**{markdown(name)}** has {percent(share)} of the variance in the components")
    press("Look at it", "far_look", rows.hold, dataset, row)
    leave_out_button("Leave it out", dataset, np.array([row]), f"row {name}", "far_leave_out")
    return True


def _offer(dataset: Dataset, shown: fits.Shown) -> None:
    """Offer row scales, or K and L, if held-out rows prefer them; else say how far classes mix."""
    now, can = shown.config, MODELS[shown.config.model].can
    is_usual = now.model == "aPPCA" and not now.is_sampled and now.n_active is not None
    few = dataset.n_missing <= FEW_GAPS * dataset.X.size  # they have the features' means here
    is_usual = is_usual and few and can.is_exact(now.k, now.n_active or now.k)
    checked = is_usual and dataset.n_rows >= LEAST_CHECKED
    if not checked or not (_scales(dataset, now) or _sizes(dataset, now)):
        _mixing(dataset, shown)


def _mixing(dataset: Dataset, shown: fits.Shown) -> None:
    """Say how far classes mix."""
    from appca.ui import groups  # imported after the first picture

    is_quick = dataset.n_rows * dataset.X.size <= MOST_PRODUCTS
    for of in controls.classes(dataset) if is_quick and len(groups.nearest(dataset, shown)) else ():
        table = class_overlap.mixing(of.codes, groups.nearest(dataset, shown), len(of.names))
        st.markdown(markdown(class_overlap.sentence(table, of.title, of.names)))
        onward("groups", "Groups")


def _is_settled(dataset: Dataset, kind: str, check: FitCampaign, most: int | None = None) -> bool:
    """Whether a check's first steps are stored or take long; else measure them when idle."""
    from appca.jobs.tasks import estimate  # imported after the first picture

    is_stored = check.records(home()).keys() >= {*check.steps()[:most]}
    is_long = is_stored or sum(estimate(check, dataset)[:most]) > SHORT[kind]
    if is_long or check.id in fits.declined():
        return True
    fits.check_ahead(kind, check.id, check.to_dict() | ({"most": most} if most else {}))
    return False


def _sizes(dataset: Dataset, now: RunConfig) -> bool:
    """Offer K and L that pass the checks on halves of the rows if those of the fit do not."""
    halves, no = fitting.halves_of(now), f"{dataset.digest} sizes"
    if halves is None or no in fits.declined() or not _is_settled(dataset, "stability", halves):
        return False
    outcome = halves.outcome(home())
    if outcome is None or worst(of_halves(outcome)) == "good":
        return False
    grid = fitting.grid_of(now, fitting.usual_grid(dataset, now))
    if not _is_settled(dataset, "grid", grid) or (advised := checked(grid, home())) is None:
        return False
    (k, active), sizes = advised[0], sizes_of(advised[0], now.model)
    other = fitting.halves_of(replace(now, parameters=now.parameters | sizes))
    if is_offered := other is not None and worst(of_halves(other.outcome(home()))) == "good":
        st.markdown(f"K = {k}, L = {active} pass the checks on halves of the rows, unlike this fit")
        press(f"Use K = {k}, L = {active}", "sizes", partial(state.set_parameters, **sizes))
        press("Not now", "sizes_not", fits.declined().add, no, type="tertiary")
    return is_offered


def _scales(dataset: Dataset, now: RunConfig) -> bool:
    check, no = fitting.models_of(now), f"{dataset.digest} scales"
    if not now.fits_around_gaps or dataset.n_missing or no in fits.declined():
        return False
    if not _is_settled(dataset, "models", check, 3) or len(fitting.scales_over(dataset, now)) < 2:
        return False
    is_known = all(_is_settled(dataset, "stability", of) for of in fitting.both_halves(now))
    if is_offered := is_known and len(lines := fitting.scales_over(dataset, now)) > 1:
        best, fitted = lines
        digits = 2 if best.nats < fitted.nats + 1 else 1
        held_out = (np.asarray(line.fit.log_likelihood) for line in (best, fitted))
        then, before = (fixed(values.mean(), digits) for values in held_out)
        text = "A scale per row describes varying features of held-out rows better"
        st.markdown(f"{text}: {then}, not {before} nats", help=HELD_OUT)
        use = partial(state.set_parameters, **variant_settings(best.key, now.n_active or now.k))
        press("Use row scales", "variant", use)
        press("Not now", "variant_not", fits.declined().add, no, type="tertiary")
    return is_offered


def _acts(dataset: Dataset, active: int | None) -> canvas.Acts:
    """Return the actions that the bar and the canvas can request."""
    here = st.session_state

    def select(name: str) -> None:
        masks = {saved.name: saved.mask for saved in state.named(dataset)}
        if name in masks:
            state.put(dataset, masks[name])

    def leave_out(name: str) -> None:
        rows = state.get(dataset)
        if rows.any():
            gone = counted(int(rows.sum()), f"{'' if name else 'selected '}row")
            state.leave_out(dataset, rows, f"{gone} of {name}" if name else gone)

    return {
        "leave_out": leave_out,
        "colour": partial(controls.colour_by, dataset),
        "view": partial(here.__setitem__, controls.view_key(active)),
        "beside": lambda _: here.update({SPLIT: not here.get(SPLIT)}),
        "named": select,
        "class": partial(state.rename_class, dataset.digest),
        "undo": lambda _: state.undo(),
        "redo": lambda _: state.redo(),
    }
