"""From data and settings to the arrays of a run; the same code for the page, workers and CLI."""

import inspect
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from appca.data.dataset import Dataset
from appca.data.preprocessing import Fitted, Preprocessing
from appca.runs.config import RunConfig, estimator_class
from appca.runs.home import threads

if TYPE_CHECKING:
    from appca.models.loop import Progress

PREVIEW_ROWS, PREVIEW_PASSES = 5000, 20
PREPROCESSING = "pre_"  # prefix of the preprocessing's arrays among those of a run
_SAMPLE_SEED = 0  # a preview of the same data always sees the same rows


# For `estimate_seconds`, measured with one thread on 178 to 30,000 rows and 13 to 16,384 features.
_SUBSETS = 2.0e-7  # seconds a row, a component and a pass, in the sums over subsets
_READING = 1.2e-9  # seconds a value and a pass, in reading the data
_PRODUCTS = 1.0e-10  # seconds a value, a component and a pass, in the two products
_AXES = 5.0e-11  # seconds a value and the smaller side, in the principal directions
_PREPARING = 1.0e-8  # seconds a value, once
_RACE_PASSES, _RACE_ROWS, _RACE_COLUMNS = 90, 5000, 64


class Result(NamedTuple):
    """
    What a fit gives: arrays by name, and facts about it.

    Arrays: ``components`` (K, D'), ``mean`` (D',), ``noise_variance`` (), ``latent_variance`` (K,),
    ``log_likelihoods`` (n_iter,) in nats, and what `describe` says of the rows; ``pre_*`` are the
    preprocessing's. D' is the number of features after preprocessing.
    Info: n_iter, stop_reason, seconds, log_likelihood, n_rows, n_features, stopped_at, versions.
    """

    arrays: dict[str, np.ndarray]
    info: dict


def fit_run(
    dataset: Dataset, config: RunConfig, callback: "Callable[[Progress], object] | None" = None
) -> Result:
    """
    Preprocess, fit, and describe every row.

    Parameters
    ----------
    dataset : Dataset
        Whose digest the config names; not checked, so that a part of it can be fitted.
    config : RunConfig
        With `stopped_at`, the fit stops after so many passes, as it did when it was stopped.
    callback : callable, optional
        Told `Progress` after each pass. Raising StopIteration ends the fit and keeps what there
        is (``info["stopped_at"]`` says after how many passes); other exceptions propagate.

    Raises
    ------
    ValueError
        When the settings do not suit the data, in one sentence.
    """
    began = time.perf_counter()
    _hold_threads()
    fitted = Preprocessing.from_dict(config.preprocessing).fit(dataset.X)
    Y = fitted.transform(dataset.X)
    estimator, stopped_at = _fit(Y, config, callback)
    arrays = _arrays(estimator, Y) | _prefixed(fitted)
    info = _info(estimator, arrays, dataset) | {"stopped_at": stopped_at}
    return Result(arrays, info | {"seconds": round(time.perf_counter() - began, 3)})


def preview(
    dataset: Dataset,
    config: RunConfig,
    rows: int = PREVIEW_ROWS,
    passes: int = PREVIEW_PASSES,
) -> Result:
    """
    Fit to a fixed random sample of rows with few passes, and describe all rows with it.

    A stand-in to look at while the fit proper runs; ``info["preview"]`` is True, and it is not to
    be stored. One start instead of a race of them: a slider waits for it.
    """
    began = time.perf_counter()
    n = dataset.n_rows
    sample = np.sort(np.random.default_rng(_SAMPLE_SEED).permutation(n)[: min(rows, n)])
    limits = {"max_iter": passes, "n_init": 1}
    known = {key: value for key, value in limits.items() if key in config.parameters}
    if config.parameters.get("init") == "auto":
        known["init"] = "quartimax"
    short = RunConfig(config.dataset, config.preprocessing, config.model, config.parameters | known)
    _hold_threads()
    X = dataset.X[sample]
    fitted = Preprocessing.from_dict(config.preprocessing).fit(X)
    estimator, _ = _fit(fitted.transform(X), short, None)
    Y = fitted.transform(dataset.X)
    arrays = _arrays(estimator, Y) | _prefixed(fitted)
    info = _info(estimator, arrays, dataset) | {"stopped_at": None, "preview": True}
    return Result(arrays, info | {"seconds": round(time.perf_counter() - began, 3)})


