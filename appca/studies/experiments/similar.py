"""COIL-20: different objects whose views lie together in a subspace of aPPCA."""

from typing import TYPE_CHECKING

import numpy as np

from appca.analysis.explore.subspaces import title
from appca.analysis.groups.similar import (
    Group,
    HowMany,
    Mixture,
    by_mixture,
    joined_pairs,
    mixture,
    similar,
)
from appca.data.numbers import percent
from appca.studies.experiments.coil20 import opened
from appca.studies.parts.fitting import fit
from appca.studies.study import Outcome, Report, Row, Study

if TYPE_CHECKING:
    import plotly.graph_objects as go

SHOWN, IMAGES = 12, 12  # groups drawn, and images of each
# What the paper names, by the numbers of COIL-20.
NAMED = {
    "the cat and a bottle": (("4",), ("8", "16")),
    "the duck and a wooden part": (("1",), ("2", "7", "11")),
}


def run(options: dict, report: Report, processes: int = 1) -> Outcome:
    """Fit, group the projections inside each subspace, and count what objects they join."""
    del processes
    dataset, Y, names, codes = opened(report)
    fitted = fit(Y, options, report, 0.2, 0.5)
    report("grouping similar images", 0.6)
    how = HowMany("size", options["group_size"])
    groups = similar(fitted.scores, fitted.components, fitted.subspaces, how, options["seed"])
    mixtures = [mixture(group, codes, len(names)) for group in groups]
    order = by_mixture(groups, mixtures)
    rows = [_row(groups[place], mixtures[place], names) for place in order]
    shown = [place for place in order if len(mixtures[place].joined) > 1][:SHOWN]
    arrays = {
        f"images_{number:02d}": dataset.images(spread(groups[place], codes))
        for number, place in enumerate(shown)
    }
    arrays["shown"] = np.array([order.index(place) for place in shown], dtype=int)
    return Outcome({"groups": rows}, arrays, _text(rows, groups, mixtures, names))


def spread(group: Group, codes: np.ndarray, most: int = IMAGES) -> np.ndarray:
    """Rows of a group, nearest its middle, taken from its objects in turn, object by object."""
    queues = [list(group.rows[codes[group.rows] == code]) for code in np.unique(codes[group.rows])]
    taken: list[tuple[int, int]] = []
    while len(taken) < most and any(queues):
        for number, queue in enumerate(queues):
            if queue and len(taken) < most:
                taken.append((number, int(queue.pop(0))))
    return np.array([row for _, row in sorted(taken, key=lambda one: one[0])])


def _row(group: Group, mixed: Mixture, names: list[str]) -> Row:
    counts = ", ".join(f"object {names[c]} ({mixed.counts[c]})" for c in mixed.joined)
    return {
        "subspace": title(group.components),
        "rows": len(group.rows),
        "objects": len(mixed.joined),
        "joined": counts,
        "effective_objects": float(mixed.effective),
        "spread": float(group.spread),
    }


def _text(rows: list[Row], groups: list[Group], mixtures: list[Mixture], names: list[str]) -> str:
    several = [mixed for mixed in mixtures if len(mixed.joined) > 1]
    share = sum(int(row["rows"]) for row in rows if int(row["objects"]) > 1) / sum(
        int(row["rows"]) for row in rows
    )
    found = {
        what: any(
            any(names[c] in one for c in mixed.joined)
            and any(names[c] in other for c in mixed.joined)
            for mixed in mixtures
        )
        for what, (one, other) in NAMED.items()
    }
    told = "; ".join(
        f"{what} {'share a group' if there else 'share no group'}" for what, there in found.items()
    )
    count = sum(found.values())
    verdict = {
        len(found): "Both pairs that the paper names lie together here too.",
        0: "Neither of the pairs that the paper names lies together here.",
    }.get(count, "One of the two pairs that the paper names lies together here.")
    pairs, every = len(joined_pairs(mixtures)), len(names) * (len(names) - 1) // 2
    return (
        f"{len(several)} of {len(groups)} groups join views of several objects; "
        f"{percent(share)} of the "
        f"images are in one of those. {pairs} of the {every} pairs of objects share some group. "
        f"{told[0].upper()}{told[1:]}. Sharing a group means sharing a place in the "
        f"subspace: outside of it the images may differ.\n\n{verdict}"
    )


def figures(outcome: Outcome) -> "dict[str, go.Figure]":
    """Images of the groups that mix objects most evenly."""
    from appca.plots.paper.study_panels import sheets

    rows = outcome.tables["groups"]
    named = {}
    for number, place in enumerate(outcome.arrays["shown"].tolist()):
        row = rows[place]
        name = f"{number + 1}. Subspace {row['subspace']}, {row['rows']} images: {row['joined']}"
        named[name] = outcome.arrays[f"images_{number:02d}"]
    return {"groups": sheets(named, columns=IMAGES, zoom=1.8)} if named else {}


_SIZE = {"n_components": 4, "n_active": 3, "group_size": 20, "seed": 0}

STUDY = Study(
    name="similar",
    title="Different objects that look alike",
    paper=(
        "The paper groups the aPPCA projections of COIL-20 by k-means inside the subspaces and "
        "shows different objects that fall together, such as the lucky cat and a bottle, or the "
        "duck and a wooden part."
    ),
    revision=1,
    sizes=dict.fromkeys(("quick", "default", "full"), _SIZE),
    takes=dict.fromkeys(("quick", "default", "full"), 4.0),
    run=run,
    columns=("subspace", "rows", "objects", "effective_objects", "spread", "joined"),
    figures=figures,
)
