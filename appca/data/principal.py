"""Principal axes of centred data given in blocks of rows, by the cheapest exact route there is."""

from collections.abc import Callable, Iterator

import numpy as np

from appca.words.errors import InputError

Blocks = Callable[[], Iterator[np.ndarray]]  # each call walks over the rows once
Count = Callable[[np.ndarray], int]  # how many axes to keep, given the falling eigenvalues
_EXACT = 3000  # eigenvectors of a 3,000 x 3,000 matrix take seconds; beyond, a random sketch
_EXACT_VALUES = 1 << 27  # N x D up to which the rows may stand in memory together (1 GB)
_SPARE = 20  # columns a sketch has beyond the rank asked for
_POWERS = 4  # power iterations that sharpen the sketch
_SHADE = 1 - 1e-12  # a share that is reached exactly must not be missed by rounding


def principal_axes(blocks: Blocks, shape: tuple[int, int], keep: float) -> np.ndarray:
    """Return the leading eigenvectors (D, D') of the scatter matrix of centred rows (N, D).

    They are orthonormal columns by falling variance; the largest entry of each is positive. Each
    call of `blocks` iterates over fresh float64 blocks of the rows. `keep` is the number of axes,
    or the share of variance (0, 1) that they must hold at least. Raises InputError when more axes
    are asked for than the data can have, or the data do not vary.
    """
    n, d = shape
    if not isinstance(keep, float) and keep > min(n, d):
        msg = f"pca must be at most {min(n, d)} for {n} rows and {d} features; got {keep}."
        raise InputError(msg)
    total = sum(float(np.einsum("ij,ij->", block, block)) for block in blocks())
    if not total > 0:
        msg = "PCA needs data that vary; all rows are the same, so choose other data."
        raise InputError(msg)

    def count(values: np.ndarray) -> int:
        if not isinstance(keep, float):
            return int(keep)
        return int(np.searchsorted(np.cumsum(values), keep * total * _SHADE)) + 1

    if d <= min(n, _EXACT):
        axes = _by_columns(blocks, d, count)
    elif n <= _EXACT and n * d <= _EXACT_VALUES:
        axes = _by_rows(blocks, count)
    else:
        axes = _by_sketch(blocks, shape, count)
    top = axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])]
    return np.asarray(axes * np.where(top < 0, -1.0, 1.0))


def _by_columns(blocks: Blocks, d: int, count: Count) -> np.ndarray:
    scatter = np.zeros((d, d))
    for block in blocks():
        scatter += block.T @ block
    values, axes = _falling(scatter)
    return axes[:, : count(values)]


def _by_rows(blocks: Blocks, count: Count) -> np.ndarray:
    """Fewer rows than columns: N x N products, then the axes from the left singular vectors."""
    X = np.concatenate(list(blocks()))
    values, left = _falling(X @ X.T)
    # Directions without variance come out as rounding noise; QR makes them orthonormal as well.
    axes, triangle = np.linalg.qr(X.T @ left[:, : count(values)])
    return np.asarray(axes * np.where(np.diag(triangle) < 0, -1.0, 1.0))


def _by_sketch(blocks: Blocks, shape: tuple[int, int], count: Count) -> np.ndarray:
    """Randomised subspace iteration (Halko, Martinsson, Tropp 2011), wider until it suffices."""
    least = min(shape)
    width = 64
    while True:
        width = min(width, least)
        basis = np.linalg.qr(np.random.default_rng(0).standard_normal((shape[1], width)))[0]
        for _ in range(_POWERS):
            basis = np.linalg.qr(_scatter_times(blocks, basis))[0]
        small = basis.T @ _scatter_times(blocks, basis)
        values, turn = _falling((small + small.T) / 2)
        wanted = count(values)
        if wanted + _SPARE <= width or width == least:
            return np.asarray(basis @ turn[:, :wanted])
        # Past the sketch a share is only known to need more columns; a count is known exactly.
        width = max(2 * width, wanted + _SPARE)


def _falling(symmetric: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values, axes = np.linalg.eigh(symmetric)
    return np.maximum(values[::-1], 0), axes[:, ::-1]


def _scatter_times(blocks: Blocks, basis: np.ndarray) -> np.ndarray:
    return np.asarray(sum(block.T @ (block @ basis) for block in blocks()))
