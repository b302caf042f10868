"""Fit aPPCA to more rows than memory holds, on worker processes of this machine.

`python -m benchmarks.cluster [--quick] [--memory BYTES]` generates rows of 100 float32 from a
planted model, chunk by chunk and anew in every pass, so that they are never all anywhere, and fits
K = 8, L = 3 to 1, 5 and 20 million of them on two workers, and to the fewest on one. It prints the
time, the passes, the peak memory of each worker, how time grows with rows and workers, and what a
billion rows would take. `--quick` takes 40, 80 and 160 thousand.
"""

import argparse
import time
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from appca import AdaptivePPCA
from benchmarks.growth import slope
from benchmarks.measure import memory
from benchmarks.planted import matched

D, K, L = 100, 8, 3
ROWS, QUICK_ROWS = [1_000_000, 5_000_000, 20_000_000], [40_000, 80_000, 160_000]
CHUNK_ROWS = 50_000  # 20 MB
MEMORY = 1_000_000_000  # bytes a worker may take
BILLION = 10**9
DISK, WIRE = 1e9, 1.25e9  # bytes a second: a solid-state disk, a network of 10 Gbit/s


class Seen(NamedTuple):
    """What a fit took."""

    seconds: float
    passes: int  # over all rows
    peaks: list[int]  # of each worker, bytes
    least: float  # |cos| between planted and found directions


def main() -> None:
    """Print one line a fit, then the growth and the arithmetic."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--memory", type=int, default=MEMORY, help="limit of a worker, bytes")
    options = parser.parse_args()
    sizes = QUICK_ROWS if options.quick else ROWS
    print(f"D = {D}, K = {K}, L = {L}; at most {options.memory / 1e6:.0f} MB a worker", flush=True)
    two = [measured(n, 2, options.memory) for n in sizes]
    one = measured(sizes[0], 1, options.memory)
    a_pass = [seen.seconds / seen.passes for seen in two]
    print(f"time of a pass grows with power {slope(sizes, a_pass):.2f} of the rows")
    print(f"two workers are {one.seconds / two[0].seconds:.2f} times as fast as one")
    limits(two[-1].passes, a_pass[-1] / sizes[-1])


def limits(passes: int, seconds_a_row: float) -> None:
    """Print what a billion rows would take, and what bounds it."""
    size, hours = BILLION * D * 4, passes / 3600
    print(f"10^9 rows: {size / 1e9:.0f} GB a pass, {passes} passes")
    print(f"  on these two workers {BILLION * seconds_a_row * hours:.1f} hours")
    print(f"  reading alone, from one disk of {DISK / 1e9:g} GB/s: {size / DISK * hours:.1f} hours")
    travels = (2 * D * K + 3 * K) * 8
    chunks = -(-BILLION // CHUNK_ROWS)
    print(
        f"  a pass moves at most {chunks * travels / 1e6:.0f} MB of sums, "
        f"{chunks * travels / WIRE:.2f} s of a network of {WIRE / 1e9:g} GB/s: "
        "disks and processors limit, and both are divided by the number of workers"
    )


def measured(n_rows: int, n_workers: int, limit: int) -> Seen:
    """Fit on a cluster of its own, which forgets nothing between its workers' peaks."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            memory_limit=limit,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
        ) as cluster,
        Client(cluster) as client,
    ):
        X, W = rows(n_rows)
        began = time.perf_counter()
        model, passes = fitted(X)
        seconds = time.perf_counter() - began
        peaks = list(client.run(memory, "VmHWM").values())
    seen = Seen(seconds, passes, peaks, float(matched(model.components_, W).min()))
    print(
        f"{n_rows:>11,} rows ({X.nbytes / 1e6:,.0f} MB), {n_workers} worker(s): {seconds:.0f} s, "
        f"{passes} passes, peaks {', '.join(f'{peak / 1e6:.0f}' for peak in peaks)} MB, "
        f"least |cos| {seen.least:.4f}",
        flush=True,
    )
    return seen


def fitted(X: Any) -> tuple[AdaptivePPCA, int]:
    """Fit, and count the passes over all rows: each is one sum over chunks, or one look."""
    from appca.models import dask_rows

    count, plainly = [0], dask_rows._computed

    def counted(parts: list[Any]) -> list[Any]:
        count[0] += 1
        return plainly(parts)

    dask_rows._computed = counted
    try:
        return AdaptivePPCA(K, L, random_state=0).fit(X), count[0]
    finally:
        dask_rows._computed = plainly


def rows(n_rows: int) -> tuple[Any, np.ndarray]:
    """Return rows that are made when they are looked at, and the directions (D, K) in them."""
    import dask.array as da

    W = np.linalg.qr(np.random.default_rng(0).standard_normal((D, K)))[0].astype(np.float32)
    sizes = tuple(min(CHUNK_ROWS, n_rows - at) for at in range(0, n_rows, CHUNK_ROWS))
    empty = np.empty((0, 0), np.float32)
    made = partial(chunk, W=W, sizes=sizes)
    X = da.map_blocks(made, chunks=(sizes, (D,)), dtype=np.float32, meta=empty)
    return X, W


def chunk(W: np.ndarray, sizes: tuple[int, ...], block_info: Any = None) -> np.ndarray:
    """Make the rows of a chunk from its number: scores of variance 4, noise of 0.25."""
    number = block_info[None]["chunk-location"][0]
    rng = np.random.default_rng(number)
    n = sizes[number]
    active = rng.random((n, K), dtype=np.float32).argsort(axis=1) < L
    scores = 2.0 * rng.standard_normal((n, K), dtype=np.float32) * active
    noise = rng.standard_normal((n, D), dtype=np.float32)
    return scores.astype(np.float32) @ W.T + np.float32(0.5) * noise


if __name__ == "__main__":
    main()
