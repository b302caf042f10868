"""Controls of a scene and of a selection; describing a selection by a rule."""

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from appca.analysis import groups, selections
from appca.analysis.components import name_of, patterns
from appca.analysis.fitted import FittedRun
from appca.analysis.rule import RowRule, dataset_table, described
from appca.canvas.panels import colour_choices
from appca.class_overlap import two_apart
from appca.data.columns import NAME_LENGTH
from appca.data.dataset import Dataset
from appca.plots.components import picture_shape
from appca.ui import fits, kit, services, state
from appca.ui.kit import markdown, press, tried
from appca.ui.state import guarded
from appca.words import InputError, capital, counted, percent

MOST_LISTED, MOST_PIXELS = 1024, 100  # per list, because each change sends it
MOST_COMPONENTS, _BY_COMPONENTS = 60, re.compile(r"components?:([1-9][0-9]*)(?:,([1-9][0-9]*))?")


def heading(title: str) -> st.delta_generator.DeltaGenerator:
    """Draw the title of a page; return the place next to it."""
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="bar"):
        st.title(title, anchor=False, width="content")
        return st.container(horizontal=True, vertical_alignment="center", gap="small")


def offers(
    dataset: Dataset, fitted: FittedRun | None = None, trust: object = None
) -> list[tuple[str, str, str]]:
    """Return the possible colourings: keys, names and groups; `trust` belongs to a map."""
    every, more = colour_choices(dataset), groups.COLOURS
    offered = [key for key, of in more.items() if of.offered and of.offered(dataset, trust)]
    every |= {key: capital(key) for key in offered}
    listed = [(key, name, "Rows") for key, name in every.items()]
    if fitted is not None and len(fitted.components) <= MOST_COMPONENTS:
        names = (capital(name_of(fitted, k)) for k in range(len(fitted.components)))
        listed += [(f"component:{k}", name, "Components") for k, name in enumerate(names, 1)]
    features: Iterable[int] = range(dataset.n_features)
    if not is_listed(dataset):
        now = st.session_state.get(colour_key(dataset.digest), "")
        height, *_ = dataset.image_shape or (dataset.n_features,)
        middle = (height // 2 * 2 + 1) * dataset.n_features // height // 2
        features = [int(now[8:]) if _is_feature(dataset, now) else middle]
    noun = "Columns" if dataset.image_shape is None else "Pixels"
    return listed + [(f"feature:{j}", groups.feature_name(dataset, j), noun) for j in features]


def is_listed(dataset: Dataset) -> bool:
    """Whether the list of colours contains all features; otherwise users type their numbers."""
    return dataset.n_features <= (MOST_LISTED if dataset.image_shape is None else MOST_PIXELS)


def _is_feature(dataset: Dataset, key: str) -> bool:
    kind, _, number = key.partition(":")
    return kind == "feature" and number.isdecimal() and int(number) < dataset.n_features


def chosen(dataset: Dataset, keys: Iterable[str], n_components: int = 0) -> str:
    """Return the key of the selected colouring, or the first key if it is unavailable."""
    now, keys = str(st.session_state.get(colour_key(dataset.digest), "")), list(keys)
    by = _BY_COMPONENTS.fullmatch(now)
    if by and all(1 <= int(number) <= n_components for number in by.groups() if number):
        return now
    return now if now in keys or _is_feature(dataset, now) else keys[0]


def colour_key(digest: str) -> str:
    """Return the session-state name of a data set's colouring; rows left out do not count."""
    return f"colour-{state.whole(digest)[:8]}"


def classes(dataset: Dataset) -> list[kit.Classes]:
    """Return the label that colours rows, or else the first one, if it has few classes."""
    colour = st.session_state.get(colour_key(dataset.digest))
    return sorted(kit.every(dataset), key=lambda of: f"label:{of.title}" != colour)[:1]


def is_by_type(dataset: Dataset) -> bool:
    """Whether rows are coloured by their type."""
    return bool(st.session_state.get(colour_key(dataset.digest)) == groups.TYPE)


def colour_by(dataset: Dataset, key: str) -> None:
    """Colour by a key of `offers`; for other keys see `chosen`."""
    st.session_state[colour_key(dataset.digest)] = key


def colouring(dataset: Dataset) -> str:
    """Draw the list of colourings and return the selected key; see `colour_of`."""
    named = {key: name for key, name, _ in offers(dataset)}
    now, box = chosen(dataset, named), f"colours-{dataset.digest[:8]}"
    st.session_state[box] = now if now in named else next(iter(named))
    about = " ".join(f"{capital(key)}: {groups.COLOURS[key].about}" for key in groups.MEASURES)
    look: Any = {"on_change": state.pass_value, "args": [box, partial(colour_by, dataset)]}
    look |= {"help": about, "width": 200}
    picked: str = st.selectbox("Colour by", named, format_func=named.__getitem__, key=box, **look)
    return picked


def axes_of(dataset: Dataset, fitted: FittedRun) -> list[int]:
    """Return a map's two features, at first those that tell classes best; none for pictures."""
    if picture_shape(dataset) or not is_listed(dataset) or dataset.n_features < 2:
        return []
    usual = np.argsort(-np.abs(patterns(fitted, None)).max(axis=0), kind="stable")[:2].tolist()
    step, prepare = 1 + dataset.X.size // (1 << 20), fitted.preprocessing.prepare  # of a sample
    for of in classes(dataset):
        key = f"apart-{dataset.digest}-{of.title}-{prepare and prepare.name}"
        usual = services.kept(key, partial(two_apart, dataset.X[::step], of.codes[::step], prepare))
    return [st.session_state.get(axis_key(dataset, i), j) for i, j in enumerate(usual)]


def axis_key(dataset: Dataset, axis: int) -> str:
    """Return the session-state name of the feature on an axis."""
    return f"axis-{axis}-{dataset.digest[:8]}"


def view_key(active: int | None) -> str:
    """Return the widget key of the view, for fits with this L."""
    return f"view-{active}"


RULE, NAMED, MEMBERSHIP, HIGHEST = "rule", "named", 0.5, 5.0


def tools(dataset: Dataset, shown: fits.Shown) -> None:
    """Draw the selection tools in one line."""
    nothing, is_empty = np.zeros(dataset.n_rows, dtype=bool), not state.get(dataset).any()
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
            look: Any = {"max_chars": NAME_LENGTH, "disabled": is_empty}
            look["placeholder"] = "select rows first" if is_empty else "a name"
            with st.form("name_selection", border=False):
                st.text_input("Keep the selection as", key=f"{NAMED}-new", **look)
                act: Any = {"on_click": _keep, "args": [dataset], "disabled": is_empty}
                st.form_submit_button("Keep", key=f"{NAMED}-keep", **act)
            _saved(dataset, {selected.name: selected.mask for selected in saved})


def leave_out_button(label: str, dataset: Dataset, rows: np.ndarray, why: str, key: str) -> None:
    """Draw a button that continues without rows; see `Dataset.without`."""
    press(label, key, state.leave_out, dataset, rows, why, icon=":material/playlist_remove:")


def _by_rule(dataset: Dataset, shown: fits.Shown) -> None:
    wanted, look = "", dict[str, Any]()
    if dataset.image_shape is None and dataset.n_features > groups.MOST_FEATURES:
        look = {"key": f"{RULE}-find", "placeholder": "part of the name"}
        wanted = st.text_input("Find features by name", **look).strip()
    names = groups.names_of(dataset, shown.fitted, wanted)
    box = f"{RULE}-column-{dataset.digest[:8]}"
    key = st.selectbox("Rows whose", names, format_func=names.__getitem__, key=box)
    column = groups.column_of(dataset, shown.fitted, key)
    relations = groups.OF_NUMBERS if column.names is None else groups.OF_CLASSES
    first = "below" if key == "membership" else "highest"
    look = {"key": f"{RULE}-relation-{key}", "label_visibility": "collapsed"}
    look |= {"index": list(relations).index(first) if first in relations else 0}
    relation = st.selectbox("Relation", relations, format_func=relations.__getitem__, **look)
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
    kept = state.store().save(dataset.digest, wanted, mask)  # if it raises, the text remains
    st.session_state[f"{NAMED}-new"] = ""
    st.session_state[f"{NAMED}-which-{dataset.digest[:8]}"] = kept
    if kept in older:
        now, before = (counted(int(rows.sum()), "row") for rows in (mask, older[kept]))
        state.notify("info", f"“{kept}” is saved with {now}; it replaces a selection of {before}.")


def _saved(dataset: Dataset, masks: dict[str, np.ndarray]) -> None:
    if not masks:
        st.caption("Saved selections survive reloads and restarts.")
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
        table, first = dataset_table(dataset, shown.fitted), mask.argmax()
        labels = dataset.labels  # a class that equals the selection is no explanation
        equal = [key for key in labels if np.array_equal(labels[key] == labels[key][first], mask)]
        rule = described({key: table[key] for key in table if key not in equal}, mask)
        return rule, rule.mask(table)

    st.caption("As a rule")
    if (rule_and_rows := tried(f"rule-{shown.key}-{state.token(dataset)}", searched)) is None:
        return
    rule, rows = rule_and_rows
    if not rule.quality.recall:
        st.markdown(f"None describes these rows; tried on {rule.n_held_out:,} rows kept apart.")
        return
    said = rule.conditions(shown.fitted.names)
    st.markdown(f"**{markdown(said)}**")
    if rule.negated:
        st.caption("“Not” means the rows that fail at least one of these conditions.")
    text = f"{(rows & mask).sum():,} of the {mask.sum():,} selected rows meet the rule, as "
    text += f"do {(rows & ~mask).sum():,} others. Of {rule.n_held_out:,} rows not used to find it, "
    text += f"{percent(rule.quality.recall)} of the selected meet it, and "
    st.caption(markdown(f"{text}{percent(rule.quality.precision)} of those that do are selected."))
    look: Any = {"disabled": not rows.any()}
    with st.container(horizontal=True, gap="small"):
        label = f"Select its {counted(int(rows.sum()), 'row')}"
        press(label, "rule_select", state.put, dataset, rows, **look)
        look["help"] = "Save its rows as a selection named after the rule"
        label = f"Keep its {counted(int(rows.sum()), 'row')}"
        press(label, "rule_keep", state.save_rule, dataset, rows, said, **look)
        with st.popover("Code", key="rule_code"):
            st.code(rule.to_pandas(), language="python", wrap_lines=True)
            st.caption("With a model, its rows X, and the columns as a DataFrame:")
            st.code(rule.to_python(), language="python", wrap_lines=True)
