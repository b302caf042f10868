"""Fit a run from data and settings; estimate its time, preview it, and describe new rows."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from appca.analysis import choose
from appca.analysis.campaign import MOST_ROWS
from appca.analysis.choose import GridConfig, StabilityConfig
from appca.analysis.compare import ModelsConfig, Ranked, better
from appca.analysis.fitted import DescribedRows, FittedModel
from appca.data.dataset import Dataset
from appca.data.preprocessing import Fitted, Preprocessing
from appca.models.settings import LEARNED, defaults, suited, supports
from appca.runs.home import hold_threads, home
from appca.runs.run import MODELS, FitResult, RunConfig, RunInfo, estimator_class
from appca.storage import files
from appca.storage.identity import digest_of
from appca.words import counted, refuse_if, shortened, storing

if TYPE_CHECKING:
    from appca.models.loop import Progress
    from appca.models.posterior import Description

DESCRIBING = "describing the rows"
MOST_DRAWN_BYTES = 2**26  # maximum size of stored component draws; more are thinned
LONG = 120.0  # seconds; if the first grid takes longer, every second K is left out
DESCRIBED_AT_ONCE = 500  # minimum number of rows for progress reports
_KERNELS, _GAP_KERNELS = "appca.models.em_kernels", "appca.models.set_kernels"


def fit_run(
    dataset: Dataset,
    config: RunConfig,
    callback: "Callable[[Progress], object]" = bool,
    preprocessing: Fitted | None = None,
) -> FitResult:
    """Preprocess and fit, and describe every row.

    The digest of `dataset` is not checked, so you can fit a subset of the config's data. If the
    config has `stopped_at`, the fit stops after that number of iterations.

    `callback` receives `Progress` after each iteration. If it raises StopIteration, the fit ends
    and keeps the current parameters (``info.stopped_at`` counts iterations over all stages); other
    exceptions propagate. Pass `preprocessing` if it was already learned from these data.

    Raises ValueError with a one-sentence message if the settings do not suit the data.
    """
    began = time.perf_counter()
    _refuse(dataset, config)
    hold_threads()
    if preprocessing is None:
        options = Preprocessing.from_dict(config.preprocessing)
        preprocessing = options.fit(dataset.X, missing=dataset.missing)
    X = dataset.with_gaps()
    Y = preprocessing.transform(X)
    passes, stopped_at = 0, None

    def count(progress: "Progress") -> None:
        nonlocal passes, stopped_at
        passes += 1
        try:
            callback(progress)
            if passes == config.stopped_at:
                raise StopIteration
        except StopIteration:
            stopped_at = passes
            raise

    estimator: Any = estimator_class(config.model)(**config.parameters, callback=count).fit(Y)
    if MODELS[config.model].can.compiled and preprocessing.reduces:
        Y = prepared(config, preprocessing, X)
    description = _describe(estimator, Y, config, callback)
    facts: dict[str, Any] = {"stopped_at": stopped_at}
    imputed = None
    if dataset.missing is not None:
        gaps = dataset.incomplete_rows
        filled = preprocessing.inverse_transform(estimator.impute(Y[gaps]))
        imputed = np.asarray(filled[dataset.missing[gaps]])
        facts["n_missing"] = dataset.n_missing
    result = _result(began, estimator, description, preprocessing, **facts)
    draws = dict(getattr(estimator, "posterior_", {}))
    if "components" in draws:
        W = draws["components"]
        step = max(1, -(-W.size * np.dtype(np.float32).itemsize // MOST_DRAWN_BYTES))
        draws["components"] = W[:, ::step].astype(np.float32)
    for name in {"Z_mean", "X_mean"} & set(draws):
        draws[name] = draws[name].astype(np.float32)
    return result._replace(fitted=replace(result.fitted, posterior=draws, imputed=imputed))


def _refuse(dataset: Dataset, config: RunConfig) -> None:
    title, msg = MODELS[config.model].title, ""
    if config.imported is not None:
        msg = "This fit came in a session file and cannot be reproduced; open it and press "
        msg += "“Fit here” to fit its settings."
    elif config.unknown:
        msg = f"This fit was made with {', '.join(map(shortened, config.unknown))}, which this "
        msg += f"version of {title} does not have; choose other settings."
    elif dataset.missing is not None and not config.fits_around_gaps:
        n = dataset.n_missing
        msg = (
            f"{counted(n, 'cell')} of “{dataset.name}” {'is' if n == 1 else 'are'} missing, but "
            f"{title} with these settings needs complete rows; choose Adaptive PPCA by exact EM "
            "or Probabilistic PCA, or load the data with missing=mean."
        )
    refuse_if(msg, msg)


def waits_for_compiler(dataset: Dataset, config: RunConfig) -> bool:
    """Whether missing cells need kernels not compiled yet; one support or too many need none."""
    if dataset.missing is None or _GAP_KERNELS in sys.modules:
        return False
    return 1 < supports(config.k, config.n_active) <= MODELS[config.model].can.incomplete_supports


def estimate_seconds(
    n_rows: int, n_features: int, config: RunConfig, *, incomplete: int = 0
) -> float:
    """Estimate the seconds that `fit_run` takes, rather too high than too low.

    It decides whether a fit runs during slider moves or in a worker. `n_features` is counted after
    preprocessing; `incomplete` rows have missing cells. The constants are seconds, measured with
    one thread on 178 to 30,000 rows of 13 to 16,384 features.
    """
    settings, K, L = config.parameters, config.k, config.n_active or config.k
    n, product, subsets = n_rows, 1.1e-10 * n_features, 1.3e-8 * (L + 4)  # per row, component
    first = min(n, max(5000, 100 * K))  # number of rows for screening starts
    seconds = 0.08 + 1.35e-8 * n * n_features
    if not MODELS[config.model].can.is_exact(K, config.n_active):  # sums are estimated
        seconds += 8e-7 * n * K * (config.n_active or K // 2) * settings.get("n_paths", 0)
    if config.is_sampled:
        sweeps = settings["burn_in"] + settings["n_draws"] * settings["thin"]
        a_sweep = n * K * (1e-6 + 8e-8 * K + 3 * product) + 1e-7 * n_features * K * K
        seconds += settings["n_chains"] * sweeps * a_sweep
    elif config.model == "aFA":
        passes = settings["n_init"] * min(60, settings["max_iter"])
        seconds += passes * n * K * (2e-7 * L + 3 * product)
    elif config.is_extended:
        scales = 2 if settings["row_scale"] == "none" else 6
        seconds += (200 * first + 40 * n) * K * (subsets * scales + product * (2 + scales))
    elif L < K:  # L = K has a closed form
        columns = min(n_features, n)  # a fit works in the span of the rows
        screened = 90 * settings["n_init"] * first
        seconds += screened * K * (subsets + 1.1e-10 * min(columns, max(64, 2 * K)))
        passes = min(1 if n > 2500 else 30 + 4 * K, settings["max_iter"])  # large data use a sample
        seconds += passes * n * K * (subsets + 1.1e-10 * columns)
    around = 2e-6 + 5e-8 * K * K  # time for PPCA of an incomplete row
    if L == K:
        return float(seconds + incomplete * (10 + 4 * K) * around)
    sets, most = supports(K, L), MODELS[config.model].can.incomplete_supports
    summed = 2e-8 * sets if sets <= most else 1.1e-6 * K * L
    return float(
        seconds + incomplete * min(25, settings.get("max_iter", 25)) * (2 * around + summed)
    )


def by_em(now: RunConfig) -> dict[str, Any]:
    """Return the parameters of a check's fits, which use EM instead of sampling."""
    em = {"inference": "em"} if now.parameters.get("inference") == "gibbs" else {}
    wanted = suited(now.model, {**now.parameters, **em})
    return RunConfig(now.dataset, now.preprocessing, now.model, wanted).parameters


