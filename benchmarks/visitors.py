"""How long twenty people wait who move K and L at once.

`APPCA_DATA=... python -m benchmarks.visitors [--visitors 20] [--moves 8]`: starts the server on a
new home folder with 10,000 rows of MNIST (without the files: as many made rows of as many pixels)
and opens windows over its websocket. Each moves K or L to settings of its own choice, looks at the
picture for up to two seconds, and moves on. What is timed is a move until the picture's data are
there. First one visitor, then all on a server and home of their own; the load is that of the
machine before, by other work. Writes results/visitors.json.
"""

import asyncio
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import results
from benchmarks.browser import served
from benchmarks.window import Window

__all__ = ["Seen", "Served", "serving", "visited"]

ROWS, SIDE = 10_000, 28
K_MOST, L_MOST = 12, 4
LOOKS_S = 2.0  # at most, at a picture


class Served(NamedTuple):
    """A running server and the data in its home."""

    url: str
    process: subprocess.Popen[bytes]
    home: Path
    digest: str

    def rss_mb(self) -> float:
        """Return the memory that the server's process holds."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def processor_s(self) -> float:
        """Return the processor time that the server's process has taken."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Seen(NamedTuple):
    """What visitors met."""

    waits_s: list[float]  # of all moves, in the order in which they ended
    faults: list[str]
    rss_mb: list[float]  # after each move


def main() -> None:
    """Measure one visitor and many, and write both."""
    parser = results.arguments(__doc__)
    parser.add_argument("--visitors", type=int, default=20)
    parser.add_argument("--moves", type=int, default=8, help="of each visitor")
    given = parser.parse_args()
    rows = []
    for visitors in (1, given.visitors):
        load = os.getloadavg()[0]
        with serving() as server:
            seen = asyncio.run(visited(server, visitors, given.moves))
            taken = server.processor_s()
        waits, half = np.array(seen.waits_s), len(seen.rss_mb) // 2
        row = {
            "visitors": visitors,
            "moves": len(waits),
            "median_s": float(np.median(waits)),
            "p95_s": float(np.quantile(waits, 0.95)),
            "most_s": float(waits.max()),
            "processor_s": taken / len(waits),
            "load": load,
            "faults": len(seen.faults),
            "half_mb": seen.rss_mb[half],
            "end_mb": seen.rss_mb[-1],
        }
        rows.append(row)
        print(row, *seen.faults[:3], flush=True)
    results.write(given.out, "visitors", rows)


async def visited(server: Served, visitors: int, moves: int) -> Seen:
    """Let visitors come and move the sliders."""
    seen = Seen([], [], [])
    await asyncio.gather(*(_visit(server, number, moves, seen) for number in range(visitors)))
    return seen


async def _visit(server: Served, number: int, moves: int, seen: Seen) -> None:
    rng = np.random.default_rng(number)
    async with Window(server.url, data=server.digest, k="4", l="2") as window:
        await window.until(lambda: bool(window.picture))
        for _ in range(moves):
            await asyncio.sleep(rng.uniform(0.0, LOOKS_S))
            k, active = int(window.address["k"]), int(window.address["l"])
            key, value = _move(rng, k, active)
            began = time.perf_counter()
            await window.move(key, value)
            await window.run_of(**{key: str(value)})
            seen.waits_s.append(time.perf_counter() - began)
            seen.rss_mb.append(server.rss_mb())
        seen.faults.extend(window.faults)


def _move(rng: np.random.Generator, k: int, active: int) -> tuple[str, int]:
    """Choose a slider and another value for it."""
    if rng.random() < 0.3:
        return "l", int(rng.choice([one for one in range(1, L_MOST + 1) if one != active]))
    return "k", int(rng.choice([one for one in range(active + 1, K_MOST + 1) if one != k]))


@contextmanager
def serving(**environment: str) -> Iterator[Served]:
    """Serve a new home that holds the rows."""
    from appca.data.store import DatasetStore

    with tempfile.TemporaryDirectory() as home:
        digest = DatasetStore(Path(home)).put(_rows())
        with served(home, **environment) as (url, process):
            yield Served(url, process, Path(home), digest)


def _rows():
    from appca.data.dataset import Dataset
    from appca.data.sources.builtin import load

    if os.environ.get("APPCA_DATA"):
        return load("mnist", n=ROWS)
    rng = np.random.default_rng(0)
    kinds = rng.normal(size=(10, SIDE * SIDE))
    X = kinds[rng.integers(10, size=ROWS)] * rng.uniform(0.5, 1.5, size=(ROWS, 1))
    X = np.clip(128 + 40 * X + 20 * rng.normal(size=X.shape), 0, 255).astype(np.uint8)
    ids = np.arange(ROWS).astype(str)
    return Dataset("made", X, ids, {}, (SIDE, SIDE), None, {})


if __name__ == "__main__":
    main()
