"""Methods to compare a fit with: each fitted to the same rows, and asked about the same others.

Every method sees the preprocessed rows of one `Split`. What is asked of it: scores of the rows it
was fitted to, and, of the rows held out, their log density and their reconstruction, where it has
them. Settings that are not named are the method's own defaults.
"""

import inspect
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from appca.data.dataset import Dataset

Report = Callable[[float], object]  # share done; raising from it ends the work
Clock = Callable[[], float]
_FA_PASSES = 20  # between two looks at the clock
_LEAST_NOISE = 1e-6  # of a feature, relative to the average: below, a density says nothing


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
    return RivalProjection(
        described.scores,
        seconds,
        others.log_likelihood,
        model.inverse_transform(others.scores),
        "; ".join(notes),
        getattr(model, "n_parameters_", None),
    )


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
    from appca.rivals.clusterwise import MixtureOfFactorAnalysers

    report(0.0)
    model = MixtureOfFactorAnalysers(pieces, n_components, random_state=0, **kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(split.train)
    scores = model.transform(split.train)
    note = f"{model.n_parameters_:,} parameters"
    return RivalProjection(
        scores,
        cap.passed(),
        model.score_samples(split.test),
        model.reconstruct(split.test),
        note,
        model.n_parameters_,
    )


def subspaces(
    pieces: int, n_components: int, split: Split, cap: Cap, report: Report
) -> RivalProjection:
    """Fit k-subspaces: every row belongs to the nearest of some affine subspaces."""
    from appca.rivals.clusterwise import KSubspaces

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
    from appca.analysis.explore.umap import EmbeddingConfig, EmbeddingStore, embed

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
