"""The page Similar objects: groups of near rows in each subspace, as rows of images or tables."""

from typing import NamedTuple

import numpy as np
import streamlit as st

from appca.analysis.explore.subspaces import opens_in_pair_view, pair_counts, pairs, ranked
from appca.analysis.fitted import FittedRun
from appca.analysis.groups import similar
from appca.analysis.groups.similar import HowMany, Mixture, SimilarRows
from appca.data.dataset import Dataset
from appca.plots.palette import Colour
from appca.storage.wording import counted, shortened
from appca.ui.explorer import atlas, panels
from appca.ui.groups import similar_group
from appca.ui.parts import class_choice
from appca.ui.parts.class_choice import Classes
from appca.ui.parts.text import apart, markdown
from appca.ui.parts.widgets import first_of_page, one_of
from appca.ui.session import selection
from appca.ui.session.fitting import Shown

PAGE = 8  # groups on a page
LEAST_MEMBERS = 3  # two rows are near each other by chance, one is always
SEED = 0
KINDS = {
    "size": "About so many rows each",
    "number": "So many in each subspace",
    "silhouette": "By silhouette, at most",
}
LIMITS = {"size": (2, 2000), "number": (1, 60), "silhouette": (2, 30)}
DEFAULTS = {"number": 8, "silhouette": similar.LIMIT}
HELP = (
    f"Made by k-means inside each subspace (seed {SEED}, the best of {similar.STARTS} starts), at "
    f"most {similar.MOST_GROUPS} in one when a size is asked for. By silhouette: the number from 2 "
    "up to the limit whose groups are farthest apart for their width."
)
ORDERS = {"classes": "Most classes first", "tight": "Tightest first"}


class FoundGroups(NamedTuple):
    """The groups of a run."""

    groups: list[SimilarRows]
    kind: str  # "subspace" or "pair": within what they were made
    places: int  # of those there are
    searched: int  # the fullest of them, which were grouped
    rows: int  # that lie in those


