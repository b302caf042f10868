"""The page Runs: the kept fits as a list, and two of them in numbers side by side."""

from collections.abc import Sequence
from datetime import datetime

import streamlit as st

from appca.analysis.explore.projection import explained_share
from appca.data.numbers import number, percent
from appca.runs.configuration import MODELS
from appca.runs.store import Run
from appca.storage.errors import InputError
from appca.ui.frame.place import place_of_run
from appca.ui.parts.text import (
    apart,
    duration,
    ended,
    fact_list,
    markdown,
    nats_per_row,
    passes,
    tag,
    words,
)
from appca.ui.parts.widgets import onward
from appca.ui.session import services, state
from appca.ui.session.callbacks import guarded

PAGE = 15


def all_runs() -> Sequence[Run]:
    """Return the readable runs, newest first; damaged ones are named in a box."""
    for one in services.runs().damaged():
        with st.container(horizontal=True, vertical_alignment="center", key=f"damaged-{one.id}"):
            st.warning(markdown(one.sentence))
            st.button("Delete", key=f"drop-{one.id}", on_click=_delete, args=[one.id])
    return services.runs().list()


def nothing_yet() -> None:
    """Say how a run comes about."""
    st.info("There is no run yet. Every fit is kept here, also those of the sliders.")
    onward("explore", "Look at the first one")


def listing(runs: Sequence[Run]) -> None:
    """Draw the list, a card for each run."""
    page = 1
    if len(runs) > PAGE:
        page = st.pagination(-(-len(runs) // PAGE), key="runs_page", persist_state="session")
    for run in runs[(page - 1) * PAGE : page * PAGE]:
        _card(run)


def comparison(runs: Sequence[Run]) -> None:
    """Draw two runs' numbers side by side."""
    if len(runs) < 2:
        return
    st.subheader("Side by side", anchor=False)
    by_id = {run.id: run for run in runs}
    for first, column in enumerate(st.columns(2)):
        chosen = column.selectbox(
            ("First run", "Second run")[first],
            by_id,
            index=first,
            format_func=lambda run_id: _label(by_id[run_id]),
            key=("compare_a", "compare_b")[first],
            persist_state="session",
        )
        try:
            column.html(_facts(by_id[chosen]))
        except InputError as error:  # the other run's numbers are shown all the same
            column.error(markdown(str(error)))
    st.caption(
        "Log-likelihoods can be compared between runs on the same data with the same preprocessing."
    )


def _card(run: Run) -> None:
    open_now = run.id == state.config().id
    with st.container(
        border=True, horizontal=True, vertical_alignment="center", key=f"run-{run.id}"
    ):
        st.html(_title(run, open_now))
        whose = f"run {_label(run)}"
        key = f"open-{run.id}"
        st.button(apart("Open", whose), key, on_click=_open, args=[run], disabled=open_now)
        with st.popover(apart("Rename", whose), key=f"rename-{run.id}"):
            st.text_input(
                f"Name of run {run.id[:6]}",
                run.given or "",
                key=f"name-{run.id}",
                max_chars=120,
                placeholder=run.name,
                on_change=_rename,
                args=[run.id],
            )
        with st.popover(apart("Delete", whose), key=f"delete-{run.id}"):
            st.text("This cannot be undone.")
            key = f"really-{run.id}"
            st.button("Delete this run", key, type="primary", on_click=_delete, args=[run.id])


def _title(run: Run, open_now: bool) -> str:
    marks = ["on screen"] if open_now else []
    marks += ["stopped by hand"] if run.partial else []
    marks += ["from the sliders"] if not run.kept else []
    when = datetime.fromtimestamp(run.created).strftime("%d %b %Y, %H:%M")
    took = f"{passes(run.info.n_iter, sampled=run.config.is_sampled)}, {duration(run.info.seconds)}"
    line = [_data_name(run), nats_per_row(run.info), took, when, *marks]
    return tag("div", words(run.name), "ca-name") + tag("div", words(" · ".join(line)), "ca-quiet")


def _data_name(run: Run) -> str:
    try:
        return services.dataset(run.config.dataset).name
    except InputError as error:
        return "data set damaged" if "damaged" in str(error) else "data set no longer here"


def _label(run: Run) -> str:
    return f"{run.name} · {run.id[:6]}"


def _facts(run: Run) -> str:
    info = run.info
    lines = {
        "Data": _data_name(run),
        "Model": MODELS[run.config.model].title,
        "Components": ", ".join(run.config.sizes),
        "Log-likelihood": nats_per_row(info),
        "Explained": f"{percent(explained_share(run.fitted), 1)} of the variance",
        "Residual": f"{number(run.fitted.error.mean(dtype=float))} mean square a feature",
        "Ended": ended(info.stop_reason),
        "Time": duration(info.seconds),
        **place_of_run(info),
    }
    return fact_list(lines)


def _open(run: Run) -> None:
    try:
        state.open_config(run.config)
    except InputError as error:
        state.notify("error", f"{run.name} cannot be shown: {error}")


@guarded
def _delete(run_id: str) -> None:
    services.runs().delete(run_id)


@guarded
def _rename(run_id: str) -> None:
    services.runs().rename(run_id, st.session_state[f"name-{run_id}"])
