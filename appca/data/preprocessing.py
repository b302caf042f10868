"""Preprocessing of a matrix before a fit; its options are recorded, and it can be inverted.

A row x of the data becomes y = ((p(x) / divide - offset) / scale) @ basis. Here p is a preparation,
offset the mean, scale a number per feature, and basis the D' leading principal axes; each step is
optional. Rows are processed in blocks, so the data are not copied.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from operator import matmul
from typing import Any, NamedTuple

import numpy as np

from appca.data.dataset import Dataset
from appca.preparation import BY_ROW, PREPARATIONS, Prepared, are_coefficients, are_small_counts
from appca.storage.packed import give_back
from appca.words import counted, percent, refuse_if

Blocks = Callable[[], Iterator[np.ndarray]]
Times = Callable[[Any, Any], Any]
SCALES = ("none", "feature", "global")
_EXACT = 3000  # eigenvectors of a larger matrix take too long; a random sketch is used
_EXACT_VALUES = 1 << 27  # maximum N x D in memory (1 GB)
_BLOCK_VALUES = 1 << 21  # values converted per block (16 MB)


def principal_axes(blocks: Blocks, shape: tuple[int, int], keep: float) -> np.ndarray:
    """Return the leading eigenvectors (D, D') of the scatter matrix of centred rows (N, D).

    The largest entry of each is positive. Each call of `blocks` iterates over the rows in fresh
    float64 blocks. `keep` is the number of axes, or the minimum share of variance (0, 1) that they
    explain. Raises InputError for more axes than the data can have, or if the data do not vary.
    """
    (n, d), least = shape, min(shape)
    msg = f"pca must be at most {least} for {n} rows and {d} features; got {keep}."
    refuse_if(not isinstance(keep, float) and keep > least, msg)
    total = sum(float(np.einsum("ij,ij->", block, block)) for block in blocks())
    refuse_if(not total > 0, "PCA needs rows that differ; all are the same, so use other data.")

    def leading(symmetric: Any) -> tuple[np.ndarray, int]:
        """Eigenvectors by decreasing eigenvalue, and the number of them to keep."""
        values, vectors = np.linalg.eigh(symmetric)
        held = np.cumsum(np.maximum(values[::-1], 0))
        share = keep * total * (1 - 1e-12)  # rounding must not miss an exact share
        wanted = np.searchsorted(held, share) + 1 if isinstance(keep, float) else keep
        return vectors[:, ::-1], int(wanted)

    def scatter_times(basis: np.ndarray) -> Any:
        return sum(block.T @ (block @ basis) for block in blocks())

    if d <= min(n, _EXACT):
        axes, wanted = leading(sum(block.T @ block for block in blocks()))
        axes = axes[:, :wanted]
    elif n <= _EXACT and n * d <= _EXACT_VALUES:
        # Fewer rows than columns: decompose X X' (N x N), then convert its eigenvectors to axes.
        X = np.concatenate(list(blocks()))
        left, wanted = leading(X @ X.T)
        # Directions without variance are rounding noise; QR makes them orthonormal, too.
        axes = np.linalg.qr(X.T @ left[:, :wanted])[0]
    else:
        # Randomized subspace iteration (Halko, Martinsson, Tropp 2011): 20 extra columns, 4 power
        # iterations; the sketch widens until it has enough axes.
        width = wanted = 0
        while width < min(wanted + 20, least):
            # For a share of variance, the number of columns is unknown in advance.
            width = min(max(64, 2 * width, wanted + 20), least)
            axes = np.linalg.qr(np.random.default_rng(0).standard_normal((d, width)))[0]
            for _ in range(4):
                axes = np.linalg.qr(scatter_times(axes))[0]
            small = axes.T @ scatter_times(axes)
            turn, wanted = leading((small + small.T) / 2)
        axes = axes @ turn[:, :wanted]
    top = axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])]
    return np.asarray(axes * np.where(top < 0, -1.0, 1.0))


@dataclass(frozen=True)
class Preprocessing:
    """Steps before a fit, in this order.

    ``prepare`` is "none" or one of `PREPARATIONS`. Every value is divided by ``divide`` (255 for
    photographs). ``centre`` subtracts the mean of each feature; ``pca`` implies it. ``scale``
    "feature" divides each feature by its standard deviation, "global" all features by the root
    mean square of the centred data; constant features are not scaled. ``pca`` is the number of
    principal components to keep, or the minimum share of variance (0 to 1) that they explain.
    """

    divide: float = 1.0
    centre: bool = False
    scale: str = "none"
    pca: int | float | None = None
    prepare: str = "none"

    def __post_init__(self) -> None:
        """Raise InputError for invalid options."""
        divide, pca = np.nan, self.pca
        with suppress(TypeError, ValueError):
            divide = float(self.divide)
        is_positive, scales = 0 < divide < np.inf, ", ".join(SCALES)
        refuse_if(not is_positive, f"divide must be a positive number; got {self.divide!r}.")
        refuse_if(self.scale not in SCALES, f"scale must be one of {scales}; got {self.scale!r}.")
        allowed = ", ".join(["none", *PREPARATIONS])
        msg = f"prepare must be one of {allowed}; got {self.prepare!r}."
        refuse_if(self.prepare not in allowed.split(", "), msg)
        is_count = isinstance(pca, (int, np.integer)) and not isinstance(pca, bool) and pca >= 1
        msg = "pca must be a positive whole number of dimensions, or a share of variance between 0 "
        msg += f"and 1; got {pca!r}."
        refuse_if(not (pca is None or is_count or (isinstance(pca, float) and 0 < pca < 1)), msg)
        object.__setattr__(self, "divide", divide)
        object.__setattr__(self, "centre", bool(self.centre))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able dict, without an unused `prepare`, to keep the ids of older runs."""
        return {name: x for name, x in asdict(self).items() if (name, x) != ("prepare", "none")}

    @classmethod
    def from_dict(cls, options: Mapping[str, Any]) -> "Preprocessing":
        """Create options from a dict such as `to_dict` returns; unknown names are refused."""
        names = sorted(option.name for option in fields(cls))
        unknown = ", ".join(sorted(set(options) - set(names)))
        refuse_if(unknown, f"Preprocessing has the options {', '.join(names)}; got {unknown}.")
        return cls(**options)

    def in_words(self) -> str:
        """Describe the steps: "centred, each feature divided by its standard deviation"."""
        share = percent(self.pca, 1) if isinstance(self.pca, float) else ""
        first = PREPARATIONS[self.prepare].title if self.prepare != "none" else ""
        steps = {
            first: first,
            f"divided by {self.divide:g}": self.divide != 1,
            "centred": self.centre or self.pca is not None,
            "each feature divided by its standard deviation": self.scale == "feature",
            "all divided by their overall standard deviation": self.scale == "global",
            f"reduced by PCA to {share} of the variance": share,
            f"reduced to {self.pca} dimensions by PCA": self.pca is not None and not share,
        }
        return ", ".join(step for step, is_done in steps.items() if is_done) or "none"

    def most_features(self, n_features: int) -> int:
        """Return an upper bound on the number of features after preprocessing."""
        return min(n_features, self.pca) if isinstance(self.pca, int) else n_features

    def fit(self, X: np.ndarray, missing: np.ndarray | None = None) -> "Fitted":
        """Learn offset, scale and basis from the rows of X (N, D), with float64 sums.

        Cells that are `missing` (N, D) are ignored. Raises InputError if the data do not allow the
        steps: `pca` needs rows without missing cells.
        """
        n_missing = 0 if missing is None else int(missing.sum())
        refuse_if(
            missing is not None and self.pca is not None,
            f"PCA needs complete rows, not {counted(n_missing, 'missing cell')}; turn off pca, or "
            "load the data with missing=mean.",
        )

        prepared = None
        if self.prepare != "none":
            prepared = Prepared.fit(self.prepare, lambda: _raw_blocks(X, np.float64, None, missing))

        def blocks(centre: np.ndarray | float = 0.0) -> Iterator[np.ndarray]:
            for block in _raw_blocks(X, np.float64, prepared, missing):
                block -= centre  # noqa: PLW2901 (the block is fresh)
                if missing is not None:
                    block[np.isnan(block)] = 0.0
                yield block

        n, d = X.shape
        counts = np.array(n)
        if missing is not None:
            counts = np.maximum(n - missing.sum(axis=0), 1)
        offset, scale, mean = np.zeros(d), np.ones(d), np.zeros(d)
        if self.centre or self.pca is not None or self.scale != "none":
            mean = np.asarray(sum(block.sum(axis=0) for block in blocks()) / counts)
        if self.centre or self.pca is not None:
            offset = mean / self.divide
        if self.scale != "none":
            variance = sum((block**2).sum(axis=0) for block in blocks(mean)) / counts
            if self.scale == "global":
                variance = np.full(d, variance.mean())
            # Rounding gives a constant column a relative variance of about 1e-32.
            constant = variance <= 1e-24 * np.maximum(mean**2, 1e-300)
            scale = np.where(constant, 1.0, np.sqrt(variance) / self.divide)
        plain = Fitted(self.divide, offset, scale, None, prepared)
        if self.pca is None:
            return plain
        basis = principal_axes(lambda: plain.blocks(X, np.float64), X.shape, self.pca)
        return plain._replace(basis=basis)


class Fitted(NamedTuple):
    """Fitted preprocessing as arrays, which are stored with a run."""

    divide: float
    offset: np.ndarray  # (D,), after the division
    scale: np.ndarray  # (D,)
    basis: np.ndarray | None  # (D, D') with orthonormal columns
    prepare: Prepared | None = None

    @property
    def reduces(self) -> bool:
        """Whether each coordinate depends on all features."""
        return self.basis is not None

    @property
    def takes_gaps(self) -> bool:
        """Whether rows may have missing cells."""
        return not (self.reduces or (self.prepare and self.prepare.name in BY_ROW))

    @property
    def n_features(self) -> int:
        """Return D', the number of features after preprocessing."""
        return len(self.offset) if self.basis is None else self.basis.shape[1]

    def transform(self, X: np.ndarray, times: Times = matmul) -> np.ndarray:
        """Convert rows (N, D) to the fitted coordinates (N, D'), float32 unless X is float64.

        `times` multiplies rows by the PCA basis. With BLAS, the default, the last bits of a row
        depend on the other rows.
        """
        refuse_if(
            X.ndim != 2 or X.shape[1] != len(self.offset),
            f"The data must have the {len(self.offset)} features the preprocessing was fitted on; "
            f"got shape {X.shape}.",
        )
        may_have_gaps = X.dtype.kind == "f" and not hasattr(X, "toarray")
        refuse_if(
            self.reduces and may_have_gaps and np.isnan(X.min(initial=0.0)),
            f"The fit first reduces {X.shape[1]} features to {self.n_features} by PCA, which needs "
            "complete rows; fill the missing cells or drop their rows.",
        )
        dtype, start = np.float64 if X.dtype == np.float64 else np.float32, 0
        out = np.empty((X.shape[0], self.n_features), dtype)
        for block in self.blocks(X, dtype, times):
            out[start : start + len(block)] = block
            start += len(block)
        return out

    def blocks(self, X: np.ndarray, dtype: Any, times: Times = matmul) -> Iterator[np.ndarray]:
        """Yield the rows of `transform` in fresh blocks."""
        shift: np.ndarray = (self.offset * self.divide).astype(dtype)
        factor: np.ndarray = (1.0 / (self.scale * self.divide)).astype(dtype)
        basis = None if self.basis is None else self.basis.astype(dtype, copy=False)
        for block in _raw_blocks(X, dtype, self.prepare):
            np.subtract(block, shift, out=block)
            np.multiply(block, factor, out=block)
            yield block if basis is None else times(block, basis)

    def inverse_transform(self, Y: np.ndarray) -> np.ndarray:
        """Convert rows (N, D') to data units (N, D), without the variance that PCA removed."""
        Y = np.asarray(Y)
        wide = Y if self.basis is None else Y @ self.basis.T.astype(Y.dtype, copy=False)
        data: np.ndarray = (wide * self.scale + self.offset) * self.divide
        data = data if self.prepare is None else self.prepare.undo(data)
        return data.astype(Y.dtype, copy=False)

    def directions(self, W: np.ndarray) -> np.ndarray:
        """Components W (D', K) as directions (D, K) in units of p(x), without the offset."""
        W = np.asarray(W)
        wide = W if self.basis is None else self.basis @ W
        return wide * (self.scale * self.divide)[:, None]

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays for `from_arrays`."""
        parts = self._asdict() | {"prepare": None}
        if self.prepare is not None:
            parts[self.prepare.name] = self.prepare.learned
        return {name: np.asarray(part) for name, part in parts.items() if part is not None}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "Fitted":
        """Rebuild an object from its `arrays`."""
        divide, offset, scale = float(arrays["divide"]), arrays["offset"], arrays["scale"]
        learned = (Prepared(name, arrays[name]) for name in PREPARATIONS if name in arrays)
        return cls(divide, offset, scale, arrays.get("basis"), next(learned, None))


def suggest(dataset: Dataset, prepare: str = "none") -> Preprocessing:
    """Suggest defaults: divide images by the value of white, scale each feature of other tables.

    Ordered features, such as wavelengths, coefficients of components, and counts up to two, such as
    those of alleles, share a scale.
    """
    if dataset.image_shape is not None:
        low, high = dataset.image_range
        return Preprocessing(high if low == 0 and high > 1 else 1.0, prepare=prepare)
    is_one_unit = dataset.is_ordered or dataset.provenance.get("comparable")
    if prepare == "none" and not is_one_unit:
        is_one_unit = are_coefficients(dataset) or are_small_counts(dataset)
    scale = "global" if prepare in BY_ROW or is_one_unit else "feature"
    return Preprocessing(centre=True, scale=scale, prepare=prepare)


def _raw_blocks(X: Any, dtype: Any, prepared: Prepared | None, gaps: Any = None) -> Iterator[Any]:
    step = max(1, _BLOCK_VALUES // X.shape[1])
    for start in range(0, X.shape[0], step):
        part = X[start : start + step]
        block = (part.toarray() if hasattr(part, "toarray") else part).astype(dtype)
        if gaps is not None:
            block[gaps[start : start + step]] = np.nan
        yield block if prepared is None else prepared.apply(block)
        give_back(part)
