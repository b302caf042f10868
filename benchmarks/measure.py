"""Fit one method to one data set in a process of its own, and say what it took.

`python -m benchmarks.measure METHOD K L FOLDER` prints one JSON object; `benchmarks.table` calls
it. FOLDER holds train.npy and test.npy. Libraries and compiled code are loaded by a small fit
first, with as many components up to 40 (numbers of components differ in the code they need), and a
fit of less than 10 s is done twice, of which the second one counts. Timed are the fit, and the fit
with the coding of the rows it was fitted to (`transform`), once: matching pursuit has its cost in
the coding.
"""

import ctypes
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from benchmarks.methods import METHODS

FIRST_ROWS, FIRST_COLUMNS = 2000, 50  # that libraries are loaded by
FIRST_COMPONENTS, FIRST_ACTIVE = 40, 20  # at most
TWICE_BELOW = 10.0  # seconds on the clock
FORGET_PEAK = Path("/proc/self/clear_refs")  # Linux: 5 makes the peak what is used now
MOST_ROWS = 5000  # whose reconstruction error is taken


def main() -> None:
    """Measure and print."""
    key, k, active, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    print(json.dumps(measured(key, k, active, folder)))


def measured(key: str, k: int, active: int, folder: Path) -> dict[str, float | None]:
    """Return seconds, peak memory over the data, errors and held-out likelihood."""
    method = METHODS[key]
    train, test = np.load(folder / "train.npy"), np.load(folder / "test.npy")
    warnings.filterwarnings("ignore")
    few = train[:FIRST_ROWS]
    few = np.ascontiguousarray(few[:, np.argsort(few.var(axis=0))[-FIRST_COLUMNS:]])
    method.make(min(k, FIRST_COMPONENTS), min(active, FIRST_ACTIVE), few.shape).fit(few)
    clock, processor, peak = 0.0, 0.0, 0
    for attempt in range(2):
        model = method.make(k, active, train.shape)
        ctypes.CDLL(None).malloc_trim(0)  # what was freed must not hide what is taken
        FORGET_PEAK.write_text("5")
        before = memory("VmRSS")
        clock, processor = time.perf_counter(), time.process_time()
        model.fit(train)
        clock, processor = time.perf_counter() - clock, time.process_time() - processor
        peak = memory("VmHWM") - before + train.nbytes  # what the fit took, and the rows
        if attempt == 0 and clock > TWICE_BELOW:
            break
    began = time.process_time()
    method.code(model, train)
    coded = processor + time.process_time() - began
    some = train[:MOST_ROWS]
    score = float("nan") if method.score is None else method.score(model, test)
    return {
        "processor_s": processor,
        "clock_s": clock,
        "coded_s": coded,
        "peak_bytes": peak,
        "peak_over_data": peak / train.nbytes,
        "error": float(np.mean(np.square(some - method.reconstruct(model, some)))),
        "error_held_out": float(np.mean(np.square(test - method.reconstruct(model, test)))),
        "held_out_nats": None if np.isnan(score) else score,
    }


def memory(field: str) -> int:
    """Read the process's memory, now (VmRSS) or at most (VmHWM), in bytes; Linux only."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


if __name__ == "__main__":
    main()
