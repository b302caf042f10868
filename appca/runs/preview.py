"""A quick fit before the fit, quick enough for a slider to wait for it.

A preview fits to a fixed random sample of rows in few iterations and describes all rows with it.
For adaptive PPCA all that depends on the data alone is prepared once (`Ground`): every row as its
coordinates in the leading principal directions of the sample, and what is left of its length
outside of them. EM never needs more: it runs with the components held to those directions, in
which the model is the same model, and what is outside is noise to every row. A move of a slider
then costs going through a few dozen coordinates of the sample and one look at those of all rows.
"""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from appca.analysis.fitted import DescribedRows, FittedModel
from appca.data.dataset import Dataset
from appca.data.preprocessing import Fitted, Preprocessing
from appca.runs.configuration import RunConfig, estimator_class
from appca.runs.fit import fit_estimator, joined, refuse_gaps, refuse_unknown, told
from appca.runs.home import hold_threads
from appca.runs.run import FitResult

if TYPE_CHECKING:
    from appca.models.base.answers import Description
    from appca.models.orthonormal.em_fit import SubspaceFit
    from appca.models.rows.observations import Rows

ROWS, PASSES = 5000, 40
RACE_ROWS, RACE_PASSES = 2000, 200  # up to so many all starts of the fit are tried
COORDINATES, COORDINATES_PER_COMPONENT = 64, 8  # as many as starts of the full fit race in
_KERNELS = "appca.models.orthonormal.expectation_kernels"  # nobody waits until they are compiled
_SAMPLE_SEED = 0  # a preview of the same data always sees the same rows
_BLOCK_VALUES = 1 << 22  # of rows that are brought into coordinates at a time


class Ground(NamedTuple):
    """What previews of one data set share, whatever their K and L."""

    preprocessing: Fitted  # learned from the sample
    origin: np.ndarray  # (D,) mean of the sample after preprocessing
    basis: np.ndarray  # (D, q) leading principal directions of the sample, orthonormal
    sample: (
        np.ndarray
    )  # (n, q) coordinates of the sample about the origin, in the dtype of the data
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
    short = _short(config, passes)
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
    from appca.models.decompositions.spectrum import principal
    from appca.models.rows.observations import about, centre_of

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
    n = dataset.n_rows
    return np.sort(np.random.default_rng(_SAMPLE_SEED).permutation(n)[: min(rows, n)])


def _learned(dataset: Dataset, config: RunConfig, sample: np.ndarray) -> Fitted:
    """Learn the preprocessing from the sample."""
    options = Preprocessing.from_dict(config.preprocessing)
    missing = None if dataset.missing is None else dataset.missing[sample]
    return options.fit(dataset.X[sample], missing=missing)


def _short(config: RunConfig, passes: int) -> RunConfig:
    """Return the settings of the preview's own fit, in few iterations of EM."""
    limits = {"max_iter": passes, "inference": "em"}
    if config.parameters.get("inference") == "hard":
        del limits["inference"]
    short = {key: value for key, value in limits.items() if key in config.parameters}
    return RunConfig(config.dataset, config.preprocessing, config.model, config.parameters | short)


def _on_ground(
    dataset: Dataset, ground: Ground, config: RunConfig, watch: Callable[[], object]
) -> tuple[Any, "Description", FittedModel]:
    """Fit in the coordinates of the sample, describe all rows, bring the model into features."""
    from appca.models.rows.observations import Rows

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
    from appca.models.algebra.stiefel import polar
    from appca.models.base.data_checks import refuse_constant
    from appca.models.orthonormal.em import EMMap, EMSettings, floor_of, worth_compiling
    from appca.models.orthonormal.em_fit import fit_by_em, fit_in_closed_form
    from appca.models.orthonormal.screening import EMControl, screen
    from appca.models.orthonormal.starts import candidates

    refuse_constant(sample)
    parameters, K = config.parameters, config.k
    settings = EMSettings(
        n_components=K,
        n_active=parameters["n_active"],
        latent=parameters["latent_variance"],
        learn_mean=parameters["mean"] == "learned",
        hard=parameters["inference"] == "hard",
        update=polar,
        floor=floor_of(sample),
        compiled=worth_compiling(sample.n, K, parameters["n_active"]) and _KERNELS in sys.modules,
    )
    limits = parameters["max_iter"], parameters["tol"], parameters["accelerate"]
    course = EMControl(settings, lambda _: watch(), *limits, sample.n)
    rng = np.random.default_rng(parameters["random_state"])
    if parameters["n_active"] == K and isinstance(settings.latent, str):
        return fit_in_closed_form(rng, sample, course)
    names = candidates(parameters["init"], parameters["n_init"], K)
    if sample.n > RACE_ROWS:
        W = np.eye(sample.d, K) @ names[0].rotation(rng, sample.X[:, :K])
        return fit_by_em(rng, sample, W, course)
    race = course._replace(max_iter=RACE_PASSES)
    start = screen(rng, EMMap(sample, settings), names, race)
    return fit_by_em(rng, sample, start.run.state.W, course)


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
    from appca.models.algebra.gaussian import background

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
