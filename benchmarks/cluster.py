"""Fit aPPCA to more rows than memory holds, on worker processes of this machine.

`python -m benchmarks.cluster [--quick | --rows N,N,...] [--memory BYTES]` makes rows of 100 float32
from a planted model, chunk by chunk and anew in every pass, so that they are never all anywhere,
and fits K = 8, L = 3 to 1, 5 and 20 million of them on two workers, and to the fewest on one. It
prints the time on the clock and of the processors, the passes, the peak memory of each worker, how
all of that grows with rows and workers, and what a billion rows would take. `--quick` takes 40, 80
and 160 thousand.

Scores are drawn for each chunk. Its noise is one of a few blocks of normal numbers that a worker
keeps, its rows and columns moved around and its columns' signs drawn: to draw fresh ones would
take four times as long as a pass of EM. Moved around differently in each chunk they are noise to
a model of eight directions, though two chunks may share them.

Writes results/cluster.json; --quick writes cluster_quick.json, which is not kept.
"""

import time
from collections.abc import Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from appca import AdaptivePPCA
from benchmarks import results
from benchmarks.growth import slope
from benchmarks.measure import memory
from benchmarks.planted import matched

D, K, L = 100, 8, 3
ROWS, QUICK_ROWS = [1_000_000, 5_000_000, 20_000_000], [40_000, 80_000, 160_000]
CHUNK_ROWS, QUICK_CHUNK_ROWS = 50_000, 10_000  # 20 and 4 MB
NOISE_BLOCKS = 2
WARM_ROWS = 100_000  # from 50,000 on workers load a compiler, which takes 110 MB and seconds
MEMORY = 1_000_000_000  # bytes a worker may take
BILLION = 10**9
DISK, WIRE = 1e9, 1.25e9  # bytes a second: a solid-state disk, a network of 10 Gbit/s


class Seen(NamedTuple):
    """What a fit took; a line of the results."""

    rows: int
    megabytes: float  # of the rows, were they anywhere
    workers: int
    clock_s: float
    processor_s: float  # of the workers
    making_s: float  # the part of it in which rows were made
    passes: int  # over all rows
    peak_mb: float  # of the worker that took most, with everything it has loaded
    grown_mb: float  # of that since before the fit
    least_cosine: float  # between planted and found directions
    noise_variance: float  # 0.25 is planted

    @property
    def fitting_s(self) -> float:
        """Processor seconds of the workers without those in which rows were made."""
        return self.processor_s - self.making_s


