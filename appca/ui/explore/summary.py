"""What came out of a fit: in words, in numbers, and as the curve of its climb."""

import numpy as np
import streamlit as st

from appca.analysis.explore.projection import explained_share
from appca.analysis.explore.subspaces import ranked
from appca.analysis.fitted import FittedRun
from appca.data.numbers import fixed, percent
from appca.plots.curves import likelihood
from appca.runs.run import RunInfo
from appca.ui.frame.place import place_of_run
from appca.ui.parts.chart import chart
from appca.ui.parts.text import DOUBTFUL_ROWS, duration, ended, fact_list, passes
from appca.ui.parts.widgets import onward
from appca.ui.session.fitting import Shown


def summary(shown: Shown) -> None:
    """Draw the result of a fit."""
    info, fitted = shown.info, shown.fitted
    n_rows = info.n_rows
    with st.container(horizontal=True, gap="medium"):
        per_row = info.log_likelihood / n_rows
        _number("Log-likelihood", fixed(per_row), "nats per row; higher describes the data better")
        explained = explained_share(fitted)
        _number("Explained", percent(explained, 1), "of the variance of the preprocessed data")
        doubtful = float(np.mean(fitted.membership < 0.5))
        _number("Doubtful rows", percent(doubtful, 1), DOUBTFUL_ROWS)
        _number("Subspaces in use", f"{len(ranked(fitted.active)):,}", "choices of components")
    st.html(facts(shown))
    curve = np.asarray(fitted.log_likelihoods, dtype=float)
    if len(curve) > 1:
        passed = np.arange(1, len(curve) + 1)
        chart(likelihood(passed, curve, n_rows, shown.config.is_sampled), "summary_curve")


def facts(shown: Shown) -> str:
    """Return how the fit went, as HTML."""
    info, fitted = shown.info, shown.fitted
    latent = fitted.latent_variance
    work = passes(info.n_iter, sampled=shown.config.is_sampled)
    spread = f"{latent.min():.3g}" + (f" to {latent.max():.3g}" if np.ptp(latent) > 0 else "")
    lines = {
        "Ended": ended(info.stop_reason),
        "Work": f"{work} in {duration(info.seconds)}",
        "Noise variance": f"{fitted.noise_variance:.4g}",
        "Latent variance": spread,
        **_learned(fitted),
        **_estimated(info),
        **place_of_run(info),
        "Run": shown.config.id + (", imported" if shown.config.imported is not None else ""),
    }
    return fact_list(lines)


def _learned(fitted: FittedRun) -> dict[str, str]:
    """Say what a model without a fixed number of components has found about it."""
    if fitted.alpha is None:
        return {}
    used = fitted.active.sum(axis=1)
    return {
        "Components": f"{len(fitted.components)} in the best draw",
        "Used by a row": f"{used.mean():.1f} on average, {used.min()} to {used.max()}",
        "Alpha": f"{fitted.alpha:.3g}",
    }


def _estimated(info: RunInfo) -> dict[str, str]:
    """Say how exact the log-likelihood is where it is not a sum over all choices."""
    error = info.likelihood_error / info.n_rows
    return {"Likelihood": f"{info.likelihood}; ± {error:.2g} nats per row"} if error else {}


def _number(label: str, value: str, meaning: str) -> None:
    st.metric(label, value, help=meaning, width="content")


def next_steps() -> None:
    """Draw the links to the pictures of the run."""
    with st.container(horizontal=True):
        onward("explore", "Look at the subspaces")
        onward("explore/umap", "Map with UMAP")
        onward("check/diagnostics", "Can it be trusted?")
        onward("export", "Export")
