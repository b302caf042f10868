"""Mutation tests: the changes of `benchmarks.mutants` that the default test suite detects.

Each change is made in a worktree of COMMIT with its own environment. Then the tests that may
detect the change run there until one fails: tests that executed the line, the most specific first,
followed by tests of the mirrored file. If coverage cannot record the line (imports, compiled
kernels, child processes, scripts), the tests of the file, of its users or of its folder run.

    cd TREE && .venv/bin/python -m pytest --cov=appca --cov-context=test --cov-report=
    python -m benchmarks.caught TREE [TREE ...] --coverage TREE/.coverage

Each tree tests one change at a time. results/mutants.json stores the results; a second call resumes
from there, also with more tests (--most). Tests that read sources do not count. Finally, all tests
that detected a change run on the unchanged code; if one fails there, the next call repeats its
changes without it. The suite of 5ab2795c detected 127 of its 200 mutants and 53 of the 60 faults,
with at most 40 tests per mutant.
"""

import argparse
import json
import os
import re
import subprocess
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain, zip_longest
from pathlib import Path
from queue import Empty, Queue
from threading import Lock

from coverage import CoverageData

from benchmarks.mutants import COMMIT, SEED, Change, Row, faults, mutants, part_of, place
from benchmarks.results import facts

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "mutants.json"
FIRST, LIMIT_S, ALONE_S = 12, 240, 120  # tests in the first call; seconds per change, test
NOTHING_COLLECTED = 5  # exit status of pytest
READING_SOURCES = re.compile(r"tests/(test_(layers|packaging|mathematics)\.py|docs/)")
HOUR_S = 3600
OF_SCRIPTS = ["tests/canvas", "tests/browser"]


class Suite:
    """The lines that each test of the default run executes."""

    def __init__(self, coverage: Path, tree: Path) -> None:
        self.data, self.root, self.tree = CoverageData(str(coverage)), coverage.parent, tree
        self.data.read()
        self.files = {
            path.relative_to(tree).as_posix(): path.read_text(encoding="utf-8")
            for path in sorted((tree / "appca").rglob("*.py"))
        }
        self.size: Counter[str] = Counter()  # number of lines per test
        for ran in (self.ran(file).values() for file in self.files):
            self.size.update(test for tests in ran for test in tests)

    def ran(self, file: str) -> dict[int, set[str]]:
        """Return the tests that ran each line of a file."""
        ran = self.data.contexts_by_lineno(str(self.root / file))
        return {line: {one.rpartition("|")[0] for one in tests} for line, tests in ran.items()}

    def seeing(self, change: Change) -> list[str]:
        """Return the tests, and files of tests, that may detect a change, in the order to run."""
        if change.file.endswith(".js"):
            return OF_SCRIPTS
        ran, path = self.ran(change.file), Path(change.file)
        found = every = set[str]().union(*ran.values())
        if place(self.files[change.file].encode(), change.lines[0])[1]:
            first, last = change.lines
            found = set[str]().union(*(ran.get(line, ()) for line in range(first, last + 1)))
        if path.stem.endswith("_kernels"):
            found |= self.using({change.file})
        folder = Path("tests", *path.parent.parts[1:])
        near = [folder / f"test_{path.stem}.py"]
        if not found - {""}:  # the line may run in child processes
            found = every
            near += [next(one for one in (folder, *folder.parents) if (self.tree / one).exists())]
        found = {test for test in found if test and not READING_SOURCES.match(test)}
        beside = [str(one) for one in near if (self.tree / one).exists()]
        cases: dict[str, list[str]] = {}
        for test in sorted(found, key=lambda test: (self.size[test], test)):
            cases.setdefault(test.partition("[")[0], []).append(test)
        turns = chain.from_iterable(zip_longest(*cases.values()))  # one case per test, then more
        return [*filter(None, turns), *beside]

    def using(self, kernels: set[str]) -> set[str]:
        """Return the tests that ran a line with the name of a compiled function."""
        sources = [self.files[file] for file in kernels]
        names = "|".join(name for text in sources for name in re.findall(r"^def (\w+)", text, re.M))
        found, more = set[str](), set(kernels)
        for file, text in self.files.items():
            if not any(f".{Path(one).stem} import" in text for one in kernels):
                continue
            if file.endswith("_kernels.py"):
                more.add(file)
            ran = self.ran(file)
            for number, line in enumerate(text.splitlines(), 1):
                if re.search(rf"\b({names})\b", line) and " import " not in line:
                    found |= ran.get(number, set())
        return found if more == kernels else self.using(more)


