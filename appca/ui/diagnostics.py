"""The tab Diagnostics: whether the fit is reliable, and why."""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from appca.analysis import compare, components, diagnostics
from appca.analysis.campaign import MOST_ROWS
from appca.analysis.choose import RECOVERED, Stability
from appca.analysis.components import ROUGHLY, AlignedDraws, identification, name_of, patterns
from appca.analysis.diagnostics import LARGEST_R_HAT, Check, Diagnosis, diagnose, of_chains
from appca.analysis.fitted import FittedRun
from appca.data.dataset import Dataset
from appca.plots import check as plots
from appca.plots.components import data_uri, picture_of, picture_shape
from appca.plots.data import LEAST_SPAN, likelihood
from appca.runs.fit import halves_of, recovered, scales_over
from appca.runs.home import home
from appca.ui import choose, kit
from appca.ui.choose import Look
from appca.ui.downloads import save_button
from appca.ui.fits import Shown
from appca.ui.kit import SURE, answer, chart, chip, loadings, markdown, numbers, tag, words
from appca.ui.services import kept
from appca.words import MissingExtraError, capital, counted, duration, fixed, percent

if TYPE_CHECKING:
    import pandas as pd

SIGNS = {"identified": "✓", "roughly identified": "≈", "not identified": "✕", "in few draws": "✕"}
MANY, HEIGHT = 12, 440  # number of lines or cards above which they scroll, and the height in pixels
_INDEPENDENT = "Independent draws that would be as precise for"
_WANTED = f"{diagnostics.LEAST_ESS_PER_CHAIN} a chain"
_SLOW = f"above {diagnostics.WORRYING_DEPENDENCE:g} the chain is too slow"
_RAFTERY = "Raftery and Lewis, to place the 2.5% quantile to within half a percentage point: "
COLUMNS: dict[str, tuple[str, str, str]] = {  # heading, format, help
    "name": ("Quantity", "", "What is compared."),
    "mean": ("Mean", "%.5g", "Over the draws of all chains."),
    "sd": ("Sd", "%.3g", "Standard deviation over the draws of all chains."),
    "r_hat": ("R-hat", "%.3f", f"1 when chains agree; should be below {LARGEST_R_HAT}."),
    "ess_bulk": ("Effective draws", "%.0f", f"{_INDEPENDENT} the mean; want {_WANTED}."),
    "ess_tail": ("Effective draws, tails", "%.0f", f"{_INDEPENDENT} the 5% and 95% quantiles."),
    "burn_in": ("Burn-in needed", "%.0f", f"{_RAFTERY}draws to throw away, in the slowest chain."),
    "total": ("Draws needed", "%.0f", f"{_RAFTERY}draws to keep of each chain."),
    "dependence": ("Dependence", "%.1f", f"{_RAFTERY}draws per independent draw; {_SLOW}."),
    "short": ("Falls short", "", "Which of these numbers are too small or too large."),
}


def _schedule(shown: Shown) -> tuple[int, int, int, int]:
    """Return chains, sweeps of burn-in, draws per chain, and sweeps per draw."""
    n_chains, n_draws = shown.fitted.posterior["log_posterior"].shape
    parameters = shown.config.parameters
    return n_chains, int(parameters.get("burn_in", 0)), n_draws, int(parameters.get("thin", 1))


@st.fragment
def _choose_trace(shown: Shown) -> None:
    every = diagnostics.invariants(shown.fitted.posterior)
    traces = {name: draws for name, draws in every.items() if np.ptp(draws) > 0}
    if not traces:
        st.caption("No quantity varied over the draws.")
        return
    _, burn_in, _, thin = _schedule(shown)
    look: Look = {"key": f"trace-{shown.config.id}", "persist_state": "session", "width": 330}
    name = st.selectbox("Quantity", list(traces), format_func=capital, **look)
    chart(plots.traces(traces[name], capital(name), burn_in + thin, thin), "chains_trace")


def _diagnoses(shown: Shown) -> list[Diagnosis]:
    return kept(f"chains-{shown.key}", lambda: diagnose(shown.fitted.posterior))


