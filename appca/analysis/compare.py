"""Compare fits: matched components, variants of adaptive PPCA, rival methods, hidden cells.

All methods are fitted to the same rows and features and scored on the same held-out rows, so that
paired differences have a standard error. A feature with less than 5% of the mean variance, or that
fewer than two rows determine, is dropped: with its own noise, its density is arbitrarily large.
"""

import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from appca.analysis.campaign import CLEAR, FitCampaign, Measure, Report, Step, apart, sample_of
from appca.analysis.campaign import MOST_ROWS as MOST_MASKED
from appca.data.dataset import Dataset
from appca.data.preprocessing import Preprocessing
from appca.words import counted, percent, refuse_if

LEAST = 0.5  # minimum |cos| of matched components (60 degrees)


class ComponentPair(NamedTuple):
    """A component of one fit and its counterpart, counted from 0."""

    first: int
    second: int
    cosine: float  # |cos|


def matched(first: np.ndarray, second: np.ndarray) -> list[ComponentPair]:
    """Pair components (K, D) with those (K', D) of |cos| at least `LEAST`, in the first's order."""
    from appca.models.draws import match

    places, theirs, _, cosines = map(np.ndarray.tolist, match(first, second))
    return [pair for pair in map(ComponentPair, places, theirs, cosines) if pair.cosine >= LEAST]


def moves(
    first: np.ndarray, second: np.ndarray, pairs: list[ComponentPair]
) -> tuple[np.ndarray, float]:
    """Return which rows differ in support, (N,), and the mean Jaccard index of their supports."""
    mine, theirs = [pair.first for pair in pairs], [pair.second for pair in pairs]
    both = (first[:, mine] & second[:, theirs]).sum(axis=1)
    either = first.sum(axis=1) + second.sum(axis=1) - both
    return both < either, float(np.where(either > 0, both / np.maximum(either, 1), 1.0).mean())


_FA_PASSES, _LEAST_NOISE = 500, 1e-6  # of factor analysis; relative to the mean variance
GAUSSIAN_FLOOR = 1e-4  # added to all variances, relative to the mean variance
PIECES = (1, 2, 4, 8, 16, 32)
MOST_AT_LIMITS, AT_LIMITS = 0.05, "at their limits"  # maximum share of row scales


class Split(NamedTuple):
    """Training and test rows of all methods."""

    train: np.ndarray  # (n, D), preprocessed
    test: np.ndarray  # (m, D), with the same preprocessing
    dataset: Dataset  # the n training rows before preprocessing
    preprocessing: dict[str, Any]


class RivalProjection(NamedTuple):
    """Scores and held-out results of a method."""

    scores: np.ndarray  # (n, q) of the training rows
    seconds: float  # for fit and projection
    log_likelihood: np.ndarray | None = None  # (m,) nats of the held-out rows
    reconstruction: np.ndarray | None = None  # (m, D) of the held-out rows
    note: str = ""  # a caveat to show
    n_parameters: int = 0  # free parameters; 0 if not counted
    at_floor: float = 0.0  # share of noise variances at their floor


@dataclass
class Cap:
    """A time limit that starts when it is created, and a progress callback."""

    seconds: float
    report: Report = lambda _share: None
    began: float = field(default_factory=time.perf_counter)

    def passed(self) -> float:
        """Return the seconds since the start."""
        return time.perf_counter() - self.began

    def over(self) -> bool:
        """Report the fraction of time used, and return whether the limit is exceeded."""
        self.report(min(self.passed() / self.seconds, 1.0))
        return self.passed() > self.seconds


Method = Callable[[Split, Cap], RivalProjection]


def ours(kind: type, parameters: dict[str, Any], split: Split, cap: Cap) -> RivalProjection:
    """Fit an estimator of this package, and stop at the time limit."""
    stopped = False

    def callback(_progress: object) -> None:
        nonlocal stopped
        stopped = cap.over()
        if stopped:
            raise StopIteration

    model: Any = kind(**parameters | {"callback": callback}).fit(split.train)
    described, seconds = model.describe(split.train), cap.passed()
    others = model.describe(split.test)
    density, notes = others.log_likelihood, []
    if stopped:
        notes.append(f"stopped after {cap.seconds:g} s, not converged")
    limits = share_at_limits(described.row_scales, getattr(model, "row_scale_values_", None))
    if limits > MOST_AT_LIMITS:
        notes.append(f"{percent(limits)} of row scales {AT_LIMITS}")
    if others.standard_error.any():
        notes.append("log-likelihood estimated by sampling")
    if not np.all(model.noise_variance_):
        notes.append("drops features, so its density is not comparable")
        density = None
    back, free = model.inverse_transform(others.scores), getattr(model, "n_parameters_", 0)
    floor, note = share_at_floor(model.noise_variance_, split.train), "; ".join(notes)
    return RivalProjection(described.scores, seconds, density, back, note, free, floor)


