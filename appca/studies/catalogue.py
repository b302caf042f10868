"""The experiments, in the paper's order, and the results shipped with the package."""

from functools import cache

from appca.studies import brain, coil20, digits, speed, synthetic, table1, whitening
from appca.studies.store import ShippedResults, Stored
from appca.studies.study import Study
from appca.words import refuse_unknown

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        *(synthetic.PLANES, table1.STUDY, synthetic.Z_PRIORS, table1.POPULARITY),
        *(digits.SHARING, digits.STUDY, digits.STROKES),
        *(coil20.STUDY, coil20.UMAP, coil20.SIMILAR),
        *(whitening.STUDY, brain.STUDY, speed.STUDY),
    )
}


def study_of(name: str) -> Study:
    """Return an experiment by name; InputError if the name is unknown."""
    refuse_unknown("experiment", name, STUDIES)
    return STUDIES[name]


@cache
def shipped() -> dict[str, Stored]:
    """Return the shipped results by experiment."""
    return {result.study: result for result in ShippedResults().list() if result.study in STUDIES}
