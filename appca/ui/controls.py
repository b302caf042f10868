"""Controls of a scene and of a selection, and a selection as a rule."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from appca.analysis import groups, selections
from appca.analysis.groups import MOST_FEATURES, OF_CLASSES, OF_NUMBERS, column_of, feature_name
from appca.analysis.rule import RowRule, dataset_table, described
from appca.canvas.panels import PANELS, TRUST, colour_choices
from appca.data.dataset import Dataset
from appca.ui import fits, state
from appca.ui.kit import markdown, press
from appca.ui.services import kept
from appca.ui.state import guarded
from appca.words import InputError, capital, counted, percent

FEATURE = "feature"  # the colouring that needs a feature
TRUSTS = {TRUST: "Trust of the map", PANELS: "Trust of the panels"}
MOST_RANKED = 5_000  # rows whose ranks in panels are counted while a page is drawn
MOST_FLAT = 14
MOST_LISTED = 1024  # features in a list, which is sent with each change of the page


def heading(title: str) -> st.delta_generator.DeltaGenerator:
    """Draw the title of a page; return the place beside it."""
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="bar"):
        st.title(title, anchor=False, width="content")
        return st.container(horizontal=True, vertical_alignment="center", gap="small")


def colouring(dataset: Dataset, *, with_trust: bool = False, flat: bool = False) -> str:
    """Draw the choice of colours and return its key; see `colour_of`.

    `with_trust` offers the trust of a map, `flat` shows all choices at once.
    """
    noun = "column" if dataset.image_shape is None else "pixel"
    offered = {TRUST: with_trust, PANELS: dataset.n_rows <= MOST_RANKED}
    trust = {key: name for key, name in TRUSTS.items() if offered[key]}
    choices = colour_choices(dataset) | trust | {FEATURE: f"{noun}…"}
    names = {key: capital(name) for key, name in choices.items()}
    key, _ = keys(dataset.digest)
    if st.session_state.get(key) not in {None, *choices}:
        del st.session_state[key]
    help_text = (
        "Residual: how far a row lies from its reconstruction. Membership: how sure the model "
        "is of the row's subspace. Likelihood: how probable the whole row is. "
        "Trust: which rows have false neighbours on the map, or in their panel, near there and far "
        "in the data, or missing ones, near in the data and far there. That of the map is offered "
        f"once there is a map, that of panels up to {MOST_RANKED:,} rows. "
        f"{noun.capitalize()}: the values of one {noun} of the data."
    )
    is_flat = flat and len(names) <= MOST_FLAT
    draw: Any = st.radio if is_flat else st.selectbox
    chosen = draw(
        "Colour by",
        list(names),
        format_func=lambda key: markdown(names[key]) if is_flat else names[key],
        key=key,
        persist_state="session",
        help=help_text,
        width=200,
    )
    return _feature(dataset, noun.capitalize()) if chosen == FEATURE else chosen


def keys(digest: str) -> tuple[str, str]:
    """Return the widget keys of a data set's colouring and feature."""
    return f"colour-{digest[:8]}", f"{FEATURE}-{digest[:8]}"


def colour_name(dataset: Dataset) -> str:
    """Return the name of the colouring."""
    choices, (colour, feature) = colour_choices(dataset), keys(dataset.digest)
    chosen = st.session_state.get(colour) or next(iter(choices))
    if chosen == FEATURE:
        return feature_name(dataset, st.session_state.get(feature, _middle(dataset)))
    return capital((choices | TRUSTS).get(chosen, ""))


def offers(dataset: Dataset) -> list[tuple[str, str]]:
    """Return the colourings of the palette: keys and names."""
    choices = [(key, capital(name)) for key, name in colour_choices(dataset).items()]
    if dataset.image_shape is None and dataset.n_features <= MOST_LISTED:
        features = range(dataset.n_features)
        choices += [(f"{FEATURE}:{j}", feature_name(dataset, j)) for j in features]
    return choices


def colour_by(dataset: Dataset, chosen: str) -> None:
    """Colour by the key of one of `offers`."""
    if chosen in dict(offers(dataset)):  # else not from our script
        colour, feature = keys(dataset.digest)
        kind, _, number = chosen.partition(":")
        st.session_state[colour] = FEATURE if kind == FEATURE else chosen
        if kind == FEATURE:
            st.session_state[feature] = int(number)


