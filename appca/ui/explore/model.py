"""The model in the bar: what it is, and one widget for each of its parameters."""

from typing import Any

import streamlit as st

from appca.data.dataset import Dataset
from appca.models.settings.fields import (
    EXTENSIONS,
    FIELDS,
    FIXED,
    FURTHER,
    PRIORS,
    Number,
    SettingChoice,
)
from appca.models.settings.table import LEARNED
from appca.runs.configuration import MODELS, RunConfig, defaults
from appca.runs.fit import fits_around_gaps
from appca.ui.parts.facts import fit_facts
from appca.ui.parts.text import fact_list
from appca.ui.parts.widgets import around
from appca.ui.session import fitting, state
from appca.ui.session.callbacks import guarded
from appca.ui.session.state import KEYS
from appca.ui.settings.preprocessing import preprocessing
from appca.words.numbers import about
from appca.words.wording import counted

CHECK = "pages/check/check.py"


def popover(dataset: Dataset) -> None:
    """Draw the model's name, behind which all its settings are."""
    now = state.config()
    title = MODELS[now.model].title
    with st.popover(title, icon=":material/tune:", key="bar_model", width="content"):
        settings(dataset)
        with st.expander("Before the fit"):
            preprocessing(dataset)
        run = fitting.stored()
        if run is not None:
            with st.expander("About this fit"):
                st.html(fact_list(fit_facts(run)))
        st.caption(_cost(dataset, now))
        if st.button(
            "Which model suits these data?",
            key="model_compare",
            icon=":material/fact_check:",
            help="Fit eight variants of adaptive PPCA and six rivals to seven tenths of the rows, "
            "and compare them on the others.",
        ):
            st.session_state[KEYS.compare] = True
            st.switch_page(CHECK, query_params={"tab": "models"})


def settings(dataset: Dataset) -> None:
    """Draw all settings of the present model but K and L."""
    now = state.config()
    _model(now)
    choices = MODELS[now.model].choices
    names = [
        name
        for name in FIELDS
        if name in now.parameters and (name != "n_active" or name in choices)
    ]
    _grid([name for name in names if name not in FURTHER | PRIORS], now)
    for title, behind in (("Further settings", FURTHER), ("Priors", PRIORS)):
        rest = [name for name in names if name in behind]
        if rest:
            with st.expander(title):
                _grid(rest, now)


def _cost(dataset: Dataset, now: RunConfig) -> str:
    """Say how long a fit takes, and what it does about missing cells."""
    parts = [f"A fit with these settings takes {about(fitting.seconds())}."]
    if dataset.missing is not None:
        gaps = counted(dataset.n_missing, "missing cell")
        fits = fits_around_gaps(now)
        parts.append(f"{gaps}: the model {'fills them' if fits else 'needs whole rows'}.")
    return " ".join(parts)


def _model(now: RunConfig) -> None:
    key = "set-model"
    st.session_state[key] = now.model
    titles = {name: model.title for name, model in MODELS.items()}
    st.selectbox("Model", titles, format_func=titles.__getitem__, key=key, on_change=_set_model)
    st.caption(MODELS[now.model].about)


def _grid(names: list[str], now: RunConfig) -> None:
    for first in range(0, len(names), 2):
        for column, name in zip(st.columns(2), names[first : first + 2], strict=False):
            with column:
                field = FIELDS[name]
                if isinstance(field, Number):
                    _number(name, field, now)
                else:
                    _choice(name, field, now)


def _number(name: str, field: Number, now: RunConfig) -> None:
    kind, key = type(field.least), f"set-{name}"
    value = st.session_state[key] = kind(now.parameters[name])
    st.number_input(
        field.label,
        *around((field.least, field.most), value),
        key=key,
        format=None if kind is int else "%g",
        help=field.help,
        on_change=_apply,
        args=[name],
    )


def _choice(name: str, field: SettingChoice, now: RunConfig) -> None:
    key, value = f"set-{name}", now.parameters[name]
    options = [*MODELS[now.model].choices[name], *([FIXED] if FIXED in field.names else [])]
    is_number = isinstance(value, int | float)
    if not is_number and str(value) not in options:
        options.append(str(value))  # a run from the command line knows more values than the page
    st.session_state[key] = FIXED if is_number else str(value)  # a start may be an array
    st.selectbox(
        field.label,
        options,
        format_func=lambda option: field.names.get(option, option),
        key=key,
        help=field.help,
        on_change=_apply,
        args=[name],
    )
    if is_number and name != "n_active":  # L has its slider in the bar
        fixed = f"set-{name}-value"
        st.session_state[fixed] = float(value)
        st.number_input(
            "Fixed at",
            *around((1e-9, 1e9), float(value)),
            key=fixed,
            format="%g",
            on_change=_apply,
            args=[name, fixed],
        )


@guarded
def _set_model() -> None:
    state.set_model(st.session_state["set-model"])


@guarded
def _apply(name: str, widget: str | None = None) -> None:
    value = st.session_state[widget or f"set-{name}"]
    usual = defaults(state.config().model)
    if value == FIXED:
        value = usual["n_active"] if name == "n_active" else 1.0
    state.set_parameters(**{name: value, **_together(name, value, usual)})


def _together(name: str, value: object, usual: dict[str, Any]) -> dict[str, Any]:
    """Return what else must change: not every inference fits every extension of the model."""
    now = state.config().parameters
    if name == "noise" and value != usual[name]:
        fixed = not isinstance(now.get("latent_variance"), str)
        return {"inference": "em"} | ({"latent_variance": "shared"} if fixed else {})
    if name in EXTENSIONS and value != usual[name]:
        return {"z_update": "block"} if now.get("inference") == "gibbs" else {"inference": "em"}
    if (name, value) == ("inference", "gibbs"):
        return {"noise": usual["noise"]} if "noise" in usual else {}
    if (name, value) in {("inference", "hard"), ("z_update", "swap")}:
        sizes = {"n_active"} if now.get("n_active") == LEARNED else set()
        return {other: usual[other] for other in {"noise", "row_scale", *sizes} & set(usual)}
    return {}
