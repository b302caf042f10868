"""Kinds of jobs: fit, map, download, grid, comparison of methods, study.

A comparison fits all methods to four fifths of the rows and scores the other fifth.
"""

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from appca.analysis import compare
from appca.analysis.campaign import Campaign, FitCampaign, Measure, Report, Step, apart, sample_of
from appca.analysis.choose import GridConfig, StabilityConfig, checked
from appca.analysis.compare import Cap, MaskedConfig, Method, ModelsConfig, RivalProjection, Split
from appca.analysis.map_quality import EXACT, with_trust
from appca.analysis.map_quality import quality as compare_neighbours
from appca.analysis.umap import EmbeddingConfig, EmbeddingStore, embed
from appca.data.dataset import Dataset
from appca.data.preprocessing import Fitted, Preprocessing
from appca.data.sources import SOURCES, load
from appca.data.store import DatasetStore
from appca.runs.fit import DESCRIBING, MOST_BYTES, estimate_seconds, file_of, fit_run, stored
from appca.runs.fit import project as described
from appca.runs.home import hold_threads
from appca.runs.run import MODELS, RunConfig, estimator_class
from appca.runs.store import RunStore
from appca.storage import files
from appca.storage.identity import plain
from appca.words import InputError, refuse_if

if TYPE_CHECKING:
    from appca.models.loop import Progress

INTERVAL = 0.1  # seconds between progress messages, so that progress looks smooth
_LEAST_SHARE = 0.02  # completed fraction from which the remaining time is estimated
_RECENT = 2.0  # seconds of recent work that determine the speed
_PRIOR, _FIRST_SHARE = 0.5, 0.003  # weight of the expected speed: seconds, share of work
_WINDOW = 10  # number of iterations over which gains are measured
_SAMPLING = ("burn-in", "draws")
_REFINED, _FIT = 0.1, 0.45  # progress at the start of the two EM stages after screening
_START = 0.15  # progress when EM only starts the chains
_FITTED = 0.9  # progress at the end of the fit, before description and storage


class Context:
    """The job that a handler runs, with its `home`.

    `tell` receives progress and new points of the curve; `stops` returns whether a fit should end.
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
        """Read a stored data set, and report it as a stage."""
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
        """Record progress, and send it if the last message is a tenth of a second old."""
        new_stage = stage != self.stage
        self._stage_number += new_stage
        if iteration is not None:
            self.iteration = iteration
            if math.isfinite(log_likelihood):
                self._points.append((self._stage_number, iteration, float(log_likelihood)))
        self.stage, self.seconds_left = stage, seconds_left
        self.fraction = min(max(fraction, self.fraction), 1.0)  # progress must not go backwards
        if new_stage or self.clock() - self._last_news >= INTERVAL:
            self.tell()

    def tell(self) -> None:
        """Send the progress."""
        self._last_news = self.clock()
        names = ("stage", "fraction", "iteration", "seconds_left")
        self._tell({name: getattr(self, name) for name in names} | {"points": self._points})
        self._points = []


class Paced:
    """Reports progress and the time left at the recent speed; `seconds` are expected in all."""

    def __init__(self, context: Context, seconds: float | None = None) -> None:
        self.context, self.seconds, self._began = context, seconds, context.clock()
        self._past: list[tuple[float, float]] = []

    def at(self, stage: str, share: float) -> None:
        """Start a stage."""
        self.context.report(stage, share, seconds_left=self.left(share))

    def left(self, share: float) -> float | None:
        """Return the seconds remaining after this fraction; None if unknown."""
        now, past, pace = self.context.clock(), self._past, self.seconds
        past.append((now, share))
        while len(past) > 2 and past[1][0] <= now - max(_RECENT, (now - self._began) / 3):
            del past[0]
        passed, gained = now - past[0][0], share - past[0][1]
        if pace is None:
            return (1 - share) * passed / gained if gained > _LEAST_SHARE else None
        if passed > 0 and gained > 0:
            weight = passed / (passed + _PRIOR) * gained / (gained + _FIRST_SHARE)
            pace *= float((passed / gained / pace) ** weight)
        return (1 - share) * pace


class FitProgress:
    """Callback of a fit that reports each iteration and the remaining time, and stops on request.

    `tol` is in nats over ten iterations; `sampled` is True if EM only starts chains. The expected
    total time is `seconds`.
    """

    def __init__(
        self, context: Context, tol: float, sampled: bool = False, seconds: float = 0.0
    ) -> None:
        self.context, self.tol, self.sampled = context, tol, sampled
        self._ends, self._sweeps = context.clock() + seconds, Paced(context)
        self._values: list[float] = []
        self._began = 0.0

    def __call__(self, progress: "Progress") -> None:
        """Record one iteration."""
        stage, iteration, most = progress.stage, progress.iteration, progress.max_iter
        if stage == DESCRIBING:
            self.context.report(stage, _FITTED + (1.0 - _FITTED) * iteration / most)
            return
        if iteration == 1:
            self._values, self._began = [], self.context.clock()
        self._values.append(progress.log_likelihood)
        drawing, now = stage in _SAMPLING, self.context.clock()
        left = most - iteration if drawing else passes_left(self._values, self.tol, most)
        seconds_left = self._sweeps.left(iteration / most) if drawing else None
        if stage == "fit" and not self.sampled and left is not None and iteration > 1:
            seconds_left = left * (now - self._began) / (iteration - 1)
        if seconds_left is None and now < self._ends:
            seconds_left = self._ends - now
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
    """Estimate EM's remaining iterations from a geometric decay of gains; None at the start."""
    most = max_iter - len(values)
    if len(values) <= 2 * _WINDOW:
        return None
    late, early = values[-1] - values[-1 - _WINDOW], values[-1 - _WINDOW] - values[-1 - 2 * _WINDOW]
    if late <= tol:
        return 0
    if tol <= 0 or late >= early:
        return most
    return min(most, math.ceil(_WINDOW * math.log(tol / late) / math.log(late / early)))


