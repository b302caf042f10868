"""Whether the components stay the same from other starts and with other rows."""

import streamlit as st

from appca.analysis.check.choose_stability import FOLDER, Stability, StabilityConfig, stored
from appca.analysis.check.journal import JournalStore
from appca.analysis.components.alignment import IDENTIFIED, ROUGHLY, identification
from appca.data.dataset import Dataset
from appca.data.numbers import fixed
from appca.plots.check import choose as plots
from appca.runs.configuration import RunConfig
from appca.runs.fit import estimate_seconds
from appca.runs.home import home
from appca.storage.wording import counted
from appca.ui.check import choose
from appca.ui.parts import progress
from appca.ui.parts.chart import chart
from appca.ui.parts.gaps_note import gaps_note
from appca.ui.parts.text import about
from appca.ui.session import computation, state

WAYS = {"starts": "other random starts", "halves": "random halves of the rows"}
REPEATS = 8
NEWS = 0.01  # nats per row; smaller gains over the fit in use are rounding and early stops
INTRODUCTION = (
    "The model in use is fitted again from other starts or to other rows. Components that come "
    "back each time belong to the data; those that do not are one of several ways to say the same."
)


def section(dataset: Dataset) -> None:
    """Draw the settings, the job and the outcome for the K and L in use."""
    now = state.config()
    st.subheader(f"Stability of the components: K = {now.k}, L = {now.n_active}", anchor=False)
    st.caption(INTRODUCTION)
    gaps_note(dataset, "These fits, the reference among them,")
    config = _settings(now)
    if progress.follow(config.id):
        return
    found = stored(JournalStore(home(), FOLDER), config)
    if found is None or len(found.log_likelihoods) < config.repeats:
        _offer(dataset, config, now)
    if found is not None:
        _outcome(config, found)


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
    one = RunConfig(now.dataset, now.preprocessing, now.model, config.parameters)
    seconds = (config.repeats + 1) * estimate_seconds(rows, dataset.n_features, one)
    part = "all rows" if rows == dataset.n_rows else f"a random sample of {rows:,} rows"
    st.markdown(
        f"{counted(config.repeats + 1, 'fit')} on {part}, in the background. "
        f"It takes {about(seconds)}."
    )
    spec = config.to_dict() | {"key": config.id}
    computation.button("Fit again", "stability_start", "stability", config.id, spec, primary=False)


def _outcome(config: StabilityConfig, found: Stability) -> None:
    means = found.cosines.mean(axis=0)
    kept = int((means >= IDENTIFIED).sum())
    low, high = found.log_likelihoods.min(), found.log_likelihoods.max()
    spread = found.log_likelihoods.std(ddof=min(1, len(found.cosines) - 1))
    come = "comes" if kept == 1 else "come"
    st.markdown(
        f"**{kept} of {counted(len(means), 'component')} {come} back** with {WAYS[config.way]} (a "
        f"mean |cos| of {IDENTIFIED} or more to the reference, in "
        f"{counted(len(found.cosines), 'fit')}). The rows have {fixed(found.reference)} nats a "
        f"row in the reference and {fixed(low)} to {fixed(high)} in the others (standard "
        f"deviation {spread:.2g})."
    )
    ahead = high - found.reference
    if config.way == "starts" and ahead > NEWS:
        st.markdown(
            f"One of them ended {fixed(ahead)} nats per row above the fit in use: with more starts "
            "on the page Fit, it would be found there, too."
        )
    chart(plots.stability(found.cosines, (ROUGHLY, IDENTIFIED)), "choose_stability")
    st.caption(
        "; ".join(
            f"component {k + 1}: {value:.3f}, {identification(float(value))}"
            for k, value in enumerate(means[:40])
        )
        + ". Components are numbered by the variance they explain in the reference."
    )
