"""The experiments in the paper's order, by the names of the command line and the pages."""

from appca.studies.experiments import (
    brain,
    coil20,
    planes,
    popularity,
    sharing,
    similar,
    speed,
    strokes,
    table1,
    umap,
    vae_digits,
    whitening,
    z_priors,
)
from appca.studies.study import Study
from appca.words.errors import InputError

STUDIES: dict[str, Study] = {
    module.STUDY.name: module.STUDY
    for module in (
        *(planes, table1, z_priors, popularity, sharing, vae_digits, strokes),
        *(coil20, umap, similar, whitening, brain, speed),
    )
}


def study_of(name: str) -> Study:
    """Return an experiment by its name.

    Raises InputError when there is none of that name.
    """
    if name not in STUDIES:
        msg = f"There is no experiment “{name}”; choose among {', '.join(STUDIES)}."
        raise InputError(msg)
    return STUDIES[name]
