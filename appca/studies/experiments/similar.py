"""COIL-20: different objects whose views lie together in a subspace of aPPCA."""

import numpy as np

from appca.analysis.explore.subspaces import title
from appca.analysis.groups.similar import (
    Mixture,
    SimilarRows,
    by_mixture,
    joined_pairs,
    mixture,
    similar,
)
from appca.studies.claims import CheckedClaim, checked
from appca.studies.experiments.coil20 import opened
from appca.studies.parts.fitting import fit
from appca.studies.parts.own_copy import images_of
from appca.studies.study import Figures, Options, Outcome, Report, Row, Study

SHOWN, IMAGES = 12, 12  # groups drawn, and images of each
# What the paper names, by the numbers of COIL-20.
NAMED = {
    "The cat and a bottle": ({"4"}, {"8", "16"}),
    "The duck and a wooden part": ({"1"}, {"2", "7", "11"}),
}


def run(options: Options, report: Report, processes: int = 1) -> Outcome:
    """Fit, group the projections inside each subspace, and count what objects they join."""
    _, Y, names, codes = opened(report)
    fitted = fit(Y, options, report, 0.2, 0.5)
    report("grouping similar images", 0.6)
    size, seed = options["group_size"], options["seed"]
    groups = similar(fitted.scores, fitted.components, fitted.subspaces, size, seed)
    mixtures = [mixture(group, codes, len(names)) for group in groups]
    order = by_mixture(groups, mixtures)
    rows = [_row(groups[place], mixtures[place], names) for place in order]
    shown = [place for place in order if len(mixtures[place].joined) > 1][:SHOWN]
    arrays = {
        f"rows_{number:02d}": spread(groups[place], codes) for number, place in enumerate(shown)
    }
    arrays["shown"] = np.array([order.index(place) for place in shown], dtype=int)
    return Outcome({"groups": rows}, arrays, claims(mixtures, names))


def spread(group: SimilarRows, codes: np.ndarray, most: int = IMAGES) -> np.ndarray:
    """Rows of a group, nearest its middle, taken from its objects in turn, object by object."""
    queues = [list(group.rows[codes[group.rows] == code]) for code in np.unique(codes[group.rows])]
    taken: list[tuple[int, int]] = []
    while len(taken) < most and any(queues):
        for number, queue in enumerate(queues):
            if queue and len(taken) < most:
                taken.append((number, int(queue.pop(0))))
    return np.array([row for _, row in sorted(taken, key=lambda entry: entry[0])])


def _row(group: SimilarRows, mixed: Mixture, names: list[str]) -> Row:
    counts = ", ".join(f"object {names[c]} ({mixed.counts[c]})" for c in mixed.joined)
    return {
        "subspace": title(group.components),
        "rows": len(group.rows),
        "objects": len(mixed.joined),
        "joined": counts,
        "effective_objects": float(mixed.effective),
        "spread": float(group.spread),
    }


def claims(mixtures: list[Mixture], names: list[str]) -> list[CheckedClaim]:
    """Judge by whether any group joins different objects, and the pairs that the paper names."""
    joined = [{names[c] for c in mixed.joined} for mixed in mixtures]
    several, pairs = sum(len(first) > 1 for first in joined), len(joined_pairs(mixtures))
    measured = f"{several} of {len(joined)} groups join several objects, {pairs} different pairs"
    number = (f"{several} of {len(joined)}", "groups mix objects")
    made = [checked("Different objects fall together", measured, [several > 0], number=number)]
    for what, (first, other) in NAMED.items():
        n = sum(bool(group & first and group & other) for group in joined)
        told, number = f"in {n} of {len(joined)} groups", (f"{n} of {len(joined)}", what.lower())
        made.append(checked(f"{what} fall together", told, [n > 0], number=number))
    return made


def figures(outcome: Outcome) -> Figures:
    """How many objects each group mixes; images of the most even ones where the person has them."""
    from appca.plots.paper.study_panels import mixed, sheets

    rows, named = outcome.tables["groups"], {}
    for number, place in enumerate(outcome.arrays["shown"].tolist()):
        images = images_of("coil20", outcome.arrays[f"rows_{number:02d}"])
        if images is not None:
            row = rows[place]
            name = (
                f"{number + 1}. Subspace {row['subspace']}, {row['rows']} images: {row['joined']}"
            )
            named[name] = images
    pictures = {"groups": sheets(named, columns=IMAGES, zoom=1.8)} if named else {}
    return pictures | {"mixtures": mixed(rows)}


_SIZE = {"n_components": 4, "n_active": 3, "group_size": 20, "seed": 0}

STUDY = Study(
    name="similar",
    title="Different objects that look alike",
    paper=(
        "The paper groups the aPPCA projections of COIL-20 by k-means inside the subspaces and "
        "shows different objects that fall together, such as the lucky cat and a bottle, or the "
        "duck and a wooden part."
    ),
    revision=2,
    sizes=dict.fromkeys(("quick", "default", "full"), _SIZE),
    takes=dict.fromkeys(("quick", "default", "full"), 4.0),
    run=run,
    columns=("subspace", "rows", "objects", "effective_objects", "spread", "joined"),
    figures=figures,
)
