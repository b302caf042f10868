"""UMAP embeddings of a run, nearest neighbours, and maps of session files."""

import json
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct

from appca.data.dataset import Dataset
from appca.data.preprocessing import Fitted, Preprocessing
from appca.storage import files
from appca.storage.identity import Recorded, digest_of, is_id, plain
from appca.storage.packed import Packed
from appca.storage.schema import Facts
from appca.words import naming_extra, refuse_if, storing

StageReport = Callable[[str, float], None]
_QUERIES = 512  # number of queries between progress reports
FLAT = 3  # maximum number of columns for which a tree is fastest


class Neighbours(NamedTuple):
    """Exact nearest rows of every row; the first is the row itself."""

    indices: np.ndarray  # (N, k) int32
    distances: np.ndarray  # (N, k) float32, Euclidean


def nearest_rows(
    X: np.ndarray, k: int, report: StageReport = lambda _stage, _share: None
) -> Neighbours:
    """Return the k <= N nearest rows of every row of X (N, D), in float32, itself first."""
    from sklearn.neighbors import NearestNeighbors

    X = X - X.mean(axis=0, dtype=np.float64).astype(np.float32)  # smaller norms, less rounding
    X = np.ascontiguousarray(X, dtype=np.float32)
    algorithm = "kd_tree" if X.shape[1] <= FLAT else "brute"
    search = NearestNeighbors(n_neighbors=k, algorithm=algorithm).fit(X)
    distances, indices = np.empty((len(X), k), np.float32), np.empty((len(X), k), np.int32)
    for first in range(0, len(X), _QUERIES):
        report("finding neighbours", first / len(X))
        queries = slice(first, first + _QUERIES)
        distances[queries], indices[queries] = search.kneighbors(X[queries])
    rows = np.arange(len(X))
    place = (indices == rows[:, None]).argmax(axis=1)
    place[indices[rows, place] != rows] = k - 1  # a row with more than k equal rows may be missing
    indices[rows, place] = indices[:, 0]
    indices[:, 0], distances[:, 0] = rows, 0.0  # as UMAP requires
    return Neighbours(indices, distances)


_JITTER = 1e-4  # relative noise of the start, so that equal rows can separate
MOST_BYTES = 500_000_000  # maximum size of stored neighbours; 15 per row of 70,000 take 8 MB
NEIGHBOUR_FILES = "neighbours-*.npz"


@dataclass(frozen=True, eq=False)
class EmbeddingConfig(Recorded):
    """Settings that determine the coordinates, as in umap-learn; InputError if invalid."""

    dataset: str  # digest of the data set
    preprocessing: dict[str, Any]  # as in a run, with defaults
    n_neighbors: int = 15
    min_dist: float = 0.1
    spread: float = 1.0
    n_components: int = 2
    start: str = "pca"  # initial coordinates: components of the data ("pca") or a run's scores
    run: str | None = None  # id of the run with these scores; None with "pca"
    random_state: int = 0

    def __post_init__(self) -> None:
        options = plain("preprocessing", self.preprocessing)
        object.__setattr__(self, "preprocessing", Preprocessing.from_dict(options).to_dict())
        msg = f"min_dist must be between 0 and spread={self.spread}; got {self.min_dist}."
        refuse_if(not 0 <= self.min_dist <= self.spread, msg)
        msg = "n_neighbors must be at least 2 and n_components 2 or 3; "
        msg += f"got {self.n_neighbors} and {self.n_components}."
        refuse_if(self.n_neighbors < 2 or self.n_components not in {2, 3}, msg)
        msg = "start must be “pca”, or “appca” with the id of a fit; "
        msg += f"got “{self.start}” with fit {self.run}."
        refuse_if((self.start, self.run is None) not in {("pca", True), ("appca", False)}, msg)


class Embedding(NamedTuple):
    """Coordinates of all rows, and how well they preserve neighbours."""

    coordinates: np.ndarray  # (N, 2 or 3) float32
    trust: np.ndarray | None = None  # (N, 3) float32: false, missing, kept, see `explore.trust`
    near: np.ndarray | None = None  # (N, m) int32: nearest rows in the data, the nearest first


class EmbeddingStore:
    """Embeddings and neighbours below ``<home>/embeddings/``, one NPZ each, without pickle."""

    def __init__(self, home: Path) -> None:
        self.folder = Path(home) / "embeddings"

    def save(self, config: EmbeddingConfig, embedding: Embedding) -> str:
        """Store an embedding and return its id."""
        arrays = {k: values for k, values in embedding._asdict().items() if values is not None}
        facts = {"config": config.to_dict(), "n_rows": len(embedding.coordinates)}
        self._write(config.id, config.dataset, arrays | {"facts": np.array(json.dumps(facts))})
        return config.id

    def get(self, embedding_id: str) -> Embedding | None:
        """Return an embedding, or None if it is missing or cannot be read; see `or_none`."""
        return files.or_none(partial(self._read, embedding_id)) if is_id(embedding_id) else None

    def _read(self, embedding_id: str) -> Embedding | None:
        stored = files.read_numbered(self.folder / f"{embedding_id}.npz", f"Map {embedding_id}")
        facts = json.loads(str(stored["facts"]))
        n, config = facts["n_rows"], facts["config"]
        places, near = stored["coordinates"], stored.get("near")
        sound = digest_of(config) == embedding_id and places.dtype.kind == "f"
        sound &= places.shape == (n, config["n_components"]) and (near is None or near.max() < n)
        places.flags.writeable = False
        return Embedding(places, stored.get("trust"), near) if sound else None

    def neighbours(self, of: EmbeddingConfig, X: np.ndarray, report: StageReport) -> Neighbours:
        """Return the nearest rows of preprocessed rows X (N, D'), stored or newly computed."""
        of_file = {"data": of.dataset, "pre": of.preprocessing, "k": of.n_neighbors}
        name = "neighbours-" + digest_of(of_file)
        stored = files.read_cached(self.folder / f"{name}.npz")
        if stored is not None and set(Neighbours._fields) == set(stored):
            return Neighbours(**stored)
        neighbours = nearest_rows(X, of.n_neighbors, report)
        file = self._write(name, of.dataset, neighbours._asdict())
        files.prune(self.folder, NEIGHBOUR_FILES, MOST_BYTES, keep=file)
        return neighbours

    def _write(self, name: str, of: str, arrays: Mapping[str, np.ndarray]) -> Path:
        file = self.folder / f"{name}.npz"
        with storing("The embedding", self.folder):
            files.write_cached(file, of, **arrays)
        return file


