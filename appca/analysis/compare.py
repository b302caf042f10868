"""Compare fits: matched components, variants of adaptive PPCA, and rival methods.

All methods are fitted to the same rows and features and scored on the same held-out rows, so that
differences are taken row by row and have a standard error. Features with less than 5% of the mean
variance, or whose variance rests on fewer than two rows, are left out for all of them: there a
noise variance per feature makes a density arbitrarily large, which says nothing about the model.
"""

import inspect
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from appca.analysis.campaign import Campaign, Measure, Step, sample_of
from appca.analysis.fitted import OfModel
from appca.analysis.subspaces import supports
from appca.data.dataset import Dataset
from appca.data.preprocessing import Preprocessing
from appca.words import InputError, counted, percent

LEAST = 0.5  # |cos|: more than 60 degrees apart is another component, not the same one changed


class ComponentPair(NamedTuple):
    """A component of one fit and its counterpart, counted from 0."""

    first: int
    second: int
    cosine: float  # absolute


class Moves(NamedTuple):
    """How two fits distribute the rows."""

    moved: np.ndarray  # (N,) bool
    overlap: float  # of a row's components: shared ones by all that either fit gives it, averaged
    rand: float  # adjusted Rand index of the two partitions into subspaces; 1 is the same


def matched(first: np.ndarray, second: np.ndarray, least: float = LEAST) -> list[ComponentPair]:
    """Pair the components (K, D) and (K', D) of two fits, unless their |cos| is below `least`.

    The pairs are in the order of the first fit. Unused components may be zero and have no
    counterpart. Raises ValueError when the features differ.
    """
    from appca.models.draws import match

    if first.shape[1] != second.shape[1]:
        msg = (
            "Components can be matched only in the same space; got "
            f"{first.shape[1]} and {second.shape[1]} features: bring both back to the data first."
        )
        raise ValueError(msg)
    matches = zip(*match(first, second), strict=True)
    every = (ComponentPair(int(i), int(j), float(cosine)) for i, j, _, cosine in matches)
    return [pair for pair in every if pair.cosine >= max(least, 1e-9)]


def moves(first: np.ndarray, second: np.ndarray, pairs: list[ComponentPair]) -> Moves:
    """Compare which components two fits give to the same rows, (N, K) and (N, K') bool.

    `pairs` are the components that are the same. Raises ValueError when the numbers of rows differ.
    """
    if len(first) != len(second):
        msg = (
            f"Rows can be compared only between fits of the same data; got {len(first)} and "
            f"{len(second)} rows."
        )
        raise ValueError(msg)
    from sklearn.metrics import adjusted_rand_score

    mine, theirs = [pair.first for pair in pairs], [pair.second for pair in pairs]
    both = (first[:, mine] & second[:, theirs]).sum(axis=1)
    either = first.sum(axis=1) + second.sum(axis=1) - both
    overlap = np.where(either > 0, both / np.maximum(either, 1), 1.0)
    rand = adjusted_rand_score(supports(first).codes, supports(second).codes)
    return Moves(both < either, float(overlap.mean()), float(rand))


Report = Callable[[float], object]  # share done; raising from it ends the work
Clock = Callable[[], float]
_FA_PASSES = 20  # between two looks at the clock
_LEAST_NOISE = 1e-6  # of a feature, relative to the average: below, a density says nothing
GAUSSIAN_FLOOR = 1e-4  # of the mean variance, added to the variances of each piece
PIECES = (1, 2, 4, 8, 16, 32)
_BLOCK_VALUES = 1 << 22


class Split(NamedTuple):
    """The rows all methods see."""

    train: np.ndarray  # (n, D) preprocessed
    test: np.ndarray  # (m, D) preprocessed with what was learned of the others
    dataset: Dataset  # the n rows as they were
    preprocessing: dict[str, Any]


