"""Whether the components stay the same from other starts and with other rows."""

import streamlit as st

from appca.analysis.check.choose import MODELS
from appca.analysis.check.choose_stability import FOLDER, Stability, StabilityConfig, stored
from appca.analysis.check.journal import JournalStore
from appca.analysis.components.alignment import IDENTIFIED, ROUGHLY, identification
from appca.analysis.explore.subspaces import ranked, title
from appca.analysis.fitted import FittedRun
from appca.data.dataset import Dataset
from appca.plots.check import choose as plots
from appca.runs.configuration import RunConfig
from appca.runs.fit import estimate_seconds
from appca.runs.home import home
from appca.ui.check import choose
from appca.ui.parts import progress
from appca.ui.parts.answers import Level, chip
from appca.ui.parts.chart import chart
from appca.ui.parts.notes import gaps_note
from appca.ui.session import state
from appca.ui.session.fitting import Shown
from appca.words.numbers import about, fixed
from appca.words.wording import counted

WAYS = {"starts": "other random starts", "halves": "random halves of the rows"}
REPEATS = 8
MOST_PANELS = 6  # the fullest, that are told of
NEWS = 0.01  # nats per row; smaller gains over the fit in use are rounding and early stops


def is_offered() -> bool:
    """Whether the model can be fitted again for this."""
    return state.config().model in MODELS


def section(dataset: Dataset, shown: Shown) -> None:
    """Draw the settings, the progress and the outcome for the K and L in use."""
    now = state.config()
    st.caption("The model in use, fitted again: components that return belong to the data.")
    gaps_note(dataset, "These fits, the reference among them,")
    config = _settings(now)
    if progress.follow(config.id, cancel="stability_cancel"):
        return
    stability = stored(JournalStore(home(), FOLDER), config)
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
        parameters=choose.by_em(now),
        way=way,
        repeats=int(repeats),
    )


def _offer(dataset: Dataset, config: StabilityConfig, now: RunConfig) -> None:
    rows = min(dataset.n_rows, config.max_rows)
    config_of_fit = RunConfig(now.dataset, now.preprocessing, now.model, config.parameters)
    seconds = (config.repeats + 1) * estimate_seconds(rows, dataset.n_features, config_of_fit)
    spec = config.to_dict() | {"key": config.id}
    label = f"Fit {config.repeats} times again, {about(seconds)}"
    progress.button(label, "stability_start", "stability", config.id, spec, primary=False)


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
