"""The job that measures a run's projection beside other methods' on the same rows.

All methods are fitted to four fifths of the rows and asked about the fifth held out; the neighbours
are those among the rows they were fitted to. A method already measured is not measured again when
a cancelled job is started again.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from appca.jobs.progress import Context, Paced
from appca.runs.configuration import MODELS, RunConfig, estimator_class
from appca.runs.home import hold_threads
from appca.runs.quality import MethodComparison, QualityConfig, QualityStore
from appca.words.errors import InputError

if TYPE_CHECKING:
    from appca.analysis.check.rivals import Cap, Report, RivalProjection, Split
    from appca.data.dataset import Dataset

HELD_OUT = 0.2
LEAST_ROWS = 20
MEASURES = ("log_likelihood", "log_likelihood_error", "mse", "mae")
NEAR = ("trustworthiness", "continuity", "kept", "accuracy")  # [value, standard error] each
FIRST = "ppca_l"  # quick to measure: somebody waits for the first line
_MOST_CLASSES = 1 / 3  # of the rows


class MethodWork(NamedTuple):
    """A method of the comparison."""

    key: str
    title: str
    size: int  # numbers of a row's scores
    used: int  # of them not zero
    fit: "Callable[[Split, Cap, Report], RivalProjection]"


def quality(spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """Measure and store: ``{"key": id, "config": ...}`` -> ``{"quality": id}``."""
    config = QualityConfig.from_dict(spec["config"])
    store = QualityStore(context.home)
    dataset = context.dataset(config.run["dataset"])
    context.report("preprocessing", 0.0)
    hold_threads()
    comparison = store.get(config.id) or MethodComparison([], {}, False)
    if not comparison.complete:
        report, save = Paced(context).at, partial(store.save, config)
        compare(split_of(dataset, config), config, comparison, report, save)
    return {"quality": config.id}


def compare(
    split: "Split",
    config: QualityConfig,
    comparison: MethodComparison,
    report: Callable[[str, float], object],
    save: Callable[[MethodComparison], object],
) -> MethodComparison:
    """Measure all methods but those that `comparison` has, saving after each.

    `report` is told (stage, fraction); raising from it ends the work. `save` is told what there is
    after each method.
    """
    column, train = split.dataset.class_column, len(split.train)
    # a label with about as many values as there are rows is no class
    has_classes = column is not None and len(column[0]) <= split.dataset.n_rows * _MOST_CLASSES
    classes = np.asarray(column[1]) if column is not None and has_classes else None
    k = min(config.n_neighbors, (train - 1) // 2)
    every = methods(config)
    lines = {line["key"]: line for line in comparison.lines}
    quick_first = sorted(every, key=lambda method: method.key != FIRST)
    for number, method in enumerate(quick_first):
        if method.key in lines:
            continue

        def told(stage: str, share: float, place: int = number) -> None:
            report(stage, (place + min(share, 1.0)) / len(every))

        lines[method.key] = measured(method, split, classes, k, config.seconds, told)
        done = [lines[m.key] for m in every if m.key in lines]
        comparison = MethodComparison(done, {"n_neighbors": k}, False)
        save(comparison)
    comparison = comparison._replace(complete=True)
    save(comparison)
    return comparison


def measured(
    method: MethodWork,
    split: "Split",
    classes: np.ndarray | None,
    k: int,
    seconds: float,
    report: Callable[[str, float], object],
) -> dict[str, Any]:
    """Fit one method and measure it.

    The line has key, title, size, used, note, seconds; log_likelihood and log_likelihood_error
    (nats per row held out, and the standard error of that mean), mse and mae (a feature, of the
    rows held out, in preprocessed units); trustworthiness, continuity, kept and accuracy as [value,
    standard error]. What a method does not have is None.
    """
    from appca.analysis.check.quality import quality as compare_neighbours
    from appca.analysis.check.rivals import Cap, TimeUp

    line: dict[str, Any] = dict.fromkeys((*MEASURES, *NEAR)) | method._asdict()
    line |= {"note": "", "seconds": None}
    del line["fit"]
    title = method.title
    try:
        made = method.fit(split, Cap(seconds), lambda share: report(f"fitting {title}", share / 2))
    except TimeUp:
        return line | {"note": f"not finished within {seconds:g} s"}
    except ValueError as error:
        return line | {"note": str(error).partition("\n")[0]}
    stage = f"comparing the neighbours of {title}"
    near = compare_neighbours(
        split.train,
        made.scores,
        n_neighbors=k,
        classes=classes,
        report=lambda share: report(stage, 0.5 + share / 2),
    )
    line |= {"note": made.note, "seconds": round(made.seconds, 3)} | held_out(made, split.test)
    values = {name: getattr(near, name) for name in NEAR}
    return line | {name: None if value is None else list(value) for name, value in values.items()}


def methods(config: QualityConfig) -> list[MethodWork]:
    """Return the methods in the order they are measured, the run's own first."""
    from appca.analysis.check import rivals
    from appca.models.ppca import PPCA

    run, k, active = RunConfig.from_dict(config.run), config.k, config.n_active
    own = partial(rivals.ours, estimator_class(run.model), run.parameters)

    def ppca(key: str, q: int) -> MethodWork:
        fit = partial(rivals.ours, PPCA, {"n_components": q, "random_state": 0})
        return MethodWork(key, "Probabilistic PCA", q, q, fit)

    sparse, codes = "Sparse PCA (scikit-learn)", "Dictionary learning + OMP (scikit-learn)"
    factors, kl = "Factor analysis (scikit-learn)", k * active
    plain = [ppca("ppca_l", active)] if active < k else []
    return [
        MethodWork("own", MODELS[run.model].title, k, active, own),
        *([] if run.model == "PPCA" else [*plain, ppca("ppca_k", k)]),
        MethodWork("pca", "PCA (scikit-learn)", k, k, partial(rivals.pca, k)),
        MethodWork("fa", factors, k, k, partial(rivals.factor_analysis, k)),
        MethodWork("mixture", "Mixture of PPCA", kl, active, partial(rivals.mixture, k, active)),
        MethodWork("subspaces", "K-subspaces", kl, active, partial(rivals.subspaces, k, active)),
        MethodWork("sparse", sparse, k, k, partial(rivals.sparse_pca, k)),
        MethodWork("dictionary", codes, k, active, partial(rivals.dictionary, k, active)),
        MethodWork("plane", "PCA picture (scikit-learn)", 2, 2, partial(rivals.pca, 2)),
        MethodWork("umap", "UMAP", 2, 2, rivals.umap),
    ]


