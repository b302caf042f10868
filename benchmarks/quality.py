"""How long the neighbourhood measures take, and how far a sample of rows is from all rows.

`python -m benchmarks.quality`: 50,000 rows of 50 features with ten strong directions in ten
classes, projected on two of them, with 2,000 anchor rows; then 5,000 rows, with a fifth of them as
anchors and with all. Seconds of the wall clock and of the processor. Writes results/quality.json;
`--untimed` leaves the seconds out of it.
"""

import time

import numpy as np

from appca.analysis.check.quality import Quality, quality
from benchmarks import results

CASES = ((50_000, 2000), (5000, 1000), (5000, 5000))  # rows, anchors
MEASURES = ("trustworthiness", "continuity", "kept", "accuracy")


def main() -> None:
    """Print one line a case, and write all."""
    parser = results.arguments(__doc__)
    parser.add_argument("--untimed", action="store_true", help="the machine is busy otherwise")
    given = parser.parse_args()
    written = []
    for n, anchors in CASES:
        X, E, classes = rows(n)
        began, busy = time.perf_counter(), time.process_time()
        found = quality(X, E, classes=classes, n_anchors=anchors)
        passed, used = time.perf_counter() - began, time.process_time() - busy
        print(f"{n:,} rows, {anchors:,} anchors: {passed:.1f} s, {used:.1f} s of the processor")
        print(f"  {in_words(found)}", flush=True)
        row = {"rows": n, "anchors": anchors, "clock_s": passed, "processor_s": used}
        for name in MEASURES:
            one = getattr(found, name)
            row |= {name: one.value, f"{name}_error": one.error}
        written.append(row)
    results.write(given.out, "quality", results.untimed(written) if given.untimed else written)


def rows(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return data (n, 50), a projection (n, 2) and classes (n,)."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 50)).astype(np.float32)
    X[:, :10] *= 4
    classes = rng.integers(0, 10, n)
    X[np.arange(n), classes] += 12
    return X, np.ascontiguousarray(X[:, :2]), classes


def in_words(found: Quality) -> str:
    """Return the measures with their sampling errors."""
    values = ((name, getattr(found, name)) for name in MEASURES)
    return ", ".join(f"{name} {one.value:.4f} ± {one.error:.4f}" for name, one in values)


if __name__ == "__main__":
    main()
