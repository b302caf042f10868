"""How long twenty people wait who have a process each, as under JupyterHub, and what they take.

`APPCA_DATA=... python -m benchmarks.group [--people 20] [--moves 6] [--every 15]`: starts a server
for each person on a home of its own with 10,000 rows of MNIST, as `benchmarks.visitors` does for
all of them together. Each moves K to a value of its own choice once in so many seconds. Prints one
line: seconds from a move until the data of the picture are there, errors, and the memory that the
servers and their workers hold together (PSS: what processes share is counted once).
"""

import argparse
import asyncio
import os
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from benchmarks.visitors import K_MOST, Served, serving
from benchmarks.window import Window


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--moves", type=int, default=6, help="of each person")
    parser.add_argument("--every", type=float, default=15.0, help="seconds between two moves")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with ExitStack() as running:
        servers = [running.enter_context(serving()) for _ in range(options.people)]
        asleep = sum(map(_pss_mb, servers))
        waits, faults = asyncio.run(_all(servers, options.moves, options.every))
        awake = sum(map(_pss_mb, servers))
    row = {"people": options.people, "moves": len(waits), "errors": len(faults), "load": load}
    row |= {"median_s": float(np.median(waits)), "p95_s": float(np.quantile(waits, 0.95))}
    print(row | {"most_s": max(waits), "asleep_mb": asleep, "awake_mb": awake}, *faults[:3])


async def _all(servers: list[Served], moves: int, every: float) -> tuple[list[float], list[str]]:
    waits: list[float] = []
    faults: list[str] = []
    people = enumerate(servers)
    await asyncio.gather(*(_person(at, i, moves, every, waits, faults) for i, at in people))
    return waits, faults


async def _person(
    server: Served, number: int, moves: int, every: float, waits: list[float], faults: list[str]
) -> None:
    rng = np.random.default_rng(number)
    async with Window(server.url, data=server.digest, k="4", l="2") as window:
        await window.until(lambda: bool(window.picture))
        await asyncio.sleep(rng.uniform(0.0, every))
        for _ in range(moves):
            began = time.perf_counter()
            others = [k for k in range(3, K_MOST + 1) if k != int(window.address["k"])]
            k = int(rng.choice(others))
            await window.move("k", k)
            await window.run_of(k=str(k))
            waits.append(time.perf_counter() - began)
            await asyncio.sleep(max(0.0, every - waits[-1]))
        faults.extend(window.faults)


def _pss_mb(server: Served) -> float:
    """Return the memory of a server and of its workers."""
    pid = server.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    texts = (Path(f"/proc/{one}/smaps_rollup").read_text() for one in (pid, *children))
    return sum(int(text.partition("\nPss:")[2].split()[0]) for text in texts) / 1e3


if __name__ == "__main__":
    main()