def rows_of(dataset: "Dataset", config: QualityConfig) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that methods are fitted to and those held out, ascending."""
    order = np.random.default_rng(config.random_state).permutation(dataset.n_rows)[: config.rows]
    held_out = round(HELD_OUT * len(order))
    return np.sort(order[held_out:]), np.sort(order[:held_out])


def split_of(dataset: "Dataset", config: QualityConfig) -> "Split":
    """Draw the rows to compare and those held out, and preprocess both with what the first say.

    Raises InputError when there are too few rows.
    """
    from appca.analysis.check.rivals import Split
    from appca.data.preprocessing import Preprocessing

    if dataset.n_rows < LEAST_ROWS:
        msg = (
            f"A comparison needs at least {LEAST_ROWS} rows, because a fifth is held out; "
            f"this data set has {dataset.n_rows}."
        )
        raise InputError(msg)
    kept, out = rows_of(dataset, config)
    train = dataset.take(kept)
    fitted = Preprocessing.from_dict(config.run["preprocessing"]).fit(train.X)
    test = fitted.transform(dataset.X[out])
    return Split(fitted.transform(train.X), test, train, config.run["preprocessing"])


def held_out(made: "RivalProjection", test: np.ndarray) -> dict[str, Any]:
    """Averages over the rows held out."""
    measures, values = {}, made.log_likelihood
    if values is not None and np.isfinite(values).all():
        error = float(values.std(ddof=1) / np.sqrt(len(values)))
        measures = {"log_likelihood": float(values.mean()), "log_likelihood_error": error}
    if made.reconstruction is not None:
        off = made.reconstruction.astype(np.float64) - test
        measures |= {"mse": float(np.square(off).mean()), "mae": float(np.abs(off).mean())}
    return measures
