"""The tab Similar: groups of near rows in a subspace, those that join different classes first."""

from typing import Any, NamedTuple

import numpy as np
import streamlit as st

from appca.analysis.components.components import in_units_of_the_fit
from appca.analysis.explore.subspaces import fullest, opens_in_pair_view, title
from appca.analysis.fitted import FittedRun
from appca.analysis.groups.similar import MOST_SUBSPACES, Mixture, SimilarRows, by_mixture, joined_pairs, mixture, similar
from appca.canvas.scene.colours import colour_choices
from appca.data.dataset import Dataset
from appca.plots.palette import MISSING
from appca.ui.canvas import canvas
from appca.ui.canvas.scenes import scene_of
from appca.ui.parts import acts, class_choice
from appca.ui.parts.class_choice import Classes
from appca.ui.parts.text import markdown, table, table_line, tag, words
from appca.ui.parts.widgets import first_of_page
from appca.ui.rows.pictures import strip
from appca.ui.session import selection
from appca.ui.session.caching import by_key, kept
from appca.ui.session.fitting import Shown
from appca.words.numbers import minus
from appca.words.wording import counted, shortened

PAGE = 6  # groups on a page
LEAST_MEMBERS = 3  # two rows are near each other by chance, one is always
IMAGES, LINES, FEATURES = 12, 4, 5  # members shown of a group: images, or lines and columns
CHIPS, LETTERS = 6, 18  # classes named, and letters of a text
SIZES = (5, 200)  # rows a group
PANEL_HEIGHT = 620  # pixels


class FoundGroups(NamedTuple):
    """The groups of a run in the order shown, with their classes where there are any."""

    groups: list[SimilarRows]
    mixtures: list[Mixture]
    by_pair: bool  # within pairs of components, not subspaces


def body(dataset: Dataset, shown: Shown) -> None:
    """Draw the answer, the groups as cards, and the subspace of the one last clicked."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        classes = class_choice.choose(dataset, "similar")
        size = _size(dataset)
    groups = _found(dataset, shown, classes, size)
    if not groups.groups:
        st.info("No three rows are close together. Ask for larger groups, or for fewer components.")
        return
    st.markdown(sentence(groups, classes))
    first = first_of_page(len(groups.groups), PAGE, f"similar-page-{shown.key}-{size}")
    chosen = selection.get(dataset)
    places = range(first, min(first + PAGE, len(groups.groups)))
    cards = (_card(dataset, shown, groups, place, classes, chosen) for place in places)
    with st.container(key="beside"):  # its columns stand below each other in a narrow window
        left, right = st.columns([1, 1], gap="medium")
    with left:
        list_of = tag("div", "".join(cards), "ca-group-list")
        acts.acting(list_of, "similar", {"group": lambda text, _: _select(dataset, groups, text)})
    with right:
        here = (place for place in places if _is(groups.groups[place], chosen))
        _panel(dataset, shown, groups, groups.groups[next(here, first)])


def sentence(groups: FoundGroups, classes: Classes | None) -> str:
    """Say as Markdown which classes are in the same group most often."""
    total = counted(len(groups.groups), "group")
    joined = joined_pairs(groups.mixtures)
    if classes is None or not joined:
        return f"**{total} of similar rows.** Click one to select it."
    (a, b), number = joined[0]
    name, other = (markdown(shortened(classes.names[c])) for c in (a, b))
    return (
        f"**{name} and {other} share a group most often: {number} of {total}.** Click a group to "
        "select it, and see under *Differences* what its rows share."
    )


def _is(group: SimilarRows, chosen: np.ndarray) -> bool:
    """Whether a group's rows are those that are selected."""
    return int(chosen.sum()) == len(group.rows) and bool(chosen[group.rows].all())


def _panel(dataset: Dataset, shown: Shown, groups: FoundGroups, group: SimilarRows) -> None:
    """Draw the panel that a group lies in."""
    colouring = next(iter(colour_choices(dataset)))
    canvas.draw(
        *(dataset, scene_of(dataset, shown, colouring)),
        "pairs" if groups.by_pair else "subspaces",
        colouring,
        key="similar_panel",
        height=PANEL_HEIGHT,
        options={"panels": [title(group.components)]},
    )