def _table(shown: Shown) -> None:
    diagnoses = _diagnoses(shown)
    n_chains, burn_in, n_draws, thin = _schedule(shown)
    note = "These quantities do not depend on the order, names or signs of components."
    if n_draws < diagnostics.INDEPENDENT_DRAWS and any(d.raftery_lewis for d in diagnoses):
        note += " The last three columns are unreliable: they need chains of "
        note += f"{diagnostics.INDEPENDENT_DRAWS:,} draws, and these have {n_draws:,}."
    if diagnoses:
        st.caption(note)
        columns = {
            key: st.column_config.NumberColumn(label, format=form, help=told)
            if form
            else st.column_config.TextColumn(label, help=told, pinned=key == "name")
            for key, (label, form, told) in COLUMNS.items()
        }
        look: Look = {"hide_index": True, "width": "stretch", "column_config": columns}
        look["height"] = HEIGHT if len(diagnoses) > MANY else "auto"
        st.dataframe(lines_of(diagnoses, n_chains, burn_in / thin), **look)
    file = f"draws-{shown.config.id}.nc"

    def made() -> bytes:
        from appca.models.chains import netcdf_bytes

        return netcdf_bytes(shown.fitted.posterior)

    save_button("Save the draws (NetCDF)", made, file, key="draws")
    st.code(f'draws = arviz.from_netcdf("{file}")', language="python")


def lines_of(diagnoses: list[Diagnosis], n_chains: int, burn_in: float) -> "pd.DataFrame":
    """Return one line per quantity; the last column names its failed checks."""
    import pandas as pd

    lines: list[list[object]] = []
    for diagnosis in diagnoses:
        asked = diagnosis.raftery_lewis or (np.nan, np.nan, np.nan)
        short = diagnostics.failures(diagnosis, n_chains, burn_in)
        names = ", ".join(head for key, (head, *_) in COLUMNS.items() if key in short)
        lines.append([capital(diagnosis.name), *diagnosis[1:6], *map(float, asked), names])
    return pd.DataFrame(lines, columns=list(COLUMNS))


def _components(dataset: Dataset, shown: Shown) -> None:
    st.caption(
        "Mean and standard deviation over the draws, matched in order and sign. A hollow bar or "
        "blank pixel is a weight of uncertain sign, within two standard deviations of 0. |cos| "
        "is 1 where draws have the direction of the component."
    )
    tall = len(shown.fitted.components) > MANY
    with st.container(height=HEIGHT if tall else "content", border=False):
        st.html(kept(f"draws-{shown.key}", lambda: cards(shown.fitted, dataset)))


def cards(fitted: FittedRun, dataset: Dataset) -> str:
    """Return each component's mean and spread over the draws as HTML."""
    aligned = components.summarise(
        fitted.posterior["components"],
        fitted.components,
        lambda W: patterns(replace(fitted, components=W), picture_shape(dataset)),
    )
    every = ""
    for k in range(len(aligned.mean)):
        called, pictures = name_of(fitted, k), ""
        name = tag("div", words(capital(called)), "ca-name")
        lines = "".join(tag("div", words(line)) for line in _agreement(aligned, k))
        sure = np.abs(aligned.mean[k]) >= SURE * aligned.sd[k]
        for what, values in (("mean", np.where(sure, aligned.mean[k], 0)), ("sd", aligned.sd[k])):
            if (drawn := picture_of(values, dataset)) is not None:
                image = tag("img", "", src=data_uri(drawn), alt=f"{what} of {called}")
                below = tag("div", what, "ca-quiet", style="text-align:center")
                pictures += tag("div", image + below, style="flex:none")
        bars = "" if pictures else loadings(aligned.mean[k], dataset.feature_names, aligned.sd[k])
        text = tag("div", name + bars + tag("div", lines, "ca-quiet"))
        every += tag("div", pictures + text, "ca-card")
    grid = "grid-template-columns:repeat(auto-fill,minmax(260px,1fr))"
    return tag("div", every, "ca-cards", style=grid)