def choose_groups(shown: Shown) -> FoundGroups:
    """Draw how groups are made, and return them."""
    by_pair = _within(shown)
    kind = st.selectbox(
        "Groups",
        list(KINDS),
        format_func=KINDS.__getitem__,
        key="similar_kind",
        width=215,
        persist_state="session",
        help=HELP,
    )
    n_rows = len(shown.fitted.active)
    value = st.number_input(
        "How many",
        *LIMITS[kind],
        DEFAULTS.get(kind, int(np.clip(n_rows // 40, 5, 20))),  # small tables: small groups
        key=f"similar_{kind}-{shown.config.dataset[:8]}",
        width=120,
        persist_state="session",
    )
    return _found(f"{shown.key}-{by_pair}", shown.fitted, by_pair, kind, int(value))


def body(dataset: Dataset, shown: Shown, found: FoundGroups, classes: Classes | None) -> None:
    """Draw the groups, page by page."""
    if not found.groups:
        st.info(
            f"No group of {LEAST_MEMBERS} or more rows. Ask for larger groups, or choose fewer "
            "components on the page Fit, so that more rows share a subspace."
        )
        return
    mixtures = [
        similar.mixture(group, classes.codes, len(classes.names)) if classes else None
        for group in found.groups
    ]
    joining = [i for i, item in enumerate(mixtures) if item and len(item.joined) > 1]
    st.caption(_in_words(found, classes, len(joining)))
    if classes is None:
        st.info(
            f"{class_choice.none_yet(dataset)}, and groups that join different classes come "
            "first. Until then the tightest groups do."
        )
    elif joining:
        st.markdown(_often([item for item in mixtures if item], classes))
    order = _order(found.groups, mixtures, joining)
    if not order:
        st.info("No group joins different classes. Make larger groups, or turn off the filter.")
        return
    for place, number in _page(order, f"{shown.key}-{len(found.groups)}"):
        item = _Item(found.groups[number], mixtures[number], found.kind, place)
        _group(dataset, shown, item, classes)


def colour(dataset: Dataset, shown: Shown, classes: Classes | None) -> Colour:
    """Return what the tray's bars count: the classes, or else what points are coloured by first."""
    if classes is not None:
        return Colour("category", classes.title, classes.codes, classes.names)
    return atlas.colour_now(dataset, shown, next(iter(panels.colour_choices(dataset))))


def _within(shown: Shown) -> bool:
    active = shown.fitted.active
    if active.sum(axis=1).max() < 3:
        return False
    return one_of(
        "Inside",
        {False: "Subspaces", True: "Pairs of components"},
        f"similar-in-{shown.config.k}-{shown.config.n_active}",
        opens_in_pair_view(active),
        "With many components the subspaces hold few rows each. A pair holds all rows that use "
        "both components, whatever else they use.",
    )


@st.cache_resource(show_spinner="Looking for similar rows…", max_entries=16)
def _found(key: str, _fitted: FittedRun, by_pair: bool, kind: str, value: int) -> FoundGroups:
    del key
    active, most = _fitted.active, similar.MOST_SUBSPACES
    if by_pair:
        total, spaces = len(pair_counts(active)), pairs(active, 0, most)
    else:
        used = [space for space in ranked(active) if space.components]
        total, spaces = len(used), used[:most]
    groups = similar.similar(_fitted.scores, _fitted.components, spaces, HowMany(kind, value), SEED)
    groups = [group for group in groups if len(group.rows) >= LEAST_MEMBERS]
    inside = np.zeros(len(active), bool)
    for group in groups:
        inside[group.rows] = True
    return FoundGroups(
        groups, "pair" if by_pair else "subspace", total, len(spaces), int(inside.sum())
    )


def _in_words(found: FoundGroups, classes: Classes | None, joining: int) -> str:
    kind = found.kind
    where = counted(found.searched, kind)
    if found.searched < found.places:
        where = f"the {found.searched:,} fullest of {counted(found.places, kind)}"
    text = (
        f"{counted(len(found.groups), 'group')} of {LEAST_MEMBERS} rows or more in {where}, "
        f"together {counted(found.rows, 'row')}"
    )
    aside = f"They lie close together in their {kind}; what they are outside it does not count."
    if classes is None:
        return f"{text}. {aside}"
    join = "joins" if joining == 1 else "join"
    return (
        f"{text}. {counted(joining, 'group')} {join} different classes, each with at least a tenth "
        f"of the group and {similar.JOINED_ROWS} rows. {aside}"
    )


def _often(mixtures: list[Mixture], classes: Classes) -> str:
    names = [markdown(shortened(name)) for name in classes.names]
    told = [
        f"**{names[a]} and {names[b]}** ({counted(number, 'group')})"
        for (a, b), number in similar.joined_pairs(mixtures)[:4]
    ]
    return f"Joined most often by {markdown(shortened(classes.title))}: {', '.join(told)}"


def _order(
    groups: list[SimilarRows], mixtures: list[Mixture | None], joining: list[int]
) -> list[int]:
    """Draw order and filter where there are classes, and return the numbers of the groups."""
    if any(item is None for item in mixtures):
        return similar.by_tightness(groups)
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        by = one_of("Order", ORDERS, "similar_order", "classes", label_visibility="collapsed")
        label = "Only groups that join different classes"
        only = st.toggle(label, True, key="similar_only", persist_state="session")
    known = [item for item in mixtures if item]
    order = similar.by_mixture(groups, known) if by == "classes" else similar.by_tightness(groups)
    return [number for number in order if number in set(joining)] if only else order


def _page(order: list[int], key: str) -> list[tuple[int, int]]:
    """Draw the pager; return place and number of each group on the page."""
    first = first_of_page(len(order), PAGE, f"similar-page-{key}-{-(-len(order) // PAGE)}")
    return list(enumerate(order[first : first + PAGE], start=first))


class _Item(NamedTuple):
    """One group where it stands."""

    group: SimilarRows
    mixed: Mixture | None
    kind: str  # "subspace" or "pair"
    place: int  # in the order, from 0


def _group(dataset: Dataset, shown: Shown, item: _Item, classes: Classes | None) -> None:
    group, mixed, kind, place = item
    sprites = atlas.sprites(dataset.digest)
    with st.container(border=True, key=f"similar-group-{place % PAGE}"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.html(similar_group.heading(group, mixed, classes, place, kind), width="stretch")
            chosen = selection.get(dataset)
            own = np.isin(np.arange(dataset.n_rows), group.rows)
            here = np.array_equal(chosen, own)
            st.button(
                apart("Selected" if here else "Select", f"group {place + 1}"),
                key=f"similar-select-{place % PAGE}",
                disabled=here,
                on_click=selection.put,
                args=[dataset, own],
                help="Mark these rows on every page.",
            )
        if sprites is not None:
            st.html(similar_group.images(sprites, group, classes))
        else:
            st.html(similar_group.table(dataset, shown, group))