def _size(dataset: Dataset) -> int:
    usual = int(np.clip(dataset.n_rows // 40, *(5, 20)))  # small tables: small groups
    key = f"similar_size-{dataset.digest[:8]}"
    widget: dict[str, Any] = {"key": key, "width": 130, "persist_state": "session"}
    return int(st.number_input("Rows per group", *SIZES, usual, **widget))


def _found(dataset: Dataset, shown: Shown, classes: Classes | None, size: int) -> FoundGroups:
    by_pair = opens_in_pair_view(shown.fitted.active)
    groups = _grouped(f"{shown.key}-{size}", shown.fitted, size)
    if classes is None:
        return FoundGroups(sorted(groups, key=lambda group: group.spread), [], by_pair)
    n = len(classes.names)
    mixtures = [mixture(group, classes.codes, n) for group in groups]
    order = by_mixture(groups, mixtures)
    return FoundGroups([groups[i] for i in order], [mixtures[i] for i in order], by_pair)


@by_key(16)
def _grouped(fitted: FittedRun, size: int) -> list[SimilarRows]:
    spaces = fullest(fitted.active, MOST_SUBSPACES)
    groups = similar(fitted.scores, fitted.components, spaces, size)
    return [group for group in groups if len(group.rows) >= LEAST_MEMBERS]


def _card(
    dataset: Dataset,
    shown: Shown,
    groups: FoundGroups,
    place: int,
    classes: Classes | None,
    chosen: np.ndarray,
) -> str:
    group = groups.groups[place]
    name = title(group.components)
    head = tag("b", words(f"{'Both of ' if groups.by_pair else ''}{name}"))
    head += tag("span", counted(len(group.rows), "row"), "ca-quiet")
    if classes is not None:
        head += _chips(groups.mixtures[place], classes)
    here = _is(group, chosen)
    seen = (
        _images(dataset, group, classes) if dataset.image_shape else _table(dataset, shown, group)
    )
    label = f"Select these {len(group.rows)} rows"
    return acts.button(tag("div", head) + seen, "group", place, label, "ca-act ca-group", here)


def _chips(mixed: Mixture, classes: Classes) -> str:
    order = [c for c in np.argsort(-mixed.counts, kind="stable") if mixed.counts[c]]
    chips = [
        tag(
            "span",
            tag("i", "", style=f"background:{classes.colours[c]}")
            + words(f"{shortened(classes.names[c], LETTERS)} ({mixed.counts[c]:,})"),
        )
        for c in order[:CHIPS]
    ]
    if len(order) > CHIPS:
        chips.append(tag("span", words(f"and {len(order) - CHIPS} more")))
    return tag("span", "".join(chips), "ca-chips")


def _images(dataset: Dataset, group: SimilarRows, classes: Classes | None) -> str:
    rows, colours = group.rows[:IMAGES], None
    if classes is not None:
        table_of = [*classes.colours, MISSING]
        colours = [table_of[code if code >= 0 else -1] for code in classes.codes[rows]]
    source = strip(dataset, rows, colours)
    return tag("img", "", src=source, alt=f"the {len(rows)} rows nearest the centre")


def _table(dataset: Dataset, shown: Shown, group: SimilarRows) -> str:
    """Return the members nearest the centre as lines: id, label, the features that weigh most."""
    every = kept(f"weights-{shown.key}", lambda: in_units_of_the_fit(shown.fitted))
    weights = np.abs(every)[list(group.components)].max(axis=0)
    features = np.argsort(-weights, kind="stable")[:FEATURES].tolist()
    labels = list(dataset.labels)[:1]
    heads = ["row", *labels, *(dataset.column_names[j] for j in features)]
    lines = []
    for row in group.rows[:LINES].tolist():
        cells = [shortened(dataset.labels[name][row], LETTERS) for name in labels]
        cells += [minus(f"{float(dataset.X[row, j]):.4g}") for j in features]
        lines.append(table_line(shortened(dataset.ids[row], LETTERS), cells))
    return table((words(shortened(head, LETTERS)) for head in heads), lines)


def _select(dataset: Dataset, groups: FoundGroups, text: str) -> None:
    place = int(text)
    if 0 <= place < len(groups.groups):
        selection.put(dataset, groups.groups[place].rows)
