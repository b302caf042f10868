"""The components of a run as a table of features and as arrays."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from appca.analysis.export.projections import headings, npz_of
from appca.analysis.fitted import FittedRun

if TYPE_CHECKING:
    import pandas as pd

    from appca.analysis.export.projections import Columns
    from appca.data.dataset import Dataset

FEATURE, MEAN = "feature", "average"


class Patterns(NamedTuple):
    """Components and average in units of the data."""

    components: np.ndarray  # (K, D)
    mean: np.ndarray  # (D,)


def component_table(
    dataset: "Dataset", fitted: FittedRun, patterns: Patterns, columns: "Columns"
) -> "pd.DataFrame":
    """One line a feature: its name, its average and its weight in each component.

    Features without names are numbered; those of images are ``row,column``, with a colour from 0
    where there are colours, all counted from 0. Components have the names of `fitted`.
    """
    import pandas as pd

    table: dict[str, object] = {FEATURE: feature_names(dataset), MEAN: patterns.mean}
    for name, weights in zip(headings(fitted, columns), patterns.components, strict=True):
        table[f"{name} (component)" if name in (FEATURE, MEAN) else name] = weights
    return pd.DataFrame(table)


def component_npz(
    dataset: "Dataset", fitted: FittedRun, patterns: Patterns, columns: "Columns"
) -> bytes:
    """Return an NPZ of `components` (K, D) and `mean` (D,) in units of the data, with names.

    Beside them `features` (D,) and `names` (K,) as texts, `explained_variance` (K,) in units of the
    fit, and `components_of_fit` (K, D') and `mean_of_fit` (D',), as the estimator has them.
    """
    return npz_of(
        {
            "components": patterns.components,
            "mean": patterns.mean,
            "features": np.array(feature_names(dataset), dtype="U"),
            "names": np.array(headings(fitted, columns), dtype="U"),
            "explained_variance": fitted.explained_variance,
            "components_of_fit": fitted.components,
            "mean_of_fit": fitted.mean,
        }
    )


def feature_names(dataset: "Dataset") -> list[str]:
    """Return the names of all features, or their places in the image."""
    if dataset.image_shape is None or dataset.feature_names is not None:
        return list(dataset.column_names)
    return [",".join(map(str, place)) for place in np.ndindex(*dataset.image_shape)]
