"""What a fit loses or gains against PCA and a mixture, on rows that none of them has seen."""

from dataclasses import replace
from typing import Any

import streamlit as st

from appca.analysis.check.rivals import Cap
from appca.data.dataset import Dataset
from appca.jobs.quality import held_out, methods, split_of
from appca.runs.home import home
from appca.runs.quality import QualityConfig, QualityStore
from appca.ui.check import quality
from appca.ui.check.compare_choice import sizes
from appca.ui.parts import progress
from appca.ui.parts.answers import answer
from appca.ui.parts.text import markdown, table, table_line
from appca.ui.session.caching import by_key
from appca.ui.session.fitting import Shown, is_live
from appca.words.errors import InputError
from appca.words.numbers import UNKNOWN, fixed, number, percent
from appca.words.wording import counted

MOST_VALUES = 1_500_000  # of the rows that are compared at once: two seconds
MOST_OF_A_MIXTURE = 150_000
SECONDS = 3.0  # of a method
NAMES = {
    "own": "{model}",
    "ppca_k": "PCA with {size}",
    "ppca_l": "PCA with {size}",
    "mixture": "Mixture of {pieces} PCAs with {used} each",
}
Line = dict[str, Any]  # of a method, as `appca.jobs.quality.measured` makes it


def draw(dataset: Dataset, shown: Shown) -> None:
    """Draw the answer, a table, and what measures the methods that take long."""
    config = quality.config_of(dataset, shown)
    lines = _measured(config)
    try:
        learned = shown.config.preprocessing.get("vae")  # anew, without the rows held out
        if "mixture" not in lines and not learned and is_live(shown.config):
            lines = _at_once(config.id, dataset, config)
    except InputError as error:
        st.caption(markdown(str(error)))
        return
    if "own" in lines:
        answer(*said(lines))
        st.html(table(["", "Squared error", "Log-likelihood"], _cells(lines, shown)))
    else:
        answer("How much does this fit lose against PCA?")
    if "mixture" not in lines and not progress.follow(config.id, "compare_measure_cancel"):
        label = "Measure the mixture too" if "own" in lines else "Measure"
        quality.start_button(dataset, config, label)
    st.caption(
        "A fifth of the rows is held out from every method and rebuilt from the posterior mean of "
        "its scores. PCA is probabilistic PCA."
    )


def said(lines: dict[str, Line]) -> tuple[str, str]:
    """Say how much error and log-likelihood a fit has lost and gained, as a title and a text."""
    adaptive, parts = lines["own"], []
    others = [lines[key] for key in ("ppca_k", "ppca_l") if key in lines]
    for other in others:
        change = adaptive["mse"] / other["mse"] - 1
        size = counted(other["size"], "component")
        word = "more" if change > 0 else "less"
        parts.append(f"{percent(abs(change))} {word} error than PCA with {size}")
    text, density = "", adaptive["log_likelihood"]
    if density is not None:
        rivals = [other["log_likelihood"] for other in others]
        values = [fixed(value, 1) for value in rivals if value is not None]
        against = f", against {' and '.join(values)}" if values else ""
        text = f"Held-out log-likelihood: {fixed(density, 1)} nats a row{against}."
    return (", ".join(parts) or "The error and log-likelihood of rows held out"), text


def _measured(config: QualityConfig) -> dict[str, Line]:
    stored = QualityStore(home()).get(config.id)
    return {line["key"]: line for line in (stored.lines if stored else ()) if _is_whole(line)}


def _is_whole(line: Line) -> bool:
    return line["key"] in NAMES and line.get("mse") is not None


@by_key(8)
def _at_once(dataset: Dataset, config: QualityConfig) -> dict[str, Line]:
    """Measure the methods that are quick, on a sample of many rows."""
    rows = MOST_VALUES // dataset.n_features
    split = split_of(dataset, replace(config, rows=rows) if rows < dataset.n_rows else config)
    lines: dict[str, Line] = {}
    for method in methods(config):
        heavy = method.key == "mixture" and split.train.size > MOST_OF_A_MIXTURE
        if method.key in NAMES and not heavy:
            cap = Cap(SECONDS)
            made = method.fit(split, cap, lambda _share: None)
            if cap.over():  # a fit that the clock ends has other numbers the next time
                continue
            facts: Line = {"key": method.key, "size": method.size, "used": method.used}
            facts |= {"log_likelihood": None, "mse": None} | held_out(made, split.test)
            lines |= {method.key: facts} if _is_whole(facts) else {}
    return lines


def _cells(lines: dict[str, Line], shown: Shown) -> list[str]:
    model = ", ".join([shown.config.model, *shown.config.sizes])
    k, _ = sizes(shown)
    cells = []
    for key, form in NAMES.items():
        if key in lines:
            line = lines[key]
            size, used = (counted(line[name], "component") for name in ("size", "used"))
            name = form.format(model=model, pieces=k, size=size, used=used)
            value = line["log_likelihood"]
            spread = "" if value is None else f" ± {_error(line)}"
            density = UNKNOWN if value is None else f"{fixed(value, 1)}{spread}"
            cells.append(table_line(name, [number(line["mse"]), density]))
    return cells


def _error(line: Line) -> str:
    """Return a standard error with the decimal of the likelihood beside it; more if it is small."""
    error = line["log_likelihood_error"]
    return fixed(error, 1) if error >= 0.1 else number(error)
