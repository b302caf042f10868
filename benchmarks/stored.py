"""What it takes to open a stored data set whose digests are checked, and to check a home.

`python -m benchmarks.stored [--rounds 5]` stores two data sets of random numbers, opens each as a
process does for the first time and once more, and runs `appca check` over both. The hashes are
taken of the same files, by as many threads as there are cores. Files are in the system's cache, as
those are that are read right afterwards. Writes results/stored.json.
"""

import hashlib
import os
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np

from appca.commands.check import checked
from appca.data.dataset import Dataset
from appca.data.store import DatasetStore
from appca.storage import digests
from benchmarks import results
from benchmarks.measure import FORGET_PEAK, memory

SHAPES = ((60_000, 784, "uint8"), (1_000_000, 50, "float32"))
HASHES: dict[str, Callable[[bytes], Any]] = {
    "sha256": hashlib.sha256,
    "blake2b": hashlib.blake2b,
    "crc32": lambda block: Crc(zlib.crc32(block)),
}


class Crc(int):
    """A checksum that is asked like a digest."""

    def hexdigest(self) -> str:
        """Return eight hex digits."""
        return f"{self:08x}"


def main() -> None:
    """Measure, and write the rows."""
    parser = results.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for shape in SHAPES:
            rows.append(measured(Path(folder) / shape[2], *shape, rounds=given.rounds))
            print(rows[-1], flush=True)
    results.write(given.out, "stored", rows)


def measured(home: Path, n: int, d: int, dtype: str, rounds: int) -> dict[str, Any]:
    """Return a row about one data set."""
    rng = np.random.default_rng(0)
    X = np.empty((n, d), dtype)
    X[:] = rng.integers(0, 256, (n, d), dtype=np.uint8)
    store = DatasetStore(home)
    dataset = Dataset("numbers", X, np.arange(n).astype(str))
    dataset.__dict__["digest"] = "0" * 64  # so that it is not computed in what is timed
    put = seconds(lambda: store.put(dataset), 1)
    FORGET_PEAK.write_text("5")
    before = memory("VmRSS")
    check = seconds(lambda: list(checked(home)), rounds)
    peak = memory("VmHWM") - before
    matrix = store.path(dataset.digest) / "matrix.npy"
    row = {
        "data": f"{n:,} x {d} {dtype}",
        "megabytes": X.nbytes / 1e6,
        "put_s": put,
        "open_s": seconds(lambda: store.get(dataset.digest), rounds, digests._checked.clear),
        "again_s": seconds(lambda: store.get(dataset.digest), rounds),
        "check_s": check,
        "check_megabytes": peak / 1e6,
    }
    for name, digest in HASHES.items():
        with patch.object(digests.hashlib, "sha256", digest):
            row[f"{name}_s"] = seconds(lambda: digests.blocks_of(matrix), rounds)
    return row | {"threads": os.cpu_count()}


def seconds(
    work: Callable[[], Any], rounds: int, before: Callable[[], object] = lambda: None
) -> float:
    """Return the median of the seconds on the clock, after something that is not timed."""
    taken = []
    for _ in range(rounds):
        before()
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return median(taken)


if __name__ == "__main__":
    main()
