"""The experiments in the paper's order, and their results that come with the package."""

from functools import cache

from appca.studies import brain, coil20, digits, speed, synthetic, table1, whitening
from appca.studies.store import ShippedResults, Stored
from appca.studies.study import Study
from appca.words import InputError

_PLACED = (
    ("Figure 1", synthetic.PLANES),
    ("Table 1", table1.STUDY),
    ("Figure 3", synthetic.Z_PRIORS),
    ("Figure 4", table1.POPULARITY),
    ("Figure 5", digits.SHARING),
    ("Figure 6", digits.STUDY),
    ("Figure 7", digits.STROKES),
    ("Figure 8", coil20.STUDY),
    ("Figure 9", coil20.UMAP),
    ("Figure 10", coil20.SIMILAR),
    ("Figure 11", whitening.STUDY),
    ("Figures 12 and 13", brain.STUDY),
    ("Section 4", speed.STUDY),
)
STUDIES: dict[str, Study] = {study.name: study for _, study in _PLACED}
PLACES = {study.name: place for place, study in _PLACED}  # in the paper


def study_of(name: str) -> Study:
    """Return an experiment by its name.

    Raises InputError when there is none of that name.
    """
    if name not in STUDIES:
        msg = f"There is no experiment “{name}”; choose among {', '.join(STUDIES)}."
        raise InputError(msg)
    return STUDIES[name]


def heading(study: Study) -> str:
    """Name an experiment by its place in the paper."""
    where = PLACES[study.name]
    return study.title if study.title.startswith(where) else f"{where}: {study.title}"


@cache
def shipped() -> dict[str, Stored]:
    """Return the results that come with the package by experiment."""
    return {result.study: result for result in ShippedResults().list() if result.study in STUDIES}


def is_current(stored: Stored) -> bool:
    """Whether the experiment has not changed since."""
    return STUDIES[stored.study].id(stored.options) == stored.id
