"""Settings of the model, the preprocessing, and the map."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import streamlit as st

from appca.analysis.fitted import FittedRun
from appca.analysis.umap import Embedding, EmbeddingConfig, EmbeddingStore
from appca.data.dataset import Dataset
from appca.data.preprocessing import Preprocessing, suggest
from appca.models.settings import LEARNED
from appca.preparation import PREPARATIONS, proposed
from appca.runs.home import home
from appca.runs.run import MODELS, RunConfig, defaults
from appca.ui import controls, kit, services, state
from appca.ui.fits import Shown, seconds, stored
from appca.ui.state import KEYS, guarded
from appca.words import InputError, about, capital, counted, percent

SCALES = {"none": "As they are", "feature": "Each feature to variance 1", "global": "By one number"}
REDUCTIONS = {"none": "Keep all features", "dimensions": "PCA to dimensions"}
REDUCTIONS["share"] = "PCA to a share of variance"
VALUES = {"none": "As they are", **{name: capital(x.title) for name, x in PREPARATIONS.items()}}
PLACES = 10


def propose(dataset: Dataset, key: str) -> None:
    """Draw a button for the preparation that suits the data, if it is not in use."""
    name, why = services.kept(f"proposed-{dataset.digest}", lambda: proposed(dataset))
    if name and state.config().preprocessing.get("prepare", "none") == "none":
        label = f"Use {PREPARATIONS[name].title}: {why[0].lower()}{why[1:].rstrip('.')}"
        kit.press(label, key, state.set_preprocessing, suggest(dataset, name))


def preprocessing(dataset: Dataset) -> None:
    """Draw the settings of the preprocessing."""
    options = Preprocessing.from_dict(state.config().preprocessing)
    most, pca = min(dataset.n_rows - 1, dataset.n_features), options.pca
    kind = "none" if pca is None else "dimensions" if isinstance(pca, int) else "share"
    shown = {name: getattr(options, name) for name in ("prepare", "divide", "centre", "scale")}
    shown |= {"reduce": kind, "dimensions": min(pca if isinstance(pca, int) else 50, most)}
    shown["share"] = round(100 * pca, PLACES) if isinstance(pca, float) else 99.5
    st.session_state.update({f"pre-{name}": value for name, value in shown.items()})

    @guarded
    def apply() -> None:
        seen = {name: st.session_state.get(f"pre-{name}", value) for name, value in shown.items()}
        share = round(seen.pop("share") / 100, PLACES + 2)
        reductions = {"none": None, "dimensions": seen.pop("dimensions"), "share": share}
        reduced = reductions[seen.pop("reduce")]
        if seen["prepare"] != options.prepare:
            seen |= {"scale": suggest(dataset, seen["prepare"]).scale}
        wanted = Preprocessing(**seen, pca=reduced)
        services.prepared(dataset.digest, wanted.to_dict())  # raises for unsuitable values
        state.set_preprocessing(wanted)

    def look(name: str, help_text: str = "", **more: Any) -> dict[str, Any]:
        return {"key": f"pre-{name}", "on_change": apply, "help": help_text} | more

    if dataset.image_shape is None and not dataset.is_recording:
        values = "Counts, spectra and long tails fit better after their standard transformation."
        st.selectbox("Values", VALUES, **look("prepare", values, format_func=VALUES.__getitem__))
        propose(dataset, "pre-proposed")
    left, right = st.columns(2)
    divide = "255 scales grey values to 0 … 1; 1 leaves the values unchanged."
    limits = kit.around((1e-9, 1e12), options.divide)
    left.number_input("Divide all values by", *limits, **look("divide", divide, format="%g"))
    mean = "The model has its own mean; centring matters only if its setting Mean is “Zero”."
    left.toggle("Subtract each feature's mean", **look("centre", mean))
    scale = "Scale features in different units to variance 1. Pixels and spectra share a unit."
    right.selectbox("Scale", SCALES, **look("scale", scale, format_func=SCALES.__getitem__))
    reduce = "Faster for very wide data. The paper uses 350 dimensions, or 99.5% of the variance."
    names = REDUCTIONS.__getitem__
    right.selectbox("Reduce first", REDUCTIONS, **look("reduce", reduce, format_func=names))
    if kind == "dimensions":
        right.number_input("Dimensions", 1, most, **look("dimensions"))
    elif kind == "share":
        limits = kit.around((1.0, 99.99), shown["share"])
        right.number_input("Share of variance, %", *limits, **look("share", format="%g"))


STARTS = {"pca": "PCA of the data", "appca": "Scores of the model"}
NEIGHBOURS, DISTANCE, MOST_NEIGHBOURS, LEAST_ROWS = 15, 0.1, 200, 3


def map_settings(dataset: Dataset, fitted: FittedRun, view: str) -> None:
    """Draw the settings of a map by UMAP, or else by two features."""
    if view != "umap":
        for axis, j in enumerate(controls.axes_of(dataset, fitted)):
            name = dataset.column_names.__getitem__
            keep = partial(st.session_state.__setitem__, controls.axis_key(dataset, axis))
            look: dict[str, Any] = {"key": f"axis-menu-{axis}", "format_func": name, "index": j}
            look |= {"on_change": state.pass_value, "args": [f"axis-menu-{axis}", keep]}
            st.selectbox(("Across", "Up")[axis], range(dataset.n_features), **look)
        return
    chosen = st.session_state.setdefault(KEYS.umap, {})
    most = min(MOST_NEIGHBOURS, dataset.n_rows - 1)
    if dataset.n_rows < LEAST_ROWS:
        return
    near = "Number of nearest rows to preserve. Few show fine detail, many the whole structure."
    value = int(min(max(chosen.get("n_neighbors", NEIGHBOURS), 2), most))
    box: dict[str, Any] = {"key": "umap_n_neighbors", "help": near}
    chosen["n_neighbors"] = st.number_input("Neighbours", 2, most, value, **box)
    distance = float(min(max(chosen.get("min_dist", DISTANCE), 0), 1))
    box = {"key": "umap_min_dist", "help": "Minimum distance between points on the map."}
    chosen["min_dist"] = st.number_input("Minimum distance", 0.0, 1.0, distance, **box)
    starts, now = list(STARTS), chosen.get("start", "pca")
    box = {"key": "umap_start", "index": starts.index(now), "format_func": STARTS.__getitem__}
    box |= {"help": "The initial coordinates of the map."}
    chosen["start"] = st.selectbox("Start from", starts, **box)


def config_of(dataset: Dataset, fit: RunConfig) -> EmbeddingConfig | None:
    """Return the map of the current settings; None if there are too few rows."""
    chosen = st.session_state.get(KEYS.umap) or {}
    usual = {"n_neighbors": min(NEIGHBOURS, dataset.n_rows - 1)}
    asked = {name: chosen[name] for name in ("n_neighbors", "min_dist", "start") if name in chosen}
    run = fit.id if asked.get("start") == "appca" else None
    try:
        return EmbeddingConfig(dataset.digest, fit.preprocessing, run=run, **(usual | asked))
    except InputError:
        return None


def stored_map(dataset: Dataset, fit: RunConfig) -> Embedding | None:
    """Return the finished map of the current settings, if any."""
    config = config_of(dataset, fit)
    stored = None if config is None else EmbeddingStore(home()).get(config.id)
    return stored if stored is not None and len(stored.coordinates) == dataset.n_rows else None


def trust_sentence(trust: np.ndarray) -> str:
    """Describe a map's quality; trust is (N, 3), NaN for rows not compared."""
    compared = trust[~np.isnan(trust[:, 0])]
    false, missing, kept = compared.mean(axis=0, dtype=np.float64)
    how = f"{len(compared):,} of {len(trust):,} rows are compared with all others."
    return (
        f"Trustworthiness {1 - false:.3f}, continuity {1 - missing:.3f}, nearest rows kept "
        f"{percent(kept)}. {how}"
    )


