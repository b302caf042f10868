"""Processor time of what a person waits for, with one BLAS thread, and where it goes.

`APPCA_DATA=... python -m benchmarks.speed` writes results/speed.json. Methods take turns in one
process, after a fit that loads libraries and compiled code; medians of three rounds, and of the
ratios within a round. Ratios are taken with two threads, too: by the processor, which counts
threads that spin while they wait, and by the clock. The peak of memory is that of a process's
first fit of all rows.
"""

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA, MiniBatchDictionaryLearning
from threadpoolctl import threadpool_limits

from appca import AdaptiveFactorAnalysis, AdaptivePPCA
from benchmarks import results
from benchmarks.shapes import mnist, odd_digits

ROUNDS = 3
DESCRIBED = 100  # rows described, of 2,500
HIDDEN = 0.1
FORGET_PEAK = Path("/proc/self/clear_refs")  # Linux: 5 makes the peak the current memory


def seconds(work: Callable[[], Any], clock: Callable[[], float] = time.process_time) -> float:
    """Time of a call, of the processor unless another clock is given."""
    began = clock()
    work()
    return clock() - began


def parts(X: np.ndarray) -> dict[str, float]:
    """Share of a default fit's time that its stages take."""
    spent: dict[str, float] = {}
    began = last = time.process_time()

    def hear(progress: Any) -> None:
        nonlocal last
        now, words = time.process_time(), progress.stage.split()
        stage = " ".join(words[: words.index("on")] if "on" in words else words[:1])
        spent[stage] = spent.get(stage, 0.0) + now - last
        last = now

    AdaptivePPCA(10, 3, random_state=0, callback=hear).fit(X)
    whole = time.process_time() - began
    return {stage: share / whole for stage, share in spent.items()}


def beside(
    what: str,
    X: np.ndarray,
    rival: Callable[[np.ndarray], Any],
    clock: Callable[[], float] = time.process_time,
    *,
    above: bool,
) -> results.Row:
    """Time default fits in turn with a rival; the ratio with the rival `above` or below."""
    both = []
    for seed in range(ROUNDS):
        ours = seconds(lambda seed=seed: AdaptivePPCA(10, 3, random_state=seed).fit(X), clock)
        both.append((ours, seconds(lambda: rival(X), clock)))
    own, other = np.array(both).T
    ratio = float(np.median(other / own if above else own / other))
    row = {"what": what, "asked": "", "own_s": np.median(own), "other_s": np.median(other)}
    return row | {"ratio": ratio}


def compared(
    what: str, asked: str, X: np.ndarray, rival: Callable[[np.ndarray], Any], *, above: bool
) -> list[results.Row]:
    """Time default fits beside a rival with one thread, and in two ways with two."""
    first = beside(what, X, rival, above=above) | {"asked": asked, "parts": parts(X)}
    with threadpool_limits(2):
        named = f"{what}, two BLAS threads"
        two = beside(named, X, rival, above=above)
        clock = beside(f"{named}, by the clock", X, rival, time.perf_counter, above=above)
    return [first, two, clock]


FIRST = """
import time
import warnings
warnings.simplefilter("ignore")
from benchmarks.shapes import mnist
X = mnist(60_000)
began = time.process_time()
from {module} import {name}
{name}({settings}).fit(X)
print(time.process_time() - began)
"""


MEMORY = """
import ctypes
import warnings
warnings.simplefilter("ignore")
from appca import AdaptivePPCA
from benchmarks.speed import FORGET_PEAK, memory
from benchmarks.shapes import mnist
X = mnist(60_000)
AdaptivePPCA(10, 3, random_state=0).fit(X[:10_000].copy())
ctypes.CDLL(None).malloc_trim(0)
FORGET_PEAK.write_text("5")
before = memory("VmRSS")
AdaptivePPCA(10, 3, random_state=0).fit(X)
print((memory("VmHWM") - before + X.nbytes) / X.nbytes)
"""


