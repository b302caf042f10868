"""Figures 5 to 7: handwritten digits encoded by an autoencoder; factors shared by odd digits."""

from functools import partial
from itertools import combinations, combinations_with_replacement
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from appca.analysis import components
from appca.analysis.components import title
from appca.data.dataset import categories
from appca.data.preprocessing import Preprocessing
from appca.data.sources import load
from appca.studies.claims import Claim, checked, share, span
from appca.studies.fitting import PanelFit, crowded_panels, fit, images_of, panels, reporting
from appca.studies.study import Figures, Options, Outcome, Report, Row, Study, sized
from appca.words import fixed, minus, naming_extra, refuse_if

HIDDEN = 400  # H, the width of the hidden layers
BATCH, RATE = 128, 1e-3  # maximum number of rows per step of Adam, and its step size
REPORT_EVERY = 25  # number of steps between reports
Layer = tuple[Any, Any]  # weights (n, m) and biases (m,)


class Networks(NamedTuple):
    """Parameters of the autoencoder, and the mean of the data."""

    shift: Any  # (D,)
    inward: Layer  # D to H
    code: Layer  # H to d, the means of the codes
    spread: Layer  # H to d, the log-variances of the codes
    outward: Layer  # d to H
    picture: Layer  # H to D


def applied(layer: Layer, X: Any) -> Any:
    """Return the output of a layer for rows (N, n), before any nonlinearity."""
    return X @ layer[0] + layer[1]


