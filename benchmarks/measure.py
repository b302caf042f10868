"""Fit one method to one data set: ``python -m benchmarks.measure METHOD DATA``.

METHOD is a key of `benchmarks.methods.METHODS`, DATA the beginning of a name in
`benchmarks.shapes`. Prints one JSON object. Libraries and compiled code are loaded by a small fit
first, with as many components up to 40 (numbers of components differ in the code they need), and a
fit of less than 10 s is done twice, of which the second one counts. Timed are the fit, and the fit
with the coding of the rows it was fitted to (`transform`), once: matching pursuit has its cost in
the coding.
"""

import argparse
import ctypes
import json
import time
import warnings
from pathlib import Path

import numpy as np

from benchmarks.methods import METHODS
from benchmarks.shapes import LARGE, QUICK, STANDARD, Shape

FIRST_ROWS, FIRST_COLUMNS = 2000, 50  # that libraries are loaded by
FIRST_COMPONENTS, FIRST_ACTIVE = 40, 20  # at most
TWICE_BELOW = 10.0  # seconds on the clock
FORGET_PEAK = Path("/proc/self/clear_refs")  # Linux: 5 makes the peak what is used now
MOST_ROWS = 5000  # whose reconstruction error is taken


def main() -> None:
    """Measure and print."""
    shapes = (*QUICK, *STANDARD, *LARGE)
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("method", choices=list(METHODS))
    parser.add_argument("data", help=", ".join(dict.fromkeys(shape.name for shape in shapes)))
    options = parser.parse_args()
    chosen = [shape for shape in shapes if shape.name.startswith(options.data)]
    if not chosen:
        parser.error(f"no data set begins with {options.data}")
    print(json.dumps(measured(options.method, chosen[0])))


def measured(key: str, shape: Shape) -> dict[str, float | None]:
    """Return seconds, peak memory over the data, errors and held-out likelihood."""
    k, active = shape.n_components, shape.n_active
    train, test = shape.draw()
    method = METHODS[key]
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
