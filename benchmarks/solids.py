"""Default fits beside PCA, and A + B beside default fits, on 60,000 pictures of two kinds.

`APPCA_DATA=... python -m benchmarks.solids` writes results/solids.json: processor time with one
BLAS thread, medians of three rounds and of the ratios within a round. It is measured with the
processor's own BLAS kernels and with those that every processor with AVX2 has, each in processes
of their own. The solids of `sample_data` are drawn at random angles, places and lights.
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import results
from benchmarks.shapes import mnist

ROWS, ROUNDS = 60_000, 3
KERNELS = ("", "Haswell")  # of OpenBLAS; "" takes those made for the processor
MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "pca": ("sklearn.decomposition", "PCA", {"svd_solver": "covariance_eigh"}),
    "default": ("appca", "AdaptivePPCA", {"n_active": 3}),
    "A + B": ("appca", "AdaptivePPCA", {"n_active": 3, "noise": "feature", "row_scale": "learned"}),
}
SIDE, RAYS, ANGLES, FARTHEST = 28, 3, 40, 9  # pixels, rays along one, views a solid, rays moved
SAMPLE_DATA = Path(__file__).resolve().parents[1] / "sample_data"


def solids(n: int) -> np.ndarray:
    """Draw n pictures of 28 x 28 from 0 to 1, float32; 60,000 take 20 s."""
    rng = np.random.default_rng(0)
    normals, albedo = _views(rng)
    hit = np.any(normals != 0.0, axis=-1)
    which, X = rng.integers(len(normals), size=n), np.empty((n, SIDE * SIDE), np.float32)
    for row, view in enumerate(which):
        lamp = np.array([-0.55, -0.38, 0.62]) + 0.6 * rng.standard_normal(3)
        lamp /= np.linalg.norm(lamp)
        lit = 0.16 + rng.uniform(0.5, 1.0) * np.maximum(normals[view] @ lamp, 0.0)
        lit = np.roll(lit * hit[view] * albedo[view], rng.integers(-FARTHEST, FARTHEST, 2), (0, 1))
        blocks = lit.reshape(SIDE, RAYS, SIDE, RAYS).mean(axis=(1, 3))
        X[row] = np.rint(255.0 * np.minimum(blocks, 1.0)).ravel() / 255.0
    return X


def _views(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return unit normals (views, side, side, 3), 0 where a ray meets nothing, and albedos."""
    sys.path.insert(0, str(SAMPLE_DATA))
    try:
        render, shapes = importlib.import_module("render"), importlib.import_module("solids")
    finally:
        sys.path.remove(str(SAMPLE_DATA))
    side, bodies = SIDE * RAYS, list(shapes.SOLIDS.values())
    origins, directions = render._rays(side)
    normals = np.zeros((len(bodies) * ANGLES, side * side, 3), np.float32)
    for view, solid in zip(normals, [s for s in bodies for _ in range(ANGLES)], strict=True):
        table = render.rotation(2, rng.uniform(0.0, 360.0))
        standing = lambda p, s=solid, t=table: s.shape(p @ t)  # noqa: E731
        hit, points = render._march(standing, origins, directions)
        view[hit] = render._normals(standing, points[hit])
    albedo = np.repeat([s.albedo for s in bodies], ANGLES)
    return normals.reshape(-1, side, side, 3), albedo


def fit_s(X: np.ndarray, name: str, seed: int) -> float:
    """Processor time of a fit of 10 components, with what it imports."""
    began = time.process_time()
    module, made, words = MODELS[name]
    model = getattr(importlib.import_module(module), made)
    model(10, random_state=seed, **words).fit(X)
    return time.process_time() - began


def alone(file: str, kernels: str, *what: str) -> Any:
    """Return what a process of its own measures with one BLAS thread: see `_measured`."""
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    named = {"OPENBLAS_CORETYPE": kernels} if kernels else {}
    command = [sys.executable, "-m", "benchmarks.solids", "--measure", file, *what]
    ran = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, env=os.environ | threads | named
    )
    return json.loads(ran.stdout)


def _measured(file: str, *what: str) -> list[list[float]]:
    """Time the first fit of a process, if a model is named, else fits of all models in turn."""
    X = np.load(file)
    if what:
        return [[fit_s(X, what[0], 0)]]
    for name in MODELS:  # loads libraries and compiled code
        fit_s(X[:10_000].copy(), name, 0)
    return [[fit_s(X, name, seed) for name in MODELS] for seed in range(ROUNDS)]


def rows_of(data: str, file: str, kernels: str) -> results.Row:
    """Measure one kind of pictures with one kind of kernels."""
    pca, default, wide = np.array(alone(file, kernels)).T
    names = list(MODELS)[:2]
    firsts = [[alone(file, kernels, name)[0][0] for name in names] for _ in range(ROUNDS)]
    first_pca, first = np.array(firsts).T
    row = {"data": data, "kernels": kernels or "the processor's own", "pca_s": np.median(pca)}
    row |= {"default_s": np.median(default), "wide_s": np.median(wide)}
    row |= {"default": np.median(default / pca), "wide": np.median(wide / default)}
    return row | {"first": np.median(first / first_pca)}


def main() -> None:
    """Measure all, and write it."""
    warnings.simplefilter("ignore")  # of fits cut short
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(_measured(*sys.argv[2:])))
        return
    options, rows = results.arguments(__doc__).parse_args(), []
    with tempfile.TemporaryDirectory() as folder:
        for data, draw in (("MNIST", lambda: mnist(ROWS)), ("solids", lambda: solids(ROWS))):
            file = f"{folder}/{data}.npy"
            np.save(file, draw())
            rows += [rows_of(data, file, kernels) for kernels in KERNELS]
            print(*rows[-len(KERNELS) :], sep="\n", flush=True)
    results.write(options.out, "solids", rows)


if __name__ == "__main__":
    main()
