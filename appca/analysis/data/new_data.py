"""New rows under a fitted model: how far out they lie and which do not fit, also as a table."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from appca.analysis.explore.outliers import (
    DistanceLimits,
    Distances,
    limits_of_the_data,
    limits_of_the_model,
    ratios,
)
from appca.analysis.export.projections import projection_table
from appca.analysis.fitted import DescribedRows

if TYPE_CHECKING:
    import pandas as pd

    from appca.data.dataset import Dataset

LEVEL = 0.99  # of either limit, where nobody chose another


class NewRowsVerdict(NamedTuple):
    """How new rows stand to the limits of a run, at one level."""

    distances: Distances  # of the new rows
    of_model: DistanceLimits  # chi-square quantiles
    of_data: DistanceLimits | None  # of the run's own rows; None where they are not known

    @property
    def limits(self) -> DistanceLimits:
        """The limits that decide: those of the run's rows, where they are known."""
        return self.of_model if self.of_data is None else self.of_data

    @property
    def ratios(self) -> np.ndarray:
        """T2 and Q over the limits that decide, (N, 2)."""
        return ratios(self.distances, self.limits)

    @property
    def fits(self) -> np.ndarray:
        """Whether a row is within both limits, (N,) bool."""
        return np.asarray(np.all(self.ratios <= 1, axis=1))

    @property
    def order(self) -> np.ndarray:
        """Row numbers, those that fit least first, (N,)."""
        return np.argsort(-self.ratios.max(axis=1), kind="stable")


def verdict(distances: Distances, run: Distances | None, level: float = LEVEL) -> NewRowsVerdict:
    """Compare the distances of new rows with limits that a share `level` of rows stays below.

    `run` has the distances of the rows of the fit; None where only the model is known.
    """
    data_limits = None if run is None else limits_of_the_data(distances, level, run)
    return NewRowsVerdict(distances, limits_of_the_model(distances, level), data_limits)


def new_rows_table(
    dataset: "Dataset", projected: DescribedRows, said: NewRowsVerdict
) -> "pd.DataFrame":
    """Return `projection_table` of new rows with their distances and whether they fit.

    After the projection come `t2` and `q`, `t2_limit_model` and `q_limit_model`, where the run's
    rows are known `t2_limit_run` and `q_limit_run`, and `fits`.
    """
    more = {"t2": said.distances.t2, "q": said.distances.q}
    for name, limits in (("model", said.of_model), ("run", said.of_data)):
        if limits is not None:
            more |= {f"t2_limit_{name}": limits.t2, f"q_limit_{name}": limits.q}
    more["fits"] = said.fits
    table = projection_table(dataset, projected)
    taken = {name: f"label_{name}" for name in table.columns if name in more}
    return table.rename(columns=taken).assign(**more)
