"""MNIST digits through a variational autoencoder, in the subspaces of aPPCA, and by PCA."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from appca.analysis.components import effect, ink, slant, within_classes
from appca.analysis.map_quality import crowding
from appca.analysis.subspaces import principal_scores, title
from appca.data.preprocessing import Preprocessing
from appca.data.sources import load
from appca.studies.fitting import (
    PCA_AXES,
    PanelFit,
    codes_of,
    crowding_claim,
    crowding_rows,
    fit,
    subspace_panels,
)
from appca.studies.study import Figures, Options, Outcome, Report, Row, Study
from appca.words import InputError, naming_extra

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


class Digits(NamedTuple):
    """Digits and their codes."""

    images: np.ndarray  # (N, 28, 28) uint8
    names: list[str]  # of the digits
    codes: np.ndarray  # (N,) into the names
    Y: np.ndarray  # (N, d) what the autoencoder makes of them


_LAST: dict[tuple[int, ...], Digits] = {}  # two experiments in one process share the training


def coded(options: Options, report: Report, end: float) -> Digits:
    """Open the digits and bring them to the codes of an autoencoder; report up to share `end`."""
    names = ("n_rows", "dimensions", "epochs", "seed")
    key = tuple(options[name] for name in names)
    if key not in _LAST:
        report("opening MNIST", 0.0)
        dataset = load("mnist", n=options["n_rows"])
        X = Preprocessing(divide=255.0).fit(dataset.X).transform(dataset.X)
        networks = train(
            X,
            options["dimensions"],
            options["epochs"],
            options["seed"],
            lambda stage, share: report(stage, end * share),
        )
        labels = codes_of(next(iter(dataset.labels.values())))
        images = dataset.images(np.arange(dataset.n_rows))
        Y = encode(networks, X).astype(np.float64)
        _LAST.clear()
        _LAST[key] = Digits(images, *labels, Y)
    return _LAST[key]


def measures(digits: Digits) -> dict[str, np.ndarray]:
    """Ink mass in pixels, slant in degrees and its size, one value a digit."""
    leaning = slant(digits.images)
    return {
        "ink, pixels": ink(digits.images),
        "slant, degrees": leaning,
        "size of the slant, degrees": np.abs(leaning),
    }


def effects(digits: Digits, fitted: PanelFit) -> list[Row]:
    """Each measure in each subspace against all other digits, also within the classes."""
    rows: list[Row] = []
    for name, values in measures(digits).items():
        adjusted, middle = within_classes(values, digits.codes), np.median(values)
        for subspace in fitted.subspaces:
            inside = np.zeros(len(values), dtype=bool)
            inside[subspace.rows] = True
            raw, same = effect(values, inside), effect(adjusted, inside)
            above = float(np.mean(values[inside] > middle))
            row: Row = {"measure": name, "subspace": title(subspace.components), "rows": raw.rows}
            row |= {"mean": raw.mean, "sd": raw.sd, "above_median": above}
            row |= {"effect": raw.size, "effect_error": raw.error}
            row |= {"effect_within_classes": same.size, "effect_within_classes_error": same.error}
            rows.append(row)
    return rows


def run(options: Options, report: Report, processes: int = 1) -> Outcome:
    """Train, fit, and describe every subspace: classes, crowding, ink and slant."""
    digits = coded(options, report, 0.85)
    fitted = fit(digits.Y, options, report, 0.85, 0.95)
    principal, _ = principal_scores(digits.Y, 2)
    report("comparing neighbours", 0.95)
    crowdings = crowding(
        fitted.scores,
        fitted.active,
        principal,
        digits.codes,
        n_neighbors=options["n_neighbors"],
        random_state=options["seed"],
    )
    rows = crowding_rows(crowdings, digits.codes, fitted)
    sizes = effects(digits, fitted)
    shares = class_shares(digits, fitted)
    arrays = {"scores": fitted.scores.astype(np.float32), "active": fitted.active}
    arrays |= {"pca": principal, "codes": digits.codes, "names": np.array(digits.names)}
    tables = {"panels": rows, "classes": shares, "effects": sizes}
    return Outcome(tables, arrays, [crowding_claim(rows)])


def class_shares(digits: Digits, fitted: PanelFit) -> list[Row]:
    """Share of each digit among the rows of each subspace and among all, a line a digit."""
    rows: list[Row] = []
    for code, name in enumerate(digits.names):
        row: Row = {"digit": name, "all": float(np.mean(digits.codes == code))}
        for subspace in fitted.subspaces:
            of_class = digits.codes[subspace.rows] == code
            row[title(subspace.components)] = float(of_class.mean())
        rows.append(row)
    return rows


def strongest(rows: list[Row], measure: str) -> Row:
    """Return the subspace in which a measure differs most from all other digits."""
    of_measure = [row for row in rows if row["measure"] == measure]
    return max(of_measure, key=lambda row: abs(float(row["effect"])))


def figures(outcome: Outcome) -> Figures:
    """Three subspaces and PCA, coloured by digit."""
    from appca.plots.studies import Scatter, scatters

    arrays = outcome.arrays
    names, codes, pca = arrays["names"].tolist(), arrays["codes"], arrays["pca"]
    panels = subspace_panels(arrays, codes, lambda name, n: f"Subspace {name}, {n:,} digits")
    panels.append(Scatter("PCA, all digits", pca[:, 0], pca[:, 1], codes, *PCA_AXES))
    return {"digits": scatters(panels, names, columns=2, size=3)}


SIZE = {"dimensions": 10, "n_components": 3, "n_active": 2, "n_neighbors": 15, "seed": 0}
SIZES = {
    "quick": {**SIZE, "n_rows": 2000, "epochs": 30},
    "default": {**SIZE, "n_rows": 10_000, "epochs": 30},
    "full": {**SIZE, "n_rows": 10_000, "epochs": 100},
}

STUDY = Study(
    name="digits",
    title="Digits behind an autoencoder",
    paper=(
        "The paper reduces 10,000 MNIST digits to 10 dimensions by a variational autoencoder, and "
        "shows the three subspaces of aPPCA, K = 3 and L = 2, beside PCA: many of the digits are "
        "more separate there."
    ),
    revision=1,
    sizes=SIZES,
    takes={"quick": 15.0, "default": 60.0, "full": 180.0},
    run=run,
    figures=figures,
)