def share_at_limits(scales: np.ndarray | None, values: np.ndarray | None) -> float:
    """Return the share of row scales (N,) at an end of their possible values (J,)."""
    if scales is None or values is None or len(values) < 2:
        return 0.0
    return float(((scales < 1.05 * values[0]) | (scales > 0.95 * values[-1])).mean())


def share_at_floor(noise_variance: float | np.ndarray, Y: np.ndarray) -> float:
    """Return the share of positive noise variances at their floor, in a fit to rows Y (n, D)."""
    from appca.models.em import NOISE_FLOOR, floor_shares

    noise, (variance, varying) = np.atleast_1d(noise_variance), _moments(Y)
    by_feature = floor_shares(varying, len(Y)) * variance
    least = by_feature if len(noise) > 1 else NOISE_FLOOR * variance.mean()
    return float((noise <= 1.001 * least)[noise > 0].mean())


def _moments(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the variance (D,) of each feature, and its effective number of rows, N / kurtosis."""
    squares = (np.square(y - y.mean(dtype=np.float64)) for y in Y.T)  # saves memory
    power, fourth = np.array([(y.sum(), y @ y) for y in squares]).T
    return power / len(Y), np.square(power) / np.where(fourth > 0.0, fourth, 1.0)


def pca(q: int, split: Split, cap: Cap) -> RivalProjection:
    """Fit scikit-learn's PCA, without a density: PPCA is a separate method."""
    from sklearn.decomposition import PCA

    cap.report(0.0)
    model = PCA(q, random_state=0).fit(split.train)
    scores, seconds = model.transform(split.train), cap.passed()
    back = model.inverse_transform(model.transform(split.test))
    return RivalProjection(scores, seconds, None, back)


def factor_analysis(q: int, split: Split, cap: Cap) -> RivalProjection:
    """Fit scikit-learn's FactorAnalysis; no density if a feature hardly varies."""
    from sklearn.decomposition import FactorAnalysis

    cap.report(0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the note says if it did not converge
        model = FactorAnalysis(q, max_iter=_FA_PASSES, random_state=0).fit(split.train)
    scores, seconds, noise = model.transform(split.train), cap.passed(), model.noise_variance_
    back = model.transform(split.test) @ model.components_ + model.mean_
    stopped = model.n_iter_ == _FA_PASSES
    notes = [f"stopped after {_FA_PASSES} iterations, not converged"] if stopped else []
    density: Any = log_density(split.test, model.mean_, model.components_, noise)
    if noise.min() < _LEAST_NOISE * noise.mean():
        notes, density = [*notes, "some features hardly vary, so its density is unbounded"], None
    free = len(model.mean_) * (q + 2) - q * (q - 1) // 2
    return RivalProjection(scores, seconds, density, back, "; ".join(notes), free)


def mixture(pieces: int, n_components: int, split: Split, cap: Cap, **kind: Any) -> RivalProjection:
    """Fit a mixture of PPCA, or another `MixtureOfFactorAnalysers` with keywords `kind`."""
    from appca.rivals import FLOOR, MixtureOfFactorAnalysers

    cap.report(0.0)
    model = MixtureOfFactorAnalysers(pieces, n_components, random_state=0, **kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(split.train)
    least = FLOOR * split.train.var(axis=0, dtype=np.float64).mean()
    floor, free = float((model.noise_variance_ <= 1.001 * least).mean()), model.n_parameters_
    scores, seconds = model.transform(split.train), cap.passed()
    density, back = model.score_samples(split.test), model.reconstruct(split.test)
    return RivalProjection(scores, seconds, density, back, f"{free:,} parameters", free, floor)


def gaussian_mixture(kind: str, split: Split, cap: Cap) -> RivalProjection:
    """Fit a "diag" or "full" GaussianMixture, of BIC's size; ValueError for too few rows."""
    from sklearn.mixture import GaussianMixture

    train, test = (rows.astype(np.float64) for rows in (split.train, split.test))
    (n, D), least = train.shape, GAUSSIAN_FLOOR * float(train.var(axis=0).mean())
    most = n // (2 * D) if kind == "full" else n // 10
    msg = f"full covariances of {D:,} features need at least {2 * D:,} rows; there are {n:,}"
    refuse_if(most < 1, msg)
    model: Any = None
    bic = np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for pieces in (size for size in PIECES if size <= most):
            cap.over()
            again = GaussianMixture(pieces, covariance_type=kind, reg_covar=least, random_state=0)
            value = again.fit(train).bic(train)
            if value >= bic:
                break
            model, bic = again, value
    variances = model.covariances_ if kind == "diag" else np.linalg.eigvalsh(model.covariances_)
    free, pieces = D if kind == "diag" else D * (D + 1) // 2, len(model.means_)
    floor, free = float((variances <= 2.0 * least).mean()), pieces * (D + free + 1) - 1
    scores, seconds, note = model.predict_proba(train), cap.passed(), counted(pieces, "piece")
    density, back = model.score_samples(test), model.predict_proba(test) @ model.means_
    return RivalProjection(scores, seconds, density, back, note, free, floor)


def umap(split: Split, cap: Cap) -> RivalProjection:
    """Embed the rows by UMAP, timed without imports and compilation; ValueError if too slow."""
    from appca.analysis.umap import EmbeddingConfig, EmbeddingStore, embed

    few = split.dataset.take(np.arange(min(60, split.dataset.n_rows)))

    def told(_stage: str, _share: float) -> None:
        refuse_if(cap.over() and dataset is not few, f"not finished within {cap.seconds:g} s")

    for dataset in (few, split.dataset):
        cap.began = time.perf_counter()
        config = EmbeddingConfig(dataset.digest, split.preprocessing, min(15, dataset.n_rows - 1))
        with tempfile.TemporaryDirectory() as folder:
            laid_out = embed(dataset, config, EmbeddingStore(Path(folder)), report=told)
    return RivalProjection(laid_out.coordinates, cap.passed())


def log_density(Y: np.ndarray, mean: np.ndarray, B: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Return log densities (m,) of rows Y (m, D) under N(mean, B'B + diag(noise)), in nats."""
    W, Z = B.astype(np.float64) / np.sqrt(noise), (Y.astype(np.float64) - mean) / np.sqrt(noise)
    inner = np.linalg.cholesky(np.eye(len(W)) + W @ W.T)
    explained = np.linalg.solve(inner, W @ Z.T)
    squares = np.einsum("md,md->m", Z, Z) - np.einsum("qm,qm->m", explained, explained)
    size = 2 * np.log(np.diagonal(inner)).sum() + np.log(noise).sum()
    return np.asarray(-0.5 * (squares + size + len(noise) * np.log(2 * np.pi)))


MOST_ROWS, LEAST_ROWS, HELD_OUT = 3000, 20, 0.3
LEAST_VARIANCE = 0.05  # minimum variance of a feature, relative to the mean variance
LEAST_VARYING = 2.001  # minimum N / kurtosis of a feature
SECONDS = 120.0  # time limit per method, for fits that can stop early
MOST_LOST, OUTLYING = 100.0, 10.0  # of a row that is warned of: nats; mean absolute differences
MOST_AT_FLOOR = 0.2  # maximum share of noise variances at the floor
PAPER, ROW_SCALES, VARIANCES = "paper", "scale", "variance"  # variants: one extension or none
LEAST = 0.25  # nats per row that are worth another model
SWITCHES: dict[str, dict[str, str]] = {  # settings of each extension of the paper's model
    "noise": {"noise": "feature"},
    ROW_SCALES: {"row_scale": "learned"},
    "number": {"n_active": "learned"},
    VARIANCES: {"latent_variance": "component"},
}
_MORE = "number", "scale+number", "noise", "noise+number", "noise+scale", "noise+scale+number"
VARIANTS = (PAPER, ROW_SCALES, VARIANCES, *_MORE)
MIXTURES: dict[str, dict[str, Any]] = {  # settings of `MixtureOfFactorAnalysers`
    "mixture": {},
    "mixture_diagonal": {"noise": "diagonal"},
    "common": {"loadings": "common"},
    "common_diagonal": {"loadings": "common", "noise": "diagonal"},
}
METHODS = (*VARIANTS, "ppca", "fa", *MIXTURES, "gaussian", "gaussian_full")


class Ranked(NamedTuple):
    """A method compared with the paper's model."""

    key: str
    nats: float  # mean held-out log-likelihood per row minus that of the paper's model
    error: float  # standard error of the mean paired difference
    fit: RivalProjection
    lost: float = 0.0  # largest loss on one row, nats
    usual: float = 0.0  # mean absolute difference from the paper's model, nats per row

    @property
    def flaws(self) -> list[str]:
        """Reasons to distrust its result, in words."""
        share = percent(self.fit.at_floor, 1 if self.fit.at_floor < 0.1 else 0)
        flaws = {
            f"{share} of noise variances at their floor": self.fit.at_floor > 0,
            f"loses {self.lost:,.0f} nats on one row": self.lost > MOST_LOST,
            self.fit.note: "stopped" in self.fit.note or AT_LIMITS in self.fit.note,
        }
        return [flaw for flaw, is_there in flaws.items() if is_there]

    @property
    def is_reliable(self) -> bool:
        """Whether few noise variances are at their floor, and no single row determines the mean."""
        outlying = self.lost > max(MOST_LOST, OUTLYING * self.usual)
        return self.fit.at_floor <= MOST_AT_FLOOR and not outlying


class ModelAdvice(NamedTuple):
    """A recommended variant, and the best rival."""

    chosen: Ranked
    is_best: bool  # two standard errors above every other variant
    rival: Ranked | None  # the best rival
    lead: float  # nats per row above the rival
    lead_error: float


def variant_settings(key: str, n_active: int) -> dict[str, Any]:
    """Return the settings of `AdaptivePPCA` for a variant."""
    settings: dict[str, Any] = {"noise": "shared", "row_scale": "none", "latent_variance": "shared"}
    for name in key.split("+"):
        settings |= SWITCHES.get(name, {})
    return {"n_active": n_active} | settings


@dataclass(frozen=True, eq=False)
class ModelsConfig(FitCampaign):
    """Settings of a comparison of all `METHODS`."""

    folder: ClassVar[str] = "models"
    n_components: int
    n_active: int

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in {"n_components", "inference"}.union(*SWITCHES.values()):
            self.parameters.pop(name, None)

    def steps(self) -> list[Step]:
        """Return the keys of the methods, the paper's model first and rivals last."""
        return [(key,) for key in METHODS]

    def fits(self, n_rows: int) -> list[tuple[dict[str, Any], int, float]]:
        """Return the settings and number of rows of every fit; a rival costs half a variant."""
        rows, K = min(n_rows, MOST_ROWS), {"n_components": self.n_components}
        variants = [K | variant_settings(key, self.n_active) for key in VARIANTS]
        weights = [1.0 if key in VARIANTS else 0.5 for key in METHODS]
        return [(variants[i % len(variants)], rows, weight) for i, weight in enumerate(weights)]

    def method(self, key: str) -> Method:
        """Return a function that fits a method."""
        from appca.models.adaptive_ppca import AdaptivePPCA
        from appca.models.ppca import PPCA

        K, L = self.n_components, self.n_active
        if key in VARIANTS:
            sizes = {"n_components": K, **variant_settings(key, L)}
            return partial(ours, AdaptivePPCA, self.parameters | sizes)
        if key in MIXTURES:
            return partial(mixture, K, K if "common" in key else L, **MIXTURES[key])
        if key.startswith("gaussian"):
            return partial(gaussian_mixture, "full" if "full" in key else "diag")
        if key == "fa":
            return partial(factor_analysis, K)
        return partial(ours, PPCA, {"n_components": K, "random_state": 0})

    def measuring(self, dataset: Dataset) -> Measure:
        """Return a function that fits a method and scores the held-out rows."""
        split = split_of(dataset, self)

        def measure_step(step: Step, report: Report) -> list[Any]:
            try:
                made = self.method(step[0])(split, Cap(SECONDS, report))
            except ValueError as error:
                made = RivalProjection(np.empty((0, 0)), 0.0, note=str(error))
            density = made.log_likelihood
            values = None if density is None or not np.isfinite(density).all() else density.tolist()
            return [values, made.n_parameters, round(made.seconds, 3), made.note, made.at_floor]

        return measure_step

    def measured(self, home: Path) -> dict[str, RivalProjection]:
        """Return finished results by method, without scores."""
        fits = {}
        for (key,), (values, free, seconds, *rest) in self.records(home).items():
            density, none = None if values is None else np.array(values), np.empty((0, 0))
            fits[key] = RivalProjection(none, seconds, density, None, rest[0], free, rest[1])
        return {key: fits[key] for key in fits if key in METHODS}


def split_of(dataset: Dataset, config: ModelsConfig) -> Split:
    """Draw rows, hold out 30%, and drop features that hardly vary; InputError if few remain."""
    rows = sample_of(dataset.n_rows, MOST_ROWS, 0)
    msg = f"Comparing models needs at least {LEAST_ROWS} rows; these data have {len(rows)}."
    refuse_if(len(rows) < LEAST_ROWS, msg)
    held_out, others = apart(dataset, rows, (HELD_OUT, 1 - HELD_OUT), [0, 2])
    train, test = dataset.take(others), dataset.X[held_out]
    fitted = Preprocessing.from_dict(config.preprocessing).fit(train.X)
    X = fitted.transform(train.X)
    variance, varying = _moments(X)
    vary = (variance >= LEAST_VARIANCE * variance.mean()) & (varying > LEAST_VARYING)
    most = min(len(X) - 1, int(vary.sum()) - 1)
    msg = f"Comparing models with K = {config.n_components} needs more rows or varying "
    msg += f"features; choose at most K = {most}."
    refuse_if(config.n_components > most, msg)
    return Split(X[:, vary], fitted.transform(test)[:, vary], train, config.preprocessing)


def ranked_models(fits: dict[str, RivalProjection]) -> list[Ranked]:
    """Return the methods with a density, best first, relative to the paper's model."""
    there = {key: f.log_likelihood for key, f in fits.items() if f.log_likelihood is not None}
    if PAPER not in there:
        return []
    others = [density for key, density in there.items() if key != PAPER] or [there[PAPER]]
    lines = []
    for key, density in there.items():
        gaps = density - (np.median(others, axis=0) if key == PAPER else there[PAPER])
        lost, usual = max(0.0, -float(gaps.min())), float(np.abs(gaps).mean())
        lines.append(Ranked(key, *difference(fits[key], fits[PAPER]), fits[key], lost, usual))
    return sorted(lines, key=lambda line: -line.nats)


def difference(first: RivalProjection, second: RivalProjection) -> tuple[float, float]:
    """Return the mean paired difference in log-likelihood, and its standard error."""
    gaps = np.asarray(first.log_likelihood) - np.asarray(second.log_likelihood)
    return float(gaps.mean()), float(gaps.std(ddof=1) / np.sqrt(len(gaps)))


def better(fits: dict[str, RivalProjection], fit: dict[str, Any]) -> list[Ranked]:
    """Return row scales if above the model clearly and by `LEAST`, and last the model."""
    fitted = {"shared": PAPER, "component": VARIANCES}.get(str(fit.get("latent_variance")))
    lines = [line for line in ranked_models(fits) if "stopped" not in line.fit.note]
    base = [line for line in lines if line.key == fitted]
    offers = [line for line in lines if line.key == ROW_SCALES and line.is_reliable]
    offers = [line for line in offers if AT_LIMITS not in line.fit.note]
    leads = [(line, *difference(line.fit, other.fit)) for line in offers for other in base]
    return [*(line for line, lead, error in leads if lead > max(CLEAR * error, LEAST)), *base]


def advise(lines: list[Ranked]) -> ModelAdvice | None:
    """Return the best variant; of ties, the paper's, row scales, then the fewest parameters."""
    variants = [line for line in lines if line.key in VARIANTS]
    variants = [line for line in variants if line.is_reliable] or variants
    if not variants:
        return None
    leads = ((line, *difference(variants[0].fit, line.fit)) for line in variants)
    level = [line for line, lead, error in leads if lead <= CLEAR * error]
    first = {PAPER: 0, ROW_SCALES: 1}
    chosen = min(level, key=lambda line: (first.get(line.key, 2), line.fit.n_parameters))
    rival = next((line for line in lines if line.key not in VARIANTS), None)
    lead, error = difference(chosen.fit, rival.fit) if rival else (np.nan, np.nan)
    return ModelAdvice(chosen, len(level) == 1, rival, lead, error)


# The test on hidden cells removes some observed cells before preprocessing and fitting, and
# compares their predictions with the true values, in preprocessed units.
SHARE, REPEATS = 0.05, 3  # share of observed cells hidden in a repeat, number of repeats
MEANS, FEW, EVERY, OWN = "means", "ppca_l", "ppca_k", "own"
RIDGE, NEAR, NEIGHBOURS = "ridge", "near", 15
FILLED_AGAIN = 3  # number of iterations of ridge imputation


@dataclass(frozen=True, eq=False)
class MaskedConfig(FitCampaign):
    """Settings of a test on hidden cells; PPCA if n_components = n_active."""

    folder: ClassVar[str] = "masked"

    @property
    def sizes(self) -> tuple[int, int]:
        """K and L."""
        return int(self.parameters["n_components"]), int(self.parameters["n_active"])

    @property
    def methods(self) -> dict[str, str]:
        """Method keys and names: the model, PPCA with L and with K, and simple imputers."""
        K, L = self.sizes
        names = {OWN: f"Adaptive PPCA, {L} of {K}", FEW: f"PCA with {L}", EVERY: f"PCA with {K}"}
        names |= {RIDGE: "Ridge", NEAR: "Nearest rows", MEANS: "Column means"}
        return {key: name for key, name in names.items() if L < K or key not in (OWN, FEW)}

    def incomplete(self, _dataset: Dataset) -> float:
        """Return the share of rows with missing cells, all of them."""
        return 1.0

    def steps(self) -> list[Step]:
        """Return every (repeat, method)."""
        return [(repeat, method) for repeat in range(REPEATS) for method in self.methods]

    def measuring(self, dataset: Dataset) -> Measure:
        """Return a measure of hidden cells; InputError if the preprocessing needs complete rows."""
        rows = sample_of(dataset.n_rows, MOST_MASKED, 0)
        X = dataset.X[rows]
        missing = np.zeros(X.shape, bool) if dataset.missing is None else dataset.missing[rows]
        options = Preprocessing.from_dict(self.preprocessing)

        @lru_cache(maxsize=1)
        def prepared(repeat: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            hidden = hide(~missing, SHARE, np.random.default_rng([0, repeat]))
            Y = options.fit(X, missing=missing | hidden).transform(X)
            truth, Y[missing | hidden] = Y[hidden], np.nan
            return Y, hidden, truth

        def measure_step(step: Step, _report: object) -> list[Any]:
            Y, hidden, truth = prepared(step[0])
            residual = truth - filled_in(step[1], Y, self)[hidden]
            return [float(np.sqrt(np.square(residual, dtype=float).mean())), int(hidden.sum())]

        return measure_step

    def errors(self, home: Path) -> dict[str, np.ndarray]:
        """Map each measured method to its root mean squared errors (repeat,)."""
        records = sorted(self.records(home).items())
        errors = {key: [of[0] for step, of in records if step[1] == key] for key in self.methods}
        return {method: np.array(values) for method, values in errors.items() if values}


def hide(observed: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Choose a share of observed cells (N, D) to hide; two a column remain, for its scale."""
    cells, hidden = np.flatnonzero(observed), np.zeros(observed.shape, dtype=bool)
    hidden.flat[rng.permutation(cells)[: max(1, round(share * len(cells)))]] = True
    hidden[:, (observed & ~hidden).sum(axis=0) < 2] = False
    return hidden


def filled_in(method: str, Y: np.ndarray, config: MaskedConfig) -> np.ndarray:
    """Impute gaps of Y (N, D) by ridge on other columns: -P[j] / P[j, j], P inverse covariance."""
    from sklearn.covariance import LedoitWolf
    from sklearn.impute import KNNImputer

    from appca.models.adaptive_ppca import AdaptivePPCA
    from appca.models.ppca import PPCA

    if method == OWN:
        return np.asarray(AdaptivePPCA(**config.parameters).fit(Y).impute(Y))
    if method in (FEW, EVERY):
        return np.asarray(PPCA(config.sizes[method == FEW]).fit(Y).impute(Y))
    if method == NEAR:
        return np.asarray(KNNImputer(n_neighbors=NEIGHBOURS).fit_transform(Y))
    gaps = np.isnan(Y)
    filled = np.where(gaps, np.nanmean(Y, axis=0), Y)
    for _ in range(FILLED_AGAIN if method == RIDGE else 0):
        P = (fit := LedoitWolf().fit(filled)).precision_
        filled = np.where(gaps, filled - (filled - fit.location_) @ P / np.diag(P), Y)
    return filled
