"""Which fit is compared with the one in use, and others that one press makes."""

from contextlib import suppress
from dataclasses import replace

import streamlit as st

from appca.data.dataset import Dataset
from appca.runs.configuration import RunConfig
from appca.runs.fit import fit_run
from appca.runs.store import Run
from appca.ui.parts import progress
from appca.ui.session import fitting, services, state, watching
from appca.ui.session.callbacks import guarded
from appca.ui.session.fitting import Shown
from appca.words.errors import InputError
from appca.words.wording import counted

ADDRESS = "with"  # query parameter: a link and a reload bring the other run back
WANTED = "compare_wanted"  # in `st.session_state`: the run a press of a button asked for


def choose(shown: Shown) -> Run | None:
    """Draw the choice of the second fit and what makes one; None while there is none."""
    made = variations(shown)
    runs = _others(shown, made)
    key = f"compare-{shown.config.dataset[:8]}-{shown.config.id}"
    _keep_choice(key, runs)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        chosen = None
        if runs:
            names = {run_id: f"{named(run)} · {run_id[:6]}" for run_id, run in runs.items()}
            chosen = st.selectbox(
                "Compare with", list(runs), format_func=names.__getitem__, key=key, width=340
            )
            st.query_params[ADDRESS] = chosen
        for label, config in made.items():
            if config.id not in runs:
                st.button(label, key=f"vary-{config.id}", on_click=_vary, args=[config])
    wanted = st.session_state.get(WANTED)
    if wanted is not None and not progress.follow(wanted):
        del st.session_state[WANTED]
    return runs[chosen] if chosen else None


def _others(shown: Shown, made: dict[str, RunConfig]) -> dict[str, Run]:
    """Return the other fits of the data; where there is none, a quick one is made to be seen."""
    digest, run_id = shown.config.dataset, shown.config.id
    stored = (run for run in services.runs().list() if run.config.dataset == digest)
    runs = {run.id: run for run in stored if run.id != run_id}
    first = next(iter(made.values()), None)
    if not runs and first is not None and fitting.is_live(first):
        made_here = fit_run(_dataset(first), first)
        with suppress(InputError):  # the disk takes none
            runs[first.id] = services.runs().save(first, made_here, origin="live")
    return runs


def named(run: Run) -> str:
    """Return what tells a fit from others: its name, and its model and sizes if that says more."""
    model = f"{run.config.model}, {', '.join(run.config.sizes)}"
    return run.name if run.name.startswith(model) else f"{run.name} ({model})"


def variations(shown: Shown) -> dict[str, RunConfig]:
    """Return what can be compared at one press: PCA, factor analysis, and another start."""
    now = shown.config
    if now.model == "PPCA":
        return {}
    k, active = sizes(shown)
    most = state.most_components(replace(now, model="PPCA", parameters={}), _dataset(now))
    plain = RunConfig(now.dataset, now.preprocessing, "PPCA", {"n_components": min(active, most)})
    configs = {}
    if k <= most:
        every = {"n_components": k}
        configs[f"PCA with {counted(k, 'component')}"] = replace(plain, parameters=every)
    configs[f"PCA with {counted(min(active, most), 'component')}"] = plain
    if k <= most:
        every = {"n_components": k, "n_active": k}
        factors = RunConfig(now.dataset, now.preprocessing, "aFA", every)
        configs[f"Factor analysis with {k}"] = factors
    again = now.parameters | {"random_state": now.parameters["random_state"] + 1}
    return configs | {"Another start": now.to_be_fitted(parameters=again)}


def sizes(shown: Shown) -> tuple[int, int]:
    """Return K, and L or the nearest whole number to what a row uses on average, at least 1."""
    used = float(shown.fitted.active.sum(axis=1).mean())
    return len(shown.fitted.components), shown.config.n_active or max(1, round(used))


def _keep_choice(key: str, runs: dict[str, Run]) -> None:
    """Choose the fit that was asked for, once it is there, or that the address names."""
    if st.session_state.get(WANTED) in runs:
        st.session_state[key] = st.session_state.pop(WANTED)
    if key in st.session_state and st.session_state[key] not in runs:
        del st.session_state[key]
    if key not in st.session_state and st.query_params.get(ADDRESS) in runs:
        st.session_state[key] = st.query_params[ADDRESS]


@guarded
def beside_this(shown: Shown, key: str) -> None:
    """Draw the PCA that the question is about beside this fit."""
    k, active = sizes(shown)
    size = {"ppca_k": k, "ppca_l": active}.get(st.session_state[key])
    config = variations(shown).get(f"PCA with {counted(size, 'component')}") if size else None
    if config is not None:
        _vary(config)


@guarded
def _vary(config: RunConfig) -> None:
    """Fit a variation, at once if that is quick, and compare with it."""
    st.session_state[WANTED] = config.id
    if services.runs().get(config.id) is not None:
        return
    if fitting.is_live(config):
        services.runs().save(config, fit_run(_dataset(config), config))
        return
    watching.allow(config.id)
    spec = {"config": config.to_dict(), "name": None}
    watching.start("fit", spec, watching.Watched("compare", config.id))


def _dataset(config: RunConfig) -> Dataset:
    return services.dataset(config.dataset)
