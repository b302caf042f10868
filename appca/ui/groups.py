"""The page Groups: Differences (with groups of similar rows), and Unusual."""

import re
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import streamlit as st

from appca import class_overlap as overlap
from appca.analysis import groups as analysis
from appca.analysis.components import fullest, opens_in_pair_view, patterns, ranked, title
from appca.analysis.fitted import FittedRun
from appca.analysis.groups import MOST_SHOWN, GroupComparison, compare, sentence, types_of
from appca.analysis.rows import SimilarRows, similar
from appca.canvas.sheets import is_ink
from appca.data.dataset import Dataset
from appca.plots import groups as differences
from appca.plots.components import component_image
from appca.plots.style import MISSING
from appca.preparation import out_of_range
from appca.ui import controls, downloads, kit, rows, state
from appca.ui.fits import Shown
from appca.ui.kit import Classes, chart, first_of_page, markdown, press, table, tag, words
from appca.ui.rows import figure, is_dark, on_page, strip
from appca.ui.services import by_key, kept
from appca.words import capital, counted, fixed, listed, number, of_column, percent, shortened

PANELS, REST, MOST_PAIRS = 20, "rest", 50_000
KINDS = {"feature": "column", "score": "score", "use": "use of a component"}
KINDS |= {"subspace": "subspace", "class": "label", "measure": "fit", "image": "image"}


def differences_tab(dataset: Dataset, shown: Shown) -> None:
    """Draw how far classes mix, the differences of some rows, and groups of similar rows."""
    _classes_apart(dataset, shown)
    _differences(dataset, shown)
    if st.toggle("Groups of similar rows", key="similar_rows", persist_state="session"):
        _similar(dataset, shown)
    for classes in controls.classes(dataset) if len(nearest(dataset, shown)) else ():
        label = markdown(f"Kinds within each {classes.title}")
        if st.toggle(label, key="kinds_inside", persist_state="session"):
            _kinds(dataset, shown, classes)


def _differences(dataset: Dataset, shown: Shown) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        (whose, mask, of), (whom, others, against) = _rows(dataset, shown)
        controls.tools(dataset, shown)
    prepare = shown.fitted.preprocessing.prepare
    by_row = prepare is not None and prepare.is_by_row
    when = "after" if by_row else "as in the file, before"
    raw = f"; features {when} the preparation of the fit" * bool(prepare) + kit.related(dataset)
    st.caption(f"{state.get(dataset).sum():,} of {counted(dataset.n_rows, 'row')} selected{raw}")
    sides = np.where(mask, 1, np.where(others, 0, -1))
    key = f"{shown.key}-{dataset.digest[:8]}-{of}-{against}"
    comparison = kit.tried(f"apart-{key}", lambda: compare(dataset, shown.fitted, sides), st.info)
    if comparison is None:
        return
    told, said = comparison.differences, st.session_state.setdefault(state.KEYS.findings, {})
    said[shown.key, key] = sentence(comparison, whose, whom)  # the report includes it
    st.markdown(f"**{markdown(said[shown.key, key])}**")
    with st.container(key="beside"):
        left, right = st.columns([3, 2], gap="large")
        with left:
            chart(differences.bars(comparison.strongest() or told[:MOST_SHOWN]), "group_bars")
        with right:
            if dataset.image_shape is not None or dataset.is_ordered:
                _group_means(dataset, [mask, others], key, prepare if by_row else None)
    with st.expander("All comparisons"):
        _comparison_table(comparison)
        some = f" Columns: a sample of {comparison.sampled:,} rows." if comparison.sampled else ""
        st.caption(
            "Mann-Whitney, chi-square or Fisher's exact tests, corrected (Benjamini-Hochberg). Of "
            "rows chosen by scores, scores differ. Numbers are medians, or means where medians "
            f"contradict the effect.{some}"
        )


