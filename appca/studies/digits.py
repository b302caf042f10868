"""Figures 5 to 7: handwritten digits behind an autoencoder, and factors that odd digits share."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from appca.analysis.components import (
    closest_pairs,
    effect,
    ink,
    popularity,
    sharing,
    slant,
    within_classes,
)
from appca.analysis.subspaces import title
from appca.data.preprocessing import Preprocessing
from appca.data.sources import load
from appca.studies.fitting import (
    PCA_AXES,
    PanelFit,
    codes_of,
    crowded_panels,
    crowding_claim,
    fit,
    images_of,
    reporting,
    subspace_panels,
)
from appca.studies.study import (
    Claim,
    Figures,
    Options,
    Outcome,
    Report,
    Row,
    Study,
    checked,
    share,
    span,
)
from appca.words import InputError, fixed, minus, naming_extra

HIDDEN = 400  # H, the width of the layer between
BATCH, RATE = 128, 1e-3  # rows of one step of Adam, fewer of small data; and its size
REPORT_EVERY = 25  # steps
_BLOCK_VALUES = 1 << 21


class Networks(NamedTuple):
    """Parameters of the autoencoder, and the mean of the data."""

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

    def hidden(self, xp: Any, X: Any) -> Any:
        """Hidden layer (N, H) of the encoder; `xp` is NumPy, or JAX's NumPy while training."""
        return xp.maximum((X - self.shift) @ self.inward + self.inward_bias, 0)


def train(
    X: np.ndarray,
    dimensions: int,
    epochs: int,
    seed: int,
    report: Callable[[str, float], None] = lambda _stage, _share: None,
) -> Networks:
    """Train both networks on rows X (N, D), float32 between 0 and 1.

    `report` gets (stage, fraction) every few steps; an exception from it ends the training.
    Raises InputError when JAX or optax is missing, or the training diverges.
    """
    rng = np.random.default_rng(seed)
    begin, step = _compiled()
    networks, state = begin(start(rng, X, dimensions))
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
    hidden = (networks.hidden(np, X[place : place + step]) for place in range(0, len(X), step))
    return np.concatenate([layer @ networks.code + networks.code_bias for layer in hidden])


def start(rng: np.random.Generator, X: np.ndarray, dimensions: int) -> Networks:
    """Weights of Glorot and Bengio (2010); the decoder begins at the mean of the data."""
    D = X.shape[1]

    def drawn(wide: int, narrow: int) -> list[np.ndarray]:
        """Return weights and zero biases."""
        limit = np.sqrt(6 / (wide + narrow))
        weights = rng.uniform(-limit, limit, (wide, narrow)).astype(np.float32)
        return [weights, np.zeros(narrow, np.float32)]

    mean = X.mean(axis=0, dtype=np.float64)
    share = np.clip(mean, 1e-3, 1 - 1e-3)
    sizes = (D, HIDDEN), (HIDDEN, dimensions), (HIDDEN, dimensions), (dimensions, HIDDEN)
    layers = [part for size in (*sizes, (HIDDEN, D)) for part in drawn(*size)]
    layers[-1] = np.log(share / (1 - share)).astype(np.float32)
    return Networks(mean.astype(np.float32), *layers)


def negative_bound(xp: Any, networks: Networks, X: Any, noise: Any) -> Any:
    """Negative evidence lower bound per row, in nats, with one draw of each row's code.

    Of rows X (m, D), by standard normal noise (m, d); `xp` is NumPy, or JAX's NumPy. A grey value x
    counts as a coin that shows 1 with probability x.
    """
    mean = networks.hidden(xp, X) @ networks.code + networks.code_bias
    log_variance = networks.hidden(xp, X) @ networks.spread + networks.spread_bias
    codes = mean + xp.exp(log_variance / 2) * noise
    decoded = xp.maximum(codes @ networks.outward + networks.outward_bias, 0)
    out = decoded @ networks.picture + networks.picture_bias
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
    Y: np.ndarray  # (N, d) codes of the autoencoder


_LAST: dict[tuple[int, ...], Digits] = {}  # two experiments in one process share the training