def offer(dataset: Dataset, shown: Shown) -> None:
    """Draw the progress of the map, or the button that starts it."""
    from appca.jobs.tasks import map_seconds  # imported after the first picture

    config = config_of(dataset, shown.config)
    if config is None:
        st.caption(f"A map needs {LEAST_ROWS} rows or more.")
    elif not kit.follow(config.id, cancel="umap_cancel"):
        takes = about(sum(map_seconds(dataset.n_rows, dataset.n_features).values()))
        kit.job_button(f"Lay out the map, {takes}", "umap_run", "umap", config.id, config.to_dict())


FIXED = "fixed"
EXTENSIONS = ("noise", "row_scale", "n_active")


class SettingChoice(NamedTuple):
    """A parameter with a few values."""

    label: str
    names: dict[str, str]
    help: str


class Number(NamedTuple):
    """A numeric parameter, an integer if its limits are."""

    label: str
    least: float
    most: float
    help: str


ABOVE_ZERO = (1e-6, 1e6)
_VARIANCE = "For the inverse gamma prior, in units of the mean variance of the features."
_ALPHA = "For the gamma prior, whose mean is shape over rate."

FIELDS: dict[str, SettingChoice | Number] = {
    "noise": SettingChoice(
        "Noise",
        {"shared": "One for all features", "feature": "One for each feature"},
        "One for each feature if they are not equally noisy; units then do not matter.",
    ),
    "row_scale": SettingChoice(
        "Rows",
        {"none": "With the same scale", LEARNED: "Each with its own scale"},
        "With its own scale, an unusual row has less influence. The scale shows how unusual it is.",
    ),
    "n_active": SettingChoice(
        "Components per row",
        {FIXED: "Exactly L", LEARNED: "Learned"},
        "Learned: a row may use any number of components, from none to all K.",
    ),
    "inference": SettingChoice(
        "Inference",
        {"em": "Exact EM", "gibbs": "Gibbs sampling", "hard": "Hard assignment"},
        "EM finds the most likely components. Gibbs sampling draws from the posterior, so that "
        "every number has an uncertainty. Hard assignment gives each row its best support only.",
    ),
    "init": SettingChoice(
        "Start",
        {
            "auto": "Best of several on a sample",
            "quartimax": "Quartimax rotation",
            "annealed": "PCA, annealed",
            "ica": "Independent components",
            "pca": "PCA",
            "dictionary": "Rows of the data",
            "random": "Random",
        },
        "Where the fit begins. “Best of several” compares starts on a sample of the rows.",
    ),
    "alpha": SettingChoice(
        "Mass parameter alpha",
        {"infer": "Learned", FIXED: "A fixed number"},
        "With a larger alpha, rows are expected to use more components in total.",
    ),
    "prior": SettingChoice(
        "Prior of the supports",
        {"ibp": "Indian buffet", "beta-bernoulli": "Beta-Bernoulli"},
        "Indian buffet: few shared components. Beta-Bernoulli: each has its own frequency.",
    ),
    "latent_variance": SettingChoice(
        "Factor variance",
        {"shared": "One for all components", "component": "One each", FIXED: "A fixed number"},
        "How far rows spread along the components. The paper fixes it to 1, in units of the data.",
    ),
    "mean": SettingChoice(
        "Mean",
        {"learned": "Learned", "sample": "Mean of the rows", "zero": "Zero"},
        "The point where all scores are zero. “Learned” fits best when L is below K.",
    ),
    "w_update": SettingChoice(
        "Update of the components",
        {"auto": "Automatic", "polar": "Closed form", "pymanopt": "Pymanopt"},
        "Automatic: the closed form for EM, a draw for Gibbs sampling. Pymanopt searches for the "
        "same solution 16 to 300 times slower. Closed form and Pymanopt do not sample W.",
    ),
    "z_update": SettingChoice(
        "Draw of the supports",
        {"block": "Whole support", "swap": "One by one"},
        "Draw the whole support of a row, or its components one by one as in the paper.",
    ),
    "allocation": SettingChoice(
        "Sum over supports",
        {"auto": "If there are few", "exact": "All of them", "best": "The best one"},
        "Sum over all supports of a row, or use only the best one.",
    ),
    "n_init": Number("Fits", 1, 50, "The first from “Start”, others random; the best is kept."),
    "max_iter": Number("Maximum iterations", 1, 100_000, "Stop after this many iterations."),
    "n_chains": Number("Chains", 1, 16, "Two or more can be checked for convergence."),
    "burn_in": Number("Burn-in", 0, 1_000_000, "Sweeps discarded at the start of each chain."),
    "n_draws": Number("Draws", 1, 100_000, "Draws kept from each chain."),
    "thin": Number("Sweeps per draw", 1, 10_000, "Keep one draw in this many sweeps."),
    "n_paths": Number(
        *("Paths per row", 2, 10_000),
        "For rows with too many supports to sum over: more paths are slower and more accurate.",
    ),
    "chain_starts": SettingChoice(
        "Chains start",
        {"overdispersed": "Far apart", "init": "By the setting “Start”"},
        "Chains that agree despite distant starts found the same mode.",
    ),
    "noise_shape": Number("Noise: shape", *ABOVE_ZERO, _VARIANCE),
    "noise_scale": Number("Noise: scale", *ABOVE_ZERO, _VARIANCE),
    "latent_shape": Number("Factor variance: shape", *ABOVE_ZERO, _VARIANCE),
    "latent_scale": Number("Factor variance: scale", *ABOVE_ZERO, _VARIANCE),
    "loading_shape": Number("Loadings: shape", *ABOVE_ZERO, _VARIANCE),
    "loading_scale": Number("Loadings: scale", *ABOVE_ZERO, _VARIANCE),
    "alpha_shape": Number("Alpha: shape", *ABOVE_ZERO, _ALPHA),
    "alpha_rate": Number("Alpha: rate", *ABOVE_ZERO, _ALPHA),
    "random_state": Number("Seed", 0, 2**31 - 1, "The same seed gives the same fit."),
}
FURTHER = {"latent_variance", "mean", "w_update", "z_update", "allocation", "thin", "max_iter"}
FURTHER |= {"n_paths"}
PRIORS = {name for name in FIELDS if name.endswith(("_shape", "_scale", "_rate"))} - {*EXTENSIONS}


