import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.manifold import trustworthiness

from appca.analysis import umap
from appca.analysis.umap import Embedding, EmbeddingConfig, EmbeddingStore, embed, start_from
from appca.data.dataset import Dataset
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.jobs.queue import ENDED, Jobs
from appca.runs.fit import fit_run
from appca.runs.run import RunConfig
from appca.runs.store import RunStore
from appca.words import InputError
from tests.jobs.waiting import until

CONFIG = EmbeddingConfig("d" * 64, {"divide": 16.0})


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return load("digits").take(np.arange(400))


def config_of(dataset: Dataset, **changes: object) -> EmbeddingConfig:
    return EmbeddingConfig(dataset.digest, {"divide": 16.0}, **changes)


@pytest.mark.slow
def test_a_worker_lays_out_all_rows_reuses_neighbours_and_repeats_itself(tmp_path, digits):
    """Pays for umap-learn's compilation; in every run, the page UMAP does so in a browser."""
    jobs, store = Jobs(tmp_path, workers=1), EmbeddingStore(tmp_path)
    DatasetStore(tmp_path).put(digits)
    run_config = RunConfig(digits.digest, {"divide": 16.0}, "aPPCA", {"n_components": 4})
    run = RunStore(tmp_path).save(run_config, fit_run(digits, run_config))

    def laid_out(config: EmbeddingConfig) -> Embedding:
        job = jobs.submit("umap", config.to_dict())
        until(lambda: jobs.status(job).state in ENDED, "the layout", seconds=240)
        assert jobs.status(job).result == {"embedding": config.id}, jobs.status(job).message
        return store.get(config.id)

    try:
        first = laid_out(config_of(digits))
        assert (first.coordinates.shape, first.coordinates.dtype) == ((400, 2), np.float32)
        assert trustworthiness(digits.X, first.coordinates) > 0.9
        false, missing, kept = first.trust.mean(axis=0)
        assert max(false, missing) < 0.1
        assert kept > 0.5
        (neighbours,) = tmp_path.glob("embeddings/neighbours-*.npz")
        written = neighbours.stat().st_ino
        (tmp_path / "embeddings" / f"{config_of(digits).id}.npz").unlink()
        again = laid_out(config_of(digits))
        assert again.coordinates.tobytes() == first.coordinates.tobytes()
        started = laid_out(config_of(digits, start="appca", run=run.id, n_components=3))
        assert started.coordinates.shape == (400, 3)
        assert trustworthiness(digits.X, started.coordinates) > 0.9
        assert neighbours.stat().st_ino == written
    finally:
        jobs.close()
    assert "umap" not in sys.modules, "umap-learn stays in the worker"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_neighbors": 1}, "n_neighbors must be at least 2 and n_components 2 or 3; got 1 and 2"),
        ({"n_components": 4}, "got 15 and 4"),
        ({"min_dist": 1.5}, "min_dist must lie between 0 and spread=1.0; got 1.5"),
        ({"min_dist": float("nan")}, "got nan"),
        ({"start": "spectral"}, "start must be “pca”, or “appca” with the id of a fit"),
        ({"start": "appca"}, "got “appca” with fit None"),
        ({"run": "0" * 12}, "got “pca” with fit 000000000000"),
    ],
)
def test_settings_without_meaning_are_refused_in_one_sentence(changes, words):
    with pytest.raises(InputError, match=words):
        replace(CONFIG, **changes)


@pytest.mark.parametrize(
    ("changes", "n_scores", "words"),
    [
        ({"n_neighbors": 400}, None, "smaller than the number of rows, 400; got 400"),
        ({"start": "appca", "run": "0" * 12}, None, "needs the scores of fit 000000000000"),
        ({"start": "appca", "run": "0" * 12}, 399, "for the same rows"),
    ],
)
def test_what_cannot_be_laid_out_is_told_before_the_work(
    tmp_path, digits, changes, n_scores, words
):
    store = EmbeddingStore(tmp_path)
    scores = None if n_scores is None else np.zeros((n_scores, 4))
    with pytest.raises(InputError, match=words):
        embed(digits, config_of(digits, **changes), store, scores)
    assert not store.folder.exists()