class Worker:
    """A tree, and a process that runs its tests."""

    def __init__(self, tree: Path, suite: Suite, most: int, without: list[str]) -> None:
        self.tree, self.suite, self.most, self.without = tree, suite, most, without
        command = [str(tree / ".venv/bin/python"), "-P", str(HERE / "forked_tests.py"), str(tree)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, cwd=tree, stdin=pipe, stdout=pipe, text=True)

    def run(self, tests: Sequence[str], seconds: float, cache: str = "") -> Row:
        """Run tests until one fails or the time is up; see `forked_tests`."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        asked = json.dumps([tests, self.without, seconds, cache])
        print(asked, file=self.process.stdin, flush=True)
        found: Row = json.loads(self.process.stdout.readline())
        if not (found["ran"] or found["failed"] or found["status"] == NOTHING_COLLECTED):
            msg = f"pytest ended with {found['status']} before any test: {tests}"
            raise RuntimeError(msg)
        return found

    def tried(self, change: Change, before: int) -> Row:
        """Make a change, run the tests after the first `before`, and return the result."""
        path, began = self.tree / change.file, time.monotonic()
        every = self.suite.seeing(change)
        files = [test for test in every if "::" not in test]
        tests = every[: len(every) - len(files)]
        wanted = [*tests[before : self.most], *(files if not before else [])]
        source, stat = path.read_bytes(), path.stat()
        path.write_bytes(source[: change.start] + change.new + source[change.end :])
        stamp = 10**9 + zlib.crc32(path.read_bytes()) % 10**8  # identifies bytecode
        os.utime(path, (stamp, stamp))
        try:
            found = self.until_caught(wanted, path.stem.endswith("_kernels"))
        finally:
            path.write_bytes(source)
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        if found["stuck"] and not self.run([found["stuck"]], ALONE_S)["over"]:
            found["caught_by"] = found["stuck"]
        seconds = round(time.monotonic() - began)
        sizes = {"asked": min(self.most, len(tests)), "seeing": len(tests), "seconds": seconds}
        return {key: value for key, value in found.items() if key != "stuck"} | sizes

    def until_caught(self, tests: Sequence[str], compiled: bool) -> Row:
        """Run the tests of a change; "stuck" is a test that does not end, "over" a lack of time."""
        told: Row = {"caught_by": None, "stuck": "", "ran": 0}
        end = time.monotonic() + LIMIT_S
        with tempfile.TemporaryDirectory() as folder:
            cache = folder if compiled else ""  # callers contain compiled code of a callee
            for some in filter(None, (tests[:FIRST], tests[FIRST:])):
                found = self.run(some, max(end - time.monotonic(), 1.0), cache)
                told["ran"] += len(found["ran"])
                if found["failed"]:
                    return told | {"caught_by": found["failed"][0]}
                if found["over"]:
                    return told | self.looked_into(found["ran"][-1:], cache)
        return told

    def looked_into(self, last: Sequence[str], cache: str) -> Row:
        """Run the test alone that was running when the time was up, if any."""
        nothing: Row = {"failed": [], "over": False}
        again = self.run(last, ALONE_S, cache) if last else nothing
        stuck = last[0] if again["over"] else ""
        return {"caught_by": next(iter(again["failed"]), None), "stuck": stuck, "over": True}


def described(tree: Path, change: Change) -> Row:
    """Return the description of a change in the record."""
    source = (tree / change.file).read_bytes()
    about = {"file": change.file, "function": place(source, change.lines[0])[0]}
    line = source[: change.start].count(b"\n") + 1
    if change.words:
        return {"part": change.kind, "words": change.words, **about, "line": line}
    first, last = source.rfind(b"\n", 0, change.start) + 1, source.find(b"\n", change.end)
    old = source[first:last].decode()
    new = (source[first : change.start] + change.new + source[change.end : last]).decode()
    texts = {"old": " ".join(old.split()), "new": " ".join(new.split())}
    return {"part": part_of(change.file), **about, "line": line, "kind": change.kind, **texts}


def write(rows: Sequence[Row], unsound: Sequence[str]) -> None:
    """Write the record, one line per change."""
    about = facts() | {"commit": COMMIT, "seed": SEED, "limit_s": LIMIT_S}
    about |= {"failing_unchanged": unsound}
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    text = f'{{\n"about": {json.dumps(about)},\n"rows": [\n{lines}\n]\n}}\n'
    RESULTS.write_text(text, encoding="utf-8")


def resumed(rows: list[Row], most: int) -> list[str]:
    """Restore the known results in `rows`; return the tests that also fail without a change."""
    if not RESULTS.exists():
        return []
    kept = json.loads(RESULTS.read_text(encoding="utf-8"))
    unsound: list[str] = kept["about"]["failing_unchanged"]
    for row in rows:
        known = (one for one in kept["rows"] if row.items() <= one.items())
        row.update(next((one for one in known if one.get("caught_by") not in unsound), {}))
        row["done"] = bool(row.get("caught_by")) or "over" in row
        row["done"] |= row.get("asked", -1) >= min(most, row.get("seeing", most))
    return unsound


def failing(worker: Worker, tests: Sequence[str]) -> list[str]:
    """Return the tests that fail on the unchanged code."""
    failed, left = list[str](), list(tests)
    while left:
        found = worker.run(left, HOUR_S)
        failed += found["failed"]
        left = [test for test in left if test not in found["ran"]] if found["failed"] else []
    return failed


def main() -> None:
    """Test changes without a result, then run the tests that detected any on the unchanged code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("trees", type=Path, nargs="+", help=f"worktrees of {COMMIT}")
    text = "coverage data of the default run in a tree"
    parser.add_argument("--coverage", type=Path, required=True, help=text)
    parser.add_argument("--most", type=int, default=150, help="maximum number of tests per change")
    asked = parser.parse_args()
    trees: list[Path] = [tree.absolute() for tree in asked.trees]
    suite = Suite(asked.coverage.absolute(), trees[0])
    changes, todo, lock = [*faults(trees[0]), *mutants(trees[0])], Queue[int](), Lock()
    rows = [described(trees[0], change) for change in changes]
    unsound = resumed(rows, asked.most)
    for number, row in enumerate(rows):
        if not row.pop("done", False):
            todo.put(number)

    def work(worker: Worker) -> None:
        with suppress(Empty):
            while True:
                number = todo.get_nowait()
                found = worker.tried(changes[number], rows[number].get("asked", 0))
                with lock:
                    rows[number].update(found, ran=found["ran"] + rows[number].get("ran", 0))
                    print(todo.qsize(), changes[number].file, *found.values(), flush=True)
                    write(rows, unsound)

    workers = [Worker(tree, suite, asked.most, unsound) for tree in trees]
    with ThreadPoolExecutor(len(workers)) as pool:
        list(pool.map(work, workers))
    catching = sorted({row["caught_by"] for row in rows if row.get("caught_by")})
    failed = failing(workers[0], catching)
    write(rows, [*unsound, *failed])
    print(f"{len(failed)} of {len(catching)} tests fail without a change, too:", *failed)
    tried = Counter((row["part"], "words" in row) for row in rows)
    noticed = Counter((row["part"], "words" in row) for row in rows if row.get("caught_by"))
    for (part, described_in_words), n in sorted(tried.items()):
        kind = "faults" if described_in_words else "mutants"
        print(f"{part}: {noticed[part, described_in_words]} of {n} {kind} noticed")


if __name__ == "__main__":
    main()
