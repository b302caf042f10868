"""Run tests of a tree repeatedly, after importing third-party packages once.

`benchmarks.caught` runs this file with the Python of the tree. Each line of standard input is a
JSON list: node ids of tests or test files, node ids to omit, seconds, and a folder for compiled
code (empty for the default). The answer is an object: the tests that "ran", those that "failed" (at
most one), whether the time is "over", and the "status" of pytest.
"""

import json
import os
import shutil
import signal
import sys
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import numba
import pytest

LOADED = (
    *("numpy", "scipy.stats", "scipy.optimize", "scipy.sparse.linalg", "scipy.spatial"),
    *("sklearn.decomposition", "sklearn.cluster", "sklearn.datasets", "sklearn.metrics", "pandas"),
    *("pyarrow.parquet", "h5py", "PIL.Image", "streamlit.testing.v1", "starlette.routing"),
    *("plotly.graph_objects", "matplotlib.figure", "hypothesis"),
)


class Told:
    """A pytest plugin that orders tests as requested and records their results."""

    def __init__(self, order: list[str], without: list[str], notes: IO[str]) -> None:
        self.order, self.without, self.notes = order, without, notes

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Omit some tests and sort the others by file; runs after the hook in tests/conftest.py."""
        places = {test.partition("::")[0]: -i for i, test in enumerate(reversed(self.order))}
        each = {item.nodeid: item for item in items if item.nodeid not in self.without}
        files = {name: name.partition("::")[0] for name in each}
        items[:] = sorted(each.values(), key=lambda item: places.get(files[item.nodeid], 1))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Record the start of a test."""
        print("ran", nodeid, file=self.notes, flush=True)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Record a failure."""
        if report.failed:
            print("failed", report.nodeid, file=self.notes, flush=True)

    pytest_collectreport = pytest_runtest_logreport


def run(tests: list[str], without: list[str], cache: str, notes: Path) -> int:
    """Run the tests in this process until one fails."""
    os.setsid()
    if cache:
        os.environ["NUMBA_CACHE_DIR"] = numba.config.CACHE_DIR = cache
    nothing = os.open(os.devnull, os.O_RDWR)
    for file in range(3):
        os.dup2(nothing, file)
    options = ["-qx", "-n0", "-pno:cacheprovider", f"--basetemp={notes.with_suffix('')}"]
    options.append("-Wignore::pytest.PytestAssertRewriteWarning")  # already loaded modules
    with notes.open("w", encoding="utf-8") as told:
        return int(pytest.main([*options, *tests], [Told(tests, without, told)]))


def main(tree: Path) -> None:
    """Answer each line in a fork of this process."""
    for name in LOADED:
        import_module(name)
    sys.path.insert(0, str(tree))
    notes = Path(f"/tmp/caught-{os.getpid()}.notes")
    for line in sys.stdin:
        tests, without, seconds, cache = json.loads(line)
        pid, end = os.fork(), time.monotonic() + seconds
        if not pid:
            os._exit(run(tests, without, cache, notes))
        while (ended := os.waitpid(pid, os.WNOHANG)) == (0, 0):
            time.sleep(0.05)
            if time.monotonic() > end:
                os.killpg(pid, signal.SIGKILL)
        with suppress(ProcessLookupError):  # ends remaining children of the tests
            os.killpg(pid, signal.SIGKILL)
        noted = [each.split(" ", 1) for each in notes.read_text(encoding="utf-8").splitlines()]
        shutil.rmtree(notes.with_suffix(""), ignore_errors=True)
        found: dict[str, Any] = {"over": time.monotonic() > end, "status": ended[1] >> 8}
        found |= {key: [name for what, name in noted if what == key] for key in ("ran", "failed")}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
