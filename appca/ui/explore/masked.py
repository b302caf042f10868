"""Missing cells on the page Fit: what the model puts there, and how well it predicts others."""

from functools import partial

import numpy as np
import streamlit as st

from appca.analysis.check.journal import JournalStore
from appca.analysis.explore.masked import (
    EVERY,
    FEW,
    FOLDER,
    MEANS,
    OWN,
    MaskedConfig,
    is_whole,
    stored,
)
from appca.analysis.export.projections import csv_bytes, free_name
from appca.data.dataset import Dataset
from appca.data.numbers import number, percent
from appca.jobs.masked import estimate
from appca.runs.configuration import defaults
from appca.runs.fit import fits_around_gaps
from appca.runs.home import home
from appca.storage.wording import counted
from appca.ui.parts import progress
from appca.ui.parts.downloads import save_button, stem_of
from appca.ui.parts.text import about, tag, words
from appca.ui.parts.text import table as html_table
from appca.ui.session import computation
from appca.ui.session.callbacks import guarded
from appca.ui.session.fitting import Shown

PLACEHOLDERS = (
    "Adaptive PPCA by exact EM and PPCA leave the missing cells out of the fit, and errors of rows "
    "are those of their observed cells. The PCA panel, UMAP, nearest rows, statistics of "
    "columns and the fits of “Choose K and L” and “Compare” with other methods read the column's "
    "mean in their place."
)
WHAT_FOR = (
    "Some of the known cells are hidden, the models are fitted without them, and what they put "
    "there is held against what was there: root mean squared error, in units after preprocessing."
)


def section(dataset: Dataset, shown: Shown) -> None:
    """Draw what a fit around missing cells gives, and the test on hidden ones; else nothing."""
    config = shown.config
    reduced = config.preprocessing.get("pca") is not None or config.preprocessing.get("vae")
    if shown.is_preview or reduced or not fits_around_gaps(config):
        return
    if dataset.missing is None:
        with st.expander("How well does it predict hidden cells?"):
            _test(dataset, shown)
        return
    st.subheader("Missing cells", anchor=False)
    _filled(dataset, shown)
    _test(dataset, shown)


def _filled(dataset: Dataset, shown: Shown) -> None:
    share = dataset.n_missing / dataset.X.size
    rows = counted(len(dataset.incomplete_rows), "row")
    st.markdown(
        f"**{counted(dataset.n_missing, 'cell')}** in {rows}, {percent(share, 1)} of the table: "
        "the model was fitted around them and says what belongs there."
    )
    st.caption(PLACEHOLDERS)
    imputed = shown.fitted.imputed
    if imputed is None:
        return
    save_button(
        "Save the data, filled by the model",
        partial(filled_csv, dataset, imputed),
        f"{stem_of(dataset.name)}-filled.csv",
        "text/csv",
        key="filled",
    )


def filled_csv(dataset: Dataset, imputed: np.ndarray | None) -> bytes:
    """Return the data as CSV with the model's values (m,) in the missing cells."""
    import pandas as pd

    X = dataset.with_gaps()
    X[dataset.missing] = imputed
    names = dataset.feature_names or [f"feature_{j + 1}" for j in range(dataset.n_features)]
    front: dict[str, np.ndarray] = {"id": dataset.ids.astype(object)}
    for name, column in dataset.labels.items():
        text = column.dtype.kind in "US"
        front[free_name(name, {*front, *names})] = column.astype(object) if text else column
    features = pd.DataFrame(X, columns=list(names))
    return csv_bytes(pd.concat([pd.DataFrame(front), features], axis=1))


def config_of(shown: Shown) -> MaskedConfig:
    """Return the test on hidden cells for the settings of a run."""
    now = shown.config
    parameters = now.parameters
    if now.model == "PPCA":
        parameters = defaults("aPPCA") | {"n_components": now.k, "n_active": now.k}
    return MaskedConfig(now.dataset, now.preprocessing, dict(parameters))


def _test(dataset: Dataset, shown: Shown) -> None:
    config = config_of(shown)
    st.caption(WHAT_FOR)
    if progress.follow(config.id, cancel="masked_cancel"):
        return
    found = stored(JournalStore(home(), FOLDER), config)
    if found:
        st.html(table(config, found))
        st.markdown(verdict(config, found))
    if not is_whole(found, config):
        takes = about(estimate(config, dataset.n_rows, dataset.n_features))
        st.button(
            f"Hide {percent(config.share)} of the cells and compare",
            key="masked_start",
            on_click=guarded(computation.start),
            args=["masked", config.id, config.to_dict() | {"key": config.id}],
            help=f"{counted(config.repeats, 'time')} other cells, in the background; {takes}.",
        )


def titles(config: MaskedConfig) -> dict[str, str]:
    """Name the methods."""
    K, L = config.sizes
    return {
        OWN: f"Adaptive PPCA, {L} of {K}",
        FEW: f"PPCA with {L}, as many as a row uses",
        EVERY: f"PPCA with all {K}",
        MEANS: "Means of the columns",
    }


def table(config: MaskedConfig, found: dict[str, np.ndarray]) -> str:
    """Return the errors as an HTML table, the smallest marked."""
    means = {method: float(errors.mean()) for method, errors in found.items()}
    base, best = means.get(MEANS), min(means, key=means.__getitem__)
    body = ""
    for method, errors in found.items():
        spread = f" ± {number(errors.std(ddof=1))}" if len(errors) > 1 else ""
        share = percent(means[method] / base) if base else "–"
        cells = tag("th", words(titles(config)[method]), scope="row")
        cells += tag("td", words(f"{number(means[method])}{spread}"), "ca-best" * (method == best))
        body += tag("tr", cells + tag("td", words(share)))
    return html_table(("Method", "Error on hidden cells", "Against the means"), body)


def verdict(config: MaskedConfig, found: dict[str, np.ndarray]) -> str:
    """Say which method predicts best; also where that is not the model, or nobody can tell."""
    means = {method: float(errors.mean()) for method, errors in found.items()}
    ranked = sorted(means, key=means.__getitem__)
    best, own = ranked[0], config.methods[0]
    rivals = [method for method in ranked if method != own]
    if best == own and is_clear(found[own], found[rivals[0]]):
        return "The model predicts hidden cells best."
    if own in found and rivals and not is_clear(*(found[method] for method in ranked[:2])):
        near = " and ".join(titles(config)[method] for method in ranked[:2])
        return f"{near} predict hidden cells about equally well."
    if best == MEANS:
        return "Nothing predicts hidden cells better than the columns' means here."
    if best == EVERY and means.get(own, np.inf) < means.get(FEW, -np.inf):
        return (
            "With equally many components a row the model predicts better than PPCA, but PPCA "
            "with all components is better still: where cells are to be filled, use that."
        )
    return "PPCA predicts hidden cells better here: where cells are to be filled, use that."


def is_clear(less: np.ndarray, more: np.ndarray) -> bool:
    """Whether errors on the same hidden cells differ by more than twice their standard error."""
    n = min(len(less), len(more))
    left = more[:n] - less[:n]
    return n > 1 and bool(left.mean() > 2.0 * left.std(ddof=1) / np.sqrt(n))
