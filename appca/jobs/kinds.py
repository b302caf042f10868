"""What a worker can do: fit a model, lay out an embedding, fetch a data set, measure for a page.

The jobs of the page Check go on with what is there: each fit is kept as soon as it is done.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from appca.analysis.check import choose, choose_stability, which_model
from appca.analysis.check import masked as hiding
from appca.analysis.check.choose import Cell, GridConfig
from appca.analysis.check.choose_stability import StabilityConfig
from appca.analysis.check.journal import JournalStore
from appca.analysis.check.masked import MaskedConfig
from appca.analysis.check.which_model import ModelsConfig
from appca.analysis.explore.trust import with_trust
from appca.analysis.explore.umap import EmbeddingConfig, EmbeddingStore, embed
from appca.data.dataset import Dataset
from appca.data.preprocessing import Fitted, Preprocessing
from appca.data.sources.builtin import SOURCES, load
from appca.data.store import DatasetStore
from appca.jobs.progress import Context, FitProgress, Paced
from appca.runs import new_data
from appca.runs.configuration import RunConfig
from appca.runs.fit import estimate_seconds, fit_run
from appca.runs.fit import project as described
from appca.runs.home import hold_threads
from appca.runs.store import RunStore
from appca.storage import cache
from appca.words.errors import InputError

if TYPE_CHECKING:
    from appca.models.algebra.loop import Progress

PROCESSES = 2  # of an experiment of the paper
Config = TypeVar("Config", GridConfig, StabilityConfig, MaskedConfig, ModelsConfig)


def fit(spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """Fit and store a run: ``{"config": ..., "name": ...}`` -> ``{"run": id}``."""
    from appca.models.ppca import TOL

    config = RunConfig.from_dict(spec["config"])
    store = RunStore(context.home)
    name, origin = spec.get("name"), spec.get("origin", "fit")
    present = store.renew(config.id, name, origin)
    if present is not None:
        return {"run": present.id}
    dataset, fitted = _prepared(config, context)
    tol = config.parameters.get("tol", TOL) * dataset.n_rows  # PPCA climbs, but has no such setting
    watch = FitProgress(context, tol, config.is_sampled)
    result = fit_run(dataset, config, watch, fitted)
    context.report("storing", 1.0)
    config = replace(config, stopped_at=result.info.stopped_at)
    return {"run": store.save(config, result, name, origin).id}


def umap(spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """Lay out and store an embedding: an `EmbeddingConfig` as dict -> ``{"embedding": id}``."""
    config = EmbeddingConfig.from_dict(spec)
    store = EmbeddingStore(context.home)
    if store.get(config.id) is None:
        dataset, fitted = _prepared(config, context)
        run = RunStore(context.home).get(config.run) if config.run else None
        scores = run.fitted.scores if run else None
        report = Paced(context, by_stage=True).at
        embedding = embed(dataset, config, store, scores, report, fitted)
        embedding = with_trust(dataset, config, store, embedding, fitted, report)
        store.save(config, embedding)
    return {"embedding": config.id}


def _prepared(config: RunConfig | EmbeddingConfig, context: Context) -> tuple[Dataset, Fitted]:
    """Return the data set of a job and its fitted preprocessing."""
    dataset = context.dataset(config.dataset)
    context.report("preprocessing", 0.0)
    options = Preprocessing.from_dict(config.preprocessing)
    return dataset, options.fit(dataset.X, missing=dataset.missing)


def download(spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """Open a built-in data set and store it: ``{"key", "options"}`` -> ``{"dataset": digest}``."""
    title = SOURCES[spec["key"]].title if spec["key"] in SOURCES else str(spec["key"])
    report = Paced(context, by_stage=True).at

    def fetched(done: int, total: int) -> None:
        report(f"fetching {title}", done / total if total else 0.0)

    context.report(f"opening {title}", 0.0)
    dataset = load(spec["key"], progress=fetched, **spec.get("options", {}))
    return {"dataset": DatasetStore(context.home).put(dataset)}


def project(spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """Describe rows kept by `new_data.keep_rows`: ``{"key", "run"}`` -> ``{"key": key}``."""
    key, home = spec["key"], context.home
    if new_data.stored(home, key) is not None:
        return {"key": key}
    context.report("reading the rows", 0.0)
    run, rows = RunStore(home).get(spec["run"]), cache.read(new_data.rows_file(home, key))
    if run is None or rows is None:
        msg = "The fit or the new rows are not there any more; open both again."
        raise InputError(msg)

    pace = Paced(context)

    def report(progress: "Progress") -> None:
        pace.at("describing the rows", progress.iteration / progress.max_iter)

    rows_described = described(run.config, run.fitted, rows["X"], report)
    file = new_data.file_of(home, key)
    cache.write(file, run.id, **rows_described.row_arrays())
    new_data.rows_file(home, key).unlink(missing_ok=True)
    cache.prune(file.parent, "*.npz", new_data.MOST_BYTES, keep=file)
    return {"key": key}


def study(spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """Compute and store: ``{"study": name, "options": ..., "key": id}`` -> ``{"study": id}``.

    The data of the experiment "whitening" may be named by the digest of a stored data set.
    """
    from appca.studies.catalogue import study_of
    from appca.studies.experiments.whitening import classify
    from appca.studies.store import StudyStore

    wanted = study_of(spec["study"])
    options, run = wanted.options(**spec["options"]), wanted.run
    if wanted.name == "whitening" and options["data"] not in SOURCES:
        run = partial(classify, str(DatasetStore(context.home).path(options["data"])))
    began = time.perf_counter()
    outcome = run(options, Paced(context).at, PROCESSES)
    context.report("storing", 1.0)
    seconds = time.perf_counter() - began
    return {"study": StudyStore(context.home).save(wanted, options, outcome, seconds)}


def grid(spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """Measure a grid, or what is missing of it: a `GridConfig` as dict -> ``{"grid": id}``."""
    config, dataset, store = _begun(GridConfig, choose.FOLDER, spec, context)
    progress, done = Paced(context), set(choose.stored(store, config))
    weights = estimate_grid(config, dataset.n_rows, dataset.n_features)
    steps = choose.steps(config)
    todo = [step for step in steps if step not in done]
    total = sum(weights[step[:2]] for step in steps)
    passed = total - sum(weights[step[:2]] for step in todo)
    shares = {}
    for step in todo:
        shares[step] = passed / total
        passed += weights[step[:2]]

    def report(cell: Cell, fold: int) -> None:
        stage = f"K = {cell[0]}, L = {cell[1]}, fold {fold + 1} of {config.n_folds}"
        progress.at(stage, shares[*cell, fold])

    choose.fill(dataset, config, store, report)
    return {"grid": config.id}


def models(spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """Compare the variants of aPPCA and rivals: a `ModelsConfig` as dict -> ``{"models": id}``."""
    config, dataset, store = _begun(ModelsConfig, which_model.FOLDER, spec, context)
    progress, n = Paced(context), len(which_model.methods(config))

    def report(_key: str, share: float) -> None:
        progress.at(f"model {1 + int(share * n)} of {n}", share)

    which_model.fill(dataset, config, store, report)
    return {"models": config.id}


def stability(spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """Fit one model again and again: a `StabilityConfig` as dict -> ``{"stability": id}``."""
    config, dataset, store = _begun(StabilityConfig, choose_stability.FOLDER, spec, context)
    choose_stability.run(dataset, config, store, _counting(context, config.repeats + 1))
    return {"stability": config.id}


def masked(spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """Hide cells, fit around them, and measure: a `MaskedConfig` as dict -> ``{"masked": id}``."""
    config, dataset, store = _begun(MaskedConfig, hiding.FOLDER, spec, context)
    hiding.run(dataset, config, store, _counting(context, config.repeats * len(config.methods)))
    return {"masked": config.id}


def _begun(
    kind: type[Config], folder: str, spec: dict[str, Any], context: Context
) -> tuple[Config, Dataset, JournalStore]:
    """Return the settings of a job, its data set, and where its results are."""
    config = kind.from_dict({name: spec[name] for name in spec if name != "key"})
    dataset = context.dataset(config.dataset)
    hold_threads()
    return config, dataset, JournalStore(context.home, folder)


def _counting(context: Context, n: int) -> Callable[[int], None]:
    """Return what is told how many of `n` fits are done."""
    progress = Paced(context)
    return lambda done: progress.at(f"fit {done + 1} of {n}", done / n)


def estimate_grid(config: GridConfig, n_rows: int, n_features: int) -> dict[Cell, float]:
    """Guess the seconds one fold of each cell takes, rather too many than too few."""
    (fold, *_) = choose.folds(n_rows, config.n_folds, config.max_rows, config.random_state)
    n_train = len(fold.train)
    return {
        (k, active): _seconds(
            config, config.model, {"n_components": k, "n_active": active}, n_train, n_features
        )
        for k, active in config.order()
    }


def estimate_models(config: ModelsConfig, n_rows: int, n_features: int) -> float:
    """Guess the seconds that all models take, the rivals half as long as the variants."""
    rows, K = min(n_rows, config.max_rows), {"n_components": config.n_components}
    variants = (
        K | which_model.variant_settings(key, config.n_active) for key in which_model.VARIANTS
    )
    return 1.5 * sum(_seconds(config, "aPPCA", each, rows, n_features) for each in variants)


def estimate_masked(config: MaskedConfig, n_rows: int, n_features: int) -> float:
    """Guess the seconds all fits take, rather too many than too few."""
    rows, (K, L) = min(n_rows, config.max_rows), config.sizes
    fits = dict.fromkeys([(K, K), (K, L), (L, L)])  # the same one where K = L
    sizes = ({"n_components": k, "n_active": active} for k, active in fits)
    return config.repeats * sum(
        _seconds(config, "aPPCA", each, rows, n_features, incomplete=rows) for each in sizes
    )


def _seconds(
    config: GridConfig | ModelsConfig | MaskedConfig,
    model: str,
    settings: dict[str, Any],
    n_rows: int,
    n_features: int,
    *,
    incomplete: int = 0,
) -> float:
    """Guess the seconds of one fit that differs from the job's by some settings."""
    width = Preprocessing.from_dict(config.preprocessing).most_features(n_features)
    fit = RunConfig(config.dataset, config.preprocessing, model, config.parameters | settings)
    return estimate_seconds(n_rows, width, fit, incomplete=incomplete)