def estimate_seconds(n_rows: int, n_features: int, config: RunConfig) -> float:
    """
    Guess how long `fit_run` takes, rather too long than too short.

    Decides whether a fit runs while the slider moves or in a worker; the worker's own progress
    then tells the time left.
    """
    parameters = config.parameters
    K = parameters["n_components"]
    smaller = min(n_rows, n_features, 3000)
    once = 0.05 + n_rows * n_features * (_PREPARING + _AXES * smaller)
    if parameters.get("n_active", K) >= K:
        return once  # closed form

    def passes(number: float, rows: int, columns: int) -> float:
        return number * rows * (_SUBSETS * K + columns * (_READING + _PRODUCTS * K))

    width = min(n_features, n_rows)  # fewer rows than features: the fit works in their span
    few = min(width, max(_RACE_COLUMNS, 2 * K))
    runners = min(n_rows, max(_RACE_ROWS, 100 * K))
    likely = 30 + 4 * K  # 10 to 100 are usual for K = 4, 30 to 360 for K = 40
    race = passes(_RACE_PASSES * parameters["n_init"], runners, few)
    settle = passes(likely, n_rows, few) if n_rows > runners else 0.0
    return once + race + settle + passes(min(likely, parameters["max_iter"]), n_rows, width)


class FittedModel(NamedTuple):
    """What describing rows needs of a fitted model with orthonormal components."""

    components: np.ndarray  # (K, D')
    mean: np.ndarray  # (D',)
    noise_variance: float
    latent_variance: np.ndarray  # (K,)
    n_active: int


def project(arrays: dict[str, np.ndarray], X: np.ndarray) -> dict[str, np.ndarray]:
    """
    Describe new rows (N, D), in data units, by the model of a run's arrays.

    Raises
    ------
    InputError
        When the rows have another number of features than those the run was fitted on.
    """
    model = FittedModel(
        arrays["components"],
        arrays["mean"],
        float(arrays["noise_variance"]),
        arrays["latent_variance"],
        int(arrays["active"][0].sum()),
    )
    _hold_threads()
    return describe(model, fitted_preprocessing(arrays).transform(X))


def describe(model: FittedModel, Y: np.ndarray) -> dict[str, np.ndarray]:
    """
    Say of every row which components it uses and how well it fits, from one projection.

    Parameters
    ----------
    model : FittedModel
    Y : ndarray of shape (N, D')
        Preprocessed rows.

    Returns
    -------
    dict
        ``scores`` (N, K) float32: posterior means, 0 where inactive; ``active`` (N, K) bool: the
        most probable set; ``membership`` (N,) float32: its probability; ``inclusion`` (N, K)
        float32; ``error`` (N,) float32: mean squared reconstruction error a feature, in
        preprocessed units; ``log_likelihood_rows`` (N,) float64, nats.
    """
    from appca.models import gaussian, subsets
    from appca.models.rows import about, project

    W = model.components.T
    D, K = W.shape
    L, noise, latent = model.n_active, model.noise_variance, model.latent_variance
    rows = about(Y, model.mean)
    P = project(rows, W).astype(np.float64)
    a = gaussian.logits(P, noise, latent)
    log_e, inclusion = subsets.inclusion(a, L)
    active = subsets.top(a, L)
    scores = np.where(active, P * gaussian.posterior(noise, latent)[0], 0.0)
    chosen = np.where(active, a, 0.0).sum(axis=1)
    # |y - Ws|^2 = |y|^2 - 2 s'p + s's, because the columns of W are orthonormal
    square = rows.squares + np.einsum("nk,nk->n", scores, scores - 2.0 * P)
    background = gaussian.background(rows.squares, noise, D)
    return {
        "scores": scores.astype(np.float32),
        "active": active,
        "inclusion": inclusion.astype(np.float32),
        "membership": np.minimum(np.exp(chosen - log_e), 1.0).astype(np.float32),
        "error": (np.maximum(square, 0.0) / D).astype(np.float32),
        "log_likelihood_rows": background + log_e - gaussian.log_binomial(K, L),
    }


