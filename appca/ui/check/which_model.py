"""The tab Which model?: the variants of adaptive PPCA and its rivals on rows held out."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from appca.analysis.check.journal import JournalStore
from appca.analysis.check.which_model import (
    CLEAR,
    FOLDER,
    PAPER,
    SWITCHES,
    VARIANTS,
    HeldOutFit,
    ModelAdvice,
    ModelsConfig,
    Ranked,
    advise,
    methods,
    ranked,
    stored,
    variant_settings,
)
from appca.data.dataset import Dataset
from appca.jobs.kinds import estimate_models
from appca.runs.configuration import LEARNED, RunConfig, defaults, suited
from appca.runs.home import home
from appca.ui.parts import progress
from appca.ui.parts.acts import acting, button
from appca.ui.parts.answers import answer, numbers
from appca.ui.parts.notes import gaps_note
from appca.ui.parts.text import tag, words
from appca.ui.session import state
from appca.ui.session.callbacks import guarded
from appca.ui.session.state import KEYS
from appca.words.errors import InputError
from appca.words.numbers import about, duration, fixed
from appca.words.wording import counted

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


def body(dataset: Dataset) -> None:
    """Draw the answer, its button, and all models; without them what starts the comparison."""
    config = config_of(state.config())
    store = JournalStore(home(), FOLDER)
    asked = st.session_state.pop(KEYS.compare, False)  # by Explore
    if asked and len(stored(store, config)) < len(methods(config)):
        progress.begin("models", config.id, _spec(config))
    kept = "Models that have been measured are kept when you cancel."

    def so_far() -> None:
        lines = ranked(stored(store, config))
        if lines:
            st.html(chart(config, lines, None))

    if progress.follow(config.id, "models_cancel", kept, so_far):
        return
    fits = stored(store, config)
    lines = ranked(fits)
    advice = advise(lines) if len(fits) == len(methods(config)) else None
    if advice is None:
        answer("Which model?", "Eight variants of adaptive PPCA and six rivals, on rows held out.")
        _start(dataset, config, "Go on" if fits else "Compare 14 models")
        if lines:
            st.html(chart(config, lines, None))
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
    store = JournalStore(home(), FOLDER)
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


def chart(config: ModelsConfig, lines: list[Ranked], advice: ModelAdvice | None) -> str:
    """Return all models as HTML: nats a row with standard errors, and numbers of parameters."""
    low = min(0.0, *(line.nats - line.error for line in lines))
    high = max(0.0, *(line.nats + line.error for line in lines)) or 1.0
    most = max(line.fit.n_parameters for line in lines)
    rows = []
    for title, ours in (("Variants of adaptive PPCA", True), ("Rivals", False)):
        part = [line for line in lines if (line.key in VARIANTS) == ours]
        if part:
            sizes = f", K = {config.n_components}, L = {config.n_active}" if ours else ""
            heads = tag("span", words(title + sizes))
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
    acting(chart(config, lines, advice), "models_chart", used)


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


def _start(dataset: Dataset, config: ModelsConfig, label: str) -> None:
    takes = about(estimate_models(config, dataset.n_rows, dataset.n_features))
    progress.button(f"{label}, {takes}", "models_start", "models", config.id, _spec(config))
