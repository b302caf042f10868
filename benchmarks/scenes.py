"""Scenes of the canvas as files, to look at and to measure.

`APPCA_DATA=... python -m benchmarks.scenes FOLDER [NAME ...]`: writes FOLDER/NAME/meta.json,
BUFFER.bin (raw, little-endian), sheet_0.png and so on, and components.png. Fits are kept in
FOLDER/fits.
"""

import argparse
import gzip
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from appca.analysis.components import principal_scores
from appca.analysis.fitted import DescribedRows, FittedModel, FittedRun
from appca.canvas.scene import Map, Scene, scene_shown
from appca.data.dataset import Dataset
from appca.data.preprocessing import Fitted, suggest
from appca.runs.fit import fit_run
from appca.runs.run import RunConfig


def write(scene: Scene, folder: Path) -> int:
    """Write a scene into a folder; return the bytes of its buffers."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for name, buffer in scene.buffers.items():
        (folder / f"{name}.bin").write_bytes(np.ascontiguousarray(buffer).tobytes())
    for number in range(scene.sheets.n_sheets if scene.sheets else 0):
        (folder / f"sheet_{number}.png").write_bytes(scene.sheets.png(number))
    if scene.component_sheet:
        (folder / "components.png").write_bytes(scene.component_sheet)
    (folder / "meta.json").write_text(json.dumps(scene.meta, separators=(",", ":")))
    return sum(buffer.nbytes for buffer in scene.buffers.values())


def planted(n: int, d: int = 50, K: int = 10, L: int = 3) -> tuple[FittedRun, Dataset]:
    """Rows on planted subspaces, as a run that has found them."""
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


def mnist(n: int) -> Dataset:
    """Return the first digits of MNIST."""
    folder = Path(os.environ["APPCA_DATA"]) / "mnist"
    with gzip.open(folder / "train-images-idx3-ubyte.gz") as file:
        X = np.frombuffer(file.read(16 + 784 * n), np.uint8, offset=16).reshape(n, 784)
    with gzip.open(folder / "train-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(8 + n), np.uint8, offset=8)
    return Dataset("MNIST", X, np.arange(n).astype(str), {"digit": labels.astype(str)}, (28, 28))


def digits() -> Dataset:
    """Return scikit-learn's 1,797 digits."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return Dataset("digits", X, np.arange(len(X)).astype(str), {"digit": y.astype(str)}, (8, 8))


def coil20() -> Dataset:
    """Return the 1,440 images of 128 x 128 pixels."""
    from appca.data.sources import load

    return load("coil20", size=128)


def fitted_to(dataset: Dataset, K: int, L: int, file: Path, model: str = "aPPCA") -> FittedRun:
    """Fit, or read what was fitted before."""
    if file.exists():
        with np.load(file, allow_pickle=False) as arrays:
            return FittedRun.from_arrays(dict(arrays))
    options = suggest(dataset)
    sizes = {"n_components": K, "n_active": L} if L else {}
    config = RunConfig(dataset.digest, options.to_dict(), model, sizes)
    fitted = fit_run(dataset, config).fitted
    file.parent.mkdir(parents=True, exist_ok=True)
    np.savez(file, **fitted.to_arrays())
    return fitted


def scene_from(fitted: FittedRun, dataset: Dataset) -> Scene:
    """Lay a run out with its colours and a map by PCA."""
    sample = dataset.X[:20_000]
    scores, _ = principal_scores(sample.astype(np.float32), 2)
    if len(sample) < dataset.n_rows:
        centre = sample.mean(axis=0, dtype=np.float64).astype(np.float32)
        axes = np.linalg.lstsq(sample - centre, scores, rcond=None)[0]
        scores = (dataset.X - centre) @ axes
    maps = {"pca": Map("PCA", scores)}
    return scene_shown(dataset, fitted, maps)


Made = Callable[[Path], tuple[FittedRun, Dataset]]


def _of(source: Callable[[], Dataset], name: str, K: int, L: int, model: str = "aPPCA") -> Made:
    def made(fits: Path) -> tuple[FittedRun, Dataset]:
        dataset = source()
        return fitted_to(dataset, K, L, fits / f"{name}.npz", model), dataset

    return made


SCENES: dict[str, Made] = {
    "digits_k6_l2": _of(digits, "digits_k6_l2", 6, 2),
    "digits_k7_l2": _of(digits, "digits_k7_l2", 7, 2),
    "digits_k6_l3": _of(digits, "digits_k6_l3", 6, 3),
    "digits_k5_l1": _of(digits, "digits_k5_l1", 5, 1),
    "digits_nppca": _of(digits, "digits_nppca", 0, 0, "NPPCA"),
    "mnist_k10_l2": _of(lambda: mnist(10_000), "mnist_k10_l2", 10, 2),
    "mnist_k10_l3": _of(lambda: mnist(10_000), "mnist_k10_l3", 10, 3),
    "mnist60_k20_l5": _of(lambda: mnist(60_000), "mnist60_k20_l5", 20, 5),
    "coil_k8_l3": _of(coil20, "coil_k8_l3", 8, 3),
    "planted_100k": lambda _: planted(100_000),
    "planted_1m": lambda _: planted(1_000_000),
}


def main() -> None:
    """Write the scenes that are named, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", choices=[[], *SCENES], default=[], metavar="NAME")
    given = parser.parse_args()
    for name in given.names or SCENES:
        fitted, dataset = SCENES[name](given.folder / "fits")
        began = time.perf_counter()
        scene = scene_from(fitted, dataset)
        seconds = time.perf_counter() - began
        n_bytes = write(scene, given.folder / name)
        panels = {key: len(one["panels"]) for key, one in scene.meta["layouts"].items()}
        a_row = n_bytes / dataset.n_rows
        print(
            f"{name}: {dataset.n_rows:,} rows, {panels}, {a_row:.1f} bytes a row, {seconds:.2f} s"
        )


if __name__ == "__main__":
    main()
