"""The page Groups: Differences, with groups of similar rows, and Unusual."""

from typing import Any, NamedTuple

import numpy as np
import streamlit as st

from appca.analysis.components import fullest, opens_in_pair_view, patterns, ranked, title
from appca.analysis.fitted import FittedRun
from appca.analysis.groups import GroupComparison, compare, sentence
from appca.analysis.new_rows import NewRowsVerdict, verdict
from appca.analysis.rows import Mixture, SimilarRows, distances, joined_pairs, mixtures, similar
from appca.canvas.panels import colour_choices
from appca.data.dataset import Dataset
from appca.plots import groups as differences
from appca.plots.components import component_image, pixels_of
from appca.plots.style import MISSING
from appca.ui import canvas, kit, rows, state
from appca.ui.canvas import scene_of
from appca.ui.controls import leave_out_button, select_button, tools
from appca.ui.downloads import rows_popover
from appca.ui.fits import Shown
from appca.ui.kit import Classes, chart, first_of_page, markdown, table, table_line, tag, words
from appca.ui.rows import figure, is_dark, on_page, strip
from appca.ui.services import by_key, kept
from appca.words import InputError, capital, counted, minus, number, percent, shortened

BARS = 10  # strongest differences drawn
PANELS = 20  # fullest ones that are offered
SELECTION = "selection"
KINDS = {
    "feature": "column",
    "score": "score",
    "use": "use of a component",
    "subspace": "subspace",
    "class": "label",
    "measure": "fit",
}


def differences_tab(dataset: Dataset, shown: Shown) -> None:
    """Draw what sets some rows apart; below, on demand, groups of similar rows."""
    _differences(dataset, shown)
    if st.toggle("Groups of similar rows", key="similar_rows", persist_state="session"):
        _similar(dataset, shown)