def of_model(dataset: Dataset, place: st.delta_generator.DeltaGenerator) -> None:
    """Fill the popover of the model's settings."""
    with place:
        _model_settings()
        with st.expander("Before the fit"):
            preprocessing(dataset)
        if (run := stored()) is not None:
            with st.expander("About this fit"):
                st.html(kit.fact_list(kit.fit_facts(dataset, run)))
        cost = f"A fit with these settings takes {about(seconds())}."
        if dataset.missing is not None:
            fate = "fills them" if state.config().fits_around_gaps else "needs complete rows"
            cost += f" {counted(dataset.n_missing, 'missing cell')}: the model {fate}."
        st.caption(cost)
        kit.onward("check/advanced", "Which model suits these data?", ":material/fact_check:")


def _model_settings() -> None:
    now, key = state.config(), "set-model"
    model, st.session_state[key] = MODELS[now.model], now.model
    titles = {name: model.title for name, model in MODELS.items()}
    look: Any = {"on_change": state.pass_value, "args": [key, state.set_model]}
    st.selectbox("Model", titles, format_func=titles.__getitem__, key=key, **look)
    st.caption(model.about)
    has_l = "n_active" in model.choices
    names = [name for name in FIELDS if name in now.parameters and (name != "n_active" or has_l)]
    parts = {"": set(names) - FURTHER - PRIORS, "Further settings": FURTHER, "Priors": PRIORS}
    for title, part in parts.items():
        there = [name for name in names if name in part]
        if there:
            with st.expander(title) if title else st.container():
                for first in range(0, len(there), 2):
                    for column, name in zip(st.columns(2), there[first : first + 2], strict=False):
                        with column:
                            _widget(name, FIELDS[name], now)


