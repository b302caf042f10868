"""From data and settings to a fitted run; the same code for the page, workers and CLI."""

import contextlib
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from appca.analysis.fitted import DescribedRows, FittedModel
from appca.data.dataset import Dataset
from appca.data.preprocessing import Fitted, Preprocessing
from appca.models.settings.table import supports
from appca.runs.configuration import MODELS, RunConfig, estimator_class
from appca.runs.home import hold_threads
from appca.runs.run import FitResult, RunInfo
from appca.words.errors import InputError
from appca.words.wording import counted, shortened

if TYPE_CHECKING:
    from appca.models.algebra.loop import Progress
    from appca.models.base.answers import Description

DESCRIBING = "describing the rows"  # the last stage of a fit, as it is reported
MOST_DRAWN_BYTES = 2**26  # of components kept draw by draw; more draws than fit are thinned
DESCRIBED_AT_ONCE = 500  # rows, where describing them takes long enough to be watched

_GAP_KERNELS = "appca.models.incomplete.support_sum_kernels"

# For `estimate_seconds`, measured with one thread on 178 to 30,000 rows and 13 to 16,384 features.
_SUBSETS = 1.3e-8  # seconds a row, a component, a slot and a pass, in the sums over subsets
_PRODUCTS = 1.1e-10  # seconds a value, a component and a pass, in the two products
_PREPARING = 1.35e-8  # seconds a value, once
_SWEEP, _SWEEP_PAIRS = 1.0e-6, 8.0e-8  # seconds a row and a component (squared) in a sweep
_COLUMNS = 1.0e-7  # seconds a feature and a pair of components, in drawing the components
_SLOTS, _FACTOR_PASSES = 2.0e-7, 60  # seconds a row, a component, a slot; passes of aFA
_PATHS = 8.0e-7  # seconds a row, a component, a slot and a path
# Of an incomplete row and a pass: seconds, a pair of components, a set of them, a slot of one set.
_AROUND, _PAIRS, _SETS, _SEARCHED, _AROUND_PASSES = 2.0e-6, 5.0e-8, 2.0e-8, 1.1e-6, 25
_RACE_PASSES, _RACE_ROWS, _RACE_COLUMNS = 90, 5000, 64
_EXTENDED_PASSES, _LAST_EXTENDED = 200, 40
_SAMPLED, _LAST_PASSES = 2500, 1  # rows from which a sample is climbed first; passes left to do


def fit_run(
    dataset: Dataset,
    config: RunConfig,
    callback: "Callable[[Progress], object] | None" = None,
    preprocessing: Fitted | None = None,
) -> FitResult:
    """Preprocess, fit, and describe every row.

    The digest of `dataset` is not checked, so that a part of the config's data can be fitted. With
    `stopped_at` in the config, the fit stops after so many iterations, as it did when it was
    stopped.

    `callback` is told `Progress` after each iteration. Raising StopIteration ends the fit and keeps
    what there is (``info.stopped_at`` says after how many); other exceptions propagate.
    `preprocessing` is what the config names, where it has been learned from these data before.

    Raises ValueError when the settings do not suit the data, in one sentence.
    """
    began = time.perf_counter()
    refuse_unknown(config)
    refuse_gaps(dataset, config)
    hold_threads()
    if preprocessing is None:
        options = Preprocessing.from_dict(config.preprocessing)
        preprocessing = options.fit(dataset.X, missing=dataset.missing)
    X = dataset.with_gaps()
    Y = preprocessing.transform(X)
    estimator, stopped_at = fit_estimator(Y, config, callback)
    if _follows_bits(config, preprocessing):
        Y = prepared(config, preprocessing, X)
    description = _describe(estimator, Y, config, callback)
    model = FittedModel.from_estimator(estimator, preprocessing)
    rows = DescribedRows.from_description(description)
    info = told(estimator, description, model)._replace(stopped_at=stopped_at)
    imputed = None
    if dataset.missing is not None:
        imputed = _imputed(estimator, dataset, Y, preprocessing)
        info = info._replace(n_missing=dataset.n_missing)
    fitted = model.with_rows(rows, _draws(estimator), imputed)
    return FitResult(fitted, info._replace(seconds=round(time.perf_counter() - began, 3)))


def fits_around_gaps(config: RunConfig) -> bool:
    """Whether the model integrates missing cells out instead of reading placeholders."""
    by_em = config.parameters.get("inference", "em") == "em"
    return MODELS[config.model].can.incomplete and by_em and not config.is_extended


def refuse_unknown(config: RunConfig) -> None:
    """Raise InputError for settings that this version cannot fit by, or that are of another fit."""
    if config.imported is not None:
        msg = (
            "This fit came in a session file and cannot be made here again; open it and press "
            "“Fit here” to fit its settings."
        )
        raise InputError(msg)
    if config.unknown:
        msg = (
            f"This fit was made with {', '.join(map(shortened, config.unknown))}, which "
            f"{MODELS[config.model].title} does not have in this version; choose other settings."
        )
        raise InputError(msg)


