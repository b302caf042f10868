"""Projections as colours and as the familiar principal components."""

import numpy as np

from appca.analysis.fitted import FittedRun

MISSING = 0.5  # a channel without a component of its own, as the paper's figures have it for L = 2


def rgb(scores: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Colour (N, 3) of every row by its projection, uint8: near rows of a panel look alike.

    Channel j (red, green, blue) is the score of the row's j-th active component, components in
    ascending order, scaled by its rank among all rows to 0.01 .. 0.99; from the fourth on they do
    not enter the colour. `scores` and `active` are (N, K).
    """
    from scipy.stats import rankdata

    position = np.cumsum(active, axis=1)
    channels = np.full((len(scores), 3), MISSING)
    for j in range(3):
        of_row = active & (position == j + 1)
        has = of_row.any(axis=1)
        if has.any():
            values = scores[has, of_row[has].argmax(axis=1)]
            if len(values) > 1:  # equal values share the middle of their ranks
                channels[has, j] = 0.01 + 0.98 * (rankdata(values) - 1) / (len(values) - 1)
    return np.round(255 * channels).astype(np.uint8)


def principal_scores(Y: np.ndarray, n_components: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Scores (N, n) of preprocessed rows Y on principal components, and their variance shares (n,).

    The sign of a component makes its largest score positive, so that pictures are repeatable. There
    are fewer than `n_components` if N or D is smaller.
    """
    from appca.models.decompositions.spectrum import principal
    from appca.models.rows.observations import about, centre_of, project

    rows = about(Y, centre_of(Y))
    axes = principal(np.random.default_rng(0), rows, min(n_components, *Y.shape))
    scores = project(rows, axes.V)
    extreme = np.abs(scores).argmax(axis=0)
    scores *= np.where(scores[extreme, range(len(extreme))] < 0, -1, 1)
    total = max(float(rows.squares.mean()), np.finfo(float).tiny)
    return scores.astype(np.float32), axes.values / total


def variance_shares(fitted: FittedRun) -> np.ndarray:
    """Share of the data's variance that is lost without a component of a run, shape (K,).

    With r the rest of a row y - W s, taking component k away raises the row's squared error by
    2 s_k w_k'r + s_k^2 |w_k|^2; and since s is the posterior mean given the row's set,
    w_k'r = s_k sigma2/tau2_k. So nothing but the run is read. With orthonormal components the
    shares add up to `explained_share`; those of factors that are not orthogonal do not.
    """
    costs, _, whole = _explained(fitted)
    return np.asarray(costs / whole)


def explained_share(fitted: FittedRun) -> float:
    """Share of the data's variance that all components of a run explain together."""
    _, explained, whole = _explained(fitted)
    return explained / whole


def _explained(fitted: FittedRun) -> tuple[np.ndarray, float, float]:
    """Sum |y|^2 = |r|^2 + 2 s'W'r + |W s|^2 over rows.

    Return the increase of |r|^2 without each component (K,), the last two terms, and all three.
    """
    scores = fitted.scores.astype(np.float64)
    W = fitted.components.astype(np.float64)
    latent = np.maximum(fitted.latent_variance, np.finfo(float).tiny)
    squares, gram = scores.T @ scores, W @ W.T
    # W'r is s times this; of unlike features only as if each had the mean noise.
    by_feature = np.ndim(fitted.noise_variance) > 0
    ratio = (np.diagonal(gram) if by_feature else fitted.noise_variance) / latent
    left = float(fitted.error.sum(dtype=np.float64)) * W.shape[1]
    explained = float(np.sum(squares * gram) + 2 * np.diagonal(squares) @ ratio)
    costs = np.diagonal(squares) * (np.diagonal(gram) + 2 * ratio)
    return costs, explained, max(left + explained, np.finfo(float).tiny)
