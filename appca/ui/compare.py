"""The fit versus PCA and other fits: two fits side by side, and the neighbours that they keep."""

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from appca.analysis.compare import ComponentPair, matched, moves
from appca.analysis.components import in_data_space
from appca.analysis.fitted import FittedRun
from appca.data.dataset import Dataset
from appca.jobs.tasks import QualityConfig
from appca.plots.check import neighbours_kept
from appca.runs.fit import fit_run, most_components
from appca.runs.home import home
from appca.runs.run import RunConfig
from appca.runs.store import Run
from appca.ui import canvas, choose, controls, fits, kit, services, state
from appca.ui.fits import Shown, of_run
from appca.words import InputError, about, counted, percent

if TYPE_CHECKING:
    import pandas as pd

Line = dict[str, Any]  # a method's results, from `appca.jobs.tasks.measured`
ADDRESS = "with"  # address parameter with the id of the other run


def _choose(shown: Shown) -> Run | None:
    now, made = shown.config, _variations(shown)
    every = (run for run in services.runs().list() if run.config.dataset == now.dataset)
    stored = {run.id: run for run in every if run.id != now.id}
    names = {config.id: label for label, config in made.items() if config.id != now.id}
    names |= {run.id: f"{_named(run)} · {run.id[:6]}" for run in stored.values()}
    if not names:
        return None
    key = f"compare-{now.dataset[:8]}-{now.id}"
    if st.session_state.get(key) not in names:
        asked = st.query_params.get(ADDRESS)
        st.session_state[key] = asked if asked in names else next(iter(names))
    look: choose.Look = {"format_func": names.__getitem__, "key": key, "width": 340}
    chosen = st.query_params[ADDRESS] = st.selectbox("Compare with", list(names), **look)
    if chosen in stored or kit.follow(chosen):
        return stored.get(chosen)
    config = made[names[chosen]]
    quick = fits.is_quick(config) and not config.is_sampled
    if quick and fits.seconds(config) <= fits.LIVE_SECONDS:
        fitted = fit_run(services.dataset(now.dataset), config)
        with suppress(InputError):  # the disk is full
            return services.runs().save(config, fitted, origin="live")
    elif st.button(f"Fit it, {about(fits.seconds(config))}", key="compare_fit"):
        spec = {"config": config.to_dict(), "name": None}
        fits.start_job("fit", spec, fits.Watched("compare", chosen))
        st.rerun()
    return None


def _named(run: Run) -> str:
    model = f"{run.config.model}, {', '.join(run.config.sizes)}"
    return run.name if run.name.startswith(model) else f"{run.name} ({model})"


def _variations(shown: Shown) -> dict[str, RunConfig]:
    """Return fits for comparison, stored or not: PCA, factor analysis, another start."""
    now = shown.config
    if now.model == "PPCA":
        return {}
    k, active = _sizes(shown)
    most = most_components(replace(now, model="PPCA", parameters={}), services.dataset(now.dataset))

    def of(model: str, **size: int) -> RunConfig:
        return RunConfig(now.dataset, now.preprocessing, model, size)

    ppca = {
        f"PCA with {counted(q, 'component')}": of("PPCA", n_components=q)
        for q in (k, min(active, most))
        if q <= most
    }
    if k <= most:
        ppca[f"Factor analysis with {k}"] = of("aFA", n_components=k, n_active=k)
    again = now.parameters | {"random_state": now.parameters["random_state"] + 1}
    return ppca | {"Another start": now.to_be_fitted(parameters=again)}


def _sizes(shown: Shown) -> tuple[int, int]:
    used = float(shown.fitted.active.sum(axis=1).mean())
    return len(shown.fitted.components), shown.config.n_active or max(1, round(used))


MANY = 10_000  # number of rows above which a sample is used
NAMES = {"own": "The panels", "plane": "PCA", "umap": "UMAP"}
WHY = "The share of each row's nearest rows in the data that are also nearest in the picture, or "
WHY += "for panels by all scores. A fifth of the rows is held out of every fit."
QUALITY = {  # measure -> name in the table, help, format
    "log_likelihood": ("Log-likelihood", "Nats per held-out row, a fifth of all.", "%.2f"),
    "mse": ("Squared error", "Per feature, on held-out rows.", "%.4f"),
    "mae": ("Absolute error", "Per feature, on held-out rows.", "%.4f"),
    "trustworthiness": ("Trustworthiness", "1 is best.", "%.3f"),
    "continuity": ("Continuity", "1 is best.", "%.3f"),
    "kept": ("Neighbours kept", "Share of the {k} nearest rows.", "%.3f"),
    "accuracy": ("k-NN accuracy", "Class predicted by the {k} nearest rows.", "%.3f"),
    "seconds": ("Seconds", "Time of fit and projection.", "%.2f"),
}