def _apart(dataset: Dataset, shown: Shown, classes: Classes) -> analysis.ClassesApart:
    of = dataset, shown.fitted, nearest(dataset, shown), *classes
    key = f"classes-apart-{shown.key}-{classes.title}-{classes.names}"
    return kept(key, lambda: analysis.classes_apart(*of))


def _classes_apart(dataset: Dataset, shown: Shown) -> None:
    """Say how many rows lie among their own class; the table counts which classes mix."""
    import pandas as pd

    for classes in controls.classes(dataset) if len(nearest(dataset, shown)) else ():
        of, names = _apart(dataset, shown, classes), classes.names
        with st.expander(markdown(of.sentence)):
            st.caption("Click a number to select its rows.", help=markdown(of.about))
            look: Any = {"on_select": "rerun", "selection_mode": "single-cell"}
            key = f"classes_apart-{shown.key}-{classes.title}"
            seen: Any = st.dataframe(pd.DataFrame(of.table, names, names), key=key, **look)
            most = overlap.most_near(classes.codes, nearest(dataset, shown))
            for row, name in seen["selection"]["cells"]:
                here = np.flatnonzero((classes.codes == row) & (most == names.index(name)))
                text = f"Select {counted(len(here), 'row')}: {names[row]} among {name}"
                press(markdown(text), "classes_select", state.put, dataset, here, icon=LASSO)
                st.caption(markdown(listed(dataset.ids[here].tolist(), IMAGES)))
                if dataset.image_shape is not None and len(here):
                    picture = strip(dataset, here[:IMAGES])
                    st.html(tag("img", "", src=picture, alt="their images", style="height:56px"))
            if of.by_discriminants.any():
                st.caption("By linear discriminants that are learned from the other rows")
                st.dataframe(pd.DataFrame(of.by_discriminants, names, names), key="discriminants")
            if of.ends:
                columns = ["highest in the class, by Cliff's delta", "lowest"]
                st.dataframe(pd.DataFrame(of.ends, names, columns), key="markers")
            if of.inside:
                columns = ["inside the name", "one", "another", "distance at one mean and length"]
                lines = pd.DataFrame(of.inside[:MOST_PAIRS], columns=columns)
                look = {"on_select": "rerun", "selection_mode": "single-row", "key": "inside"}
                for i in st.dataframe(lines, **look)["selection"]["rows"]:
                    named = np.flatnonzero(dataset.labels["name"] == of.inside[i][0])
                    st.caption(markdown(", ".join(names[code] for code in classes.codes[named])))
                    st.html(tag("img", "", src=strip(dataset, named), alt="", style="height:56px"))
        said = st.session_state.setdefault(state.KEYS.findings, {})  # the report includes it
        said[shown.key, f"{classes.title} apart"] = f"{of.sentence}. {of.about}"


def _rows(dataset: Dataset, shown: Shown) -> list[tuple[str, np.ndarray, str]]:
    token, every = state.token(dataset), np.arange(dataset.n_rows)
    typed = controls.is_by_type(dataset)
    offered = kept(f"offered-{shown.key}-{typed}", lambda: _offered(dataset, shown, typed))
    if token is not None:
        offered = {token: ("the selection", np.flatnonzero(state.get(dataset)))} | offered
    key, look = f"{shown.config.id}-{token}", dict[str, Any](width=230, persist_state="session")
    look["format_func"] = lambda key: f"{offered[key][0]} · {len(offered[key][1]):,}"
    of = st.selectbox("Rows to compare", [*offered], key=f"group_rows-{key}", **look)
    label, rows = offered[of]
    mask, whose = np.isin(every, rows), f"The {counted(len(rows), 'row')} of {label}"
    offered = {REST: ("all other rows", every[~mask])} | offered
    kinds = [kind for kind in offered if kind != of]
    first = 0
    for named, names, codes in controls.classes(dataset) if of == token else ():
        code = codes[mask].max()
        if code >= 0 and (codes[mask] == code).all() and mask.sum() < (codes == code).sum():
            first = kinds.index(f"{named} = {names[code]}")  # with the rest of the class
    against = st.selectbox("with", kinds, first, key=f"group_against-{of}-{key}", **look)
    label, rows = offered[against]
    others = np.isin(every, rows) & ~mask
    n = counted(int(others.sum()), "row" if others.sum() == len(rows) else "other row")
    if of != token:
        press("Select these rows", "group_select", state.put, dataset, mask)
    rest = "the rest" if against == REST else f"the {n} of {label}"
    return [(whose, mask, of), (rest, others, against)]