def halves_of(now: RunConfig) -> StabilityConfig | None:
    """Return the fits to halves of the rows for checking a fit; None if not available."""
    of = now.dataset, now.preprocessing
    if now.model == "PPCA":
        sizes = {"n_components": now.k, "n_active": now.k}
        return StabilityConfig(*of, "aPPCA", defaults("aPPCA") | sizes)
    return StabilityConfig(*of, now.model, by_em(now)) if now.model in choose.MODELS else None


def models_of(now: RunConfig) -> ModelsConfig:
    """Return the comparison of models at a fit's K and L; a learned L is that of the last one."""
    chosen = now.parameters if now.model == "aPPCA" else {"n_components": now.k}
    wanted = suited("aPPCA", {**defaults("aPPCA"), **chosen, "inference": "em"})
    L, K = wanted["n_active"], int(wanted["n_components"])
    active = (K + 1) // 2 if L == LEARNED else int(L)
    config = ModelsConfig(now.dataset, now.preprocessing, "aPPCA", wanted, K, active)
    if L != LEARNED:
        return config
    earlier = ModelsConfig.earlier(home())
    return next((other for other in earlier if replace(other, n_active=active) == config), config)


def most_components(wanted: RunConfig, dataset: Dataset) -> int:
    """Return the largest K: N - 1, and at most D for orthogonal components."""
    if MODELS[wanted.model].can.beyond_features:
        return max(1, dataset.n_rows - 1)
    features = Preprocessing.from_dict(wanted.preprocessing).most_features(dataset.n_features)
    return max(1, min(dataset.n_rows - 1, features))


