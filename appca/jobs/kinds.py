"""What a worker can do: fit a model, lay out an embedding, fetch a data set."""

import math
import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from appca.analysis.explore.trust import with_trust
from appca.analysis.explore.umap import EmbeddingConfig, EmbeddingStore, embed
from appca.data.dataset import Dataset
from appca.data.preprocessing import Fitted, Preprocessing
from appca.data.sources.builtin import SOURCES, load
from appca.data.store import DatasetStore
from appca.jobs.progress import Context, Paced
from appca.runs import new_data
from appca.runs.cluster import FitPlace
from appca.runs.configuration import RunConfig
from appca.runs.fit import DESCRIBING, fit_run
from appca.runs.fit import project as described
from appca.runs.store import RunStore
from appca.storage import cache
from appca.words.errors import InputError

if TYPE_CHECKING:
    from appca.models.algebra.loop import Progress

_WINDOW = 10  # iterations over which EM judges its gain
_SAMPLING = ("burn-in", "draws")
_OF_A_CHAIN = re.compile(r"chain (\d+) of (\d+): (.*)")  # stages of EM where each makes its start
_RACE, _SETTLE, _FIT = 0.0, 0.1, 0.45  # where on the bar the stages of a fit begin
_START = 0.15  # how far EM moves the bar when it only starts the chains
_FITTED = 0.9  # what is left is describing and storing the rows


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
    place = FitPlace(config, gaps=dataset.missing is not None, tell=context.report)
    watch = FitProgress(context, tol, config.is_sampled)
    result = fit_run(dataset, config, watch, fitted, place)
    result = result._replace(info=result.info._replace(place=place.place))
    context.report("storing", 1.0)
    context.check()
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
        context.check()
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
    context.check()
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
    context.check()
    file = new_data.file_of(home, key)
    cache.write(file, run.id, **rows_described.row_arrays())
    new_data.rows_file(home, key).unlink(missing_ok=True)
    cache.prune(file.parent, "*.npz", new_data.MOST_BYTES, keep=file)
    return {"key": key}


class FitProgress:
    """Callback of a fit: reports each iteration, guesses the time left, obeys "stop here and keep".

    `tol` is the gain over ten iterations, in nats, below which EM stops; `sampled` says whether EM
    only makes the start of chains.
    """

    def __init__(
        self,
        context: Context,
        tol: float,
        sampled: bool = False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.context, self.tol, self.sampled, self.clock = context, tol, sampled, clock
        self._values: list[float] = []
        self._began = clock()

    def __call__(self, progress: "Progress") -> None:
        """Take note of one iteration."""
        if progress.stage == DESCRIBING:
            done = progress.iteration / progress.max_iter
            self.context.report(DESCRIBING, _FITTED + (1.0 - _FITTED) * done)
            return
        if progress.iteration == 1:
            self._values, self._began = [], self.clock()
        self._values.append(progress.log_likelihood)
        drawing = progress.stage in _SAMPLING
        if drawing:
            left: int | None = progress.max_iter - progress.iteration
        else:
            left = passes_left(self._values, self.tol, progress.max_iter)
        final = drawing or (progress.stage == "fit" and not self.sampled)
        seconds_left = None
        if final and left is not None and progress.iteration > 1:
            pace = (self.clock() - self._began) / (progress.iteration - 1)
            seconds_left = round(left * pace, 1)
        self.context.report(
            progress.stage,
            self._fraction(progress, left),
            iteration=progress.iteration,
            log_likelihood=progress.log_likelihood,
            seconds_left=seconds_left,
        )
        if self.context.folder.requested("keep"):
            raise StopIteration

    def _fraction(self, progress: "Progress", left: int | None) -> float:
        if progress.stage in _SAMPLING:
            return _START + (_FITTED - _START) * progress.iteration / progress.max_iter
        if not self.sampled:
            return _climbed(progress, left)
        match = _OF_A_CHAIN.fullmatch(progress.stage)
        number, chains = (int(match[1]), int(match[2])) if match else (1, 1)
        climbed = _climbed(progress._replace(stage=match[3]) if match else progress, left)
        return _START * (number - 1 + climbed / _FITTED) / chains


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


def _climbed(progress: "Progress", left: int | None) -> float:
    """How far EM has moved the bar."""
    share = progress.iteration / max(progress.max_iter, 1)
    if progress.stage == "fit":
        if left is not None:
            share = progress.iteration / (progress.iteration + left)
        return _FIT + (_FITTED - _FIT) * min(share, 1.0)
    if progress.stage.startswith("screening"):
        return _RACE + (_SETTLE - _RACE) * share
    return _SETTLE + (_FIT - _SETTLE) * share
