"""How long sparse counts take, and what memory, beside scikit-learn's decompositions of them.

`python -m benchmarks.sparse [--cases NAME ...]`: writes counts that planted supports make, and fits
each method in a process of its own. A row draws L of the K planted components; each component
spreads its counts over a tenth of the features. Memory is the most that the process held, with the
data; "of the variance" is that of the counts about their mean which scores and components
reproduce, and "found" the mean over planted components of the largest |cosine| with a fitted
one. Writes results/sparse.json.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from appca import AdaptivePPCA
from appca.models.algebra.threads import single_threaded_blas
from appca.words.numbers import percent
from benchmarks import results
from benchmarks.measure import memory

K, L = 20, 5
CASES = {  # rows, features, counts a row, asked GB and s
    "600,000 x 2,000, 5% filled": (600_000, 2_000, 110, 4.0, 300.0),
    "100,000 x 20,000, 3% filled": (100_000, 20_000, 660, 6.0, None),
}
METHODS = ("aPPCA", "aPPCA, one start", "TruncatedSVD", "PCA, arpack")
PARTS = ("data", "indices", "indptr", "planted")
BLOCK = 50_000


def main() -> None:
    """Print a line a fit, and write all."""
    parser = results.arguments(__doc__)
    parser.add_argument("--cases", nargs="*", default=list(CASES), help="all by default")
    parser.add_argument("--measure", nargs=2, help="method and folder: what the processes are for")
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measured(options.measure[0], Path(options.measure[1]))))
        return
    rows = []
    for case in options.cases:
        with tempfile.TemporaryDirectory() as folder:
            parts = planted(*CASES[case][:3])
            for name, part in zip(PARTS, parts, strict=True):
                np.save(Path(folder) / f"{name}.npy", part)
            del parts
            for method in METHODS:
                command = [sys.executable, "-W", "ignore", "-m", "benchmarks.sparse", "--measure"]
                said = subprocess.check_output([*command, method, folder], text=True)
                rows.append({"data": case, "method": method, **json.loads(said)})
                print(rows[-1], flush=True)
                results.write(options.out, "sparse", rows)


def planted(n: int, d: int, size: int) -> tuple[np.ndarray, ...]:
    """Return counts in the three arrays of CSR, and the shares (K, d) of features in components."""
    rng = np.random.default_rng(0)
    shares = rng.gamma(1.0, 1.0, (K, d)) * (rng.random((K, d)) < 0.1)
    shares /= shares.sum(axis=1, keepdims=True)
    reached = np.cumsum(shares, axis=1)
    parts = []
    for start in range(0, n, BLOCK):
        some = min(BLOCK, n - start)
        Z = np.argsort(rng.random((some, K)), axis=1)[:, :L]
        counts = rng.poisson(size / L * rng.gamma(4.0, 0.25, (some, L)))
        of, who = np.repeat(Z.ravel(), counts.ravel()), np.repeat(np.arange(some), counts.sum(1))
        at = rng.random(len(of))
        features = np.empty(len(of), np.int32)
        for k in range(K):
            features[of == k] = np.searchsorted(reached[k], at[of == k])
        values = np.ones(len(of), np.float32)
        block = scipy.sparse.coo_array((values, (who, np.minimum(features, d - 1))), (some, d))
        parts.append(block.tocsr())
    X = scipy.sparse.vstack(parts, format="csr")
    return X.data, X.indices, X.indptr, shares


def measured(name: str, folder: Path) -> results.Row:
    """Return seconds, memory and what the fit reproduces of the data."""
    data, indices, indptr, shares = (np.load(folder / f"{part}.npy") for part in PARTS)
    X = scipy.sparse.csr_array((data, indices, indptr), (len(indptr) - 1, shares.shape[1]))
    model = method(name)
    method(name).fit(X[:3000, :500])  # libraries and compiled code
    clock, processor = time.perf_counter(), time.process_time()
    model.fit(X)
    clock, processor = time.perf_counter() - clock, time.process_time() - processor
    peak = memory("VmHWM") / 1e9
    mean = np.asarray(X.mean(axis=0)).ravel()
    lines = model.components_ / np.linalg.norm(model.components_, axis=1, keepdims=True)
    shares /= np.linalg.norm(shares, axis=1, keepdims=True)
    return {
        "clock_s": clock,
        "processor_s": processor,
        "peak_gb": peak,
        "filled": X.nnz / X.shape[0] / X.shape[1],
        "numbers": L if name.startswith("aPPCA") else K,
        "variance": reproduced(model, X, mean),
        "found": float(np.abs(shares @ lines.T).max(axis=1).mean()),
    }


def method(name: str) -> Any:
    """Return an estimator."""
    from sklearn.decomposition import PCA, TruncatedSVD

    if name == "TruncatedSVD":
        return TruncatedSVD(K, random_state=0)
    if name == "PCA, arpack":
        return PCA(K, svd_solver="arpack", random_state=0)
    cheap: dict[str, Any] = {"init": "quartimax", "tol": 0.02} if name.endswith("one start") else {}
    return AdaptivePPCA(K, L, random_state=0, **cheap)


def reproduced(model: Any, X: Any, mean: np.ndarray) -> float:
    """Share of the variance about the mean that scores and components reproduce."""
    C = model.components_.astype(np.float64)
    centre = getattr(model, "mean_", np.zeros(len(mean))).astype(np.float64)
    left = total = 0.0
    with single_threaded_blas():
        for start in range(0, X.shape[0], BLOCK):
            part = X[start : start + BLOCK]
            S = model.transform(part).astype(np.float64)
            # |x - m - C's|^2 without forming it
            P = part @ C.T - centre @ C.T
            squares = part.power(2).sum(dtype=np.float64)
            left += squares - 2.0 * (part @ centre).sum() + part.shape[0] * centre @ centre
            left += float(np.sum((S @ (C @ C.T) - 2.0 * P) * S))
            total += squares - 2.0 * (part @ mean).sum() + part.shape[0] * mean @ mean
    return float(1.0 - left / total)


def lines(rows: Sequence[results.Row]) -> list[dict[str, str]]:
    """Write a line a fit."""
    return [
        {
            "data": row["data"],
            "method": row["method"],
            "clock s": f"{row['clock_s']:.0f}",
            "processor s": f"{row['processor_s']:.0f}",
            "peak, GB": f"{row['peak_gb']:.2f}",
            "numbers a row": str(row["numbers"]),
            "of the variance": percent(row["variance"], 1),
            "planted found": f"{row['found']:.2f}",
        }
        for row in rows
    ]


def reading(rows: Sequence[results.Row]) -> list[str]:
    """Say whether what was asked is kept."""
    said = []
    for row in rows:
        if row["method"] != METHODS[0]:
            continue
        _, _, _, most_gb, most_s = CASES[row["data"]]
        kept = row["peak_gb"] <= most_gb and (most_s is None or row["clock_s"] <= most_s)
        asked = f"{most_gb:g} GB" + ("" if most_s is None else f" and {most_s:g} s")
        how = "within" if kept else "above"
        said.append(f"{row['data']}: aPPCA by default is {how} the bound of {asked}.")
    return said


if __name__ == "__main__":
    main()
