"""Credible bands of a sampled run, as the page Diagnostics shows them."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from appca.analysis.fitted import FittedModel


def loading_bands(model: FittedModel, level: float = 0.9) -> NDArray[np.float64] | None:
    """Return ends (2, K, D') between which each entry of a component lies with probability `level`.

    None for runs that were not sampled, or stored before the draws for it were kept.
    """
    from appca.models.sampling.query_draws import QueryDraws, component_bands

    if not model.draws:
        return None
    draws = QueryDraws(**{name: model.draws.get(name) for name in QueryDraws._fields})  # type: ignore[arg-type]
    return component_bands(draws, np.asarray(model.components), level)


def number_band(numbers: ArrayLike, level: float = 0.9) -> tuple[int, int]:
    """Return the smallest and the largest number that the middle `level` of the draws have."""
    from appca.models.sampling import query_draws

    return query_draws.number_band(numbers, level)


def clear_of_zero(bands: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share (K,) of the entries of each component whose band does not hold zero."""
    return np.asarray(((bands[0] > 0) | (bands[1] < 0)).mean(axis=1), dtype=np.float64)