def coded(options: Options, report: Report, end: float) -> Digits:
    """Open the digits and encode them by an autoencoder; report up to share `end`."""
    names = ("n_rows", "dimensions", "epochs", "seed")
    key = tuple(options[name] for name in names)
    if key not in _LAST:
        report("opening MNIST", 0.0)
        dataset = load("mnist", n=options["n_rows"])
        X = Preprocessing(divide=255.0).fit(dataset.X).transform(dataset.X)
        _, dimensions, epochs, seed = key

        def tick(stage: str, share: float) -> None:
            report(stage, end * share)

        networks = train(X, dimensions, epochs, seed, tick)
        labels = codes_of(next(iter(dataset.labels.values())))
        images = dataset.images(np.arange(dataset.n_rows))
        _LAST.clear()
        _LAST[key] = Digits(images, *labels, encode(networks, X).astype(np.float64))
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
    report("comparing neighbours", 0.95)
    how = {"n_neighbors": options["n_neighbors"], "random_state": options["seed"]}
    rows, arrays = crowded_panels(digits.Y, fitted, digits.codes, digits.names, **how)
    tables = {"panels": rows, "classes": class_shares(digits, fitted)}
    tables["effects"] = effects(digits, fitted)
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


ODD = ["1", "3", "5", "7", "9"]
NAMED = (("1", "7"), ("5", "9"))  # pairs that the paper says share much
SHUFFLES = 200  # of the labels, for what chance does to the grid
FEW_PATHS = 4  # of the sums over sets that only the likelihood needs
FAR, FIRST = 3.0, 3  # standard deviations of chance and rank of a pair that shares much


def run_sharing(options: Options, report: Report, processes: int = 1) -> Outcome:
    """Fit, allocate, and count the factors that rows of two classes share."""
    from appca.models.adaptive_fa import AdaptiveFactorAnalysis

    report("opening MNIST", 0.0)
    dataset = load("mnist", per_class=options["per_class"], classes=ODD)
    names, codes = codes_of(next(iter(dataset.labels.values())))
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
    """Make grid, popularity and claims of the allocation (N, K)."""
    shares = sharing(active, codes, len(names))
    rng = np.random.default_rng(seed)
    drawn = [sharing(active, rng.permutation(codes), len(names)).shared for _ in range(SHUFFLES)]
    chance = np.std(drawn, axis=0)  # of the grid when the labels are permuted at random
    rows: list[Row] = [
        {
            "digit": names[a],
            "other": names[b],
            "shared": float(shares.shared[a, b]),
            "of_the_most": float(shares.grid[a, b]),
            "deviation": float((shares.shared[a, b] - shares.overall) / max(chance[a, b], 1e-12)),
        }
        for a in range(len(names))
        for b in range(a, len(names))
    ]
    used = popularity(active)
    arrays = {"shared": shares.shared, "counts": shares.counts, "popularity": used}
    arrays |= {"names": np.array(names), "overall": np.array(shares.overall)}
    arrays["n_active"] = np.array(active.sum(axis=1).mean())
    popular: list[Row] = [
        {"rank": rank + 1, "factor": int(k) + 1, "share": float(used[k])}
        for rank, k in enumerate(np.argsort(-used, kind="stable"))
    ]
    ranks = [(names[pair.first], names[pair.second]) for pair in closest_pairs(shares)]
    tables = {"sharing": rows, "popularity": popular}
    return Outcome(tables, arrays, sharing_claims(rows, ranks, shares.overall))


def sharing_claims(rows: list[Row], ranks: list[tuple[str, str]], overall: float) -> list[Claim]:
    """Judge digits by their largest share, the pairs of the paper by rank and by chance."""
    shared = {(row["digit"], row["other"]): row["shared"] for row in rows}
    far = {(row["digit"], row["other"]): row["deviation"] for row in rows}
    same = {digit: shared[digit, digit] for digit, other in shared if digit == other}
    first = [
        value >= max(shared[pair] for pair in shared if digit in pair)
        for digit, value in same.items()
    ]
    made = [
        checked(
            "A digit shares most factors with its own kind",
            f"{share(first)} do: {span(list(same.values()))} factors, any two digits {overall:.2f}",
            first,
            number=(share(first), "own kind first"),
        )
    ]
    for pair in (pair for pair in NAMED if pair in shared):
        rank, names = ranks.index(pair) + 1, " and ".join(pair)
        measured = (
            f"{shared[pair]:.2f} factors, number {rank} of {len(ranks)} pairs, "
            f"{fixed(far[pair], 0)} standard deviations from chance"
        )
        tests = [far[pair] > FAR and rank <= FIRST]
        number = (f"{rank} of {len(ranks)}", f"rank of {names}")
        made.append(checked(f"{names} share much", measured, tests, number=number))
    return made


def sharing_figures(outcome: Outcome) -> Figures:
    """Circles between the digits, and how popular each factor is."""
    from appca.plots.components import circles, popularity_bars

    arrays = outcome.arrays
    used = arrays["popularity"]
    factors = [f"factor {k + 1}" for k in range(len(used))]
    even = float(arrays["n_active"]) / len(used)
    return {
        "grid": circles(
            arrays["shared"], arrays["names"].tolist(), arrays["counts"], float(arrays["overall"])
        ),
        "popularity": popularity_bars(used, factors, even),
    }