def _offered(dataset: Dataset, shown: Shown, typed: bool) -> dict[str, tuple[str, np.ndarray]]:
    codes, names = types_of(dataset, shown.fitted) if typed else (np.empty(0), ())
    choices = {
        f"type {c}": (f"“{name}”", np.flatnonzero(codes == c))
        for c, name in enumerate(names if len(names) > 1 else ())
    }
    for classes in kit.every(dataset):
        for c, name in enumerate(classes.names):
            inside = of_column(classes.title, name), np.flatnonzero(classes.codes == c)
            choices[f"{classes.title} = {name}"] = inside
    return choices | {
        f"panel {subspace.components}": (f"subspace {title(subspace.components)}", subspace.rows)
        for subspace in ranked(shown.fitted.active)[:PANELS]
    }


def _group_means(dataset: Dataset, sides: list[np.ndarray], key: str, prepare: Any) -> None:
    def mean(side: np.ndarray) -> np.ndarray:
        X = dataset.X[side] if prepare is None else prepare.apply(dataset.X[side].astype(float))
        return np.asarray(X.mean(axis=0, dtype=float))

    group, rest = kept(f"means-{key}", lambda: [*map(mean, sides)])
    if (shape := dataset.image_shape) is None:
        st.caption("The mean of these rows, and of the others")
        st.html(rows.opposed(dataset, {"these rows": group, "the others": rest}))
        return
    limit = float(np.abs(group - rest).max())
    difference = component_image(group - rest, shape, limit, dark=is_dark())
    means = on_page(dataset, dataset.as_images(np.stack([group, rest])))
    drawn = {"these rows": means[0], "the others": means[1], "difference": difference}
    figures = [figure(picture, name, f"mean image: {name}") for name, picture in drawn.items()]
    st.html(tag("div", "".join(figures), "ca-means"))
    more = ("darker", "lighter") if is_ink(dataset) else ("lighter", "darker")
    full = "Full red" if len(shape) == 2 else "A full colour"
    st.caption(f"Mean images. {full} is {number(limit)} {more[0]}, the opposite as much {more[1]}.")


def _comparison_table(comparison: GroupComparison) -> None:
    import pandas as pd

    names = ["what", "kind", "these", "others", "effect", "p, corrected"]
    lines = [
        [d.name, KINDS[d.kind], *differences.sides(d), d.effect, f"{max(d.corrected, 1e-300):.2g}"]
        for d in comparison.differences
    ]
    effect = st.column_config.NumberColumn(
        format="%+.2f",
        help="For numbers, Cliff's delta: how much more often these rows have the larger value. "
        "For shares, the difference. From −1 to 1.",
    )
    look: Any = {"hide_index": True, "width": "stretch", "column_config": {"effect": effect}}
    st.dataframe(pd.DataFrame(lines, columns=names), key="group_table", **look)


PAGE, KINDS_PAGE, LEAST_MEMBERS = 6, 30, 3  # two rows may be similar by chance
IMAGES, LINES, FEATURES = 12, 4, 5
CHIPS, LETTERS, SIZES, MOST_SUBSPACES = 6, 32, (5, 200), 40
THREE = "grid-template-columns:repeat(auto-fill,minmax(min(400px,100%),1fr))"


class FoundGroups(NamedTuple):
    """The groups of a run, with their classes, if any."""

    groups: list[SimilarRows]  # tightest first
    by_pair: bool  # within pairs of components, not subspaces
    classes: Classes | None