class RivalProjection(NamedTuple):
    """What a method made of the rows."""

    scores: np.ndarray  # (n, q) of the rows it was fitted to
    seconds: float  # of fitting, and of projecting these rows
    log_likelihood: np.ndarray | None = None  # (m,) nats, of the rows held out
    reconstruction: np.ndarray | None = None  # (m, D) of the rows held out
    note: str = ""  # what a reader must know about the numbers
    n_parameters: int | None = None  # free ones, where they are counted
    at_floor: float = 0.0  # share of the noise variances that ended at their floor


class TimeUp(Exception):
    """A method has used up its time and has nothing to show."""


class Cap:
    """The time a method may take; counts from its making."""

    def __init__(self, seconds: float, clock: Clock = time.perf_counter) -> None:
        self.seconds, self.clock = seconds, clock
        self.began = clock()

    def passed(self) -> float:
        """Return the seconds since the beginning."""
        return self.clock() - self.began

    def over(self) -> bool:
        """Whether the time is up."""
        return self.passed() > self.seconds

    def check(self, *_progress: object) -> None:
        """Raise `TimeUp` when the time is up."""
        if self.over():
            raise TimeUp


def ours(
    kind: type, parameters: dict[str, Any], split: Split, cap: Cap, report: Report
) -> RivalProjection:
    """Fit one of this package's estimators; out of time it keeps what it has."""
    stopped = False

    def callback(_progress: object) -> None:
        nonlocal stopped
        report(min(cap.passed() / cap.seconds, 1.0))
        if cap.over():
            stopped = True
            raise StopIteration

    keywords = dict(parameters)
    if "callback" in inspect.signature(kind).parameters:
        keywords["callback"] = callback
    model: Any = kind(**keywords).fit(split.train)
    described = model.describe(split.train)
    seconds = cap.passed()
    others = model.describe(split.test)
    notes = [f"stopped after {cap.seconds:g} s, not converged"] if stopped else []
    if others.standard_error.any():
        notes.append("log-likelihood estimated by sampling")
    density = others.log_likelihood
    if not np.all(model.noise_variance_):
        notes.append("leaves features out, so its density is of other data")
        density = None
    return RivalProjection(
        described.scores,
        seconds,
        density,
        model.inverse_transform(others.scores),
        "; ".join(notes),
        getattr(model, "n_parameters_", None),
        share_at_floor(model.noise_variance_, split.train),
    )