def view_key(active: int | None) -> str:
    """Return the widget key of the view, for fits with this L."""
    return f"view-{active}"


def _feature(dataset: Dataset, label: str) -> str:
    widget: dict[str, Any] = {"key": keys(dataset.digest)[1], "persist_state": "session"}
    total, first = dataset.n_features, _middle(dataset)
    if total > MOST_LISTED:
        text = (
            f"By its number, 1 to {total:,}, for up to {MOST_LISTED:,} are listed by name; the "
            "legend names it. Rows whose value is missing are grey."
        )
        number = st.number_input(label, 1, total, first + 1, help=text, width=150, **widget)
        return f"{FEATURE}:{number - 1}"
    text = "Type to find one. Rows whose value is missing are grey."
    names = partial(feature_name, dataset)
    j = st.selectbox(label, range(total), first, format_func=names, help=text, width=230, **widget)
    return f"{FEATURE}:{j}"


def _middle(dataset: Dataset) -> int:
    """Return the first feature, or the middle pixel of images, whose corners may be empty."""
    if dataset.image_shape is None:
        return 0
    height, width, *channels = dataset.image_shape
    return (height // 2 * width + width // 2) * (channels[0] if channels else 1)


RULE, NAMED = "rule", "named"


MEMBERSHIP, HIGHEST = 0.5, 5.0


def tools(dataset: Dataset, shown: fits.Shown) -> None:
    """Draw the tools of the selection in one line."""
    nothing = np.zeros(dataset.n_rows, dtype=bool)
    is_empty = not state.get(dataset).any()
    quiet: Any = {"type": "tertiary"}
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        press("Clear", "tray_clear", state.put, dataset, nothing, **quiet, disabled=is_empty)
        press("Invert", "tray_invert", _combine, dataset, nothing, lambda now, _: ~now, **quiet)
        with st.popover("By a rule", **quiet, key="tray_rule"):
            _by_rule(dataset, shown)
        saved = state.named(dataset)
        count = f" ({len(saved)})" if saved else ""
        with st.popover(f"Named{count}", **quiet, key="tray_named"):
            for sentence in state.store().damaged(dataset.digest, dataset.n_rows):
                st.warning(markdown(sentence))
            look: Any = {"max_chars": selections.NAME_LENGTH, "disabled": is_empty}
            look["placeholder"] = "select rows first" if is_empty else "a name"
            with st.form("name_selection", border=False):
                st.text_input("Keep the selection as", key=f"{NAMED}-new", **look)
                act: Any = {"on_click": _keep, "args": [dataset], "disabled": is_empty}
                st.form_submit_button("Keep", key=f"{NAMED}-keep", **act)
            _saved(dataset, {selected.name: selected.mask for selected in saved})


def leave_out_button(label: str, dataset: Dataset, rows: np.ndarray, why: str, key: str) -> None:
    """Draw a button that continues without rows; see `Dataset.without`."""
    icon = ":material/playlist_remove:"
    press(label, key, state.leave_out, dataset, rows, why, icon=icon)


def _by_rule(dataset: Dataset, shown: fits.Shown) -> None:
    wanted = ""
    if dataset.image_shape is None and dataset.n_features > MOST_FEATURES:
        look: Any = {"key": f"{RULE}-find", "placeholder": "part of the name"}
        wanted = st.text_input("Find features by name", **look).strip()
    names = groups.names_of(dataset, shown.fitted, wanted)
    box = f"{RULE}-column-{dataset.digest[:8]}"
    key = st.selectbox("Rows whose", names, format_func=names.__getitem__, key=box)
    column = column_of(dataset, shown.fitted, key)
    relations = OF_NUMBERS if column.names is None else OF_CLASSES
    first = "below" if key == "membership" else "highest"
    relation = st.selectbox(
        "Relation",
        relations,
        index=list(relations).index(first) if first in relations else 0,
        format_func=relations.__getitem__,
        key=f"{RULE}-relation-{key}",
        label_visibility="collapsed",
    )
    value: Any
    if column.names is not None:
        look = {"key": f"{RULE}-classes-{key}", "label_visibility": "collapsed"}
        value = st.multiselect("Classes", column.names, **look)
    else:
        there = column.values[np.isfinite(column.values)]
        usual = float(np.median(there)) if len(there) else 0.0
        usual = MEMBERSHIP if key == "membership" else usual
        usual = HIGHEST if relation in ("highest", "lowest") else usual
        look = {"key": f"{RULE}-value-{key}-{relation}", "label_visibility": "collapsed"}
        value = st.number_input("Value", value=usual, format="%.4g", **look)
    try:
        matches = groups.matching(column, relation, value)
    except InputError as error:
        st.error(markdown(str(error)))
        return
    st.caption(f"{counted(int(matches.sum()), 'row')} of {dataset.n_rows:,}")
    _ways(dataset, matches, RULE)


@guarded
def _keep(dataset: Dataset) -> None:
    older = {old.name: old.mask for old in state.named(dataset)}
    wanted, mask = st.session_state[f"{NAMED}-new"], state.get(dataset)
    kept = state.store().save(dataset.digest, wanted, mask)  # if refused, the text stays
    st.session_state[f"{NAMED}-new"] = ""
    st.session_state[f"{NAMED}-which-{dataset.digest[:8]}"] = kept
    if kept in older:
        now, before = (counted(int(rows.sum()), "row") for rows in (mask, older[kept]))
        text = (
            f"“{kept}” is kept with {now}; it replaced the older one of that name, with {before}."
        )
        state.notify("info", text)


def _saved(dataset: Dataset, masks: dict[str, np.ndarray]) -> None:
    if not masks:
        st.caption("What is kept here survives reloads and restarts.")
        return
    key = f"{NAMED}-which-{dataset.digest[:8]}"
    if st.session_state.get(key) not in masks:
        st.session_state[key] = next(iter(masks))
    titles = {name: f"{name} · {mask.sum():,}" for name, mask in masks.items()}
    name = st.selectbox("Named selection", masks, format_func=titles.__getitem__, key=key)
    _ways(dataset, masks[name], NAMED)
    press("Delete", f"{NAMED}-delete", state.delete_named, dataset, name, type="tertiary")


def _ways(dataset: Dataset, rows: np.ndarray, prefix: str) -> None:
    with st.container(horizontal=True, gap="small"):
        for how, (title, hint, combined) in selections.COMBINATIONS.items():
            press(title, f"{prefix}-{how}", _combine, dataset, rows, combined, help=hint)
        gone = counted(int(rows.sum()), "row")
        leave_out_button("Leave out", dataset, rows, gone, f"{prefix}-leave_out")


def _combine(dataset: Dataset, rows: np.ndarray, combined: Callable[..., np.ndarray]) -> None:
    state.put(dataset, combined(state.get(dataset), rows))


def as_rule(dataset: Dataset, shown: fits.Shown, mask: np.ndarray) -> None:
    """Draw a rule that describes the selected rows (N,) bool."""

    def searched() -> tuple[RowRule, np.ndarray]:
        table = dataset_table(dataset, shown.fitted)
        first = mask.argmax()
        chosen = [
            name  # of a label with a class that is the selection
            for name, values in dataset.labels.items()
            if np.array_equal(values == values[first], mask)
        ]
        others = {name: values for name, values in table.items() if name not in chosen}
        rule = described(others, mask)
        return rule, rule.mask(table)

    st.caption("As a rule")
    try:
        rule, rows = kept(f"rule-{shown.key}-{state.token(dataset)}", searched)
    except InputError as error:
        st.caption(markdown(str(error)))
        return
    said = rule.conditions(shown.fitted.names)
    st.markdown(f"**{markdown(said)}**")
    if rule.negated:
        st.caption("“Not”: the rows that miss at least one of these conditions.")
    text = f"{percent(rule.quality.recall)} of the selected rows meet the rule, and "
    text += f"{percent(rule.quality.precision)} of the rows that meet it are selected"
    st.caption(markdown(f"{text}, on {rule.n_held_out:,} rows that the search has not seen."))
    look: Any = {"disabled": not rows.any()}
    with st.container(horizontal=True, gap="small"):
        label = f"Select its {rows.sum():,} rows"
        press(label, "rule_select", state.put, dataset, rows, **look)
        look["help"] = "Keep its rows among the named selections, called like the rule"
        press("Keep", "rule_keep", state.save_rule, dataset, rows, said, **look)
        with st.popover("Code", key="rule_code"):
            st.code(rule.to_pandas(), language="python", wrap_lines=True)
            st.caption("With a model, its rows X, and the columns as a DataFrame:")
            st.code(rule.to_python(), language="python", wrap_lines=True)