def _similar(dataset: Dataset, shown: Shown) -> None:
    usual = int(np.clip(dataset.n_rows // 40, *(5, 20)))
    widget: Any = {"key": f"similar_size-{dataset.digest[:8]}", "persist_state": "session"}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        classes = kit.choose(dataset, "similar")
        size = int(st.number_input("Rows per group", *SIZES, usual, width=130, **widget))
    members = _grouped(f"{shown.key}-{size}", shown.fitted, size)
    by_pair = opens_in_pair_view(shown.fitted.active)
    groups = FoundGroups(sorted(members, key=lambda group: group.spread), by_pair, classes)
    if not members:
        st.info("No three rows are close together. Ask for larger groups, or for fewer components.")
        return
    said = f"**{counted(len(members), 'group')} of similar rows.** The tightest come first."
    said += " A row can be in several." * by_pair
    st.markdown(f"{said} Click one to select it, and see above how its rows differ.")
    n, start = len(members), first_of_page(len(members), PAGE, f"similar-{shown.key}-{size}")
    chosen, cards = state.get(dataset), ""
    for place in range(start, min(start + PAGE, n)):
        group = groups.groups[place]
        is_chosen = int(chosen.sum()) == len(group.rows) and bool(chosen[group.rows].all())
        cards += _card(dataset, shown, groups, place, is_chosen)

    def select(text: str, _: str) -> None:
        if 0 <= int(text) < n:
            state.put(dataset, groups.groups[int(text)].rows)

    kit.acting(tag("div", cards, "ca-cards", style=THREE), "similar", {"group": select})


@by_key(16)
def _grouped(fitted: FittedRun, size: int) -> list[SimilarRows]:
    groups = similar(fitted.scores, fitted.components, fullest(fitted.active, MOST_SUBSPACES), size)
    return [group for group in groups if len(group.rows) >= LEAST_MEMBERS]


def _card(dataset: Dataset, shown: Shown, groups: FoundGroups, place: int, is_chosen: bool) -> str:
    group, classes = groups.groups[place], groups.classes
    head = tag("b", words(f"{'Both of ' if groups.by_pair else ''}{title(group.components)}"))
    few = int(dataset.sparse_rows[group.rows].sum())
    size = counted(len(group.rows), "row") + f", {few:,} with few values" * bool(few)
    head += tag("span", size, "ca-quiet")
    if classes is not None:
        codes, chips = classes.codes[group.rows], ""
        counts = np.bincount(codes[codes >= 0], minlength=len(classes.names))
        order = [c for c in np.argsort(-counts, kind="stable") if counts[c]]
        for c in order[:CHIPS]:
            text = f"{shortened(classes.names[c], LETTERS)} ({counts[c]:,})"
            dot = tag("i", "", style=f"background:{classes.colours[c]}")
            chips += tag("span", dot + words(text))
        more = len(order) - CHIPS
        head += tag("span", chips + tag("span", f"and {more} more") * (more > 0), "ca-chips")
    if dataset.image_shape is None and not dataset.is_ordered:
        seen = _table(dataset, shown, group)
    else:
        rows, colours = group.rows[:IMAGES], None
        if classes is not None:
            of_codes = [*classes.colours, MISSING]
            colours = [of_codes[code if code >= 0 else -1] for code in classes.codes[rows]]
        source = strip(dataset, rows, colours)
        seen = tag("img", "", src=source, alt=f"the {len(rows)} rows nearest the centre")
    label = f"Select {counted(len(group.rows), 'row')}"
    return kit.button(tag("div", head) + seen, "group", place, label, "ca-act ca-group", is_chosen)


def _kinds(dataset: Dataset, shown: Shown, classes: Classes) -> None:
    """Draw clusters of the rows of each class; a click selects one."""
    drawn = dataset.image_shape is not None or dataset.is_ordered
    most = int(st.number_input("Kinds" if drawn else "Most kinds", 2, 12, overlap.KINDS, width=130))
    of, codes = f"kinds-{shown.key}-{classes.title}-{most}", classes.codes
    split = kept(of, lambda: analysis.kinds(dataset, shown.fitted, codes, most))
    first, cards = first_of_page(len(split), KINDS_PAGE, of), ""
    for place, (members, unlike, firm) in enumerate(split[first : first + KINDS_PAGE], first):
        size, code = counted(len(members), "row"), codes[members[0]]
        about = size + f", silhouette {fixed(firm)}" * (firm != 0)
        name = shortened(classes.names[code], LETTERS)
        some = members[np.linspace(0, len(members) - 1, min(IMAGES, len(members))).astype(int)]
        seen = tag("img", "", src=strip(dataset, some), alt="from the centre") if drawn else ""
        sides = ((d.name, *differences.sides(d)) for d in unlike[:FEATURES])
        how = "; ".join(f"{name} {here}, the others {there}" for name, here, there in sides)
        seen += "" if drawn else tag("div", words(how or "no kinds found"))
        seen = tag("div", tag("b", words(name)) + tag("span", about, "ca-quiet")) + seen
        cards += kit.button(seen, "kind", place, f"Select {size} of {name}", "ca-act ca-group")

    def select(text: str, _: str) -> None:
        if text.isdecimal() and int(text) < len(split):
            state.put(dataset, split[int(text)][0])

    what = "Clusters, from the centre to the edge," if drawn else "Clear clusters"
    what += f" within each {markdown(classes.title)}. Click one to select it."
    st.caption(what, help=SILHOUETTE)
    kit.acting(tag("div", cards, "ca-cards", style=THREE), "kinds", {"kind": select})


def _table(dataset: Dataset, shown: Shown, group: SimilarRows) -> str:
    every = kept(f"weights-{shown.key}", lambda: patterns(shown.fitted, None))
    weights = np.abs(every)[list(group.components)].max(axis=0)
    features = np.argsort(-weights, kind="stable")[:FEATURES].tolist()
    labels = list(dataset.labels)[:1]
    heads, lines = ["row", *labels, *(dataset.column_names[j] for j in features)], []
    for row in group.rows[:LINES].tolist():
        texts = [dataset.ids[row], *(dataset.labels[name][row] for name in labels)]
        gap = [False] * dataset.n_features if dataset.missing is None else dataset.missing[row]
        numbers = ["missing" if gap[j] else number(float(dataset.X[row, j]), 4) for j in features]
        lines.append([shortened(text, LETTERS) for text in texts] + numbers)
    return table((shortened(head, LETTERS) for head in heads), lines)


SILHOUETTE = "Silhouette: near 1, a kind of its own; near 0, an arbitrary cut through the class."
MANY_MISFITS, MOST_WRONG = 0.05, 0.02  # shares of rows: misfits of a bad fit; wrong labels
HELP = (
    "Far from its subspace: a large residual (Q). Far out within it: large scores (T²). Whatever "
    "K and L: a value far beyond the others of its feature, or a large Mahalanobis distance."
)
WHAT_TO_DO = "Check the first rows. One far from its subspace is often an error, or of a kind that "
WHAT_TO_DO += "the fit has not learned; one far out within it is extreme."
LASSO, STRIP = ":material/lasso_select:", "height:40px;max-width:80vw;object-fit:contain"
ODD = "far in a feature or against the correlations", "rough or with a spike, unlike others"


def nearest(dataset: Dataset, shown: Shown) -> np.ndarray:
    """Return the nearest rows of each row (N, NEAREST), or none of large data."""
    is_unit = [of.title for of in controls.classes(dataset)] == [dataset.related]
    find = partial(analysis.nearest, dataset, shown.fitted, in_units=is_unit)
    return kept(f"nearest-{shown.key}-{is_unit}", find)


def unusual_sentences(dataset: Dataset, shown: Shown) -> tuple[str, str]:
    """Say which rows stand out, and whether the data have heavier tails than the model."""
    said, odd, columns = rows.unusual(dataset, shown)
    n, number = dataset.n_rows, int((~said.fits).sum())
    misfits = float((said.distances.over(said.of_model) > 1).any(axis=1).mean())
    far, tails = listed(dataset.ids[said.order[:3]].tolist()), ""
    answer = f"No row stands apart from the other {n - 1:,}; the farthest are {far}."
    if misfits > MANY_MISFITS and shown.fitted.row_scales is None:
        beyond = f"{percent(misfits)} of rows are beyond limits meant for 2%"
        tails = f" Tails are heavier than the model's: {beyond}, so the data's own tail is used."
        answer = f"Many rows are far out, but none stands apart; the farthest are {far}."
    if number:
        t2, q = (said.ratios > 1).sum(axis=0)
        some = f"{number:,} of {n:,} rows stand{'s' * (number == 1)} out from the others"
        whose = "their" if number > 1 else "its"
        ways = {f"far from {whose} subspace": q, f"far out within {whose} subspace": t2}
        ways[ODD[dataset.is_ordered]] = len(odd)
        told = ", ".join(f"{m:,} {way}" for way, m in ways.items() if m)
        answer = f"{some}: {told}{', some in several ways' if sum(ways.values()) > number else ''}."
        if 0 < (alike := int((columns[rows.ALIKE] == "yes").sum())) < number:
            answer += f" Listed last, as rather a kind than errors: {alike:,} among similar rows."
    return answer, tails


def suspects(dataset: Dataset, shown: Shown, odd: dict[int, str]) -> dict[str, dict[int, str]]:
    """Describe copies, rows odd in their features, and rows among those of another class."""
    ids, key, fitted, near = dataset.ids, shown.key, shown.fitted, nearest(dataset, shown)

    def like(pairs: dict[int, int]) -> dict[int, str]:
        some = {} if dataset.has_few_values else pairs  # rows of few values are usually equal
        return {row: f"{ids[row]} (like {ids[of]})" for row, of in some.items()}

    every = {"Out of range": out_of_range(dataset), capital(ODD[dataset.is_ordered]): odd}
    told = {what: {r: f"{ids[r]} ({x})" for r, x in of.items()} for what, of in every.items()}
    same = dict[int, int]()
    for classes in controls.classes(dataset) if len(near) else ():
        (label, names, codes), of = classes, _apart(dataset, shown, classes)
        among = overlap.strays(codes, near).items()
        places = {row: f"{ids[row]} (near {[*names, 'several'][code]})" for row, code in among}
        mix = ", ".join(names[c] for c in overlap.mixed(codes, near))
        few = f"; those of {mix}, which mix, only if none of their own is near"
        told[f"Among rows of another {label}{few * bool(mix)}"] = places
        low = {r: f"{ids[r]} ({percent(p, 1)}, rather {names[c]})" for r, (c, p) in of.told.items()}
        told[f"Under 5% likely in their {label}, by discriminants"] = low
        same = overlap.equal_to_others(dataset.equal_rows, codes)
        told[f"Equal to a row of another {label}"] = like(same)
        far = {row: f"{ids[row]} ({names[codes[row]]}, {x:.1f} times)" for row, x in of.far.items()}
        told[f"Farthest from others of their {label}, times the usual distance"] = far
        names_far = {row: f"{ids[row]} ({x:.1f} times)" for row, x in of.far_names.items()}
        told["Of a name far from others, times the usual distance"] = names_far
    pairs = kept(f"nearly-{key}", partial(analysis.nearly_equal, dataset, fitted, near))
    repeated = {row: of for row, of in dataset.repeated_rows.items() if same.get(row) != of}
    told |= {"Nearly equal": like(pairs), "Repeated rows": like(repeated)}
    return {what: of for what, of in told.items() if of}


def unusual_tab(dataset: Dataset, shown: Shown) -> None:
    """Draw the rows as a table; rows above a limit come first."""
    said, odd, columns = rows.unusual(dataset, shown)
    beyond = said.order[~said.fits[said.order]]
    answer, tails = unusual_sentences(dataset, shown)
    if (others := suspects(dataset, shown, odd)) and not len(beyond):
        answer = f"{answer.partition('; the farthest')[0]}; rows listed below have other reasons."
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.markdown(f"**{markdown(answer)}**", width="content", help=HELP)
        if len(alone := beyond[columns[rows.ALIKE][beyond] == ""] if len(beyond) else beyond):
            press("Select", "unusual_select", state.put, dataset, alone, icon=LASSO)
            gone = counted(len(alone), "unusual row")
            controls.leave_out_button("Leave out", dataset, alone, gone, "unusual_leave_out")
    t2, q = (np.flatnonzero(far & ~said.fits).tolist() for far in said.ratios.T > 1)
    of_model = {"far from its subspace": q, "far out within its subspace": t2}
    every = {what: dict.fromkeys(far, "") for what, far in of_model.items()} | others
    first = [*dict.fromkeys([*beyond.tolist(), *(row for of in others.values() for row in of)])]
    reasons = {
        row: [
            re.split("[,;]", x)[0].lower() + of[row].removeprefix(dataset.ids[row])
            for x, of in every.items()
            if row in of
        ]
        for row in first
    }
    alike = columns.get(rows.ALIKE, np.full(dataset.n_rows, ""))
    first.sort(key=lambda row: (str(alike[row]), -len(reasons[row])))
    order = np.r_[np.array(first, int), said.order[~np.isin(said.order, first)]]
    if first:
        why = ["; ".join(reasons.get(row, "")) for row in range(dataset.n_rows)]
        columns = {"listed": np.array(why)} | columns
    for classes in controls.classes(dataset) if dataset.image_shape is None else ():
        is_reduced = shown.config.preprocessing.get("pca")
        X = dataset.X if is_reduced else analysis.prepared(dataset, shown.fitted)
        worst = overlap.unlike_class(X, classes.codes)
        columns[f"unlike its {classes.title} in"] = np.array(["", *dataset.column_names])[worst + 1]
    if shown.config.preprocessing.get("prepare") == "ranks":
        tails += " Ranks, as in this fit, hide extreme values."
    n = int(state.get(dataset).sum())
    st.caption(WHAT_TO_DO + tails + f" {counted(n, 'row')} selected." * (n > 0))
    for what, of in others.items():
        key, places = what.split()[0].lower(), np.array([*of])
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            said_of = f"{what} ({len(of):,}): {listed([*of.values()], 3)}"
            st.markdown(markdown(said_of), width="content")
            if dataset.image_shape is not None:
                picture = strip(dataset, places[:IMAGES])
                st.html(tag("img", "", src=picture, alt="the first ones", style=STRIP))
            press("Select", f"{key}_select", state.put, dataset, places, icon=LASSO)
            gone = counted(len(of), "row")
            is_few = len(of) <= MOST_WRONG * dataset.n_rows  # else classes overlap
            if key != "farthest" and (is_few or key not in ("among", "under")):
                controls.leave_out_button("Leave out", dataset, places, gone, f"{key}_leave_out")
    columns |= rows.nearest_classes(dataset, nearest(dataset, shown))
    row = rows.draw(dataset, shown.fitted, said, order, shown.key, columns)
    press("Select this row", "unusual_row", state.put, dataset, np.array([row]), icon=LASSO)
    facts = {name: values[order] for name, values in columns.items()}
    of_rows = partial(rows.table_of, dataset, shown.fitted, said, order, facts)
    make, file = partial(downloads.file_of, "csv", of_rows, shown), f"unusual-{shown.config.id}.csv"
    downloads.save_button("Save all rows (CSV)", make, file, key="unusual_csv")