PROCESSES = 2


def fit(spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """Fit and store a run: ``{"config": ..., "name": ...}`` -> ``{"run": id}``."""
    from appca.models.ppca import TOL

    config, store = RunConfig.from_dict(spec["config"]), RunStore(context.home)
    name, origin = spec.get("name"), spec.get("origin", "fit")
    if (present := store.renew(config.id, name, origin)) is not None:
        return {"run": present.id}
    dataset, fitted = _prepared(config, context, partial(estimate_seconds, config=config))
    tol = config.parameters.get("tol", TOL) * dataset.n_rows  # PPCA uses EM without this setting
    incomplete = len(dataset.incomplete_rows)
    seconds = estimate_seconds(dataset.n_rows, dataset.n_features, config, incomplete=incomplete)
    result = fit_run(dataset, config, FitProgress(context, tol, config.is_sampled, seconds), fitted)
    context.report("storing", 1.0)
    config = replace(config, stopped_at=result.info.stopped_at)
    return {"run": store.save(config, result, name, origin).id}


def umap(spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """Compute and store an embedding: an `EmbeddingConfig` as dict -> ``{"embedding": id}``."""
    config, store = EmbeddingConfig.from_dict(spec), EmbeddingStore(context.home)
    if store.get(config.id) is None:
        dataset, fitted = _prepared(config, context, lambda *n: sum(map_seconds(*n).values()))
        run = RunStore(context.home).get(config.run) if config.run else None
        scores = run.fitted.scores if run else None
        stages = map_seconds(dataset.n_rows, dataset.n_features)
        names, seconds = [*stages], [*stages.values()]
        pace = Paced(context, sum(seconds))

        def report(stage: str, share: float) -> None:
            at = names.index(stage)
            pace.at(stage, (sum(seconds[:at]) + share * seconds[at]) / sum(seconds))

        embedding = embed(dataset, config, store, scores, report, fitted)
        embedding = with_trust(dataset, config, store, embedding, fitted, report)
        store.save(config, embedding)
    return {"embedding": config.id}


def map_seconds(n_rows: int, n_features: int) -> dict[str, float]:
    """Estimate the seconds per stage of a map; UMAP is compiled once per worker."""
    epochs, compared = 500 if n_rows <= 10_000 else 200, min(n_rows, EXACT)
    near, trusted = (1e-10 * n**2 * (n_features + 20) for n in (n_rows, compared))
    load, loaded, compiled = (0.1, 0.1, 0.3) if "umap" in sys.modules else (1.5, 3.0, 12.0)
    return {
        "preprocessing": load,
        "finding neighbours": 0.1 + near,
        "loading UMAP": loaded,
        "preparing the layout": compiled + 1e-4 * n_rows,
        "laying out": 3.5e-6 * epochs * n_rows,
        "comparing the neighbours of rows": 3e-4 * compared + 2 * trusted,
    }


def _prepared(
    config: RunConfig | EmbeddingConfig, context: Context, expected: Callable[[int, int], float]
) -> tuple[Dataset, Fitted]:
    dataset = context.dataset(config.dataset)
    context.report("preprocessing", 0.0, seconds_left=expected(dataset.n_rows, dataset.n_features))
    options = Preprocessing.from_dict(config.preprocessing)
    return dataset, options.fit(dataset.X, missing=dataset.missing)


def download(spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """Open a built-in data set and store it: ``{"key", "options"}`` -> ``{"dataset": digest}``."""
    title = SOURCES[spec["key"]].title if spec["key"] in SOURCES else str(spec["key"])
    report = Paced(context).at

    def fetched(done: int, total: int) -> None:
        report(f"fetching {title}", done / total if total else 0.0)

    context.report(f"opening {title}", 0.0)
    dataset = load(spec["key"], progress=fetched, **spec.get("options", {}))
    return {"dataset": DatasetStore(context.home).put(dataset)}


def project(spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """Describe rows stored by `new_data.keep_rows`: ``{"key", "run"}`` -> ``{"key": key}``."""
    key, home = spec["key"], context.home
    if stored(home, key) is not None:
        return {"key": key}
    context.report("reading the rows", 0.0)
    run, rows = RunStore(home).get(spec["run"]), files.read_cached(file_of(home, key, "-rows"))
    if run is None or rows is None:
        msg = "The fit or the new rows no longer exist; open both again."
        raise InputError(msg)

    pace = Paced(context)

    def report(progress: "Progress") -> None:
        pace.at("describing the rows", progress.iteration / progress.max_iter)

    rows_described, file = described(run.config, run.fitted, rows["X"], report), file_of(home, key)
    files.write_cached(file, run.id, **rows_described.row_arrays())
    file_of(home, key, "-rows").unlink(missing_ok=True)
    files.prune(file.parent, "*.npz", MOST_BYTES, keep=file)
    return {"key": key}


def study(spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """Compute and store: ``{"study": name, "options": ..., "key": id}`` -> ``{"study": id}``.

    For the experiment "whitening", the digest of a stored data set may replace a data set's name.
    """
    from appca.studies.catalogue import study_of
    from appca.studies.store import StudyStore

    wanted = study_of(spec["study"])
    options = wanted.options(**spec["options"])
    run: Any = wanted.run
    if wanted.name == "whitening" and options["data"] not in SOURCES:
        run = partial(run, source=str(DatasetStore(context.home).path(options["data"])))
    began, outcome = time.perf_counter(), run(options, Paced(context).at, PROCESSES)
    context.report("storing", 1.0)
    seconds = time.perf_counter() - began
    return {"study": StudyStore(context.home).save(wanted, options, outcome, seconds)}


def campaign(kind: str, spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """Measure a campaign, or its first "most" steps: settings as a dict -> ``{kind: id}``."""
    said, most = spec.keys() - {"key", "most"}, spec.get("most")
    config = CAMPAIGNS[kind].from_dict({name: spec[name] for name in said})
    dataset = context.dataset(config.dataset)
    hold_threads()
    seconds = np.array(estimate(config, dataset)[:most])
    progress, shares = Paced(context, float(seconds.sum())), seconds / seconds.sum()
    before = np.cumsum(shares) - shares

    def report(place: int, share: float) -> None:
        if not share:  # no speed, because fractions of a step may refer to its time limit
            progress.at(f"fit {place + 1} of {len(shares)}", float(before[place]))

    config.complete(dataset, context.home, report, most)
    if isinstance(config, GridConfig):
        progress.at("halves of the rows", 0.99)
        checked(config, context.home, lambda halves: halves.complete(dataset, context.home))
    return {kind: config.id}


def estimate(config: Campaign, dataset: Dataset) -> list[float]:
    """Estimate the seconds of every step of a campaign, rather too high than too low."""
    if isinstance(config, QualityConfig):
        n, rows = len(config.steps()), config.rows or dataset.n_rows
        return [(START + SECONDS_A_ROW_AND_FEATURE * rows * dataset.n_features) / n] * n
    assert isinstance(config, FitCampaign)
    width = Preprocessing.from_dict(config.preprocessing).most_features(dataset.n_features)
    incomplete = config.incomplete(dataset)
    guesses, seconds = dict[str, float](), list[float]()
    for settings, rows, weight in config.fits(dataset.n_rows):
        key = f"{settings} {rows}"
        if key not in guesses:
            parameters = config.parameters | settings
            fit = RunConfig(config.dataset, config.preprocessing, config.model, parameters)
            alone = estimate_seconds(rows, width, fit, incomplete=round(rows * incomplete))
            passes = PASSES if fit.k != fit.n_active else 0.0
            guesses[key] = passes + 2 * max(alone - 0.07, 0.005)  # minus a run's measured overhead
        seconds.append(weight * guesses[key])
    return seconds


PASSES = 0.25  # measured seconds of a thousand passes over few rows, which L = K does not need
START = 30.0  # seconds that a comparison of methods takes to start, mostly to compile UMAP
SECONDS_A_ROW_AND_FEATURE = 1.5e-5  # measured sum over all methods
HELD_OUT, LEAST_ROWS = 0.2, 20
MEASURES = ("log_likelihood", "log_likelihood_error", "mse", "mae")
NEAR = ("trustworthiness", "continuity", "kept", "accuracy")  # [value, standard error] each
FIRST = "ppca_l"  # measured first, because it is quick
_MOST_CLASSES = 1 / 3  # maximum number of classes, relative to the rows


class MethodWork(NamedTuple):
    """A method of the comparison."""

    key: str
    title: str
    size: int  # number of scores per row
    used: int  # number of nonzero scores per row
    fit: Method


@dataclass(frozen=True, eq=False)
class QualityConfig(Campaign):
    """Settings of a comparison of methods by preserved neighbours.

    `run` is a `RunConfig` as a dict. The other methods have `k` components; in sparse methods, a
    row uses `n_active` of them. `rows` is the size of a random sample, None for all rows. A method
    that takes longer than `seconds` stops early or is omitted.
    """

    folder: ClassVar[str] = "quality"

    run: dict[str, Any]
    k: int
    n_active: int
    rows: int | None = None
    n_neighbors: int = 15
    seconds: float = compare.SECONDS
    random_state: int = 0

    def __post_init__(self) -> None:
        config = RunConfig.from_dict(plain("run", self.run))
        run = replace(config, imported=None).to_dict()  # the method is fitted again here
        object.__setattr__(self, "run", run)

    @property
    def dataset(self) -> str:  # type: ignore[override]
        """Digest of the data set."""
        return str(self.run["dataset"])

    def steps(self) -> list[Step]:
        """Return the keys of the methods, starting with a quick one."""
        keys = [method.key for method in methods(self)]
        return [(key,) for key in sorted(keys, key=lambda key: key != FIRST)]

    def measuring(self, dataset: Dataset) -> Measure:
        """Return a function that measures a method; see `measured`."""
        split, by_key = split_of(dataset, self), {method.key: method for method in methods(self)}
        column = split.dataset.class_column
        # a label with nearly as many values as rows is not a class
        has_classes = column is not None and len(column[0]) <= split.dataset.n_rows * _MOST_CLASSES
        classes = np.asarray(column[1]) if column is not None and has_classes else None
        k = min(self.n_neighbors, (len(split.train) - 1) // 2)
        return lambda s, report: [measured(by_key[s[0]], split, classes, k, self.seconds, report)]

    def lines(self, home: Path) -> list[dict[str, Any]]:
        """Return the finished measurements, one line per method in the order of `methods`."""
        records, keys = self.records(home), [(method.key,) for method in methods(self)]
        return [records[key][0] for key in keys if key in records]


def measured(
    method: MethodWork,
    split: Split,
    classes: np.ndarray | None,
    k: int,
    seconds: float,
    report: Report,
) -> dict[str, Any]:
    """Fit one method and measure it.

    The line contains key, title, size, used, note, seconds, n_neighbors, `MEASURES` of the held-out
    rows (nats per row, errors per feature) and `NEAR` as [value, standard error], or None.
    """
    line: dict[str, Any] = dict.fromkeys((*MEASURES, *NEAR)) | method._asdict()
    line |= {"note": "", "seconds": None, "n_neighbors": k}
    del line["fit"]
    try:
        made = method.fit(split, Cap(seconds, lambda share: report(share / 2)))
    except ValueError as error:
        return line | {"note": str(error).partition("\n")[0]}
    near = compare_neighbours(
        split.train,
        made.scores,
        n_neighbors=k,
        classes=classes,
        report=lambda share: report(0.5 + share / 2),
    )
    line |= {"note": made.note, "seconds": round(made.seconds, 3)} | held_out(made, split.test)
    values = {name: getattr(near, name) for name in NEAR}
    return line | {name: None if value is None else list(value) for name, value in values.items()}


def methods(config: QualityConfig) -> list[MethodWork]:
    """Return the methods, starting with the run's own."""
    from appca.models.ppca import PPCA

    run, k, active = RunConfig.from_dict(config.run), config.k, config.n_active
    this_fit = partial(compare.ours, estimator_class(run.model), run.parameters)

    def ppca(key: str, q: int) -> MethodWork:
        fit = partial(compare.ours, PPCA, {"n_components": q, "random_state": 0})
        return MethodWork(key, "Probabilistic PCA", q, q, fit)

    factors, mixtures = "Factor analysis (scikit-learn)", partial(compare.mixture, k, active)
    plain = [ppca("ppca_l", active)] if active < k else []
    return [
        MethodWork("own", MODELS[run.model].title, k, active, this_fit),
        *([] if run.model == "PPCA" else [*plain, ppca("ppca_k", k)]),
        MethodWork("pca", "PCA (scikit-learn)", k, k, partial(compare.pca, k)),
        MethodWork("fa", factors, k, k, partial(compare.factor_analysis, k)),
        MethodWork("mixture", "Mixture of PPCA", k * active, active, mixtures),
        MethodWork("plane", "PCA picture (scikit-learn)", 2, 2, partial(compare.pca, 2)),
        MethodWork("umap", "UMAP", 2, 2, compare.umap),
    ]


def split_of(dataset: Dataset, config: QualityConfig) -> Split:
    """Draw training and held-out rows; learn the preprocessing of both from the training rows.

    Raises InputError if there are too few rows.
    """
    msg = f"A comparison needs at least {LEAST_ROWS} rows; this data set has {dataset.n_rows}."
    refuse_if(dataset.n_rows < LEAST_ROWS, msg)
    rows = sample_of(dataset.n_rows, config.rows, config.random_state)
    out, kept = apart(dataset, rows, (HELD_OUT, 1 - HELD_OUT), config.random_state)
    train = dataset.take(kept)
    fitted = Preprocessing.from_dict(config.run["preprocessing"]).fit(train.X)
    test = fitted.transform(dataset.X[out])
    return Split(fitted.transform(train.X), test, train, config.run["preprocessing"])


def held_out(made: RivalProjection, test: np.ndarray) -> dict[str, Any]:
    """Average results over the held-out rows."""
    measures, values = {}, made.log_likelihood
    if values is not None and np.isfinite(values).all():
        error = float(values.std(ddof=1) / np.sqrt(len(values)))
        measures = {"log_likelihood": float(values.mean()), "log_likelihood_error": error}
    if made.reconstruction is not None:
        off = made.reconstruction.astype(np.float64) - test
        measures |= {"mse": float(np.square(off).mean()), "mae": float(np.abs(off).mean())}
    return measures


CAMPAIGNS: dict[str, type[Campaign]] = {
    "grid": GridConfig,
    "stability": StabilityConfig,
    "models": ModelsConfig,
    "masked": MaskedConfig,
    "quality": QualityConfig,
}
