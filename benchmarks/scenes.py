"""Scenes of the canvas as files, and simulated rows in subspaces."""

import json
from pathlib import Path

import numpy as np

from appca.analysis.components import principal_scores
from appca.analysis.fitted import DescribedRows, FittedModel, FittedRun
from appca.canvas.scene import Map, Scene, scene_shown
from appca.data.dataset import Dataset
from appca.data.preprocessing import Fitted


def write(scene: Scene, folder: Path) -> None:
    """Write a scene to a folder: meta.json, raw buffers (.bin) and image sheets (.png)."""
    folder.mkdir(parents=True)
    for name, buffer in scene.buffers.items():
        (folder / f"{name}.bin").write_bytes(np.ascontiguousarray(buffer).tobytes())
    for number in range(scene.sheets.n_sheets if scene.sheets else 0):
        (folder / f"sheet_{number}.png").write_bytes(scene.sheets.png(number))
    if scene.component_sheet:
        (folder / "components.png").write_bytes(scene.component_sheet)
    (folder / "meta.json").write_text(json.dumps(scene.meta, separators=(",", ":")))


def planted(n: int, d: int = 50, K: int = 10, L: int = 3) -> tuple[FittedRun, Dataset]:
    """Simulate rows in subspaces, and a run that has recovered the subspaces."""
    rng = np.random.default_rng(0)
    sets = np.array([s for s in np.ndindex(K, K, K) if s[0] < s[1] < s[2]])
    of_row = rng.choice(len(sets), n, p=rng.dirichlet(np.full(len(sets), 0.8)))
    label = (rng.random(n) * 3 + of_row).astype(int) % 10
    middle = rng.normal(0, 4, (len(sets), 10, L))
    own = (middle[of_row, label] + rng.normal(0, 1.5, (n, L))).astype(np.float32)
    scores, active = np.zeros((n, K), np.float32), np.zeros((n, K), bool)
    np.put_along_axis(scores, sets[of_row], own, axis=1)
    np.put_along_axis(active, sets[of_row], True, axis=1)
    W = np.linalg.qr(rng.normal(size=(d, K)))[0].T.astype(np.float32)
    X = scores @ W + rng.normal(0, 0.3, (n, d)).astype(np.float32)
    dataset = Dataset(f"planted {n:,}", X, np.arange(n).astype(str), {"class": label.astype(str)})
    rows = DescribedRows(
        scores=scores,
        active=active,
        inclusion=active.astype(np.float32),
        membership=rng.beta(8, 1, n).astype(np.float32),
        error=np.ones(n, np.float32),
        log_likelihood_rows=np.zeros(n),
    )
    model = FittedModel(
        components=W,
        mean=np.zeros(d),
        noise_variance=0.09,
        latent_variance=np.ones(K),
        explained_variance=np.square(scores).mean(axis=0),
        scale=np.ones(K),
        n_active=L,
        preprocessing=Fitted(1.0, np.zeros(d), np.ones(d), None),
    )
    return model.with_rows(rows), dataset


def scene_from(fitted: FittedRun, dataset: Dataset) -> Scene:
    """Return the scene of a run with its colours and a map by PCA."""
    sample = dataset.X[:20_000]
    scores, *_ = principal_scores(sample.astype(np.float32), 2)
    if len(sample) < dataset.n_rows:
        centre = sample.mean(axis=0, dtype=np.float64).astype(np.float32)
        axes = np.linalg.lstsq(sample - centre, scores, rcond=None)[0]
        scores = (dataset.X - centre) @ axes
    return scene_shown(dataset, fitted, {"pca": Map("PCA", scores)})