def _differences(dataset: Dataset, shown: Shown) -> None:
    """Draw which rows are looked at, the answer, its picture, and all numbers on demand."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        whose, mask, key = _rows(dataset, shown)
        tools(dataset, shown)
    selected = int(state.get(dataset).sum())
    st.caption(f"{selected:,} of {counted(dataset.n_rows, 'row')} selected")
    try:
        name = f"apart-{shown.key}-{dataset.digest[:8]}-{key}"
        comparison = kept(name, lambda: compare(dataset, shown.fitted, mask))
    except InputError as error:
        st.info(markdown(str(error)))
        return
    chosen_by = key.partition(" = ")[0]  # says no more than what the rows were chosen by
    told = [d for d in comparison.differences if d.name.partition(" = ")[0] != chosen_by]
    comparison = comparison._replace(differences=told)
    st.markdown(f"**{markdown(sentence(comparison, whose))}**")
    with st.container(key="beside"):  # its columns stand below each other in a narrow window
        left, right = st.columns([3, 2], gap="large")
        with left:
            strongest = [d for d in comparison.differences if d.matters][:BARS]
            chart(differences.bars(strongest or comparison.differences[:BARS]), "group_bars")
        with right:
            if dataset.image_shape is not None:
                _group_images(dataset, mask, key, dataset.image_shape)
    with st.expander(f"All {len(comparison.differences):,} comparisons"):
        _comparison_table(comparison)
        some = f" Columns: a sample of {comparison.sampled:,} rows." if comparison.sampled else ""
        st.caption(
            "Mann-Whitney tests for numbers, chi-square or Fisher's exact test for shares, "
            "corrected together (Benjamini and Hochberg). Rows chosen by their scores differ in "
            f"them by choice.{some}"
        )


def _rows(dataset: Dataset, shown: Shown) -> tuple[str, np.ndarray, str]:
    """Draw the choice of rows; return what they are called, which they are, and a key of them."""
    selected = state.get(dataset)
    offered = kept(f"offered-{shown.key}", lambda: _offered(dataset, shown))
    labels = {SELECTION: ("Selection", int(selected.sum()))} if selected.any() else {}
    labels |= {key: (label, len(rows)) for key, (label, rows) in offered.items()}
    chosen = st.selectbox(
        "What sets apart",
        list(labels),
        format_func=lambda key: f"{labels[key][0]} · {labels[key][1]:,}",
        key=f"group_rows-{shown.config.id}-{state.token(dataset)}",
        width=230,
    )
    if chosen == SELECTION:
        name = f"The {counted(int(selected.sum()), 'selected row')}"
        return name, selected, str(state.token(dataset))
    label, rows = offered[chosen]
    mask = np.isin(np.arange(dataset.n_rows), rows)
    select_button("Select these rows", dataset, mask, "group_select")
    return f"The {counted(len(rows), 'row')} of {label}", mask, chosen


def _offered(dataset: Dataset, shown: Shown) -> dict[str, tuple[str, np.ndarray]]:
    """Return the fullest panels and the classes: key to label and rows."""
    fitted = shown.fitted
    choices = {
        f"panel {subspace.components}": (title(subspace.components), subspace.rows)
        for subspace in ranked(fitted.active)[:PANELS]
    }
    for classes in kit.every(dataset):
        for c, name in enumerate(classes.names):
            label = f"{capital(shortened(classes.title, 20))} {shortened(name, 24)}"
            choices[f"{classes.title} = {name}"] = (label, np.flatnonzero(classes.codes == c))
    return choices


def _group_images(dataset: Dataset, mask: np.ndarray, key: str, shape: tuple[int, ...]) -> None:
    group, rest = kept(
        f"means-{dataset.digest}-{key}",
        lambda: [dataset.X[rows].mean(axis=0, dtype=np.float64) for rows in (mask, ~mask)],
    )
    limit = float(np.abs(pixels_of(group - rest, shape)).max())
    difference = component_image(group - rest, shape, limit, dark=is_dark())
    sides = on_page(dataset, dataset.as_images(np.stack([group, rest])))
    drawn = {"these rows": sides[0], "the rest": sides[1], "difference": difference}
    figures = [figure(picture, name, f"mean image: {name}") for name, picture in drawn.items()]
    st.html(tag("div", "".join(figures), "ca-means"))
    st.caption(f"Mean images. Full red is {number(limit)} more, full blue as much less.")


def _comparison_table(comparison: GroupComparison) -> None:
    import pandas as pd

    pairs = [differences.sides(d) for d in comparison.differences]
    table = pd.DataFrame(
        {
            "what": [d.name for d in comparison.differences],
            "kind": [KINDS[d.kind] for d in comparison.differences],
            "these": [these for these, _ in pairs],
            "rest": [rest for _, rest in pairs],
            "effect": [d.effect for d in comparison.differences],
            "strength": [d.strength for d in comparison.differences],
            "p, corrected": [f"{d.corrected:.2g}" for d in comparison.differences],
        }
    )
    effect = st.column_config.NumberColumn(
        format="%+.2f",
        help="Of a number, Cliff's delta: how much more often a row of these has the larger value. "
        "Of a share, the difference. From −1 to 1.",
    )
    columns = {"effect": effect}
    st.dataframe(table, hide_index=True, width="stretch", key="group_table", column_config=columns)


PAGE = 6  # groups on a page
LEAST_MEMBERS = 3  # two rows are near each other by chance, one is always
IMAGES, LINES, FEATURES = 12, 4, 5  # members shown of a group: images, or lines and columns
CHIPS, LETTERS = 6, 18  # classes named, and letters of a text
SIZES = (5, 200)  # rows a group
MOST_SUBSPACES = 40  # the fullest; a model with many components has thousands of thin ones
PANEL_HEIGHT = 620  # pixels


class FoundGroups(NamedTuple):
    """The groups of a run in the order shown, with their classes where there are any."""

    groups: list[SimilarRows]
    mixtures: list[Mixture]
    by_pair: bool  # within pairs of components, not subspaces


def _similar(dataset: Dataset, shown: Shown) -> None:
    """Draw the answer, the groups as cards, and the subspace of the one last clicked."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        classes = kit.choose(dataset, "similar")
        size = _size(dataset)
    groups = _found(dataset, shown, classes, size)
    if not groups.groups:
        st.info("No three rows are close together. Ask for larger groups, or for fewer components.")
        return
    st.markdown(similar_sentence(groups, classes))
    first = first_of_page(len(groups.groups), PAGE, f"similar-page-{shown.key}-{size}")
    chosen = state.get(dataset)
    places = range(first, min(first + PAGE, len(groups.groups)))
    cards = (_card(dataset, shown, groups, place, classes, chosen) for place in places)
    with st.container(
        key="beside_similar"
    ):  # its columns stand below each other in a narrow window
        left, right = st.columns([1, 1], gap="medium")
    with left:
        list_of = tag("div", "".join(cards), "ca-group-list")
        kit.acting(list_of, "similar", {"group": lambda text, _: _select(dataset, groups, text)})
    with right:
        here = (place for place in places if _is(groups.groups[place], chosen))
        _panel(dataset, shown, groups, groups.groups[next(here, first)])