def refuse_gaps(dataset: Dataset, config: RunConfig) -> None:
    """Raise InputError where cells are missing and the model can do nothing about it."""
    if dataset.missing is not None and not fits_around_gaps(config):
        n = dataset.n_missing
        msg = (
            f"{counted(n, 'cell')} of “{dataset.name}” {'is' if n == 1 else 'are'} missing, which "
            f"{MODELS[config.model].title} as set cannot be fitted around; choose Adaptive PPCA by "
            "exact EM or Probabilistic PCA, or load the data with the columns' means put in."
        )
        raise InputError(msg)


def waits_for_compiler(dataset: Dataset, config: RunConfig) -> bool:
    """Whether missing cells need sums over supports that this process has not compiled yet.

    The one support of PPCA needs none, and more supports than are summed are searched by NumPy.
    """
    if dataset.missing is None or _GAP_KERNELS in sys.modules:
        return False
    return 1 < supports(config.k, config.n_active) <= MODELS[config.model].can.incomplete_supports


def _imputed(estimator: Any, dataset: Dataset, Y: np.ndarray, before: Fitted) -> np.ndarray:
    """Return what the model puts into the missing cells (m,), in data units, row by row."""
    rows, missing = dataset.incomplete_rows, cast("np.ndarray", dataset.missing)
    return np.asarray(before.inverse_transform(estimator.impute(Y[rows]))[missing[rows]])


def estimate_seconds(
    n_rows: int, n_features: int, config: RunConfig, *, incomplete: int = 0
) -> float:
    """Guess how long `fit_run` takes, rather too long than too short.

    Decides whether a fit runs while the slider moves or in a worker; the worker's own progress
    then tells the time left. `incomplete` says how many rows have missing cells.
    """
    whole = _estimate(n_rows, n_features, config)
    return whole + _estimate_around(incomplete, config) if incomplete else whole


def _estimate(n_rows: int, n_features: int, config: RunConfig) -> float:
    """Guess the time on the features that are left after preprocessing."""
    once = 0.08 + n_rows * n_features * _PREPARING
    if config.is_sampled:
        return once + _estimate_sampling(n_rows, n_features, config)
    if config.model == "aFA":
        return once + _estimate_factors(n_rows, n_features, config)
    parameters, K, L = config.parameters, config.k, config.n_active or config.k
    if config.is_extended:
        scales = 2 if parameters["row_scale"] == "none" else 6
        a_row = K * (_SUBSETS * (L + 4) * scales + n_features * _PRODUCTS * (2 + scales))
        first = min(n_rows, max(_RACE_ROWS, 100 * K))
        return once + (_EXTENDED_PASSES * first + _LAST_EXTENDED * n_rows) * a_row
    if L == K:
        return once  # closed form

    def passes(number: float, rows: int, columns: int) -> float:
        return number * rows * K * (_SUBSETS * (L + 4) + columns * _PRODUCTS)

    width = min(n_features, n_rows)  # fewer rows than features: the fit works in their span
    few = min(width, max(_RACE_COLUMNS, 2 * K))
    runners = min(n_rows, max(_RACE_ROWS, 100 * K))
    likely = 30 + 4 * K  # 10 to 100 are usual for K = 4, 30 to 360 for K = 40
    race = passes(_RACE_PASSES * parameters["n_init"], runners, few)
    left = _LAST_PASSES if n_rows > _SAMPLED else likely
    return once + race + passes(min(left, parameters["max_iter"]), n_rows, width)


def _estimate_around(incomplete: int, config: RunConfig) -> float:
    """Guess what missing cells add: PPCA and then EM over all sets of each incomplete row."""
    K, L = config.k, config.n_active or config.k
    ppca = _AROUND + K * K * _PAIRS
    if L == K:
        return (10 + 4 * K) * incomplete * ppca
    sets, most = supports(K, L), MODELS[config.model].can.incomplete_supports
    summed = sets * _SETS if sets <= most else K * L * _SEARCHED
    passes = min(_AROUND_PASSES, config.parameters["max_iter"])
    return float(passes * incomplete * (2 * ppca + summed))


def _estimate_sampling(n_rows: int, n_features: int, config: RunConfig) -> float:
    parameters, K = config.parameters, config.k
    sweeps = parameters["burn_in"] + parameters["n_draws"] * parameters["thin"]
    a_row = K * (_SWEEP + _SWEEP_PAIRS * K + _PRODUCTS * 3 * n_features)
    columns = n_features * K * K * _COLUMNS
    told = _estimate_describing(n_rows, config)
    return float(parameters["n_chains"] * sweeps * (n_rows * a_row + columns) + told)


def _estimate_factors(n_rows: int, n_features: int, config: RunConfig) -> float:
    K, L = config.k, config.n_active or config.k
    a_pass = n_rows * K * (_SLOTS * L + _PRODUCTS * 3 * n_features)
    passes = config.parameters["n_init"] * min(_FACTOR_PASSES, config.parameters["max_iter"])
    return float(passes * a_pass + _estimate_describing(n_rows, config))


