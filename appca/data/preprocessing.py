"""Preprocessing of a matrix before a fit, recorded as options and undone exactly as it was done.

A row x of the data becomes y = ((x / divide - offset) / scale) @ basis, in this order; offset is
the mean (or zero), scale one number for each feature, basis the D' leading principal axes (or
nothing). Work is done in blocks of rows: no second copy of the data is made.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from operator import matmul
from typing import Any, NamedTuple

import numpy as np

from appca.data.dataset import Dataset
from appca.storage.packed import give_back
from appca.words import InputError, counted, percent

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


Times = Callable[[Any, Any], Any]  # the product of rows (N, D) and a matrix (D, K)
SCALES = ("none", "feature", "global")
_BLOCK_VALUES = 1 << 21  # rows are converted about two million values at a time (16 MB in float64)


@dataclass(frozen=True)
class Preprocessing:
    """What is done to the data before a fit, in this order.

    Parameters
    ----------
    divide : float
        Every value is divided by it (255 for photographs).
    centre : bool
        Subtract the mean of each feature. Implied by ``pca``.
    scale : {"none", "feature", "global"}
        Divide each feature by its own standard deviation, or all by the root mean square of the
        centred data. Features that are constant keep their scale.
    pca : int, float or None
        Number of principal components to keep, or the share of variance (between 0 and 1) they
        must hold at least.
    """

    divide: float = 1.0
    centre: bool = False
    scale: str = "none"
    pca: int | float | None = None

    def __post_init__(self) -> None:
        """Refuse options that have no meaning."""
        divide = _number(self.divide)
        if divide is None or not 0 < divide < np.inf:
            msg = f"divide must be a positive number; got {self.divide!r}."
            raise InputError(msg)
        if self.scale not in SCALES:
            msg = f"scale must be one of {', '.join(SCALES)}; got {self.scale!r}."
            raise InputError(msg)
        if self.pca is not None and not _is_pca(self.pca):
            msg = (
                "pca must be a whole number of dimensions from 1 on, or a share of variance "
                f"between 0 and 1; got {self.pca!r}."
            )
            raise InputError(msg)
        object.__setattr__(self, "divide", divide)
        object.__setattr__(self, "centre", bool(self.centre))

    def to_dict(self) -> dict[str, Any]:
        """Options as JSON-able dict."""
        return asdict(self)

    @classmethod
    def from_dict(cls, options: Mapping[str, Any]) -> "Preprocessing":
        """Options from a dict as `to_dict` makes it; unknown names are refused."""
        names = {option.name for option in fields(cls)}
        unknown = sorted(set(options) - names)
        if unknown:
            msg = f"Preprocessing knows {', '.join(sorted(names))}; got {', '.join(unknown)}."
            raise InputError(msg)
        return cls(**options)

    def in_words(self) -> str:
        """Say what is done, in order: "centred, each feature divided by its standard deviation"."""
        scaled = {
            "feature": "each feature divided by its standard deviation",
            "global": "all divided by their overall standard deviation",
        }
        reduced = None
        if isinstance(self.pca, int):
            reduced = f"reduced to {self.pca} dimensions by PCA"
        elif self.pca is not None:
            reduced = f"reduced by PCA to {percent(self.pca, 1)} of the variance"
        steps = (
            f"divided by {self.divide:g}" if self.divide != 1 else None,
            "centred" if self.centre or self.pca is not None else None,
            scaled.get(self.scale),
            reduced,
        )
        return ", ".join(step for step in steps if step) or "none"

    def most_features(self, n_features: int) -> int:
        """Return how many features are left at most, as far as the options tell."""
        return min(n_features, self.pca) if isinstance(self.pca, int) else n_features

    def fit(self, X: np.ndarray, missing: np.ndarray | None = None) -> "Fitted":
        """Learn offset, scale and basis from the rows of X.

        Parameters
        ----------
        X : ndarray of shape (N, D)
            uint8, float32 or float64; left as it is. Sums are in float64.
        missing : ndarray of bool, shape (N, D), optional
            Cells that do not count; there are then no axes to be learned, which need whole rows.

        Raises
        ------
        InputError
            When the data do not allow it.
        """
        if missing is not None and self.pca is not None:
            msg = (
                f"Reducing by PCA needs whole rows, but {counted(int(missing.sum()), 'cell')} are "
                "missing; reduce by nothing, or load the data with the columns' means put in."
            )
            raise InputError(msg)
        d = X.shape[1]
        data, ones = Observed(X, missing), np.ones(d)
        centred = self.centre or self.pca is not None
        mean = _mean(data) if centred or self.scale != "none" else np.zeros(d)
        offset = mean / self.divide if centred else np.zeros(d)
        scale = ones if self.scale == "none" else _scale(data, mean, self.divide, self.scale)
        plain = Fitted(self.divide, offset, scale, None)
        if self.pca is None:
            return plain
        basis = principal_axes(lambda: _blocks(plain, X), X.shape, self.pca)
        return plain._replace(basis=basis)


class Observed(NamedTuple):
    """A matrix and which of its cells do not count."""

    X: np.ndarray
    missing: np.ndarray | None

    def blocks(self, centre: np.ndarray | float = 0.0) -> Iterator[np.ndarray]:
        """Yield float64 blocks of rows about a centre, zero where a cell does not count."""
        start = 0
        for block in _raw_blocks(self.X, np.float64):
            np.subtract(block, centre, out=block)
            if self.missing is not None:
                block[self.missing[start : start + len(block)]] = 0.0
            start += len(block)
            yield block

    @property
    def counts(self) -> np.ndarray | int:
        """How many cells of each column count."""
        if self.missing is None:
            return int(self.X.shape[0])
        return np.asarray(np.maximum(len(self.X) - self.missing.sum(axis=0), 1))


class Fitted(NamedTuple):
    """Fitted preprocessing: arrays only, so that it can be stored beside a run."""

    divide: float
    offset: np.ndarray  # (D,), after the division
    scale: np.ndarray  # (D,)
    basis: np.ndarray | None  # (D, D') with orthonormal columns

    @property
    def reduces(self) -> bool:
        """Whether all features of a row go into each one of its coordinates."""
        return self.basis is not None

    @property
    def n_features(self) -> int:
        """Return D', the number of features after preprocessing."""
        return len(self.offset) if self.basis is None else self.basis.shape[1]

    def transform(self, X: np.ndarray, times: Times = matmul) -> np.ndarray:
        """Bring rows (N, D) into the fitted coordinates (N, D'); float64 stays, else float32.

        A reduction multiplies rows by `times`. The last bits of a BLAS, the default, depend on
        which rows come together.
        """
        if X.ndim != 2 or X.shape[1] != len(self.offset):
            msg = (
                f"The data must have the {len(self.offset)} features the preprocessing was fitted "
                f"on; got shape {X.shape}."
            )
            raise InputError(msg)
        gaps = X.dtype.kind == "f" and not _is_sparse(X) and np.isnan(X.min(initial=0.0))
        if self.reduces and gaps:
            msg = (
                f"The fit reduces rows of {X.shape[1]} features to {self.n_features} first, for "
                "which they must be whole; fill in the missing cells or leave out their rows."
            )
            raise InputError(msg)
        dtype = np.float64 if X.dtype == np.float64 else np.float32
        out = np.empty((X.shape[0], self.n_features), dtype)
        start = 0
        for block in _blocks(self, X, dtype):
            if self.basis is not None:
                block = times(block, self.basis.astype(block.dtype, copy=False))  # noqa: PLW2901
            out[start : start + len(block)] = block
            start += len(block)
        return out

    def inverse_transform(self, Y: np.ndarray) -> np.ndarray:
        """Bring rows (N, D') back into data units (N, D), up to what the reduction lost."""
        Y = np.asarray(Y)
        wide = Y if self.basis is None else Y @ self.basis.T.astype(Y.dtype, copy=False)
        data: np.ndarray = (wide * self.scale + self.offset) * self.divide
        return data.astype(Y.dtype, copy=False)

    def directions(self, W: np.ndarray) -> np.ndarray:
        """Components W (D', K) as directions (D, K) in data units, without the offset."""
        W = np.asarray(W)
        wide = W if self.basis is None else self.basis @ W
        return wide * (self.scale * self.divide)[:, None]

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays from which `from_arrays` makes the same object."""
        arrays = {"divide": np.array(self.divide), "offset": self.offset, "scale": self.scale}
        return arrays if self.basis is None else {**arrays, "basis": self.basis}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "Fitted":
        """Rebuild what `arrays` took apart."""
        divide, offset, scale = float(arrays["divide"]), arrays["offset"], arrays["scale"]
        return cls(divide, offset, scale, arrays.get("basis"))


def suggest(dataset: Dataset) -> Preprocessing:
    """Suggest a start: images divided by their white, tables scaled by feature."""
    if dataset.image_shape is not None:
        low, high = dataset.image_range
        return Preprocessing(divide=high if low == 0 and high > 1 else 1.0)
    if dataset.provenance.get("comparable"):  # features in one unit, such as scans over time
        return Preprocessing(centre=True, scale="global")
    return Preprocessing(centre=True, scale="feature")


def _number(value: object) -> float | None:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def _is_pca(value: object) -> bool:
    if isinstance(value, bool):
        return False
    if isinstance(value, (int, np.integer)):
        return int(value) >= 1
    return isinstance(value, float) and 0 < value < 1


def _is_sparse(X: Any) -> bool:
    """Whether rows are a sparse matrix, told without importing SciPy."""
    return hasattr(X, "toarray")


def _raw_blocks(X: np.ndarray, dtype: type[np.floating]) -> Iterator[np.ndarray]:
    step = max(1, _BLOCK_VALUES // X.shape[1])
    for start in range(0, X.shape[0], step):
        part: Any = X[start : start + step]
        yield (part.toarray() if _is_sparse(part) else part).astype(dtype)
        give_back(part)


def _blocks(
    fitted: Fitted, X: np.ndarray, dtype: type[np.floating] = np.float64
) -> Iterator[np.ndarray]:
    """Divided, centred and scaled blocks of rows; each is a fresh array."""
    shift: np.ndarray = (fitted.offset * fitted.divide).astype(dtype)
    factor: np.ndarray = (1.0 / (fitted.scale * fitted.divide)).astype(dtype)
    for block in _raw_blocks(X, dtype):
        np.subtract(block, shift, out=block)
        np.multiply(block, factor, out=block)
        yield block


def _mean(data: Observed) -> np.ndarray:
    return np.asarray(sum(block.sum(axis=0) for block in data.blocks()) / data.counts)


def _scale(data: Observed, mean: np.ndarray, divide: float, kind: str) -> np.ndarray:
    """Return standard deviations (D,) after the division, or their root mean square D times."""
    variance = sum((block**2).sum(axis=0) for block in data.blocks(mean)) / data.counts
    if kind == "global":
        variance = np.full(len(mean), variance.mean())
    # Rounding leaves a constant column some 1e-32 of its square; that is not a scale to divide by.
    constant = variance <= 1e-24 * np.maximum(mean**2, 1e-300)
    return np.where(constant, 1.0, np.sqrt(variance) / divide)
