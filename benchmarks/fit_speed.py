"""CPU time of default fits, compared with PCA and dictionary learning, and of long computations.

`APPCA_DATA=... python -m benchmarks.fit_speed` writes results/speed.json and results/solids.json.
Each comparison runs in a new process, in which the models alternate after a first fit that loads
libraries and compiled code. Results are medians over three rounds, and medians of the ratios within
a round, with one BLAS thread. With two threads, wall time is also recorded, because CPU time
includes threads that spin while they wait. Images are digits, the solids of `sample_data` with
random angles, positions and lights, and patches of two photographs, measured with BLAS kernels for
this processor and for Haswell.
"""

import ctypes
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_sample_images
from threadpoolctl import threadpool_limits

from benchmarks import results

ROUNDS, WARM_UP_ROWS = 3, 10_000
MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "PCA": ("sklearn.decomposition", "PCA", {"svd_solver": "covariance_eigh"}),
    "dictionary": ("sklearn.decomposition", "MiniBatchDictionaryLearning", {"fit_algorithm": "cd"}),
    "default": ("appca", "AdaptivePPCA", {"n_active": 3}),
    "A + B": ("appca", "AdaptivePPCA", {"n_active": 3, "noise": "feature", "row_scale": "learned"}),
    "A + B + C": (
        "appca",
        "AdaptivePPCA",
        {"n_active": "learned", "noise": "feature", "row_scale": "learned"},
    ),
    "half": ("appca", "AdaptivePPCA", {"n_components": 12, "n_active": 6}),
}
KERNELS: dict[str, dict[str, str]] = {
    "the processor's own": {},
    "Haswell": {"OPENBLAS_CORETYPE": "Haswell"},
}
DESCRIBED = 100  # number of rows described, of 2,500
SIDE, RAYS, ANGLES, FARTHEST = 28, 3, 40, 9  # pixels, rays per side; views, largest shift
SAMPLE_DATA = Path(__file__).resolve().parents[1] / "sample_data"


def mnist(n: int) -> np.ndarray:
    """Return the first n digits, pixels from 0 to 1, float32."""
    from appca.data.sources import load

    return load("mnist", n=n).X.astype(np.float32) / np.float32(255)


def solids(n: int) -> np.ndarray:
    """Draw n pictures of 28 x 28 from 0 to 1, float32; 60,000 take 20 s."""
    sys.path.insert(0, str(SAMPLE_DATA))
    try:
        render, shapes = importlib.import_module("render"), importlib.import_module("solids")
    finally:
        sys.path.remove(str(SAMPLE_DATA))
    rng, side = np.random.default_rng(0), SIDE * RAYS
    origins, directions = render._rays(side)
    views = []  # per solid and angle: unit normals, 0 for the background, and albedo
    for solid in shapes.SOLIDS.values():
        for _ in range(ANGLES):
            table = render.rotation(2, rng.uniform(0.0, 360.0))
            standing = lambda p, s=solid, t=table: s.shape(p @ t)  # noqa: E731
            hit, points = render._march(standing, origins, directions)
            normals = np.zeros((side * side, 3), np.float32)
            normals[hit] = render._normals(standing, points[hit])
            views.append((normals.reshape(side, side, 3), solid.albedo))
    which, X = rng.integers(len(views), size=n), np.empty((n, SIDE * SIDE), np.float32)
    for row, (normals, albedo) in enumerate(views[view] for view in which):
        lamp = np.array([-0.55, -0.38, 0.62]) + 0.6 * rng.standard_normal(3)
        lit = 0.16 + rng.uniform(0.5, 1.0) * np.maximum(normals @ lamp / np.linalg.norm(lamp), 0.0)
        lit *= albedo * np.any(normals != 0.0, axis=-1)
        lit = np.roll(lit, rng.integers(-FARTHEST, FARTHEST, 2), (0, 1))
        blocks = lit.reshape(SIDE, RAYS, SIDE, RAYS).mean(axis=(1, 3))
        X[row] = np.rint(255.0 * np.minimum(blocks, 1.0)).ravel() / 255.0
    return X


def patches(n: int) -> np.ndarray:
    """Cut n patches of 28 x 28 from scikit-learn's two photographs, grey from 0 to 1, float32."""
    rng = np.random.default_rng(0)
    photographs = [picture.mean(axis=2) / 255.0 for picture in load_sample_images().images]
    X = np.empty((n, SIDE, SIDE), np.float32)
    for row in X:
        picture = photographs[rng.integers(len(photographs))]
        top, left = rng.integers(0, np.array(picture.shape) - SIDE + 1)
        row[:] = picture[top : top + SIDE, left : left + SIDE]
    return X.reshape(n, -1)


