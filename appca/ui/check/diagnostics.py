"""The tab Diagnostics: whether to rely on the fit, why as chips, and what it rests on."""

import numpy as np
import streamlit as st

from appca.analysis.check.diagnostics import (
    Check,
    most_frequent,
    numbers_in_use,
    of_climb,
    of_rows,
    worst,
)
from appca.data.dataset import Dataset
from appca.data.readers.intake import duplicate_rows
from appca.plots.check import diagnostics as plots
from appca.plots.curves import likelihood
from appca.ui.check import choose_stability, diagnostics_chains, diagnostics_components
from appca.ui.parts.answers import Number, answer, chip, numbers
from appca.ui.parts.chart import chart
from appca.ui.parts.text import markdown, tag
from appca.ui.session.caching import kept
from appca.ui.session.fitting import Shown
from appca.words.numbers import duration, fixed, percent

ANSWERS = {
    "good": "You can rely on this fit",
    "doubtful": "Rely on this fit with care",
    "bad": "Do not rely on this fit yet",
}


def body(dataset: Dataset, shown: Shown) -> None:
    """Draw the answer, its chips, how the fit went, and further checks, folded."""
    sampled = bool(shown.fitted.posterior)
    checks = diagnostics_chains.checks(shown) if sampled else _climb(shown)
    checks += of_rows(
        shown.fitted.membership,
        kept(f"repeated-{dataset.digest}", lambda: duplicate_rows(dataset.X)),
    )
    level = worst(checks)
    reasons = " ".join(check.why for check in checks if check.level == level)
    answer(ANSWERS[level], "" if level == "good" else reasons, level)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        chips = "".join(chip(check.level, check.label) for check in checks)
        st.html(tag("div", chips, "ca-chips-row"))
        with st.popover("Why?"):
            st.markdown("\n".join(f"- {markdown(check.why)}" for check in checks))
    with st.container(key="beside"):
        left, right = st.columns(2, gap="medium")
        with left, st.container(border=True):
            st.markdown("**Log-likelihood per row**")
            _curve(shown)
        with right, st.container(border=True):
            st.markdown("**How sure the rows' choices are**")
            chart(plots.membership(shown.fitted.membership), "diagnostics_membership")
    st.html(numbers(_numbers(shown)))
    if sampled:
        diagnostics_chains.folds(shown)
    if sampled or (choose_stability.is_offered() and dataset.missing is None):
        title = "Components over the draws" if sampled else "Which weights have a sure sign?"
        with st.expander(title, icon=":material/tonality:"):
            diagnostics_components.spread(dataset, shown)
    if choose_stability.is_offered():
        with st.expander("Do the components come back?", icon=":material/replay:"):
            choose_stability.section(dataset, shown)


def _climb(shown: Shown) -> list[Check]:
    info, tol = shown.info, shown.config.parameters.get("tol")
    return of_climb(shown.fitted.log_likelihoods, info.n_rows, info.stop_reason, tol)


def _curve(shown: Shown) -> None:
    curve, n_rows = np.asarray(shown.fitted.log_likelihoods, dtype=np.float64), shown.info.n_rows
    if shown.fitted.posterior:
        burn_in = diagnostics_chains.schedule(shown)[1]
        chart(plots.likelihood_with_burn_in(curve, n_rows, burn_in), "diagnostics_curve")
    else:
        figure = likelihood(np.arange(1, len(curve) + 1), curve, n_rows)
        chart(figure.update_layout(height=plots.HEIGHT), "diagnostics_curve")


def _numbers(shown: Shown) -> list[Number]:
    doubtful = float(np.mean(shown.fitted.membership < plots.DOUBT))
    info, posterior = shown.info, shown.fitted.posterior
    used: list[Number] = []
    if "n_components" in posterior:
        often = most_frequent(numbers_in_use(posterior))
        used = [(f"{often}", "components used by 5% of rows or more")]
    return [
        *used,
        (fixed(info.log_likelihood / info.n_rows), "nats per row"),
        (percent(doubtful), "of rows unsure"),
        (duration(info.seconds), f"for {info.n_iter:,} iterations"),
    ]
