"""The tab Hidden cells: how well the model predicts cells it has not seen, beside others."""

from functools import partial

import numpy as np
import streamlit as st

from appca.analysis.masked import EVERY, FEW, MEANS, NEAR, OWN, RIDGE, MaskedConfig
from appca.analysis.tables import csv_bytes, front_columns
from appca.data.dataset import Dataset
from appca.plots.check import hidden_errors, unmeasured
from appca.runs.fit import fits_around_gaps
from appca.runs.home import home
from appca.runs.run import defaults
from appca.ui import kit
from appca.ui.choose import start_button
from appca.ui.downloads import save_button, stem_of
from appca.ui.fits import Shown
from appca.ui.kit import Level, answer, chart, numbers
from appca.words import counted, number, percent

WHY = (
    "Some known cells are hidden, every method is fitted without them, and what it puts there is "
    "compared with the true values: root mean squared error, in units after preprocessing. Ridge "
    "predicts each column from all others; nearest rows takes the mean of 15 similar rows."
)


def body(dataset: Dataset, shown: Shown) -> None:
    """Draw which method predicts hidden cells best, or how long it takes to know."""
    reduced = shown.config.preprocessing.get("pca") is not None
    if reduced or not fits_around_gaps(shown.config):
        text = (
            "Choose adaptive PPCA by EM without its extensions, or PPCA, and no PCA before the fit."
        )
        answer("This model cannot leave cells out", text, "unknown")
        return
    _test(dataset, config_of(shown))
    if dataset.missing is None:
        return
    share = percent(dataset.n_missing / dataset.X.size, 1)
    st.markdown(f"**{counted(dataset.n_missing, 'cell')}** of the data are missing, {share}.")
    if shown.fitted.imputed is not None:
        save_button(
            "Save the data, filled by the model",
            partial(filled_csv, dataset, shown.fitted.imputed),
            f"{stem_of(dataset.name)}-filled.csv",
            key="filled",
        )


def filled_csv(dataset: Dataset, imputed: np.ndarray | None) -> bytes:
    """Return the data as CSV with the model's values (m,) in the missing cells."""
    import pandas as pd

    X = dataset.with_gaps()
    X[dataset.missing] = imputed
    names = dataset.feature_names or [f"feature_{j + 1}" for j in range(dataset.n_features)]
    front = pd.DataFrame(front_columns(dataset, np.arange(dataset.n_rows), names))
    return csv_bytes(pd.concat([front, pd.DataFrame(X, columns=list(names))], axis=1))


def config_of(shown: Shown) -> MaskedConfig:
    """Return the test on hidden cells for the settings of a run."""
    now = shown.config
    parameters = now.parameters
    if now.model == "PPCA":
        parameters = defaults("aPPCA") | {"n_components": now.k, "n_active": now.k}
    return MaskedConfig(now.dataset, now.preprocessing, dict(parameters))


def _test(dataset: Dataset, config: MaskedConfig) -> None:
    if kit.follow(config.id, cancel="masked_cancel"):
        return
    errors, names = config.errors(home()), titles(config)
    if errors:
        answer(verdict(config, errors), level=level(errors))
        means = {key: float(values.mean()) for key, values in errors.items()}
        ranked = sorted(errors, key=means.__getitem__)
        chart(hidden_errors({names[key]: errors[key] for key in ranked}), "hidden_errors")
        adaptive = config.methods[0]
        told = [adaptive, *(key for key in ranked if key != adaptive)]
        st.html(numbers([(number(means[key]), names[key]) for key in told if key in means]))
        with st.popover("Why?"):
            st.markdown(WHY)
    else:
        answer(
            "Can it predict hidden cells?",
            f"{percent(config.share)} of the cells are hidden and predicted, "
            f"{counted(config.repeats, 'time')}.",
        )
    done = sum(map(len, errors.values()))
    if done < len(config.steps()):
        start_button(dataset, config, "masked", f"Compare {len(config.methods)} methods", done=done)
    if not errors:
        waiting = (names[method] for method in config.methods)
        chart(unmeasured(waiting, "error on hidden cells"), "hidden_unmeasured")


def titles(config: MaskedConfig) -> dict[str, str]:
    """Name the methods."""
    K, L = config.sizes
    return {
        OWN: f"Adaptive PPCA, {L} of {K}",
        FEW: f"PCA with {L}",
        EVERY: f"PCA with {K}",
        RIDGE: "Ridge",
        NEAR: "Nearest rows",
        MEANS: "Column means",
    }


def verdict(config: MaskedConfig, errors: dict[str, np.ndarray]) -> str:
    """Say which method predicts best; also where that is not the model, or nobody can tell."""
    ranked = sorted(errors, key=lambda method: float(errors[method].mean()))
    names, adaptive = titles(config), config.methods[0]
    if len(ranked) > 1 and not is_clear(*(errors[method] for method in ranked[:2])):
        return f"{names[ranked[0]]} and {names[ranked[1]]} predict hidden cells equally well"
    if ranked[0] == adaptive:
        return "The model predicts hidden cells best"
    if ranked[0] == MEANS:
        return "Nothing predicts hidden cells better than the column means"
    return f"Better at hidden cells than the model: {names[ranked[0]].lower()}"


def level(measured: dict[str, np.ndarray]) -> Level:
    """Return "good" where the model is first, "doubtful" where it beats the means alone."""
    means = {method: float(errors.mean()) for method, errors in measured.items()}
    adaptive = means.get(OWN, means.get(EVERY, np.inf))
    if adaptive <= min(means.values()):
        return "good"
    return "doubtful" if adaptive < means.get(MEANS, np.inf) else "bad"


def is_clear(less: np.ndarray, more: np.ndarray) -> bool:
    """Whether errors on the same hidden cells differ by more than twice their standard error."""
    n = min(len(less), len(more))
    left = more[:n] - less[:n]
    return n > 1 and bool(left.mean() > 2.0 * left.std(ddof=1) / np.sqrt(n))
