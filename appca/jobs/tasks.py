"""Kinds of jobs: fit, map, download, grids, comparison of methods, studies.

All methods are fitted to four fifths of the rows and asked about the fifth held out; the neighbours
are those among the rows they were fitted to. A method already measured is not measured again when
a cancelled job is started again.
"""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from appca.analysis import choose, compare
from appca.analysis import masked as hiding
from appca.analysis.choose import Cell, GridConfig, StabilityConfig
from appca.analysis.compare import ModelsConfig
from appca.analysis.journal import JournalStore
from appca.analysis.map_quality import with_trust
from appca.analysis.masked import MaskedConfig
from appca.analysis.umap import EmbeddingConfig, EmbeddingStore, embed
from appca.data.dataset import Dataset
from appca.data.preprocessing import Fitted, Preprocessing
from appca.data.sources import SOURCES, load
from appca.data.store import DatasetStore
from appca.runs.fit import (
    DESCRIBING,
    MOST_BYTES,
    MethodComparison,
    QualityConfig,
    QualityStore,
    estimate_seconds,
    file_of,
    fit_run,
    stored,
)
from appca.runs.fit import project as described
from appca.runs.home import hold_threads
from appca.runs.run import MODELS, RunConfig, estimator_class
from appca.runs.store import RunStore
from appca.storage import files
from appca.words import InputError

if TYPE_CHECKING:
    from appca.analysis.compare import Cap, Report, RivalProjection, Split
    from appca.models.loop import Progress

INTERVAL = 0.1  # seconds between two news: enough for an eye, nothing beside a fit
_LEAST_SHARE = 0.02  # done before the time left is guessed
_WINDOW = 10  # iterations over which EM judges its gain
_SAMPLING = ("burn-in", "draws")
_REFINED, _FIT = 0.1, 0.45  # where on the bar the stages of EM after the screening begin
_START = 0.15  # how far EM moves the bar when it only starts the chains
_FITTED = 0.9  # what is left is describing and storing the rows