def map_quality(dataset: Dataset, shown: Shown) -> None:
    """Draw the share of near rows that each picture preserves, and the errors of other methods."""
    rows = MANY if dataset.n_rows > MANY else None
    config = QualityConfig(shown.config.to_dict(), *_sizes(shown), rows)

    def so_far() -> None:
        if shares := _kept(config.lines(home())):
            kit.chart(neighbours_kept(shares), "quality_so_far")

    if kit.follow(config.id, "quality_cancel", "Finished methods are kept if you cancel.", so_far):
        return
    lines, panels = config.lines(home()), NAMES["own"]
    k, shares = (lines[0]["n_neighbors"] if lines else 0), _kept(lines)
    if shares:
        first, *others = sorted(shares, key=lambda name: -shares[name])
        level: kit.Level = "good" if first == panels else "doubtful"
        verb = "keep" if first == panels else "keeps"
        title = f"{first} {verb} {percent(shares[first])} of each row's {k} nearest rows"
        text = ", ".join(f"{name} {percent(shares[name])}" for name in others)
        kit.answer(title, f"{text}." if text else "", level)
        kit.chart(neighbours_kept(shares), "quality_kept")
    if lines:
        with st.popover("Why?"):
            st.markdown(WHY)
        with st.expander("All methods and measures", icon=":material/table:"):
            st.dataframe(table_of(lines), hide_index=True, column_config=looks(k))
    else:
        text = "Compare neighbours, errors and likelihood with PCA, UMAP and other methods."
        kit.answer("How many near rows stay near?", text)
    if len(lines) < len(config.steps()):
        label = "Continue" if lines else "Measure"
        choose.start_button(dataset, config, "quality", label, len(lines))
    kit.gaps_note(dataset, "All methods here, including this model,")


def _kept(lines: list[Line]) -> dict[str, float]:
    shares = {line["key"]: line["kept"] for line in lines}
    return {name: shares[key][0] for key, name in NAMES.items() if shares.get(key) is not None}


def table_of(lines: list[Line]) -> "pd.DataFrame":
    """Return one line per method, ordered by numbers per row, with each measure and its error."""
    import pandas as pd

    rows = []
    for line in sorted(lines, key=lambda line: line["used"]):
        used = f"{line['used']} of " * (line["used"] < line["size"])
        row = {"Method": line["title"], "Numbers per row": f"{used}{line['size']}"}
        for key, (name, _, _) in QUALITY.items():
            value, error = line[key], line.get(f"{key}_error")
            if isinstance(value, list | tuple):
                value, error = value[0], value[1] or None
            row |= {name: value, f"± {name.lower()}": error}
        rows.append(row | {"Note": line["note"]})
    return pd.DataFrame(rows).dropna(axis=1, how="all")


def looks(k: int) -> dict[str, Any]:
    """Return the formats of `table_of`'s columns; k is the number of neighbours in their help."""
    column, shown = st.column_config.NumberColumn, {}
    for name, text, form in QUALITY.values():
        shown[name] = column(format=form, help=text.format(k=k))
        shown[f"± {name.lower()}"] = column(format=form, help="Standard error.")
    return shown


HEIGHT = 460


def compare_tab(dataset: Dataset, shown: Shown) -> None:
    """Draw another fit side by side with this one."""
    if (other := _choose(shown)) is None:
        st.caption("What would you like to compare with?")
        return
    try:
        second = of_run(other)
    except InputError as error:
        st.error(kit.markdown(str(error)))
        return
    both = shown.fitted, second.fitted
    pairs, (moved, overlap) = _compared(f"{shown.key} {second.key}", dataset, *both)
    title = ", ".join(shown.config.sizes) if shown.run is None else _named(shown.run)
    _pictures(dataset, {f"This fit: {title}": shown, _named(other): second})
    most = max(len(fitted.components) for fitted in both)
    told = [(f"{len(pairs)} of {most}", "components are paired")]
    have_supports = not any(fitted.active.all() for fitted in both)
    if have_supports:
        told.append((percent(overlap), "of a row's components shared"))
    st.html(kit.numbers(told))
    if second.config.preprocessing != shown.config.preprocessing:
        st.caption("The two fits use different preprocessing.")
    if have_supports and (n := int(moved.sum())):
        label = f"Select the {counted(n, 'row')} that differ{'s' * (n == 1)}"
        kit.press(label, "moved_select", state.put, dataset, moved)


def _pictures(dataset: Dataset, both: dict[str, Shown]) -> None:
    choice = controls.colouring(dataset)
    with st.container(key="beside_fits"):
        columns = st.columns(2, gap="medium")
    scenes = [canvas.scene_of(dataset, side, choice) for side in both.values()]
    firsts = [scene.meta["first"] for scene in scenes]
    if "pairs" in firsts and all("pairs" in scene.meta["layouts"] for scene in scenes):
        firsts = ["pairs"] * len(scenes)
    for i, (column, name) in enumerate(zip(columns, both, strict=True)):
        with column:
            st.markdown(f"**{kit.markdown(name)}**")
            canvas.draw(dataset, scenes[i], firsts[i], choice, key=f"compare_{i}", height=HEIGHT)


@services.by_key(16)
def _compared(
    dataset: Dataset, first: FittedRun, second: FittedRun
) -> tuple[list[ComponentPair], tuple[np.ndarray, float]]:
    """Match components in a space that does not depend on the fits' preprocessing."""
    scale = np.ones(dataset.n_features)
    if dataset.image_shape is None:  # otherwise features with large numbers would dominate
        spread = dataset.X.std(axis=0, dtype=np.float64)
        scale = np.where(spread > 0, spread, 1.0)
    pairs = matched(*(in_data_space(fitted) / scale for fitted in (first, second)))
    return pairs, moves(first.active, second.active, pairs)
