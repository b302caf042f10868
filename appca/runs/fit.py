"""Fit a run from data and settings; estimate its time, preview it, describe new rows."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from appca.analysis.fitted import DescribedRows, FittedModel
from appca.data.dataset import Dataset
from appca.data.preprocessing import Fitted, Preprocessing
from appca.models.settings import supports
from appca.runs.home import hold_threads
from appca.runs.run import MODELS, FitResult, RunConfig, RunInfo, estimator_class
from appca.storage import files
from appca.storage.identity import digest_of
from appca.words import InputError, counted, shortened, storing

if TYPE_CHECKING:
    from appca.models.climb import SubspaceFit
    from appca.models.loop import Progress
    from appca.models.posterior import Description
    from appca.models.rows import Rows

DESCRIBING = "describing the rows"  # the last stage of a fit, as it is reported
MOST_DRAWN_BYTES = 2**26  # of components kept draw by draw; more draws than fit are thinned
DESCRIBED_AT_ONCE = 500  # rows, where describing them takes long enough to be watched

_GAP_KERNELS = "appca.models.set_kernels"

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
    if MODELS[config.model].can.compiled and preprocessing.reduces:
        Y = prepared(config, preprocessing, X)
    description = _describe(estimator, Y, config, callback)
    model = FittedModel.from_estimator(estimator, preprocessing)
    rows = DescribedRows.from_description(description)
    info = told(estimator, description, model)._replace(stopped_at=stopped_at)
    imputed = None
    if dataset.missing is not None:
        gaps = dataset.incomplete_rows
        filled = preprocessing.inverse_transform(estimator.impute(Y[gaps]))
        imputed = np.asarray(filled[dataset.missing[gaps]])
        info = info._replace(n_missing=dataset.n_missing)
    fitted = model.with_rows(rows, posterior=_draws(estimator), imputed=imputed)
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


def estimate_seconds(
    n_rows: int, n_features: int, config: RunConfig, *, incomplete: int = 0
) -> float:
    """Guess how long `fit_run` takes, rather too long than too short.

    Decides whether a fit runs while the slider moves or in a worker; the worker's own progress
    then tells the time left. `n_features` are left after preprocessing, and so many rows
    `incomplete`.
    """
    parameters, K, L = config.parameters, config.k, config.n_active or config.k
    seconds = 0.08 + n_rows * n_features * _PREPARING
    describing = 0.0  # sums over sets, which are sampled where there are many
    if not MODELS[config.model].can.is_exact(K, config.n_active):
        slots = K * (config.n_active or K // 2)
        describing = n_rows * slots * _PATHS * parameters.get("n_paths", 0)
    if config.is_sampled:
        sweeps = parameters["burn_in"] + parameters["n_draws"] * parameters["thin"]
        a_row = K * (_SWEEP + _SWEEP_PAIRS * K + _PRODUCTS * 3 * n_features)
        a_sweep = n_rows * a_row + n_features * K * K * _COLUMNS
        seconds += parameters["n_chains"] * sweeps * a_sweep + describing
    elif config.model == "aFA":
        a_pass = n_rows * K * (_SLOTS * L + _PRODUCTS * 3 * n_features)
        passes = parameters["n_init"] * min(_FACTOR_PASSES, parameters["max_iter"])
        seconds += passes * a_pass + describing
    elif config.is_extended:
        scales = 2 if parameters["row_scale"] == "none" else 6
        a_row = K * (_SUBSETS * (L + 4) * scales + n_features * _PRODUCTS * (2 + scales))
        first = min(n_rows, max(_RACE_ROWS, 100 * K))
        seconds += (_EXTENDED_PASSES * first + _LAST_EXTENDED * n_rows) * a_row
    elif L < K:  # else in closed form
        width = min(n_features, n_rows)  # fewer rows than features: the fit works in their span
        few = min(width, max(_RACE_COLUMNS, 2 * K))
        race = _RACE_PASSES * parameters["n_init"] * min(n_rows, max(_RACE_ROWS, 100 * K))
        likely = 30 + 4 * K  # 10 to 100 are usual for K = 4, 30 to 360 for K = 40
        left = min(_LAST_PASSES if n_rows > _SAMPLED else likely, parameters["max_iter"]) * n_rows
        for rows, columns in ((race, few), (left, width)):
            seconds += rows * K * (_SUBSETS * (L + 4) + columns * _PRODUCTS)
    return float(seconds + (_estimate_gaps(incomplete, config) if incomplete else 0.0))


def _estimate_gaps(incomplete: int, config: RunConfig) -> float:
    """Seconds that missing cells add: PPCA and then EM over all sets of each incomplete row."""
    K, L = config.k, config.n_active or config.k
    ppca = _AROUND + K * K * _PAIRS
    if L == K:
        return (10 + 4 * K) * incomplete * ppca
    sets, most = supports(K, L), MODELS[config.model].can.incomplete_supports
    summed = sets * _SETS if sets <= most else K * L * _SEARCHED
    passes = min(_AROUND_PASSES, config.parameters["max_iter"])
    return float(passes * incomplete * (2 * ppca + summed))


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
    """Preprocess rows (N, D) for queries, (N, D').

    Where the draws about a row depend on its last bits, a row by itself gets those of all rows.
    """
    if not (MODELS[config.model].can.compiled and preprocessing.reduces):
        return preprocessing.transform(X)
    from appca.models.products import times

    return preprocessing.transform(X, times)


def fit_estimator(
    Y: Any, config: RunConfig, callback: "Callable[[Progress], object] | None"
) -> tuple[Any, int | None]:
    """Return the estimator fitted to rows Y, and after how many iterations it was stopped.

    Iterations of all stages count; the fit stops where an earlier fit was stopped.
    """
    passes, stopped_at = 0, None

    def counting(progress: "Progress") -> None:
        nonlocal passes, stopped_at
        passes += 1
        try:
            if callback is not None:
                callback(progress)
            if passes == config.stopped_at:
                raise StopIteration
        except StopIteration:
            stopped_at = passes
            raise

    kind = estimator_class(config.model)
    fitted_estimator = kind(**config.parameters, callback=counting).fit(Y)
    return fitted_estimator, stopped_at


def _describe(
    estimator: Any, Y: np.ndarray, config: RunConfig, callback: Callable[..., Any] | None
) -> "Description":
    """Describe the rows; where that takes long, in parts that are reported."""
    from appca.models.loop import Progress

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
    """Concatenate the descriptions of consecutive rows."""
    from appca.models.posterior import Description

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


ROWS, PASSES = 5000, 40
RACE_ROWS, RACE_PASSES = 2000, 200  # up to so many all starts of the fit are tried
COORDINATES, COORDINATES_PER_COMPONENT = 64, 8  # as many as starts of the full fit race in
_KERNELS = "appca.models.em_kernels"  # a preview does not wait for the compiler
_SAMPLE_SEED = 0  # a preview of the same data always sees the same rows
_BLOCK_VALUES = 1 << 22  # of rows that are brought into coordinates at a time


class Ground(NamedTuple):
    """Coordinates that previews of one data set share, whatever their K and L."""

    preprocessing: Fitted  # learned from the sample
    origin: np.ndarray  # (D,) mean of the sample after preprocessing
    basis: np.ndarray  # (D, q) leading principal directions of the sample, orthonormal
    sample: np.ndarray  # (n, q) coordinates of the sample about the origin, dtype of the data
    squares: np.ndarray  # (n,) float64, squared length of the sample's rows about the origin
    coordinates: np.ndarray | None  # (N, q) of all rows; None where rows are no wider themselves
    outside: np.ndarray | None  # (N,) float64, squared length of what the coordinates leave out


def preview(
    dataset: Dataset,
    config: RunConfig,
    rows: int = ROWS,
    passes: int = PASSES,
    ground: Ground | None = None,
    watch: Callable[[], object] = bool,
) -> FitResult:
    """Fit to a fixed random sample of rows in few iterations, and describe all rows with it.

    A first picture while the fit proper runs, not to be stored (``info.preview``). Few rows choose
    from the starts of the fit, so that both end on the same peak; many take the first.

    Preprocessing is learned from the sample of so many `rows`, and so is `ground` where it is not
    given, see `prepare`, where `on_ground` allows one. `passes` are the most iterations. `watch`
    is called after each iteration and before each block of rows; what it raises ends the preview.
    """
    began = time.perf_counter()
    refuse_unknown(config)
    refuse_gaps(dataset, config)
    hold_threads()
    hard = config.parameters.get("inference") == "hard"
    limits = {"max_iter": passes, "inference": "hard" if hard else "em"}
    limits = {key: value for key, value in limits.items() if key in config.parameters}
    short = config.to_be_fitted(parameters=config.parameters | limits)
    if on_ground(dataset, config):
        ground = ground or prepare(dataset, config, rows, watch)
        estimator, description, model = _on_ground(dataset, ground, short, watch)
    else:
        sample = _sample(dataset, rows)
        preprocessing = _learned(dataset, config, sample)
        Y = preprocessing.transform(dataset.with_gaps())
        estimator, _ = fit_estimator(Y[sample], short, lambda _: watch())
        description = estimator.describe(Y)
        model = FittedModel.from_estimator(estimator, preprocessing)
    info = told(estimator, description, model)
    info = info._replace(preview=True, seconds=round(time.perf_counter() - began, 3))
    return FitResult(model.with_rows(DescribedRows.from_description(description)), info)


def on_ground(dataset: Dataset, config: RunConfig) -> bool:
    """Whether previews of this kind can share a `Ground`: adaptive PPCA of whole rows."""
    return (
        config.model == "aPPCA"
        and not config.is_extended
        and dataset.missing is None
        and config.parameters["mean"] != "zero"  # the coordinates are about the mean
        and config.parameters["w_update"] != "pymanopt"
    )


def width(config: RunConfig) -> int:
    """Return how many coordinates the previews of a configuration need; few K share one number."""
    least = max(COORDINATES, COORDINATES_PER_COMPONENT * config.k)
    return 1 << (least - 1).bit_length()


def prepare(
    dataset: Dataset,
    config: RunConfig,
    rows: int = ROWS,
    watch: Callable[[], object] = bool,
) -> Ground:
    """Bring all rows of a data set into the leading principal coordinates of its sample.

    Takes about as long as one look at all the data, and depends on the configuration by its
    preprocessing and `width` alone. `watch` is called for each block of rows.
    """
    from appca.models.rows import about, centre_of
    from appca.models.spectrum import principal

    hold_threads()
    sample = _sample(dataset, rows)
    preprocessing = _learned(dataset, config, sample)
    Y = preprocessing.transform(dataset.X[sample])
    origin = centre_of(Y)
    q = min(width(config), *Y.shape)
    rng = np.random.default_rng(_SAMPLE_SEED)
    basis = principal(rng, about(Y, origin), q).V.astype(Y.dtype)
    centred = Y - origin
    squares = np.einsum("nd,nd->n", centred, centred, dtype=np.float64)
    made = Ground(preprocessing, origin, basis, centred @ basis, squares, None, None)
    if q == Y.shape[1]:
        return made
    coordinates = np.empty((dataset.n_rows, q), Y.dtype)
    outside = np.empty(dataset.n_rows)
    for part in _parts(dataset):
        watch()
        B = preprocessing.transform(dataset.X[part]) - origin
        C = coordinates[part] = B @ basis
        left = np.einsum("nd,nd->n", B, B) - np.einsum("nq,nq->n", C, C)
        outside[part] = np.maximum(left, 0.0)
    return made._replace(coordinates=coordinates, outside=outside)


def _parts(dataset: Dataset) -> Iterator[slice]:
    step = max(1, _BLOCK_VALUES // dataset.n_features)
    return (slice(start, start + step) for start in range(0, dataset.n_rows, step))


def _sample(dataset: Dataset, rows: int) -> np.ndarray:
    return np.sort(np.random.default_rng(_SAMPLE_SEED).permutation(dataset.n_rows)[:rows])


def _learned(dataset: Dataset, config: RunConfig, sample: np.ndarray) -> Fitted:
    options = Preprocessing.from_dict(config.preprocessing)
    missing = None if dataset.missing is None else dataset.missing[sample]
    return options.fit(dataset.X[sample], missing=missing)


def _on_ground(
    dataset: Dataset, ground: Ground, config: RunConfig, watch: Callable[[], object]
) -> tuple[Any, "Description", FittedModel]:
    """Fit in the coordinates of the sample, describe all rows, bring the model into features."""
    from appca.models.rows import Rows

    sample = Rows(ground.sample, None, ground.squares, len(ground.origin))
    fit = _fitted(sample, config, watch)
    small = _model(fit, sample, ground, config)
    W = small.components @ ground.basis.T
    model = replace(
        small, components=W, mean=(ground.origin + ground.basis @ small.mean).astype(W.dtype)
    )
    asked = model if ground.coordinates is None else small
    estimator = estimator_class(config.model)(**config.parameters).restore(asked.estimator_arrays())
    estimator.n_iter_, estimator.stop_reason_ = len(fit.log_likelihoods), fit.stop_reason
    watch()
    description = _described(dataset, ground, estimator)
    used = np.maximum(description.active.sum(axis=0), 1)
    power = np.sqrt(np.square(description.scores, dtype=np.float64).sum(axis=0) / used)
    return estimator, description, replace(model, scale=np.where(power > 0.0, power, 1.0))


def _fitted(sample: "Rows", config: RunConfig, watch: Callable[[], object]) -> "SubspaceFit":
    """Climb from the start that the fit chooses, or from its first where rows are many."""
    from appca.models.climb import fit_by_em, fit_in_closed_form, screen
    from appca.models.data_checks import refuse_constant
    from appca.models.em import EMMap
    from appca.models.starts import candidates

    refuse_constant(sample)
    parameters, K = config.parameters, config.k
    kind = estimator_class(config.model)
    control = kind(**parameters, callback=lambda _: watch())._control(sample)
    if _KERNELS not in sys.modules:
        control = control._replace(settings=control.settings._replace(compiled=False))
    rng = np.random.default_rng(parameters["random_state"])
    if parameters["n_active"] == K and isinstance(control.settings.latent, str):
        return fit_in_closed_form(rng, sample, control)
    names = candidates(parameters["init"], parameters["n_init"], K)
    if sample.n > RACE_ROWS:
        W = np.eye(sample.d, K) @ names[0].rotation(rng, sample.X[:, :K])
        return fit_by_em(rng, sample, W, control)
    race = control._replace(max_iter=RACE_PASSES)
    start = screen(rng, EMMap(sample, control.settings), names, race)
    return fit_by_em(rng, sample, start.run.state.W, control)


def _model(fit: "SubspaceFit", sample: "Rows", ground: Ground, config: RunConfig) -> FittedModel:
    """Return the model of a fit in coordinates: by variance, largest entry positive."""
    state, order = fit.state, np.argsort(-fit.second, kind="stable")
    W = ground.basis @ state.W[:, order]
    extreme = np.abs(W).argmax(axis=0)
    signs = np.where(W[extreme, range(config.k)] < 0, -1, 1)
    return FittedModel(
        components=np.ascontiguousarray((state.W[:, order] * signs).T, dtype=sample.dtype),
        mean=(-state.W @ state.shift).astype(sample.dtype),
        noise_variance=float(state.noise),
        latent_variance=state.latent[order],
        explained_variance=fit.second[order] / sample.n,
        scale=np.ones(config.k),
        n_active=config.parameters["n_active"],
        preprocessing=ground.preprocessing,
        log_likelihoods=np.array(fit.log_likelihoods),
    )


def _described(dataset: Dataset, ground: Ground, estimator: Any) -> "Description":
    """Describe all rows; what lies outside of the coordinates (N, q) is all noise."""
    from appca.models.numerics import background

    if ground.coordinates is None or ground.outside is None:
        transform = ground.preprocessing.transform
        return joined([estimator.describe(transform(dataset.X[part])) for part in _parts(dataset)])
    description: Description = estimator.describe(ground.coordinates)
    D, q = ground.basis.shape
    return description._replace(
        error=(description.error * q + ground.outside) / D,
        log_likelihood=description.log_likelihood
        + background(ground.outside, estimator.noise_variance_, D - q),
    )


FOLDER = "projections"
MOST_BYTES = 500_000_000  # of all that is kept
# Measured with one thread on 10,000 rows of 784 features: what describing a row costs.
_A_VALUE, _A_PRODUCT, _A_SET = 2.0e-9, 2.0e-10, 1.0e-6  # seconds; the last a row and a component


def key_of(run_id: str, digest: str) -> str:
    """Return the key of a run's description of the rows of a data set."""
    return digest_of([run_id, digest])


def stored(home: Path, key: str) -> DescribedRows | None:
    """Return the stored description of new rows, or None."""
    try:
        return DescribedRows.from_arrays(files.read_cached(file_of(home, key)) or {})
    except KeyError:
        return None


def keep_rows(home: Path, key: str, X: np.ndarray, run_id: str = "") -> None:
    """Store new rows for the job that describes them.

    Raises InputError when the disk refuses.
    """
    file = file_of(home, key, "-rows")
    with storing("The new rows", file.parent):
        files.write_cached(file, run_id, X=X)


def is_quick(n_rows: int, n_features: int, config: RunConfig, most_seconds: float) -> bool:
    """Whether the page may describe the rows itself: no compiler to wait for, and soon done."""
    a_component = _A_SET + _A_PRODUCT * n_features
    seconds = n_rows * (n_features * _A_VALUE + config.k * a_component)
    return not MODELS[config.model].can.compiled and seconds <= most_seconds


def file_of(home: Path, key: str, part: str = "") -> Path:
    """Return the file of a description of new rows; part "-rows" is that of the rows themselves."""
    return Path(home) / FOLDER / f"{key}{part}.npz"
