"""Jobs of the page Check that go on with what is there: each fit is kept as soon as it is done."""

from typing import Any, TypeVar

from appca.analysis.check import masked as hiding
from appca.analysis.check.choose import FOLDER as GRIDS
from appca.analysis.check.choose import Cell, GridConfig, fill, folds, steps
from appca.analysis.check.choose import stored as measured
from appca.analysis.check.choose_stability import FOLDER as STABILITY
from appca.analysis.check.choose_stability import StabilityConfig, run
from appca.analysis.check.journal import JournalStore
from appca.analysis.check.masked import MaskedConfig
from appca.analysis.check.which_model import FOLDER as COMPARED
from appca.analysis.check.which_model import VARIANTS, ModelsConfig, methods, variant_settings
from appca.analysis.check.which_model import fill as compare
from appca.data.dataset import Dataset
from appca.data.preprocessing import Preprocessing
from appca.jobs.progress import Context, Paced
from appca.runs.configuration import RunConfig
from appca.runs.fit import estimate_seconds
from appca.runs.home import hold_threads

Config = TypeVar("Config", GridConfig, StabilityConfig, MaskedConfig, ModelsConfig)


def _begun(
    kind: type[Config], folder: str, spec: dict[str, Any], context: Context
) -> tuple[Config, Dataset, JournalStore, Paced]:
    """Return the settings of a job, its data set, where its results are, and its progress."""
    config = kind.from_dict({name: spec[name] for name in spec if name != "key"})
    dataset = context.dataset(config.dataset)
    hold_threads()
    return config, dataset, JournalStore(context.home, folder), Paced(context)


def grid(spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """Measure a grid, or what is missing of it: a `GridConfig` as dict -> ``{"grid": id}``."""
    config, dataset, store, progress = _begun(GridConfig, GRIDS, spec, context)
    done = set(measured(store, config))
    weights = estimate_grid(config, dataset.n_rows, dataset.n_features)
    todo = [step for step in steps(config) if step not in done]
    total = sum(weights[step[:2]] for step in steps(config))
    passed = total - sum(weights[step[:2]] for step in todo)
    shares = {}
    for step in todo:
        shares[step] = passed / total
        passed += weights[step[:2]]

    def report(cell: Cell, fold: int) -> None:
        stage = f"K = {cell[0]}, L = {cell[1]}, fold {fold + 1} of {config.n_folds}"
        progress.at(stage, shares[*cell, fold])

    fill(dataset, config, store, report, progress.again)
    context.check()
    return {"grid": config.id}


def models(spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """Compare the variants of aPPCA and rivals: a `ModelsConfig` as dict -> ``{"models": id}``."""
    config, dataset, store, progress = _begun(ModelsConfig, COMPARED, spec, context)
    n_models = len(methods(config))

    def report(_key: str, share: float) -> None:
        progress.at(f"model {1 + int(share * n_models)} of {n_models}", share)

    compare(dataset, config, store, report)
    context.check()
    return {"models": config.id}


def stability(spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """Fit one model again and again: a `StabilityConfig` as dict -> ``{"stability": id}``."""
    config, dataset, store, progress = _begun(StabilityConfig, STABILITY, spec, context)

    def report(number: int) -> None:
        stage = f"fit {number + 1} of {config.repeats + 1}"
        progress.at(stage, number / (config.repeats + 1))

    run(dataset, config, store, report, progress.again)
    context.check()
    return {"stability": config.id}


def masked(spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """Hide cells, fit around them, and measure: a `MaskedConfig` as dict -> ``{"masked": id}``."""
    config, dataset, store, progress = _begun(MaskedConfig, hiding.FOLDER, spec, context)
    total = config.repeats * len(config.methods)

    def report(done: int) -> None:
        progress.at(f"fit {done + 1} of {total}", done / total)

    hiding.run(dataset, config, store, report, progress.again)
    context.check()
    return {"masked": config.id}


def estimate_grid(config: GridConfig, n_rows: int, n_features: int) -> dict[Cell, float]:
    """Guess the seconds one fold of each cell takes, rather too many than too few."""
    (fold, *_) = folds(n_rows, config.n_folds, config.max_rows, config.random_state)
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
    variants = (K | variant_settings(key, config.n_active) for key in VARIANTS)
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