def memory(field: str) -> int:
    """Read the process's memory, now (VmRSS) or at most (VmHWM), in bytes; Linux only."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def peak() -> results.Row:
    """Measure the memory of the first fit of all rows, these included, over theirs."""
    ratio = float(np.median([alone(MEMORY) for _ in range(ROUNDS)]))
    return {"what": "MNIST 60,000: peak of memory over the data", "ratio": ratio}


def first() -> results.Row:
    """Time the first fit of a process, with what it loads, beside the first of PCA."""
    ours = FIRST.format(module="appca", name="AdaptivePPCA", settings="10, 3, random_state=0")
    pca = FIRST.format(
        module="sklearn.decomposition", name="PCA", settings="10, svd_solver='covariance_eigh'"
    )
    own, other = np.array([[alone(ours), alone(pca)] for _ in range(ROUNDS)]).T
    row = {"what": "the same in a new process, imports included", "asked": "at most 4"}
    ratio = float(np.median(own / other))
    return row | {"own_s": np.median(own), "other_s": np.median(other), "ratio": ratio}


def alone(script: str) -> float:
    """Run a script in a process of its own with one BLAS thread; return what it prints."""
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    ran = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | threads,
    )
    return float(ran.stdout)


def gaps(name: str, X: np.ndarray) -> results.Row:
    """Time a fit around hidden cells."""
    X = np.where(np.random.default_rng(1).random(X.shape) < HIDDEN, np.nan, X)
    own = [seconds(lambda: AdaptivePPCA(12, 6, random_state=0).fit(X)) for _ in range(ROUNDS)]
    return {"what": name, "asked": "at most 4 s", "own_s": np.median(own)}


def planted() -> np.ndarray:
    """1,080 rows of 77 features with 12 directions, 6 a row."""
    rng = np.random.default_rng(0)
    W = np.linalg.qr(rng.standard_normal((77, 12)))[0]
    Z = rng.random((1080, 12)).argsort(axis=1) < 6
    return (2.0 * rng.standard_normal(Z.shape) * Z) @ W.T + 0.3 * rng.standard_normal((1080, 77))


def described() -> results.Row:
    """Time the description of rows whose supports cannot be enumerated."""
    X = odd_digits()
    model = AdaptiveFactorAnalysis(100, 50, random_state=0, max_iter=20).fit(X)
    model.score_samples(X[:2])
    spent = seconds(lambda: model.score_samples(X[:DESCRIBED])) * len(X) / DESCRIBED
    return {
        "what": "2,500 rows described by aFA (100, 50)",
        "asked": "at most 15 s",
        "own_s": spent,
    }


def main() -> None:
    """Measure all, and write it."""
    given = results.arguments(__doc__).parse_args()
    warnings.simplefilter("ignore")  # of fits cut short
    pca = PCA(10, svd_solver="covariance_eigh")
    cd = MiniBatchDictionaryLearning(10, fit_algorithm="cd", random_state=0)
    centred = lambda X: cd.fit(X - X.mean(axis=0))  # noqa: E731
    digits = mnist(1080).reshape(1080, 28, 28)[:, 2:26, 2:26]
    digits = digits.reshape(1080, 8, 3, 8, 3).mean(axis=(2, 4)).reshape(1080, 64)
    digits = digits[:, digits.std(axis=0) > 0.0]
    with threadpool_limits(1):
        few, many = mnist(10_000), mnist(60_000)
        gap = planted()[:200]
        gap[0, 0] = np.nan
        for X in (few, gap):  # loads what is compiled
            AdaptivePPCA(10, 3, random_state=0).fit(X)
        rows = [
            *compared("MNIST 60,000 over PCA", "at most 2.5", many, pca.fit, above=False),
            first(),
            peak(),
            *compared("dictionary by cd over MNIST 10,000", "at least 3", few, centred, above=True),
            gaps("1,080 x 77 planted, 10% hidden, (12, 6)", planted()),
            gaps("1,080 digits of 8 x 8, 10% hidden, (12, 6)", digits),
            described(),
        ]
        results.write(given.out, "speed", rows)


if __name__ == "__main__":
    main()
