"""The page Sharing: components that classes share as circles, in words, and their popularity."""

import json

import numpy as np
import streamlit as st

from appca.analysis.components import sharing
from appca.analysis.components.components import name_of
from appca.analysis.components.sharing import Sharing
from appca.analysis.export.projections import neutral
from appca.data.dataset import Dataset
from appca.data.numbers import percent
from appca.data.preprocessing import Preprocessing
from appca.plots.components import sharing as charts
from appca.storage.wording import counted, shortened
from appca.ui.parts import class_choice
from appca.ui.parts.chart import chart
from appca.ui.parts.class_choice import Classes
from appca.ui.parts.downloads import save_button, stem_of
from appca.ui.parts.text import fact_list, markdown, table_line
from appca.ui.parts.text import table as html_table
from appca.ui.session import watching
from appca.ui.session.callbacks import guarded
from appca.ui.session.fitting import Shown

# The paper's figure: 500 each of the odd digits, in 350 principal coordinates, K = 100. The paper
# does not say L; half of K leaves the most sets to choose from. Few paths keep the sums over sets,
# which sharing does not need, from taking far longer than the fit.
ODD = {"classes": ["1", "3", "5", "7", "9"], "per_class": 500}
PAPER = {
    "preprocessing": Preprocessing(divide=255.0, pca=350).to_dict(),
    "model": "aFA",
    "parameters": {"n_components": 100, "n_active": 50, "n_paths": 4},
}
NEAR = 2 / 3  # L of K from which two rows share most of their components whatever the data
ALIKE = 0.1  # a grid whose numbers differ by less than so much of the largest says little
LEAST_TOLD = 0.005  # of a difference that would be rounded to 0%
MOST_LINES = 12  # of the table of classes; more scroll


def paper() -> None:
    """Draw the button that opens the paper's data and fits the paper's model to them."""
    busy = watching.running("mnist") is not None
    st.button(
        "Loading…" if busy else "The paper's 2,500 odd digits",
        key="sharing_paper",
        icon=":material/article:",
        disabled=busy,
        on_click=_open_paper,
        help="Opens 500 each of MNIST's 1, 3, 5, 7 and 9, keeps 350 principal components, and fits "
        "adaptive factor analysis with K = 100 and L = 50 in the background: a few minutes.",
    )


def body(dataset: Dataset, shown: Shown, classes: Classes | None) -> None:
    """Draw the grid with its words, and the popularity below."""
    if classes is None:
        st.info(
            f"{class_choice.none_yet(dataset)}; or select rows on any page: they are then compared "
            "with all others. The popularity of the components needs no classes."
        )
    else:
        found = sharing.sharing(shown.fitted.active, classes.codes, len(classes.names))
        with st.container(key="beside"):
            left, right = st.columns([1.2, 1], gap="large")
        with left:
            st.subheader("Components that classes share", anchor=False)
            _grid(found, classes)
        with right:
            _words(dataset, shown, found, classes)
    _popularity(shown, classes)


def beside_paper(dataset: Dataset, found: Sharing, classes: Classes) -> str | None:
    """Return what the paper says of its figure beside what was found; None on other data."""
    own = dataset.provenance
    options = own.get("options", {})
    same = own.get("source") == "mnist" and all(options.get(key) == ODD[key] for key in ODD)
    if not same or list(classes.names) != ODD["classes"]:
        return None
    number = {name: c for c, name in enumerate(classes.names)}
    told = [
        f"{a} and {b} share {found.shared[number[a], number[b]]:.2f}"
        for a, b in (("1", "7"), ("5", "9"))
    ]
    return (
        "The paper reads from its figure that a digit shares most with its own kind, and that 1 "
        f"and 7, and 5 and 9, share much too. Here {' and '.join(told)}, against "
        f"{found.overall:.2f} on average."
    )


def _grid(found: Sharing, classes: Classes) -> None:
    figure = charts.circles(found.shared, classes.names, found.counts, found.overall)
    chart(figure, "sharing_grid", width="content")
    st.caption(
        "Area of a circle: how many components a row of the one class and a row of the other use "
        "both, on average over all pairs of different rows. Colour: the same number, from the "
        "least to the most in this grid. Rings: what every circle would be if classes did not "
        "matter. Point at a circle for its numbers."
    )
    save_button(
        "Save the grid as CSV",
        lambda: grid_csv(found, classes),
        f"sharing-{stem_of(classes.title)}.csv",
        "text/csv",
        key="sharing",
    )


def grid_csv(found: Sharing, classes: Classes) -> bytes:
    """Return the mean numbers of shared components as CSV, one line for each pair of classes."""
    import csv
    import io

    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["class", "other", "rows", "rows_of_other", "shared", "over_largest"])
    grid, names = found.grid, [neutral(name) for name in classes.names]
    for a, one in enumerate(names):
        for b, other in enumerate(names):
            counts = [int(found.counts[a]), int(found.counts[b])]
            writer.writerow([one, other, *counts, found.shared[a, b], grid[a, b]])
    return text.getvalue().encode()


