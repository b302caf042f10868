"""The page Diagnostics: the verdict, how a fit by EM went, and how sure the rows' choices are."""

import numpy as np
import streamlit as st

from appca.analysis.check.diagnostics import ChainVerdict, climb_of, verdict_on_climb
from appca.data.numbers import percent
from appca.plots.check import diagnostics
from appca.plots.curves import likelihood
from appca.ui.check import diagnostics_chains, diagnostics_components
from appca.ui.parts.chart import chart
from appca.ui.parts.text import DOUBTFUL_ROWS, duration, ended, fact_list, passes, tag, words
from appca.ui.parts.widgets import onward
from appca.ui.session.fitting import Shown

DOUBTFUL = 0.5  # rows below that are drawn hollow on the page Subspaces
# level -> sign, colour of its ground and of itself
SIGNS = {
    "good": ("✓", "#2e7d4f", "#ffffff"),
    "doubtful": ("!", "#ffa90e", "#1c2733"),
    "bad": ("✕", "#bd1f01", "#ffffff"),
}
OF_CHAINS = {"good": "Can be trusted", "doubtful": "Doubtful", "bad": "Not to be trusted"}
OF_CLIMBS = {"good": "Settled", "doubtful": "Doubtful", "bad": "Not converged"}
CIRCLE = (
    "flex:none;width:30px;height:30px;border-radius:50%;display:flex;align-items:center;"
    "justify-content:center;font-weight:700"
)


def is_sampled(shown: Shown) -> bool:
    """Whether the run has draws."""
    return bool(shown.fitted.posterior)


def body(shown: Shown, image_shape: tuple[int, ...] | None, names: tuple[str, ...] | None) -> None:
    """Draw the page of a run.

    Parameters
    ----------
    shown : Shown
    image_shape, names : tuple or None
        Of the data set: how a component is drawn.
    """
    with st.container(key="beside"):  # its columns stand below each other in a narrow window
        if is_sampled(shown):
            _sampled(shown, image_shape, names)
        else:
            _climbed(shown)
        _allocation(shown)
        if is_sampled(shown):
            diagnostics_chains.download(shown)


def card(verdict: ChainVerdict, levels: dict[str, str], more: str = "") -> None:
    """Draw a verdict: a sign, the level in words (`levels`), and the reasons."""
    sign, ground, ink = SIGNS[verdict.level]
    circle = tag("div", sign, style=f"{CIRCLE};background:{ground};color:{ink}")
    text = tag("div", words(levels[verdict.level]), style="font-weight:600;font-size:1.1rem")
    text += tag("div", words(verdict.words))
    if more:
        text += tag("div", words(more), "ca-quiet", style="margin-top:4px;font-size:0.9rem")
    box = (
        "display:flex;gap:14px;align-items:flex-start;padding:12px 16px;border-radius:10px;"
        f"border-left:5px solid {ground};"
        f"background:color-mix(in srgb, {ground} 11%, transparent)"
    )
    attributes = {"role": "status", "data-level": verdict.level, "style": box}
    st.html(tag("div", circle + tag("div", text), **attributes))


def doubt(shown: Shown) -> str:
    """Say how many rows' choices of components are doubtful."""
    share = float(np.mean(shown.fitted.membership < DOUBTFUL))
    if not share:
        return "No row is doubtful about which components it uses."
    return (
        f"What remains doubtful: {percent(share, 1)} of the rows use a set of components "
        f"whose probability is under {percent(DOUBTFUL)}."
    )


def _sampled(
    shown: Shown, image_shape: tuple[int, ...] | None, names: tuple[str, ...] | None
) -> None:
    """Draw what the chains say; what needs ArviZ, which is slow to import, comes last."""
    above = st.container()
    diagnostics_chains.facts(shown)
    st.subheader("Traces", anchor=False)
    diagnostics_chains.choose_trace(shown)
    below = st.container()
    diagnostics_chains.likelihood_and_number(shown)
    diagnostics_components.components(shown, image_shape, names)
    with above:
        card(diagnostics_chains.judged(shown), OF_CHAINS, doubt(shown))
    with below:
        diagnostics_chains.table(shown)


def _climbed(shown: Shown) -> None:
    info, curve = shown.info, np.asarray(shown.fitted.log_likelihoods, dtype=np.float64)
    tol = shown.config.parameters.get("tol")
    climb = climb_of(curve, info.n_rows, info.stop_reason, tol)
    card(verdict_on_climb(climb), OF_CLIMBS, doubt(shown))
    lines = {
        "Ended": ended(info.stop_reason),
        "Work": f"{passes(info.n_iter)} in {duration(info.seconds)}",
    }
    st.html(fact_list(lines))
    if len(curve) > 1:
        left, right = st.columns(2, gap="medium")
        with left:
            st.subheader("Log-likelihood a row", anchor=False)
            passed = np.arange(1, len(curve) + 1)
            climbed = likelihood(passed, curve, info.n_rows)
            chart(climbed.update_layout(height=diagnostics.HEIGHT), "diagnostics_curve")
        if len(curve) > diagnostics.WINDOW:
            with right:
                st.subheader("Gain of ten passes", anchor=False)
                chart(diagnostics.gains(curve, info.n_rows, tol), "diagnostics_gains")
    st.markdown(
        "This run is a single best answer without error bars. For draws from the posterior, "
        "choose Inference “Gibbs sampling” on the page Fit."
    )
    onward("explore", "Explore")


def _allocation(shown: Shown) -> None:
    """Draw how sure the rows' choices of components are."""
    inclusion = np.asarray(shown.fitted.inclusion)
    st.subheader("How sure are the rows' choices?", anchor=False)
    if bool(np.all(inclusion >= 1.0)):
        st.caption("Every row uses all components: there is no choice to be unsure of.")
        return
    sampled = is_sampled(shown)
    given = " at the parameters of the published draw" if sampled else ""
    over = ", on average over the draws" if sampled and shown.fitted.draws else ""
    st.caption(
        "Each row uses the set of components that fits it best. Left: how probable that set "
        f"is{given}; under {percent(DOUBTFUL)} other sets together are as likely, and the row is "
        "drawn hollow on the page Subspaces. Right: for how many rows the model is at least 90% "
        f"sure that they use a component, or that they do not{over}."
    )
    left, right = st.columns(2, gap="medium")
    with left:
        doubtful = float(np.mean(shown.fitted.membership < DOUBTFUL))
        st.metric("Doubtful rows", percent(doubtful, 1), help=f"Rows {DOUBTFUL_ROWS}.")
        chart(diagnostics.membership(shown.fitted.membership), "diagnostics_membership")
    with right:
        between = (inclusion > diagnostics.SURELY_NOT) & (inclusion < diagnostics.SURE)
        told = "Pairs of a row and a component of which the model is neither way 90% sure."
        st.metric("Unsure uses", percent(float(np.mean(between)), 1), help=told)
        chart(diagnostics.sureness(inclusion), "diagnostics_sureness")
