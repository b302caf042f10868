"""Training of the variational autoencoder that comes before the fits to digits; by JAX and optax.

Encoder and decoder each have two layers: D - H - d, and back. The evidence lower bound of Kingma
and Welling (2014), one draw of the code per row and step. All randomness is NumPy's, so the seed
alone decides it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from appca.words.errors import InputError, naming_extra

HIDDEN = 400  # H, the width of the layer between
BATCH, RATE = 128, 1e-3  # rows of one step of Adam, fewer of small data; and its size
REPORT_EVERY = 25  # steps
_BLOCK_VALUES = 1 << 21


class Networks(NamedTuple):
    """What the optimiser changes, and the mean of the data."""

    shift: Any  # (D,)
    inward: Any  # (D, H)
    inward_bias: Any  # (H,)
    code: Any  # (H, d), to the means of the codes
    code_bias: Any  # (d,)
    spread: Any  # (H, d), to the log-variances of the codes
    spread_bias: Any  # (d,)
    outward: Any  # (d, H)
    outward_bias: Any  # (H,)
    picture: Any  # (H, D)
    picture_bias: Any  # (D,)


def train(
    X: np.ndarray,
    dimensions: int,
    epochs: int,
    seed: int,
    report: Callable[[str, float], None] = lambda _stage, _share: None,
) -> Networks:
    """Train both networks on rows X (N, D), float32 between 0 and 1.

    `report` is told (stage, fraction) every few steps; an exception from it ends the training.
    Raises InputError when JAX or optax is missing, or the training diverges.
    """
    rng = np.random.default_rng(seed)
    networks = start(rng, X, dimensions)
    begin, step = _compiled()
    networks, state = begin(networks)
    size = min(len(X), max(16, min(BATCH, len(X) // 16)))
    steps = len(X) // size
    for epoch in range(epochs):
        order = rng.permutation(len(X))
        value: Any = 0.0
        for i in range(steps):
            if i % REPORT_EVERY == 0:
                np.asarray(value)  # JAX runs ahead; a look at the last result waits for it
                report("training the autoencoder", (epoch + i / steps) / epochs)
            batch = X[np.sort(order[i * size : (i + 1) * size])]
            noise = rng.standard_normal((len(batch), dimensions), dtype=np.float32)
            networks, state, value = step(networks, state, batch, noise)
    networks = Networks(*map(np.asarray, networks))
    if not (np.isfinite(value) and np.isfinite(networks.picture).all()):
        msg = "The training of the autoencoder diverged; choose another seed."
        raise InputError(msg)
    return networks


def encode(networks: Networks, X: np.ndarray) -> np.ndarray:
    """Means of the encoder (N, d) of rows (N, D)."""
    step = max(1, _BLOCK_VALUES // X.shape[1])
    blocks = [X[start : start + step] for start in range(0, len(X), step)]
    return np.concatenate([code_means(np, networks, block) for block in blocks])


def start(rng: np.random.Generator, X: np.ndarray, dimensions: int) -> Networks:
    """Weights of Glorot and Bengio (2010); the decoder begins at the mean of the data."""
    D = X.shape[1]

    def drawn(wide: int, narrow: int) -> np.ndarray:
        limit = np.sqrt(6 / (wide + narrow))
        return rng.uniform(-limit, limit, (wide, narrow)).astype(np.float32)

    mean = X.mean(axis=0, dtype=np.float64)
    share = np.clip(mean, 1e-3, 1 - 1e-3)
    return Networks(
        shift=mean.astype(np.float32),
        inward=drawn(D, HIDDEN),
        inward_bias=np.zeros(HIDDEN, np.float32),
        code=drawn(HIDDEN, dimensions),
        code_bias=np.zeros(dimensions, np.float32),
        spread=drawn(HIDDEN, dimensions),
        spread_bias=np.zeros(dimensions, np.float32),
        outward=drawn(dimensions, HIDDEN),
        outward_bias=np.zeros(HIDDEN, np.float32),
        picture=drawn(HIDDEN, D),
        picture_bias=np.log(share / (1 - share)).astype(np.float32),
    )


def hidden_of(xp: Any, networks: Networks, X: Any) -> Any:
    """Hidden layer (N, H) of the encoder; `xp` is NumPy, or JAX's NumPy while training."""
    return xp.maximum((X - networks.shift) @ networks.inward + networks.inward_bias, 0)


def code_means(xp: Any, networks: Networks, X: Any) -> Any:
    """Means of the codes (N, d) of rows (N, D)."""
    return hidden_of(xp, networks, X) @ networks.code + networks.code_bias


def negative_bound(xp: Any, networks: Networks, X: Any, noise: Any) -> Any:
    """Negative evidence lower bound per row, in nats, with one draw of each row's code.

    Of rows X (m, D), by standard normal noise (m, d); `xp` is NumPy, or JAX's NumPy. A grey value x
    counts as a coin that shows 1 with probability x.
    """
    mean = code_means(xp, networks, X)
    log_variance = hidden_of(xp, networks, X) @ networks.spread + networks.spread_bias
    codes = mean + xp.exp(log_variance / 2) * noise
    hidden = xp.maximum(codes @ networks.outward + networks.outward_bias, 0)
    out = hidden @ networks.picture + networks.picture_bias
    misfit = xp.logaddexp(0, out) - X * out
    divergence = 0.5 * (xp.exp(log_variance) + mean**2 - 1 - log_variance)
    return (misfit.sum(axis=1) + divergence.sum(axis=1)).mean()


@naming_extra()
def _compiled() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the first state of Adam and its step."""
    import jax
    import optax

    adam = optax.adam(RATE)

    def begin(networks: Networks) -> tuple[Networks, Any]:
        placed = jax.device_put(networks, jax.devices("cpu")[0])  # the same numbers beside a GPU
        return placed, adam.init(placed)

    @jax.jit
    def step(networks: Networks, state: Any, X: Any, noise: Any) -> tuple[Networks, Any, Any]:
        def loss(now: Networks) -> Any:
            return negative_bound(jax.numpy, now, X, noise)

        value, slope = jax.value_and_grad(loss)(networks)
        slope = slope._replace(shift=0 * slope.shift)
        change, state = adam.update(slope, state, networks)
        return optax.apply_updates(networks, change), state, value

    return begin, step