def similar_sentence(groups: FoundGroups, classes: Classes | None) -> str:
    """Say as Markdown which classes are in the same group most often."""
    total = counted(len(groups.groups), "group")
    joined = joined_pairs(groups.mixtures)
    if classes is None or not joined:
        return f"**{total} of similar rows.** Click one to select it."
    (a, b), number = joined[0]
    name, other = (markdown(shortened(classes.names[c])) for c in (a, b))
    return (
        f"**{name} and {other} share a group most often: {number} of {total}.** Click a group to "
        "select it, and see above what its rows share."
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
    mixed = mixtures(groups, classes.codes, len(classes.names))
    return FoundGroups([group for group, _ in mixed], [classed for _, classed in mixed], by_pair)


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
    return kit.button(tag("div", head) + seen, "group", place, label, "ca-act ca-group", here)


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
    every = kept(f"weights-{shown.key}", lambda: patterns(shown.fitted, None))
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
        state.put(dataset, groups.groups[place].rows)


LEVEL = 0.99  # of rows drawn from the model lie below either limit
HELP = (
    "Distance from the subspace: what the components leave over (Q). Distance within it: how large "
    "the scores are for their components (Hotelling's T²)."
)
WHAT_TO_DO = (
    "Look at the first rows. One far from its subspace is often an error, or of a kind that the "
    "fit has not learned. One far out within it is extreme, not wrong."
)
LASSO = ":material/lasso_select:"


def unusual_tab(dataset: Dataset, shown: Shown) -> None:
    """Draw how many rows are beyond a limit, and the rows as a table, the worst first."""
    said = kept(f"unusual-{shown.key}", lambda: verdict(distances(shown.fitted), None, LEVEL))
    order, fits = said.order, said.fits
    beyond = order[~fits[order]]
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.markdown(f"**{answer(said)}**", width="content", help=HELP)
        if len(beyond):
            label = f"Select {'it' if len(beyond) == 1 else f'all {len(beyond):,}'}"
            select_button(label, dataset, beyond, "unusual_select", icon=LASSO)
            rows_popover(dataset, shown, beyond, key="unusual")
            gone = counted(len(beyond), "unusual row")
            leave_out_button("Leave out", dataset, beyond, gone, "unusual_leave_out")
    st.caption(WHAT_TO_DO)
    row = rows.draw(dataset, shown.fitted, said, order, shown.key)
    select_button("Select this row", dataset, np.array([row]), "unusual_row", icon=LASSO)


def answer(verdicts: NewRowsVerdict) -> str:
    """Say how many rows pass a limit, and which."""
    n, beyond = len(verdicts.fits), int((~verdicts.fits).sum())
    t2, q = (verdicts.ratios > 1).sum(axis=0)
    return (
        f"{beyond:,} of {n:,} rows ({percent(beyond / n, 1)}) are unusual: {q:,} far from their "
        f"subspace, {t2:,} far out within it. By chance, 1% of rows would be beyond each limit."
    )