def _estimate_describing(n_rows: int, config: RunConfig) -> float:
    """Time of the sums over sets, which are sampled where there are many."""
    if MODELS[config.model].can.is_exact(config.k, config.n_active):
        return 0.0
    L = config.n_active or config.k // 2
    return float(n_rows * config.k * L * _PATHS * config.parameters.get("n_paths", 0))


def project(
    config: RunConfig,
    model: FittedModel,
    X: np.ndarray,
    callback: "Callable[[Progress], object] | None" = None,
) -> DescribedRows:
    """Describe new rows (N, D), in data units, by a fitted model.

    The rows of the fit get the numbers of the fit again, all together to the bit. Each by itself
    does so, too, where sums over sets are estimated; elsewhere up to rounding. `callback` is told
    `Progress` after each block where describing takes long.

    Raises ValueError when the rows have another number of features than those the run was fitted
    on, or the model lacks something.
    """
    estimator = estimator_class(config.model)(**config.parameters)
    estimator.restore(model.estimator_arrays())
    hold_threads()
    Y = prepared(config, model.preprocessing, X)
    return DescribedRows.from_description(_describe(estimator, Y, config, callback))


def prepared(config: RunConfig, preprocessing: Fitted, X: np.ndarray) -> np.ndarray:
    """Bring rows (N, D) to what the config's model is asked about, (N, D')."""
    if not _follows_bits(config, preprocessing):
        return preprocessing.transform(X)
    from appca.models.rows.steady_products import times

    return preprocessing.transform(X, times)


def _follows_bits(config: RunConfig, preprocessing: Fitted) -> bool:
    """Whether a row's last bits, which a reduction rounds, decide what is drawn about it."""
    return MODELS[config.model].can.compiled and preprocessing.reduces


def fit_estimator(
    Y: Any, config: RunConfig, callback: "Callable[[Progress], object] | None"
) -> tuple[Any, int | None]:
    """Return the estimator fitted to rows Y, and after how many iterations it was stopped."""
    kind = estimator_class(config.model)
    counter = _Counter(callback, config.stopped_at)
    return kind(**config.parameters, callback=counter).fit(Y), counter.stopped_at


class _Counter:
    """Callback that counts iterations of all stages, and stops where an earlier fit was stopped."""

    def __init__(self, inner: Callable[..., Any] | None, stop_at: int | None) -> None:
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


def _describe(
    estimator: Any, Y: np.ndarray, config: RunConfig, callback: Callable[..., Any] | None
) -> "Description":
    """Describe the rows; where that takes long, part by part under the callback's eyes."""
    from appca.models.algebra.loop import Progress

    if not MODELS[config.model].can.compiled:
        described: Description = estimator.describe(Y)
        return described
    starts = range(0, len(Y), DESCRIBED_AT_ONCE)
    parts: list[Description] = []
    for i, start in enumerate(starts, start=1):
        parts.append(estimator.describe(Y[start : start + DESCRIBED_AT_ONCE]))
        if callback is not None:
            with contextlib.suppress(StopIteration):  # there is nothing to stop early
                callback(Progress(i, len(starts), np.nan, DESCRIBING))
    return joined(parts)


def joined(parts: "list[Description]") -> "Description":
    """Say of all rows what was said of the parts that follow each other."""
    from appca.models.base.answers import Description

    *columns, methods, scales = zip(*parts, strict=True)
    rows = [np.concatenate(column) for column in columns]
    return Description._make(
        [*rows, methods[0], None if scales[0] is None else np.concatenate(scales)]
    )


def told(estimator: Any, description: "Description", fitted: FittedModel) -> RunInfo:
    """Return the facts of a fit but for how long it took."""
    return RunInfo(
        n_iter=int(estimator.n_iter_),
        stop_reason=str(estimator.stop_reason_),
        log_likelihood=float(description.log_likelihood.sum()),
        likelihood=description.method,
        likelihood_error=float(np.sqrt(np.square(description.standard_error).sum())),
        n_rows=len(description.scores),
        n_features=fitted.components.shape[1],
        versions=versions(),
        seconds=0.0,
    )


def _draws(estimator: Any) -> dict[str, np.ndarray]:
    """Draws of a sampled fit; those of the components thinned where they would fill the disk."""
    draws = dict(getattr(estimator, "posterior_", {}))
    if "components" in draws:
        W = draws["components"]
        step = max(1, -(-W.size * np.dtype(np.float32).itemsize // MOST_DRAWN_BYTES))
        draws["components"] = W[:, ::step].astype(np.float32)
    for name in {"Z_mean", "X_mean"} & set(draws):
        draws[name] = draws[name].astype(np.float32)
    return draws


def versions() -> dict[str, str]:
    """Return the versions of what the numbers depend on."""
    import platform

    import scipy
    import sklearn

    packages = {"numpy": np, "scipy": scipy, "scikit-learn": sklearn, "appca": sys.modules["appca"]}
    packages_here = {name: package.__version__ for name, package in packages.items()}
    return {"python": platform.python_version(), **packages_here}