def _words(dataset: Dataset, shown: Shown, found: Sharing, classes: Classes) -> None:
    st.subheader("In words", anchor=False)
    for sentence in sentences(shown, found, classes):
        st.markdown(sentence)
    paper_says = beside_paper(dataset, found, classes)
    if paper_says:
        st.markdown(paper_says)
    st.html(fact_list(numbers(shown, found)))
    tall = len(classes.names) > MOST_LINES
    with st.container(height=430 if tall else "content", border=False):
        st.html(table(found, classes))


def sentences(shown: Shown, found: Sharing, classes: Classes) -> list[str]:
    """Return the closest pair of classes, and what limits the comparison, as Markdown."""
    names = [markdown(shortened(name)) for name in classes.names]
    told = []
    pairs = sharing.closest_pairs(found)
    if pairs:
        first = pairs[0]
        largest = max(float(np.nanmax(found.shared)), np.finfo(float).tiny)
        told.append(
            f"**{names[first.first]} and {names[first.second]}** share most of all pairs of "
            f"different classes: {first.shared:.2f} components, {percent(first.shared / largest)} "
            f"of the largest circle and {_against(first.shared, found.overall)}."
        )
        if len(pairs) > 2:
            last = pairs[-1]
            told.append(
                f"Least in common have {names[last.first]} and {names[last.second]}: "
                f"{last.shared:.2f}."
            )
    own = [c for c in range(len(names)) if found.shared[c, c] >= np.nanmax(found.shared[c])]
    told.append(f"{len(own)} of {len(names)} classes share most with rows of their own kind.")
    return told + cautions(shown, found)


def _against(shared: float, average: float) -> str:
    """Compare with what two rows share whatever their class."""
    more = shared / average - 1 if average else 0.0
    if abs(more) < LEAST_TOLD:
        return "as many as two rows do on average"
    return f"{percent(abs(more))} {'more' if more > 0 else 'less'} than two rows do on average"


def cautions(shown: Shown, found: Sharing) -> list[str]:
    """Return what a reader of the grid must know before making much of it."""
    k, active = len(shown.fitted.components), shown.config.n_active
    if active is None:
        return [
            "Rows of this model use different numbers of components: a class that uses many "
            "shares more with every class."
        ]
    if active >= k:
        return [
            "Every row uses all components, so all rows share all of them and the grid says "
            "nothing. Choose a smaller L on the page Fit."
        ]
    least = sharing.least_shared(k, active)
    if active >= NEAR * k:
        return [
            f"L = {active} is so near K = {k} that any two rows share at least {least} of their "
            f"{active} components, whatever the data. A smaller L tells classes apart better."
        ]
    spread = float(np.nanmax(found.shared) - np.nanmin(found.shared))
    if spread < ALIKE * float(np.nanmax(found.shared)):
        return [
            "All circles are nearly alike: which components a row uses says little about its "
            "class here."
        ]
    return []


def numbers(shown: Shown, found: Sharing) -> dict[str, str]:
    """Return the reference values of the grid."""
    k, active = len(shown.fitted.components), shown.config.n_active
    average = {"Two rows share, on average": f"{found.overall:.2f} (rings)"}
    if active is None:
        mean = float(shown.fitted.active.sum(axis=1).mean())
        return {"A row uses": f"{mean:.1f} of {k} components on average", **average}
    chance = f"{sharing.at_random(k, active):.2f} (L²/K, if each row drew its components at random)"
    return {
        "A row uses": f"{active} of {k} components",
        "Two rows share, by chance": chance,
        **average,
    }


def table(found: Sharing, classes: Classes) -> str:
    """Return for each class what it shares within, and with the class closest to it, as HTML."""
    lines = []
    for c, name in enumerate(classes.names):
        other = sharing.closest_to(found, c)
        cells = [f"{found.counts[c]:,}", _number(found.shared[c, c])]
        cells += (
            ["–", ""]
            if other is None
            else [shortened(classes.names[other], 18), _number(found.shared[c, other])]
        )
        lines.append(table_line(shortened(name, 18), cells, title=name))
    heads = ("class", "rows", "own kind", "closest other", "shared with it")
    return html_table(heads, lines)


def _popularity(shown: Shown, classes: Classes | None) -> None:
    active = shown.fitted.active
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.subheader("Popularity of the components", anchor=False, width="content")
        key = "sharing_by_class"
        if classes and not st.toggle("By class", key=key, persist_state="session"):
            classes = None
    names = [name_of(shown.fitted, k) for k in range(active.shape[1])]
    overall = sharing.popularity(active)
    if classes is not None:
        shares = sharing.popularity_by_class(active, classes.codes, len(classes.names))
        figure = charts.popularity_map(shares, classes.names, overall, names)
        text = "Colour: the share of a class's rows that use a component."
    else:
        even = None if shown.config.n_active is None else shown.config.n_active / active.shape[1]
        figure = charts.popularity_bars(overall, names, even)
        text = "Share of all rows that use a component, the most popular first."
        if even is not None:
            text += f" Dashed: L/K = {percent(even, 1)}, if all were equally popular."
    chart(figure, "sharing_popularity")
    unused = int((overall == 0).sum())
    st.caption(text + (f" Used by no row: {counted(unused, 'component')}." if unused else ""))


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"


@guarded
def _open_paper() -> None:
    spec = {"key": "mnist", "options": ODD, "then": PAPER}
    key = json.dumps(spec, sort_keys=True)
    watching.start("download", spec, watching.Watched("download", "mnist"), key=key)
