"""The page Compare: which run is the other one, and variations of this one at one press."""

from dataclasses import replace

import streamlit as st

from appca.data.dataset import Dataset
from appca.runs.configuration import MODELS, RunConfig
from appca.runs.fit import estimate_seconds, fit_run
from appca.runs.store import Run
from appca.storage.wording import counted
from appca.ui.parts import progress
from appca.ui.session import fitting, services, state, watching
from appca.ui.session.callbacks import guarded
from appca.ui.session.fitting import Shown

ADDRESS = "with"  # query parameter: a link and a reload bring the other run back
WANTED = "compare_wanted"  # in `st.session_state`: the run a press of a button asked for


def choose(shown: Shown) -> Run | None:
    """Draw the choice of the second run and what makes one; None while there is none."""
    digest, own = shown.config.dataset, shown.config.id
    runs = {
        run.id: run
        for run in services.runs().list()
        if run.config.dataset == digest and run.id != own
    }
    key = f"compare-{digest[:8]}-{own}"
    _take_wanted(key, runs)
    if key in st.session_state and st.session_state[key] not in runs:
        del st.session_state[key]
    if key not in st.session_state and st.query_params.get(ADDRESS) in runs:
        st.session_state[key] = st.query_params[ADDRESS]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        chosen = None
        if runs:
            chosen = st.selectbox(
                "The other run",
                list(runs),
                format_func=lambda run_id: f"{runs[run_id].name} · {run_id[:6]}",
                key=key,
                width=340,
            )
            st.query_params[ADDRESS] = chosen
        for label, config in variations(shown).items():
            st.button(label, key=f"vary-{config.id}", on_click=_vary, args=[config])
    if not runs:
        st.info(
            "There is no other run of this data set yet. Make one with a button above, or fit with "
            "other settings on the page Fit."
        )
    wanted = st.session_state.get(WANTED)
    if wanted is not None and not progress.follow(wanted):
        del st.session_state[WANTED]
    return runs[chosen] if chosen else None


def variations(shown: Shown) -> dict[str, RunConfig]:
    """Return what can be compared at one press: the same with another seed, and plain PPCA."""
    now = shown.config
    if now.model == "PPCA":
        return {}
    k, active = sizes(shown)
    seed = now.parameters["random_state"] + 1
    again = now.to_be_fitted(parameters=now.parameters | {"random_state": seed})
    found = {f"Fit again with seed {seed}": again}
    most = state.most_components(replace(now, model="PPCA", parameters={}), _dataset(now))
    for q in (active, k):
        if q <= most:
            plain = RunConfig(now.dataset, now.preprocessing, "PPCA", {"n_components": q})
            found[f"PPCA with {counted(q, 'component')}"] = plain
    return found


def sizes(shown: Shown) -> tuple[int, int]:
    """Return K, and L or the nearest whole number to what a row uses on average, at least 1."""
    used = float(shown.fitted.active.sum(axis=1).mean())
    return len(shown.fitted.components), shown.config.n_active or max(1, round(used))


def _take_wanted(key: str, runs: dict[str, Run]) -> None:
    """Choose the run that was asked for, once it is there."""
    if st.session_state.get(WANTED) in runs:
        st.session_state[key] = st.session_state.pop(WANTED)


@guarded
def _vary(config: RunConfig) -> None:
    """Fit a variation, at once if that is quick, and compare with it."""
    st.session_state[WANTED] = config.id
    if services.runs().get(config.id) is not None:
        return
    dataset = _dataset(config)
    if _is_quick(config, dataset):
        services.runs().save(config, fit_run(dataset, config))
        return
    watching.allow(config.id)
    spec = {"config": config.to_dict(), "name": None}
    watching.start("fit", spec, watching.Watched("compare", config.id))


def _is_quick(config: RunConfig, dataset: Dataset) -> bool:
    seconds = estimate_seconds(dataset.n_rows, dataset.n_features, config)
    return (
        config.k <= MODELS[config.model].can.uncompiled
        and not config.is_sampled
        and config.parameters.get("w_update") != "pymanopt"
        and seconds <= fitting.LIVE_SECONDS
    )


def _dataset(config: RunConfig) -> Dataset:
    return services.dataset(config.dataset)