def embed(
    dataset: Dataset,
    config: EmbeddingConfig,
    store: EmbeddingStore,
    scores: np.ndarray | None = None,
    report: StageReport = lambda _stage, _fraction: None,
    fitted: Fitted | None = None,
) -> Embedding:
    """Compute a UMAP embedding of all rows; call it in a worker process only.

    `report` receives stages, in the order of `jobs.tasks.map_seconds`, and their fractions. The
    start "appca" needs the `scores` (N, K) of its run. InputError for too few rows or scores.
    """
    msg = f"n_neighbors must be smaller than the number of rows, {dataset.n_rows}; "
    msg += f"got {config.n_neighbors}, so choose fewer."
    refuse_if(config.n_neighbors >= dataset.n_rows, msg)
    msg = f"The start “appca” needs the scores of fit {config.run} for the same rows; "
    msg += "fit it again or start from “pca”."
    refuse_if(config.start == "appca" and (scores is None or len(scores) != dataset.n_rows), msg)
    report("preprocessing", 0.0)
    fitted = fitted or Preprocessing.from_dict(config.preprocessing).fit(dataset.X)
    X = fitted.transform(dataset.X)
    near = store.neighbours(config, X, report)

    def told(text: str) -> None:
        """Read epochs from umap-learn's progress bar, its only hook."""
        if match := re.search(r"(\d+)/(\d+)", text):
            report("laying out", int(match[1]) / max(int(match[2]), 1))

    bar: dict[str, Any] = {"file": SimpleNamespace(write=told, flush=lambda: None)}
    bar |= {"bar_format": "{n}/{total} ", "mininterval": 0.2, "disable": False}
    numbers = ("n_neighbors", "n_components", "min_dist", "spread", "random_state")
    options: dict[str, Any] = {name: getattr(config, name) for name in numbers}
    options |= {"n_jobs": 1, "precomputed_knn": tuple(near), "tqdm_kwds": bar}
    init = "pca" if scores is None else start_from(scores, config)
    with warnings.catch_warnings():
        # UMAP warns about intended settings: a seed, hence one thread, and no new rows
        warnings.simplefilter("ignore")
        report("loading UMAP", 0.0)
        with naming_extra():
            from umap import UMAP

        report("preparing the layout", 0.0)
        places = UMAP(init=init, **options).fit_transform(X)
    return Embedding(np.ascontiguousarray(places, dtype=np.float32))


def start_from(scores: np.ndarray, config: EmbeddingConfig) -> np.ndarray:
    """Return initial coordinates: principal components of a run's scores, with some noise."""
    from appca.models.stiefel import upright

    centred = scores.astype(np.float64) - scores.mean(axis=0, dtype=np.float64)
    axes = np.linalg.eigh(centred.T @ centred)[1][:, ::-1][:, : config.n_components]
    start = np.zeros((len(scores), config.n_components))
    start[:, : axes.shape[1]] = upright(centred @ axes)
    spread, rng = np.ptp(start) or 1.0, np.random.default_rng(config.random_state)
    return (start + _JITTER * spread * rng.standard_normal(start.shape)).astype(np.float32)


KeptMap = tuple[EmbeddingConfig, Embedding]


class AboutMap(Struct):
    """The entry of a map in a session file."""

    config: Facts


def read(packed: Packed, number: int, said: AboutMap, dataset: Dataset) -> KeptMap:
    """Read a map of a data set; ValueError if it belongs to other rows."""
    config, places = EmbeddingConfig.from_dict(said.config), packed.array(f"maps/{number}.npy")
    fits = places.dtype == np.float32 and places.shape == (dataset.n_rows, config.n_components)
    fits &= config.dataset == dataset.digest and bool(np.isfinite(places).all())
    refuse_if(not fits, "a map of other rows")
    return config, Embedding(places)


def keep(maps: Sequence[KeptMap], ids: Mapping[str, str], home: Path) -> None:
    """Store new maps, with the ids that their fits have in this home."""
    store = EmbeddingStore(home)
    for of, embedding in maps:
        config = replace(of, run=ids.get(of.run or "", of.run))
        if store.get(config.id) is None:
            store.save(config, embedding)