def test_neighbours_are_sought_again_for_another_number_data_or_a_damaged_file(
    tmp_path, digits, monkeypatch
):
    sought, laid_out, told, real = [], [], [], umap.nearest_rows

    def nearest(X: np.ndarray, k: int, report: object) -> object:
        sought.append(k)
        return real(X, k, report)

    class Layout:
        """Stands for UMAP, whose progress bar is the only sign of life it gives."""

        def __init__(self, **options: object) -> None:
            self.bar = options["tqdm_kwds"]["file"]
            laid_out.append(options)

        def fit_transform(self, X: np.ndarray) -> np.ndarray:
            for text in ("\r", "0/200 ", "\r100/200 ", "\n"):
                self.bar.write(text)
            return X[:, :2]

    monkeypatch.setattr(umap, "nearest_rows", nearest)
    monkeypatch.setitem(sys.modules, "umap", SimpleNamespace(UMAP=Layout))
    store, scores = EmbeddingStore(tmp_path), np.eye(400, 4)
    changes = {"min_dist": 1.5, "spread": 2.0, "random_state": 4}
    embed(digits, config_of(digits), store, report=lambda *stage: told.append(stage))
    assert told[-2:] == [("laying out", 0.3), ("laying out", pytest.approx(0.65))]
    embed(digits, config_of(digits, **changes), store)
    embed(digits, config_of(digits, start="appca", run="0" * 12), store, scores)
    assert sought == [15]
    neighbours = [made["precomputed_knn"][0] for made in laid_out]
    assert all((near == neighbours[0]).all() for near in neighbours)
    assert changes.items() <= laid_out[1].items()
    assert laid_out[1]["init"] == "pca"
    assert laid_out[2]["init"].shape == (400, 2)
    embed(digits, config_of(digits, n_neighbors=16), store)
    embed(digits, EmbeddingConfig(digits.digest, {"divide": 8}), store)
    for file in store.folder.iterdir():
        file.write_bytes(b"damaged")
    embed(digits, config_of(digits), store)
    assert sought == [15, 16, 15, 15]

    def stop(stage: str, _share: float) -> None:
        if stage == "laying out":
            raise InterruptedError

    with pytest.raises(InterruptedError):
        embed(digits, config_of(digits), store, report=stop)


def test_neighbours_kept_make_room_but_maps_stay(tmp_path, digits, monkeypatch):
    store = EmbeddingStore(tmp_path)
    store.save(CONFIG, Embedding(np.zeros((10, 2), np.float32)))
    X = digits.X / np.float32(16)
    monkeypatch.setattr(umap, "MOST_BYTES", 50_000)  # one of 400 x 15 takes 48 kB
    for k in (13, 14, 15):
        store.neighbours(replace(CONFIG, n_neighbors=k), X, lambda *_told: None)
        (left,) = store.folder.glob(umap.NEIGHBOUR_FILES)
        with np.load(left, allow_pickle=False) as archive:
            assert archive["indices"].shape == (400, k)
    assert store.get(CONFIG.id).coordinates.shape == (10, 2)
    for wrong in ("../x", "", None, "0" * 12, f"neighbours-{'0' * 12}"):
        assert store.get(wrong) is None


def test_the_start_from_scores_is_their_principal_plane_with_a_little_noise():
    rng = np.random.default_rng(3)
    scores = (rng.standard_normal((200, 5)) * [9, 1, 5, 1, 1]).astype(np.float32)
    scores[::2, :2] = 0
    start = start_from(scores, CONFIG)
    assert start.shape == (200, 2)
    assert start.tobytes() == start_from(scores, CONFIG).tobytes()
    centred = scores - scores.mean(axis=0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    for j in range(2):
        assert abs(np.corrcoef(start[:, j], u[:, j] * s[j])[0, 1]) > 0.9999
    same = start_from(np.zeros((50, 1), np.float32), replace(CONFIG, n_components=3))
    assert same.shape == (50, 3)
    assert len(np.unique(same, axis=0)) == 50, "equal rows must be able to part"
