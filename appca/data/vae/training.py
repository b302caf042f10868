"""Training of the autoencoder, by jax and optax on the processor; in worker processes only.

The evidence lower bound of Kingma and Welling (2014), one draw of the code per row and step. All
randomness is NumPy's, so the seed alone decides it.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from appca.data.vae.autoencoder import (
    VAE,
    Autoencoder,
    Report,
    batch_rows,
    blocks_of,
    code_means,
    hidden_in,
    logits,
)
from appca.words.errors import InputError, naming_extra

Rows = Callable[[np.ndarray | slice], np.ndarray]  # preprocessed rows (m, D), float32
RATE = 1e-3  # Adam's step
LOOK = 25  # steps between two reports
STAGE = "training the autoencoder"


class _Weights(NamedTuple):
    """What the optimiser changes, and the two constants of the units."""

    shift: Any
    unit: Any
    inward: Any
    inward_bias: Any
    code: Any
    code_bias: Any
    spread: Any  # (H, d), to the log-variances of the codes
    spread_bias: Any
    outward: Any
    outward_bias: Any
    picture: Any
    picture_bias: Any
    log_noise: Any  # () log-variance of a Gaussian decoder, in the encoder's units


class _Range(NamedTuple):
    """What the data look like."""

    mean: np.ndarray  # (D,)
    unit: float  # root mean square about the mean
    bernoulli: bool  # all values between 0 and 1


def train(
    rows: Rows, shape: tuple[int, int], options: VAE, report: Report = lambda _stage, _share: None
) -> Autoencoder:
    """Train both networks on rows (N, D), which `rows` returns in float32, by numbers or a slice.

    `report` is told (stage, fraction) every few steps; an exception from it ends the training.
    Raises InputError when jax or optax is missing, there are more dimensions than features, or no
    row differs.
    """
    n, d = shape
    if options.dimensions > d:
        msg = (
            f"The autoencoder must have at most as many dimensions as the data have features, {d}; "
            f"got {options.dimensions}."
        )
        raise InputError(msg)
    report(STAGE, 0.0)
    seen = _look(rows, shape)
    rng = np.random.default_rng(options.seed)
    weights = _start(rng, seen, options)
    begin, step = _compiled(seen.bernoulli)
    weights, state = begin(weights)
    size = batch_rows(n)
    steps, losses = max(1, n // size), []
    for epoch in range(options.epochs):
        order = rng.permutation(n)
        values: list[Any] = []
        for i in range(steps):
            if i % LOOK == 0:
                np.asarray(values[-1:])  # jax runs ahead; a look at the last result waits for it
                report(STAGE, (epoch + i / steps) / options.epochs)
            batch = rows(np.sort(order[i * size : (i + 1) * size]))
            noise = rng.standard_normal((len(batch), options.dimensions), dtype=np.float32)
            weights, state, value = step(weights, state, batch, noise)
            values.append(value)
        losses.append(float(np.mean(np.asarray(values, dtype=np.float64))))
    return _fitted(weights, seen, rows, shape, np.array(losses))


def _look(rows: Rows, shape: tuple[int, int]) -> _Range:
    """Mean, spread and range of the data, in two walks over the rows."""
    n, d = shape
    total, low, high = np.zeros(d), np.inf, -np.inf
    for block in blocks_of(n, d):
        X = rows(block)
        total += X.sum(axis=0, dtype=np.float64)
        low, high = min(low, float(X.min())), max(high, float(X.max()))
    mean = total / n
    squares = sum(float(np.square(rows(block) - mean).sum()) for block in blocks_of(n, d))
    if not squares > 0:
        msg = "The autoencoder needs data that vary; all rows are the same, so choose other data."
        raise InputError(msg)
    return _Range(mean, float(np.sqrt(squares / (n * d))), low >= 0 and high <= 1)


def _start(rng: np.random.Generator, seen: _Range, options: VAE) -> _Weights:
    """Weights of Glorot and Bengio (2010); the decoder begins at the mean of the data."""
    D, H, d = len(seen.mean), options.hidden, options.dimensions

    def drawn(wide: int, narrow: int) -> np.ndarray:
        limit = np.sqrt(6 / (wide + narrow))
        return rng.uniform(-limit, limit, (wide, narrow)).astype(np.float32)

    def zeros(width: int) -> np.ndarray:
        return np.zeros(width, np.float32)

    share = np.clip(seen.mean, 1e-3, 1 - 1e-3)
    picture_bias = np.log(share / (1 - share)) if seen.bernoulli else np.zeros(D)
    return _Weights(
        shift=seen.mean.astype(np.float32),
        unit=np.float32(1.0 if seen.bernoulli else seen.unit),
        inward=drawn(D, H),
        inward_bias=zeros(H),
        code=drawn(H, d),
        code_bias=zeros(d),
        spread=drawn(H, d),
        spread_bias=zeros(d),
        outward=drawn(d, H),
        outward_bias=zeros(H),
        picture=drawn(H, D),
        picture_bias=picture_bias.astype(np.float32),
        log_noise=np.float32(0.0),
    )


def loss_of(xp: Any, weights: _Weights, X: Any, noise: Any, *, bernoulli: bool) -> Any:
    """Negative evidence lower bound per row, in nats, with one draw of each row's code.

    Of rows X (m, D), by standard normal noise (m, d); `xp` is NumPy, or jax's NumPy. With
    `bernoulli`, a grey value x counts as a coin that shows 1 with probability x.
    """
    mean = code_means(xp, weights, X)
    log_variance = hidden_in(xp, weights, X) @ weights.spread + weights.spread_bias
    out = logits(xp, weights, mean + xp.exp(log_variance / 2) * noise)
    if bernoulli:
        misfit = xp.logaddexp(0, out) - X * out
    else:
        miss = (X - weights.shift) / weights.unit - out
        misfit = 0.5 * (miss**2 / xp.exp(weights.log_noise) + weights.log_noise)
        misfit = misfit + (0.5 * np.log(2 * np.pi) + xp.log(weights.unit))
    divergence = 0.5 * (xp.exp(log_variance) + mean**2 - 1 - log_variance)
    return (misfit.sum(axis=1) + divergence.sum(axis=1)).mean()


@cache
def _compiled(
    bernoulli: bool,
) -> tuple[Callable[..., tuple[_Weights, Any]], Callable[..., tuple[_Weights, Any, Any]]]:
    """Return the first state of Adam and its step; jax compiles once for every size of networks."""
    with naming_extra():
        import jax
        import optax

    adam = optax.adam(RATE)
    constant = _Weights(*(name in {"shift", "unit"} for name in _Weights._fields))

    def begin(weights: _Weights) -> tuple[_Weights, Any]:
        placed = jax.device_put(weights, jax.devices("cpu")[0])  # the same numbers beside a GPU
        return placed, adam.init(placed)

    @jax.jit
    def step(weights: _Weights, state: Any, X: Any, noise: Any) -> tuple[_Weights, Any, Any]:
        def loss(now: _Weights) -> Any:
            return loss_of(jax.numpy, now, X, noise, bernoulli=bernoulli)

        value, slope = jax.value_and_grad(loss)(weights)
        slope = jax.tree.map(lambda g, still: 0 * g if still else g, slope, constant)
        change, state = adam.update(slope, state, weights)
        return optax.apply_updates(weights, change), state, value

    return begin, step


def _fitted(
    weights: _Weights, seen: _Range, rows: Rows, shape: tuple[int, int], losses: np.ndarray
) -> Autoencoder:
    arrays = {name: np.asarray(getattr(weights, name)) for name in _Weights._fields}
    nets = {name: arrays[name] for name in Autoencoder._fields if name in arrays}
    width = len(nets["code_bias"])
    plain = Autoencoder(
        **nets,
        bernoulli=np.array(seen.bernoulli),
        centre=np.zeros(width, np.float32),
        losses=losses,
    )
    if not (np.isfinite(losses).all() and np.isfinite(plain.picture).all()):
        msg = "The training of the autoencoder diverged; scale the data first, or use PCA."
        raise InputError(msg)
    n, d = shape
    total = sum(
        plain.encode(rows(block)).sum(axis=0, dtype=np.float64) for block in blocks_of(n, d)
    )
    return plain._replace(centre=(total / n).astype(np.float32))
