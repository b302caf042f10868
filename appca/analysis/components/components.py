"""What each component of a run does: who uses it, how much, with which others, and the extremes."""

from typing import NamedTuple

import numpy as np

from appca.analysis.fitted import DescribedRows, FittedModel

DOUBTFUL = 0.5  # probability of a support below which its row is doubtful
RARELY = 1e-3  # share of rows; a component that fewer use says little


class Extremes(NamedTuple):
    """The rows at the two ends of a component, the most extreme first."""

    low: np.ndarray  # (m,) row numbers
    high: np.ndarray  # (m',) row numbers


def own_name(model: FittedModel, k: int) -> str:
    """Return the name somebody gave component k, counted from 0; empty without one."""
    return model.names[k] if model.names else ""


def name_of(model: FittedModel, k: int) -> str:
    """Return what component k, counted from 0, is called: "component 3" or "3 · slant".

    The number stays, because subspaces and sign cells are named by numbers.
    """
    name = own_name(model, k)
    return f"{k + 1} · {name}" if name else f"component {k + 1}"


def in_data_space(model: FittedModel) -> np.ndarray:
    """Return the components (K, D) in the units of the data, whatever came before the fit."""
    return model.preprocessing.directions(model.components.T).T


def in_units_of_the_fit(model: FittedModel) -> np.ndarray:
    """Return the components (K, D) as weights of the features after they were scaled.

    Features of a table have different units: in those, the feature with the largest numbers would
    stand first in every component.
    """
    before = model.preprocessing
    unscaled = before._replace(divide=1.0, scale=np.ones_like(before.scale))
    return unscaled.directions(model.components.T).T


def patterns(model: FittedModel, image_shape: tuple[int, ...] | None) -> np.ndarray:
    """Return the components (K, D) as they are shown: images in data space, weights of a table."""
    return in_units_of_the_fit(model) if image_shape is None else in_data_space(model)


def score_spread(model: FittedModel) -> np.ndarray | None:
    """Return the posterior standard deviation (K,) of a score, given the row's components.

    With orthonormal components and the same noise in all features it is the same for every row, and
    scores are independent; None for other models.
    """
    W = np.asarray(model.components, dtype=np.float64)
    noise = np.unique(model.noise_variance)
    scaled = model.row_scale_values is not None
    if scaled or len(noise) != 1 or not np.allclose(W @ W.T, np.eye(len(W)), atol=1e-4):
        return None
    tau2 = np.maximum(model.latent_variance, np.finfo(float).tiny)
    return np.asarray(np.sqrt(tau2 * noise / (tau2 + noise)))


def extremes(rows: DescribedRows, k: int, n: int) -> Extremes:
    """Return the rows with the lowest and the highest scores among those that use component k.

    k counts from 0. There are n rows at each end; of fewer than 2n users, each is at one end only.
    """
    users = np.flatnonzero(rows.active[:, k])
    order = users[np.argsort(rows.scores[users, k], kind="stable")]
    at_low = min(n, len(order) // 2)
    at_high = min(n, len(order) - at_low)
    return Extremes(order[:at_low], order[::-1][:at_high])


def rarely_used(fitted: DescribedRows) -> list[int]:
    """Return the numbers of the components that under 0.1% of rows use."""
    return (np.flatnonzero(fitted.active.mean(axis=0) < RARELY) + 1).tolist()


def common(names: list[str], codes: np.ndarray, most: int = 3) -> list[tuple[str, float]]:
    """Return the `most` frequent classes among rows of class `codes` (m,), with their shares."""
    counts = np.bincount(codes, minlength=len(names))
    largest = np.argsort(-counts, kind="stable")[:most]
    return [(names[c], float(counts[c] / len(codes))) for c in largest if counts[c]]