def fitted_preprocessing(arrays: dict[str, np.ndarray]) -> Fitted:
    """Return the preprocessing a run was fitted with, from the run's arrays."""
    cut = len(PREPROCESSING)
    own = {key[cut:]: value for key, value in arrays.items() if key.startswith(PREPROCESSING)}
    return Fitted.from_arrays(own)


def _fit(
    Y: np.ndarray, config: RunConfig, callback: "Callable[[Progress], object] | None"
) -> tuple[Any, int | None]:
    """Fitted estimator, and after how many passes it was stopped by hand."""
    kind = estimator_class(config.model)
    counter = _Counter(callback, config.stopped_at)
    keywords = dict(config.parameters)
    if "callback" in inspect.signature(kind).parameters:
        keywords["callback"] = counter
    return kind(**keywords).fit(Y), counter.stopped_at


class _Counter:
    """Callback that counts passes over all stages, and stops where an earlier fit was stopped."""

    def __init__(self, inner: Callable | None, stop_at: int | None) -> None:
        self.inner, self.stop_at = inner, stop_at
        self.passes = 0
        self.stopped_at: int | None = None

    def __call__(self, progress: "Progress") -> None:
        self.passes += 1
        try:
            if self.inner is not None:
                self.inner(progress)
            if self.passes == self.stop_at:
                raise StopIteration
        except StopIteration:
            self.stopped_at = self.passes
            raise


def _arrays(estimator: Any, Y: np.ndarray) -> dict[str, np.ndarray]:
    model = FittedModel(
        estimator.components_,
        estimator.mean_,
        estimator.noise_variance_,
        np.asarray(estimator.latent_variance_),
        estimator.n_active_,
    )
    return {
        "components": model.components,
        "mean": model.mean,
        "noise_variance": np.array(model.noise_variance),
        "latent_variance": model.latent_variance,
        "log_likelihoods": np.asarray(estimator.log_likelihoods_),
        **describe(model, Y),
    }


def _prefixed(fitted: Fitted) -> dict[str, np.ndarray]:
    return {PREPROCESSING + key: value for key, value in fitted.arrays().items()}


def _info(estimator: Any, arrays: dict[str, np.ndarray], dataset: Dataset) -> dict:
    return {
        "n_iter": int(estimator.n_iter_),
        "stop_reason": str(estimator.stop_reason_),
        "log_likelihood": float(arrays["log_likelihood_rows"].sum()),
        "n_rows": dataset.n_rows,
        "n_features": int(arrays["components"].shape[1]),
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Return the versions of what the numbers depend on."""
    import platform

    import scipy
    import sklearn

    import appca

    packages = {"numpy": np, "scipy": scipy, "scikit-learn": sklearn, "appca": appca}
    found = {name: package.__version__ for name, package in packages.items()}
    return {"python": platform.python_version(), **found}


def _hold_threads() -> None:
    """
    Hold BLAS to `threads()` from now on, so that page and worker give the same bits.

    For good, not for a while: of two fits in two threads of the page, the first to end would give
    the other its threads back in the middle.
    """
    from threadpoolctl import threadpool_limits

    import appca.models.estimator  # noqa: F401 (loads every BLAS there will be)

    threadpool_limits(threads())