def scope_of(of: RunConfig | GridConfig) -> str:
    """Return a digest of the data, the model and the preprocessing."""
    return digest_of([of.dataset, of.model, of.preprocessing])


def usual_grid(dataset: Dataset, now: RunConfig, first: str | None = None) -> dict[str, int]:
    """Return the numbers of the last grid, by default the id `first`, or else the usual ones."""
    for last in GridConfig.earlier(home(), first):
        if scope_of(last) == scope_of(now):
            ks, ls, folds, rows = last.components, last.actives, last.n_folds, last.max_rows
            step = ks[1] - ks[0] if len(ks) > 1 else 1
            break
    else:
        folds, rows = min(3, dataset.n_rows), min(dataset.n_rows, MOST_ROWS)
        most = max(1, min(most_components(now, dataset), rows - rows // folds - 1))
        ks, ls = (min(2, most), min(12, most)), (1, min(4, most))
        middle = by_em(now) | {"n_components": (sum(ks) + 1) // 2, "n_active": 1}
        fit = RunConfig(now.dataset, now.preprocessing, now.model, middle)
        seconds = estimate_seconds(rows, dataset.n_features, fit) * (ks[1] - ks[0] + 1) * 4 * folds
        step, rows = 1 + (seconds > LONG and ks[1] - ks[0] > 4), MOST_ROWS
    numbers = {"k_from": ks[0], "k_to": ks[-1], "k_step": step, "l_from": ls[0], "l_to": ls[-1]}
    return numbers | {"n_folds": folds, "max_rows": rows}


def grid_of(now: RunConfig, numbers: Mapping[str, int]) -> GridConfig:
    """Return the grid with the numbers of `usual_grid` for the other settings of a fit."""
    (low, high), (few, many) = (sorted((numbers[f"{x}_from"], numbers[f"{x}_to"])) for x in "kl")
    ks, ls = tuple(range(low, high + 1, numbers["k_step"])), tuple(range(few, many + 1))
    usual = {"latent_variance": "shared"} if now.k == now.n_active and now.model == "aPPCA" else {}
    of = now.dataset, now.preprocessing, now.model, by_em(now) | usual  # PCA may have set another
    return GridConfig(*of, ks, ls, n_folds=numbers["n_folds"], max_rows=numbers["max_rows"])


def both_halves(now: RunConfig) -> list[StabilityConfig]:
    """Return the fits of aPPCA to halves of the rows without and with row scales."""
    both = ({"row_scale": kind} for kind in ("none", LEARNED) if now.model == "aPPCA")
    fits = (halves_of(replace(now, parameters=now.parameters | kind)) for kind in both)
    return [of for of in fits if of is not None]


def recovered(now: RunConfig) -> tuple[int, int]:
    """Return how many components halves recover without and with row scales; 0, 0 if unknown."""
    stored = [outcome for of in both_halves(now) if (outcome := of.outcome(home()))]
    return (stored[0].n_recovered, stored[1].n_recovered) if len(stored) > 1 else (0, 0)


def scales_over(dataset: Dataset, now: RunConfig) -> list[Ranked]:
    """Return row scales if held-out rows and halves prefer them, and the fit; else at most it."""
    is_plain = now.model == "aPPCA" and now.fits_around_gaps and dataset.missing is None
    lines = better(models_of(now).measured(home()), now.parameters) if is_plain else []
    plain, scaled = recovered(now)
    return lines if plain <= scaled else lines[-1:]


def project(
    config: RunConfig,
    model: FittedModel,
    X: np.ndarray,
    callback: "Callable[[Progress], object]" = bool,
) -> DescribedRows:
    """Describe new rows (N, D), in data units, by a fitted model.

    The rows of the fit get the same results as in the fit, bit for bit if all are described
    together, else up to rounding. `callback` receives `Progress` after each block. Raises
    ValueError if rows and run differ in number of features, or the model lacks an array.
    """
    estimator = estimator_class(config.model)(**config.parameters).restore(model.estimator_arrays())
    hold_threads()
    Y = prepared(config, model.preprocessing, X)
    return DescribedRows.from_description(_describe(estimator, Y, config, callback))


def prepared(config: RunConfig, preprocessing: Fitted, X: np.ndarray) -> np.ndarray:
    """Preprocess rows (N, D) for queries, (N, D'), each independent of the others to the bit."""
    if not (MODELS[config.model].can.compiled and preprocessing.reduces):
        return preprocessing.transform(X)
    from appca.models.products import times

    return preprocessing.transform(X, times)


def _describe(
    estimator: Any, Y: np.ndarray, config: RunConfig, callback: "Callable[[Progress], object]"
) -> "Description":
    from appca.models.loop import Progress

    if not MODELS[config.model].can.compiled:
        described: Description = estimator.describe(Y)
        return described
    starts = range(0, len(Y), DESCRIBED_AT_ONCE)
    parts: list[Description] = []
    for i, start in enumerate(starts, start=1):
        parts.append(estimator.describe(Y[start : start + DESCRIBED_AT_ONCE]))
        with contextlib.suppress(StopIteration):  # StopIteration has no effect here
            callback(Progress(i, len(starts), np.nan, DESCRIBING))
    return _joined(parts.pop(0) for _ in starts)


def _joined(parts: Iterable["Description"]) -> "Description":
    from appca.models.posterior import Description

    columns = [*zip(*parts, strict=True)][::-1]
    return Description._make(  # frees the parts of each column in turn
        np.concatenate(column) if isinstance(column[0], np.ndarray) else column[0]
        for column in (columns.pop() for _ in Description._fields)
    )


def _result(
    began: float, estimator: Any, description: "Description", preprocessing: Fitted, **facts: Any
) -> FitResult:
    rows = DescribedRows.from_description(description)
    model = FittedModel.from_estimator(estimator, preprocessing)
    info = RunInfo(
        n_iter=int(estimator.n_iter_),
        stop_reason=str(estimator.stop_reason_),
        log_likelihood=float(description.log_likelihood.sum()),
        likelihood=description.method,
        likelihood_error=float(np.sqrt(np.square(description.standard_error).sum())),
        n_rows=len(rows.scores),
        n_features=model.components.shape[1],
        versions=versions(),
        seconds=round(time.perf_counter() - began, 3),
        **facts,
    )
    return FitResult(model.with_rows(rows), info)


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that affect the numbers."""
    import platform

    import scipy
    import sklearn

    packages = {"numpy": np, "scipy": scipy, "scikit-learn": sklearn, "appca": sys.modules["appca"]}
    of_packages = {name: package.__version__ for name, package in packages.items()}
    return {"python": platform.python_version(), **of_packages}


ROWS, PASSES = 5000, 40
RACE_ROWS, RACE_PASSES = 2000, 200  # previews screen all starts up to these limits
COORDINATES, COORDINATES_PER_COMPONENT = 64, 8  # number of coordinates: minimum, multiple of K
_SAMPLE_SEED = 0


class Ground(NamedTuple):
    """Coordinates that all previews of a data set share, for any K and L."""

    preprocessing: Fitted  # learned from the sample
    origin: np.ndarray  # (D,) mean of the preprocessed sample
    basis: np.ndarray  # (D, q) leading principal directions of the sample, orthonormal
    sample: np.ndarray  # (n, q) coordinates of the sample relative to the origin, dtype of the data
    squares: np.ndarray  # (n,) float64, squared distances of the sample's rows from the origin
    coordinates: np.ndarray | None = None  # (N, q) of all rows; None if q = D
    outside: np.ndarray | float = 0.0  # (N,) squared distance from the span of the coordinates


def preview(
    dataset: Dataset,
    config: RunConfig,
    rows: int = ROWS,
    passes: int = PASSES,
    ground: Ground | None = None,
    watch: Callable[[], object] = bool,
) -> FitResult:
    """Fit to a fixed random sample of rows in a few iterations, and describe all rows.

    A preview is shown during the full fit and must not be stored (``info.preview``). With a small
    sample, all starts are screened, as in the full fit; with a large one, only the first is used.
    The preprocessing and `ground` (see `prepare`) are learned from a sample of `rows` rows.
    `passes` is the maximum number of iterations. `watch` is called after each iteration and before
    each block of rows; if it raises an exception, the preview ends.
    """
    began = time.perf_counter()
    _refuse(dataset, config)
    hold_threads()
    hard = config.parameters.get("inference") == "hard"
    limits = {"max_iter": passes, "inference": "hard" if hard else "em"}
    short = config.to_be_fitted(parameters=suited(config.model, config.parameters | limits))
    if on_ground(dataset, config):
        ground = ground or prepare(dataset, config, rows, watch)
        preprocessing = ground.preprocessing
        estimator, description = _fit_on_ground(dataset, ground, short, watch)
    else:
        sample, preprocessing = _sample(dataset, config, rows)
        Y = preprocessing.transform(dataset.with_gaps())
        kind = estimator_class(config.model)
        estimator = kind(**short.parameters, callback=lambda _: watch()).fit(Y[sample])
        description = estimator.describe(Y)
    return _result(began, estimator, description, preprocessing, preview=True)


def on_ground(dataset: Dataset, config: RunConfig) -> bool:
    """Whether previews can share a `Ground`: adaptive PPCA without missing cells."""
    return (
        config.model == "aPPCA"
        and not config.is_extended
        and dataset.missing is None
        and config.parameters["mean"] != "zero"  # coordinates are relative to the mean
        and config.parameters["w_update"] != "pymanopt"
    )


def width(config: RunConfig) -> int:
    """Return the number of coordinates for previews, rounded up so that several K share them."""
    return 1 << (max(COORDINATES, COORDINATES_PER_COMPONENT * config.k) - 1).bit_length()


def prepare(
    dataset: Dataset, config: RunConfig, rows: int = ROWS, watch: Callable[[], object] = bool
) -> Ground:
    """Project all rows on the leading principal directions of a sample.

    The result depends only on the preprocessing and `width`, and the data are read once.
    `watch` is called for each block of rows.
    """
    from appca.models.rows import about, centre_of
    from appca.models.stiefel import principal

    hold_threads()
    sample, preprocessing = _sample(dataset, config, rows)
    Y = preprocessing.transform(dataset.X[sample])
    origin = centre_of(Y)
    q = min(width(config), *Y.shape)
    basis = principal(np.random.default_rng(_SAMPLE_SEED), about(Y, origin), q).V.astype(Y.dtype)
    centred = Y - origin
    squares = np.einsum("nd,nd->n", centred, centred, dtype=np.float64)
    ground = Ground(preprocessing, origin, basis, centred @ basis, squares)
    if q == len(origin):  # coordinates would be as long as the rows
        return ground
    coordinates, outside = np.empty((dataset.n_rows, q), Y.dtype), np.empty(dataset.n_rows)
    start = 0
    for B in preprocessing.blocks(dataset.X, Y.dtype):
        watch()
        B -= origin  # noqa: PLW2901 (the block is fresh)
        part = slice(start, start + len(B))
        C = coordinates[part] = B @ basis
        outside[part] = np.maximum(np.einsum("nd,nd->n", B, B) - np.einsum("nq,nq->n", C, C), 0.0)
        start = part.stop
    return ground._replace(coordinates=coordinates, outside=outside)


def _sample(dataset: Dataset, config: RunConfig, rows: int) -> tuple[np.ndarray, Fitted]:
    """Return the fixed random sample of rows and the preprocessing learned from it."""
    sample = np.sort(np.random.default_rng(_SAMPLE_SEED).permutation(dataset.n_rows)[:rows])
    missing = None if dataset.missing is None else dataset.missing[sample]
    options = Preprocessing.from_dict(config.preprocessing)
    return sample, options.fit(dataset.X[sample], missing=missing)


def _fit_on_ground(
    dataset: Dataset, ground: Ground, config: RunConfig, watch: Callable[[], object]
) -> tuple[Any, "Description"]:
    """Fit in sample coordinates, describe all rows, and convert the model to features."""
    from appca.models.climb import candidates, fit_by_em, fit_in_closed_form, screen
    from appca.models.data_checks import refuse_constant
    from appca.models.em import EMMap, background
    from appca.models.posterior import publish_subspace
    from appca.models.rows import Rows

    D, q = ground.basis.shape
    sample = Rows(ground.sample, None, ground.squares, D)
    refuse_constant(sample)
    parameters, K, L = config.parameters, config.k, config.parameters["n_active"]
    estimator: Any = estimator_class(config.model)(**parameters, callback=lambda _: watch())
    control = estimator._control(sample)
    if _KERNELS not in sys.modules:
        control = control._replace(settings=control.settings._replace(compiled=False))
    rng = np.random.default_rng(parameters["random_state"])
    names = candidates(parameters["init"], parameters["n_init"], K)
    if K == L and isinstance(control.settings.latent, str):
        fit = fit_in_closed_form(rng, sample, control)
    elif sample.n > RACE_ROWS:
        W = np.eye(sample.d, K) @ names[0].rotation(rng, sample.X[:, :K])
        fit = fit_by_em(rng, sample, W, control)
    else:
        race = control._replace(max_iter=RACE_PASSES)
        start, _ = screen(rng, EMMap(sample, control.settings), names, race)
        fit = fit_by_em(rng, sample, start.state.W, control)
    publish_subspace(estimator, sample, fit.state, L, fit.second)
    estimator._ended(fit.log_likelihoods, fit.stop_reason).n_features_in_ = q
    W = estimator.components_ @ ground.basis.T
    signs = np.copysign(1, W[range(K), np.abs(W).argmax(axis=1)])[:, None]
    mean = (ground.origin + ground.basis @ estimator.mean_).astype(W.dtype)
    watch()
    if ground.coordinates is not None:
        estimator.components_ = estimator.components_ * signs
        described: Description = estimator.describe(ground.coordinates)
        outside = background(ground.outside, estimator.noise_variance_, D - q)
        described = described._replace(
            error=(described.error * q + ground.outside) / D,
            log_likelihood=described.log_likelihood + outside,
        )
    estimator.components_, estimator.mean_ = W * signs, mean
    if ground.coordinates is None:
        rows = ground.preprocessing.blocks(dataset.X, W.dtype)
        described = _joined((watch(), estimator.describe(block))[1] for block in rows)
    return estimator, described


FOLDER = "projections"
MOST_BYTES = 500_000_000  # maximum size of stored results


def stored(home: Path, key: str) -> DescribedRows | None:
    """Return the stored description of new rows, or None."""
    try:
        return DescribedRows.from_arrays(files.read_cached(file_of(home, key)) or {})
    except KeyError:
        return None


def keep_rows(home: Path, key: str, X: np.ndarray, run_id: str = "") -> None:
    """Store new rows for the job that describes them; raise InputError if writing fails."""
    file = file_of(home, key, "-rows")
    with storing("The new rows", file.parent):
        files.write_cached(file, run_id, X=X)


def is_quick(n_rows: int, n_features: int, config: RunConfig, most_seconds: float) -> bool:
    """Whether a page may describe the rows itself: fast enough, and without compiled kernels."""
    # measured with one thread on 10,000 rows of 784 features
    seconds = n_rows * (2e-9 * n_features + config.k * (1e-6 + 2e-10 * n_features))
    return not MODELS[config.model].can.compiled and seconds <= most_seconds


def file_of(home: Path, key: str, part: str = "") -> Path:
    """Return the file of a description of new rows; with part "-rows", the file of the rows."""
    return Path(home) / FOLDER / f"{key}{part}.npz"
