"""Controls of a scene and of a selection, and a selection as a rule."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from appca.analysis.groups import (
    MOST_FEATURES,
    OF_CLASSES,
    OF_NUMBERS,
    RowValues,
    column_of,
    feature_name,
    matching,
    names_of,
)
from appca.analysis.rule import RowRule, dataset_table, described
from appca.analysis.selections import COMBINATIONS, NAME_LENGTH
from appca.canvas.panels import PANELS, TRUST, colour_choices
from appca.data.dataset import Dataset
from appca.ui import state
from appca.ui.fits import Shown
from appca.ui.kit import markdown
from appca.ui.services import kept
from appca.ui.state import guarded
from appca.words import InputError, capital, counted, percent

FEATURE = "feature"  # the choice of colours that needs another choice, of the feature
TRUSTS = {TRUST: "Trust of the map", PANELS: "Trust of the panels"}
MOST_RANKED = 5_000  # rows of a data set whose ranks in panels are counted while a page is drawn
MOST_FLAT = 14  # choices that are all in sight
MOST_LISTED = 1024  # features in a list; it goes to the browser at each change of the page


def heading(title: str) -> st.delta_generator.DeltaGenerator:
    """Draw the bar on top of a page with its title, and return the place beside it."""
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="bar"):
        st.title(title, anchor=False, width="content")
        return st.container(horizontal=True, vertical_alignment="center", gap="small")


def colouring(dataset: Dataset, *, with_trust: bool = False, flat: bool = False) -> str:
    """Draw the choice of colours and return its key; see `colours.colour_of`.

    `with_trust` offers the trust of a map that is at hand, `flat` shows all choices at once.
    """
    noun = "column" if dataset.image_shape is None else "pixel"
    offered = {TRUST: with_trust, PANELS: dataset.n_rows <= MOST_RANKED}
    trust = {key: name for key, name in TRUSTS.items() if offered[key]}
    choices = colour_choices(dataset) | trust | {FEATURE: f"{noun}…"}
    names = {key: capital(name) for key, name in choices.items()}
    key, _ = keys(dataset.digest)
    if st.session_state.get(key) not in {None, *choices}:
        del st.session_state[key]  # trust, where there is no map
    help_text = (
        "Residual: how far a row lies from its reconstruction. Membership: how sure the model "
        "is of the row's subspace. Likelihood: how probable the whole row is. "
        "Trust: which rows have false neighbours on the map, or in their panel, near there and far "
        "in the data, or missing ones, near in the data and far there. That of the map is offered "
        f"once there is a map, that of panels up to {MOST_RANKED:,} rows. "
        f"{noun.capitalize()}: the values of one {noun} of the data."
    )
    is_flat = flat and len(names) <= MOST_FLAT
    draw: Any = st.radio if is_flat else st.selectbox  # the first reads Markdown
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
    """Return the keys of the choices of the colouring and of its feature, for a data set."""
    return f"colour-{digest[:8]}", f"{FEATURE}-{digest[:8]}"


def colour_name(dataset: Dataset) -> str:
    """Return the name of the colouring that was chosen last."""
    choices, (colour, feature) = colour_choices(dataset), keys(dataset.digest)
    chosen = st.session_state.get(colour) or next(iter(choices))
    if chosen == FEATURE:
        return feature_name(dataset, st.session_state.get(feature, _middle(dataset)))
    return capital((choices | TRUSTS).get(chosen, ""))


def offers(dataset: Dataset) -> list[tuple[str, str]]:
    """Return what the palette can colour by, features of a table among it: keys and names."""
    choices = [(key, capital(name)) for key, name in colour_choices(dataset).items()]
    if dataset.image_shape is None and dataset.n_features <= MOST_LISTED:
        features = range(dataset.n_features)
        choices += [(f"{FEATURE}:{j}", feature_name(dataset, j)) for j in features]
    return choices


def colour_by(dataset: Dataset, chosen: str) -> None:
    """Colour by one of `offers`; anything else changes nothing."""
    if chosen in dict(offers(dataset)):
        colour, feature = keys(dataset.digest)
        kind, _, number = chosen.partition(":")
        st.session_state[colour] = FEATURE if kind == FEATURE else chosen
        if kind == FEATURE:
            st.session_state[feature] = int(number)


def view_key(active: int | None) -> str:
    """Return the key of the choice of the view of fits whose rows use so many components."""
    return f"view-{active}"


def _feature(dataset: Dataset, label: str) -> str:
    """Draw the choice of one feature, by name or, of very many, by number; return its key."""
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
    """Return the feature to begin with: the first, but of images the middle, no dark corner."""
    if dataset.image_shape is None:
        return 0
    height, width, *channels = dataset.image_shape
    return (height // 2 * width + width // 2) * (channels[0] if channels else 1)


RULE, NAMED = "rule", "named"  # prefixes of widget keys
MEMBERSHIP = 0.5  # below it a row is drawn hollow
HIGHEST = 5.0  # per cent


def tools(dataset: Dataset, shown: Shown) -> None:
    """Draw the tools in one line; the same ones in the same order whatever is selected."""
    nothing = np.zeros(dataset.n_rows, dtype=bool)
    is_empty = not state.get(dataset).any()
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        select_button("Clear", dataset, nothing, "tray_clear", type="tertiary", disabled=is_empty)
        st.button(
            "Invert",
            key="tray_invert",
            type="tertiary",
            on_click=guarded(partial(_combine, dataset, nothing, lambda now, _: ~now)),
        )
        with st.popover("By a rule", type="tertiary", key="tray_rule"):
            _by_rule(dataset, shown)
        saved = state.named(dataset)
        count = f" ({len(saved)})" if saved else ""
        with st.popover(f"Named{count}", type="tertiary", key="tray_named"):
            for sentence in state.store().damaged(dataset.digest, dataset.n_rows):
                st.warning(markdown(sentence))
            naming(dataset)
            _saved(dataset, {selected.name: selected.mask for selected in saved})


def select_button(label: str, dataset: Dataset, rows: np.ndarray, key: str, **look: Any) -> None:
    """Draw a button that selects rows; see `selection.put`."""
    st.button(label, key=key, on_click=guarded(state.put), args=[dataset, rows], **look)


def leave_out_button(
    label: str, dataset: Dataset, rows: np.ndarray, why: str, key: str, **look: Any
) -> None:
    """Draw a button that goes on without rows; see `Dataset.without`."""
    st.button(
        label,
        key=key,
        icon=":material/playlist_remove:",
        on_click=guarded(state.leave_out),
        args=[dataset, rows, why],
        **look,
    )


def _by_rule(dataset: Dataset, shown: Shown) -> None:
    """Draw a rule on one column, and the four ways to bring its rows into the selection."""
    wanted = ""
    if dataset.image_shape is None and dataset.n_features > MOST_FEATURES:
        wanted = st.text_input(
            "Find features by name", key=f"{RULE}-find", placeholder="part of the name"
        ).strip()
    names = names_of(dataset, shown.fitted, wanted)
    box = f"{RULE}-column-{dataset.digest[:8]}"
    key = st.selectbox("Rows whose", names, format_func=names.__getitem__, key=box)
    column = column_of(dataset, shown.fitted, key)
    try:
        matches = _matching(column, key)
    except InputError as error:
        st.error(markdown(str(error)))
        return
    st.caption(f"{counted(int(matches.sum()), 'row')} of {dataset.n_rows:,}")
    ways(dataset, matches, RULE)


def _matching(column: RowValues, key: str) -> np.ndarray:
    """Draw the relation and the value of a rule; return the rows (N,) bool that meet it."""
    relations = OF_NUMBERS if column.names is None else OF_CLASSES
    first = "below" if key == "membership" else "highest"
    hidden: dict[str, Any] = {"label_visibility": "collapsed"}
    relation = st.selectbox(
        "Relation",
        relations,
        index=list(relations).index(first) if first in relations else 0,
        format_func=relations.__getitem__,
        key=f"{RULE}-relation-{key}",
        **hidden,
    )
    if column.names is not None:
        box = f"{RULE}-classes-{key}"
        chosen = st.multiselect("Classes", column.names, key=box, **hidden)
        return matching(column, relation, chosen)
    there = column.values[np.isfinite(column.values)]
    usual = float(np.median(there)) if len(there) else 0.0
    usual = MEMBERSHIP if key == "membership" else usual
    usual = HIGHEST if relation in ("highest", "lowest") else usual
    box = f"{RULE}-value-{key}-{relation}"
    value = st.number_input("Value", value=usual, format="%.4g", key=box, **hidden)
    return matching(column, relation, value)


def naming(dataset: Dataset) -> None:
    """Draw the field that keeps the selection under a name."""
    some = bool(state.get(dataset).any())
    with st.form("name_selection", border=False):
        st.text_input(
            "Keep the selection as",
            key=f"{NAMED}-new",
            max_chars=NAME_LENGTH,
            disabled=not some,
            placeholder="a name" if some else "select rows first",
        )
        st.form_submit_button(
            "Keep", key=f"{NAMED}-keep", disabled=not some, on_click=_keep, args=[dataset]
        )


@guarded
def _keep(dataset: Dataset) -> None:
    """Keep the selection; where that is refused, what was typed stays."""
    older = {old.name: old.mask for old in state.named(dataset)}
    wanted, mask = st.session_state[f"{NAMED}-new"], state.get(dataset)
    kept = state.store().save(dataset.digest, wanted, mask)
    st.session_state[f"{NAMED}-new"] = ""
    st.session_state[f"{NAMED}-which-{dataset.digest[:8]}"] = kept
    if kept in older:
        now, before = (counted(int(rows.sum()), "row") for rows in (mask, older[kept]))
        text = (
            f"“{kept}” is kept with {now}; it replaced the older one of that name, with {before}."
        )
        state.notify("info", text)


def _saved(dataset: Dataset, masks: dict[str, np.ndarray]) -> None:
    """Draw the choice of a named selection, and what can be done with it."""
    if not masks:
        st.caption("What is kept here survives reloads and restarts.")
        return
    key = f"{NAMED}-which-{dataset.digest[:8]}"
    if st.session_state.get(key) not in masks:
        st.session_state[key] = next(iter(masks))
    name = st.selectbox(
        "Named selection",
        masks,
        format_func=lambda name: f"{name} · {masks[name].sum():,}",
        key=key,
    )
    ways(dataset, masks[name], NAMED)
    act = guarded(state.delete_named)
    st.button("Delete", key=f"{NAMED}-delete", type="tertiary", on_click=act, args=[dataset, name])


def ways(dataset: Dataset, rows: np.ndarray, prefix: str) -> None:
    """Draw the four ways to bring rows into the selection."""
    with st.container(horizontal=True, gap="small"):
        for how, (title, hint, combined) in COMBINATIONS.items():
            act = guarded(partial(_combine, dataset, rows, combined))
            st.button(title, key=f"{prefix}-{how}", help=hint, on_click=act)


def _combine(dataset: Dataset, rows: np.ndarray, combined: Callable[..., np.ndarray]) -> None:
    state.put(dataset, combined(state.get(dataset), rows))


def as_rule(dataset: Dataset, shown: Shown, mask: np.ndarray) -> None:
    """Draw the rule for the selected rows (N,) bool."""

    def searched() -> tuple[RowRule, np.ndarray]:
        table = dataset_table(dataset, shown.fitted)
        first = mask.argmax()
        chosen = [
            name  # of a label of which the selection is a class
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
    st.markdown(f"**{markdown(rule.conditions(shown.fitted.names))}**")
    if rule.negated:
        st.caption("“Not”: the rows that miss at least one of these conditions.")
    text = f"{percent(rule.quality.recall)} of the selected rows meet the rule, and "
    text += f"{percent(rule.quality.precision)} of the rows that meet it are selected"
    st.caption(markdown(f"{text}, on {rule.n_held_out:,} rows that the search has not seen."))
    with st.container(horizontal=True, gap="small"):
        select_button(
            f"Select its {rows.sum():,} rows", dataset, rows, "rule_select", disabled=not rows.any()
        )
        st.button(
            "Keep",
            key="rule_keep",
            help="Keep its rows among the named selections, called like the rule",
            on_click=guarded(state.save_rule),
            args=[dataset, rows, rule.conditions(shown.fitted.names)],
            disabled=not rows.any(),
        )
        with st.popover("Code", key="rule_code"):
            st.code(rule.to_pandas(), language="python", wrap_lines=True)
            st.caption("With a model, its rows X, and the columns as a DataFrame:")
            st.code(rule.to_python(), language="python", wrap_lines=True)
