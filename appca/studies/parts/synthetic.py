"""Synthetic data as a data set that any model can be fitted to, its truth on record."""

import numpy as np

from appca.data.dataset import Dataset
from appca.data.sources.designs import DESIGNS, Synthetic, draw_synthetic
from appca.studies.study import Options
from appca.words.errors import InputError

MOST_LABELLED = 50  # different sets of factors that still make a label
MOST_VALUES = 5_000_000  # of a data set made here
LIMITS = {
    "n_rows": (20, 20_000),
    "n_features": (2, 1_000),
    "n_components": (1, 100),
    "n_active": (1, 100),
    "noise_sd": (0.001, 10.0),
    "seed": (0, 10**9),
}


def drawn(design: str, choices: Options) -> Synthetic:
    """Draw data of one of `appca.data.sources.designs.DESIGNS`.

    The choices are n_rows, n_features, n_components, n_active, noise_sd and seed. Raises InputError
    for an unknown design or choices outside of `LIMITS`, in one sentence.
    """
    if design not in DESIGNS:
        msg = f"design must be one of {', '.join(DESIGNS)}; got “{design}”."
        raise InputError(msg)
    for name, (least, most) in LIMITS.items():
        if not least <= choices[name] <= most:
            msg = f"{name} must lie between {least:,} and {most:,}; got {choices[name]}."
            raise InputError(msg)
    if choices["n_rows"] * choices["n_features"] > MOST_VALUES:
        msg = (
            f"Rows times features must be at most {MOST_VALUES:,}; got {choices['n_rows']:,} x "
            f"{choices['n_features']:,}, so ask for fewer."
        )
        raise InputError(msg)
    sizes = {name: value for name, value in choices.items() if name != "seed"}
    rng = np.random.default_rng([choices["seed"], DESIGNS.index(design)])
    return draw_synthetic(rng, design, **sizes)


def dataset_of(design: str, choices: Options) -> Dataset:
    """Make a data set of `drawn`, with the choices, W and Z in its provenance.

    A row's true set of factors is a label while there are few different ones. No value is scaled:
    the features share a unit.
    """
    truth = drawn(design, choices)
    sets = np.array([",".join(map(str, np.flatnonzero(row) + 1)) or "none" for row in truth.Z])
    labels = {"true set": sets} if len(np.unique(sets)) <= MOST_LABELLED else {}
    return Dataset(
        name=(f"Synthetic, {design}, K = {choices['n_components']}, seed {choices['seed']}"),
        X=truth.Y,
        ids=np.array([f"row-{n + 1}" for n in range(len(truth.Y))]),
        labels=labels,
        provenance={
            "source": "synthetic",
            "comparable": True,
            "options": {"design": design, **choices},
            "truth": {
                "W": truth.W.tolist(),
                "Z": ["".join("01"[bit] for bit in row) for row in truth.Z.astype(int)],
            },
        },
    )
