"""A variational autoencoder as preprocessing: options, and the fitted networks in plain NumPy.

Encoder and decoder each have two layers: D - hidden - d, and back. Training needs jax and lives in
`vae_training`; what comes of it are arrays, so a stored run is read, and new rows are encoded,
without jax.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from operator import matmul
from typing import Any, NamedTuple

import numpy as np

from appca.words.errors import InputError

Report = Callable[[str, float], None]  # stage, fraction done; raising from it ends the work
Times = Callable[[Any, Any], Any]  # the product of rows (N, D) and a matrix (D, K)
_LEAST = {"dimensions": 1, "hidden": 1, "epochs": 1, "seed": 0}
_LARGEST_SEED = 2**32 - 1
_BLOCK_VALUES = 1 << 21
_STEPS = 2300  # of the optimiser: where the loss has become flat on digits, objects and tables
_BATCH, _FEW = 128, 16  # rows of one step; of small data at least sixteen


@dataclass(frozen=True)
class VAE:
    """How an autoencoder is trained.

    It has `dimensions` codes, and networks with a hidden layer of width `hidden`. Training sees
    every row `epochs` times. `seed` decides the starting weights, the order of the rows and the
    noise.
    """

    dimensions: int = 10
    hidden: int = 400
    epochs: int = 30
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what is not a whole number, or too small."""
        for name, least in _LEAST.items():
            value = getattr(self, name)
            whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
            if not whole or value < least or value > _LARGEST_SEED:
                msg = (
                    f"{name} of the autoencoder must be a whole number from {least} on; "
                    f"got {value!r}."
                )
                raise InputError(msg)
            object.__setattr__(self, name, int(value))

    def to_dict(self) -> dict[str, int]:
        """Return the options as a JSON-able dict."""
        return asdict(self)

    @classmethod
    def from_dict(cls, options: Mapping[str, Any]) -> "VAE":
        """Options from a dict as `to_dict` makes it; unknown names are refused."""
        names = [option.name for option in fields(cls)]
        unknown = sorted(set(options) - set(names))
        if unknown:
            msg = f"The autoencoder has the options {', '.join(names)}; got {', '.join(unknown)}."
            raise InputError(msg)
        return cls(**options)


def batch_rows(n_rows: int) -> int:
    """Rows of one step of the optimiser: small data in smaller steps, so that there are enough."""
    return min(n_rows, max(_FEW, min(_BATCH, n_rows // 16)))


def suggest(n_rows: int, n_features: int) -> VAE:
    """Suggest the paper's 10 dimensions, fewer for few features, and enough epochs to converge."""
    steps = n_rows // batch_rows(n_rows)
    epochs = int(np.clip(10 * np.ceil(_STEPS / steps / 10), 30, 300))
    return VAE(dimensions=max(1, min(10, n_features // 4)), epochs=epochs)


def estimate_seconds(n_rows: int, n_features: int, options: VAE) -> float:
    """Guess how long training takes, on two cores, rather too long than too short."""
    products = options.hidden * (2 * n_features + 3 * options.dimensions)
    weights = products * (_A_STEP * n_rows / batch_rows(n_rows))
    return _START + options.epochs * (_A_PRODUCT * n_rows * products + weights)


_START = 5.0  # seconds to import jax and to compile one step
_A_PRODUCT, _A_STEP = 6.0e-11, 2.0e-9  # seconds: of a row and a weight; of a step and a weight


class Autoencoder(NamedTuple):
    """Trained networks, in the units the data have after the other preprocessing.

    Rows x (N, D) are brought to (x - shift) / unit before the encoder. The decoder's last layer
    gives probabilities (Bernoulli, for data between 0 and 1), or means in the same units
    (Gaussian, for all others).
    """

    shift: np.ndarray  # (D,) float32
    unit: np.ndarray  # () float32
    inward: np.ndarray  # (D, H) float32
    inward_bias: np.ndarray  # (H,)
    code: np.ndarray  # (H, d)
    code_bias: np.ndarray  # (d,)
    outward: np.ndarray  # (d, H)
    outward_bias: np.ndarray  # (H,)
    picture: np.ndarray  # (H, D)
    picture_bias: np.ndarray  # (D,)
    bernoulli: np.ndarray  # () bool
    centre: np.ndarray  # (d,) float32, mean of the encoded training rows
    losses: np.ndarray  # (epochs,) float64, negative evidence lower bound, nats per row

    @property
    def dimensions(self) -> int:
        """Return the number of features after encoding."""
        return len(self.code_bias)

    def encode(self, X: np.ndarray, times: Times = matmul) -> np.ndarray:
        """Means of the encoder (N, d) of rows (N, D), multiplied by `times`; the dtype stays."""
        return np.asarray(code_means(np, self._like(X), X, times))

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Rows (N, D) that the decoder makes of codes (N, d): its means; the dtype stays."""
        codes = np.asarray(codes)
        nets = self._like(codes)
        out: np.ndarray = logits(np, nets, codes)
        if self.bernoulli:
            return (1 + np.tanh(out / 2)) / 2  # the logistic function; does not overflow
        return np.asarray(out * nets.unit + nets.shift)

    def difference(self, W: np.ndarray) -> np.ndarray:
        """Return decoded differences (D, K) of directions W (d, K).

        decode(centre + w) - decode(centre) for each column w: what one step along it, from the
        average code, does to the data. The decoder bends, so half a step is not half of it.
        """
        start = self.centre.astype(np.float64)
        ends = self.decode(start + np.asarray(W, np.float64).T)
        steps: np.ndarray = ends - self.decode(start[None])
        return steps.T

    def _like(self, X: np.ndarray) -> "Autoencoder":
        """Return the networks in the dtype of the rows; float32 is theirs."""
        if X.dtype == self.inward.dtype:
            return self
        weights = self._fields[: self._fields.index("bernoulli")]
        return self._replace(**{name: getattr(self, name).astype(X.dtype) for name in weights})


def hidden_in(xp: Any, nets: Any, X: Any, times: Times = matmul) -> Any:
    """Hidden layer (N, H) of the encoder; `xp` is NumPy, or jax's NumPy while training."""
    return xp.maximum(times((X - nets.shift) / nets.unit, nets.inward) + nets.inward_bias, 0)


def code_means(xp: Any, nets: Any, X: Any, times: Times = matmul) -> Any:
    """Means of the codes (N, d) of rows (N, D)."""
    return times(hidden_in(xp, nets, X, times), nets.code) + nets.code_bias


def logits(xp: Any, nets: Any, codes: Any) -> Any:
    """Last layer (N, D) of the decoder, before it becomes probabilities or data units."""
    hidden = xp.maximum(codes @ nets.outward + nets.outward_bias, 0)
    return hidden @ nets.picture + nets.picture_bias


def blocks_of(n_rows: int, width: int) -> list[slice]:
    """Slices of rows that hold about two million values each."""
    step = max(1, _BLOCK_VALUES // max(width, 1))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]