def share_at_floor(noise_variance: float | np.ndarray, Y: np.ndarray) -> float:
    """Return the share of the noise variances of a fit to rows Y (n, D) that are at their floor.

    Constant features, whose noise variance is 0, do not count.
    """
    from appca.models.em import NOISE_FLOOR, floor_shares

    noise, mean, (n, D) = np.atleast_1d(noise_variance), Y.mean(axis=0, dtype=np.float64), Y.shape
    power, fourth, step = np.zeros(D), np.zeros(D), max(1, _BLOCK_VALUES // D)
    for first in range(0, n, step):
        squares = np.square(Y[first : first + step] - mean)
        power += squares.sum(axis=0)
        fourth += np.square(squares).sum(axis=0)
    varying = np.square(power) / np.where(fourth > 0.0, fourth, 1.0)
    by_feature = floor_shares(varying, n) * power / n
    least = by_feature if len(noise) > 1 else NOISE_FLOOR * power.mean() / n
    return float((noise <= 1.001 * least)[noise > 0].mean())


def pca(q: int, split: Split, cap: Cap, report: Report) -> RivalProjection:
    """Fit scikit-learn's PCA; its density is that of probabilistic PCA."""
    from sklearn.decomposition import PCA

    report(0.0)
    model = PCA(q, random_state=0).fit(split.train)
    scores = model.transform(split.train)
    seconds = cap.passed()
    back = model.inverse_transform(model.transform(split.test))
    noise = float(model.noise_variance_)
    if not noise > 0:
        return RivalProjection(scores, seconds, None, back, "no noise is left, so no density")
    loadings = (
        model.components_ * np.sqrt(np.maximum(model.explained_variance_ - noise, 0))[:, None]
    )
    density = log_density(split.test, model.mean_, loadings, np.full(len(model.mean_), noise))
    return RivalProjection(scores, seconds, density, back)


def factor_analysis(q: int, split: Split, cap: Cap, report: Report) -> RivalProjection:
    """Fit scikit-learn's FactorAnalysis; out of time it keeps what it has.

    Its state is the noise variances alone, so it can be fitted in parts and looked at between.
    """
    from sklearn.decomposition import FactorAnalysis

    passes, converged = 0, False
    noise: Any = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a part of the passes did not settle is known
        while not converged and (passes == 0 or not cap.over()) and passes < 1000:
            report(min(cap.passed() / cap.seconds, 1.0))
            model = FactorAnalysis(
                q, max_iter=_FA_PASSES, noise_variance_init=noise, random_state=0
            ).fit(split.train)
            noise, passes = model.noise_variance_, passes + model.n_iter_
            converged = model.n_iter_ < _FA_PASSES
    scores = model.transform(split.train)
    seconds = cap.passed()
    back = model.transform(split.test) @ model.components_ + model.mean_
    note = "" if converged else f"stopped after {passes} iterations, not converged"
    if noise.min() < _LEAST_NOISE * noise.mean():
        reason = "some features hardly vary, so its density has no bound"
        return RivalProjection(scores, seconds, None, back, "; ".join(filter(None, [note, reason])))
    density = log_density(split.test, model.mean_, model.components_, noise)
    free = noise.size * (q + 2) - q * (q - 1) // 2
    return RivalProjection(scores, seconds, density, back, note, n_parameters=free)


def mixture(
    pieces: int, n_components: int, split: Split, cap: Cap, report: Report, **kind: Any
) -> RivalProjection:
    """Fit a mixture of probabilistic PCA, or by `kind` another `MixtureOfFactorAnalysers`."""
    from appca.rivals import FLOOR, MixtureOfFactorAnalysers

    report(0.0)
    model = MixtureOfFactorAnalysers(pieces, n_components, random_state=0, **kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(split.train)
    scores, noise = model.transform(split.train), model.noise_variance_
    least = FLOOR * split.train.var(axis=0, dtype=np.float64).mean()
    return RivalProjection(
        scores,
        cap.passed(),
        model.score_samples(split.test),
        model.reconstruct(split.test),
        f"{model.n_parameters_:,} parameters",
        model.n_parameters_,
        float((noise <= 1.001 * least).mean()),
    )


def gaussian_mixture(kind: str, split: Split, cap: Cap, report: Report) -> RivalProjection:
    """Fit scikit-learn's GaussianMixture, "diag" or "full", with the pieces that BIC chooses.

    Raises ValueError when a full covariance has too few rows.
    """
    from sklearn.mixture import GaussianMixture

    train, test = (rows.astype(np.float64) for rows in (split.train, split.test))
    (n, D), least = train.shape, GAUSSIAN_FLOOR * float(train.var(axis=0).mean())
    most = n // (2 * D) if kind == "full" else n // 10
    if most < 1:
        msg = f"full covariances of {D:,} features need at least {2 * D:,} rows; there are {n:,}"
        raise ValueError(msg)
    model: Any = None
    bic, stopped = np.inf, ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for place, pieces in enumerate(size for size in PIECES if size <= most):
            if model is not None and cap.over():
                stopped = f"stopped after {cap.seconds:g} s, more not tried"
                break
            report(min(max(cap.passed() / cap.seconds, place / len(PIECES)), 1.0))
            again = GaussianMixture(pieces, covariance_type=kind, reg_covar=least, random_state=0)
            value = again.fit(train).bic(train)
            if value >= bic:
                break
            model, bic = again, value
    variances = model.covariances_ if kind == "diag" else np.linalg.eigvalsh(model.covariances_)
    free = D if kind == "diag" else D * (D + 1) // 2
    return RivalProjection(
        model.predict_proba(train),
        cap.passed(),
        model.score_samples(test),
        model.predict_proba(test) @ model.means_,
        ", ".join(filter(None, [counted(len(model.means_), "piece"), stopped])),
        len(model.means_) * (D + free + 1) - 1,
        float((variances <= 2.0 * least).mean()),
    )


def subspaces(
    pieces: int, n_components: int, split: Split, cap: Cap, report: Report
) -> RivalProjection:
    """Fit k-subspaces: every row belongs to the nearest of some affine subspaces."""
    from appca.rivals import KSubspaces

    report(0.0)
    model = KSubspaces(pieces, n_components, random_state=0).fit(split.train)
    scores, seconds = model.transform(split.train), cap.passed()
    return RivalProjection(scores, seconds, None, model.reconstruct(split.test))


def sparse_pca(q: int, split: Split, cap: Cap, report: Report) -> RivalProjection:
    """Fit scikit-learn's MiniBatchSparsePCA."""
    from sklearn.decomposition import MiniBatchSparsePCA

    def callback(_of_the_method: dict[str, Any]) -> None:
        report(min(cap.passed() / cap.seconds, 1.0))
        cap.check()

    model = MiniBatchSparsePCA(q, random_state=0, callback=callback).fit(split.train)
    scores = model.transform(split.train)
    seconds = cap.passed()
    return RivalProjection(
        scores, seconds, None, model.inverse_transform(model.transform(split.test))
    )


def dictionary(q: int, n_active: int, split: Split, cap: Cap, report: Report) -> RivalProjection:
    """Fit scikit-learn's MiniBatchDictionaryLearning to centred rows; codes by OMP.

    Out of time it keeps the dictionary it has.
    """
    from sklearn.decomposition import MiniBatchDictionaryLearning

    mean = split.train.mean(axis=0, dtype=np.float64).astype(split.train.dtype)
    centred = split.train - mean
    learned: dict[str, np.ndarray] = {}

    def callback(of_the_method: dict[str, Any]) -> None:
        report(min(cap.passed() / cap.seconds, 1.0))
        if cap.over() and "dictionary" in of_the_method:
            learned["atoms"] = of_the_method["dictionary"].copy()
        cap.check()

    model = MiniBatchDictionaryLearning(
        q,
        transform_algorithm="omp",
        transform_n_nonzero_coefs=n_active,
        random_state=0,
        callback=callback,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # atoms that lean on one another
        try:
            model.fit(centred)
        except TimeUp:
            if not learned:
                raise
            model.components_ = learned["atoms"]
        scores = model.transform(centred)
        seconds = cap.passed()
        back = model.transform(split.test - mean) @ model.components_ + mean
    note = f"stopped after {cap.seconds:g} s, not converged" if learned else ""
    return RivalProjection(scores, seconds, None, back, note)


def umap(split: Split, cap: Cap, report: Report) -> RivalProjection:
    """Lay the rows out by UMAP, neighbours included; importing and compiling is not counted."""
    from appca.analysis.umap import EmbeddingConfig, EmbeddingStore, embed

    def lay_out(dataset: Dataset, told: Callable[[str, float], None]) -> np.ndarray:
        n_neighbors = min(15, dataset.n_rows - 1)
        with tempfile.TemporaryDirectory() as folder:
            config = EmbeddingConfig(dataset.digest, split.preprocessing, n_neighbors)
            store = EmbeddingStore(Path(folder))
            return embed(dataset, config, store, report=told).coordinates

    def warming(_stage: str, _share: float) -> None:
        report(0.0)

    few = split.dataset.take(np.arange(min(60, split.dataset.n_rows)))
    lay_out(few, warming)
    cap.began = cap.clock()

    def told(_stage: str, share: float) -> None:
        report(share)
        cap.check()

    coordinates = lay_out(split.dataset, told)
    return RivalProjection(coordinates, cap.passed())


def log_density(
    Y: np.ndarray, mean: np.ndarray, loadings: np.ndarray, noise: np.ndarray
) -> np.ndarray:
    """Log density (m,), nats, of rows Y (m, D) under y ~ N(mean, W'W + diag(noise)).

    `loadings` are W (q, D), `mean` and the variances `noise` (D,). No D x D matrix is made.
    """
    W = loadings.astype(np.float64) / np.sqrt(noise)  # in units of the noise: W'W + I
    Z = (Y.astype(np.float64) - mean) / np.sqrt(noise)
    inner = np.linalg.cholesky(np.eye(len(W)) + W @ W.T)
    explained = np.linalg.solve(inner, W @ Z.T)
    squares = np.einsum("md,md->m", Z, Z) - np.einsum("qm,qm->m", explained, explained)
    size = 2 * np.log(np.diagonal(inner)).sum() + np.log(noise).sum()
    return np.asarray(-0.5 * (squares + size + len(noise) * np.log(2 * np.pi)))


MOST_ROWS = 3000
LEAST_ROWS = 20
HELD_OUT = 0.3
LEAST_VARIANCE = 0.05  # of a feature, as a share of the mean variance
LEAST_VARYING = 2.001  # rows that the variance of a feature rests on: N over its kurtosis
SECONDS = 120.0  # of a method; a fit that can stop early keeps what it has
CLEAR = 2.0  # standard errors of the paired difference
MOST_LOST = 100.0  # nats on a single row; a method that loses more is named
OUTLYING = 10.0  # times the mean absolute difference: such a loss is not the method's usual one
MOST_AT_FLOOR = 0.2  # of the noise variances, with which a variant is still proposed
PAPER, ROW_SCALES = "paper", "scale"  # variants without extensions, and with the safe one
SWITCHES: dict[str, dict[str, str]] = {  # each extension of the paper's model, and its setting
    "noise": {"noise": "feature"},
    "scale": {"row_scale": "learned"},
    "number": {"n_active": "learned"},
}
VARIANTS = tuple(
    "+".join(name for name, on in zip(SWITCHES, chosen, strict=True) if on) or PAPER
    for chosen in product((True, False), repeat=len(SWITCHES))
)

Method = Callable[[Split, Cap, Report], RivalProjection]


class HeldOutFit(NamedTuple):
    """One method on the held-out rows."""

    log_likelihood: np.ndarray | None  # (m,) nats; None where the method has no density
    n_parameters: int
    seconds: float
    note: str
    at_floor: float = 0.0  # share of the noise variances that ended at their floor


class Ranked(NamedTuple):
    """A method beside the paper's model."""

    key: str
    nats: float  # mean held-out log-likelihood less that of the paper's model, a row
    error: float  # standard error of the mean paired difference
    fit: HeldOutFit
    lost: float = 0.0  # most nats lost on one row against the paper's model (it: the median method)
    usual: float = 0.0  # mean absolute difference from it, nats a row

    @property
    def flaws(self) -> list[str]:
        """Reasons to distrust its number, in words."""
        flaws = []
        if self.fit.at_floor > 0:
            share = percent(self.fit.at_floor, 1 if self.fit.at_floor < 0.1 else 0)
            flaws.append(f"{share} of noise variances at their floor")
        if self.lost > MOST_LOST:
            flaws.append(f"loses {self.lost:,.0f} nats on one row")
        if "stopped" in self.fit.note:
            flaws.append(self.fit.note)
        return flaws

    @property
    def is_reliable(self) -> bool:
        """Whether few noise variances are at their floor and no row alone decides the mean."""
        outlying = self.lost > max(MOST_LOST, OUTLYING * self.usual)
        return self.fit.at_floor <= MOST_AT_FLOOR and not outlying


class ModelAdvice(NamedTuple):
    """The variant to take, and what it is compared with."""

    key: str
    is_best: bool  # clears every other variant by two standard errors
    best_rival: Ranked | None
    lead: float  # over the best rival, nats a row
    lead_error: float


def variant_settings(key: str, n_active: int) -> dict[str, Any]:
    """Return the settings of `AdaptivePPCA` that make a variant."""
    settings: dict[str, Any] = {"noise": "shared", "row_scale": "none", "n_active": n_active}
    for name in key.split("+"):
        settings |= SWITCHES.get(name, {})
    return settings


def _variant(config: "ModelsConfig", key: str) -> Method:
    from appca.models.adaptive_ppca import AdaptivePPCA

    sizes = {"n_components": config.n_components, **variant_settings(key, config.n_active)}
    return partial(ours, AdaptivePPCA, {**config.parameters, **sizes})


def _ppca(config: "ModelsConfig") -> Method:
    from appca.models.ppca import PPCA

    return partial(ours, PPCA, {"n_components": config.n_components, "random_state": 0})


def _mixture(config: "ModelsConfig", **kind: Any) -> Method:
    L = config.n_components if kind.get("loadings") == "common" else config.n_active
    return partial(mixture, config.n_components, L, **kind)


METHODS: dict[str, Callable[["ModelsConfig"], Method]] = {
    **{key: partial(_variant, key=key) for key in reversed(VARIANTS)},
    "ppca": _ppca,
    "fa": lambda config: partial(factor_analysis, config.n_components),
    "mixture": _mixture,
    "mixture_diagonal": partial(_mixture, noise="diagonal"),
    "common": partial(_mixture, loadings="common"),
    "common_diagonal": partial(_mixture, loadings="common", noise="diagonal"),
    "gaussian": lambda _: partial(gaussian_mixture, "diag"),
    "gaussian_full": lambda _: partial(gaussian_mixture, "full"),
}


@dataclass(frozen=True, eq=False)
class ModelsConfig(Campaign, OfModel):
    """Settings of a comparison of models, whose steps are the keys of `METHODS`.

    `parameters` are keywords of `AdaptivePPCA`; each variant sets sizes and extensions. Of more
    rows than `max_rows` a random sample is used. `random_state` draws it and the rows held out.
    """

    folder: ClassVar[str] = "models"

    dataset: str
    preprocessing: dict[str, Any]
    parameters: dict[str, Any]
    n_components: int
    n_active: int
    max_rows: int = MOST_ROWS
    random_state: int = 0
    model: str = "aPPCA"

    def __post_init__(self) -> None:
        super().__post_init__()
        varied = {"n_components", "inference", *(name for on in SWITCHES.values() for name in on)}
        for name in varied & set(self.parameters):
            del self.parameters[name]

    def steps(self) -> list[Step]:
        """Return the keys of the methods, the paper's model first and rivals last."""
        return [(key,) for key in METHODS]

    def fits(self, n_rows: int) -> list[tuple[dict[str, Any], int, float]]:
        """Return settings and rows of the fit of every step; a rival takes half of a variant."""
        rows, K = min(n_rows, self.max_rows), {"n_components": self.n_components}
        variants = [K | variant_settings(key, self.n_active) for key in reversed(VARIANTS)]
        weights = [1.0 if key in VARIANTS else 0.5 for key in METHODS]
        return [(variants[i % len(variants)], rows, weight) for i, weight in enumerate(weights)]

    def measuring(self, dataset: Dataset, callback: Callable[[Any], object] | None) -> Measure:
        """Return what fits a method and scores the held-out rows."""
        del callback
        split = split_of(dataset, self)

        def measure_step(step: Step, report: Report) -> list[Any]:
            try:
                made = METHODS[step[0]](self)(split, Cap(SECONDS), report)
            except (TimeUp, ValueError, np.linalg.LinAlgError) as error:
                made = RivalProjection(np.empty((0, 0)), 0.0, note=str(error) or "out of time")
            density = made.log_likelihood
            values = None if density is None or not np.isfinite(density).all() else density.tolist()
            seconds = round(made.seconds, 3)
            return [values, made.n_parameters or 0, seconds, made.note, made.at_floor]

        return measure_step

    def measured(self, home: Path) -> dict[str, HeldOutFit]:
        """Return what has been measured so far, key to result."""
        return {
            step[0]: HeldOutFit(None if values is None else np.array(values), *rest)
            for step, (values, *rest) in self.records(home).items()
            if step[0] in METHODS
        }


def split_of(dataset: Dataset, config: ModelsConfig) -> Split:
    """Draw the rows, hold out three in ten, and drop features that hardly vary.

    Raises InputError when there are too few rows, or too few features vary.
    """
    rows = sample_of(dataset.n_rows, config.max_rows, config.random_state)
    if len(rows) < LEAST_ROWS:
        msg = f"Comparing models needs at least {LEAST_ROWS} rows; these data have {len(rows)}."
        raise InputError(msg)
    order = np.random.default_rng([config.random_state, 2]).permutation(rows)
    n_test = round(HELD_OUT * len(rows))
    train, test = dataset.take(np.sort(order[n_test:])), dataset.X[np.sort(order[:n_test])]
    fitted = Preprocessing.from_dict(config.preprocessing).fit(train.X)
    X = fitted.transform(train.X)
    variances = X.var(axis=0, dtype=np.float64)
    vary = variances >= LEAST_VARIANCE * variances.mean()
    squares = np.square(X[:, vary] - X[:, vary].mean(axis=0, dtype=np.float64).astype(X.dtype))
    fourth = np.square(squares).mean(axis=0, dtype=np.float64)
    vary[vary] = len(X) * np.square(variances[vary]) > LEAST_VARYING * fourth
    most = min(len(X) - 1, int(vary.sum()) - 1)
    if config.n_components > most:
        msg = (
            f"Comparing models with K = {config.n_components} needs more rows or features that "
            f"vary: at most K = {most} here. Choose a smaller K."
        )
        raise InputError(msg)
    return Split(X[:, vary], fitted.transform(test)[:, vary], train, config.preprocessing)


def ranked_models(fits: dict[str, HeldOutFit]) -> list[Ranked]:
    """Return the methods with a density, best first, relative to the paper's model."""
    densities = {
        key: fit.log_likelihood for key, fit in fits.items() if fit.log_likelihood is not None
    }
    if PAPER not in densities:
        return []
    others = [density for key, density in densities.items() if key != PAPER]
    median = np.median(others, axis=0) if others else densities[PAPER]
    lines = []
    for key, density in densities.items():
        gaps = density - (median if key == PAPER else densities[PAPER])
        lost, usual = max(0.0, -float(gaps.min())), float(np.abs(gaps).mean())
        lines.append(Ranked(key, *difference(fits[key], fits[PAPER]), fits[key], lost, usual))
    return sorted(lines, key=lambda line: -line.nats)


def difference(first: HeldOutFit, second: HeldOutFit) -> tuple[float, float]:
    """Return the mean of the rows' differences in log-likelihood, and its standard error."""
    gaps = np.asarray(first.log_likelihood) - np.asarray(second.log_likelihood)
    return float(gaps.mean()), float(gaps.std(ddof=1) / np.sqrt(len(gaps)))


def advise(lines: list[Ranked]) -> ModelAdvice | None:
    """Return the variant to take, out of the reliable ones if there are any.

    As good as the best is a variant that it does not clear by two standard errors of the paired
    difference. Of these the paper's model comes first, then row scales alone, whose fits have no
    floor of a feature to end at, then the variant of fewest parameters. None before a variant has
    been measured.
    """
    variants = [line for line in lines if line.key in VARIANTS]
    if not variants:
        return None
    variants = [line for line in variants if line.is_reliable] or variants

    def is_as_good(line: Ranked) -> bool:
        lead, error = difference(variants[0].fit, line.fit)
        return lead <= CLEAR * error

    level = [line for line in variants if is_as_good(line)]
    first = {PAPER: 0, ROW_SCALES: 1}
    chosen = min(level, key=lambda line: (first.get(line.key, 2), line.fit.n_parameters))
    others = [line for line in lines if line.key not in VARIANTS]
    lead = difference(chosen.fit, others[0].fit) if others else (np.nan, np.nan)
    return ModelAdvice(chosen.key, len(level) == 1, others[0] if others else None, *lead)