class Context:
    """The job a handler works on: where things are, how to report, when to stop early.

    `home` has the stores. `tell` is told news: stage, fraction, iteration, seconds_left, and the
    points of the curve since the last news. `stops` says whether a fit is to end with what it has.
    """

    def __init__(
        self,
        home: Path,
        tell: Callable[[dict[str, Any]], object] = lambda _: None,
        stops: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.home, self.stops, self.clock, self._tell = home, stops, clock, tell
        self.stage, self.fraction = "starting", 0.0
        self.iteration: int | None = None
        self.seconds_left: float | None = None
        self._stage_number, self._last_news = -1, -math.inf
        self._points: list[tuple[int, int, float]] = []

    def dataset(self, digest: str) -> Dataset:
        """Read a stored data set, and say so."""
        self.report("reading the data", 0.0)
        return DatasetStore(self.home).get(digest)

    def report(
        self,
        stage: str,
        fraction: float,
        *,
        iteration: int | None = None,
        log_likelihood: float = math.nan,
        seconds_left: float | None = None,
    ) -> None:
        """Note progress, and tell it if the last news are a tenth of a second old."""
        new_stage = stage != self.stage
        self._stage_number += new_stage
        if iteration is not None:
            self.iteration = iteration
            if math.isfinite(log_likelihood):
                self._points.append((self._stage_number, iteration, float(log_likelihood)))
        self.stage, self.seconds_left = stage, seconds_left
        self.fraction = min(max(fraction, self.fraction), 1.0)  # a bar never runs backwards
        if new_stage or self.clock() - self._last_news >= INTERVAL:
            self.tell()

    def tell(self) -> None:
        """Tell how far it is now."""
        self._last_news = self.clock()
        names = ("stage", "fraction", "iteration", "seconds_left")
        self._tell({name: getattr(self, name) for name in names} | {"points": self._points})
        self._points = []


class Paced:
    """Reports the share done and guesses the time left from the pace so far.

    `end` is how far the work moves the bar; the pace is that of the stage if `by_stage`, else of
    all since the beginning.
    """

    def __init__(self, context: Context, *, end: float = 1.0, by_stage: bool = False) -> None:
        self.context, self.end, self.by_stage = context, end, by_stage
        self._stage: str | None = None
        self._began = self._first = 0.0

    def at(self, stage: str, share: float) -> None:
        """Begin a piece of work."""
        now, left = self.context.clock(), None
        if self._stage is None or (self.by_stage and stage != self._stage):
            self._began, self._first = now, share
        self._stage = stage
        gained = share - self._first
        if gained > _LEAST_SHARE:
            left = round((now - self._began) * (1 - share) / gained, 1)
        self.context.report(stage, self.end * share, seconds_left=left)


class FitProgress:
    """Callback of a fit: reports each iteration, guesses the time left, obeys "stop here and keep".

    `tol` is the gain over ten iterations, in nats, below which EM stops; `sampled` says whether EM
    only makes the start of chains.
    """

    def __init__(self, context: Context, tol: float, sampled: bool = False) -> None:
        self.context, self.tol, self.sampled = context, tol, sampled
        self._values: list[float] = []
        self._began = 0.0

    def __call__(self, progress: "Progress") -> None:
        """Take note of one iteration."""
        stage, iteration, most = progress.stage, progress.iteration, progress.max_iter
        if stage == DESCRIBING:
            self.context.report(stage, _FITTED + (1.0 - _FITTED) * iteration / most)
            return
        if iteration == 1:
            self._values, self._began = [], self.context.clock()
        self._values.append(progress.log_likelihood)
        drawing, seconds_left = stage in _SAMPLING, None
        left = most - iteration if drawing else passes_left(self._values, self.tol, most)
        final = drawing or (stage == "fit" and not self.sampled)
        if final and left is not None and iteration > 1:
            pace = (self.context.clock() - self._began) / (iteration - 1)
            seconds_left = round(left * pace, 1)
        self.context.report(
            stage,
            self._fraction(progress, left),
            iteration=iteration,
            log_likelihood=progress.log_likelihood,
            seconds_left=seconds_left,
        )
        if self.context.stops():
            raise StopIteration

    def _fraction(self, progress: "Progress", left: int | None) -> float:
        share = progress.iteration / max(progress.max_iter, 1)
        if self.sampled:
            drawing = progress.stage in _SAMPLING
            return _START + (_FITTED - _START) * share if drawing else _START * share
        begin, end = (0.0, _REFINED) if "screening" in progress.stage else (_REFINED, _FIT)
        if progress.stage == "fit":
            begin, end = _FIT, _FITTED
            if left is not None:
                share = progress.iteration / (progress.iteration + left)
        return begin + (end - begin) * min(share, 1.0)


def passes_left(values: list[float], tol: float, max_iter: int) -> int | None:
    """Guess the iterations EM still needs, as if gains over ten of them fell geometrically.

    None while there are too few iterations to tell.
    """
    most = max_iter - len(values)
    if len(values) <= 2 * _WINDOW:
        return None
    late = values[-1] - values[-1 - _WINDOW]
    early = values[-1 - _WINDOW] - values[-1 - 2 * _WINDOW]
    if late <= tol:
        return 0
    if tol <= 0 or late >= early:
        return most
    return min(most, math.ceil(_WINDOW * math.log(tol / late) / math.log(late / early)))


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
    if stored(home, key) is not None:
        return {"key": key}
    context.report("reading the rows", 0.0)
    run, rows = RunStore(home).get(spec["run"]), files.read_cached(file_of(home, key, "-rows"))
    if run is None or rows is None:
        msg = "The fit or the new rows are not there any more; open both again."
        raise InputError(msg)

    pace = Paced(context)

    def report(progress: "Progress") -> None:
        pace.at("describing the rows", progress.iteration / progress.max_iter)

    rows_described = described(run.config, run.fitted, rows["X"], report)
    file = file_of(home, key)
    files.write_cached(file, run.id, **rows_described.row_arrays())
    file_of(home, key, "-rows").unlink(missing_ok=True)
    files.prune(file.parent, "*.npz", MOST_BYTES, keep=file)
    return {"key": key}


def study(spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """Compute and store: ``{"study": name, "options": ..., "key": id}`` -> ``{"study": id}``.

    The data of the experiment "whitening" may be named by the digest of a stored data set.
    """
    from appca.studies.catalogue import study_of
    from appca.studies.store import StudyStore
    from appca.studies.whitening import classify

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
    config, dataset, store = _begun(ModelsConfig, compare.MODELS_FOLDER, spec, context)
    progress, n = Paced(context), len(compare.methods(config))

    def report(_key: str, share: float) -> None:
        progress.at(f"model {1 + int(share * n)} of {n}", share)

    compare.fill(dataset, config, store, report)
    return {"models": config.id}


def stability(spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """Fit one model again and again: a `StabilityConfig` as dict -> ``{"stability": id}``."""
    config, dataset, store = _begun(StabilityConfig, choose.STABILITY_FOLDER, spec, context)
    choose.run(dataset, config, store, _counting(context, config.repeats + 1))
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
    variants = (K | compare.variant_settings(key, config.n_active) for key in compare.VARIANTS)
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
        compare_methods(split_of(dataset, config), config, comparison, report, save)
    return {"quality": config.id}


def compare_methods(
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
    from appca.analysis.compare import Cap, TimeUp
    from appca.analysis.map_quality import quality as compare_neighbours

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
    from appca.analysis.compare import (
        dictionary,
        factor_analysis,
        mixture,
        ours,
        pca,
        sparse_pca,
        subspaces,
        umap,
    )
    from appca.models.ppca import PPCA

    run, k, active = RunConfig.from_dict(config.run), config.k, config.n_active
    this_fit = partial(ours, estimator_class(run.model), run.parameters)

    def ppca(key: str, q: int) -> MethodWork:
        fit = partial(ours, PPCA, {"n_components": q, "random_state": 0})
        return MethodWork(key, "Probabilistic PCA", q, q, fit)

    sparse, codes = "Sparse PCA (scikit-learn)", "Dictionary learning + OMP (scikit-learn)"
    factors, kl = "Factor analysis (scikit-learn)", k * active
    plain = [ppca("ppca_l", active)] if active < k else []
    return [
        MethodWork("own", MODELS[run.model].title, k, active, this_fit),
        *([] if run.model == "PPCA" else [*plain, ppca("ppca_k", k)]),
        MethodWork("pca", "PCA (scikit-learn)", k, k, partial(pca, k)),
        MethodWork("fa", factors, k, k, partial(factor_analysis, k)),
        MethodWork("mixture", "Mixture of PPCA", kl, active, partial(mixture, k, active)),
        MethodWork("subspaces", "K-subspaces", kl, active, partial(subspaces, k, active)),
        MethodWork("sparse", sparse, k, k, partial(sparse_pca, k)),
        MethodWork("dictionary", codes, k, active, partial(dictionary, k, active)),
        MethodWork("plane", "PCA picture (scikit-learn)", 2, 2, partial(pca, 2)),
        MethodWork("umap", "UMAP", 2, 2, umap),
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
    from appca.analysis.compare import Split
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
