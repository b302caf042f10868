"""What the page Diagnostics shows of sampled chains: traces, the table, the file."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from appca.analysis.check.diagnostics import (
    LARGEST_R_HAT,
    LEAST_ESS_PER_CHAIN,
    WORRYING_DEPENDENCE,
    Check,
    Diagnosis,
    diagnose,
    failures,
    invariants,
    most_frequent,
    numbers_in_use,
    of_chains,
    of_draws,
    starts_apart,
)
from appca.analysis.export.draws import netcdf_bytes
from appca.plots.check import diagnostics
from appca.ui.parts.chart import chart
from appca.ui.parts.downloads import save_button
from appca.ui.session.caching import kept
from appca.ui.session.fitting import Shown
from appca.words.errors import MissingExtraError
from appca.words.wording import capital

TABLE_ROWS = 12  # more scroll
NAMES_WIDTH = 250  # pixels; they stay in sight where the table is wider than the window
MARK = " ✕"
FORMS: dict[Any, Any] = dict.fromkeys(("ess_bulk", "ess_tail", "burn_in", "total"), "{:,.0f}")
FORMS |= {"mean": "{:,.5g}", "sd": "{:,.3g}", "r_hat": "{:.3f}", "dependence": "{:.1f}"}
FAILS = "background-color: rgba(189, 31, 1, 0.16); font-weight: 600"

Schedule = tuple[int, int, int, int]  # chains, burn-in, draws a chain, sweeps a draw


def schedule(shown: Shown) -> Schedule:
    """Return chains, sweeps of burn-in, kept draws a chain, and sweeps a draw."""
    n_chains, n_draws = shown.fitted.posterior["log_posterior"].shape
    parameters = shown.config.parameters
    return n_chains, int(parameters.get("burn_in", 0)), n_draws, int(parameters.get("thin", 1))


def folds(shown: Shown) -> None:
    """Draw traces, what is known of the number of components and the table, folded."""
    with st.expander("Traces", icon=":material/show_chart:"):
        choose_trace(shown)
        if "n_components" in shown.fitted.posterior:
            st.caption(number_words(shown.fitted.posterior, shown.config.k))
    with st.expander("Each quantity", icon=":material/table:"):
        try:
            table(shown)
            download(shown)
        except MissingExtraError as error:
            st.caption(str(error))


@st.fragment
def choose_trace(shown: Shown) -> None:
    """Draw the trace of one quantity by chain."""
    traces = {
        name: draws
        for name, draws in invariants(shown.fitted.posterior).items()
        if np.ptp(draws) > 0
    }
    if not traces:
        st.caption("Nothing was drawn often enough to move.")
        return
    _, burn_in, _, thin = schedule(shown)
    name = st.selectbox(
        "Quantity",
        list(traces),
        format_func=capital,
        key=f"trace-{shown.config.id}",
        persist_state="session",
        width=330,
    )
    chart(diagnostics.traces(traces[name], capital(name), burn_in + thin, thin), "chains_trace")


def number_words(posterior: Mapping[str, np.ndarray], most: int) -> str:
    """Say how many components the draws use, where at most so many were allowed."""
    used, _ = _often(numbers_in_use(posterior))
    every, high = _often(posterior["n_components"])
    bound = " That is the most allowed: allow more, and look again." if high >= most else ""
    return (
        f"Components used by at least 5% of rows: {used}. Also counting those that "
        f"fewer rows use: {every}.{bound}"
    )


def _often(draws: np.ndarray) -> tuple[str, int]:
    from appca.models.sampling.query_draws import number_band

    low, high = number_band(draws, 0.95)
    often = f"most often {most_frequent(draws)}"
    return often + f", between {low} and {high} in 95% of the draws" * (low < high), high


def checks(shown: Shown) -> list[Check]:
    """Return what there is to know of the chains; imports ArviZ when it is not known yet."""
    config, posterior = shown.config, shown.fitted.posterior
    apart = starts_apart(config.model, config.parameters)
    try:
        of_sampler = of_chains(_diagnoses(shown), schedule(shown)[0], apart=apart)
    except MissingExtraError as error:
        of_sampler = [Check("doubtful", "Chains not compared", str(error))]
    return of_sampler + of_draws(posterior, config.k)


def _diagnoses(shown: Shown) -> list[Diagnosis]:
    return kept(f"chains-{shown.key}", lambda: diagnose(shown.fitted.posterior))


def table(shown: Shown) -> None:
    """Draw the table of invariant quantities; cells that fall short are marked."""
    diagnoses = _diagnoses(shown)
    if not diagnoses:
        return
    n_chains, burn_in, n_draws, thin = schedule(shown)
    asked = next((d.raftery_lewis for d in diagnoses if d.raftery_lewis), None)
    note = "They do not depend on the order, names or signs of components."
    if any(failures(d, n_chains, burn_in / thin) for d in diagnoses):
        note += f" A coloured cell with{MARK} falls short."
    if asked is not None and not asked.enough:
        note += (
            f" The last three columns are guesses: they ask for chains of {asked.least:,} draws, "
            f"and these have {n_draws:,}."
        )
    st.caption(note)
    st.dataframe(
        styled(diagnoses, n_chains, burn_in / thin),
        hide_index=True,
        width="stretch",
        column_config=_columns(n_chains),
        height=38 + 35 * TABLE_ROWS if len(diagnoses) > TABLE_ROWS else "auto",
    )


def styled(diagnoses: list[Diagnosis], n_chains: int, burn_in: float) -> Any:
    """Return a pandas Styler with numbers that sort and marks that do not need colour."""
    import pandas as pd

    frame = pd.DataFrame([_line(d) for d in diagnoses])
    styled = frame.style.format(FORMS, na_rep="—")
    for row, diagnosis in enumerate(diagnoses):
        for column in failures(diagnosis, n_chains, burn_in):
            cell = pd.IndexSlice[[row], [column]]
            styled = styled.format(FORMS[column] + MARK, subset=cell, na_rep="—" + MARK)
            styled = styled.map(lambda _: FAILS, subset=cell)
    return styled


def _line(diagnosis: Diagnosis) -> dict[str, Any]:
    asked = diagnosis.raftery_lewis
    names = ("mean", "sd", "r_hat", "ess_bulk", "ess_tail")
    line = {name: getattr(diagnosis, name) for name in names}
    for name in ("burn_in", "total", "dependence"):
        line[name] = np.nan if asked is None else float(getattr(asked, name))
    return {"name": capital(diagnosis.name), **line}


def _columns(n_chains: int) -> dict[str, Any]:
    least = LEAST_ESS_PER_CHAIN
    wanted = f"At least {least * n_chains} are wanted: {least} a chain."
    raftery = "Raftery and Lewis, to place the 2.5% quantile to within half a percentage point: "
    agree = f"1 when they agree, and to be trusted below {LARGEST_R_HAT}."
    slow = f"Above {WORRYING_DEPENDENCE:g} the chain moves too slowly."
    middle = f"So many independent draws would place the middle as well. {wanted}"
    tails = f"The same for the 5% and the 95% quantile, on which intervals rest. {wanted}"
    times = f"how many times more draws than if they were independent. {slow}"
    texts = {
        "name": ("Quantity", "What is compared."),
        "mean": ("Mean", "Over the draws of all chains."),
        "sd": ("Sd", "Standard deviation over the draws of all chains."),
        "r_hat": ("R-hat", f"The spread between chains against that inside each: {agree}"),
        "ess_bulk": ("Effective draws", middle),
        "ess_tail": ("… in the tails", tails),
        "burn_in": ("Burn-in needed", raftery + "draws to throw away, in the slowest chain."),
        "total": ("Draws needed", raftery + "draws to keep of each chain."),
        "dependence": ("Dependence", raftery + times),
    }
    wide = {"name": NAMES_WIDTH}
    return {
        key: st.column_config.Column(label, help=text, width=wide.get(key), pinned=key in wide)
        for key, (label, text) in texts.items()
    }


def download(shown: Shown) -> None:
    """Draw the button that saves the draws, and the line that reads them."""
    file = f"draws-{shown.config.id}.nc"
    made = partial(netcdf_bytes, shown.fitted.posterior)
    save_button("Save the draws (NetCDF)", made, file, key="draws")
    st.code(f'draws = arviz.from_netcdf("{file}")', language="python")