def _agreement(aligned: AlignedDraws, k: int) -> list[str]:
    level = identification(aligned.cosine[k], aligned.present[k])
    largest = max(float(np.abs(aligned.mean[k]).max()), np.finfo(float).tiny)
    lines = [
        f"{SIGNS[level]} {level}",
        f"|cos| {aligned.cosine[k]:.3f}",
        f"sd up to {percent(aligned.sd[k].max() / largest)} of the largest weight",
    ]
    if aligned.present[k] < 1:
        lines.append(f"in {percent(aligned.present[k])} of the draws")
    of_chains = aligned.by_chain[:, k]
    apart = np.flatnonzero(of_chains < ROUGHLY) + 1
    if 0 < len(apart) < len(of_chains):
        which = ", ".join(map(str, apart))
        who = f"chain {which} has" if len(apart) == 1 else f"chains {which} have"
        lines.append(f"{who} a different component")
    return lines


ANSWERS = {
    "good": "You can rely on this fit",
    "unknown": "Not checked yet",
    "doubtful": "Rely on this fit with care",
    "bad": "Do not rely on this fit yet",
}


def _of_rows(dataset: Dataset, shown: Shown) -> list[Check]:
    now, fitted, (plain, scaled) = shown.config, shown.fitted, recovered(shown.config)
    checks = diagnostics.of_scales(fitted)
    if scaled < plain and fitted.row_scales is not None:  # the steadier of two fits is advised
        why = f"Without row scales, halves recover {plain} components, not {scaled}: fit without."
        checks.append(Check("doubtful", "Steadier without row scales", why))
    elif len(scales_over(dataset, now)) > 1:
        why = "A scale per row describes held-out rows clearly better: use row scales."
        checks.append(Check("doubtful", "Rows differ in scale", why))
    of = partial(diagnostics.of_classes, fitted, kit.every(dataset))
    checks += kept(f"classes-{shown.key}-{[*dataset.labels]}", of)
    repeated, few = len(dataset.repeated_rows), dataset.has_few_values
    return checks + diagnostics.of_rows(fitted, repeated, dataset.sparse_rows.mean(), few)


def halves_here(dataset: Dataset, shown: Shown) -> tuple[Stability | None, bool]:
    """Return the outcome of fits to halves, and whether its components have the page's numbers."""
    config, order = halves_of(shown.config), list(shown.numbering.order)
    outcome = config.outcome(home()) if config is not None else None
    is_same = config is not None and config.parameters == shown.config.parameters
    if outcome is None or not order or not is_same or dataset.n_rows > MOST_ROWS:
        return outcome, False
    return outcome._replace(cosines=outcome.cosines[:, order]), True


def in_short(dataset: Dataset, shown: Shown) -> str:
    """Summarize the stored checks of a fit in a few words; without checks, how it ended."""
    fitted = shown.fitted
    is_odd = shown.config.stopped_at is not None or "floor" in shown.info.stop_reason
    if fitted.posterior or kit.still_improves(shown) or is_odd:
        return kit.ending(shown)
    every = [
        *kept(f"used-{shown.key}", lambda: diagnostics.of_components(fitted, dataset.ids)),
        *diagnostics.of_halves(*halves_here(dataset, shown)),
        *_of_rows(dataset, shown),
    ]
    level = diagnostics.worst(every)
    said = next(check.label for check in every if check.level == level)
    return {"good": "Fits well", "unknown": kit.ending(shown)}.get(level, said)


