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
    study.name: study
    for study in (
        planes.STUDY,
        table1.STUDY,
        z_priors.STUDY,
        popularity.STUDY,
        sharing.STUDY,
        vae_digits.STUDY,
        strokes.STUDY,
        coil20.STUDY,
        umap.STUDY,
        similar.STUDY,
        whitening.STUDY,
        brain.STUDY,
        speed.STUDY,
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
