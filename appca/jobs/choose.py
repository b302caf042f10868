"""The jobs of the page Choose K and L: a grid of cross-validated fits, and fits made again."""

from typing import TYPE_CHECKING, Any, TypeVar

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
from appca.data.preprocessing import Preprocessing
from appca.jobs.progress import Context, Paced
from appca.runs.configuration import RunConfig
from appca.runs.fit import estimate_seconds
from appca.runs.home import hold_threads

if TYPE_CHECKING:
    from appca.data.dataset import Dataset

Config = TypeVar("Config", GridConfig, StabilityConfig, MaskedConfig, ModelsConfig)


def begun(kind: type[Config], spec: dict[str, Any], context: Context) -> tuple[Config, "Dataset"]:
    """Return the settings of a job that goes on with what is there, and its data set."""
    from appca.data.store import DatasetStore

    config = kind.from_dict({name: spec[name] for name in spec if name != "key"})
    context.report("reading the data", 0.0)
    dataset = DatasetStore(context.home).get(config.dataset)
    hold_threads()
    return config, dataset


def grid(spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """Measure a grid, or what is missing of it: a `GridConfig` as dict -> ``{"grid": id}``.

    Each fit is stored when it is done, so a cancelled job is gone on with by the next.
    """
    config, dataset = begun(GridConfig, spec, context)
    store = JournalStore(context.home, GRIDS)
    done = set(measured(store, config))
    progress = Paced(context)
    weights = estimate(config, dataset.n_rows, dataset.n_features)
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
    config, dataset = begun(ModelsConfig, spec, context)
    progress, n_models = Paced(context), len(methods(config))

    def report(_key: str, share: float) -> None:
        progress.at(f"model {1 + int(share * n_models)} of {n_models}", share)

    compare(dataset, config, JournalStore(context.home, COMPARED), report)
    context.check()
    return {"models": config.id}


def stability(spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """Fit one model again and again: a `StabilityConfig` as dict -> ``{"stability": id}``."""
    config, dataset = begun(StabilityConfig, spec, context)
    progress = Paced(context)

    def report(number: int) -> None:
        stage = f"fit {number + 1} of {config.repeats + 1}"
        progress.at(stage, number / (config.repeats + 1))

    store = JournalStore(context.home, STABILITY)
    run(dataset, config, store, report, progress.again)
    context.check()
    return {"stability": config.id}


def estimate_models(config: ModelsConfig, n_rows: int, n_features: int) -> float:
    """Guess the seconds that all models take, the rivals half as long as the variants."""
    width = Preprocessing.from_dict(config.preprocessing).most_features(n_features)
    sizes = {"n_components": config.n_components}

    def seconds(key: str) -> float:
        settings = config.parameters | sizes | variant_settings(key, config.n_active)
        run_of = RunConfig(config.dataset, config.preprocessing, "aPPCA", settings)
        return estimate_seconds(min(n_rows, config.max_rows), width, run_of)

    return 1.5 * sum(map(seconds, VARIANTS))


def estimate(config: GridConfig, n_rows: int, n_features: int) -> dict[Cell, float]:
    """Guess the seconds one fold of each cell takes, rather too many than too few."""
    (fold, *_) = folds(n_rows, config.n_folds, config.max_rows, config.random_state)
    width = Preprocessing.from_dict(config.preprocessing).most_features(n_features)

    def seconds(cell: Cell) -> float:
        sizes = {"n_components": cell[0], "n_active": cell[1]}
        run_of = RunConfig(
            config.dataset, config.preprocessing, config.model, config.parameters | sizes
        )
        return estimate_seconds(len(fold.train), width, run_of)

    return {cell: seconds(cell) for cell in config.order()}