def verdict(dataset: Dataset, shown: Shown) -> tuple[diagnostics.Level, list[Check]]:
    """Return whether the fit is reliable, and the checks that say so."""
    fitted, parameters, halves = shown.fitted, shown.config.parameters, halves_of(shown.config)
    if fitted.posterior:
        apart = diagnostics.starts_apart(shown.config.model, parameters)
        try:
            checks = of_chains(_diagnoses(shown), _schedule(shown)[0], apart=apart)
        except MissingExtraError as error:
            checks = [Check("doubtful", "Chains not compared", str(error))]
        checks += diagnostics.of_draws(fitted.posterior, shown.config.k)
    else:
        noise, share = fitted.noise_variance, 0.0
        if np.ndim(noise):
            Y = fitted.preprocessing.transform
            share = kept(f"floor-{shown.key}", lambda: compare.share_at_floor(noise, Y(dataset.X)))
        checks = diagnostics.of_climb(fitted.log_likelihoods, shown.info.stop_reason, share)
    checks += kept(f"used-{shown.key}", lambda: diagnostics.of_components(fitted, dataset.ids))
    if halves is not None:
        checks += diagnostics.of_halves(*halves_here(dataset, shown))
    else:
        why = "This check does not support the model: compare the fit with another start."
        checks.append(Check("doubtful", "Not checked on halves", why))
    checks += _of_rows(dataset, shown)
    return diagnostics.worst(checks), checks


def body(dataset: Dataset, shown: Shown) -> None:
    """Draw whether the fit is reliable, and the reasons."""
    sampled, info, halves = bool(shown.fitted.posterior), shown.info, halves_of(shown.config)
    level, checks = verdict(dataset, shown)
    first = next(check.why for check in checks if check.level == level)
    sure = [f"It explains {percent(kit.shares(dataset, shown)[1])} of the variance."]
    sure += [check.why for check in checks if check.label.endswith("half certain")]
    answer(ANSWERS[level], " ".join(sure) if level == "good" else first, level)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        chips = "".join(chip(check.level, check.label) for check in checks)
        st.html(tag("div", chips, "ca-chips-row"))
        with st.popover("Why?"):
            st.markdown("\n".join(f"- **{markdown(c.label)}**: {markdown(c.why)}" for c in checks))
            kit.onward("check/choose", "Choose K and L", ":material/tune:")
    if halves and not kit.follow(halves.id, "stability_cancel") and halves.outcome(home()) is None:
        choose.start_button(dataset, halves, "stability", "Fit halves of the rows")
    with st.container(key="beside"):
        left, right = st.columns(2, gap="medium")
    with left, st.container(border=True):
        st.markdown("**Log-likelihood per row, all rows**")
        curve = np.asarray(shown.fitted.log_likelihoods, dtype=np.float64)
        figure = likelihood(np.arange(1, len(curve) + 1), curve, info.n_rows)
        if sampled:
            figure = plots.likelihood_with_burn_in(curve, info.n_rows, _schedule(shown)[1])
        if sampled or (len(curve) > 2 and np.ptp(curve) > LEAST_SPAN * info.n_rows):
            chart(figure.update_layout(height=plots.HEIGHT), "diagnostics_curve")
        else:
            said = kit.ending(shown)
            near = ": the start was already near this maximum" * said.startswith("Converged")
            st.markdown(f"{said}{near}.")
    with right, st.container(border=True):
        st.markdown("**Membership of the rows**")
        chart(plots.membership(shown.fitted.membership), "diagnostics_membership")
    facts = [
        (fixed(info.log_likelihood / info.n_rows), "nats per row, all rows"),
        (percent(float(np.mean(shown.fitted.membership < plots.DOUBT))), "of rows between panels"),
        (duration(info.seconds), f"for {counted(info.n_iter, 'iteration')}"),
    ]
    st.html(numbers(facts))
    if sampled:
        with st.expander("Traces", icon=":material/show_chart:"):
            _choose_trace(shown)
        with st.expander("Each quantity", icon=":material/table:"):
            try:
                _table(shown)
            except MissingExtraError as error:
                st.caption(str(error))
        with st.expander("Components over the draws", icon=":material/tonality:"):
            _components(dataset, shown)
    if (stability := halves_here(dataset, shown)[0]) is not None:
        with st.expander("Are the components recovered?", icon=":material/replay:"):
            figure = plots.stability(stability.cosines, (ROUGHLY, RECOVERED))
            chart(figure, "choose_stability")