_SHARING_SIZE = {"dimensions": 350, "n_components": 100, "n_active": 50, "seed": 0}
SHARING = Study(
    name="sharing",
    title="Factors that digits share",
    paper=(
        "The paper fits aFA to 500 each of the digits 1, 3, 5, 7 and 9, and reads from a grid that "
        "a digit shares most factors with its own kind, and that 1 and 7, and 5 and 9, share much. "
        "K is 100; it does not say L."
    ),
    revision=1,
    sizes={
        "quick": {**_SHARING_SIZE, "per_class": 100},
        "default": {**_SHARING_SIZE, "per_class": 500},
        "full": {**_SHARING_SIZE, "per_class": 500},
    },
    takes={"quick": 10.0, "default": 20.0, "full": 20.0},
    run=run_sharing,
    figures=sharing_figures,
)


COLUMNS, LINES = 20, 4
CLEAR, SLIGHT = 0.5, 0.2  # standard deviations, as is usual for Cohen's d


def run_strokes(options: Options, report: Report, processes: int = 1) -> Outcome:
    """Train, fit, draw members at random, and measure ink and slant in every subspace."""
    digits = coded(options, report, 0.9)
    fitted = fit(digits.Y, options, report, 0.9, 1.0)
    rows = effects(digits, fitted)
    rng = np.random.default_rng(options["seed"])
    arrays, values = {}, measures(digits)
    for number, subspace in enumerate(fitted.subspaces):
        drawn = rng.permutation(subspace.rows)[: COLUMNS * LINES]
        arrays[f"rows_{number}"] = drawn
        for place, measured in enumerate(values.values()):
            arrays[f"values_{number}_{place}"] = measured[subspace.rows].astype(np.float32)
    arrays["subspaces"] = np.array([title(part.components) for part in fitted.subspaces])
    return Outcome({"strokes": rows}, arrays, stroke_claims(rows))


def stroke_claims(rows: list[Row]) -> list[Claim]:
    """Judge ink and slant by the largest difference of a subspace from all other digits.

    A claim holds from `CLEAR` on, and partly from `SLIGHT` on.
    """
    ink, *_ = dict.fromkeys(row["measure"] for row in rows)
    made = []
    for what, of in (("thickness", True), ("slant", False)):
        judged = [row for row in rows if (row["measure"] == ink) == of]
        most = max(judged, key=lambda row: abs(float(row["effect"])))
        size = abs(most["effect"])
        measured = (
            f"{most['measure'].split(',')[0]} of {most['subspace']}: {fixed(most['effect'])} "
            f"(± {most['effect_error']:.2f}) standard deviations from the other digits, "
            f"{fixed(most['effect_within_classes'])} within a class"
        )
        tests = [size >= CLEAR, size >= SLIGHT]
        number = (f"{minus(format(most['effect'], '+.2f'))} sd", f"{what} in {most['subspace']}")
        made.append(checked(f"The subspaces differ in {what}", measured, tests, number=number))
    return made


def stroke_figures(outcome: Outcome) -> Figures:
    """Members of each subspace drawn at random, if the person has them; the measures' spread."""
    from appca.plots.studies import boxes, sheets

    arrays, rows = outcome.arrays, outcome.tables["strokes"]
    subspaces = arrays["subspaces"].tolist()
    names = list(dict.fromkeys(str(row["measure"]) for row in rows))
    drawn = {
        f"Subspace {name}, {len(arrays[f'values_{number}_0']):,} digits": images
        for number, name in enumerate(subspaces)
        if (images := images_of("mnist", arrays[f"rows_{number}"])) is not None
    }
    spread = {
        name: {
            subspace: arrays[f"values_{number}_{place}"]
            for number, subspace in enumerate(subspaces)
        }
        for place, name in enumerate(names)
    }
    pictures = {"members": sheets(drawn, COLUMNS, 1.5)} if drawn else {}
    return pictures | {"spread": boxes(spread)}


STROKES = Study(
    name="strokes",
    title="Thickness and slant of the digits in each subspace",
    paper=(
        "The paper shows digits drawn at random from each subspace, and says that most in one are "
        "thicker and most in another slanted. It gives no numbers."
    ),
    revision=2,
    sizes=SIZES,
    takes={"quick": 15.0, "default": 60.0, "full": 180.0},
    run=run_strokes,
    figures=stroke_figures,
)