def odd_digits() -> np.ndarray:
    """Return 2,500 odd digits in 350 principal coordinates, float32."""
    from appca.data.preprocessing import Preprocessing
    from appca.data.sources import load

    dataset = load("mnist", per_class=550, classes=("1", "3", "5", "7", "9"))
    X = Preprocessing(divide=255.0, centre=True, pca=350).fit(dataset.X).transform(dataset.X)
    return np.random.default_rng(0).permutation(np.asarray(X, np.float32))[:2500]


def planted() -> np.ndarray:
    """Draw 1,080 rows of 77 features with 12 directions, 6 per row."""
    rng = np.random.default_rng(0)
    W = np.linalg.qr(rng.standard_normal((77, 12)))[0]
    Z = rng.random((1080, 12)).argsort(axis=1) < 6
    return (2.0 * rng.standard_normal(Z.shape) * Z) @ W.T + 0.3 * rng.standard_normal((1080, 77))


def small_digits() -> np.ndarray:
    """Return 1,080 digits of 8 x 8 pixels without constant pixels."""
    X = mnist(1080).reshape(1080, 28, 28)[:, 2:26, 2:26]
    X = X.reshape(1080, 8, 3, 8, 3).mean(axis=(2, 4)).reshape(1080, 64)
    return X[:, X.std(axis=0) > 0.0]


def first(X: np.ndarray, name: str, seed: int = 0, **more: Any) -> tuple[float, float]:
    """Return CPU and wall time of a fit, with its imports if it is the first of a process."""
    began = time.process_time(), time.perf_counter()
    module, model, settings = MODELS[name]
    settings = {"n_components": 10, "random_state": seed, **settings, **more}
    getattr(importlib.import_module(module), model)(**settings).fit(X)
    return time.process_time() - began[0], time.perf_counter() - began[1]


def alternating(X: np.ndarray, *names: str) -> list[list[tuple[float, float]]]:
    """Time alternating fits of models, (rounds, models, 2), after a fit of each to fewer rows."""
    for name in names:
        first(X[:WARM_UP_ROWS].copy(), name)
    return [[first(X, name, seed) for name in names] for seed in range(ROUNDS)]


def parts(X: np.ndarray) -> dict[str, float]:
    """Return the shares of a default fit's CPU time in its stages."""
    first(X[:WARM_UP_ROWS].copy(), "default")
    spent: dict[str, float] = {}
    began = last = time.process_time()

    def callback(progress: Any) -> None:
        nonlocal last
        now, words = time.process_time(), progress.stage.split()
        stage = " ".join(words[: words.index("on")] if "on" in words else words[:1])
        spent[stage] = spent.get(stage, 0.0) + now - last
        last = now

    first(X, "default", callback=callback)
    whole = time.process_time() - began
    return {stage: seconds / whole for stage, seconds in spent.items()}


def peak(X: np.ndarray) -> float:
    """Return the peak memory of a process's first fit, with its rows, relative to their size."""

    def memory(field: str) -> int:  # current (VmRSS) or peak (VmHWM), in bytes; Linux only
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))

    first(X[:WARM_UP_ROWS].copy(), "default")
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak becomes the current memory
    before = memory("VmRSS")
    first(X, "default")
    return (memory("VmHWM") - before + X.nbytes) / X.nbytes


def described(X: np.ndarray) -> float:
    """Return the CPU time to describe all rows by aFA with too many supports to enumerate."""
    from appca import AdaptiveFactorAnalysis

    model = AdaptiveFactorAnalysis(100, 50, random_state=0, max_iter=20).fit(X)
    model.score_samples(X[:2])
    began = time.process_time()
    model.score_samples(X[:DESCRIBED])
    return (time.process_time() - began) * len(X) / DESCRIBED


def alone(measure: Callable[..., Any], X: np.ndarray, *names: str, **environment: str) -> Any:
    """Return the result of a function in a new process, with one BLAS thread by default."""
    libraries = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    limits = dict.fromkeys(libraries, environment.pop("threads", "1"))
    with tempfile.NamedTemporaryFile(suffix=".npy") as file:
        np.save(file.name, X)
        command = [sys.executable, "-m", "benchmarks.fit_speed", "--measure", measure.__name__]
        environment = {**os.environ, **limits, **environment}
        told = subprocess.check_output([*command, file.name, *names], env=environment)
    return json.loads(told)