def _widget(name: str, field: SettingChoice | Number, now: RunConfig) -> None:
    key, value = f"set-{name}", now.parameters[name]
    look: dict[str, Any] = {"help": field.help, "on_change": _apply_model, "args": [name, key]}
    if isinstance(field, Number):
        kind = type(field.least)
        value = st.session_state[key] = kind(value)
        limits = kit.around((field.least, field.most), value)
        st.number_input(field.label, *limits, key=key, format=None if kind is int else "%g", **look)
        return
    options = [*MODELS[now.model].choices[name], *([FIXED] if FIXED in field.names else [])]
    is_number = isinstance(value, int | float)
    if not is_number and str(value) not in options:
        options.append(str(value))  # the command line allows more values
    st.session_state[key] = FIXED if is_number else str(value)  # a start may be an array
    titles = {option: field.names.get(option, option) for option in options}
    st.selectbox(field.label, options, format_func=titles.__getitem__, key=key, **look)
    if is_number and name != "n_active":  # L has a slider in the bar
        key = f"set-{name}-value"
        value = st.session_state[key] = float(value)
        limits = kit.around((1e-9, 1e9), value)
        look = {"on_change": _apply_model, "args": [name, key]}
        st.number_input("Fixed at", *limits, key=key, format="%g", **look)


@guarded
def _apply_model(name: str, widget: str) -> None:
    value, usual = st.session_state[widget], defaults(state.config().model)
    if value == FIXED:
        value = usual["n_active"] if name == "n_active" else 1.0
    state.set_parameters(**{name: value, **_together(name, value, usual)})


def _together(name: str, value: object, usual: dict[str, Any]) -> dict[str, Any]:
    """Return further changes, because not every inference suits every extension of the model."""
    now = state.config().parameters
    if name == "noise" and value != usual[name]:
        fixed = not isinstance(now.get("latent_variance"), str)
        return {"inference": "em"} | ({"latent_variance": "shared"} if fixed else {})
    if name in EXTENSIONS and value != usual[name]:
        return {"z_update": "block"} if now.get("inference") == "gibbs" else {"inference": "em"}
    if (name, value) == ("inference", "gibbs"):
        return {"noise": usual["noise"]} if "noise" in usual else {}
    if (name, value) in {("inference", "hard"), ("z_update", "swap")}:
        sizes = {"n_active"} if now.get("n_active") == LEARNED else set()
        return {other: usual[other] for other in {"noise", "row_scale", *sizes} & set(usual)}
    return {}