def main() -> None:
    """Print one line a fit, then the growth and the arithmetic."""
    parser = results.arguments(__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rows", default="", help="numbers of rows, with commas between them")
    parser.add_argument("--memory", type=int, default=MEMORY, help="limit of a worker, bytes")
    options = parser.parse_args()
    sizes = QUICK_ROWS if options.quick else ROWS
    sizes = [int(n) for n in options.rows.split(",")] if options.rows else sizes
    at_once = QUICK_CHUNK_ROWS if options.quick else CHUNK_ROWS
    print(f"D = {D}, K = {K}, L = {L}; at most {options.memory / 1e6:.0f} MB a worker", flush=True)
    one = measured(sizes[0], 1, options.memory, at_once)
    two = [measured(n, 2, options.memory, at_once) for n in sizes]
    print("\n".join((growth_of(one, two), limits_of(two[-1], at_once))))
    name = "cluster_quick" if options.quick else "cluster"
    results.write(options.out, name, [seen._asdict() for seen in (one, *two)])


def growth_of(one: Seen, two: Sequence[Seen]) -> str:
    """Say how time and memory grow with rows, and time with workers."""
    faster = f"two workers are {one.clock_s / two[0].clock_s:.2f} times as fast as one."
    if len(two) < 2:
        return faster.capitalize()
    sizes = [seen.rows for seen in two]
    power = slope(sizes, [seen.processor_s / seen.passes for seen in two])
    times, more = two[-1].rows / two[0].rows, two[-1].peak_mb - two[0].peak_mb
    return (
        f"The processor time of an iteration grows with power {power:.2f} of the rows; "
        f"{times:.0f} times the rows take {more:+.0f} MB at the peak of a worker; {faster}"
    )


def limits_of(largest: Seen, at_once: int) -> str:
    """Say what a billion rows would take, and what bounds it."""
    size, hours, passes = BILLION * D * 4, largest.passes / 3600, largest.passes
    a_row = largest.fitting_s / passes / largest.rows
    travels = (2 * D * K + 3 * K) * 8 * -(-BILLION // at_once)
    return (
        f"A billion rows are {size / 1e9:.0f} GB and would take {passes} iterations: EM alone "
        f"{BILLION * a_row * hours:.1f} processor hours, reading from one disk of "
        f"{DISK / 1e9:g} GB/s {size / DISK * hours:.1f} hours, and sending the sums of an "
        f"iteration, at most {travels / 1e6:.0f} MB, {travels / WIRE:.2f} s of a network of "
        f"{WIRE / 1e9:g} GB/s. "
        "So disks and processors limit, and both are divided by the number of workers."
    )


def measured(n_rows: int, n_workers: int, limit: int, at_once: int) -> Seen:
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
        # Loads what is loaded once, in chunks small enough for each worker to get some.
        fitted(rows(min(n_rows, WARM_ROWS), at_once // 20)[0])
        X, W = rows(n_rows, at_once)
        making = max(client.run(seconds_to_make, W, at_once).values()) / at_once
        before = client.run(memory, "VmRSS")
        spent, began = client.run(time.process_time), time.perf_counter()
        model, passes = fitted(X)
        clock = time.perf_counter() - began
        processors = {at: now - spent[at] for at, now in client.run(time.process_time).items()}
        peaks = client.run(memory, "VmHWM")
    seen = Seen(
        rows=n_rows,
        megabytes=X.nbytes / 1e6,
        workers=n_workers,
        clock_s=clock,
        processor_s=sum(processors.values()),
        making_s=making * n_rows * passes,
        passes=passes,
        peak_mb=max(peaks.values()) / 1e6,
        grown_mb=max(peak - before[at] for at, peak in peaks.items()) / 1e6,
        least_cosine=float(matched(model.components_, W).min()),
        noise_variance=model.noise_variance_,
    )
    print(
        f"{n_rows:>11,} rows ({seen.megabytes:,.0f} MB), {n_workers} worker(s): {clock:.0f} s, "
        f"of processors {seen.processor_s:.0f} s, about {seen.making_s:.0f} s of which to make the "
        f"rows; {passes} passes; peaks {', '.join(f'{p / 1e6:.0f}' for p in peaks.values())} MB, "
        f"{seen.grown_mb:.0f} MB more than before; least |cos| {seen.least_cosine:.4f}",
        flush=True,
    )
    return seen


def fitted(X: Any) -> tuple[AdaptivePPCA, int]:
    """Fit, and count the passes over all rows: each is one sum over chunks, or one look."""
    from appca.models.rows import dask_rows

    count, plainly = [0], dask_rows.computed

    def counted(parts: list[Any]) -> list[Any]:
        count[0] += 1
        return plainly(parts)

    dask_rows.computed = counted
    try:
        return AdaptivePPCA(K, L, random_state=0).fit(X), count[0]
    finally:
        dask_rows.computed = plainly


def rows(n_rows: int, at_once: int) -> tuple[Any, np.ndarray]:
    """Return rows that are made when they are looked at, and the directions (D, K) in them."""
    import dask.array as da

    W = np.linalg.qr(np.random.default_rng(0).standard_normal((D, K)))[0].astype(np.float32)
    sizes = tuple(min(at_once, n_rows - at) for at in range(0, n_rows, at_once))
    empty = np.empty((0, 0), np.float32)
    made = partial(chunk, W=W, n_rows=n_rows, at_once=at_once)
    X = da.map_blocks(made, chunks=(sizes, (D,)), dtype=np.float32, meta=empty)
    return X, W


def chunk(
    W: np.ndarray, n_rows: int, at_once: int, block_id: tuple[int, ...] = (0, 0)
) -> np.ndarray:
    """Make the rows of a chunk from its number: scores of variance 4, noise of 0.25."""
    number = block_id[0]
    rng = np.random.default_rng(number)
    n = min(at_once, n_rows - number * at_once)
    active = rng.random((n, K), dtype=np.float32).argsort(axis=1) < L
    scores = rng.standard_normal((n, K), dtype=np.float32) * np.float32(2.0) * active
    X: np.ndarray = scores @ W.T
    noise = noise_block(int(rng.integers(NOISE_BLOCKS)), at_once)
    signs = np.float32(0.5) - rng.integers(0, 2, D).astype(np.float32)
    down, along = rng.integers(n), rng.integers(D)
    for to, at in ((slice(0, n - down), slice(down, n)), (slice(n - down, n), slice(0, down))):
        X[to, along:] += noise[at, : D - along] * signs[along:]
        X[to, :along] += noise[at, D - along :] * signs[:along]
    return X


@cache
def noise_block(number: int, n: int) -> np.ndarray:
    """Return normal numbers (n, D), which a worker draws once."""
    return np.random.default_rng((1, number)).standard_normal((n, D), dtype=np.float32)


def seconds_to_make(W: np.ndarray, at_once: int) -> float:
    """Return processor seconds of making a chunk, as the least of five."""
    seconds = []
    for number in range(5):
        began = time.process_time()
        chunk(W, 5 * at_once, at_once, (number, 0))
        seconds.append(time.process_time() - began)
    return min(seconds)


if __name__ == "__main__":
    main()