def versus(what: str, asked: str, X: np.ndarray, rival: str, *, above: bool) -> list[results.Row]:
    """Compare default fits with a rival, whose time is `above` or below in the ratio."""
    rows: list[results.Row] = []
    for threads, clocks in (("1", [""]), ("2", [", two BLAS threads", ", by the clock"])):
        times = np.array(alone(alternating, X, "default", rival, threads=threads))
        for i in range(len(clocks)):
            own, other = times[:, :, i].T
            ratio = np.median(other / own if above else own / other)
            row = {"what": what + "".join(clocks[: i + 1]), "asked": "" if rows else asked}
            row |= {"own_s": np.median(own), "other_s": np.median(other), "ratio": ratio}
            rows.append(row | ({} if rows else {"parts": alone(parts, X)}))
            print(rows[-1], flush=True)
    return rows


def firsts(X: np.ndarray, **environment: str) -> np.ndarray:
    """Return the CPU times of first default fits and first PCAs in new processes, (2, rounds)."""
    pairs = [
        [alone(first, X, name, **environment)[0] for name in ("default", "PCA")]
        for _ in range(ROUNDS)
    ]
    return np.array(pairs).T


def beside_pca(data: str, X: np.ndarray) -> list[results.Row]:
    """Compare PCA, default fits, A + B and A + B + C for both kinds of BLAS kernels."""
    rows: list[results.Row] = []
    for kernels, environment in KERNELS.items():
        names = ("PCA", "default", "A + B", "A + B + C")
        times = alone(alternating, X, *names, **environment)
        pca, default, wide, widest = np.array(times)[:, :, 0].T
        first_default, first_pca = firsts(X, **environment)
        row = {"data": data, "kernels": kernels, "pca_s": np.median(pca)}
        row |= {"default_s": np.median(default), "wide_s": np.median(wide)}
        row |= {"default": np.median(default / pca), "wide": np.median(wide / default)}
        row |= {"widest_s": np.median(widest), "widest": np.median(widest / default)}
        rows.append(row | {"first": np.median(first_default / first_pca)})
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Measure all."""
    if sys.argv[1:2] == ["--measure"]:
        warnings.simplefilter("ignore")  # fits that stop early
        name, file, *models = sys.argv[2:]
        measure = next(
            m for m in (first, alternating, parts, peak, described) if m.__name__ == name
        )
        print(json.dumps(measure(np.load(file), *models)))
        return
    parser = results.arguments(__doc__)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--also", type=Path, help="NPY file of further pictures, float32")
    options = parser.parse_args()
    threadpool_limits(1)  # as in the child processes, for the recorded facts
    many = mnist(options.rows)
    rows = [*beside_pca("MNIST", many), *beside_pca("solids", solids(options.rows))]
    rows += beside_pca("patches", patches(options.rows))
    if options.also is not None:
        rows += beside_pca(options.also.stem, np.load(options.also)[: options.rows])
    results.write(options.out, "solids", rows)

    few, name = many[: len(many) // 6], f"MNIST {len(many):,}"
    rows = versus(f"{name} over PCA", "at most 2.5", many, "PCA", above=False)
    own, other = firsts(many)
    row = {"what": "the same in a new process, imports included", "asked": "at most 4"}
    row |= {"own_s": np.median(own), "other_s": np.median(other), "ratio": np.median(own / other)}
    ratio = np.median([alone(peak, many) for _ in range(ROUNDS)])
    rows += [row, {"what": f"{name}: peak of memory over the data", "ratio": ratio}]
    what = f"dictionary by cd over MNIST {len(few):,}"
    rows += versus(what, "at least 3", few - few.mean(axis=0), "dictionary", above=True)
    for what, X in (("x 77 planted", planted()), ("digits of 8 x 8", small_digits())):
        X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
        row = {"what": f"1,080 {what}, 10% hidden, (12, 6)", "asked": "at most 4 s"}
        rows.append(row | {"own_s": np.median(np.array(alone(alternating, X, "half"))[..., 0])})
    what = "2,500 rows described by aFA (100, 50)"
    own_s = alone(described, odd_digits())
    rows.append({"what": what, "asked": "at most 15 s", "own_s": own_s})
    results.write(options.out, "speed", rows)


if __name__ == "__main__":
    main()