@naming_extra()
def train(X: np.ndarray, dimensions: int, epochs: int, seed: int, report: Report) -> Networks:
    """Train encoder and decoder on rows X (N, D), float32 between 0 and 1.

    Raises InputError if JAX or optax is missing, or the training diverges.
    """
    import jax
    import optax

    rng, adam = np.random.default_rng(seed), optax.adam(RATE)
    networks = jax.device_put(start(rng, X, dimensions), jax.devices("cpu")[0])
    state = adam.init(networks)

    @jax.jit
    def step(networks: Networks, state: Any, X: Any, noise: Any) -> tuple[Networks, Any, Any]:
        value, slope = jax.value_and_grad(partial(negative_bound, jax.numpy))(networks, X, noise)
        slope = slope._replace(shift=0 * slope.shift)
        change, state = adam.update(slope, state, networks)
        return optax.apply_updates(networks, change), state, value

    size = min(len(X), max(16, min(BATCH, len(X) // 16)))
    steps, value = len(X) // size, np.zeros(())
    for epoch in range(epochs):
        order = rng.permutation(len(X))
        for i in range(steps):
            if i % REPORT_EVERY == 0:
                np.asarray(value)
                report("training the autoencoder", (epoch + i / steps) / epochs)
            batch = X[np.sort(order[i * size : (i + 1) * size])]
            noise = rng.standard_normal((len(batch), dimensions), dtype=np.float32)
            networks, state, value = step(networks, state, batch, noise)
    msg = "The training of the autoencoder diverged; choose another seed."
    refuse_if(not (np.isfinite(value) and np.isfinite(networks.picture[0]).all()), msg)
    trained: Networks = jax.tree.map(np.asarray, networks)
    return trained


def hidden(xp: Any, networks: Networks, X: Any) -> Any:
    """Return the encoder's hidden layer (N, H); `xp` is NumPy, or JAX's NumPy in training."""
    return xp.maximum(applied(networks.inward, X - networks.shift), 0)


def encode(networks: Networks, X: np.ndarray) -> np.ndarray:
    """Return the encoder's means (N, d) for rows (N, D)."""
    return np.asarray(applied(networks.code, hidden(np, networks, X)))


def start(rng: np.random.Generator, X: np.ndarray, dimensions: int) -> Networks:
    """Draw weights by Glorot and Bengio (2010); the decoder starts at the mean of the data."""
    D = X.shape[1]

    def drawn(wide: int, narrow: int) -> Layer:
        limit = np.sqrt(6 / (wide + narrow))
        weights = rng.uniform(-limit, limit, (wide, narrow)).astype(np.float32)
        return weights, np.zeros(narrow, np.float32)

    mean = X.mean(axis=0, dtype=np.float64)
    share = np.clip(mean, 1e-3, 1 - 1e-3)
    sizes = (D, HIDDEN), (HIDDEN, dimensions), (HIDDEN, dimensions), (dimensions, HIDDEN)
    layers = [drawn(*size) for size in (*sizes, (HIDDEN, D))]
    layers[-1] = layers[-1][0], np.log(share / (1 - share)).astype(np.float32)
    return Networks(mean.astype(np.float32), *layers)


def negative_bound(xp: Any, networks: Networks, X: Any, noise: Any) -> Any:
    """Return the negative evidence lower bound per row, in nats, with one sampled code per row.

    Rows are X (m, D), `noise` (m, d) is standard normal; `xp` is NumPy, or JAX's NumPy in training.
    A grey value x is the probability of 1 in a Bernoulli distribution.
    """
    inner = hidden(xp, networks, X)
    mean, log_variance = applied(networks.code, inner), applied(networks.spread, inner)
    codes = mean + xp.exp(log_variance / 2) * noise
    out = applied(networks.picture, xp.maximum(applied(networks.outward, codes), 0))
    misfit = xp.logaddexp(0, out) - X * out
    divergence = 0.5 * (xp.exp(log_variance) + mean**2 - 1 - log_variance)
    return (misfit.sum(axis=1) + divergence.sum(axis=1)).mean()


class Digits(NamedTuple):
    """Digits and their codes."""

    images: np.ndarray  # (N, 28, 28) uint8
    names: list[str]  # digit names
    codes: np.ndarray  # (N,) indices of names
    Y: np.ndarray  # (N, d) codes of the autoencoder


TRAINING = ("n_rows", "dimensions", "epochs", "seed")
_LAST: dict[tuple[int, ...], Digits] = {}


def fitted_digits(options: Options, report: Report) -> tuple[Digits, PanelFit]:
    """Open the digits, encode them by an autoencoder, and fit aPPCA to the codes."""
    n_rows, dimensions, epochs, seed = key = tuple(options[name] for name in TRAINING)
    if key not in _LAST:
        report("opening MNIST", 0.0)
        dataset = load("mnist", n=n_rows)
        X = Preprocessing(divide=255.0).fit(dataset.X).transform(dataset.X)
        networks = train(X, dimensions, epochs, seed, lambda stage, x: report(stage, 0.85 * x))
        names, codes = categories(next(iter(dataset.labels.values())))
        images, Y = dataset.images(np.arange(dataset.n_rows)), encode(networks, X)
        _LAST.clear()
        _LAST[key] = Digits(images, names, codes, Y.astype(np.float64))
    digits = _LAST[key]
    return digits, fit(digits.Y, options, report, 0.85, 0.95)


def slant(images: np.ndarray) -> np.ndarray:
    """Return the slant (N,) of uint8 images (N, h, w) in degrees, positive to the right.

    From second moments of the ink, tan(slant) = cov(x, -y) / var(y), the shear of the glyph.
    """
    n, h, w = images.shape
    light = images.reshape(n, -1).astype(np.float64)
    total = np.maximum(light.sum(axis=1), 1e-12)
    up, right = -np.repeat(np.arange(h, dtype=float), w), np.tile(np.arange(w, dtype=float), h)
    mean_up, mean_right = light @ up / total, light @ right / total
    across = light @ (up * right) / total - mean_up * mean_right
    tall = np.maximum(light @ (up * up) / total - mean_up**2, 1e-12)
    return np.asarray(np.degrees(np.arctan2(across, tall)))


def measures(digits: Digits) -> dict[str, np.ndarray]:
    """Return ink mass in pixels, slant in degrees, and absolute slant, one value per digit."""
    ink = digits.images.sum(axis=(1, 2), dtype=np.float64) / 255.0  # counts fully lit pixels
    leaning = slant(digits.images)
    absolute = {"size of the slant, degrees": np.abs(leaning)}
    return {"ink, pixels": ink, "slant, degrees": leaning} | absolute


def effects(digits: Digits, fitted: PanelFit) -> list[Row]:
    """Compare each measure between each subspace and the other rows, also within classes."""
    rows: list[Row] = []
    for name, values in measures(digits).items():
        means = np.bincount(digits.codes, weights=values) / np.bincount(digits.codes).clip(1)
        adjusted = values - means[digits.codes]  # without differences between classes
        for subspace in fitted.subspaces:
            inside = np.isin(np.arange(len(values)), subspace.rows)
            n, mean, sd, raw, error = components.effect(values, inside)
            *_, same, same_error = components.effect(adjusted, inside)
            above = float(np.mean(values[inside] > np.median(values)))
            row: Row = {"measure": name, "subspace": title(subspace.components), "rows": n}
            row |= {"mean": mean, "sd": sd, "above_median": above}
            row |= {"effect": raw, "effect_error": error}
            row |= {"effect_within_classes": same, "effect_within_classes_error": same_error}
            rows.append(row)
    return rows


def run(options: Options, report: Report, processes: int = 1) -> Outcome:
    """Train, fit, and compare the crowding of every subspace with PCA."""
    digits, fitted = fitted_digits(options, report)
    report("comparing neighbours", 0.95)
    how = {"n_neighbors": options["n_neighbors"], "random_state": options["seed"]}
    rows, arrays, claim = crowded_panels(digits.Y, fitted, digits.codes, digits.names, **how)
    return Outcome({"panels": rows}, arrays, [claim])


def _figures(plots: ModuleType, outcome: Outcome) -> Figures:
    arrays, codes = outcome.arrays, outcome.arrays["codes"]
    drawn = panels(plots, arrays, codes, "Subspace {}, {:,} digits".format, "digits")
    return {"digits": plots.scatters(drawn, arrays["names"].tolist(), columns=2, size=3)}


SIZES = sized(
    (15.0, 60.0, 180.0),
    {"dimensions": 10, "n_components": 3, "n_active": 2, "n_neighbors": 15, "seed": 0}
    | {"n_rows": (2000, 10_000, 10_000), "epochs": (30, 30, 100)},
)
STUDY = Study(
    "digits",
    "Figure 6: Digits encoded by an autoencoder",
    "The paper reduces 10,000 MNIST digits to 10 dimensions with a variational autoencoder. It "
    "compares the three subspaces of aPPCA (K = 3, L = 2) with PCA: many digits are better "
    "separated in the subspaces.",
    **SIZES,
    run=run,
    draw=_figures,
)


ODD = ["1", "3", "5", "7", "9"]
NAMED = (("1", "7"), ("5", "9"))  # pairs that, according to the paper, share many factors
SHUFFLES = 200  # number of label permutations for the null distribution of the grid
FEW_PATHS = 4  # number of importance paths; few are enough, because only supports are used
FAR, FIRST = 3.0, 3  # for the named pairs: minimum deviations from chance, maximum rank


def run_sharing(options: Options, report: Report, processes: int = 1) -> Outcome:
    """Fit, allocate, and count the factors that rows of two classes share."""
    from appca.models.adaptive_fa import AdaptiveFactorAnalysis

    report("opening MNIST", 0.0)
    dataset = load("mnist", per_class=options["per_class"], classes=ODD)
    names, codes = categories(next(iter(dataset.labels.values())))
    dimensions = min(options["dimensions"], dataset.n_rows - 1)
    Y = Preprocessing(divide=255.0, pca=dimensions).fit(dataset.X).transform(dataset.X)
    model = AdaptiveFactorAnalysis(
        n_components=options["n_components"],
        n_active=options["n_active"],
        n_paths=FEW_PATHS,
        random_state=options["seed"],
        callback=reporting("fitting aFA", report, 0.05, 0.9),
    ).fit(Y)
    report("choosing the factors of each digit", 0.9)
    return shared_factors(model.allocate(Y), codes, names, options["seed"])


def shared_factors(
    active: np.ndarray, codes: np.ndarray, names: list[str], seed: int = 0
) -> Outcome:
    """Compute grid, popularity and claims from the allocation (N, K)."""
    n, rng = len(names), np.random.default_rng(seed)
    shares = components.sharing(active, codes, n)
    shuffled = (rng.permutation(codes) for _ in range(SHUFFLES))
    # null distribution of the grid, from permuted labels
    chance = np.std([components.sharing(active, each, n).shared for each in shuffled], axis=0)
    far = (shares.shared - shares.overall) / np.maximum(chance, 1e-12)
    grid = shares.shared / np.nanmax(shares.shared)
    measured = {"shared": shares.shared, "of_the_most": grid, "deviation": far}
    rows: list[Row] = [
        {"digit": names[a], "other": names[b]}
        | {key: float(grid[a, b]) for key, grid in measured.items()}
        for a, b in combinations_with_replacement(range(n), 2)
    ]
    used = active.mean(axis=0, dtype=np.float64)
    arrays = {"shared": shares.shared, "counts": shares.counts, "popularity": used}
    arrays |= {"names": np.array(names), "overall": np.array(shares.overall)}
    arrays["n_active"] = np.array(active.sum(axis=1).mean())
    popular: list[Row] = [
        {"rank": rank, "factor": int(k) + 1, "share": float(used[k])}
        for rank, k in enumerate(np.argsort(-used, kind="stable"), start=1)
    ]
    pairs = [pair for pair in combinations(range(n), 2) if not np.isnan(shares.shared[pair])]
    pairs.sort(key=lambda pair: -shares.shared[pair])
    ranks = [(names[first], names[other]) for first, other in pairs]
    tables = {"sharing": rows, "popularity": popular}
    return Outcome(tables, arrays, sharing_claims(rows, ranks, shares.overall))


def sharing_claims(rows: list[Row], ranks: list[tuple[str, str]], overall: float) -> list[Claim]:
    """Judge digits by their largest share, the paper's pairs by rank and by chance."""
    shared = {(row["digit"], row["other"]): row["shared"] for row in rows}
    far = {(row["digit"], row["other"]): row["deviation"] for row in rows}
    same = {digit: shared[digit, digit] for digit, other in shared if digit == other}
    first = [
        value >= max(shared[pair] for pair in shared if digit in pair)
        for digit, value in same.items()
    ]
    measured = f"{share(first)} do: {span(list(same.values()))} factors; "
    measured += f"any two digits share {overall:.2f}"
    number = (share(first), "own class first")
    made = [
        checked("A digit shares most factors with its own class", measured, first, number=number)
    ]
    for pair in (pair for pair in NAMED if pair in shared):
        rank, names = ranks.index(pair) + 1, " and ".join(pair)
        measured = f"{shared[pair]:.2f} factors, rank {rank} of {len(ranks)} pairs, "
        measured += f"{fixed(far[pair], 0)} standard deviations from chance"
        tests = [far[pair] > FAR and rank <= FIRST]
        number = (f"{rank} of {len(ranks)}", f"rank of {names}")
        made.append(checked(f"{names} share many factors", measured, tests, number=number))
    return made


def _sharing_figures(plots: ModuleType, outcome: Outcome) -> Figures:
    from appca.plots.components import circles, popularity_bars

    arrays = outcome.arrays
    used, names, overall = arrays["popularity"], arrays["names"].tolist(), float(arrays["overall"])
    factors = [f"factor {k + 1}" for k in range(len(used))]
    return {
        "grid": circles(arrays["shared"], names, arrays["counts"], overall),
        "popularity": popularity_bars(used, factors, float(arrays["n_active"]) / len(used)),
    }


SHARING = Study(
    "sharing",
    "Figure 5: Factors that digits share",
    "The paper fits aFA with K = 100 to 500 each of the digits 1, 3, 5, 7 and 9. It concludes that "
    "a digit shares most factors with its own class, and that 1 and 7, and 5 and 9, share many. "
    "It does not give L.",
    **sized(
        (10.0, 20.0, 20.0),
        {"dimensions": 350, "n_components": 100, "n_active": 50, "seed": 0}
        | {"per_class": (100, 500, 500)},
    ),
    run=run_sharing,
    draw=_sharing_figures,
)


COLUMNS, LINES = 20, 4
CLEAR, SLIGHT = 0.5, 0.2  # minimum Cohen's d of a clear and of a slight difference


def run_strokes(options: Options, report: Report, processes: int = 1) -> Outcome:
    """Train, fit, sample members, and measure ink and slant in every subspace."""
    digits, fitted = fitted_digits(options, report)
    rows = effects(digits, fitted)
    rng = np.random.default_rng(options["seed"])
    arrays = {"subspaces": np.array([title(part.components) for part in fitted.subspaces])}
    values = [each.astype(np.float32) for each in measures(digits).values()]
    for number, subspace in enumerate(fitted.subspaces):
        arrays[f"rows_{number}"] = rng.permutation(subspace.rows)[: COLUMNS * LINES]
        for place, measured in enumerate(values):
            arrays[f"values_{number}_{place}"] = measured[subspace.rows]
    return Outcome({"strokes": rows}, arrays, stroke_claims(rows))


def stroke_claims(rows: list[Row]) -> list[Claim]:
    """Judge ink and slant by the largest difference of a subspace from all other digits."""
    ink, made = rows[0]["measure"], []
    for what in ("thickness", "slant"):
        judged = [row for row in rows if (row["measure"] == ink) == (what == "thickness")]
        most = max(judged, key=lambda row: abs(float(row["effect"])))
        size = abs(most["effect"])
        measured = f"{most['measure'].split(',')[0]} in {most['subspace']} differs from the other "
        measured += f"digits by {fixed(most['effect'])} (± {most['effect_error']:.2f}) standard "
        measured += f"deviations, within classes by {fixed(most['effect_within_classes'])}"
        tests = [size >= CLEAR, size >= SLIGHT]
        number = (f"{minus(format(most['effect'], '+.2f'))} sd", f"{what} in {most['subspace']}")
        made.append(checked(f"The subspaces differ in {what}", measured, tests, number=number))
    return made


def _stroke_figures(plots: ModuleType, outcome: Outcome) -> Figures:
    arrays, drawn = outcome.arrays, {}
    subspaces = list(enumerate(arrays["subspaces"].tolist()))
    names = dict.fromkeys(str(row["measure"]) for row in outcome.tables["strokes"])
    for n, name in subspaces:
        if (images := images_of("mnist", arrays[f"rows_{n}"])) is not None:
            drawn[f"Subspace {name}, {len(arrays[f'values_{n}_0']):,} digits"] = images
    spread = {
        measure: {subspace: arrays[f"values_{n}_{place}"] for n, subspace in subspaces}
        for place, measure in enumerate(names)
    }
    pictures = {"members": plots.sheets(drawn, COLUMNS, 1.5)} if drawn else {}
    return pictures | {"spread": plots.boxes(spread)}


STROKES = Study(
    "strokes",
    "Figure 7: Thickness and slant of the digits in each subspace",
    "The paper shows random digits from each subspace, and states that most in one are thicker "
    "and most in another are slanted. It gives no numbers.",
    revision=2,
    **SIZES,
    run=run_strokes,
    draw=_stroke_figures,
)
