"""The job that hides cells, fits around them, and measures what the models put there."""

from typing import Any

from appca.analysis.check.journal import JournalStore
from appca.analysis.check.masked import FOLDER, MaskedConfig, run
from appca.jobs.choose import begun
from appca.jobs.progress import Context, Paced
from appca.runs.configuration import RunConfig
from appca.runs.fit import estimate_seconds


def masked(spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """Measure, or go on with it: a `MaskedConfig` as dict -> ``{"masked": id}``."""
    config, dataset = begun(MaskedConfig, spec, context)
    progress = Paced(context)
    total = config.repeats * len(config.methods)

    def report(done: int) -> None:
        progress.at(f"fit {done + 1} of {total}", done / total)

    store = JournalStore(context.home, FOLDER)
    run(dataset, config, store, report, progress.again)
    context.check()
    return {"masked": config.id}


def estimate(config: MaskedConfig, n_rows: int, n_features: int) -> float:
    """Guess the seconds all fits take, rather too many than too few."""
    rows, (K, L) = min(n_rows, config.max_rows), config.sizes

    def seconds(k: int, active: int) -> float:
        sizes = {"n_components": k, "n_active": active}
        parameters = config.parameters | sizes
        config_of_fit = RunConfig(config.dataset, config.preprocessing, "aPPCA", parameters)
        return estimate_seconds(rows, n_features, config_of_fit, incomplete=rows)

    once = seconds(K, K)
    return config.repeats * (once if K == L else once + seconds(K, L) + seconds(L, L))
